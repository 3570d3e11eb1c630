"""Pictures of answers: marginal effects, and curves with simultaneous bands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sketchridge.answers import ContrastTest, MarginalEffects
from sketchridge.drawing import BLUE, GRAY, plain_label
from sketchridge.plotting import axes_for

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_band", "plot_marginal_effects"]


def plot_marginal_effects(
    effects: MarginalEffects, *, target: int = 0, ax: Axes | None = None
) -> Axes:
    """Plot the average effect of each feature with its interval, the first on top.

    Effects whose interval holds 0 are gray.

    Parameters
    ----------
    effects : MarginalEffects
        What `marginal_effects` gives.
    target : int
        Which of several targets.
    ax : Axes
        Where to draw; a new figure unless given.

    Returns
    -------
    ax : Axes
        What was drawn on.

    Examples
    --------
    >>> from sketchridge import ExactKernelRidge
    >>> X = np.random.default_rng(0).random((40, 2))
    >>> model = ExactKernelRidge("gaussian", bandwidth=1.0, alpha=0.1).fit(X, X[:, 0])
    >>> plot_marginal_effects(model.marginal_effects()).get_xlabel()
    'average effect, with 95% intervals'
    """
    columns = (effects.effect, effects.low, effects.high)
    effect, low, high = (np.reshape(c, (len(effects), -1))[:, target] for c in columns)
    ax = axes_for(ax)
    names = [
        plain_label(name) + ("" if kind == "derivative" else "\n(first difference)")
        for name, kind in zip(effects.feature, effects.kind, strict=True)
    ]
    for i, name in enumerate(names):
        color = GRAY if low[i] <= 0 <= high[i] else BLUE
        bars = [[effect[i] - low[i]], [high[i] - effect[i]]]
        ax.errorbar(effect[i], i, xerr=bars, fmt="o", color=color, capsize=3, label=name)
    ax.axvline(0, color=GRAY, linewidth=1, linestyle=":")
    ax.set_yticks(range(len(names)), names)
    ax.margins(y=0.25)
    ax.invert_yaxis()
    level = f"{100 * effects.confidence_level:g}%"
    ax.set_xlabel(f"average effect, with {level} intervals")
    return ax


def plot_band(x: Any, found: ContrastTest, *, target: int = 0, ax: Axes | None = None) -> Axes:
    """Plot estimates along x with intervals that hold each, and the band that holds all at once.

    Parameters
    ----------
    x : (p,) array
        Where each contrast stands.
    found : ContrastTest
        What `test_contrast` gives.
    target : int
        Which of several targets.
    ax : Axes
        Where to draw; a new figure unless given.

    Returns
    -------
    ax : Axes
        What was drawn on.

    Examples
    --------
    >>> from sketchridge import ExactKernelRidge
    >>> X = np.linspace(0, 1, 40)[:, None]
    >>> model = ExactKernelRidge("gaussian", bandwidth=0.3, alpha=0.1).fit(X, np.sin(6 * X[:, 0]))
    >>> found = model.test_contrast(np.eye(40), X)
    >>> len(plot_band(X[:, 0], found).lines) > 0
    True
    """
    x = np.asarray(x, dtype=float)
    names = ("estimate", "low", "high", "band_low", "band_high")
    columns = {name: np.reshape(getattr(found, name), (len(x), -1))[:, target] for name in names}
    ax = axes_for(ax)
    level = f"{100 * found.confidence_level:g}%"
    ax.fill_between(
        x, columns["band_low"], columns["band_high"], color=BLUE, alpha=0.15, linewidth=0,
        label=f"{level} for all at once",
    )  # fmt: skip
    ax.fill_between(
        x, columns["low"], columns["high"], color=BLUE, alpha=0.35, linewidth=0,
        label=f"{level} for each",
    )  # fmt: skip
    ax.plot(x, columns["estimate"], color=BLUE, linewidth=2, label="estimate")
    ax.axhline(0, color=GRAY, linewidth=1, linestyle=":")
    ax.legend(frameon=False, fontsize="small")
    return ax
