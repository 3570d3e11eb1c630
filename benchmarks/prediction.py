"""How well tables are predicted, with which intervals: this library's defaults against its peers.

    python benchmarks/prediction.py --data ../shared/data

Every table of the folder, 20,000 flights and the weather, over some splits: 80% of the rows (20,000
at most) to learn from, the others (5,000 at most) to test; X and y standardised by the former.
Peers that are not installed are left out. Errors are in standard deviations of y; the interval
score is that of 95% intervals, the log density natural and per observation.
"""

from __future__ import annotations

import argparse
import csv
import os
import time
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import common
import numpy as np
from joblib import Parallel, cpu_count, delayed
from scipy.stats import norm
from settings import automatic_ridge
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

Array = np.ndarray
Found = dict[str, Any]
TABLES = ("energy", "concrete", "airfoil", "skillcraft", "sml", "pumadyn32nm", "flights", "weather")
SPLITS = 5
LARGEST = 20_000
TESTED = 5_000
OURS = "sketchridge"
VARYING = "sketchridge, varying noise"
Z95 = 1.959963984540054
MACHINE = f"{cpu_count()} cores"


def table(name: str, folder: Path) -> tuple[Array, Array]:
    """X and y of a table, in their own units."""
    if name == "weather" and (folder / "weather.npz").exists():  # where polars is not
        data = np.load(folder / "weather.npz")
        return data["X"], data["y"]
    if name == "weather":
        import polars as pl

        frame = pl.read_parquet(folder / "cru_cl2_5x5_climatology.parquet").drop_nulls()
        values = frame.to_numpy().astype(float)
        values = values[np.isfinite(values).all(axis=1)]
        at = frame.columns.index("tmp")
        return np.delete(values, at, axis=1), values[:, at]
    file = "flights2008_jan_apr" if name == "flights" else f"tables/{name}"
    data = np.load(folder / f"{file}.npz")
    rows = np.random.default_rng(0).permutation(len(data["y"]))[: LARGEST + TESTED]
    return data["X"][rows].astype(float), np.ravel(data["y"])[rows].astype(float)


