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
from sketchridge.effect_plots import plot_band, plot_marginal_effects
from sketchridge.model_plots import plot_effect, plot_influence
from sketchridge.plotting import (
    new_figure,
    plot_error_curve,
    plot_interval,
    plot_observed_predicted,
    plot_pool,
    plot_relevance,
    plot_scores,
)
from sketchridge.table_regressor import TableRegressor

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
def test_interval_draws_mean_bands_and_data(
    estimator: Any, data: tuple[np.ndarray, np.ndarray]
) -> None:
    X, y = data
    estimator.fit(X, y)
    ax = plot_interval(estimator, X, y, feature=1, grid=GRID, confidence_level=0.9)
    points = np.tile(np.median(X, axis=0), (GRID, 1))
    points[:, 1] = np.linspace(X[:, 1].min(), X[:, 1].max(), GRID)
    final, inputs = (
        (estimator[-1], estimator[:-1].transform(points))
        if hasattr(estimator, "steps")
        else (estimator, points)
    )
    outer, inner, scatter = ax.collections
    for collection, include_noise in ((outer, True), (inner, False)):
        x, low, high = band(collection)
        np.testing.assert_allclose(x, points[:, 1])
        np.testing.assert_allclose(
            [low, high], final.predict_interval(inputs, 0.9, include_noise=include_noise)
        )
    np.testing.assert_allclose(scatter.get_offsets(), np.column_stack([X[:, 1], y]))
    np.testing.assert_allclose(
        ax.lines[0].get_xydata(), np.column_stack([points[:, 1], estimator.predict(points)])
    )
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
        ax = plot_interval(
            ExactKernelRidge(alpha=0.5).fit(table, y), table, y, feature=2, grid=GRID
        )
    assert ax.get_xlabel() == "c"


def test_observed_predicted_draws_bars_and_marks_what_lies_outside(
    data: tuple[np.ndarray, np.ndarray],
) -> None:
    X, y = data
    estimator = ExactKernelRidge(alpha=0.5).fit(X[:40], y[:40])
    ax = plot_observed_predicted(estimator, X, y, confidence_level=0.5)
    low, high = estimator.predict_interval(X, 0.5)
    mean = estimator.predict(X)
    inside = (low <= y) & (y <= high)
    assert 0 < inside.sum() < len(y)
    segments = np.array(ax.containers[0].lines[2][0].get_segments())
    np.testing.assert_allclose(segments[:, :, 0], np.column_stack([mean, mean]))
    np.testing.assert_allclose(segments[:, :, 1], np.column_stack([low, high]))
    dots = [
        collection
        for collection in ax.collections
        if collection.get_label().startswith(("inside", "outside"))
    ]
    np.testing.assert_allclose(dots[0].get_offsets(), np.column_stack([mean, y])[inside])
    np.testing.assert_allclose(dots[1].get_offsets(), np.column_stack([mean, y])[~inside])
    assert dots[0].get_label() == f"inside ({inside.sum()} of 60)"


