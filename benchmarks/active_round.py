"""A round of active learning by increments against a fit and a scoring from scratch, and a pool larger than memory allows."""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import common
import numpy as np

from sketchridge import ActiveLearner, SketchedKernelRidge
from sketchridge.active.pool import Pool, PoolVariance
from sketchridge.kernels import Gaussian
from sketchridge.tuning import median_bandwidth

Array = np.ndarray
LABELS, POOL, ROWS, NEW = 20_000, 30_000, 300, 1000
WANTED, LIMIT = 10.0, 2048.0
SIZES = (20_000, 40_000, 80_000, 160_000)
LARGE, FEATURES = 2_000_000, 8


def points(count: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).uniform(size=(count, FEATURES))


def measured(X: Array) -> Array:
    return np.sin(X.sum(axis=1)) + 0.5 * np.random.default_rng(len(X)).standard_normal(len(X))


def campaign(labels: int, pool: int, rounds: int) -> tuple[ActiveLearner, Array]:
    """A learner with so many labels, its pool scored once, and so many unlabeled points besides those of the rounds to come."""
    X = points(labels + pool + rounds * NEW)
    learner = ActiveLearner(SketchedKernelRidge(sketch_size=ROWS), X, batch_size=NEW, random_state=0)
    learner.tell(np.arange(labels), measured(X[:labels]))
    learner.scores()
    return learner, X


def incremental_round(learner: ActiveLearner, X: Array) -> float:
    """Seconds from new labels to the next question: tell, update, score, draw."""
    ids = learner.ask() if not len(learner.pending_ids_) else learner.pending_ids_
    y = measured(X[ids])
    start = time.perf_counter()
    learner.tell(ids, y)
    learner.ask()
    return time.perf_counter() - start


def from_scratch(learner: ActiveLearner, X: Array, dtype: str) -> tuple[float, float, str]:
    """Seconds of a fit to the labels and of V2 over the rest of the pool, and the largest difference from the learner's scores."""
    labeled = learner.labeled_ids_
    rest = np.setdiff1d(np.arange(len(X)), labeled)
    y, estimator = learner._store.labels()[1][:, 0], learner.estimator_
    model = SketchedKernelRidge(
        sketch_size=ROWS, bandwidth=estimator.bandwidth_, sketch="rpcholesky", dtype=dtype, noise_variance=1.0, random_state=0
    )
    start = time.perf_counter()
    model.fit(X[labeled], y).variance(X[rest], kind="v2")
    seconds = time.perf_counter() - start
    wanted = estimator._ridge.v2(X[rest[:500]])
    return seconds, float(np.max(np.abs(learner.scores()[rest[:500]] / wanted - 1))), model.dtype_


def compare(labels: int, pool: int, rounds: int) -> dict[str, Any]:
    """Rounds by increments and from scratch, in turns; runs in a process of its own."""
    learner, X = campaign(labels, pool, rounds + 1)
    incremental_round(learner, X)
    rows = []
    for _ in range(rounds):
        ours = incremental_round(learner, X)
        scratch = {dtype: from_scratch(learner, X, dtype) for dtype in ("auto", "float64")}
        rows.append({"ours": ours, "auto": scratch["auto"][0], "float64": scratch["float64"][0], "error": scratch["auto"][1]})
    return {"rows": rows, "dtype": scratch["auto"][2]}


def by_pool_size(labels: int, pool: int, rounds: int) -> list[float]:
    learner, X = campaign(labels, pool, rounds + 1)
    return [incremental_round(learner, X) for _ in range(rounds + 1)][1:]


