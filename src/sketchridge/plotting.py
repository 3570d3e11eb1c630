"""Pictures: a model with its intervals and whether they hold, predictions against observations, a
campaign's course."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sketchridge.calibration import Calibration
from sketchridge.columns import cells_of, names_of
from sketchridge.drawing import BLUE, GREY, RED, Limits, draw_band, draw_levels, few_dates
from sketchridge.pipeline_regressor import with_intervals
from sketchridge.profiles import along

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "axes_for",
    "new_figure",
    "plot_calibration",
    "plot_error_curve",
    "plot_estimates",
    "plot_interval",
    "plot_observed_predicted",
    "plot_pool",
    "plot_relevance",
    "plot_scores",
]

Array = np.ndarray
_MOST = 30  # features in a picture
_LINES = (BLUE, RED, "#3a8f5c", "#e08e45", "#8d6a9f", "#2e4057", "#7a7a7a", "#4f9dc4")
_MISSING = "Plotting needs matplotlib, which is not installed: pip install 'sketchridge[plot]'."


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
    estimator : a fitted estimator of this library, or a pipeline that ends in one; of one target.
    X, y : (t, d) and (t,), the data to show; X an array or a table.
    feature : the column of X that varies over its range, by its number or name; a category takes
        each of its values.
    grid : the number of points at which the intervals are computed.
    confidence_level : of both intervals, for the mean and for a new observation.
    ax : where to draw; a new figure unless given.
    """
    y = _checked(X, y)
    at = along(X, feature, grid)
    mean, inner, outer = _intervals(with_intervals(estimator), at.points, confidence_level)
    ax = axes_for(ax)
    if at.is_category:
        place = {level: i for i, level in enumerate(at.x)}
        known = np.array([v in place for v in at.seen])
        spots = np.array([place[v] for v in at.seen[known]]) + 0.12
        draw_levels(ax, at.x, mean, inner, outer, confidence_level)
        ax.scatter(spots, y[known], s=10, color=GREY, alpha=0.35, linewidth=0, label="data")
    else:
        draw_band(ax, at.x, inner, outer, confidence_level)
        look: Any = {"s": 12, "color": GREY, "alpha": 0.6, "linewidth": 0}
        ax.scatter(at.seen, y, label="data", zorder=2, **look)
        ax.plot(at.x, mean, color=BLUE, linewidth=2, label="mean")
        if at.x.dtype.kind == "M":
            few_dates(ax)
    ax.set(xlabel=at.name, ylabel="y")
    ax.legend(frameon=False, fontsize="small")
    return ax


def plot_observed_predicted(
    estimator: Any, X: Any, y: Any, *, confidence_level: float = 0.95, ax: Axes | None = None
) -> Axes:
    """Plot observations against predicted means, with intervals as error bars.

    The intervals are for a new observation. The bars are centred on the diagonal; an observation
    outside its bar is marked.

    Parameters
    ----------
    estimator : a fitted estimator of this library, or a pipeline that ends in one; of one target.
    X, y : (t, d) and (t,), points that were not used in the fit.
    confidence_level : of the intervals.
    ax : where to draw; a new figure unless given.
    """
    y = _checked(X, y)
    mean, _, (low, high) = _intervals(with_intervals(estimator), X, confidence_level)
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
        color=GREY,
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

    Bands are where 95 of 100 honest models would lie.

    Parameters
    ----------
    report : what `calibration.calibrate` found.
    axes : three, where to draw; a new figure unless given.
    """
    panels = _new_panels(3) if axes is None else list(axes)
    _plot_levels(report, panels[0])
    _plot_tenths(report, panels[1])
    _plot_pit(report, panels[2])
    for ax in panels:
        ax.spines[["top", "right"]].set_visible(False)
    return panels


def _plot_levels(report: Calibration, ax: Axes) -> None:
    """Coverage found against coverage asked for."""
    p = np.linspace(0, 1, 101)
    _expected(ax, p, p, np.sqrt(p * (1 - p) / report.t))
    ax.plot(
        report.levels,
        report.coverage,
        color=BLUE,
        marker="o",
        markersize=4,
        linewidth=2,
        label="found",
        clip_on=False,
    )
    ax.set(xlabel="confidence level", ylabel="coverage", xlim=(0, 1), ylim=(0, 1))
    ax.set_title("All points", fontsize="medium")
    ax.legend(frameon=False, fontsize="small", loc="upper left")


def _plot_tenths(report: Calibration, ax: Axes) -> None:
    """Coverage of the main level where intervals are narrow and where they are wide."""
    found, level = report.by_spread, report.main_level
    part = np.arange(1, len(found) + 1)
    error = np.sqrt(level * (1 - level) * len(found) / report.t)
    _expected(ax, np.array([0.5, len(found) + 0.5]), np.full(2, level), np.full(2, error))
    ax.plot(part, found, color=BLUE, marker="o", markersize=4, linewidth=2, clip_on=False)
    lowest = min(found.min(), level - 2 * error)
    ax.set(
        xlabel="parts of equal size, narrow intervals to wide ones",
        ylabel="coverage",
        xticks=part,
        xlim=(0.5, len(found) + 0.5),
        ylim=(max(0.0, np.floor(10 * lowest - 0.2) / 10), 1.0),
    )
    ax.set_title(f"Intervals of {100 * level:g}%, by their width", fontsize="medium")


def _plot_pit(report: Calibration, ax: Axes) -> None:
    """The distribution of F(y): high at both ends where predictions are too narrow."""
    parts = 10
    density = parts * report.histogram(parts)
    edges = np.arange(parts) / parts
    ax.bar(edges, density, 1 / parts, align="edge", color=BLUE, alpha=0.6, edgecolor="white")
    error = np.sqrt((parts - 1) / report.t)
    _expected(ax, np.array([0.0, 1.0]), np.ones(2), np.full(2, error))
    ax.set(xlabel="F(y), F predicted and y observed", ylabel="density", xlim=(0, 1))
    ax.set_ylim(0, max(2.0, 1.1 * density.max()))
    ax.set_title("Probability integral transform", fontsize="medium")


def _expected(ax: Axes, x: Array, y: Array, error: Array) -> None:
    """What is expected, and where it lies in 95 of 100 cases."""
    ax.fill_between(x, y - 1.96 * error, y + 1.96 * error, color=GREY, alpha=0.2, linewidth=0)
    ax.plot(x, y, color=GREY, linewidth=1, linestyle="--", label="expected")


def plot_relevance(
    estimator: Any, names: Sequence[str] | None = None, *, ax: Axes | None = None
) -> Axes:
    """Plot how much each feature matters to a fitted kernel, the most important on top.

    The names are those of the table it was fitted to, unless given. For a pipeline they are those
    that its steps give, and for a `TableRegressor` its columns.
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
    ax.barh([labels[i] for i in order], relevance[order], color=BLUE, alpha=0.85)
    ax.set(xlabel="relevance (share of distances)", xlim=(0, None))
    return ax


