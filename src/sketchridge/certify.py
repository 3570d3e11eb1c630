"""Bounds on how far V2 can be from V1."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sketchridge.backends.base import Backend
from sketchridge.state import Ridge

__all__ = ["Certificate", "norm_certificate", "rounding", "trace_certificate"]

_VECTORS, _PRODUCTS, _FAILURE = 32, 8, 1e-6


@dataclass(frozen=True)
class Certificate:
    """|√V2(x) − √V1(x)| ≤ ``relative`` · √V2(x) for every x, except with probability ``failure_probability``.

    ``relative`` is ``norm``/λ, with ``norm`` a bound on ‖K − K̂‖ (rounding included). From 1 up it says nothing about V1 from
    below: it is vacuous.
    """

    method: str
    norm: float
    relative: float
    failure_probability: float = 0.0

    @property
    def vacuous(self) -> bool:
        return self.relative >= 1

    def __str__(self) -> str:
        if self.vacuous:
            return (
                f"vacuous ({self.method}): the uniform bound on the relative error of √V2 is {self.relative:.3g}; "
                "ask for a bound at each point with variance(X, return_bound=True), or enlarge the sketch"
            )
        return f"{self.method}: the standard deviation √V2 is within {self.relative:.3g} of √V1, relative to √V2, at every point"


def trace_certificate(ridge: Ridge) -> Certificate:
    """The bound (τ + rounding)/λ with τ = tr K − tr K̂ ≥ ‖K − K̂‖. Free."""
    norm = ridge.state.tau + sketch_rounding(ridge)
    return Certificate("trace", norm, norm / ridge.lam)


def norm_certificate(ridge: Ridge, rng: np.random.Generator) -> Certificate:
    """The bound with ‖K − K̂‖ from power iteration, in 8 products of K with 32 vectors: O(n²).

    For a random unit vector x and j products, ‖K − K̂‖^(2j) > θ‖(K − K̂)^j x‖² has probability at most 0.8√(n/θ) (Dixon, 1983);
    θ is such that it happens for all vectors at once with probability 1e-6.
    """
    state, n = ridge.state, len(ridge.state.X)
    backend, log_norm = state.backend, np.zeros(_VECTORS)  # of (K − K̂)^j x
    W = backend.asarray(rng.standard_normal((n, _VECTORS)))
    W /= (W * W).sum(axis=0) ** 0.5
    with backend.alone():
        for _ in range(_PRODUCTS):
            W = backend.matmul(state.kernel, state.X, state.X, W) / n - backend.product(state.H, backend.gram(state.H, W))
            length = (W * W).sum(axis=0) ** 0.5 + np.finfo(float).tiny
            W /= length
            log_norm += np.log(backend.to_numpy(length))
    theta = n * (0.8 / _FAILURE ** (1 / _VECTORS)) ** 2
    estimate = float(np.exp((np.log(theta) + 2 * log_norm.max()) / (2 * _PRODUCTS)))
    norm = min(estimate, state.tau) + sketch_rounding(ridge)
    return Certificate("norm", norm, norm / ridge.lam, _FAILURE)


def rounding(ridge: Ridge, backend: Backend) -> float:
    """8√n ε tr(K) max(1, largest ‖u‖²), with ε the precision of the kernel products: what they may put K off by."""
    state = ridge.state
    return float(8 * np.sqrt(len(state.X)) * backend.eps * state.trace * max(1.0, state.spread))


def sketch_rounding(ridge: Ridge) -> float:
    """What rounding may put K − K̂ off by, the factor's own included."""
    return rounding(ridge, ridge.backend) + 8 * ridge.state.factor.noise(ridge.state.backend)
