"""Labels saved at equal error: how points are chosen, against uniform draws.

    python benchmarks/labels.py --data ../shared/data --jobs 16

Tables, flights and weather. A split has at most 4,000 rows as the pool and 2,000 to test. All
strategies of a seed begin with the same labels, drawn evenly, and choose batches; one campaign with
the same settings learns from them, so that only the choice differs. Uniform draws go on to twice as
many labels. Errors are root mean squares on the test rows. Labels saved: the labels at which
uniform draws have the same error, by the mean of their log errors over seeds, against those of the
strategy, as a geometric mean over rounds.

The peers choose in their own way: scikit-activeml's `GreedySamplingX` in standardized features,
LCMD (Holzmüller et al., 2023; bmdal_reg's default, written out here since its release 3.0.2 does
not import with NumPy 2) in features of the campaign's kernel.
"""

from __future__ import annotations

import argparse
import csv
import os
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import common
import numpy as np
from joblib import Parallel, delayed
from prediction import TABLES, split, table
from scipy.linalg import solve_triangular
from settings import automatic_ridge

from sketchridge import ActiveLearner

Array = np.ndarray
Rows = list[dict[str, Any]]
Cell = tuple[str, str, int]  # table, strategy and seed
SEEDS = 10
POOL = 4_000
TESTED = 2_000
BATCH = 40
LABELS = 400  # at the end of a campaign; uniform draws go on to twice as many
UNIFORM = "uniform"
PAPERS = "weighted V2"  # ActiveLearner's default
DEFAULT = "ivr"  # that of the command line, acquisition="auto"
OURS = {  # acquisition and score
    UNIFORM: ("uniform", "v2"),
    PAPERS: ("weighted", "v2"),
    "weighted gp": ("weighted", "gp"),
    DEFAULT: ("ivr", "v2"),
    "mixed": ("mixed", "v2"),
}
LANDMARKS = 512  # of the features in which LCMD measures distances
_KNOWN_AS = {PAPERS: " (the class's default)", DEFAULT: " (the command line's default)"}
WORST, WANTED = 1.03, 0.90  # of the labels of uniform draws
FALLS = 0.05  # of the error: a table on which it falls by less is not learned with so few labels
DRAWS = 1000  # of seeds, for standard errors


def learner_of(pool: Array, acquisition: str, score: str, seed: int) -> ActiveLearner:
    return ActiveLearner(
        automatic_ridge(random_state=seed),
        pool,
        batch_size=BATCH,
        acquisition=acquisition,
        score=score,
        goal="explore",
        first="uniform",
        stop=None,
        store=None,
        random_state=seed,
    )


def greedy_sampling(learner: ActiveLearner, pool: Array, y: Array, seed: int) -> Array:
    """scikit-activeml's choice by distances in X."""
    from skactiveml.pool import GreedySamplingX

    known = np.full(len(pool), np.nan)
    known[learner.labeled_ids_] = y[learner.labeled_ids_]
    return GreedySamplingX(random_state=seed).query(pool, known, batch_size=BATCH)


def lcmd(learner: ActiveLearner, pool: Array, y: Array, seed: int) -> Array:
    """Largest cluster, maximum distance, with labeled points as the first centers."""
    features = kernel_features(learner, pool, seed)
    return largest_cluster(features, learner.labeled_ids_, BATCH)


def largest_cluster(features: Array, centers: Array, count: int) -> Array:
    """Every point belongs to its nearest center; in the cluster with the largest sum of squared
    distances the farthest point becomes a center, and so on: (count,)."""
    squares = (features**2).sum(axis=1)

    def distances(j: int) -> Array:
        return np.maximum(squares - 2 * features @ features[j] + squares[j], 0.0)

    each = np.array([distances(int(j)) for j in centers])
    owner = each.argmin(axis=0)
    nearest = each.min(axis=0)
    chosen: list[int] = []
    for k in range(count):
        sizes = np.bincount(owner, nearest, minlength=len(centers) + k)
        inside = np.where(owner == sizes.argmax(), nearest, -1.0)
        chosen.append(int(inside.argmax()))
        new = distances(chosen[-1])
        closer = new < nearest
        owner[closer] = len(centers) + k
        nearest = np.minimum(nearest, new)
    return np.array(chosen)


def kernel_features(learner: ActiveLearner, pool: Array, seed: int) -> Array:
    """φ with φ(x)ᵀφ(z) ≈ k(x, z), by landmarks of the pool: (p, m)."""
    kernel = learner.estimator_.fitted_.kernel
    rows = np.random.default_rng(seed).permutation(len(pool))[:LANDMARKS]
    marks = pool[rows]
    L = np.linalg.cholesky(kernel(marks, marks) + 1e-8 * np.eye(len(marks)))
    return solve_triangular(L, kernel(marks, pool), lower=True).T


PEERS: dict[str, Callable[..., Array]] = {"LCMD": lcmd}
if find_spec("skactiveml"):
    PEERS["GreedySamplingX"] = greedy_sampling


