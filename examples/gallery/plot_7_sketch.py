"""
How large must a sketch be?
===========================

V2 comes down to V1 and V3 up to it as the sketch grows; their average is there first. The gap
V2/V3, which costs nothing, follows.
"""

import matplotlib.pyplot as plt
import numpy as np

from sketchridge import SketchedKernelRidge

rng = np.random.default_rng(0)
X = rng.uniform(0, 1, (2000, 3))
y = np.sin(6 * X[:, 0]) + X[:, 1] + 0.1 * rng.standard_normal(2000)
points = X[:100]
sizes = [20, 40, 60, 80, 120, 160, 240]
ratios = {"v2": [], "v3": [], "vbar": []}
for size in sizes:
    model = SketchedKernelRidge(
        "gaussian", bandwidth=0.5, alpha=0.2, solver="sketch", sketch_size=size, random_state=0
    ).fit(X, y)
    if size == sizes[0]:
        exact = model.variance(points, kind="v1", tol=1e-3) / model.noise_variance_
    for kind, found in ratios.items():
        v = model.variance(points, kind=kind) / model.noise_variance_
        found.append(np.median(v / exact))

fig, ax = plt.subplots()
for (kind, found), color in zip(ratios.items(), ("#c8443c", "#e08e45", "#1f5a8a"), strict=True):
    ax.plot(sizes, found, marker="o", color=color, label=f"{kind} / v1, median")
ax.axhline(1, color="0.6", linewidth=1)
ax.set(xlabel="rows of the sketch", ylabel="ratio", yscale="log")
ax.legend(frameon=False)
