"""Active learning by ask and tell: the paper's Algorithm 1, with nothing lost between calls."""

from __future__ import annotations

import copy
import warnings
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from sketchridge import tuning
from sketchridge.active import pool as pools
from sketchridge.active.acquire import ACQUISITIONS, exponential_keys
from sketchridge.active.gain import mean_posterior_variance, with_points
from sketchridge.active.pool import Pool, PoolSums, has_sums, pool_sums, v2_by_sums
from sketchridge.active.settings import ESTIMATORS, Estimator, estimator_from, estimator_settings
from sketchridge.active.stopping import as_stop_rules, stop_rules_from, to_settings
from sketchridge.active.store import Draw, MemoryStore, Round, Store
from sketchridge.estimator import ExactKernelRidge, SketchedKernelRidge
from sketchridge.kernels import ScaledKernel, as_kernel

__all__ = ["ActiveLearner"]

Array = np.ndarray
_LEAST = 2  # labels for a first model
_LARGEST_SKETCH = 512
_LARGEST_LABEL = 1e150  # whose square is still a number
_KEPT = 2**24  # bytes of a pool up to which a store keeps a copy
_SCORES = {ExactKernelRidge: ("v1", "gp"), SketchedKernelRidge: ("v2", "v3", "gp")}


@dataclass(frozen=True, eq=False)
class _Scored:
    """Scores of the whole pool (p,), and the sums behind them where there are any."""

    values: Array
    sums: PoolSums | None


@dataclass(frozen=True, eq=False)
class _Model:
    """An estimator fitted to the first labels, in so many rounds. It is never changed.

    ``start`` are sums of an earlier model, from which those of this one can be had.
    """

    estimator: Estimator
    rounds: int
    labels: int
    start: PoolSums | None = None
    scored: _Scored | None = None

    @property
    def sums(self) -> PoolSums | None:
        return self.start if self.scored is None else self.scored.sums


class _Overtaken(Exception):
    """Another process has handed out a point, or begun a round, in the meantime."""
