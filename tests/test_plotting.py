"""plotting.py draws what the estimator predicts: checked on the artists, not on pixels."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sketchridge import ExactKernelRidge, SketchedKernelRidge
from sketchridge.plotting import plot_interval, plot_observed_predicted

matplotlib.use("Agg")
from matplotlib import pyplot as plt

GRID = 30


@pytest.fixture(autouse=True)
def _closed_figures() -> Iterator[None]:
    yield
    plt.close("all")


@pytest.fixture
def data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(60, 3))
    return X, np.sin(6 * X[:, 1]) + 0.1 * rng.standard_normal(60)


def band(collection: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """x, low and high of a filled band."""
    vertices = collection.get_paths()[0].vertices
    x = np.unique(vertices[:, 0])
    rows = [vertices[vertices[:, 0] == value, 1] for value in x]
    return x, np.array([row.min() for row in rows]), np.array([row.max() for row in rows])


ESTIMATORS = [
    ExactKernelRidge(alpha=0.5),
    SketchedKernelRidge(alpha=0.5, sketch_size=30, random_state=0),
    make_pipeline(StandardScaler(), SketchedKernelRidge(alpha=0.5, sketch_size=30, random_state=0)),
]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=["exact", "sketched", "pipeline"])
def test_interval_draws_mean_bands_and_data(estimator: Any, data: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = data
    estimator.fit(X, y)
    ax = plot_interval(estimator, X, y, feature=1, grid=GRID, confidence_level=0.9)
    points = np.tile(np.median(X, axis=0), (GRID, 1))
    points[:, 1] = np.linspace(X[:, 1].min(), X[:, 1].max(), GRID)
    final, inputs = (estimator[-1], estimator[:-1].transform(points)) if hasattr(estimator, "steps") else (estimator, points)
    outer, inner, scatter = ax.collections
    for collection, include_noise in ((outer, True), (inner, False)):
        x, low, high = band(collection)
        np.testing.assert_allclose(x, points[:, 1])
        np.testing.assert_allclose([low, high], final.predict_interval(inputs, 0.9, include_noise))
    np.testing.assert_allclose(scatter.get_offsets(), np.column_stack([X[:, 1], y]))
    np.testing.assert_allclose(ax.lines[0].get_xydata(), np.column_stack([points[:, 1], estimator.predict(points)]))
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [
        "90% for a new observation",
        "90% for the mean",
        "data",
        "mean",
    ]


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_interval_names_a_table_column(frame: Any, data: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = data
    table = frame(dict(zip("abc", X.T, strict=True)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ax = plot_interval(ExactKernelRidge(alpha=0.5).fit(table, y), table, y, feature=2, grid=GRID)
    assert ax.get_xlabel() == "c"


def test_observed_predicted_draws_bars_and_marks_what_lies_outside(data: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = data
    estimator = ExactKernelRidge(alpha=0.5).fit(X[:40], y[:40])
    ax = plot_observed_predicted(estimator, X, y, confidence_level=0.5)
    low, high = estimator.predict_interval(X, 0.5)
    mean, inside = estimator.predict(X), (low <= y) & (y <= high)
    assert 0 < inside.sum() < len(y)
    segments = np.array(ax.containers[0].lines[2][0].get_segments())
    np.testing.assert_allclose(segments[:, :, 0], np.column_stack([mean, mean]))
    np.testing.assert_allclose(segments[:, :, 1], np.column_stack([low, high]))
    dots = [collection for collection in ax.collections if collection.get_label().startswith(("inside", "outside"))]
    np.testing.assert_allclose(dots[0].get_offsets(), np.column_stack([mean, y])[inside])
    np.testing.assert_allclose(dots[1].get_offsets(), np.column_stack([mean, y])[~inside])
    assert dots[0].get_label() == f"inside ({inside.sum()} of 60)"


def test_given_axes_are_used(data: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = data
    estimator, (_, axes) = ExactKernelRidge(alpha=0.5).fit(X, y), plt.subplots(1, 2)
    assert plot_interval(estimator, X, y, ax=axes[0]) is axes[0]
    assert plot_observed_predicted(estimator, X, y, ax=axes[1]) is axes[1]
    assert len(plt.get_fignums()) == 1


def test_errors_are_sentences(data: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = data
    estimator = ExactKernelRidge(alpha=0.5).fit(X, y)
    with pytest.raises(ValueError, match="feature=3 is not a column of X, which has 3: give 0 to 2"):
        plot_interval(estimator, X, y, feature=3)
    with pytest.raises(ValueError, match=r"one target y of shape \(t,\), got \(60, 3\) and \(60, 2\)"):
        plot_observed_predicted(estimator, X, np.column_stack([y, y]))


def test_missing_matplotlib_names_the_extra(monkeypatch: pytest.MonkeyPatch, data: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = data
    estimator = ExactKernelRidge(alpha=0.5).fit(X, y)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"sketchridge\[plot\]"):
        plot_interval(estimator, X, y)
