"""What somebody who had not seen the library broke: each is a sentence, or right, now."""

from __future__ import annotations

import copy
import pickle
import sys
import threading

import numpy as np
import pandas as pd
import pytest
from helpers import assert_close
from problems import fixed, makers, sketched

from sketchridge import ActiveLearner, SketchedKernelRidge, TableRegressor, make_model

X = np.random.default_rng(0).standard_normal((60, 2))
y = np.sin(2 * X[:, 0]) + 0.1 * np.random.default_rng(1).standard_normal(60)


@makers
@pytest.mark.parametrize(
    "gaps",
    [
        [None, *y[1:]],
        np.array([None, *y[1:]], dtype=object),
        pd.Series([None, *y[1:]], dtype=object),
    ],
    ids=["list", "array", "series"],
)
def test_targets_that_are_none_are_refused(make, gaps):
    with pytest.raises(ValueError, match="y has missing values"):
        make().fit(X, gaps)
    model = make().fit(X, y)
    expected = model.predict(X)
    with pytest.raises(ValueError, match="y has missing values"):
        model.partial_fit(X[:2] + 1, [None, 1.0])
    with pytest.raises(ValueError, match="y has missing values"):
        model.log_density(X[:2], [None, 1.0])
    np.testing.assert_array_equal(model.predict(X), expected)


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("alpha", [1e20, 1e30, 1e60])
def test_a_very_large_alpha_has_standard_deviations(alpha, fit_intercept):
    given = {"alpha": alpha, "noise_variance": 1.0, "fit_intercept": fit_intercept}
    expected = fixed(**given).fit(X, y).variance(X)
    model = sketched(dtype="auto", sketch_size=60, **given).fit(X, y)
    for kind in ("v2", "vbar", "vtheta"):
        assert_close(model.variance(X, kind), expected, "float32", condition=10)


@makers
@pytest.mark.parametrize("bandwidth", [1e-155, 1e-300])
def test_a_bandwidth_beyond_squares_is_refused(make, bandwidth):
    with pytest.raises(ValueError, match="bandwidth"):
        make(bandwidth=bandwidth, alpha="loo").fit(X, y)


def test_tables_that_are_none_are_refused():
    with pytest.raises(ValueError, match="no columns"):
        make_model(pd.DataFrame({"y": y}), "y")
    with pytest.raises(ValueError, match="no columns"):
        TableRegressor().fit({}, y)
    with pytest.raises(ValueError, match="5 rows"):
        TableRegressor().fit({"a": X[:, 0], "b": X[:5, 1]}, y)


def test_threads_that_share_a_campaign_lose_nothing():
    """Four threads ask and tell at once, without a store on disk."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for seed in range(3):
            learner = ActiveLearner(
                SketchedKernelRidge("gaussian", bandwidth=1.0, alpha=0.1, sketch_size=8),
                X, batch_size=3, acquisition="uniform", random_state=seed,
            )  # fmt: skip
            handed: list[int] = []

            def work(learner=learner, handed=handed):
                ids = learner.ask()
                handed.extend(ids.tolist())
                learner.tell(ids, y[ids])

            threads = [threading.Thread(target=work) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert len(set(handed)) == len(handed) == 12
            assert sorted(learner.labeled_ids_) == sorted(handed)
    finally:
        sys.setswitchinterval(interval)


@pytest.mark.parametrize("again", [copy.deepcopy, lambda a: pickle.loads(pickle.dumps(a))])
def test_a_campaign_in_memory_can_be_copied(again):
    estimator = SketchedKernelRidge("gaussian", bandwidth=1.0, alpha=0.1, sketch_size=8)
    learner = ActiveLearner(estimator, X, batch_size=3, random_state=0)
    ids = learner.ask()
    learner.tell(ids, y[ids])
    assert again(learner).ask().tolist() == learner.ask().tolist()
