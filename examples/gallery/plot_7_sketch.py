"""
How large must a sketch be?
===========================

V2 comes down to V1 and V3 up to it as the sketch grows. Their average V̄ is there sooner, and V_θ,
which weighs them at each point, first.
"""

import matplotlib.pyplot as plt
import numpy as np

from sketchridge import SketchedKernelRidge

rng = np.random.default_rng(0)
X = rng.uniform(0, 1, (2000, 3))
y = np.sin(6 * X[:, 0]) + X[:, 1] + 0.1 * rng.standard_normal(2000)
points = X[:100]
sizes = [24, 28, 32, 36, 40, 48, 56, 64]
ratios = {"v2": [], "v3": [], "vbar": [], "vtheta": []}
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
colors = ("#c8443c", "#e08e45", "#1f5a8a", "#3b8a5a")
for (kind, found), color in zip(ratios.items(), colors, strict=True):
    ax.plot(sizes, found, marker="o", color=color, label=f"{kind} / v1, median")
ax.axhline(1, color="0.6", linewidth=1)
ax.set(xlabel="rows of the sketch", ylabel="ratio", yscale="log")
ax.set_yticks([0.5, 1, 2, 5, 10, 20], ["0.5", "1", "2", "5", "10", "20"])
ax.minorticks_off()
ax.legend(frameon=False)
