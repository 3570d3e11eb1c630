"""The paper's campaign on flights, with a dense sketch of ⌈log n⌉ rows.

    python benchmarks/flight_rounds.py ../shared/data

As `sketchridge.paper` runs it, where the products with the pool accumulate over rounds, and as
anybody would with `ActiveLearner`, which scores the pool afresh: with test predictions by
increments (`Follower`) and afresh. One process each.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import common
import numpy as np
from joblib import cpu_count
from settings import sketched_ridge

from sketchridge import ActiveLearner
from sketchridge.active.follow import Follower
from sketchridge.paper.runs.campaign import first_labels, log_size
from sketchridge.paper.runs.real import SOURCES, Real, real_problem

ROUNDS = 49
LIMIT = 100.0  # seconds
SEED = 0
SOURCE = SOURCES["flights"]
PAPER = "the paper's runs, products accumulated"
FOLLOWED = "ActiveLearner, test predictions by increments"
AFRESH = "ActiveLearner, test predictions afresh"


def paper(data: Path, rounds: int) -> float:
    """The last root mean square error of the experiment's own run."""
    cell = {"strategy": "V2", "model": "labels", "seed": SEED, "pool": SOURCE.pool}
    rows = Real("flights").run({**cell, "rounds": rounds, "m": 256, "backend": "numpy"}, data)
    return float(rows[-1]["rmse"])


def learner(data: Path, rounds: int, follows: bool) -> float:
    """The same with the public class, which chooses λ by its own leave-one-out errors."""
    problem = real_problem(SOURCE, SOURCE.pool, SEED, data)
    first = first_labels(SOURCE.pool, SOURCE.batch, SEED)
    learner = ActiveLearner(
        sketched_ridge(sketch="gaussian", sketch_size=log_size, noise_variance=1.0),
        problem.X,
        batch_size=SOURCE.batch,
        acquisition="weighted",
        score="v2",
        goal="explore",
        first="uniform",
        stop=None,
        store=None,
        random_state=SEED,
    )
    center = float(problem.y[first].mean())
    follower = Follower(problem.X_test)
    ids: Any = first
    for _ in range(rounds + 1):
        learner.tell(ids, problem.y[ids] - center)
        model = learner.estimator_
        mean = follower.mean(model) if follows else model.predict(problem.X_test)
        rmse = float(np.sqrt(np.mean((center + mean - problem.y_test) ** 2)))
        ids = learner.ask() if len(learner.open_ids_) else ids[:0]
    return rmse


def measured(data: str, rounds: int, name: str) -> dict[str, float]:
    """Seconds of all rounds, by the clock and of the processor, and the last error."""
    clock, processor = time.perf_counter(), time.process_time()
    folder = Path(data)
    rmse = paper(folder, rounds) if name == PAPER else learner(folder, rounds, name == FOLLOWED)
    return {
        "clock": time.perf_counter() - clock,
        "processor": time.process_time() - processor,
        "rmse": rmse,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, help="the folder with the flights")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--results", type=Path, default=common.RESULTS)
    parser.add_argument("--only", nargs="+", default=[PAPER, FOLLOWED, AFRESH])
    options = parser.parse_args()
    found = {
        name: common.isolated(measured, str(options.data), options.rounds, name)
        for name in options.only
    }
    table = [
        {
            "how": name,
            "clock (s)": f"{times['clock']:.0f}",
            "processor (s)": f"{times['processor']:.0f}",
            "last RMSE": f"{times['rmse']:.4f}",
        }
        for name, times in found.items()
    ]
    common.write_report(
        options.results / "flight_rounds.md",
        "The paper's campaign on flights",
        [
            f"Command: `python benchmarks/flight_rounds.py DATA`. {common.machine()}.",
            f"{options.rounds} rounds of 1,000 flights from a pool of 50,000, 10,000 test points, "
            "Gaussian sketch with m = ⌈log n⌉, scored by V2 (Figure 4). Processor seconds are "
            "those of all threads together; other work on the machine changes the clock's. The "
            "paper's runs and ActiveLearner choose λ differently, so that their errors differ.",
            common.markdown_table(table),
        ],
        claims(found),
    )


def claims(found: dict[str, dict[str, float]]) -> list[common.Claim]:
    """What was asked for, and that increments change nothing."""
    said = [
        common.Claim(
            f"{name}: at most {LIMIT:.0f} s by the clock, on {cpu_count()} cores",
            times["clock"] <= LIMIT,
        )
        for name, times in found.items()
        if name != AFRESH
    ]
    if FOLLOWED in found and AFRESH in found:
        difference = abs(found[FOLLOWED]["rmse"] / found[AFRESH]["rmse"] - 1)
        same = f"the error by increments is that afresh: {difference:.1e} relative"
        said.append(common.Claim(same, difference < 1e-6))
    return said


if __name__ == "__main__":
    main()