def large_pool(count: int, folder: str) -> dict[str, float]:
    """Two rounds over a memory-mapped pool, with statistics in a scratch file: seconds, and the highest MiB of the process."""
    path = Path(folder) / "pool.npy"
    mapped = np.lib.format.open_memmap(path, mode="w+", dtype=float, shape=(count, FEATURES))
    for start in range(0, count, 100_000):
        mapped[start : start + 100_000] = points(min(100_000, count - start), seed=start)
    mapped.flush()
    del mapped
    data = np.load(path, mmap_mode="r")
    pool = Pool(data)
    model = SketchedKernelRidge(sketch_size=256, bandwidth=median_bandwidth(data, Gaussian()), random_state=0)
    times, variance, labels = [], PoolVariance(pool, memory=2**28), 2000
    for round_number in range(2):
        ids = np.arange(round_number * labels, (round_number + 1) * labels)
        (model.partial_fit if round_number else model.fit)(data[ids], measured(data[ids]))
        start = time.perf_counter()
        scores = variance(model._ridge, np.arange((round_number + 1) * labels, count))
        times.append(time.perf_counter() - start)
    assert (scores[2 * labels :] > 0).all()
    on_disk = sum(8 * count * piece.shape[1] for piece in variance._products if piece.array is None) / 2**20
    return {"first": times[0], "second": times[1], "peak": common._resident("VmHWM"), "on_disk": on_disk}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="a tenth of the size: a trial, not a result")
    parser.add_argument("--results", type=Path, default=common.RESULTS)
    options = parser.parse_args()
    part, rounds = (10, 2) if options.quick else (1, options.rounds)
    headline = common.isolated(compare, LABELS // part, POOL // part, rounds)
    rows, sizes = headline["rows"], [size // part for size in SIZES]
    by_size = {size: common.isolated(by_pool_size, LABELS // (4 * part), size, rounds) for size in sizes}
    with tempfile.TemporaryDirectory() as folder:
        large = common.isolated(large_pool, LARGE // part, folder)
    medians = {name: common.median([row[name] for row in rows]) for name in ("ours", "auto", "float64")}
    exponent = common.growth_exponent(sizes, [common.median(times) for times in by_size.values()])
    a_point, fixed = np.polyfit(sizes, [common.median(times) for times in by_size.values()], 1)
    error, ratio = max(row["error"] for row in rows), medians["auto"] / medians["ours"]
    ratios = [row["auto"] / row["ours"] for row in rows]
    table = [
        {"a round": "by increments (tell, update, score, draw)", "seconds": f"{medians['ours']:.3g}", "ratio": "1"},
        {
            "a round": f"fit and variance, dtype auto ({headline['dtype']})",
            "seconds": f"{medians['auto']:.3g}",
            "ratio": f"{ratio:.1f}",
        },
        {
            "a round": "fit and variance, dtype float64",
            "seconds": f"{medians['float64']:.3g}",
            "ratio": f"{medians['float64'] / medians['ours']:.1f}",
        },
    ]
    growth = [{"pool": f"{size:,}", "seconds": f"{common.median(times):.3g}"} for size, times in by_size.items()]
    common.write_csv(options.results / "active_round.csv", rows)
    common.write_report(
        options.results / "active_round.md",
        "A round of active learning",
        [
            f"Command: `python benchmarks/active_round.py`. {common.machine()}.",
            f"{LABELS // part:,} labels, {POOL // part:,} unlabeled points in {FEATURES} dimensions, m = {ROWS}, {NEW:,} new "
            f"labels; medians of {rounds} rounds, taken in turns with the fits from scratch (ratios by round: "
            f"{', '.join(f'{r:.1f}' for r in ratios)}). λ is chosen anew in each.",
            common.markdown_table(table),
            f"The same round with {LABELS // (4 * part):,} labels as the pool grows:",
            common.markdown_table(growth),
            f"As a line: {fixed:.2g} s and {1e6 * a_point:.2g} µs a point.",
            f"A memory-mapped pool of {LARGE // part:,} × {FEATURES} with 2,000 + 2,000 labels and m = 256: "
            f"first scores {large['first']:.0f} s, second {large['second']:.0f} s, {large['on_disk']:,.0f} MiB of statistics in a "
            f"scratch file, {large['peak']:,.0f} MiB resident at the highest.",
        ],
        [
            common.Claim(f"a round by increments is at least 10 times faster than from scratch: {ratio:.1f}×", ratio >= WANTED),
            common.Claim(f"the scores differ from a recomputation by at most 1%: {error:.1e}", error <= 0.01),
            common.Claim(f"the cost of a round grows no faster than the pool: exponent {exponent:.2f}", exponent <= 1.1),
            common.Claim(f"the large pool was scored in less than 2 GB: {large['peak']:,.0f} MiB", large["peak"] < LIMIT),
        ],
    )


if __name__ == "__main__":
    main()
