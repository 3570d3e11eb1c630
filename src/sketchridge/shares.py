"""The share θ(x) of V2's weights in V_θ, by what a sketch misses of k(x, ·)."""

from __future__ import annotations

import numpy as np

from sketchridge.backends import Tall
from sketchridge.basis import Basis
from sketchridge.precision import EPS, FULL
from sketchridge.query import Query

__all__ = ["SUMS", "shares"]

Array = np.ndarray
SUMS = 16  # rounding of a sum over all rows, in ε and by measurement
# K's eigenvalues along z₂ − z₃ over ρ(x), and the largest share: benchmarks/averaged.py has others
_BEYOND = 1.5
_LARGEST = 0.54
_EXPLAINED = 64  # c(x) below that many ε of k(x,x) is rounding


def shares(
    query: Query,
    basis: Basis,
    T: Tall,
    squares: Array,
    b: Array,
    a: Array,
    *,
    lam: float,
    sizes: Array,
    precision: str,
    error: float,
) -> Array:
    """θ(x) = min(0.54, λ/(λ + 1.5 ρ(x))), where ρ(x) = ‖k_x − T a‖²_M/c(x): (t,).

    ρ(x), with c = k(x,x) − aᵀa, is the Rayleigh quotient of K at what the sketch misses of
    k(x, ·): the scale of the eigenvalues that it lacks there. The first error of
    θ z₂ + (1 − θ) z₃ vanishes where they are λ(1 − θ)/θ. From k_xᵀMk_x (t,), b = TᵀMk_x (t, r) and
    a(x) (t, r) where a bound on rounding shows that θ is 0.54 or within ``error``, relative, and by
    a pass over the data elsewhere: what is missed may be far less than rounding in k_xᵀMk_x.
    ``sizes`` (r,) are those of the vectors whose products with k_x are b.
    """
    prior = query.prior()
    c = prior - np.einsum("ij,ij->i", a, a)
    clear = c > _EXPLAINED * EPS[FULL] * prior
    half = lam * np.maximum(c, 0) / _BEYOND  # what is missed where λ/(λ + 1.5 ρ) is ½
    least = half * (1 - _LARGEST) / _LARGEST  # the most that is missed where θ is largest
    missed = squares - np.einsum("ij,ij->i", a, 2 * b - a * basis.E)
    spread = np.sqrt(squares) + np.sqrt(a**2 @ sizes**2)
    bound = SUMS * EPS[precision] * spread**2
    known = (missed + bound <= least) | (bound <= error * (missed + half))
    again = np.flatnonzero(clear & ~known)
    if len(again):
        missed[again] = _missed(query.some(again), basis, T, a[again], precision)
    rho = np.divide(np.maximum(missed, 0), c, out=np.zeros_like(c), where=clear)
    return np.minimum(_LARGEST, lam / (lam + _BEYOND * rho))


def _missed(query: Query, basis: Basis, T: Tall, a: Array, precision: str) -> Array:
    """‖k_x − T a‖²_M as the squared norm of a residual: (t,)."""
    small = basis.sample.backend.tall(a)
    return query.residual_sqnorm(basis.sample, T, small, precision)
