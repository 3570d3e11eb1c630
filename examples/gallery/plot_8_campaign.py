"""
Which points to measure next
============================

A campaign that looks for the largest value: it asks for eight points at a time, and is told what
was measured there.
"""

import numpy as np

from sketchridge import ActiveLearner, SketchedKernelRidge
from sketchridge.plotting import plot_pool

rng = np.random.default_rng(0)
pool = rng.uniform(0, 1, (500, 2))
height = np.exp(-8 * ((pool - [0.7, 0.3]) ** 2).sum(axis=1))
learner = ActiveLearner(SketchedKernelRidge(), pool, batch_size=8, goal="maximize", random_state=0)
for _ in range(3):
    ids = learner.ask()
    learner.tell(ids, height[ids])
print(f"best found {learner.labels_.max():.3f}, best there is {height.max():.3f}")
plot_pool(pool, pool[learner.labeled_ids_], pool[learner.ask()])
