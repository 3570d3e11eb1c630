"""A round of active learning by increments against one from scratch, and a very large pool."""

from __future__ import annotations

import argparse
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import common
import numpy as np
from settings import sketched_ridge

from sketchridge import ActiveLearner

Array = np.ndarray
LABELS = 20_000
POOL = 30_000
ROWS = 300
NEW = 1000
WANTED = 10.0
LIMIT = 2048.0
SIZES = (20_000, 40_000, 80_000, 160_000)
LARGE = 2_000_000  # points of the large pool
LARGE_BATCH = 2000
LARGE_ROWS = 256
IVR_BATCH = 100
FEATURES = 8


def points(count: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).uniform(size=(count, FEATURES))


def measured(X: Array) -> Array:
    return np.sin(X.sum(axis=1)) + 0.5 * np.random.default_rng(len(X)).standard_normal(len(X))


def learner_of(
    X: Array, batch_size: int, rows: int, acquisition: str = "weighted"
) -> ActiveLearner:
    """A campaign over the pool X with a sketch of so many rows."""
    return ActiveLearner(
        sketched_ridge(sketch_size=rows, random_state=None),  # the learner's own seed
        X,
        batch_size=batch_size,
        acquisition=acquisition,
        score="v2",
        goal="explore",
        first="uniform",
        stop=None,
        store=None,
        random_state=0,
    )


@dataclass(frozen=True)
class Campaign:
    """A learner with its pool and what would be measured at every point of it."""

    learner: ActiveLearner
    X: Array
    y: Array

    @classmethod
    def started(cls, labels: int, pool: int, rounds: int) -> Campaign:
        """With so many labels, and so many points more than the rounds will take; scored once."""
        X = points(labels + pool + rounds * NEW)
        campaign = cls(learner_of(X, NEW, ROWS), X, measured(X))
        campaign.learner.tell(np.arange(labels), campaign.y[:labels])
        campaign.learner.scores()
        return campaign

    def round(self) -> float:
        """Seconds from new labels to the next question: tell, update, score, draw."""
        pending = self.learner.pending_ids_
        ids = pending if len(pending) else self.learner.ask()
        start = time.perf_counter()
        self.learner.tell(ids, self.y[ids])
        self.learner.ask()
        return time.perf_counter() - start

    def from_scratch(self, dtype: str) -> tuple[float, float, str]:
        """Seconds of a fit to the labels and of V2 over the rest of the pool.

        Also the largest relative difference between the learner's scores and V2 by its estimator,
        at 500 points, and the precision that was used.
        """
        labeled = self.learner.labeled_ids_
        rest = np.setdiff1d(np.arange(len(self.X)), labeled)
        estimator = self.learner.estimator_
        model = sketched_ridge(
            bandwidth=estimator.bandwidth_,
            sketch="rpcholesky",
            sketch_size=ROWS,
            noise_variance=1.0,
            dtype=dtype,
        )
        start = time.perf_counter()
        model.fit(self.X[labeled], self.y[labeled]).variance(self.X[rest], kind="v2")
        seconds = time.perf_counter() - start
        some = rest[:500]
        wanted = estimator.variance(self.X[some], kind="v2") / estimator.noise_variance_
        error = np.max(np.abs(self.learner.scores()[some] / wanted - 1))
        return seconds, float(error), model.dtype_


def compare(labels: int, pool: int, rounds: int) -> dict[str, Any]:
    """Rounds by increments and from scratch, in turns; runs in a process of its own."""
    campaign = Campaign.started(labels, pool, rounds + 1)
    campaign.round()
    rows = []
    for _ in range(rounds):
        ours = campaign.round()
        scratch = {dtype: campaign.from_scratch(dtype) for dtype in ("auto", "float64")}
        rows.append(
            {
                "ours": ours,
                "auto": scratch["auto"][0],
                "float64": scratch["float64"][0],
                "error": scratch["auto"][1],
            }
        )
    return {"rows": rows, "dtype": scratch["auto"][2]}


def by_pool_size(labels: int, pool: int, rounds: int) -> list[float]:
    campaign = Campaign.started(labels, pool, rounds + 1)
    return [campaign.round() for _ in range(rounds + 1)][1:]


def large_pool(count: int, folder: str) -> dict[str, float]:
    """Two rounds over a memory-mapped pool.

    The seconds to score it in each, and the most MiB that the process held.
    """
    X = mapped_pool(count, folder)
    learner = learner_of(X, LARGE_BATCH, LARGE_ROWS)
    times = []
    for first in (0, LARGE_BATCH):
        ids = np.arange(first, first + LARGE_BATCH)
        learner.tell(ids, measured(X[ids]))
        learner.estimator_  # noqa: B018, fitted here so that the time is that of the scores
        start = time.perf_counter()
        scores = learner.scores()
        times.append(time.perf_counter() - start)
    assert (scores[2 * LARGE_BATCH :] > 0).all()
    return {"first": times[0], "second": times[1], "peak": common.resident("VmHWM")}


def mapped_pool(count: int, folder: str) -> Array:
    """A pool that is read from a file."""
    path = Path(folder) / "pool.npy"
    mapped = np.lib.format.open_memmap(path, mode="w+", dtype=float, shape=(count, FEATURES))
    for start in range(0, count, 100_000):
        mapped[start : start + 100_000] = points(min(100_000, count - start), seed=start)
    mapped.flush()
    del mapped
    return np.load(path, mmap_mode="r")


