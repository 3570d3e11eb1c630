"""How far V2, V3, their average V̄ and V_θ are from V1, over many problems.

    python benchmarks/averaged.py --data ../shared/data

A problem is a data set, kernel, bandwidth, λ, sketch and sketch size. Each gives the gap V2/V3 at
256 training rows and relative errors at 200 training rows and up to 200 others. Half of the data
sets make the table from gap to error, the other half check it. ``--report`` reads the measurements
that are there instead of making them.
"""

from __future__ import annotations

import argparse
import csv
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest.mock import patch

import common
import numpy as np
from joblib import Parallel, delayed
from scipy.linalg import cho_factor, cho_solve, eigh
from settings import sketched_ridge
from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel

from sketchridge import shares
from sketchridge.kernels import as_kernel
from sketchridge.tuning import median_bandwidth, predicted_error

Array = np.ndarray
Row = dict[str, Any]
TABLES = ("airfoil", "concrete", "energy", "pumadyn32nm", "skillcraft", "sml")
MADE = ("line", "square", "cube", "five", "clusters", "tails")
CHECKED = ("concrete", "energy", "sml", "square", "five", "clusters", "keggdirected")  # no part
KERNELS = ("gaussian", "matern32", "laplacian")
LAMBDAS = (1e-3, 1e-5)
MULTIPLES = (1.0, 1.5, 2.0, 3.0, 4.0)  # of s_λ
SKETCHES = ("rpcholesky", "landmarks", "gaussian", "rademacher", "sparse", "srht", "fourier")
NAMES = {"v2": "V2", "v3": "V3", "vbar": "V̄", "vtheta": "V_θ"}
OTHERS = (
    (1.0, 0.54),
    (2.0, 0.54),
    (1.5, 0.5),
    (1.5, 0.6),
)  # factors of ρ and largest shares of V_θ
PARTS = range(5, 100, 10)  # quantiles that stand for a tenth of the points each
LEVELS = sorted({*PARTS, 50})
SIZES = (64, 128, 256, 512, 1024)  # where n is so large that s_λ is not computed
ROWS = 1500
LARGE = 2.0  # the gap above which standard deviations are made of V_θ
ASKED = 200
TOLERANCES = (0.02, 0.05, 0.1, 0.2)
TABLE = (1.001, 1.01, 1.03, 1.1, 1.2, 1.35, 1.6, 2.0, 2.5, 3.0, 5.0, 10.0)
GAPS = (1.02, 1.05, 1.1, 1.2, 1.35, 1.6, 2.0, 2.5, 3.0, 5.0, 10.0)


@dataclass(frozen=True)
class Setting:
    """A data set of n rows with a kernel whose bandwidth is a multiple of the median distance."""

    data: str
    n: int
    kernel: str
    multiple: float


def settings(folder: Path | None) -> Iterator[Setting]:
    """All of them, the large ones first."""
    real = () if folder is None else (*TABLES, "flights")
    large = ["cube", "five"] + (["flights", "keggdirected"] if folder else [])
    for n in (8000, 4000):
        for data in large:
            yield Setting(data, n, "gaussian", 0.5)
            yield Setting(data, n, "matern32", 1.0)
    for data in (*real, *MADE):
        for kernel in KERNELS:
            for multiple in (1.0, 0.4):
                yield Setting(data, ROWS, kernel, multiple)


def points(name: str, n: int, folder: Path | None) -> Array:
    """Standardized points: up to n for training, and further ones to ask about."""
    rng = np.random.default_rng(0)
    total = n + ASKED
    if name == "line":
        X = rng.random((total, 1))
    elif name == "square":
        X = rng.random((total, 2))
    elif name == "cube":
        X = rng.random((total, 3))
    elif name == "five":
        X = rng.random((total, 5))
    elif name == "clusters":
        sizes = rng.geometric(0.08, size=total)
        centers = rng.standard_normal((sizes.max() + 1, 4)) * 3
        X = centers[sizes] + 0.3 * rng.standard_normal((total, 4))
    elif name == "tails":
        X = rng.standard_t(2.5, size=(total, 3))
    else:
        assert folder is not None
        file = "flights2008_jan_apr.npz" if name == "flights" else f"tables/{name}.npz"
        X = np.load(folder / file)["X"].astype(float)
        X = np.unique(X[rng.permutation(len(X))[: 3 * total]], axis=0)
        X = X[rng.permutation(len(X))[:total]]
    spread = X.std(axis=0)
    return (X[:, spread > 0] - X.mean(axis=0)[spread > 0]) / spread[spread > 0]


