"""Does a treatment help, and at which dose? Contrasts with a simultaneous band, marginal effects.

    python examples/questions.py

Prints the table of marginal effects and writes the picture questions.png.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from sketchridge import SketchedKernelRidge
from sketchridge.effect_plots import plot_band, plot_marginal_effects
from sketchridge.plotting import new_figure


def trial(n: int = 1000) -> tuple[pd.DataFrame, np.ndarray]:
    """People with an age, a dose and perhaps a treatment, which helps at middle doses."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "age": rng.uniform(20, 80, n),
            "dose": rng.uniform(0, 10, n),
            "treated": rng.integers(0, 2, n),
        }
    )
    helps = 2 * np.exp(-((X["dose"] - 4) ** 2) / 4)
    outcome = 0.03 * X["age"] + 0.2 * X["dose"] + helps * X["treated"]
    return X, outcome.to_numpy() + rng.standard_normal(n)


def main(picture: str | None = None) -> tuple[SketchedKernelRidge, np.ndarray]:
    """The model, and the doses at which the treatment helps beyond doubt."""
    X, y = trial()
    model = SketchedKernelRidge(random_state=0).fit(X, y)
    dose = np.linspace(0, 10, 60)
    people = pd.DataFrame({"age": 50.0, "dose": np.tile(dose, 2), "treated": np.repeat([1, 0], 60)})
    difference = np.hstack([np.eye(60), -np.eye(60)])  # treated less not treated, at each dose
    found = model.test_contrast(difference, people)
    effects = model.marginal_effects()
    print(effects)
    sure = dose[found.band_low > 0]
    print(f"The treatment helps at doses from {sure.min():.1f} to {sure.max():.1f}.")
    if picture is not None:
        figure, panels = new_figure(2, size=(5.2, 3.6))
        plot_marginal_effects(effects, ax=panels[0])
        plot_band(dose, found, ax=panels[1])
        panels[1].set(xlabel="dose", ylabel="effect of the treatment at 50 years")
        figure.savefig(picture, dpi=110)
    return model, sure


if __name__ == "__main__":
    main("questions.png")
