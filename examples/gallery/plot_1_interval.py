"""
A curve with its intervals
==========================

The band for a new observation, and inside it the band for the function, with a gap in the data.
"""

import numpy as np

from sketchridge import SketchedKernelRidge
from sketchridge.plotting import plot_interval

rng = np.random.default_rng(0)
x = np.concatenate([rng.uniform(0, 4, 80), rng.uniform(6, 10, 80)])
y = np.sin(x) + 0.2 * rng.standard_normal(160)
model = SketchedKernelRidge(random_state=0).fit(x[:, None], y)
ax = plot_interval(model, x[:, None], y)
ax.set(xlabel="x")
