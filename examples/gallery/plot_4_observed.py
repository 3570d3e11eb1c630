"""
Observed against predicted
==========================

Each bar is an interval for a new observation; those that miss are red.
"""

import numpy as np

from sketchridge import SketchedKernelRidge
from sketchridge.plotting import plot_observed_predicted, plot_relevance

rng = np.random.default_rng(0)
X = rng.uniform(0, 1, (350, 4))
y = 4 * X[:, 0] + np.sin(6 * X[:, 1]) + 0.3 * rng.standard_normal(350)
model = SketchedKernelRidge(random_state=0).fit(X[:200], y[:200])
plot_observed_predicted(model, X[200:], y[200:])

# %%
# Which features matter to the learned distances; the last two are noise.

plot_relevance(model, names=["slope", "wave", "noise", "more noise"])
