"""How far rounding in float64 may put a library off: the tolerances of the multiprecision tests.

Kernel values are off by ε' = C·ε of their size, C = 100. That moves G by ν = ε'·spread·tr G (in
any norm), where spread is the largest ‖u‖² of centered points in bandwidths, 1 for dot products;
and k_x by ε'·spread·‖k_x‖, or ε'·√(k(x,x) tr G) for dot products. In a sketch it moves S G Sᵀ (rows
of S of unit length) by ν as well: directions of S G Sᵀ well below ν are lost, and Ĝ moves by about
tr(Ĝ − Ĝ_ν), where Ĝ_ν has (S G Sᵀ + ν)⁻¹ in its middle. To first order, weights ℓ then move by

    ‖δℓ‖ ≤ (max w/Σw)·(δG/λ)·‖ℓ‖ + √(max w)·δk_x/(λΣw)

in the norm of the noise: relative, C·ε·spread·E₁/λ up to a factor of n. A constant fitted jointly
magnifies this by 1 + √Σw·‖u‖, with u the weights of the constant.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from flint import arb
from multiprecision import Prediction, Reference, diagonal, norm, total

__all__ = ["Tolerance", "tolerances"]

C = 100.0
_EPS = arb(C * 2.0**-52)


@dataclass(frozen=True, eq=False)
class Tolerance:
    """Absolute errors allowed at each point: of √V, of the mean, and of gp and bias²."""

    std: list[arb]
    mean: list[arb]
    gp: list[arb]


@dataclass(frozen=True, eq=False)
class _Moved:
    """How far rounding moves G, and at each point k_x and k(x,x)."""

    matrix: arb
    points: list[arb]
    diagonal: list[arb]


def tolerances(reference: Reference) -> dict[str, Tolerance]:
    """For the exact model, and with a sketch for V2 and for the sketched model."""
    exact = _moved(reference)
    found = {"exact": _tolerance(reference.exact, reference, exact)}
    if reference.S is None:
        return found
    sketched = _sketch_moved(reference, exact)
    mixed = _Moved(sketched.matrix, exact.points, exact.diagonal)
    found["v2"] = _tolerance(reference.v2, reference, mixed)
    found["sketched"] = _tolerance(reference.sketched, reference, sketched)
    return found


def _moved(reference: Reference) -> _Moved:
    spread, spreads = _spreads(reference)
    trace = total(diagonal(reference.G))
    columns = reference.G_x.transpose().table()
    sizes = [(k * trace).sqrt() for k in reference.k_xx]
    if reference.problem.formula.radial:
        sizes = [norm(k_x) for k_x in columns]
    points = [_EPS * s * a for s, a in zip(spreads, sizes, strict=True)]
    ends = [_EPS * k for k in reference.k_xx]
    return _Moved(_EPS * spread * trace, points, ends)


def _sketch_moved(reference: Reference, exact: _Moved) -> _Moved:
    """Ĝ, k̂_x (by Cauchy and Schwarz) and k̂(x,x): moved, and lost by the sketch."""
    blurred, _, blurred_xx = reference.compressed(reference.S, exact.matrix)
    matrix = exact.matrix + total(diagonal(reference.G_hat)) - total(diagonal(blurred))
    pairs = zip(exact.diagonal, reference.k_hat_xx, blurred_xx, strict=True)
    ends = [end + abs(whole - left) for end, whole, left in pairs]
    points = [p + (end * matrix).sqrt() for p, end in zip(exact.points, ends, strict=True)]
    return _Moved(matrix, points, ends)


def _tolerance(found: Prediction, reference: Reference, moved: _Moved) -> Tolerance:
    lam, mass = reference.lam, total(reference.w)
    largest = max(reference.w, key=float)
    relative = _EPS + moved.matrix * largest / (mass * lam)
    y = norm(w.sqrt() * y for w, y in zip(reference.w, reference.y, strict=True))
    constant = _Constant(found) if found.fit_intercept else None
    std, gp = [], []
    for j, ell in enumerate(found.weights):
        size = found.std[j] + (constant.part(j) if constant else 0)
        error = relative * size + largest.sqrt() * moved.points[j] / (lam * mass)
        length = norm(ell)
        quadratic = moved.diagonal[j] + 2 * length * moved.points[j] + length**2 * moved.matrix
        if constant:
            error = error * (1 + constant.size)
            quadratic += 2 * abs(constant.missing[j]) * mass.sqrt() * error / constant.mass
        std.append(error)
        gp.append(quadratic)
    mean = [(s + _EPS * size) * y for s, size in zip(std, found.std, strict=True)]
    return Tolerance(std, mean, gp)


class _Constant:
    """The constant's part of predictions: ℓ = w + (1 − 1ᵀw)u with u = A⁻¹1/1ᵀA⁻¹1, A = G + αW⁻¹."""

    def __init__(self, found: Prediction) -> None:
        n = len(found.w)
        ones = [row[0] for row in found.system.solve(type(found.G)([[1]] * n)).table()]
        self.mass = total(ones)
        self.u_norm = found.noise_norm([a / self.mass for a in ones])
        self.size = self.u_norm * total(found.w).sqrt()  # at least 1
        columns = found.G_x.transpose().table()
        sums = [total(a * k for a, k in zip(ones, k_x, strict=True)) for k_x in columns]
        self.missing = [1 - s for s in sums]

    def part(self, j: int) -> arb:
        return 2 * abs(self.missing[j]) * self.u_norm


def _spreads(reference: Reference) -> tuple[float, list[float]]:
    """The largest ‖u‖² among the rows, and among them and each point."""
    problem = reference.problem
    if not problem.formula.radial:
        return 1.0, [1.0] * len(problem.X_new)
    center, h = np.median(problem.X, axis=0), problem.formula.bandwidth
    rows, points = ((((A - center) / h) ** 2).sum(axis=1) for A in (problem.X, problem.X_new))
    spread = max(1.0, float(rows.max()))
    return spread, [max(spread, float(a)) for a in points]