def split(X: Array, y: Array, seed: int) -> tuple[Array, Array, Array, Array]:
    """Training and test rows, standardised by the former."""
    order = np.random.default_rng(seed).permutation(len(X))
    n = min(4 * len(X) // 5, LARGEST)
    train, test = order[:n], order[n : n + TESTED]
    spread = X[train].std(axis=0)
    X = (X - X[train].mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    y = (y - y[train].mean()) / y[train].std()
    return X[train], y[train], X[test], y[test]


def scored(
    y: Array, mean: Array, low: Array | None = None, high: Array | None = None,
    density: Array | None = None, spread: Array | None = None,
) -> Found:  # fmt: skip
    found: Found = {"rmse": float(np.sqrt(np.mean((y - mean) ** 2)))}
    if low is not None and high is not None:
        held = (low <= y) & (y <= high)
        missed = np.maximum(low - y, 0) + np.maximum(y - high, 0)
        found["coverage"] = float(held.mean())
        found["interval_score"] = float(np.mean(high - low + 2 / 0.05 * missed))
        if spread is not None:
            found["coverage_tenth"] = float(held[spread >= np.quantile(spread, 0.9)].mean())
    if density is not None:
        found["log_density"] = float(np.mean(density))
    return found


def ours(X: Array, y: Array, Z: Array, z: Array, seed: int, noise: str = "constant") -> Found:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = automatic_ridge(random_state=seed, noise=noise).fit(X, y)
        mean = model.predict(Z)
        low, high = model.predict_interval(Z)
        variance = model.predictive_variance(Z)
    found = scored(z, mean, low, high, model.log_density(Z, z), variance)
    learned = model.fitted_.learned
    form = "" if learned is None else learned.form
    return found | {"choice": f"{model.kernel_.name} {form}".strip(), "m": model.sketch_size_}


def ours_varying(X: Array, y: Array, Z: Array, z: Array, seed: int) -> Found:
    return ours(X, y, Z, z, seed, "varying")


def boosting(X: Array, y: Array, Z: Array, z: Array, seed: int) -> Found:
    model = HistGradientBoostingRegressor(max_iter=500, learning_rate=0.05, random_state=seed)
    return scored(z, model.fit(X, y).predict(Z))


def lightgbm(X: Array, y: Array, Z: Array, z: Array, seed: int) -> Found:
    from lightgbm import LGBMRegressor

    model = LGBMRegressor(n_estimators=500, learning_rate=0.05, random_state=seed, verbose=-1)
    return scored(z, model.fit(X, y).predict(Z))


def quantile_boosting(X: Array, y: Array, Z: Array, z: Array, seed: int) -> Found:
    """Conformalised quantile regression: a quarter of the rows calibrates."""
    n = 3 * len(X) // 4
    make = HistGradientBoostingRegressor
    options = {"max_iter": 300, "learning_rate": 0.05, "random_state": seed}
    low, high = (
        make(loss="quantile", quantile=q, **options).fit(X[:n], y[:n]) for q in (0.025, 0.975)
    )
    off = np.maximum(low.predict(X[n:]) - y[n:], y[n:] - high.predict(X[n:]))
    rank = min(int(np.ceil(0.95 * (len(off) + 1))), len(off)) - 1
    wider = np.sort(off)[rank]
    below, above = low.predict(Z) - wider, high.predict(Z) + wider
    return scored(z, (below + above) / 2, below, np.maximum(above, below))


def gaussian_process(X: Array, y: Array, Z: Array, z: Array, seed: int) -> Found:
    """scikit-learn's on 2,000 rows, with one bandwidth for each feature."""
    rows = np.random.default_rng(seed).permutation(len(X))[:2000]
    kernel = ConstantKernel() * Matern(np.ones(X.shape[1]), (1e-2, 1e4), nu=1.5) + WhiteKernel(0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = GaussianProcessRegressor(kernel, random_state=seed).fit(X[rows], y[rows])
        mean, std = model.predict(Z, return_std=True)
    return scored(z, mean, *_normal(mean, std), norm.logpdf(z, mean, std), std)


def gpytorch_exact(X: Array, y: Array, Z: Array, z: Array, seed: int) -> Found:
    """The better, by likelihood, of Matérn 3/2 and RBF with a bandwidth each, 40 Adam steps."""
    import gpytorch
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    to = {"dtype": torch.float32, "device": device}
    tX, ty, tZ = (torch.tensor(a, **to) for a in (X, y, Z))

    class Model(gpytorch.models.ExactGP):
        def __init__(self, kernel: Any, likelihood: Any) -> None:
            super().__init__(tX, ty, likelihood)
            self.mean_module = gpytorch.means.ConstantMean()
            self.covar_module = gpytorch.kernels.ScaleKernel(kernel)

        def forward(self, x: Any) -> Any:
            return gpytorch.distributions.MultivariateNormal(
                self.mean_module(x), self.covar_module(x)
            )

    best: tuple[float, Any, Any] | None = None
    d = X.shape[1]
    for kernel in (
        gpytorch.kernels.MaternKernel(1.5, ard_num_dims=d),
        gpytorch.kernels.RBFKernel(ard_num_dims=d),
    ):
        likelihood = gpytorch.likelihoods.GaussianLikelihood().to(device)
        model = Model(kernel, likelihood).to(device)
        loss = _descended(model, likelihood, tX, ty, 40)
        if best is None or loss < best[0]:
            best = (loss, model, likelihood)
    assert best is not None
    _, model, likelihood = best
    model.eval()
    likelihood.eval()
    with torch.no_grad(), gpytorch.settings.fast_pred_var():
        found = likelihood(model(tZ))
        mean, std = found.mean.cpu().double().numpy(), found.stddev.cpu().double().numpy()
    return scored(z, mean, *_normal(mean, std), norm.logpdf(z, mean, std), std)


def _descended(model: Any, likelihood: Any, X: Any, y: Any, steps: int) -> float:
    import gpytorch
    import torch

    model.train()
    likelihood.train()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    objective = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
    loss = torch.tensor(np.inf)
    for _ in range(steps):
        optimizer.zero_grad()
        loss = -objective(model(X), y)
        loss.backward()
        optimizer.step()
    return float(loss)


def svgp(X: Array, y: Array, Z: Array, z: Array, seed: int) -> Found:
    """A variational GP with 500 inducing points, Matérn 3/2, one bandwidth for each feature."""
    import gpytorch
    import torch

    torch.manual_seed(seed)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    to = {"dtype": torch.float32, "device": device}
    tX, ty, tZ = (torch.tensor(a, **to) for a in (X, y, Z))

    class Model(gpytorch.models.ApproximateGP):
        def __init__(self, points: Any) -> None:
            inner = gpytorch.variational.CholeskyVariationalDistribution(len(points))
            super().__init__(gpytorch.variational.VariationalStrategy(self, points, inner))
            self.mean_module = gpytorch.means.ConstantMean()
            base = gpytorch.kernels.MaternKernel(1.5, ard_num_dims=points.shape[1])
            self.covar_module = gpytorch.kernels.ScaleKernel(base)

        def forward(self, x: Any) -> Any:
            return gpytorch.distributions.MultivariateNormal(
                self.mean_module(x), self.covar_module(x)
            )

    model = Model(tX[torch.randperm(len(tX), device=device)[:500]].clone()).to(device)
    likelihood = gpytorch.likelihoods.GaussianLikelihood().to(device)
    both = [*model.parameters(), *likelihood.parameters()]
    optimizer = torch.optim.Adam(both, lr=0.01)
    objective = gpytorch.mlls.VariationalELBO(likelihood, model, num_data=len(tX))
    for _ in range(1500):
        some = torch.randint(len(tX), (1024,), device=device)
        optimizer.zero_grad()
        loss = -objective(model(tX[some]), ty[some])
        loss.backward()
        optimizer.step()
    model.eval()
    likelihood.eval()
    with torch.no_grad():
        found = likelihood(model(tZ))
        mean, std = found.mean.cpu().double().numpy(), found.stddev.cpu().double().numpy()
    return scored(z, mean, *_normal(mean, std), norm.logpdf(z, mean, std), std)


def xrfm(X: Array, y: Array, Z: Array, z: Array, seed: int) -> Found:
    """Recursive feature machines, bandwidth and penalty by a fifth of the rows held out."""
    import torch
    from xrfm import xRFM

    torch.manual_seed(seed)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    tX, ty, tZ = (torch.tensor(a, dtype=torch.float32, device=device) for a in (X, y[:, None], Z))
    n = 4 * len(X) // 5
    best = np.inf, np.zeros(len(Z))
    for bandwidth in (3.0, 10.0, 30.0):
        for penalty in (1e-4, 1e-2):
            settings = {
                "model": {"kernel": "l2", "bandwidth": bandwidth, "exponent": 1.0, "diag": False},
                "fit": {"reg": penalty, "iters": 5, "verbose": False, "early_stop_rfm": True},
            }
            model = xRFM(rfm_params=settings, device=device, tuning_metric="mse", verbose=False)
            model.fit(tX[:n], ty[:n], tX[n:], ty[n:])
            error = float(np.mean((np.ravel(model.predict(tX[n:])) - y[n:]) ** 2))
            if error < best[0]:
                best = error, np.ravel(model.predict(tZ))
    return scored(z, best[1])


def _normal(mean: Array, std: Array) -> tuple[Array, Array]:
    return mean - Z95 * std, mean + Z95 * std


CPU: dict[str, Callable[..., Found]] = {
    OURS: ours,
    VARYING: ours_varying,
    "HistGradientBoosting": boosting,
    "quantile boosting": quantile_boosting,
    "scikit-learn GPR": gaussian_process,
}
if find_spec("lightgbm"):
    CPU["LightGBM"] = lightgbm
GPU: dict[str, Callable[..., Found]] = {}
if find_spec("gpytorch"):
    GPU |= {"GPyTorch exact": gpytorch_exact, "SVGP": svgp}
if find_spec("xrfm"):
    GPU["xRFM"] = xrfm


def measured(method: str, name: str, seed: int, folder: Path) -> Found:
    X, y, Z, z = split(*table(name, folder), seed)
    start = time.perf_counter()
    try:
        found = {**CPU, **GPU}[method](X, y, Z, z, seed)
    except Exception as error:  # a peer that fails is shown as failing
        found = {"rmse": float("nan"), "error": f"{type(error).__name__}: {error}"[:200]}
    seconds = time.perf_counter() - start
    row: Found = {"table": name, "split": seed, "method": method, "n": len(X), "d": X.shape[1]}
    row |= {"machine": MACHINE, "seconds": seconds} | found
    print(row, flush=True)
    return row


def short(rows: list[Found]) -> str:
    """The README's table: errors, the ratio to the best peer, and what our intervals held."""
    shown = (OURS, "HistGradientBoosting", "GPyTorch exact", "SVGP")
    lines = []
    for name in [t for t in TABLES if any(r["table"] == t for r in rows)]:
        some = [r for r in rows if r["table"] == name]
        line: Found = {"table": name, "rows, features": f"{some[0]['n']:,}, {some[0]['d']}"}
        for method in shown:
            errors = [r["rmse"] for r in some if r["method"] == method]
            line[method] = f"{np.mean(errors):.3f}"
        ratio = max(_ratio(rows, peer, name) for peer in shown if peer != OURS)
        held = np.mean([r["coverage"] for r in some if r["method"] == OURS])
        lines.append(line | {"ours / best peer": f"{ratio:.2f}", "held": f"{held:.1%}"})
    return common.markdown_table(lines)


def report(rows: list[Found], out: Path) -> None:
    """Means over splits, ratios to the best peer, and the claims."""
    methods = list(dict.fromkeys(r["method"] for r in rows))
    peers = [m for m in methods if m not in (OURS, VARYING, "quantile boosting")]
    tables = [t for t in TABLES if any(r["table"] == t for r in rows)]

    def mean(method: str, name: str, what: str) -> float:
        some = [r[what] for r in rows if r["method"] == method and r["table"] == name and what in r]
        return float(np.mean(some)) if some else float("nan")

    errors = [
        {"table": t} | {m: f"{mean(m, t, 'rmse'):.4f}" for m in methods if m != "quantile boosting"}
        for t in tables
    ]
    ratios = {t: max(_ratio(rows, p, t) for p in peers) for t in tables}
    for line in errors:
        line["ours/best peer"] = f"{ratios[line['table']]:.3f}"
    ranged = [m for m in methods if any("interval_score" in r for r in rows if r["method"] == m)]
    intervals = [
        {"table": t}
        | {
            f"{m}: {short}": f"{mean(m, t, what):.3f}"
            for m in ranged
            for what, short in (("coverage", "held"), ("interval_score", "score"))
        }
        | {"ours, uncertain tenth": f"{mean(OURS, t, 'coverage_tenth'):.3f}"}
        for t in tables
    ]
    dense = [m for m in methods if any("log_density" in r for r in rows if r["method"] == m)]
    densities = [
        {"table": t} | {m: f"{mean(m, t, 'log_density'):.3f}" for m in dense} for t in tables
    ]
    seconds = [{"table": t} | {m: f"{mean(m, t, 'seconds'):.1f}" for m in methods} for t in tables]
    overall = float(np.exp(np.mean(np.log(list(ratios.values())))))
    better_density = sum(
        mean(OURS, t, "log_density")
        > np.nanmax([mean(p, t, "log_density") for p in dense if p not in (OURS, VARYING)])
        for t in tables
    )
    better_score = sum(
        mean(OURS, t, "interval_score") < mean("quantile boosting", t, "interval_score")
        for t in tables
    )
    held = {t: mean(OURS, t, "coverage") for t in tables}
    tenth = {t: mean(OURS, t, "coverage_tenth") for t in tables}
    claims = [
        common.Claim(
            f"geometric mean of RMSE over the best peer's at most 0.95 (found {overall:.3f})",
            overall <= 0.95,
        ),
        common.Claim(
            "at most one table above 1.1, none above 1.2",
            sum(r > 1.1 for r in ratios.values()) <= 1 and max(ratios.values()) <= 1.2,
        ),
        common.Claim(
            f"log density above every peer's on 6 of 8 tables (found {better_density} of "
            f"{len(tables)})",
            better_density >= 6,
        ),
        common.Claim(
            "interval score below conformalised quantile boosting's on 6 of 8 tables (found "
            f"{better_score})",
            better_score >= 6,
        ),
        common.Claim(
            "coverage of 95% intervals between 92.5 and 97.5% on every table (found "
            f"{min(held.values()):.1%} to {max(held.values()):.1%})",
            min(held.values()) >= 0.925 and max(held.values()) <= 0.975,
        ),
        common.Claim(
            f"at least 85% in the most uncertain tenth (found {min(tenth.values()):.1%})",
            min(tenth.values()) >= 0.85,
        ),
    ]
    counts = {m: len({r["split"] for r in rows if r["method"] == m}) for m in methods}
    parts = [
        "Command: `python benchmarks/prediction.py --data FOLDER`. Splits: "
        + ", ".join(f"{method} {count}" for method, count in counts.items())
        + ". Ratios are over the splits that both have.",
        "Machines: "
        + ", ".join(_machines(rows))
        + ". One run may have been put together of several: "
        "seconds of different machines are not to be compared.",
        "## In short\n\n" + short(rows),
        "## Root mean squared error\n\n" + common.markdown_table(errors),
        "## 95% intervals\n\n" + common.markdown_table(intervals),
        "## Log density\n\n" + common.markdown_table(densities),
        "## Seconds\n\nSeveral at a time on the same machine.\n\n" + common.markdown_table(seconds),
    ]
    common.write_report(out / "prediction.md", "Prediction", parts, claims)


def _machines(rows: list[Found]) -> list[str]:
    """Each method with where it ran."""
    ran = {(r["method"], r["machine"]) for r in rows}
    names = dict.fromkeys(r["method"] for r in rows)
    return [f"{name} {' and '.join(sorted(m for k, m in ran if k == name))}" for name in names]


def read(path: Path) -> list[Found]:
    """The rows of an earlier run; what a method does not give is left out."""
    numbers = ("n", "d", "split", "m")

    def value(key: str, text: str) -> Any:
        if key in ("table", "method", "machine", "choice", "error"):
            return text
        return int(float(text)) if key in numbers else float(text)

    with path.open() as file:
        return [{k: value(k, t) for k, t in row.items() if t} for row in csv.DictReader(file)]


def _ratio(rows: list[Found], peer: str, name: str) -> float:
    """Our mean error over a peer's, on the splits that both have; 0 where there is none."""
    errors = {
        method: {
            r["split"]: r["rmse"]
            for r in rows
            if r["method"] == method and r["table"] == name and np.isfinite(r["rmse"])
        }
        for method in (OURS, peer)
    }
    shared = sorted(set(errors[OURS]) & set(errors[peer]))
    if not shared:
        return 0.0
    ours_mean, peer_mean = (np.mean([errors[m][s] for s in shared]) for m in (OURS, peer))
    return float(ours_mean / peer_mean)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="tables/, flights and weather")
    parser.add_argument("--report", action="store_true", help="read what was measured")
    parser.add_argument("--out", type=Path, default=common.RESULTS)
    parser.add_argument("--splits", type=int, default=SPLITS)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--tables", nargs="+", default=list(TABLES))
    parser.add_argument("--methods", nargs="+", default=None)
    parser.add_argument("--name", default="prediction", help="of the files that are written")
    options = parser.parse_args()
    if options.report:
        report(read(options.out / "prediction.csv"), options.out)
        return
    if options.data is None:
        parser.error("--data is needed to measure: the folder with tables/, flights and weather")
    os.environ.setdefault("OMP_NUM_THREADS", "2")
    wanted = options.methods or [*CPU, *GPU]
    cells = [(t, s) for s in range(options.splits) for t in reversed(options.tables)]
    work = Parallel(n_jobs=options.jobs)
    rows: list[Found] = []
    rows += work(
        delayed(measured)(m, t, s, options.data) for t, s in cells for m in CPU if m in wanted
    )
    rows += [measured(m, t, s, options.data) for t, s in cells for m in GPU if m in wanted]
    keys = list(dict.fromkeys(key for row in rows for key in row))
    common.write_csv(
        options.out / f"{options.name}.csv", [{k: r.get(k, "") for k in keys} for r in rows]
    )
    if options.name == "prediction":
        report(rows, options.out)


if __name__ == "__main__":
    main()