def plot_error_curve(history: Sequence[Mapping[str, Any]], *, ax: Axes | None = None) -> Axes:
    """Plot the leave-one-out error of an active learner against its labels, from its `history_`."""
    ax = axes_for(ax)
    labels = [row["labels"] for row in history]
    errors = [np.sqrt(row["loo_error"]) for row in history]
    ax.plot(labels, errors, color=BLUE, marker="o", markersize=4, linewidth=2)
    ax.set(xlabel="labels", ylabel="leave-one-out error (root mean square)", ylim=(0, None))
    return ax


def plot_scores(scores: Array, *, ax: Axes | None = None) -> Axes:
    """Plot the distribution of the scores (t,) of points to ask for, on a logarithmic scale."""
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
    X : (t, d), the pool or a sample of it. labeled, pending : (·, d), in the order they came.
    """
    from sklearn.decomposition import PCA

    ax = axes_for(ax)
    flat: Any = (
        PCA(n_components=2).fit(X).transform
        if X.shape[1] > 1
        else lambda Z: np.column_stack([Z[:, 0], np.zeros(len(Z))])
    )
    x, y = flat(X).T
    ax.scatter(x, y, s=5, color=GREY, alpha=0.25, linewidth=0, label="pool")
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


def plot_estimates(
    series: Mapping[str, Mapping[float, Any]], *, log: bool = False, ax: Axes | None = None
) -> Axes:
    """Plot means with their intervals as error bars: a line for each name, a point for each x.

    Parameters
    ----------
    series : by name and x, objects with the attributes ``mean``, ``low`` and ``high``.
    log : logarithmic axes.
    """
    ax = axes_for(ax)
    every = sorted({x for estimates in series.values() for x in estimates})
    step = 0.0 if log or len(every) < 2 else 0.6 * (every[1] - every[0]) / max(len(series), 1)
    for k, (name, estimates) in enumerate(series.items()):
        shift = step * (k - (len(series) - 1) / 2)  # bars of different lines side by side
        x = [x + shift for x in estimates]
        mean = [e.mean for e in estimates.values()]
        bars = [
            [e.mean - e.low for e in estimates.values()],
            [e.high - e.mean for e in estimates.values()],
        ]
        ax.errorbar(
            x,
            mean,
            bars,
            color=_LINES[k % len(_LINES)],
            marker="osD^v"[k % 5],
            markersize=4,
            capsize=2.5,
            linewidth=1.6,
            label=name,
        )
    if log:
        ax.set(xscale="log", yscale="log")
    if len(series) > 1:
        ax.legend(frameon=False, fontsize="small")
    ax.grid(color="0.93")
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def new_figure(
    columns: int = 1, *, size: tuple[float, float] = (6.4, 4.2)
) -> tuple[Figure, list[Axes]]:
    """A figure of panels in a row that no window or global state knows of."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(_MISSING) from error
    figure = Figure(figsize=(size[0] * columns, size[1]), layout="constrained")
    return figure, list(figure.subplots(1, columns, squeeze=False)[0])


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


def _intervals(estimator: Any, X: Any, confidence_level: float) -> tuple[Array, Limits, Limits]:
    """The mean, the interval for the mean and the one for a new observation."""
    inner = estimator.predict_interval(X, confidence_level, include_noise=False)
    return estimator.predict(X), inner, estimator.predict_interval(X, confidence_level)


def _new_panels(columns: int) -> list[Axes]:
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError(_MISSING) from error
    size = (4.2 * columns, 3.6)
    return list(pyplot.subplots(1, columns, figsize=size, layout="constrained")[1])


def axes_for(ax: Axes | None) -> Axes:
    """Those that are given, or those of a new figure."""
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError(_MISSING) from error
    return pyplot.subplots()[1]
