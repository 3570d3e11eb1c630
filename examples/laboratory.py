"""A simulated laboratory: 300 of 5,000 recipes, chosen by the model or at random, are measured."""

import numpy as np

from sketchridge import ActiveLearner, SketchedKernelRidge

rng = np.random.default_rng(0)
usual = rng.random((5000, 1)) < 0.9
recipes = np.where(usual, rng.normal(0, 0.4, (5000, 2)), rng.uniform(-3, 3, (5000, 2)))


def strength(x):
    return np.sin(2 * x[:, 0]) * np.cos(x[:, 1]) + 0.3 * x[:, 0]


def measure(ids):
    """The expensive part: a number for each recipe, with the laboratory's error."""
    return strength(recipes[ids]) + 0.05 * rng.standard_normal(len(ids))


def campaign(acquisition, seed):
    model = SketchedKernelRidge(fit_intercept=True)
    learner = ActiveLearner(
        model, recipes, batch_size=30, acquisition=acquisition, stop=300, random_state=seed
    )
    while not learner.should_stop():
        ids = learner.ask()
        learner.tell(ids, measure(ids))
    grid = np.stack(np.meshgrid(*2 * [np.linspace(-3, 3, 40)]), axis=-1).reshape(-1, 2)
    return np.sqrt(np.mean((learner.estimator_.predict(grid) - strength(grid)) ** 2))


if __name__ == "__main__":
    for acquisition in ("weighted", "uniform"):
        errors = [campaign(acquisition, seed) for seed in range(5)]
        spread = f"from {min(errors):.3f} to {max(errors):.3f}"
        print(f"{acquisition:<9} error over all recipes {np.mean(errors):.3f} ({spread})")
