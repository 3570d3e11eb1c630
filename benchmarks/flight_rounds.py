"""The paper's campaign on flights, dense sketch: test predictions by increments and afresh."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import common
import numpy as np
from sketchridge.paper.real import RealCampaign

from sketchridge.active.follow import Follower
from sketchridge.paper import campaigns

ROUNDS = 49
LIMIT = 100.0  # seconds


class Afresh(Follower):
    """Asks the model anew in every round."""

    def mean(self, estimator: Any) -> Any:
        return estimator.predict(self._X)


def campaign(data: str, rounds: int, follows: bool) -> dict[str, float]:
    """Seconds of all rounds, by the clock and of the processor, and the last error."""
    experiment = RealCampaign("flights")
    problem = experiment.problem(0, Path(data))
    if not follows:
        campaigns.Follower = Afresh  # type: ignore[misc]
    clock, processor = time.perf_counter(), time.process_time()
    errors = campaigns.errors(
        experiment.strategies["V2, m = ⌈log n⌉"],
        problem,
        initial=experiment.initial,
        batch=experiment.batch,
        rounds=rounds,
        seed=0,
        bandwidth=experiment.bandwidth,
    )
    return {
        "clock": time.perf_counter() - clock,
        "processor": time.process_time() - processor,
        "rmse": float(np.sqrt(errors[-1])),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, help="the folder with the flights")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--results", type=Path, default=common.RESULTS)
    options = parser.parse_args()
    names = {"by increments": True, "afresh": False}
    found = {
        name: common.isolated(campaign, str(options.data), options.rounds, follows)
        for name, follows in names.items()
    }
    cores = 2
    ours = found["by increments"]
    table = [
        {
            "test predictions": name,
            "clock (s)": f"{times['clock']:.0f}",
            "processor (s)": f"{times['processor']:.0f}",
            "last RMSE": f"{times['rmse']:.4f}",
        }
        for name, times in found.items()
    ]
    difference = abs(ours["rmse"] / found["afresh"]["rmse"] - 1)
    common.write_report(
        options.results / "flight_rounds.md",
        "The paper's campaign on flights",
        [
            f"Command: `python benchmarks/flight_rounds.py DATA`. {common.machine()}.",
            f"{options.rounds} rounds of 1,000 flights from a pool of 50,000, 10,000 test points, "
            "Gaussian sketch with m = ⌈log n⌉, scored by V2 (Figure 4). Processor seconds are "
            "those of all threads together; other work on the machine changes the clock's, not "
            "these.",
            common.markdown_table(table),
        ],
        [
            common.Claim(
                f"at most {LIMIT:.0f} s on {cores} cores, by the processor's seconds of both: "
                f"{ours['processor'] / cores:.0f} s if both are busy, {ours['processor']:.0f} s "
                "on one",
                ours["processor"] <= LIMIT,
            ),
            common.Claim(f"the error is the same: {difference:.1e} relative", difference < 1e-6),
        ],
    )


if __name__ == "__main__":
    main()
