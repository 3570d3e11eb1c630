"""Processes killed at random moments: no label is lost, no point is given out twice."""

from __future__ import annotations

import os
import signal
import time
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import normal

from sketchridge import ActiveLearner, SketchedKernelRidge
from sketchridge.active.sql import SQLStore

P, WORKERS = 4000, 4
WRONG = 1000.0
X = normal(P, 2)


def label(ids):
    return np.round(np.sin(X[ids, 0]) + 0.001 * ids, 6)


def work(url: str, journal: Path) -> None:
    """Ask and tell without end; a line is written after every call that must not be lost."""
    learner = ActiveLearner.resume(url)
    with journal.open("a", buffering=1) as lines:
        while True:
            ids = learner.ask(3)
            lines.write(f"got {' '.join(map(str, ids))}\n")
            learner.tell(ids, label(ids))
            lines.write(f"told {' '.join(map(str, ids))}\n")


def careless(url: str, journal: Path) -> None:
    """The same, with a wrong label that is corrected, and a point that fails."""
    learner = ActiveLearner.resume(url)
    with journal.open("a", buffering=1) as lines:
        while True:
            ids = learner.ask(3)
            lines.write(f"got {' '.join(map(str, ids))}\n")
            learner.fail(ids[2:], note="broken")
            lines.write(f"failed {ids[2]}\n")
            learner.tell(ids[:2], label(ids[:2]) + np.array([WRONG, 0.0]))
            learner.amend(ids[:1], label(ids[:1]), by="me")
            lines.write(f"told {' '.join(map(str, ids[:2]))}\n")


def entries(folder: Path, verb: str) -> list[int]:
    """Ids in complete lines; a line cut off by a kill is no acknowledgement."""
    found = []
    for path in folder.glob("*.txt"):
        for line in path.read_text().split("\n")[:-1]:
            if line.startswith(verb + " "):
                found += map(int, line.split()[1:])
    return found


def campaign(url: str, folder: Path, kills: int, seed: int, work: Any = work) -> None:
    ActiveLearner(
        SketchedKernelRidge(bandwidth=1.0, alpha=0.1, sketch_size=16),
        X,
        batch_size=3,
        store=url,
        acquisition="weighted",
        random_state=0,
    )
    kill(url, folder, kills, seed, work)


def kill(url: str, folder: Path, kills: int, seed: int, work: Any = work) -> None:
    """Let four processes work, and kill one of them at random moments."""
    rng, context, started = np.random.default_rng(seed), get_context("fork"), 0
    workers = {}

    def start(place: int) -> None:
        nonlocal started
        workers[place] = context.Process(
            target=work, args=(url, folder / f"{started}.txt"), daemon=True
        )
        workers[place].start()
        started += 1

    for place in range(WORKERS):
        start(place)
    for _ in range(kills):
        time.sleep(rng.uniform(0.02, 0.25))
        place = int(rng.integers(WORKERS))
        assert workers[place].is_alive(), "a worker failed by itself"
        os.kill(workers[place].pid, signal.SIGKILL)
        workers[place].join()
        start(place)
    time.sleep(1)
    late = time.monotonic() + 60
    while len(entries(folder, "told")) < 3 and time.monotonic() < late:
        time.sleep(0.1)  # on a busy machine
    for process in workers.values():
        process.kill()
        process.join()


def check(url: str, folder: Path) -> int:
    """Compare the workers' own journals with the store; the number of labels."""
    learner = ActiveLearner.resume(url)
    ids = learner.labeled_ids_
    handed_out = entries(folder, "got")
    assert len(set(handed_out)) == len(handed_out), "a point was given out twice"
    assert set(entries(folder, "told")) <= set(ids.tolist()), "a label was lost"
    np.testing.assert_array_equal(learner.labels_[:, 0], label(ids))
    drawn = [draw.id for draw in learner.draws_]
    assert len(set(drawn)) == len(drawn)
    assert set(handed_out) <= set(drawn)
    assert set(learner.pending_ids_.tolist()) == set(drawn) - set(ids.tolist())
    rounds = SQLStore.open(url).rounds()
    assert [r.number for r in rounds] == list(range(len(rounds)))
    assert all(a.labels < b.labels for a, b in pairwise(rounds))
    assert all({"loo_error", "mean_score"} <= set(r.metrics) for r in rounds), "half a round"
    learner.tell(learner.pending_ids_, label(learner.pending_ids_))
    assert len(learner.ask()) == 3
    return len(ids)


def test_a_few_kills(url, tmp_path):
    campaign(url, tmp_path, kills=8, seed=0)
    assert check(url, tmp_path) >= 3


@pytest.mark.parametrize("kills", [6, pytest.param(200, marks=pytest.mark.slow)])
def test_kills_lose_no_correction_and_no_failure(url, tmp_path, kills):
    campaign(url, tmp_path, kills=kills, seed=2, work=careless)
    learner = ActiveLearner.resume(url)
    ids = learner.labeled_ids_
    told = np.isin(ids, entries(tmp_path, "told"))
    y = learner.labels_[:, 0]
    np.testing.assert_array_equal(y[told], label(ids[told]))
    assert np.isin(y - label(ids), [0.0, WRONG]).all()
    assert set(entries(tmp_path, "failed")) <= set(learner.failed_ids_.tolist())
    assert (y > 500).sum() <= kills + WORKERS
    corrected = {change.id: change.old[0] for change in learner.changes_}
    assert set(corrected) <= set(ids.tolist())
    np.testing.assert_array_equal(
        [corrected[i] for i in corrected], label(np.array(list(corrected), dtype=int)) + WRONG
    )
    handed_out = [draw.id for draw in learner.draws_]
    assert len(set(handed_out)) == len(handed_out)
    assert len(learner.ask()) == 3


@pytest.mark.slow
def test_two_hundred_kills(url, tmp_path):
    campaign(url, tmp_path, kills=200, seed=1)
    assert check(url, tmp_path) > 100
