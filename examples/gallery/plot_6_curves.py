"""
Plausible curves
================

Draws from the posterior of the function: they agree where there are data, and not where there are
none.
"""

import matplotlib.pyplot as plt
import numpy as np

from sketchridge import SketchedKernelRidge

rng = np.random.default_rng(1)
x = np.concatenate([rng.uniform(0, 3, 30), rng.uniform(7, 10, 30)])
y = np.cos(x) + 0.1 * rng.standard_normal(60)
model = SketchedKernelRidge("gaussian", random_state=0).fit(x[:, None], y)
grid = np.linspace(-1, 11, 300)
curves = model.sample(grid[:, None], 12, random_state=0)

fig, ax = plt.subplots()
ax.plot(grid, curves, color="#1f5a8a", linewidth=0.9, alpha=0.5)
ax.scatter(x, y, s=14, color="#c8443c", zorder=3, label="data")
ax.set(xlabel="x", ylabel="y")
ax.legend(frameon=False)
