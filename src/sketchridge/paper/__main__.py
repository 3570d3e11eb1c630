"""`python -m sketchridge.paper`: the reproduction where the command line's packages are absent."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from sketchridge.paper.command import Request, left_out, reproduce
from sketchridge.paper.datasets import pack
from sketchridge.paper.experiments import EXPERIMENTS
from sketchridge.paper.options import BACKEND_HELP, DATA_HELP, STRATEGIES_HELP, Options
from sketchridge.paper.report import claims_of

__all__ = ["main"]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m sketchridge.paper", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"all, or some of: {', '.join(EXPERIMENTS)}")
    parser.add_argument("--full", action="store_true", help="the registered repetitions")
    parser.add_argument("--out", type=Path, default=Path("reproduction"))
    parser.add_argument("--data", type=Path, help=DATA_HELP)
    parser.add_argument("--jobs", type=int, help="processes; one for each core unless given")
    parser.add_argument("--repetitions", type=int)
    for size in ("--n", "--m"):
        parser.add_argument(size, type=int, nargs="+", action="extend", default=[])
    parser.add_argument(
        "--strategies", nargs="+", action="extend", default=[], help=STRATEGIES_HELP
    )
    parser.add_argument("--backend", default="numpy", help=BACKEND_HELP)
    parser.add_argument("--deadline", type=float, help="seconds after which no cell is begun")
    parser.add_argument("--report", action="store_true", help="from the tables; run nothing")
    parser.add_argument("--pack", type=Path, help="write --data as .npz files there, and stop")
    return parser


def main(arguments: list[str] | None = None) -> None:
    """Run it, and print a line for each claim."""
    given = _parser().parse_args(arguments)
    if given.pack is not None:
        print(*pack(given.data, given.pack), sep="\n")
        return
    options = Options(
        given.full,
        given.repetitions,
        tuple(given.n),
        tuple(given.m),
        given.backend,
        tuple(given.strategies),
    )
    words = sys.argv[1:] if arguments is None else arguments
    request = Request(
        given.names,
        given.out,
        options,
        given.data,
        given.jobs,
        given.report,
        given.deadline,
        " ".join(["python -m sketchridge.paper", *words]),
    )
    start = time.perf_counter()

    def say(name: str, done: int, total: int) -> None:
        if done == total or done % 10 == 0:
            print(f"{time.perf_counter() - start:6.0f} s  {name} {done}/{total}", flush=True)

    results, path = reproduce(request, say)
    for claim in claims_of(results):
        print(f"{claim.verdict:<26} {claim.name}: {claim.measured}")
    for result in results:
        if result.missing:
            print(f"{'not complete':<26} {result.experiment.name}: {result.missing}")
    print(f"The report is in {path} ({time.perf_counter() - start:.0f} s).")
    if left_out(results):
        sys.exit(f"Error: {left_out(results)}")


if __name__ == "__main__":
    try:
        main()
    except (ValueError, OSError, ImportError) as error:
        sys.exit(f"Error: {error}")
    except KeyboardInterrupt:
        sys.exit("Interrupted: finished cells are kept, and the same command goes on from there.")
