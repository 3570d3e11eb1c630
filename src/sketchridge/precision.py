"""Which precision each step uses, and the model of rounding that decides it and enters the bounds.

Products with k(X, Z) may be less precise than float64 where that costs little; everything else is
float64. A `Plan` chooses, backends obey, nobody else names a precision. The model is measured in
docs/precision.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

__all__ = [
    "EPS",
    "FULL",
    "Plan",
    "Scales",
    "canceled",
    "check_full",
    "excess",
    "magnified",
    "make_plan",
    "offered_or_full",
    "rounding",
    "safe",
]

EPS = {
    "float16": 2.0**-11,
    "float16x2": 2.0**-15,
    "float32": 2.0**-23,
    "float64": 2.0**-52,
}
FULL = "float64"  # of everything but products with k(X, Z), and of those that must be exact
_ONLY_FOR_SIGNS = ("float16", "float16x2")  # whose kernel values are exact in products with ±1 only
_RANGE = (1e-6, 1e6)  # of k(x, x), whose squares must not leave the range of float32
_CAUTIOUS = 1e-8  # error allowed where a precision was asked for by name
_FAR = 1e9  # coordinates whose powers float32 may not hold
_STEP = 0.1  # error allowed in a step of refinement, which is judged in full precision
_HOPELESS = 0.1  # error from which float64 itself is too coarse for λ


@dataclass(frozen=True)
class Scales:
    """The sizes of a problem on which rounding depends.

    ``largest`` is the largest ‖u‖² in the kernel's coordinates, ``typical`` the square root of its
    weighted mean square (both 0 for kernels that are no function of a distance), ``diag`` the
    largest k(x, x), ``trace`` is tr K, ``growth`` the kernel's own, ``rows`` the number of rows.
    """

    largest: float
    typical: float
    diag: float
    trace: float
    growth: float
    rows: int


def magnified(precision: str, scales: Scales, ratio: float) -> float:
    """ε·growth·max(4, largest ‖u‖²)·E₁/λ: how far products may put V2 off, relative.

    ``ratio`` is E₁/λ. Infinite where squares of kernel values could leave the range of float32.
    """
    if precision != "float64" and not _RANGE[0] < scales.diag < _RANGE[1]:
        return np.inf
    return EPS[precision] * scales.growth * max(4.0, scales.largest) * ratio


def excess(precision: str, scales: Scales, ratio: float) -> float:
    """How often the rounding of products exceeds what a λ can bear: above 1, λ is too small."""
    return magnified(precision, scales, ratio) / _HOPELESS


def safe(precision: str, largest: float, growth: float = 1.0) -> str:
    """The precision, or full where powers of coordinates as large as that leave its range."""
    return precision if largest < _FAR ** (1 / growth) else FULL


def offered_or_full(precision: str, offered: tuple[str, ...]) -> str:
    """That precision, or full where a backend that a model was loaded to does not offer it."""
    return precision if precision in offered else FULL


def rounding(precision: str, scales: Scales) -> float:
    """8√n ε·growth·max(tr K, typical ‖u‖²): what products in a precision may put K off by.

    An error of ε(‖u‖² + ‖v‖²) in each squared distance changes ‖K‖ by no more than twice the
    weighted root mean square of ‖u‖², and k by no more than that; √n covers the sums.
    """
    size = scales.growth * max(scales.trace, scales.typical)
    return float(8 * np.sqrt(scales.rows) * EPS[precision] * size)


def canceled(scales: Scales, farthest: float, terms: int, size: np.ndarray) -> np.ndarray:
    """8√terms ε·growth·max(4, farthest ‖u‖²)·size: what a sum of so many kernel values, each times
    a number, may be off by in float64, where ``size`` is the sum of their absolute values."""
    farthest = max(4.0, scales.largest, farthest)
    return 8 * np.sqrt(terms) * EPS["float64"] * scales.growth * farthest * size


@dataclass(frozen=True)
class Plan:
    """The precision of each step of a fit on one backend.

    Attributes
    ----------
    full : of sums, bounds and whatever is judged.
    budget : the relative error of V2 that rounding may cause.
    choices : precisions that may be used instead of ``full``, cheapest first.
    """

    full: str
    budget: float
    choices: tuple[str, ...] = ()

    def variance(self, scales: Scales, ratio: float) -> str:
        """Of the products behind V2, with E₁/λ as ``ratio``."""
        return self._cheapest(scales, ratio, self.budget)

    def first(self, scales: Scales, ratio: float, tol: float) -> str:
        """Of the first residual of a refinement to a tolerance."""
        return self._cheapest(scales, ratio, 2 * tol)

    def step(self, scales: Scales, ratio: float) -> str:
        """Of the steps of a refinement."""
        return self._cheapest(scales, ratio, _STEP)

    def sketch(self, scales: Scales, ratio: float | None, offered: tuple[str, ...]) -> str:
        """Of a dense sketch's sums, before E₁ is known: ``ratio`` is tr K/λ, None for an open λ."""
        if ratio is None or not self.choices:
            return self.full
        signs = [name for name in offered if name == "float16x2"]
        for name in (*signs, *self.choices):
            if magnified(name, scales, ratio) <= self.budget:
                return name
        return self.full

    def hopeless(self, scales: Scales, ratio: float) -> bool:
        """Whether even full precision is too coarse for λ."""
        return excess(self.full, scales, ratio) > 1

    def _cheapest(self, scales: Scales, ratio: float, error: float) -> str:
        for name in self.choices:
            if magnified(name, scales, ratio) <= error:
                return name
        return self.full


def make_plan(dtype: object, offered: tuple[str, ...], backend: str, tolerance: float) -> Plan:
    """The plan for a ``dtype`` that was asked for, among what a backend offers.

    >>> make_plan("auto", ("float32", "float64"), "numpy", 0.1)
    Plan(full='float64', budget=0.001, choices=('float32',))
    >>> make_plan("float32", ("float32", "float64"), "numpy", 0.1).full
    'float32'
    """
    if isinstance(dtype, str) and dtype == "auto":
        choices = tuple(name for name in offered if name not in (*_ONLY_FOR_SIGNS, "float64"))
        return Plan("float64", tolerance / 100, choices)
    if not isinstance(dtype, str) or dtype not in EPS:
        raise ValueError(f"Unknown dtype {dtype!r}: give 'auto', {', '.join(map(repr, EPS))}.")
    if dtype not in offered:
        raise ValueError(
            f"dtype={dtype!r} needs a GPU and backend='triton', but the backend is {backend!r}: "
            "give 'float32' or 'float64'."
        )
    return Plan(dtype, _CAUTIOUS if dtype == "float64" else tolerance / 100)


def check_full(dtype: object, name: str) -> None:
    """Raise ValueError for any precision but float64, the only one that ``name`` computes in."""
    if dtype not in ("auto", "float64"):
        raise ValueError(
            f"{name} computes in float64 only, got dtype={dtype!r}: give 'auto' or 'float64', or "
            "use SketchedKernelRidge for other precisions."
        )
