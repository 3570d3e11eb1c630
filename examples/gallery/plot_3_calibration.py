"""
Do the intervals hold?
======================

On rows that were kept apart: coverage at every level, where intervals are narrow and where they are
wide, and the probability integral transform, which is flat where the predicted distributions hold.
"""

import numpy as np

from sketchridge import SketchedKernelRidge
from sketchridge.calibration import calibrate
from sketchridge.plotting import plot_calibration

rng = np.random.default_rng(0)
X = rng.uniform(0, 1, (1200, 3))
y = np.sin(6 * X[:, 0]) + X[:, 1] ** 2 + 0.2 * rng.standard_normal(1200)
model = SketchedKernelRidge(random_state=0).fit(X[:300], y[:300])
report = calibrate(model, X[300:], y[300:])
plot_calibration(report)
print(report)
