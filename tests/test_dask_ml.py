"""The estimator inside dask_ml's wrappers, with Dask's arrays and frames."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from local_cluster import shared_client
from sklearn.pipeline import make_pipeline

from sketchridge import SketchedKernelRidge
from sketchridge.backends.dask_blocks import DaskBlocks

NEEDED = "dask_ml is not installed: pip install dask-ml"
search = pytest.importorskip("dask_ml.model_selection", reason=NEEDED)
preprocessing = pytest.importorskip("dask_ml.preprocessing", reason=NEEDED)
wrappers = pytest.importorskip("dask_ml.wrappers", reason=NEEDED)

Array = np.ndarray
N = 3000
SETTINGS: dict[str, Any] = {
    "kernel": "gaussian",
    "bandwidth": 0.5,
    "alpha": 0.5,
    "sketch_size": 40,
    "solver": "sketch",
    "dtype": "float64",
    "random_state": 0,
}
ALPHAS = {"alpha": [0.01, 0.5, 50.0]}
RNG = np.random.default_rng(0)
X = RNG.random((N, 3))
Y = np.sin(4 * X[:, 0]) + X[:, 1] ** 2 + 0.1 * RNG.standard_normal(N)
LAZY_X, LAZY_Y = da.from_array(X, chunks=(750, 3)), da.from_array(Y, chunks=750)


@pytest.fixture(autouse=True)
def cluster() -> Iterator[None]:
    with shared_client().as_current():
        yield


def model(**options: Any) -> SketchedKernelRidge:
    return SketchedKernelRidge(**SETTINGS | options)


def here() -> SketchedKernelRidge:
    return model(backend="numpy").fit(X, Y)


def there() -> SketchedKernelRidge:
    return model(backend=DaskBlocks(rows=800))


@pytest.mark.parametrize("given", ["numpy", "array", "frame"])
def test_predictions_after_a_fit(given):
    fitted, rows = {
        "numpy": (X, LAZY_X),
        "array": (LAZY_X, LAZY_X),
        "frame": [dd.from_pandas(pd.DataFrame(X, columns=list("abc")), npartitions=3)] * 2,
    }[given]
    wrapped = wrappers.ParallelPostFit(model() if given == "numpy" else there())
    wrapped.fit(fitted, Y if given == "numpy" else LAZY_Y)
    found = wrapped.predict(rows)
    assert isinstance(found, da.Array)
    np.testing.assert_allclose(found.compute(), here().predict(X), rtol=1e-9)


def test_blocks_one_after_the_other():
    wrapped = wrappers.Incremental(model(), shuffle_blocks=False).fit(LAZY_X, LAZY_Y)
    serial = model()
    for start in range(0, N, 750):
        serial.partial_fit(X[start : start + 750], Y[start : start + 750])
    np.testing.assert_allclose(wrapped.predict(LAZY_X).compute(), serial.predict(X), rtol=1e-9)


@pytest.mark.parametrize("lazy", [False, True], ids=["numpy", "dask"])
def test_a_grid_is_searched(lazy):
    given = (LAZY_X, LAZY_Y) if lazy else (X, Y)
    found = search.GridSearchCV(model(backend="numpy"), ALPHAS, cv=2).fit(*given)
    assert found.best_params_["alpha"] < 50.0
    assert found.best_score_ > 0.9


def test_the_end_of_a_pipeline():
    lazy = make_pipeline(preprocessing.StandardScaler(), there().set_params(bandwidth=1.5)).fit(
        LAZY_X, LAZY_Y
    )
    assert lazy[-1].backend_ == "dask"
    found = lazy.predict(LAZY_X)
    assert isinstance(found, da.Array)
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    alone = model(bandwidth=1.5, backend="numpy").fit(scaled, Y)
    np.testing.assert_allclose(found.compute(), alone.predict(scaled), rtol=1e-8)


def test_rows_are_split():
    rows, test, y, y_test = search.train_test_split(LAZY_X, LAZY_Y, random_state=0)
    assert there().fit(rows, y).score(test, y_test) > 0.9
