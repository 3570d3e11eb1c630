"""The kernels as functions of s that the programs of ``triton_kernels`` call.

A function ``name(s, P)`` gives k from a block s of squared distances ‖u − v‖² ≥ 0 or of inner
products u·v, in float32 or float64. P is the tuple of the kernel's parameters, known when the
function is compiled. Powers of 2 are what a GPU computes.
"""

# mypy: allow-untyped-defs

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import triton
import triton.language as tl

__all__ = [
    "Folded",
    "gaussian",
    "gaussian_slope",
    "linear",
    "linear_slope",
    "matern32",
    "matern32_slope",
    "matern52",
    "matern52_slope",
    "polynomial",
    "polynomial_slope",
]

_LOG2E = tl.constexpr(math.log2(math.e))
_LN2 = tl.constexpr(math.log(2.0))
_3_LOG2E2 = tl.constexpr(3 * math.log2(math.e) ** 2)
_5_LOG2E2 = tl.constexpr(5 * math.log2(math.e) ** 2)


class Folded(NamedTuple):
    """Another way to the same values: gain·k = function(slope·s + shift(gain), P).

    The product of coordinates that gives s gives slope·s + shift as well, for nothing. A function
    of a distance that has an attribute ``folded`` is evaluated so. Rounding can push s below 0, and
    it is not clipped then: this is for functions that are smooth there.
    """

    function: Any
    slope: float
    shift: Callable[[float], float]


@triton.jit
def gaussian(s, P: tl.constexpr):
    """exp(−s/2)."""
    return tl.exp2(s * (-0.5 * _LOG2E))


@triton.jit
def _gaussian_folded(x, P: tl.constexpr):
    """exp(−s/2) from its logarithm to the base 2."""
    return tl.exp2(x)


gaussian.folded = Folded(_gaussian_folded, -math.log2(math.e) / 2, math.log2)


@triton.jit
def matern32(s, P: tl.constexpr):
    """(1 + r) exp(−r) with r = √(3s) = ln2·b."""
    b = tl.sqrt(s * _3_LOG2E2)
    return (1.0 + b * _LN2) * tl.exp2(-b)


@triton.jit
def matern52(s, P: tl.constexpr):
    """(1 + r + r²/3) exp(−r) with r = √(5s) = ln2·b."""
    b = tl.sqrt(s * _5_LOG2E2)
    r = b * _LN2
    return (1.0 + r * (1.0 + r * (1.0 / 3.0))) * tl.exp2(-b)


@triton.jit
def linear(s, P: tl.constexpr):
    """s itself."""
    return s


@triton.jit
def polynomial(s, P: tl.constexpr):
    """(s + c₀)^p, with P = (p, c₀)."""
    base = s + P[1]
    k = base
    for _ in tl.static_range(P[0] - 1):
        k *= base
    return k


@triton.jit
def gaussian_slope(s, P: tl.constexpr):
    """−exp(−s/2)/2."""
    return -0.5 * tl.exp2(s * (-0.5 * _LOG2E))


@triton.jit
def matern32_slope(s, P: tl.constexpr):
    """−(3/2) exp(−r) with r = √(3s) = ln2·b."""
    return -1.5 * tl.exp2(-tl.sqrt(s * _3_LOG2E2))


@triton.jit
def matern52_slope(s, P: tl.constexpr):
    """−(5/6)(1 + r) exp(−r) with r = √(5s) = ln2·b."""
    b = tl.sqrt(s * _5_LOG2E2)
    return (-5.0 / 6.0) * (1.0 + b * _LN2) * tl.exp2(-b)


@triton.jit
def linear_slope(s, P: tl.constexpr):
    """1."""
    return s * 0.0 + 1.0


@triton.jit
def polynomial_slope(s, P: tl.constexpr):
    """p (s + c₀)^(p−1), with P = (p, c₀)."""
    base = s + P[1]
    k = s * 0.0 + P[0]
    for _ in tl.static_range(P[0] - 1):
        k *= base
    return k