def chosen_jointly(count: int, folder: str) -> dict[str, float]:
    """A batch by "ivr" from a memory-mapped pool: seconds, the most MiB held, and how much of the
    mean posterior variance at some points the batch takes away, over what as many drawn evenly
    do."""
    X = mapped_pool(count, folder)
    learner = learner_of(X, IVR_BATCH, LARGE_ROWS, "ivr")
    first = np.arange(LARGE_BATCH)
    learner.tell(first, measured(X[first]))
    start = time.perf_counter()
    ids = learner.ask()
    seconds = time.perf_counter() - start
    peak = common.resident("VmHWM")
    asked = X[LARGE_BATCH : LARGE_BATCH + 2000]
    even = np.random.default_rng(0).choice(count, size=len(ids), replace=False)
    fitted = learner.estimator_
    before = fitted.variance(asked, "gp").mean()
    falls = []
    for more in (ids, even):
        rows = np.concatenate([first, more])
        model = sketched_ridge(
            bandwidth=fitted.bandwidth_, sketch_size=LARGE_ROWS, alpha=fitted.alpha_
        )
        model.fit(X[rows], np.zeros(len(rows)))
        falls.append(before - model.variance(asked, "gp").mean())
    return {"seconds": seconds, "peak": peak, "gain": float(falls[0] / falls[1])}


def report_jointly(results: Path, count: int) -> None:
    """The part on "ivr" alone, in a record of its own."""
    with tempfile.TemporaryDirectory() as folder:
        found = common.isolated(chosen_jointly, count, folder)
    text = (
        f"A memory-mapped pool of {count:,} × {FEATURES}, {LARGE_BATCH:,} labels, m = "
        f"{LARGE_ROWS}: {IVR_BATCH} points chosen jointly take {found['seconds']:.0f} s, fit and "
        f"features of all points included, with {found['peak']:,.0f} MiB resident at the highest. "
        f"They lower the mean posterior variance {found['gain']:.2f} times as much as {IVR_BATCH} "
        "points drawn evenly."
    )
    claim = common.Claim(
        f"a batch from the large pool in less than 2 GB: {found['peak']:,.0f} MiB",
        found["peak"] < LIMIT,
    )
    command = f"Command: `python benchmarks/active_round.py --ivr`. {common.machine()}."
    name = "active_round_ivr.md"
    common.write_report(
        results / name, "A batch by ivr from a large pool", [command, text], [claim]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--quick", action="store_true", help="a tenth of the size: a trial, not a result"
    )
    parser.add_argument("--ivr", action="store_true", help="only a joint batch from a large pool")
    parser.add_argument("--results", type=Path, default=common.RESULTS)
    options = parser.parse_args()
    if options.ivr:
        report_jointly(options.results, LARGE // (10 if options.quick else 1))
        return
    part, rounds = (10, 2) if options.quick else (1, options.rounds)
    headline = common.isolated(compare, LABELS // part, POOL // part, rounds)
    rows = headline["rows"]
    sizes = [size // part for size in SIZES]
    by_size = {
        size: common.isolated(by_pool_size, LABELS // (4 * part), size, rounds) for size in sizes
    }
    with tempfile.TemporaryDirectory() as folder:
        large = common.isolated(large_pool, LARGE // part, folder)
    medians = {
        name: common.median([row[name] for row in rows]) for name in ("ours", "auto", "float64")
    }
    exponent = common.growth_exponent(sizes, [common.median(times) for times in by_size.values()])
    a_point, fixed = np.polyfit(sizes, [common.median(times) for times in by_size.values()], 1)
    error = max(row["error"] for row in rows)
    ratio = medians["auto"] / medians["ours"]
    ratios = [row["auto"] / row["ours"] for row in rows]
    table = [
        {
            "a round": "by increments (tell, update, score, draw)",
            "seconds": f"{medians['ours']:.3g}",
            "ratio": "1",
        },
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
    growth = [
        {"pool": f"{size:,}", "seconds": f"{common.median(times):.3g}"}
        for size, times in by_size.items()
    ]
    common.write_csv(options.results / "active_round.csv", rows)
    common.write_report(
        options.results / "active_round.md",
        "A round of active learning",
        [
            f"Command: `python benchmarks/active_round.py`. {common.machine()}.",
            f"{LABELS // part:,} labels, {POOL // part:,} unlabeled points in {FEATURES} "
            f"dimensions, m = {ROWS}, {NEW:,} new labels; medians of {rounds} rounds, taken in "
            "turns with the fits from scratch (ratios by round: "
            f"{', '.join(f'{r:.1f}' for r in ratios)}). λ is chosen anew in each.",
            common.markdown_table(table),
            f"The same round with {LABELS // (4 * part):,} labels as the pool grows:",
            common.markdown_table(growth),
            f"As a line: {fixed:.2g} s and {1e6 * a_point:.2g} µs per point.",
            f"A memory-mapped pool of {LARGE // part:,} × {FEATURES} with {LARGE_BATCH:,} and "
            f"then as many labels more, m = {LARGE_ROWS}: first scores {large['first']:.0f} s, "
            f"second {large['second']:.0f} s; the statistics are "
            f"{8 * LARGE // part * LARGE_ROWS / 2**20:,.0f} MiB, and {large['peak']:,.0f} MiB "
            "were resident at the highest.",
        ],
        [
            common.Claim(
                "a round by increments is at least 10 times faster than from scratch: "
                f"{ratio:.1f}×",
                ratio >= WANTED,
            ),
            common.Claim(
                f"the scores differ from a recomputation by at most 1%: {error:.1e}", error <= 0.01
            ),
            common.Claim(
                f"the cost of a round grows no faster than the pool: exponent {exponent:.2f}",
                exponent <= 1.1,
            ),
            common.Claim(
                f"the large pool was scored in less than 2 GB: {large['peak']:,.0f} MiB",
                large["peak"] < LIMIT,
            ),
        ],
    )


if __name__ == "__main__":
    main()
