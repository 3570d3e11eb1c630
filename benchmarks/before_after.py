"""This version against an earlier one, side by side: both run every task in turns.

    git worktree add ../before 3e8432e
    python benchmarks/before_after.py --before ../before

Each task runs in a process of its own with the sources of one version, by public calls that both
have. Times are the least of some turns; ratios are earlier/now, so that more is better.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from common import RESULTS, Claim, machine, markdown_table, write_csv, write_report

ROOT = Path(__file__).parent.parent
SETTINGS = {
    "kernel": "gaussian",
    "bandwidth": "median",
    "alpha": "gcv",
    "sketch": "rpcholesky",
    "sketch_size": "auto",
    "sketch_tol": 0.1,
    "solver": "sketch",
    "noise_variance": "auto",
    "fit_intercept": False,
    "backend": "numpy",
    "dtype": "auto",
    "random_state": 0,
}
CHILD = r"""
import json, pickle, sys, time, warnings
warnings.simplefilter("ignore")
import numpy as np
from sketchridge import ActiveLearner, ExactKernelRidge, SketchedKernelRidge

task, path, settings = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
data = np.load(path)
X, y, X_new = data["X"], data["y"], data["X_new"]

def clock(function):
    start = time.perf_counter()
    value = function()
    return time.perf_counter() - start, value

def sketched(**changes):
    return SketchedKernelRidge(**(settings | changes))

def exact(**changes):
    names = ("kernel", "bandwidth", "alpha", "noise_variance", "fit_intercept")
    return ExactKernelRidge(**({name: settings[name] for name in names} | changes))

out = {}
if task in ("fit", "fit with an intercept"):
    one = {"fit_intercept": task != "fit"}
    sketched(sketch_size=64, **one).fit(X[:2000], y[:2000])  # whatever is loaded once
    out["automatic fit"], model = clock(lambda: sketched(**one).fit(X, y))
    chosen = {"bandwidth": model.bandwidth_, "alpha": model.alpha_,
              "sketch_size": model.sketch_size_, **one}
    out["fit with all given"], given = clock(lambda: sketched(**chosen).fit(X, y))
    out["V2 at 5,000 points, first call"], _ = clock(lambda: given.variance(X_new))
    out["V2 at 5,000 points, again"], _ = clock(lambda: given.variance(X_new))
    out["V3 at 5,000 points"], _ = clock(lambda: given.variance(X_new, kind="v3"))
    out["mean at 5,000 points"], _ = clock(lambda: given.predict(X_new))
    out["m"] = model.sketch_size_
    out["bytes of a saved model"] = len(pickle.dumps(given))
elif task == "dense sketch":
    for name in ("float32", "float64"):
        size = {"sketch": "rademacher", "sketch_size": 128, "dtype": name}
        model = sketched(alpha=10.0, **size)
        out[f"fit with 128 signs, {name}"], _ = clock(lambda: model.fit(X[:8192], y[:8192]))
elif task == "refinement":
    model = sketched(alpha=20.0, sketch_size=512).fit(X, y)
    out["V1 at 100 points to 0.1%"], _ = clock(lambda: model.variance(X_new[:100], "v1", tol=1e-3))
    solver = sketched(alpha=20.0, sketch_size=512, solver="pcg")
    out["exact mean"], _ = clock(lambda: solver.fit(X[:10000], y[:10000]))
    out["norm certificate"], _ = clock(lambda: model.certificate("norm"))
elif task == "exact":
    model = exact()
    out["exact fit of 2,000 rows"], _ = clock(lambda: model.fit(X[:2000], y[:2000]))
    out["exact V1 at 1,000 points"], _ = clock(lambda: model.variance(X_new[:1000]))
elif task == "campaign":
    learner = ActiveLearner(sketched(bandwidth=2.0, alpha=5.0, sketch_size=300), X, batch_size=500,
                            acquisition="weighted", score="v2", stop=None, store=None,
                            random_state=0)
    ids = learner.ask()
    learner.tell(ids, y[ids])
    def rounds():
        for _ in range(6):
            ids = learner.ask()
            learner.tell(ids, y[ids])
    out["six rounds of a campaign"], _ = clock(rounds)
elif task == "appending":
    model = sketched(alpha=5.0, sketch_size=300).fit(X[:10000], y[:10000])
    def append():
        for start in range(10000, 14000, 500):
            model.partial_fit(X[start:start + 500], y[start:start + 500])
    out["eight times 500 rows appended"], _ = clock(append)
elif task == "first fit":
    out["first fit of a process, 16,384 rows"], _ = clock(
        lambda: sketched(alpha=5.0, sketch_size=64, backend="auto").fit(X[:16384], y[:16384]))