def measure(setting: Setting, folder: Path | None) -> list[Row]:
    """The rows of one setting, for every λ, sketch and size."""
    X = points(setting.data, setting.n, folder)
    asked = min(ASKED, len(X) // 6)
    X, X_new = X[asked:], X[:asked]
    kernel = as_kernel(setting.kernel)
    h = setting.multiple * median_bandwidth(X, kernel)
    everywhere = np.vstack([X[:ASKED], X_new])
    G = matrix(setting.kernel, h, X, X) / len(X)
    k = matrix(setting.kernel, h, X, everywhere)
    large = setting.n > ROWS
    values, vectors = (None, None) if large else eigh(G, driver="evd")
    rows: list[Row] = []
    for lam in LAMBDAS:
        if values is None or vectors is None:
            z = cho_solve(cho_factor(G + lam * np.eye(len(X)), lower=True), k)
            sizes = {m: float("nan") for m in SIZES}
        else:
            z = vectors @ ((vectors.T @ k) / (values + lam)[:, None])
            s = int((values > lam).sum())
            wanted = {round(multiple * s): multiple for multiple in MULTIPLES}
            sizes = {m: multiple for m, multiple in wanted.items() if 4 <= m <= len(X) // 2}
        v1 = (z**2).sum(axis=0) / len(X) ** 2
        for sketch in SKETCHES[:2] if large else SKETCHES:
            for m, multiple in sizes.items():
                found = estimates(setting.kernel, X, everywhere, h, lam, sketch, m)
                row = {"data": setting.data, "n": len(X), "kernel": setting.kernel}
                row |= {"h": setting.multiple, "lam": lam, "sketch": sketch, "m": m}
                row |= {"multiple": multiple, "gap": found.pop("gap")}
                rows.append(row | errors(found, v1))
    return rows


def matrix(kernel: str, h: float, X: Array, Z: Array) -> Array:
    """k(X, Z) by scikit-learn."""
    if kernel == "laplacian":
        return laplacian_kernel(X, Z, gamma=1 / h)
    if kernel == "gaussian":
        return rbf_kernel(X, Z, gamma=1 / (2 * h**2))
    from sklearn.gaussian_process.kernels import Matern

    return Matern(h, nu=1.5)(X, Z)


def estimates(
    kernel: str, X: Array, Z: Array, h: float, lam: float, sketch: str, m: int
) -> dict[str, Any]:
    """V2, V3, V̄, V_θ and V_θ with other shares at Z, and the gap."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = sketched_ridge(
            bandwidth=h, alpha=lam * len(X), sketch=sketch, sketch_size=m, noise_variance=1.0,
            backend="numpy", dtype="float64",
        )  # fmt: skip
        model.set_params(kernel=kernel).fit(X, X[:, 0])
        found = {kind: model.variance(Z, kind) for kind in NAMES}
        for beyond, largest in OTHERS:
            with patch.multiple(shares, _BEYOND=beyond, _LARGEST=largest):
                found[_other(beyond, largest)] = model.variance(Z, "vtheta")
        return found | {"gap": model.gap_}


def _other(beyond: float, largest: float) -> str:
    return f"{beyond:g} ρ, {largest:g}"


def errors(found: dict[str, Array], v1: Array) -> Row:
    """Quantiles of the relative error over points, and some at rows of the data and elsewhere.

    Points so far from all data that V1 is 0 to rounding have none.
    """
    row: Row = {}
    near = v1 > 1e-20 * v1.max()
    is_row = np.arange(len(v1)) < ASKED
    for kind, values in found.items():
        error = np.abs(values[near] / v1[near] - 1)
        row |= {f"{kind}_{q}": float(np.quantile(error, q / 100)) for q in LEVELS}
        row[f"{kind}_95_rows"] = float(np.quantile(error[is_row[near]], 0.95))
        row[f"{kind}_95_new"] = float(np.quantile(error[~is_row[near]], 0.95))
        row[f"{kind}_worst"] = float(error.max())
    return row


def automatic(setting: Setting, folder: Path | None) -> list[Row]:
    """Automatic sizes for some tolerances: what V̄, V_θ and V2 are off by at 95% of points."""
    X = points(setting.data, setting.n, folder)
    asked = min(ASKED, len(X) // 6)
    X, X_new = X[asked:], X[:asked]
    h = setting.multiple * median_bandwidth(X, as_kernel(setting.kernel))
    everywhere = np.vstack([X[:ASKED], X_new])
    G = matrix(setting.kernel, h, X, X) / len(X)
    k = matrix(setting.kernel, h, X, everywhere)
    rows: list[Row] = []
    for lam in LAMBDAS:
        z = cho_solve(cho_factor(G + lam * np.eye(len(X)), lower=True), k)
        v1 = (z**2).sum(axis=0) / len(X) ** 2
        near = v1 > 1e-20 * v1.max()
        for tol in TOLERANCES:
            model = sketched_ridge(
                bandwidth=h, alpha=lam * len(X), sketch_tol=tol, noise_variance=1.0,
                backend="numpy", dtype="float64",
            )  # fmt: skip
            model.set_params(kernel=setting.kernel).fit(X, X[:, 0])
            row = {"data": setting.data, "kernel": setting.kernel, "h": setting.multiple}
            row |= {"lam": lam, "tol": tol, "n": len(X), "m": model.sketch_size_}
            row["gap"] = model.gap_
            for kind in ("v2", "vbar", "vtheta"):
                error = np.abs(model.variance(everywhere, kind)[near] / v1[near] - 1)
                row[f"{kind}_95"] = float(np.quantile(error, 0.95))
            rows.append(row)
    return rows


# What was found


def by_size(rows: list[Row]) -> list[Row]:
    """Errors by sketch and m/s_λ: the median and the 95% quantile over all points of all problems.

    Each problem stands with ten quantiles of its points.
    """
    table = []
    for sketch in SKETCHES:
        for multiple in MULTIPLES:
            some = [r for r in rows if r["sketch"] == sketch and r["multiple"] == multiple]
            if not some:
                continue
            line: Row = {"sketch": sketch, "m/s_λ": multiple, "problems": len(some)}
            for level in (50, 95):
                found = {
                    name: float(
                        np.percentile([r[f"{kind}_{q}"] for r in some for q in PARTS], level)
                    )
                    for kind, name in NAMES.items()
                }
                line |= {f"{name} {level}%": f"{found[name]:.2g}" for name in found}
                for name in ("V̄", "V_θ"):
                    line[f"V2/{name} {level}%"] = f"{found['V2'] / found[name]:.1f}"
            table.append(line)
    return table


def by_share(rows: list[Row]) -> list[Row]:
    """Errors of V_θ with other shares, over all sketches: the median and the 95% quantile."""
    names = {"vbar": "V̄", "vtheta": "V_θ: 1.5 ρ, 0.54"} | {_other(*o): _other(*o) for o in OTHERS}
    table = []
    for multiple in MULTIPLES:
        some = [r for r in rows if r["multiple"] == multiple]
        line: Row = {"m/s_λ": multiple, "problems": len(some)}
        for kind, name in names.items():
            errors = [r[f"{kind}_{q}"] for r in some for q in PARTS]
            line[name] = ", ".join(f"{e:.2g}" for e in np.percentile(errors, (50, 95)))
        table.append(line)
    return table


def by_gap(rows: list[Row], level: float = 0.9, gaps: tuple[float, ...] = GAPS) -> list[Row]:
    """The error of 95% of points in that share of problems, with about these gaps."""
    logs = np.log([max(r["gap"] - 1, 1e-9) for r in rows])
    table = []
    for gap in gaps:
        near = np.abs(logs - np.log(gap - 1)) < 0.35
        line: Row = {"gap": gap, "problems": int(near.sum())}
        for kind in NAMES:
            some = [r[f"{kind}_95"] for r, is_near in zip(rows, near, strict=True) if is_near]
            line[kind] = round(float(np.quantile(some, level)), 4) if some else float("nan")
        table.append(line)
    return table


def returned(row: Row) -> float:
    """The error at 95% of points of what `return_std` is made of."""
    return float(row["vbar_95" if row["gap"] <= LARGE else "vtheta_95"])


def growth(rows: list[Row]) -> list[Row]:
    """By which power of m the gap less 1 falls, between multiples of s_λ: `tuning` grows by it."""
    gaps: dict[tuple[Any, ...], dict[float, tuple[float, float]]] = {}
    for r in rows:
        key = (r["data"], r["kernel"], r["h"], r["lam"], r["sketch"])
        gaps.setdefault(key, {})[r["multiple"]] = (r["m"], r["gap"] - 1)
    table = []
    for low, high in pairwise(MULTIPLES):
        both = [(g[low], g[high]) for g in gaps.values() if low in g and high in g]
        powers = [np.log(a[1] / b[1]) / np.log(b[0] / a[0]) for a, b in both if b[1] > 1e-4]
        quartiles = np.quantile(powers, (0.25, 0.5, 0.75))
        line: Row = {"m/s_λ": f"{low:g} to {high:g}", "problems": len(powers)}
        table.append(line | {"quartiles": ", ".join(f"{q:.1f}" for q in quartiles)})
    return table


def kept(rows: list[Row]) -> list[Row]:
    """How often 95% of points were within what the gap predicted."""
    table = []
    for low, high in ((1, 1.1), (1.1, 1.35), (1.35, 1.8), (1.8, 3), (3, 10)):
        some = [r for r in rows if low < r["gap"] <= high]
        held = [returned(r) <= predicted_error(r["gap"]) for r in some]
        table.append(
            {
                "gap": f"{low} to {high}",
                "problems": len(some),
                "within the prediction": f"{np.mean(held):.1%}" if held else "",
            }
        )
    return table


def figure(path: Path, rows: list[Row]) -> None:
    """Errors against m/s_λ, randomly pivoted Cholesky."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    colors = {"v2": "#d1495b", "v3": "#8d6a9f", "vbar": "#0b6e4f", "vtheta": "#edae49"}
    fig, axes = plt.subplots(1, 2, figsize=(9, 3.8), sharey=True)
    for ax, level, title in zip(axes, (50, 95), ("typical point", "95% of points"), strict=True):
        for kind, color in colors.items():
            some = [
                [
                    r[f"{kind}_{level}"]
                    for r in rows
                    if r["sketch"] == "rpcholesky" and r["multiple"] == x
                ]
                for x in MULTIPLES
            ]
            low, middle, high = (
                [float(np.quantile(s, q)) for s in some] for q in (0.25, 0.5, 0.75)
            )
            ax.fill_between(MULTIPLES, low, high, color=color, alpha=0.15, linewidth=0)
            label = NAMES[kind].replace("V_θ", r"V$_\theta$")
            ax.plot(MULTIPLES, middle, color=color, marker="o", label=label)
        ax.set(yscale="log", xlabel=r"sketch size m / s$_\lambda$", xticks=MULTIPLES)
        ax.set_title(title, loc="left", fontsize=11)
        ax.grid(color="0.92")
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("relative error against V1")
    axes[0].legend(frameon=False)
    fig.tight_layout()
    fig.savefig(path, dpi=150)
    plt.close(fig)


def held(rows: list[Row]) -> list[Row]:
    """How often 95% of points were within ``sketch_tol``, where the sketch was not complete."""
    table = []
    for tol in TOLERANCES:
        some = [r for r in rows if r["tol"] == tol and r["m"] < r["n"]]
        fine = [returned(r) <= tol for r in some]
        table.append(
            {
                "sketch_tol": tol,
                "problems": len(some),
                "held at 95% of points": f"{np.mean(fine):.1%}",
                "median error there": f"{np.median([returned(r) for r in some]):.2g}",
                "V2's": f"{np.median([r['v2_95'] for r in some]):.2g}",
                "median m/n": f"{np.median([r['m'] / r['n'] for r in some]):.2f}",
            }
        )
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="a folder with tables/ and the flights")
    parser.add_argument("--out", type=Path, default=common.RESULTS)
    parser.add_argument("--report", action="store_true", help="read what was measured")
    parser.add_argument("--machine", default=common.machine(), help="where it was measured")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", choices=("study", "automatic"), help="one half of it")
    options = parser.parse_args()
    study, check = options.out / "averaged.csv", options.out / "averaged_automatic.csv"
    if not options.report:
        every = list(settings(options.data))
        fresh = [s for s in every if s.data in CHECKED and s.n == ROWS]
        if options.only != "automatic":
            measured(measure, every, options, study)
        if options.only != "study":
            measured(automatic, fresh, options, check)
    if options.only is None:
        report(options.out, read(study), read(check), options.machine)


def measured(function: Any, some: list[Setting], options: argparse.Namespace, path: Path) -> None:
    """The rows of all settings, written as they come."""
    rows: list[Row] = []
    work = Parallel(n_jobs=options.jobs, return_as="generator_unordered")
    for found in work(delayed(function)(s, options.data) for s in some):
        rows += found
        common.write_csv(path, rows)
        print(f"{len(rows)} problems", flush=True)


def read(path: Path) -> list[Row]:
    with path.open() as file:
        return [{key: _value(text) for key, text in row.items()} for row in csv.DictReader(file)]


def report(out: Path, rows: list[Row], automatic_rows: list[Row], machine: str) -> None:
    made = [r for r in rows if r["data"] not in CHECKED]
    checked = [r for r in rows if r["data"] in CHECKED]
    sizes = by_size(rows)
    judged = [line for line in sizes if line["m/s_λ"] in (1.5, 2.0, 3.0)]
    within = [returned(r) <= predicted_error(r["gap"]) for r in checked if r["gap"] <= 10]
    tolerances = held(automatic_rows)
    shares = [float(line["held at 95% of points"].rstrip("%")) for line in tolerances]
    claims = [
        *(_gains(judged, name) for name in ("V̄", "V_θ")),
        common.Claim(
            "on data sets that did not make the table, 95% of points are within the predicted "
            f"error in at least 90% of problems (found {np.mean(within):.1%} of {len(within)} with "
            "a gap of at most 10)",
            bool(np.mean(within) >= 0.9),
        ),
        common.Claim(
            "an automatic size keeps sketch_tol at 95% of points in at least 90% of problems",
            min(shares) >= 90,
        ),
    ]
    parts = [
        f"Command: `python benchmarks/averaged.py --data FOLDER`; {len(rows)} problems.",
        machine,
        "## Relative errors by sketch size\n\nThe median and the 95% quantile over all points of "
        "all problems.\n\n" + common.markdown_table(sizes),
        "## Other shares\n\nThe median and the 95% quantile over all points, problems and "
        "sketches, for other factors of ρ and largest shares.\n\n"
        + common.markdown_table(by_share(rows)),
        "## Errors by gap\n\nThe error at 95% of points in 90% of problems. "
        f"{len(made)} problems that make the table:\n\n" + common.markdown_table(by_gap(made)),
        "The table of `tuning`, at 95% of points in 93% of those problems:\n\n"
        + common.markdown_table(by_gap(made, 0.93, TABLE)),
        f"{len(checked)} problems that do not:\n\n" + common.markdown_table(by_gap(checked)),
        "Predictions on these:\n\n" + common.markdown_table(kept(checked)),
        "## How the gap falls\n\nThe power of m by which the gap less 1 falls.\n\n"
        + common.markdown_table(growth(rows)),
        "## Automatic sizes\n\nλ given, on data sets that did not make the table.\n\n"
        + common.markdown_table(tolerances),
    ]
    figure(out / "averaged.png", rows)
    common.write_report(out / "averaged.md", "V̄ against V1", parts, claims)


def _gains(judged: list[Row], name: str) -> common.Claim:
    """Whether an estimate is as much better than V2 as is asked, at the median and at 95%."""
    slow = [
        f"{line['sketch']} at {line['m/s_λ']}: {line[f'V2/{name} 50%']}, {line[f'V2/{name} 95%']}"
        for line in judged
        if float(line[f"V2/{name} 50%"]) < 5 or float(line[f"V2/{name} 95%"]) < 4
    ]
    return common.Claim(
        f"the error of {name} is at least 5 times below V2's at the median and 4 times at 95%, at "
        f"m = 1.5, 2 and 3 s_λ for every sketch (not for: {'; '.join(slow) or 'none'})",
        not slow,
    )


def _value(text: str) -> Any:
    try:
        return float(text)
    except ValueError:
        return text


if __name__ == "__main__":
    main()
