"""
Where does a treatment help?
============================

A difference of two curves with a band that holds all of it at once, and the average effects.
"""

import numpy as np

from sketchridge import SketchedKernelRidge
from sketchridge.effect_plots import plot_band, plot_marginal_effects

rng = np.random.default_rng(0)
dose, treated = rng.uniform(0, 10, 400), rng.integers(0, 2, 400)
X = np.column_stack([dose, treated])
y = 0.2 * dose + 2 * np.exp(-((dose - 4) ** 2) / 4) * treated + 0.7 * rng.standard_normal(400)
model = SketchedKernelRidge(random_state=0).fit(X, y)

grid = np.linspace(0, 10, 60)
people = np.column_stack([np.tile(grid, 2), np.repeat([1, 0], 60)])
found = model.test_contrast(np.hstack([np.eye(60), -np.eye(60)]), people)
ax = plot_band(grid, found)
ax.set(xlabel="dose", ylabel="treated less not treated")

# %%
effects = model.marginal_effects()
plot_marginal_effects(effects)
print(effects)