def asked(learner: ActiveLearner, strategy: str, pool: Array, y: Array, seed: int) -> Array:
    ids = np.asarray(learner.ask())
    if strategy in OURS:
        return ids
    learner.release(ids)  # a round has begun, as for the others
    return PEERS[strategy](learner, pool, y, seed)


def measured(name: str, strategy: str, seed: int, folder: Path, limit: float) -> Rows:
    """Errors of a campaign after each round."""
    os.environ["OMP_NUM_THREADS"] = "1"
    X, y, Z, z = split(*table(name, folder), seed)
    X, y, Z, z = X[:POOL], y[:POOL], Z[:TESTED], z[:TESTED]
    most = min((2 if strategy == UNIFORM else 1) * LABELS, len(X) - BATCH)
    acquisition, score = OURS.get(strategy, OURS[UNIFORM])
    rows: Rows = []
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        learner = learner_of(X, acquisition, score, seed)
        ids = np.random.default_rng(seed).permutation(len(X))[:BATCH]
        while True:
            learner.tell(ids, y[ids])
            error = learner.estimator_.predict(Z) - z
            row = {"table": name, "strategy": strategy, "seed": seed}
            row |= {"labels": len(learner.labeled_ids_), "seconds": time.perf_counter() - start}
            rows.append(row | {"rmse": float(np.sqrt(np.mean(error**2)))})
            if row["labels"] >= most or row["seconds"] > limit:
                break
            ids = asked(learner, strategy, X, y, seed)
    print(rows[-1], flush=True)
    return rows


# What comes of it


def curves(rows: Rows, name: str, strategy: str) -> tuple[Array, Array, list[int]]:
    """Labels (k,), log errors (seeds, k), and the seeds, as far as all seeds have come."""
    some = [r for r in rows if (r["table"], r["strategy"]) == (name, strategy)]
    seeds = sorted({r["seed"] for r in some})
    by_seed = [{r["labels"]: np.log(r["rmse"]) for r in some if r["seed"] == s} for s in seeds]
    if not by_seed:
        return np.empty(0), np.empty((0, 0)), seeds
    labels = sorted(set.intersection(*(set(each) for each in by_seed)))
    return np.array(labels), np.array([[e[n] for n in labels] for e in by_seed]), seeds


def ratio(labels: Array, errors: Array, even: Array, even_errors: Array) -> float:
    """Labels of a strategy over those of uniform draws with the same error, from mean log errors
    (k,): the geometric mean over rounds after the first."""
    falling = np.minimum.accumulate(even_errors)  # more labels are never worse
    log_even = np.log(even)
    steps = np.flatnonzero(np.diff(falling, prepend=np.inf) < 0)
    needed = np.interp(-errors, -falling[steps], log_even[steps])
    return float(np.exp(np.mean(np.log(labels) - needed)))


def saved(rows: Rows, name: str, strategy: str) -> tuple[float, float] | None:
    """The ratio, and its standard error by drawing seeds again, paired."""
    labels, errors, seeds = curves(rows, name, strategy)
    even, even_errors, even_seeds = curves(rows, name, UNIFORM)
    shared = sorted(set(seeds) & set(even_seeds))
    if not shared or len(labels) < 2:
        return None
    errors = errors[[seeds.index(s) for s in shared]][:, 1:]
    even_errors = even_errors[[even_seeds.index(s) for s in shared]]
    found = ratio(labels[1:], errors.mean(axis=0), even, even_errors.mean(axis=0))
    rng = np.random.default_rng(0)
    draws = []
    for _ in range(DRAWS):
        some = rng.integers(len(shared), size=len(shared))
        both = errors[some].mean(axis=0), even_errors[some].mean(axis=0)
        draws.append(np.log(ratio(labels[1:], both[0], even, both[1])))
    return found, found * float(np.std(draws))