def test_given_axes_are_used(data: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = data
    estimator = ExactKernelRidge(alpha=0.5).fit(X, y)
    _, axes = plt.subplots(1, 2)
    assert plot_interval(estimator, X, y, ax=axes[0]) is axes[0]
    assert plot_observed_predicted(estimator, X, y, ax=axes[1]) is axes[1]
    assert len(plt.get_fignums()) == 1


def test_errors_are_sentences(data: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = data
    estimator = ExactKernelRidge(alpha=0.5).fit(X, y)
    with pytest.raises(
        ValueError, match="feature=3 is not a column of X, which has 3: give 0 to 2"
    ):
        plot_interval(estimator, X, y, feature=3)
    with pytest.raises(
        ValueError, match=r"one target y of shape \(t,\), got \(60, 3\) and \(60, 2\)"
    ):
        plot_observed_predicted(estimator, X, np.column_stack([y, y]))


def test_missing_matplotlib_names_the_extra(
    monkeypatch: pytest.MonkeyPatch, data: tuple[np.ndarray, np.ndarray]
) -> None:
    X, y = data
    estimator = ExactKernelRidge(alpha=0.5).fit(X, y)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"sketchridge\[plot\]"):
        plot_interval(estimator, X, y)


def test_an_error_curve_shows_root_mean_squares_against_labels():
    ax = plot_error_curve([{"labels": 10, "loo_error": 4.0}, {"labels": 30, "loo_error": 1.0}])
    np.testing.assert_array_equal(ax.lines[0].get_xydata(), [[10, 2], [30, 1]])
    assert ax.get_ylim()[0] == 0


@pytest.mark.parametrize(
    "scores", [np.array([0.0, 1, 2, 4]), np.array([3.0, 3.0]), np.zeros(3), np.empty(0)]
)
def test_every_positive_score_is_in_the_histogram(scores):
    ax = plot_scores(scores)
    assert sum(bar.get_height() for bar in ax.patches) == (scores > 0).sum()


@pytest.mark.parametrize("d", [1, 2, 5])
def test_the_map_of_a_pool_has_every_point_in_its_place(d):
    X = np.random.default_rng(0).standard_normal((50, d))
    ax = plot_pool(X, X[:7], X[7:10])
    assert [len(c.get_offsets()) for c in ax.collections[:3]] == [50, 7, 3]
    everything = np.asarray(ax.collections[0].get_offsets())
    np.testing.assert_allclose(
        np.asarray(ax.collections[1].get_offsets()), everything[:7], atol=1e-12
    )
    assert len(plot_pool(X, X[:0], X[:0]).collections) == 1


@pytest.mark.parametrize("column", ["$x_y_z$", "$c_d_e$"])
def test_names_and_categories_are_no_mathematics(column):
    """Matplotlib could not draw them."""
    rng = np.random.default_rng(0)
    table = {
        "$x_y_z$": rng.uniform(size=40),
        "$c_d_e$": np.array(["$a_b_c$", "$b$", "d"], dtype=object)[np.arange(40) % 3],
    }
    target = table["$x_y_z$"] + rng.normal(size=40)
    model = TableRegressor(SketchedKernelRidge(bandwidth="ard")).fit(table, target)
    effects = model.marginal_effects()
    for ax in (
        plot_interval(model, table, target, feature=column, grid=5),
        plot_relevance(model),
        plot_marginal_effects(effects),
        plot_influence(model),
        plot_effect(model, column),
    ):
        ax.figure.canvas.draw()


def test_a_new_figure_is_known_to_nobody_else():
    figure, axes = new_figure(3)
    assert len(axes) == len(figure.axes) == 3
    assert not plt.get_fignums()


def test_relevance_is_a_bar_for_each_feature() -> None:
    X = np.random.default_rng(0).uniform(size=(60, 3))
    model = SketchedKernelRidge(bandwidth="ard", random_state=0).fit(X, np.sin(5 * X[:, 1]))
    ax = plot_relevance(model, ["salt", "heat", "time"])
    assert [label.get_text() for label in ax.get_yticklabels()][-1] == "heat"
    widths = [bar.get_width() for bar in ax.patches]
    np.testing.assert_allclose(sorted(widths), np.sort(model.feature_relevance_))
    linear = SketchedKernelRidge("linear").fit(X, X[:, 0])
    with pytest.raises(ValueError, match="has no bandwidths to compare"):
        plot_relevance(linear)


# Answers


def test_marginal_effects_are_drawn_with_their_intervals(data):
    X, y = data
    effects = ESTIMATORS[0].fit(X, np.column_stack([y, -y])).marginal_effects()
    ax = plot_marginal_effects(effects, target=1)
    drawn = [line.get_xdata()[0] for line in ax.lines if line.get_marker() == "o"]
    np.testing.assert_allclose(drawn, effects.effect[:, 1])
    assert [label.get_text() for label in ax.get_yticklabels()] == ["x0", "x1", "x2"]
    assert ax.get_ylim()[0] > ax.get_ylim()[1]  # the first on top


def test_a_first_difference_is_named():
    X = np.column_stack([np.arange(20.0), np.tile([0, 1], 10)])
    effects = ExactKernelRidge(alpha=0.5).fit(X, X[:, 1]).marginal_effects()
    labels = plot_marginal_effects(effects).get_yticklabels()
    assert labels[1].get_text() == "x1\n(first difference)"


def test_a_band_is_drawn_around_the_intervals(data):
    X, y = data
    found = ESTIMATORS[0].fit(X, y).test_contrast(np.eye(GRID), X[:GRID])
    x = np.arange(GRID)
    ax = plot_band(x, found)
    outer, inner = (band(collection) for collection in ax.collections)
    for drawn, names in ((outer, ("band_low", "band_high")), (inner, ("low", "high"))):
        np.testing.assert_allclose(drawn[1], getattr(found, names[0]))
        np.testing.assert_allclose(drawn[2], getattr(found, names[1]))
    np.testing.assert_allclose(ax.lines[0].get_ydata(), found.estimate)
