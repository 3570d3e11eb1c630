"""Questions beyond points at scale, and whether bands and intervals hold.

    python benchmarks/questions.py [--backend numpy] [--rows 100000] [--skip simulation scale]

Scale: average marginal effects of 8 features over all rows of a sketched fit, from the sketch
(kind "v3", the variance of the sketched mean) and from all rows (kind "v2"), a contrast of all
predictions, and a covariance of 10,000 × 10,000 numbers. With a backend for a GPU ("triton",
"torch") there are a million rows unless --rows says otherwise.

Simulation: for fixed rows, kernel and penalty, 1,000 draws of the noise. Intervals are to hold the
expectation of the estimate; how often they hold the effect of the true function is reported too.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import common
import numpy as np
from settings import exact_ridge, sketched_ridge

Array = np.ndarray
FEATURES = 8
LANDMARKS = 1024
POINTS = 10_000
DRAWS = 1_000
NOISE = 0.3
WIDTH = 0.7  # bandwidth of the simulations
LIMITS = {True: 10.0, False: 60.0}  # seconds, on a GPU and on 2 cores
ROWS = {True: 1_000_000, False: 100_000}


def function(X: Array) -> Array:
    return np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.5 * X[:, 3]


def seconds(work: Callable[[], Any], warm: bool = False) -> tuple[Any, float]:
    """The result and the time of a call; of a second one where the first compiles programs."""
    if warm:
        work()
    start = time.perf_counter()
    found = work()
    return found, time.perf_counter() - start


def scale(backend: str, rows: int, on_gpu: bool) -> tuple[list[dict[str, object]], list[Any]]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, FEATURES))
    y = function(X) + NOISE * rng.standard_normal(rows)
    model = sketched_ridge(
        bandwidth=3.0, alpha=10.0, sketch_size=LANDMARKS, backend=backend, random_state=0
    )
    _, fit = seconds(lambda: model.fit(X, y))
    table: list[dict[str, object]] = [row("fit", f"{rows:,} × {FEATURES}", fit)]
    claims = []
    for kind, name in (("v3", "from the sketch"), ("v2", "from all rows")):
        took = seconds(lambda kind=kind: model.marginal_effects(kind=kind), on_gpu)[1]
        table.append(row(f"marginal effects {name} ({kind})", f"{rows:,} × {FEATURES}", took))
        if kind == "v3":
            sentence = (
                f"average marginal effects of {FEATURES} features over {rows:,} rows take less "
                f"than {LIMITS[on_gpu]:.0f} s with backend={backend!r} (took {took:.2f} s)"
            )
            claims.append(common.Claim(sentence, took < LIMITS[on_gpu]))
            few = X[:20_000]
            direct = model.gradient(few).mean(axis=0)
            error = np.abs(model.marginal_effects(few).effect - direct).max() / np.abs(direct).max()
            sentence = f"they are the averages of gradients (found within {error:.1e})"
            claims.append(common.Claim(sentence, bool(error < 1e-8)))
    points = X[:POINTS]
    average = np.full((1, len(points)), 1 / len(points))
    _, took = seconds(lambda: model.contrast(average, points, "v2"), on_gpu)
    table.append(row("one contrast of all of them (v2)", f"{len(points):,} points", took))
    if not on_gpu:  # V2 takes n t² operations
        few = slice(0, POINTS)
        model = sketched_ridge(
            bandwidth=3.0, alpha=1.0, sketch_size=LANDMARKS, backend=backend, random_state=0
        ).fit(X[few], y[few])
        rows = POINTS
    for kind in ("v2", "v3", "gp"):
        C, took = seconds(lambda kind=kind: model.covariance(points, kind))
        size = f"{len(points):,} × {len(points):,}, fitted to {rows:,} rows"
        table.append(row(f"covariance ({kind})", size, took))
        error = np.abs(np.diagonal(C) / model.variance(points, kind) - 1).max()
        some = rng.choice(len(points), min(1000, len(points)), replace=False)
        least = np.linalg.eigvalsh(C[np.ix_(some, some)])[0] / np.trace(C[np.ix_(some, some)])
        sentence = (
            f"the {kind} covariance of {len(points):,} points has the variances on its diagonal "
            f"(within {error:.1e}) and, among 1,000 of them, no eigenvalue below -1e-13 of the "
            f"trace ({least:.1e})"
        )
        claims.append(common.Claim(sentence, bool(error < 1e-8 and least > -1e-13)))
        del C
    return table, claims


def row(what: str, size: str, took: float) -> dict[str, object]:
    return {"what": what, "size": size, "seconds": f"{took:.2f}"}


def simulation(n: int = 400) -> tuple[list[dict[str, object]], list[Any]]:
    """Targets of one fit are the draws."""
    rng = np.random.default_rng(1)
    X = np.column_stack([rng.uniform(-1, 1, (n, 2)), rng.integers(0, 2, n)])
    truth = np.sin(3 * X[:, 0]) * (1 + X[:, 2]) + X[:, 1] ** 2
    along = 3 * np.cos(3 * X[:, 0]) * (1 + X[:, 2])
    slopes = np.column_stack([along, 2 * X[:, 1], np.sin(3 * X[:, 0])])
    w = rng.uniform(0.2, 2.0, n)
    grid = np.column_stack([np.linspace(-1, 1, 60), np.zeros(60), np.zeros(60)])
    table, claims = [], []
    for name, make in (("exact", exact), ("sketched, m = 60", sketched)):
        for weights in (np.ones(n), w):
            noise = NOISE * rng.standard_normal((n, DRAWS)) / np.sqrt(weights)[:, None]
            expected = make().fit(X, truth, weights)
            model = make().fit(X, truth[:, None] + noise, weights)
            found = model.test_contrast(np.eye(len(grid)), grid)
            mean = expected.predict(grid)[:, None]
            band = ((found.band_low <= mean) & (mean <= found.band_high)).all(axis=0).mean()
            effects = model.marginal_effects()
            of_estimate = _held(effects, expected.marginal_effects().effect)
            of_truth = _held(effects, np.average(slopes, axis=0, weights=weights))
            how = f"{name}, {'weights' if weights is w else 'no weights'}"
            table.append(
                {
                    "model": how,
                    "band holds all at once": f"{band:.1%}",
                    "intervals hold E[estimate]": ", ".join(f"{h:.1%}" for h in of_estimate),
                    "intervals hold the true effect": ", ".join(f"{h:.1%}" for h in of_truth),
                }
            )
            claims.append(
                common.Claim(
                    f"95% bands hold at all of 60 points in 93 to 97% of {DRAWS:,} draws: {how} "
                    f"(found {band:.1%})",
                    bool(0.93 <= band <= 0.97),
                )
            )
            claims.append(
                common.Claim(
                    f"95% intervals of marginal effects hold the expectation of the estimate in "
                    f"93 to 97% of {DRAWS:,} draws: {how} "
                    f"(found {', '.join(f'{h:.1%}' for h in of_estimate)})",
                    bool((of_estimate >= 0.93).all() and (of_estimate <= 0.97).all()),
                )
            )
    return table, claims


def _held(effects: Any, value: Array) -> Array:
    """How often each interval holds."""
    return ((effects.low <= value[:, None]) & (value[:, None] <= effects.high)).mean(axis=1)


def card() -> str:
    import torch

    return torch.cuda.get_device_name() if torch.cuda.is_available() else "no GPU"


def exact() -> Any:
    return exact_ridge(bandwidth=WIDTH, alpha=0.1)


def sketched() -> Any:
    return sketched_ridge(bandwidth=WIDTH, alpha=0.1, sketch_size=60, backend="numpy")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--backend", default="numpy", help="numpy, torch or triton")
    parser.add_argument("--rows", type=int)
    parser.add_argument("--skip", nargs="*", default=[], choices=["scale", "simulation"])
    parser.add_argument("--out", type=Path, default=common.RESULTS)
    options = parser.parse_args()
    on_gpu = options.backend != "numpy"
    rows = options.rows or ROWS[on_gpu]
    parts = [f"Command: `python benchmarks/questions.py --backend {options.backend}`."]
    parts.append(common.machine() + (f"; {card()}" if on_gpu else ""))
    claims: list[Any] = []
    if "scale" not in options.skip:
        table, found = scale(options.backend, rows, on_gpu)
        parts.append(f"## Scale, {LANDMARKS:,} landmarks\n\n{common.markdown_table(table)}")
        claims += found
    if "simulation" not in options.skip:
        table, found = simulation()
        parts.append(f"## Simulation, {DRAWS:,} draws of noise\n\n{common.markdown_table(table)}")
        claims += found
    name = "questions_gpu.md" if on_gpu else "questions.md"
    common.write_report(options.out / name, "Questions beyond points", parts, claims)


if __name__ == "__main__":
    main()