print(json.dumps(out))
"""
TASKS = (
    "fit",
    "fit with an intercept",
    "dense sketch",
    "refinement",
    "exact",
    "campaign",
    "appending",
    "first fit",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--before", type=Path, required=True, help="a checkout of the other version"
    )
    parser.add_argument("--flights", type=Path, help="flights as an .npz file, else made-up data")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--tasks", nargs="*", default=TASKS, choices=TASKS)
    options = parser.parse_args()
    versions = {"before": options.before.resolve() / "src", "now": ROOT / "src"}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.npz"
        source = _make_data(path, options.flights)
        rows = []
        for task in options.tasks:
            found = _in_turns(task, path, versions, options.turns)
            rows += [_row(task, name, found) for name in found["now"]]
            print(markdown_table(rows[-len(found["now"]) :]), flush=True)
    _report(rows, source, options.turns)


def _make_data(path: Path, flights: Path | None) -> str:
    """20,000 rows and 5,000 new points in 8 dimensions."""
    rng = np.random.default_rng(0)
    if flights is not None:
        data = np.load(flights)
        rows = rng.choice(len(data["y"]), 25_000, replace=False)
        X = data["X"][rows].astype(float)
        y = data["y"][rows].astype(float)
        source = "flights of 2008, eight standardized variables"
    else:
        X = rng.standard_normal((25_000, 8))
        y = np.sin(X[:, 0]) * X[:, 1] + X[:, 2] ** 2 + rng.standard_normal(25_000)
        source = "made-up data in eight dimensions"
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    np.savez(path, X=X[:20_000], y=y[:20_000], X_new=X[20_000:])
    return source


def _in_turns(task: str, path: Path, versions: dict[str, Path], turns: int) -> dict[str, dict]:
    """The least value of each measurement, by version."""
    least: dict[str, dict[str, float]] = {name: {} for name in versions}
    for _ in range(turns):
        for name, sources in versions.items():
            environment = os.environ | {"PYTHONPATH": str(sources)}
            command = [sys.executable, "-c", CHILD, task, str(path), json.dumps(SETTINGS)]
            done = subprocess.run(
                command, env=environment, capture_output=True, text=True, check=True
            )
            for key, value in json.loads(done.stdout).items():
                least[name][key] = min(value, least[name].get(key, np.inf))
    return least


def _row(task: str, name: str, found: dict[str, dict[str, float]]) -> dict[str, object]:
    before, now = found["before"].get(name, np.nan), found["now"][name]
    title = f"{name}, with an intercept" if task.endswith("intercept") else name
    return {
        "task": title,
        "before": _shown(before),
        "now": _shown(now),
        "ratio": f"{before / now:.2f}",
    }


def _shown(value: float) -> str:
    return f"{value:,.0f}" if value > 1000 or value == int(value) else f"{value:.3g}"


def _report(rows: list[dict[str, object]], source: str, turns: int) -> None:
    write_csv(RESULTS / "before_after.csv", rows)
    ratio = {str(row["task"]): float(str(row["ratio"])) for row in rows}
    now = {str(row["task"]): float(str(row["now"]).replace(",", "")) for row in rows}
    claims = []
    if "automatic fit" in now:
        share = now["automatic fit"] / now["fit with all given"]
        claims.append(
            Claim(
                f"the automatic fit takes at most 1.7 of the given one: {share:.2f}", share <= 1.7
            )
        )
        for call in ("first call", "again"):
            gain = ratio[f"V2 at 5,000 points, {call}"]
            sentence = f"V2 ({call}) at least 1.7 times faster than before: {gain:.2f}×"
            claims.append(Claim(sentence, gain >= 1.7))
        size = now["bytes of a saved model"] / 1e6
        claims.append(Claim(f"a saved model takes at most 25 MB: {size:.1f} MB", size <= 25))
    times = {name: value for name, value in ratio.items() if name not in ("m",)}
    slower = [f"{name} ({value:.2f})" for name, value in times.items() if value < 0.9]
    text = "nothing is slower than before by more than a tenth" + (
        f", but: {', '.join(slower)}" if slower else ""
    )
    claims.append(Claim(text, not slower))
    setting = (
        f"Command: `python benchmarks/before_after.py --before DIR`. {machine()}.\n\n{source}; the "
        f"least of {turns} turns, in seconds unless said. The ratio is before/now."
    )
    parts = [setting, markdown_table(rows)]
    write_report(RESULTS / "before_after.md", "This version against the first", parts, claims)


if __name__ == "__main__":
    main()
