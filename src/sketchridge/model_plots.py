"""Pictures of a fitted model: the λ path, rows predicted without themselves, what a column does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sketchridge.drawing import (
    BLUE,
    GRAY,
    RED,
    draw_band,
    draw_levels,
    few_dates,
    plain_label,
    predicted_intervals,
)
from sketchridge.pipeline_regressor import with_intervals
from sketchridge.plotting import axes_for
from sketchridge.table_regressor import TableRegressor
from sketchridge.words import listed, shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "plot_effect",
    "plot_errors",
    "plot_influence",
    "plot_left_out",
    "plot_path",
]

Array = np.ndarray
_SHOWN = 3000  # points of a cloud
_BARS = 30  # columns in a picture
_CLOUD = 400  # points around an effect
_GRID = 120
_DISTINCT = 24  # values of a column between which no curve is drawn
_MARGIN = 0.01  # share of rows at either end of a column that is not drawn


def plot_left_out(
    observed: Array, predicted: Array, name: str = "observed", *, ax: Axes | None = None
) -> Axes:
    """Plot rows against what a model that has not seen them predicts, with the line of agreement.

    Parameters
    ----------
    observed, predicted : (t,) arrays
        Observations, and what a model that has not seen them predicts.
    name : str
        What was observed.
    ax : Axes
        Where to draw; a new figure unless given.

    Returns
    -------
    ax : Axes
        What was drawn on.

    Examples
    --------
    >>> ax = plot_left_out(np.array([1.0, 2.0]), np.array([1.1, 1.9]))
    >>> ax.get_xlabel()
    'predicted without it'
    """
    ax = axes_for(ax)
    some = _some(len(observed), _SHOWN)
    y, mean = observed[some], predicted[some]
    ends = [min(y.min(), mean.min()), max(y.max(), mean.max())]
    ax.plot(ends, ends, color="0.6", linewidth=1)
    ax.scatter(mean, y, color=BLUE, **_look(len(some)))
    ax.set(xlabel="predicted without it", aspect="equal")
    ax.set_ylabel(plain_label(name))
    return ax


def plot_errors(
    observed: Array, predicted: Array, name: str = "observed", *, ax: Axes | None = None
) -> Axes:
    """Plot how far rows are from what is predicted without them, against that prediction.

    Parameters
    ----------
    observed, predicted : (t,) arrays
        Observations, and what a model that has not seen them predicts.
    name : str
        What was observed.
    ax : Axes
        Where to draw; a new figure unless given.

    Returns
    -------
    ax : Axes
        What was drawn on.

    Examples
    --------
    >>> ax = plot_errors(np.array([1.0, 2.0]), np.array([1.1, 1.9]), "price")
    >>> ax.get_ylabel()
    'price less what is predicted'
    """
    ax = axes_for(ax)
    some = _some(len(observed), _SHOWN)
    errors = (observed - predicted)[some]
    ax.axhline(0, color="0.6", linewidth=1)
    ax.scatter(predicted[some], errors, color=BLUE, **_look(len(some)))
    ax.set(xlabel="predicted without it")
    ax.set_ylabel(f"{plain_label(name)} less what is predicted")
    return ax


def _look(count: int) -> dict[str, Any]:
    """Of a cloud of so many points."""
    dense = count > 500
    return {"s": 7 if dense else 16, "alpha": 0.35 if dense else 0.7, "linewidths": 0}


def plot_influence(model: TableRegressor, *, ax: Axes | None = None) -> Axes:
    """Plot by how much predictions change when the values of a column are shuffled.

    Parameters
    ----------
    model : TableRegressor
        A fitted one.
    ax : Axes
        Where to draw; a new figure unless given.

    Returns
    -------
    ax : Axes
        What was drawn on.

    Examples
    --------
    >>> from sketchridge import make_model
    >>> size = np.linspace(0, 1, 40)
    >>> plot_influence(make_model({"size": size, "price": 2 * size}, "price")).get_xlabel()
    'change of predictions when shuffled (root mean square), in units of price'
    """
    found = list(model.influence().items())[:_BARS][::-1]
    ax = axes_for(ax)
    ax.barh([plain_label(name) for name, _ in found], [v for _, v in found], color=BLUE, alpha=0.85)
    unit = plain_label(str(model.target_name_ or "y"))
    label = f"change of predictions when shuffled (root mean square), in units of {unit}"
    ax.set(xlabel=label, xlim=(0, None))
    return ax


def plot_path(estimator: Any, *, ax: Axes | None = None) -> Axes:
    """Plot leave-one-out error and GCV over the penalties λ that were compared, and the chosen.

    Both are in units of y, as root mean squares.

    Parameters
    ----------
    estimator : estimator
        A fitted estimator of this library, a pipeline that ends in one, or a table model.
    ax : Axes
        Where to draw; a new figure unless given.

    Returns
    -------
    ax : Axes
        What was drawn on.

    Examples
    --------
    >>> from sketchridge import ExactKernelRidge
    >>> X = np.linspace(0, 1, 20)[:, None]
    >>> ax = plot_path(ExactKernelRidge().fit(X, np.sin(6 * X[:, 0])))
    >>> ax.get_xscale()
    'log'
    """
    model = with_intervals(estimator)
    model = getattr(model, "regressor_", model)
    path = model.path_
    ax = axes_for(ax)
    for name, values, color, style in (
        ("leave-one-out error", path.loo, BLUE, "-"),
        ("generalized cross-validation", path.gcv, GRAY, "--"),
    ):
        ax.plot(path.lam, np.sqrt(values), style, color=color, linewidth=2, label=name)
    ax.axvline(model.lambda_, color=RED, linewidth=1.5, label=f"chosen, {model.lambda_:.2g}")
    ax.set(xlabel="penalty λ", ylabel="error (root mean square)", xscale="log", ylim=(0, None))
    ax.legend(frameon=False, fontsize="small")
    return ax


def plot_effect(
    model: TableRegressor,
    column: str,
    *,
    confidence_level: float = 0.95,
    cloud: bool = True,
    ax: Axes | None = None,
) -> Axes:
    """Plot what a column of a table does to the prediction, the others at typical values.

    The table itself is not needed: the model knows its rows.

    Parameters
    ----------
    model : TableRegressor
        A fitted one.
    column : str
        One that it uses.
    confidence_level : float
        Of the intervals, for the mean and for a new observation.
    cloud : bool
        Draw the curve plus the leave-one-out errors of some rows, at their values.
    ax : Axes
        Where to draw; a new figure unless given.

    Returns
    -------
    ax : Axes
        What was drawn on.

    Examples
    --------
    >>> from sketchridge import make_model
    >>> size = np.linspace(0, 1, 40)
    >>> model = make_model({"size": size, "price": 2 * size}, "price")
    >>> plot_effect(model, "size").get_xlabel()
    'size'
    """
    encoder, fitted = model.encoder_, model.regressor_.fitted_
    if column not in encoder.kinds_:
        raise ValueError(
            f"The model does not use a column {shown(column)}; it uses {listed(encoder.kinds_)}."
        )
    ax = axes_for(ax)
    base = _typical(model, fitted.data.X)
    if encoder.kinds_[column] == "category":
        points = _with(base, encoder.places_[column], np.eye(len(encoder.levels(column))))
        mean, inner, outer = predicted_intervals(model.regressor_, points, confidence_level)
        levels = np.array(encoder.levels(column), dtype=object)
        draw_levels(ax, levels, mean, inner, outer, confidence_level)
    else:
        _draw_curve(ax, model, column, base, confidence_level, _CLOUD if cloud else 0)
    ax.set_xlabel(plain_label(column))
    ax.set_ylabel(plain_label(str(model.target_name_ or "y")))
    return ax


def _draw_curve(
    ax: Axes, model: TableRegressor, column: str, base: Array, level: float, most: int
) -> None:
    """Along numbers or dates, with up to so many rows around the curve."""
    fitted, encoder = model.regressor_.fitted_, model.encoder_
    place, is_date = encoder.places_[column], encoder.kinds_[column] == "date"
    seen = fitted.data.X[:, place.start]
    low, high = (float(np.quantile(seen, q)) for q in (_MARGIN, 1 - _MARGIN))
    inside = np.flatnonzero((seen >= low) & (seen <= high))
    values = np.unique(seen[inside])
    few = len(values) <= min(_DISTINCT, len(seen) / 4)  # such as months: nobody asks between them
    grid = values if few else np.linspace(low, high, _GRID)
    points = _with(base, place, encoder.encoded(column, grid))
    mean, inner, outer = predicted_intervals(model.regressor_, points, level)
    x = _dates(grid) if is_date else grid
    draw_band(ax, x, inner, outer, level)
    some = inside[_some(len(inside), most)]
    if len(some):
        around = model.regressor_.predict(_with(base, place, fitted.data.X[some, place]))
        y = around + fitted.loo_errors[some, 0]
        spots = _dates(seen[some]) if is_date else seen[some]
        ax.scatter(spots, y, s=7, color=GRAY, alpha=0.45, linewidths=0, zorder=2)
    ax.plot(x, mean, "o-" if few else "-", color=BLUE, linewidth=2, markersize=4, label="mean")
    if is_date:
        few_dates(ax)


def _typical(model: TableRegressor, rows: Array) -> Array:
    """The features of a typical row: medians, and the most frequent value of each category."""
    made = np.empty(rows.shape[1])
    for name, place in model.encoder_.places_.items():
        if model.encoder_.kinds_[name] == "category":
            made[place] = 0.0
            made[place.start + int(np.argmax(rows[:, place].sum(axis=0)))] = 1.0
        else:
            made[place] = model.encoder_.encoded(name, np.median(rows[:, [place.start]], axis=0))
    return made


def _with(base: Array, place: slice, values: Array) -> Array:
    points = np.tile(base, (len(values), 1))
    points[:, place] = values
    return points


def _dates(days: Array) -> Array:
    return np.datetime64("1970-01-01", "us") + (days * 86_400_000_000).astype("timedelta64[us]")


def _some(n: int, most: int) -> Array:
    """Up to so many of n rows, the same ones each time."""
    rng = np.random.default_rng(0)
    return np.arange(n) if n <= most else np.sort(rng.choice(n, most, replace=False))
