"""Bounds on how far V2 can be from V1, at every point at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sketchridge.backends import Tall
from sketchridge.precision import EPS, FULL, rounding
from sketchridge.ridge import Ridge

__all__ = ["Certificate", "missed", "norm_certificate", "trace_certificate"]

Array = np.ndarray
_VECTORS = 32
_PRODUCTS = 8
_FAILURE = 1e-6
_SUMS = 64  # ε by which a variance itself may be off, however small ‖K‖/λ is


@dataclass(frozen=True)
class Certificate:
    """|√V2(x) − √V1(x)| ≤ ``relative`` · √V2(x) for every x, except with probability
    ``failure_probability``.

    ``relative`` is ``norm``/λ and what rounding adds, with ``norm`` a bound on ‖K − K̂‖, in units
    of the kernel. From 1 up it says nothing about V1 from below: it is vacuous.

    >>> print(Certificate("trace", norm=0.002, relative=0.02))
    trace: the standard deviation √V2 is within 0.02 of √V1, relative to √V2, at every point
    """

    method: str
    norm: float
    relative: float
    failure_probability: float = 0.0

    @property
    def vacuous(self) -> bool:
        return not self.relative < 1

    def __str__(self) -> str:
        if self.vacuous:
            return (
                "Ask for a bound at each point with variance(X, 'vbar', return_bound=True), or "
                "enlarge the sketch: no uniform guarantee "
                f"({self.method} bound {self.relative:.3g}, useful below 1)"
            )
        return (
            f"{self.method}: the standard deviation √V2 is within {self.relative:.3g} of √V1, "
            "relative to √V2, at every point"
        )


def trace_certificate(ridge: Ridge) -> Certificate:
    """The bound (τ + rounding)/λ with τ = tr K − tr K̂ ≥ ‖K − K̂‖. Free."""
    return _certificate("trace", ridge, ridge.basis.tau, 0.0)


def norm_certificate(ridge: Ridge, rng: np.random.Generator) -> Certificate:
    """The bound with ‖K − K̂‖ from power iteration, in 8 products of K with 32 vectors: O(n²).

    For a random unit vector x and j products, ‖K − K̂‖^(2j) > θ‖(K − K̂)^j x‖² has probability at
    most 0.8√(n/θ) (Dixon, 1983); θ is such that it happens for all vectors at once with probability
    1e-6.
    """
    sample = ridge.sample
    backend = sample.backend
    W = _normalized(backend.tall(rng.standard_normal((len(sample), _VECTORS))))[0]
    log_norm = np.zeros(_VECTORS)  # of (K − K̂)^j x
    with backend.alone():
        for _ in range(_PRODUCTS):
            scaled = W.scaled(sample.root)
            exact = backend.matmul(sample.points, sample.points, scaled, precision=FULL)
            W, length = _normalized(missed(ridge, scaled, exact))
            log_norm += np.log(length)
    theta = len(sample) * (0.8 / _FAILURE ** (1 / _VECTORS)) ** 2
    estimate = float(np.exp((np.log(theta) + 2 * log_norm.max()) / (2 * _PRODUCTS)))
    return _certificate("norm", ridge, min(estimate, ridge.basis.tau), _FAILURE)


def missed(ridge: Ridge, scaled: Tall, exact: Tall) -> Tall:
    """(K − K̂)W, given M^½W and its product with the kernel matrix: (n, t)."""
    sketched = ridge.T @ ridge.T.gram(scaled)
    return exact.map(lambda a, b, s: (a - b) * s, sketched, ridge.sample.root)


def _certificate(method: str, ridge: Ridge, norm: float, failure: float) -> Certificate:
    scales = ridge.sample.scales
    lost = rounding(ridge.precision, scales) + 8 * ridge.basis.factor.noise()
    lost *= ridge.growth
    relative = (norm + lost) / ridge.lam + _SUMS * EPS[ridge.precision] + ridge.rounded
    unit = ridge.sample.points.kernel.unit
    return Certificate(method, (norm + lost) * unit, float(relative), failure)


def _normalized(W: Tall) -> tuple[Tall, Array]:
    """Columns of length 1, and the lengths they had."""
    length = np.sqrt(np.diagonal(W.gram())) + np.finfo(float).tiny
    return W.map(lambda block, scale: block / scale, small=(length,)), length
