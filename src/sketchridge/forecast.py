"""How long conjugate gradients will take, before they are begun, and with which preconditioner.

With the sketch as preconditioner the eigenvalues of the system lie between 1 and 1 + ρ/λ, with
ρ = ‖K − K̂‖, so that ½√(1 + ρ/λ) ln(2/tol) steps bring the residual to ``tol``: a bound, of which
few eigenvalues near its upper end leave less. A larger sketch makes ρ smaller, as the eigenvalues
of K fall, and costs O(nm²) more.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from sketchridge.certify import missed
from sketchridge.ridge import Ridge
from sketchridge.system import norms

__all__ = ["Forecast", "foreseen", "most_steps"]

Array = np.ndarray
_PRODUCTS = 3  # with K − K̂, that its norm is estimated by
_VECTORS = 4
_FACTORS = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)  # by which the preconditioner may grow
_EIGH = 12.0  # m³ that the eigenvalues of an m×m matrix cost
_PASSES = 3.0  # nm² that a larger sketch costs: columns, their Gram matrix, their eigenvectors
_FEWER = 0.85  # power of the bound on steps that was needed: within a third in 30 problems
_TINY = np.finfo(float).tiny


@dataclass(frozen=True)
class Forecast:
    """What solving (K + λI)z = k is expected to take with a preconditioner of ``size`` rows."""

    size: int
    steps: float
    seconds: float  # all of them, and those for growing the sketch


def foreseen(
    ridge: Ridge, *, tol: float, columns: int, step: str, largest: int, seed: int
) -> Forecast:
    """The preconditioner with which so many columns are solved for soonest, and how soon.

    Seconds are those of this machine: three products with K and one Gram matrix are timed, a small
    part of what is foreseen wherever that matters.
    """
    basis = ridge.basis
    size = basis.factor.sketch.size
    norm, product = _norm(ridge, columns, step, seed)
    gram = _timed_gram(ridge)
    n = len(ridge.sample)
    rate = gram / max(n * size**2, 1)  # seconds for each of the nm²
    most = max(size, min(largest, n // 2))

    def with_size(m: int) -> Forecast:
        left = norm * _fall(basis.E, m / max(size, 1))
        steps = max(1.0, most_steps(left, ridge.lam, tol)) ** _FEWER
        growing = rate * (_PASSES * n * (m**2 - size**2) + _EIGH * (m**3 - size**3))
        applied = 2 * rate * n * m * columns  # two thin products with F, at the rate of wide ones
        return Forecast(m, float(steps), float(growing + steps * (product + applied)))

    sizes = sorted({min(int(size * factor), most) for factor in _FACTORS})
    return min(map(with_size, sizes), key=lambda found: found.seconds)


def most_steps(norm: float, lam: float, tol: float) -> float:
    """½√(1 + ρ/λ) ln(2/tol), the most steps that a residual of ``tol`` takes where ‖K − K̂‖ ≤ ρ.

    >>> round(most_steps(3.0, 1.0, 1e-8), 1)
    19.1
    """
    return float(0.5 * np.sqrt(1 + norm / lam) * np.log(2 / tol))


def _norm(ridge: Ridge, columns: int, step: str, seed: int) -> tuple[float, float]:
    """‖K − K̂‖ by power iteration, from below, and the seconds of a product with so many columns."""
    sample = ridge.sample
    backend = sample.backend
    rng = np.random.default_rng(seed)
    W = backend.tall(rng.standard_normal((len(sample), max(_VECTORS, columns))))
    length = norms(W)
    seconds = []
    for _ in range(_PRODUCTS):
        W = W.map(lambda w, s: w / s, small=(length,))
        scaled = W.scaled(sample.root)
        begun = time.perf_counter()
        exact = backend.matmul(sample.points, sample.points, scaled, precision=step)
        norms(exact)  # on a GPU products return before they are done
        seconds.append(time.perf_counter() - begun)
        W = missed(ridge, scaled, exact)
        length = norms(W) + _TINY
    return float(length.max()), min(seconds)


def _timed_gram(ridge: Ridge) -> float:
    begun = time.perf_counter()
    ridge.sample.gram(ridge.basis.factor.F)
    return time.perf_counter() - begun


def _fall(E: Array, factor: float) -> float:
    """By how much the eigenvalues of K are smaller ``factor`` times further down, if they go on to
    fall as they do between m/4 and m/2."""
    quarter, half = len(E) // 4, len(E) // 2
    if factor <= 1 or not 0 < quarter < half:
        return 1.0
    slope = np.log(E[quarter] / max(E[half], _TINY)) / np.log(half / quarter)
    return float(factor ** -max(slope, 0.0))
