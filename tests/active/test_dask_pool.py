"""A pool on a Dask cluster: the same points are asked for, and it is never gathered."""

from __future__ import annotations

from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from local_cluster import shared_client

from sketchridge import ActiveLearner, ExactKernelRidge, SketchedKernelRidge
from sketchridge.backends.dask_blocks import DaskBlocks
from sketchridge.backends.dask_panel import Panel

P = 3000
X = np.random.default_rng(0).random((P, 2))
TRUTH = np.sin(6 * X[:, 0]) + X[:, 1] ** 2
SETTINGS = {"kernel": "gaussian", "bandwidth": 0.3, "alpha": 0.05, "dtype": "float64"}
CASES: dict[str, tuple[type, dict[str, Any]]] = {
    "V2": (SketchedKernelRidge, {"score": "v2"}),
    "average": (SketchedKernelRidge, {"score": "vbar"}),
    "largest gp": (SketchedKernelRidge, {"score": "gp", "acquisition": "top"}),
    "exact": (ExactKernelRidge, {"score": "v1"}),
    "uniform": (SketchedKernelRidge, {"acquisition": "uniform"}),
    "improvement": (SketchedKernelRidge, {"goal": "maximize"}),
}


def backend() -> DaskBlocks:
    return DaskBlocks(shared_client(), rows=800)


def learner(kind: type, pool: Any, **options: Any) -> ActiveLearner:
    where = {"backend": "numpy"} if isinstance(pool, np.ndarray) else {"backend": backend()}
    if kind is SketchedKernelRidge:
        where |= {"sketch_size": 16, "random_state": 0}
    how = {} if "goal" in options else {"acquisition": "weighted"}
    options = {"batch_size": 12, "random_state": 0, **how, **options}
    return ActiveLearner(kind(**SETTINGS, **where), pool, **options)


def asked(one: ActiveLearner, rounds: int = 3) -> list[list[int]]:
    found = []
    for _ in range(rounds):
        ids = one.ask()
        one.tell(ids, TRUTH[ids])
        found.append(ids.tolist())
    return found


@pytest.mark.parametrize("name", CASES)
def test_the_same_points_are_asked_for(name):
    kind, options = CASES[name]
    there = learner(kind, da.from_array(X, chunks=700), **options)
    assert there.pool_.is_there
    here = learner(kind, X, **options)
    assert asked(there) == asked(here)
    np.testing.assert_allclose(there.scores(), here.scores(), rtol=1e-6, atol=1e-12)


def test_a_data_frame_is_a_pool():
    frame = dd.from_pandas(pd.DataFrame(X, columns=["a", "b"]), npartitions=5)
    there = learner(SketchedKernelRidge, frame)
    assert asked(there, 2) == asked(learner(SketchedKernelRidge, X), 2)


def test_the_pool_is_not_gathered(monkeypatch):
    """Rows that come to the caller are those of batches, landmarks and samples."""
    there = learner(SketchedKernelRidge, da.from_array(X, chunks=700), first="uniform")
    there.tell(there.ask(), TRUTH[:12])
    taken = []
    monkeypatch.setattr(Panel, "__array__", None)
    take = Panel.take
    monkeypatch.setattr(Panel, "take", lambda self, rows: taken.append(rows) or take(self, rows))
    there.ask()
    assert sum(np.size(np.arange(P)[rows]) for rows in taken) <= 100


def test_a_stored_campaign_goes_on(tmp_path):
    store = f"sqlite:///{tmp_path / 'campaign.db'}"
    pool = da.from_array(X, chunks=700)
    options = {"batch_size": 12, "random_state": 0, "store": store, "first": "uniform"}
    with shared_client().as_current():
        first = ActiveLearner(SketchedKernelRidge(**SETTINGS, sketch_size=16), pool, **options)
    assert not first.pool_.is_there  # so few rows, at the size that blocks have by default
    ids = first.ask()
    first.tell(ids, TRUTH[ids])
    again = ActiveLearner.resume(store)
    assert again.labeled_ids_.tolist() == ids.tolist()


def test_a_row_without_a_value_is_told():
    bad = X.copy()
    bad[1700, 1] = np.nan
    with pytest.raises(ValueError, match="Row 1700 of the pool has a missing or infinite value"):
        learner(SketchedKernelRidge, da.from_array(bad, chunks=700))
