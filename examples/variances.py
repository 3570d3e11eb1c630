"""Which error bar answers which question: four bands around one curve, and what they hold.

    python examples/variances.py

Writes the picture variances.png.
"""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from sketchridge import SketchedKernelRidge

Array = np.ndarray
BLUE, RED, GRAY = "#1f5a8a", "#c8443c", "#6b7280"


def truth(x: Array) -> Array:
    return np.sin(9 * x) + 1.5 * x


def drawn(x: Array, rng: np.random.Generator) -> Array:
    """Observations at x, with noise of standard deviation 0.3."""
    return truth(x) + 0.3 * rng.standard_normal(len(x))


def bands(model: SketchedKernelRidge, X: Array) -> dict[str, tuple[Array, Array]]:
    """Lower and upper ends, by the question that they answer."""
    mean, std = model.predict(X, return_std=True)
    bias = np.sqrt(model.amplitude_ * model.variance(X, kind="bias2"))
    return {
        "Where will a new observation lie?\npredict_interval(X)": model.predict_interval(X),
        "How far does noise move the mean?\n± 2 std of predict(X, return_std=True)": (
            mean - 2 * std,
            mean + 2 * std,
        ),
        "Where does the function lie?\npredict_interval(X, include_noise=False)": (
            model.predict_interval(X, include_noise=False)
        ),
        'What may be missed for want of data?\n± 2 √(amplitude_ · variance(X, "bias2"))': (
            mean - 2 * bias,
            mean + 2 * bias,
        ),
    }


def main(picture: str | None = None) -> dict[str, float]:
    """The share of new observations that each band holds, where there are data."""
    rng = np.random.default_rng(1)
    x = np.concatenate([rng.uniform(0, 0.45, 60), rng.uniform(0.7, 1, 40)])
    y = drawn(x, rng)
    model = SketchedKernelRidge(random_state=0).fit(x[:, None], y)
    new = rng.choice(x, 2000) + 0.01 * rng.standard_normal(2000)
    seen = drawn(new, rng)
    held = {
        name: float(((low <= seen) & (seen <= high)).mean())
        for name, (low, high) in bands(model, new[:, None]).items()
    }
    if picture is not None:
        draw(model, x, y, held, picture)
    return held


def draw(
    model: SketchedKernelRidge, x: Array, y: Array, held: dict[str, float], picture: str
) -> None:
    grid = np.linspace(-0.15, 1.15, 400)
    figure = Figure(figsize=(9.2, 6.4), layout="constrained")
    panels = figure.subplots(2, 2, sharex=True, sharey=True).ravel()
    mean = model.predict(grid[:, None])
    for ax, (name, (low, high)) in zip(panels, bands(model, grid[:, None]).items(), strict=True):
        ax.fill_between(grid, low, high, color=BLUE, alpha=0.25, linewidth=0)
        ax.plot(grid, truth(grid), color=RED, linewidth=1.2, linestyle="--", label="truth")
        ax.plot(grid, mean, color=BLUE, linewidth=2, label="mean")
        ax.scatter(x, y, s=9, color=GRAY, alpha=0.7, linewidth=0, label="data")
        question, call = name.split("\n")
        ax.set_title(question, fontsize=11, fontweight="bold", loc="left")
        share = f"holds {held[name]:.0%} of new observations"
        ax.text(0.02, 0.97, f"{call}\n{share}", transform=ax.transAxes, fontsize=8.5, va="top")
        ax.set(xlim=(-0.15, 1.15), ylim=(-2.4, 4.4))
        ax.spines[["top", "right"]].set_visible(False)
    panels[0].legend(frameon=False, fontsize=8.5, loc="lower right", ncols=3)
    figure.savefig(picture, dpi=120)


if __name__ == "__main__":
    for name, share in main("variances.png").items():
        print(f"{share:6.1%} of new observations: {name.splitlines()[0]}")
