"""Pictures: a model with its intervals and whether they hold, predictions against observations, a
campaign's course."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sketchridge.calibration import Calibration
from sketchridge.columns import cells_of, names_of
from sketchridge.drawing import (
    BLUE,
    GRAY,
    RED,
    axes_for,
    draw_band,
    draw_coverage,
    draw_levels,
    draw_pit,
    draw_tenths,
    few_dates,
    new_figure,
    new_panels,
    plain_label,
    predicted_intervals,
)
from sketchridge.pipeline_regressor import with_intervals
from sketchridge.profiles import along

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "axes_for",
    "new_figure",
    "plot_calibration",
    "plot_error_curve",
    "plot_interval",
    "plot_observed_predicted",
    "plot_pool",
    "plot_relevance",
    "plot_scores",
]

Array = np.ndarray
_MOST = 30  # features in a picture


def plot_interval(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    feature: int | str = 0,
    grid: int = 200,
    confidence_level: float = 0.95,
    ax: Axes | None = None,
) -> Axes:
    """Plot the mean and its intervals along one feature, with the data.

    The other features are held at their medians, text at its most frequent value.

    Parameters
    ----------
    estimator : estimator
        A fitted estimator of this library, or a pipeline that ends in one; of one target.
    X : (t, d) array or table
        Points to show.
    y : (t,) array
        What was observed there.
    feature : int or str
        The column of X that varies over its range, by its number or name; a category takes each
        of its values.
    grid : int
        The number of points at which the intervals are computed.
    confidence_level : float
        Of both intervals, for the mean and for a new observation.
    ax : Axes
        Where to draw; a new figure unless given.

    Returns
    -------
    ax : Axes
        What was drawn on.
    """
    y = _checked(X, y)
    at = along(X, feature, grid)
    mean, inner, outer = predicted_intervals(with_intervals(estimator), at.points, confidence_level)
    ax = axes_for(ax)
    if at.is_category:
        place = {level: i for i, level in enumerate(at.x)}
        known = np.array([v in place for v in at.seen])
        spots = np.array([place[v] for v in at.seen[known]]) + 0.12
        draw_levels(ax, at.x, mean, inner, outer, confidence_level)
        ax.scatter(spots, y[known], s=10, color=GRAY, alpha=0.35, linewidth=0, label="data")
    else:
        draw_band(ax, at.x, inner, outer, confidence_level)
        look: Any = {"s": 12, "color": GRAY, "alpha": 0.6, "linewidth": 0}
        ax.scatter(at.seen, y, label="data", zorder=2, **look)
        ax.plot(at.x, mean, color=BLUE, linewidth=2, label="mean")
        if at.x.dtype.kind == "M":
            few_dates(ax)
    ax.set(xlabel=plain_label(at.name), ylabel="y")
    ax.legend(frameon=False, fontsize="small")
    return ax


def plot_observed_predicted(
    estimator: Any, X: Any, y: Any, *, confidence_level: float = 0.95, ax: Axes | None = None
) -> Axes:
    """Plot observations against predicted means, with intervals as error bars.

    The intervals are for a new observation. The bars are centered on the diagonal; an observation
    outside its bar is marked.

    Parameters
    ----------
    estimator : estimator
        A fitted estimator of this library, or a pipeline that ends in one; of one target.
    X : (t, d) array or table
        Points that were not used in the fit.
    y : (t,) array
        What was observed there.
    confidence_level : float
        Of the intervals.
    ax : Axes
        Where to draw; a new figure unless given.

    Returns
    -------
    ax : Axes
        What was drawn on.
    """
    y = _checked(X, y)
    mean, _, (low, high) = predicted_intervals(with_intervals(estimator), X, confidence_level)
    inside = (low <= y) & (y <= high)
    ax = axes_for(ax)
    bars = f"{100 * confidence_level:g}% for a new observation"
    ax.errorbar(
        mean,
        mean,
        yerr=[mean - low, high - mean],
        fmt="none",
        ecolor=BLUE,
        elinewidth=1,
        alpha=0.3,
        label=bars,
    )
    ax.axline((mean[0], mean[0]), slope=1, color=BLUE, linewidth=1.2, label="observed = predicted")
    ax.scatter(
        mean[inside],
        y[inside],
        s=16,
        color=GRAY,
        linewidth=0,
        zorder=3,
        label=f"inside ({inside.sum()} of {len(y)})",
    )
    ax.scatter(
        mean[~inside],
        y[~inside],
        s=26,
        color=RED,
        linewidth=0,
        zorder=3,
        label=f"outside ({(~inside).sum()})",
    )
    ax.set(xlabel="predicted", ylabel="observed")
    ax.legend(frameon=False, fontsize="small")
    return ax


def plot_calibration(report: Calibration, *, axes: Sequence[Axes] | None = None) -> list[Axes]:
    """Plot whether intervals hold: coverage by level, coverage by predicted spread, and PIT.

    A model whose intervals hold lies within the bands in 95 of 100 cases.

    Parameters
    ----------
    report : Calibration
        What `calibration.calibrate` found.
    axes : sequence of Axes
        Three, where to draw; a new figure unless given.

    Returns
    -------
    axes : list of Axes
        What was drawn on.
    """
    panels = new_panels(3) if axes is None else list(axes)
    draw_coverage(report, panels[0])
    draw_tenths(report, panels[1])
    draw_pit(report, panels[2])
    for ax in panels:
        ax.spines[["top", "right"]].set_visible(False)
    return panels


def plot_relevance(
    estimator: Any, names: Sequence[str] | None = None, *, ax: Axes | None = None
) -> Axes:
    """Plot how much each feature matters to a fitted kernel, the most important on top.

    The names are those of the table it was fitted to, unless given. For a pipeline they are those
    that its steps give, and for a `TableRegressor` its columns.

    Parameters
    ----------
    estimator : estimator
        A fitted estimator of this library, a pipeline that ends in one, or a table model.
    names : sequence of str
        Of the features.
    ax : Axes
        Where to draw; a new figure unless given.

    Returns
    -------
    ax : Axes
        What was drawn on.
    """
    model = with_intervals(estimator)
    relevance = model.feature_relevance_
    if relevance is None:
        kernel = getattr(model, "regressor_", model).kernel_
        raise ValueError(f"The kernel {kernel!r} has no bandwidths to compare.")
    known: Any
    if isinstance(relevance, dict):
        known, relevance = list(relevance), np.array(list(relevance.values()))
    else:
        known = getattr(model, "feature_names_in_", None)
    names = known if names is None else names
    labels = [f"feature {i}" for i in range(len(relevance))] if names is None else list(names)
    order = np.argsort(relevance)[-_MOST:]
    ax = axes_for(ax)
    ax.barh([plain_label(labels[i]) for i in order], relevance[order], color=BLUE, alpha=0.85)
    ax.set(xlabel="relevance (share of distances)", xlim=(0, None))
    return ax


def plot_error_curve(history: Sequence[Mapping[str, Any]], *, ax: Axes | None = None) -> Axes:
    """Plot the leave-one-out error of an active learner against its labels, from its `history_`.

    Parameters
    ----------
    history : list of dict
        `history_` of a learner.
    ax : Axes
        Where to draw; a new figure unless given.

    Returns
    -------
    ax : Axes
        What was drawn on.
    """
    ax = axes_for(ax)
    labels = [row["labels"] for row in history]
    errors = [np.sqrt(row["loo_error"]) for row in history]
    ax.plot(labels, errors, color=BLUE, marker="o", markersize=4, linewidth=2)
    ax.set(xlabel="labels", ylabel="leave-one-out error (root mean square)", ylim=(0, None))
    return ax


def plot_scores(scores: Array, *, ax: Axes | None = None) -> Axes:
    """Plot the distribution of the scores (t,) of points to ask for, on a logarithmic scale.

    Parameters
    ----------
    scores : (t,) array
        Of points to ask for.
    ax : Axes
        Where to draw; a new figure unless given.

    Returns
    -------
    ax : Axes
        What was drawn on.
    """
    ax = axes_for(ax)
    positive = scores[scores > 0]
    if len(positive):
        low = positive.min()
        high = positive.max()
        bins: Any = np.geomspace(low, high, 40) if high > low else 10
        ax.hist(positive, bins=bins, color=BLUE, alpha=0.75)
        ax.axvline(positive.mean(), color=RED, linewidth=1.5, label=f"mean {positive.mean():.3g}")
        ax.set_xscale("log")
        ax.legend(frameon=False, fontsize="small")
    ax.set(xlabel="score (variance for unit noise)", ylabel="points of the pool")
    return ax


def plot_pool(X: Array, labeled: Array, pending: Array, *, ax: Axes | None = None) -> Axes:
    """Plot where the labeled and pending points lie in the pool, along its two main directions.

    Parameters
    ----------
    X : (t, d) array
        The pool or a sample of it.
    labeled, pending : (·, d) arrays
        Points in the order they came.
    ax : Axes
        Where to draw; a new figure unless given.

    Returns
    -------
    ax : Axes
        What was drawn on.
    """
    from sklearn.decomposition import PCA

    ax = axes_for(ax)
    flat: Any = (
        PCA(n_components=2).fit(X).transform
        if X.shape[1] > 1
        else lambda Z: np.column_stack([Z[:, 0], np.zeros(len(Z))])
    )
    x, y = flat(X).T
    ax.scatter(x, y, s=5, color=GRAY, alpha=0.25, linewidth=0, label="pool")
    if len(labeled):
        x, y = flat(labeled).T
        look: Any = {"s": 16, "cmap": "viridis", "linewidth": 0, "label": "labeled"}
        points = ax.scatter(x, y, c=np.arange(1, len(labeled) + 1), **look)
        ax.figure.colorbar(points, ax=ax, label="order of labels")
    if len(pending):
        x, y = flat(pending).T
        look = {"s": 30, "facecolors": "none", "edgecolors": RED, "linewidth": 1.2}
        ax.scatter(x, y, label=f"pending ({len(pending)})", **look)
    names = ("first", "second") if X.shape[1] > 1 else ("only", "no")
    ax.set(xlabel=f"{names[0]} main direction", ylabel=f"{names[1]} main direction")
    ax.legend(frameon=False, fontsize="small", loc="lower left", bbox_to_anchor=(0, 1), ncols=3)
    return ax


def _checked(X: Any, y: Any) -> Array:
    """y as floats (t,), with a row of X for each."""
    table = hasattr(X, "columns") or isinstance(X, Mapping)
    shape = (len(cells_of(X, names_of(X)[0])), len(names_of(X))) if table else np.shape(X)
    y = np.asarray(y, dtype=float)
    if len(shape) != 2 or y.shape != shape[:1]:
        raise ValueError(
            f"Plotting needs X of shape (t, d) and one target y of shape (t,), got {shape} "
            f"and {y.shape}."
        )
    return y
