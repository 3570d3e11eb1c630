"""Where the time of an automatic fit goes, and how much its predictions depend on the seed.

    python benchmarks/steps.py --data ../shared/data
    python benchmarks/steps.py --data ../shared/data --backend triton

20,000 flights with default settings and, on a GPU, with bandwidth="full"; then ten seeds of
random_state on every table, with the mean of default settings and with the sketched one (for which
the kernel, which no seed changes, is learned once). Up to 4,096 rows the sketch is complete, and
they should agree to rounding.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import common
import numpy as np
from joblib import Parallel, delayed
from prediction import split, table
from prediction_report import TABLES
from settings import automatic_ridge

from sketchridge import regressor

SEEDS = 10


class Clock:
    """What a fit said it was doing, and for how long."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.last = ("Preparing", time.perf_counter())

    def say(self, text: str) -> None:
        name, since = self.last
        now = time.perf_counter()
        self.seconds[name] = self.seconds.get(name, 0.0) + now - since
        self.last = (text.split(":")[0], now)

    @contextmanager
    def status(self, text: str) -> Iterator[Any]:
        self.say(text)
        yield self.say
        self.say("after")


def fitted(name: str, data: Path, seed: int, backend: str, **options: Any) -> dict[str, Any]:
    """One fit on one split, with its test error and the time of each step."""
    warnings.simplefilter("ignore")
    X, y, Z, z = split(*table(name, data), 0)
    clock = Clock()
    kept, regressor.status = regressor.status, clock.status  # type: ignore[assignment]
    try:
        start = time.perf_counter()
        model = automatic_ridge(random_state=seed).set_params(backend=backend, **options).fit(X, y)
        seconds = time.perf_counter() - start
    finally:
        regressor.status = kept
    error = float(np.sqrt(np.mean((model.predict(Z) - z) ** 2)))
    low, high = model.predict_interval(Z)
    held = float(np.mean((low <= z) & (z <= high)))
    found = {"table": name, "seed": seed, "n": len(X), "seconds": seconds, "rmse": error}
    found |= {"held": held, "m": model.sketch_size_, "solver": model.solver_, "gap": model.gap_}
    return found | {"loo": float(np.sqrt(model.loo_error_)), "steps": clock.seconds}


def shares(found: dict[str, Any]) -> str:
    steps = sorted(found["steps"].items(), key=lambda item: -item[1])
    lines = [
        {"step": name, "seconds": f"{s:.1f}", "share": f"{s / found['seconds']:.0%}"}
        for name, s in steps
        if s >= 0.005 * found["seconds"]
    ]
    return common.markdown_table(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--backend", default="numpy")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--tables", nargs="*", default=list(TABLES))
    parser.add_argument("--solvers", nargs="*", default=["auto", "sketch"], help="of the seeds")
    parser.add_argument("--jobs", type=int, default=1, help="seeds that run side by side")
    parser.add_argument("--only-seeds", action="store_true", help="not the shares of time")
    parser.add_argument("--out", type=Path, default=common.RESULTS)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    parts = [f"Command: `python benchmarks/steps.py --data FOLDER --backend {options.backend}`."]
    parts.append(common.machine())
    claims: list[common.Claim] = []
    if not options.only_seeds:
        timed, claims = steps(options.data, options.backend)
        parts += timed
    lines = [seeded(name, s, options) for name in options.tables for s in options.solvers]
    if lines:
        parts.append(f"## {options.seeds} seeds\n\n{common.markdown_table(lines)}")
    claims += [
        common.Claim(
            f"{line['table']}, solver={line['solver']!r}: errors of {options.seeds} seeds within "
            f"5% (found {line['spread']})",
            float(line["spread"].rstrip("%")) <= 5,
        )
        for line in lines
    ]
    name = f"{'seeds' if options.only_seeds else 'steps'}_{options.backend}.md"
    common.write_report(options.out / name, "Where the time goes", parts, claims)


def steps(data: Path, backend: str) -> tuple[list[str], list[common.Claim]]:
    """The share of each step of an automatic fit of flights, and whether it was in time."""
    on_gpu = backend != "numpy"
    limit = 10 if on_gpu else 90
    if on_gpu:
        fitted("sml", data, 0, backend)  # which makes kernels
    parts, claims = [], []
    for forms in ("auto", "full") if on_gpu else ("auto",):
        found = fitted("flights", data, 0, backend, bandwidth=forms)
        print(found, flush=True)
        title = f'## Flights, {found["n"]:,} rows, bandwidth="{forms}": {found["seconds"]:.1f} s'
        parts.append(f"{title}, RMSE {found['rmse']:.4f}\n\n{shares(found)}")
        taken = f"(found {found['seconds']:.1f})"
        sentence = f'bandwidth="{forms}" takes at most {limit} s {taken}'
        claims.append(common.Claim(sentence, found["seconds"] <= limit))
    return parts, claims


def seeded(name: str, solver: str, options: argparse.Namespace) -> dict[str, str]:
    """How far test errors and coverage of a table are apart over seeds of random_state."""
    given: dict[str, Any] = {"solver": solver}
    if solver == "sketch":
        learned = automatic_ridge(random_state=0).set_params(backend=options.backend, **given)
        X, y, *_ = split(*table(name, options.data), 0)
        learned.fit(X, y)
        given |= {"kernel": learned.kernel_, "bandwidth": learned.map_}
    cell = delayed(fitted)
    seeds = range(options.seeds)
    cells = [cell(name, options.data, seed, options.backend, **given) for seed in seeds]
    runs = Parallel(n_jobs=options.jobs)(cells)
    errors = np.array([run["rmse"] for run in runs])
    held = [run["held"] for run in runs]
    sizes = [run["m"] for run in runs]
    line = {
        "table": name,
        "solver": solver,
        "rows": f"{runs[0]['n']:,}",
        "RMSE, least to largest": f"{errors.min():.4f} to {errors.max():.4f}",
        "spread": f"{errors.max() / errors.min() - 1:.1%}",
        "held": f"{min(held):.1%} to {max(held):.1%}",
        "m": f"{min(sizes)} to {max(sizes)}",
        "seconds": f"{np.median([run['seconds'] for run in runs]):.1f}",
    }
    print(line, flush=True)
    return line


if __name__ == "__main__":
    main()
