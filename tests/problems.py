"""The small problem on which the estimators are tested, and what their tests share."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers import assert_close

from sketchridge import ExactKernelRidge, SketchedKernelRidge
from sketchridge.kernels import KERNELS, Precomputed
from sketchridge.sketches import SKETCHES

Array = np.ndarray
SEED = 0
N, D, T, M = 80, 2, 30, 15
H = 0.6
ALPHA = 0.8  # λ = 0.01
SKETCH_NAMES = sorted(SKETCHES)
KERNEL_NAMES = [name for name, make in KERNELS.items() if not isinstance(make(), Precomputed)]


def points(n: int, d: int = D, seed: int = SEED) -> Array:
    return np.random.default_rng([1, seed]).uniform(-1, 1, (n, d))


def values(X: Array, q: int = 1, seed: int = SEED) -> Array:
    """Smooth functions with noise of standard deviation 0.1: (n, q)."""
    signal = np.sin(3 * X[:, :1] * np.arange(1, q + 1)) + X[:, -1:] ** 2
    return signal + 0.1 * np.random.default_rng([2, seed]).standard_normal(signal.shape)


X = points(N)
X_TEST = points(T, seed=1)
Y = values(X, q=3)
y = Y[:, 0]


def sketched(**parameters: Any) -> SketchedKernelRidge:
    """A sketched estimator that leaves to the data and to chance only what a test asks for."""
    given = {"bandwidth": H, "alpha": ALPHA, "dtype": "float64", "random_state": SEED}
    return SketchedKernelRidge(**(given | parameters))


def fixed(**parameters: Any) -> ExactKernelRidge:
    return ExactKernelRidge(**({"bandwidth": H, "alpha": ALPHA} | parameters))


def full(**parameters: Any) -> SketchedKernelRidge:
    """With as many rows of the sketch as there are of the data."""
    return sketched(**({"sketch_size": N} | parameters))


def kernel_matrix(A: Array, B: Array, h: float = H) -> Array:
    return np.exp(-((A[:, None] - B[None]) ** 2).sum(axis=2) / (2 * h**2))


classes = pytest.mark.parametrize("cls", [ExactKernelRidge, SketchedKernelRidge])
makers = pytest.mark.parametrize("make", [fixed, sketched])
full_makers = pytest.mark.parametrize("make", [fixed, full])
intercepts = pytest.mark.parametrize("fit_intercept", [False, True])
names = pytest.mark.parametrize("name", SKETCH_NAMES)
auto_and_names = pytest.mark.parametrize("name", ["auto", *SKETCH_NAMES])


def kinds(model: Any) -> list[str]:
    """The variances that are computed directly; the sketched estimator's v1 is iterated."""
    if isinstance(model, ExactKernelRidge):
        return ["v1", "gp", "bias2"]
    return ["v2", "v3", "gp", "bias2"]


def assert_same_answers(one: Any, other: Any, at: Array = X_TEST, condition: float = 1.0) -> None:
    """Mean and all variances agree to rounding."""
    assert_close(one.predict(at), other.predict(at), condition=condition)
    for kind in kinds(one):
        assert_close(one.variance(at, kind), other.variance(at, kind), condition=condition)