def report(rows: Rows, out: Path, command: str, machine: str) -> None:
    tables = list(dict.fromkeys(r["table"] for r in rows))
    strategies = [s for s in dict.fromkeys(r["strategy"] for r in rows) if s != UNIFORM]
    found = {(t, s): saved(rows, t, s) for t in tables for s in strategies}

    def shown(t: str, s: str) -> str:
        one = found[t, s]
        return "–" if one is None else f"{one[0] - 1:+.1%} ± {one[1]:.1%}"

    lines = [
        {"table": t, "uniform error falls": f"{_fall(rows, t):.0%}"}
        | {s: shown(t, s) for s in strategies}
        for t in tables
    ]
    ends = [{"table": t} | {s: _last(rows, t, s) for s in [UNIFORM, *strategies]} for t in tables]
    totals = [_total({t: found[t, s] for t in tables}, s) for s in strategies]
    learned = [t for t in tables if _fall(rows, t) > FALLS]
    claims = []
    for s, some in [(s, some) for some in (tables, learned) for s in strategies]:
        values = [one[0] for t in some if (one := found[t, s]) is not None]
        worst, much = max(values), sum(v <= WANTED for v in values)
        sentence = (
            f"{s}{_KNOWN_AS.get(s, '')}: never more than 3% more labels than "
            f"uniform draws (worst {worst - 1:+.1%}), and 10% fewer on half of the tables (on "
            f"{much} of {len(values)})"
            + (", of tables that are learned at all" if some is learned else "")
        )
        holds = worst <= WORST and 2 * much >= len(values)
        claims.append(common.Claim(sentence, holds))
    counts = sorted({len(curves(rows, t, s)[2]) for t in tables for s in strategies})
    seeds = " to ".join(map(str, dict.fromkeys((counts[0], counts[-1]))))
    parts = [
        f"Command: `{command}`. {machine}.",
        f"{seeds} seeds; batches of {BATCH} up to {LABELS} labels from pools of at most {POOL:,} "
        "rows. Labels needed for the same error, compared with uniform draws: less is better, "
        "± one standard error over seeds, paired. Where a strategy is better than uniform draws "
        f"ever are, they count as if they had got there with their last label, {2 * LABELS}. "
        "Where the error of uniform draws does not fall (first column: from the first labels to "
        f"the last), labels at equal error say nothing; the claims are about all tables, and then "
        f"about those on which it falls by more than {FALLS:.0%}. LCMD is written out in the "
        "script, in features of the campaign's kernel: bmdal_reg's release does not import with "
        "NumPy 2.",
        common.markdown_table(lines),
        "## All tables\n\nGeometric mean, worst and best.\n\n" + common.markdown_table(totals),
        f"## Errors\n\nGeometric mean at {LABELS} labels, in standard deviations of y.\n\n"
        + common.markdown_table(ends),
    ]
    common.write_report(out / "labels.md", "Labels saved at equal error", parts, claims)


def _fall(rows: Rows, name: str) -> float:
    """By what share the error of uniform draws falls from the first labels to the last."""
    _, errors, _ = curves(rows, name, UNIFORM)
    first, last = np.exp(errors.mean(axis=0)[[0, -1]])
    return float(1 - last / first)


def _last(rows: Rows, name: str, strategy: str) -> str:
    labels, errors, _ = curves(rows, name, strategy)
    at = np.flatnonzero(labels <= LABELS)
    return f"{np.exp(errors[:, at[-1]].mean()):.4f}" if len(at) else "–"


def _total(found: dict[str, tuple[float, float] | None], strategy: str) -> dict[str, str]:
    values = np.array([one[0] for one in found.values() if one is not None])
    mean = np.exp(np.log(values).mean())
    return {
        "strategy": strategy,
        "labels": f"{mean - 1:+.1%}",
        "worst": f"{values.max() - 1:+.1%}",
        "best": f"{values.min() - 1:+.1%}",
    }


def read(paths: list[Path]) -> Rows:
    """Rows of earlier runs, which may be parts of one."""
    rows: Rows = []
    for path in paths:
        with path.open() as file:
            for row in csv.DictReader(file):
                numbers = {k: float(row[k]) for k in ("seconds", "rmse")}
                counts = {k: int(row[k]) for k in ("seed", "labels")}
                rows.append({**row, **numbers, **counts})
    return rows


def cells(seeds: Iterable[int], tables: Sequence[str], strategies: Sequence[str]) -> list[Cell]:
    """What there is to measure, seed by seed, those first that take long."""
    slow = sorted(strategies, key=lambda s: s != UNIFORM)
    return [(t, s, i) for i in seeds for s in slow for t in reversed(tables)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="the folder with tables/, flights and weather")
    parser.add_argument("--out", type=Path, default=common.RESULTS)
    parser.add_argument("--name", default="labels", help="of the .csv file that is written")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--tables", nargs="+", default=list(TABLES))
    parser.add_argument("--strategies", nargs="+", default=[*OURS, *PEERS])
    parser.add_argument("--limit", type=float, default=120.0, help="seconds for one campaign")
    parser.add_argument("--report", nargs="+", type=Path, help=".csv files to put together")
    parser.add_argument("--machine", default=common.machine(), help="where it was measured")
    options = parser.parse_args()
    command = f"python benchmarks/labels.py --data FOLDER --seeds {options.seeds}"
    if options.report:
        rows = read(options.report)
        common.write_csv(options.out / "labels.csv", rows)
        report(rows, options.out, command, options.machine)
        return
    if options.data is None:
        parser.error("--data is needed to measure: the folder with tables/, flights and weather")
    os.environ["OMP_NUM_THREADS"] = "1"
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    path = options.out / f"{options.name}.csv"
    path.unlink(missing_ok=True)
    todo = cells(seeds, options.tables, options.strategies)
    work = Parallel(n_jobs=options.jobs, return_as="generator_unordered")
    for rows in work(delayed(measured)(*cell, options.data, options.limit) for cell in todo):
        common.append_csv(path, rows)
    if options.name == "labels":
        report(read([path]), options.out, command, options.machine)


if __name__ == "__main__":
    main()
