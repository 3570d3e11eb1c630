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
from problems import classes, fixed, makers, sketched
from scipy.spatial.distance import cdist
from sklearn.model_selection import cross_val_score

from sketchridge import (
    ActiveLearner,
    ExactKernelRidge,
    SketchedKernelRidge,
    TableRegressor,
    make_model,
)
from sketchridge.kernels import Gaussian, Precomputed

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


@pytest.mark.parametrize("t", [1, 2, 3])
def test_densities_are_those_of_y_as_it_stands(t):
    """A transposed y is no y: its numbers would be taken for those of other rows and targets."""
    model = ExactKernelRidge("gaussian", bandwidth=0.5, alpha=0.1).fit(X, np.column_stack([y, -y]))
    Y = np.column_stack([y, -y])[:t]
    assert model.log_density(X[:t], Y).shape == (t, 2)
    wrong = [Y[:, 0], Y[:, :1], Y[0], np.append(Y, Y[:1], axis=0), Y[None]]
    for given in [*wrong, *([Y.T] if t != 2 else [])]:
        with pytest.raises(ValueError, match=r"y has the shape .*, but predictions have"):
            model.log_density(X[:t], given)


def test_a_density_of_one_target_takes_a_column_too():
    model = ExactKernelRidge("gaussian", bandwidth=0.5, alpha=0.1).fit(X, y)
    assert_close(model.log_density(X[:4], y[:4, None]), model.log_density(X[:4], y[:4]))
    with pytest.raises(ValueError, match="but predictions have"):
        model.log_density(X[:4], y[None, :4])


@classes
def test_a_precomputed_kernel_as_an_object_is_cut_by_rows_and_columns(cls):
    named, made = (cls(kernel, alpha=0.1) for kernel in ("precomputed", Precomputed()))
    assert made.__sklearn_tags__().input_tags.pairwise
    K = Gaussian(0.5)(X, X)
    scores = [cross_val_score(model, K, y, cv=3) for model in (named, made)]
    assert_close(*scores)


def test_a_kernel_that_is_not_finite_somewhere_is_refused():
    """Wherever that is, and not only among the rows that are looked at first."""

    def broken(A, B):
        return np.where(A[:, :1] + B[:, 0] < 9, np.exp(-(cdist(A, B) ** 2)), np.nan)

    model = ExactKernelRidge(broken, alpha=0.1).fit(X, y)
    for ask in (model.predict, model.variance):
        with pytest.raises(ValueError, match="has NaN or infinity on the data"):
            ask(np.vstack([X, [[20.0, 0.0]]]))


@classes
@pytest.mark.parametrize("make", [np.random.default_rng, np.random.RandomState])
def test_generators_of_either_kind_are_seeds(cls, make):
    seeded = {} if cls is ExactKernelRidge else {"random_state": make(3), "sketch_size": 10}
    model = cls("gaussian", bandwidth=0.5, alpha=0.1, **seeded).fit(X, y)
    if seeded:
        again = cls("gaussian", bandwidth=0.5, alpha=0.1, sketch_size=10, random_state=make(3))
        np.testing.assert_array_equal(again.fit(X, y).sketch_.indices, model.sketch_.indices)
    curves = [model.sample(X[:3], 2, random_state=make(3)) for _ in range(2)]
    np.testing.assert_array_equal(*curves)
    tests = [model.test_contrast([[1, -1]], X[:2], random_state=make(3)) for _ in range(2)]
    assert tests[0].p_simultaneous == tests[1].p_simultaneous
