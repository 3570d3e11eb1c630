"""The definitions in ball arithmetic: what every mean and variance is, to more digits than needed.

Nothing here is shared with the library. Each quantity follows from the weights ℓ of a prediction,
f(x) = Σ ℓ_i y_i, and these solve one dense system, bordered where a constant is fitted jointly:

    [G + αW⁻¹  1] [ℓ]   [k_x]
    [   1ᵀ     0] [ν] = [ 1 ],    W = diag(w).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from flint import arb, arb_mat, ctx

__all__ = [
    "Formula",
    "Prediction",
    "Problem",
    "Reference",
    "diagonal",
    "difference",
    "matrix_of",
    "norm",
    "to_floats",
    "total",
]

Array = np.ndarray
ctx.prec = 640  # bits; the worst condition number of a test is about 1e60
_DIGITS = 100  # bits that every answer has right


# What k is


@dataclass(frozen=True)
class Formula:
    """A kernel by its formula; radial ones have a bandwidth h, dot products γ, c₀ and p."""

    name: str
    bandwidth: float | None = None
    gamma: float = 1.0
    coef0: float = 0.0
    degree: int = 1

    @property
    def radial(self) -> bool:
        return self.name in _PROFILES

    def __call__(self, X: Array, Z: Array) -> arb_mat:
        """k(X, Z): (n, t)."""
        rows, columns = ([[arb(float(a)) for a in row] for row in A] for A in (X, Z))
        return arb_mat([[self._value(x, z) for z in columns] for x in rows])

    def diag(self, X: Array) -> list[arb]:
        """k(x, x) for every row of X."""
        return [self(row[None], row[None])[0, 0] for row in X]

    def _value(self, x: list[arb], z: list[arb]) -> arb:
        if not self.radial:
            dot = total(a * b for a, b in zip(x, z, strict=True))
            return (arb(self.gamma) * dot + arb(self.coef0)) ** self.degree
        steps = [a - b for a, b in zip(x, z, strict=True)]
        distance = total(map(abs, steps)) if self.name == "laplacian" else norm(steps)
        return _PROFILES[self.name](distance / arb(self.bandwidth))


def _matern32(r: arb) -> arb:
    a = arb(3).sqrt() * r
    return (1 + a) * (-a).exp()


def _matern52(r: arb) -> arb:
    a = arb(5).sqrt() * r
    return (1 + a + a * a / 3) * (-a).exp()


_PROFILES: dict[str, Callable[[arb], arb]] = {
    "gaussian": lambda r: (-r * r / 2).exp(),
    "laplacian": lambda r: (-r).exp(),
    "matern32": _matern32,
    "matern52": _matern52,
}


# What is asked and what is answered


@dataclass(frozen=True, eq=False)
class Problem:
    """Data, penalty α = λ Σw, weights, sketch, and the points that are asked for.

    A row of weight 0 counts as absent, and its column of the sketch with it.
    """

    formula: Formula
    X: Array  # (n, d)
    y: Array  # (n,)
    X_new: Array  # (t, d)
    alpha: float
    fit_intercept: bool = False
    weight: Array | None = None  # (n,)
    S: Array | None = None  # (m, n)

    def present(self) -> tuple[Array, Array, Array, Array | None]:
        """X, y, w and S of the rows that count."""
        w = np.ones(len(self.X)) if self.weight is None else np.asarray(self.weight, dtype=float)
        keep = w > 0
        S = None if self.S is None else np.asarray(self.S, dtype=float)[:, keep]
        return self.X[keep], self.y[keep], w[keep], S


@dataclass(frozen=True, eq=False)
class Prediction:
    """Predictions at t points from kernel values G between the rows and G_x from rows to points.

    ``left`` is what the model leaves unexplained at each point, 0 for the exact one.
    """

    G: arb_mat  # (n, n)
    G_x: arb_mat  # (n, t)
    k_xx: list[arb]
    left: list[arb]
    w: list[arb]
    y: list[arb]
    alpha: arb
    fit_intercept: bool

    @cached_property
    def system(self) -> arb_mat:
        """G + αW⁻¹: (n, n)."""
        ridge = [self.alpha / w for w in self.w]
        return self.G + arb_mat(_diagonal_matrix(ridge))

    @cached_property
    def solution(self) -> arb_mat:
        """(ℓ, ν) in a column for each point: (n, t), or (n + 1, t) with a constant."""
        if not self.fit_intercept:
            return self.system.solve(self.G_x)
        ones, t = [arb(1)] * len(self.w), len(self.k_xx)
        top = [[*row, one] for row, one in zip(self.system.table(), ones, strict=True)]
        return arb_mat([*top, [*ones, 0]]).solve(arb_mat([*self.G_x.table(), [1] * t]))

    @cached_property
    def weights(self) -> list[list[arb]]:
        """ℓ (n,) for each point."""
        return [column[: len(self.w)] for column in self.solution.transpose().table()]

    @cached_property
    def mean(self) -> list[arb]:
        return [total(a * y for a, y in zip(ell, self.y, strict=True)) for ell in self.weights]

    @cached_property
    def variance(self) -> list[arb]:
        """Σ ℓ_i²/w_i: row i has the noise variance 1/w_i."""
        return [self.noise_norm(ell) ** 2 for ell in self.weights]

    @cached_property
    def std(self) -> list[arb]:
        return [self.noise_norm(ell) for ell in self.weights]

    @cached_property
    def gp(self) -> list[arb]:
        """k(x,x) − (k_x, 1)ᵀ(ℓ, ν): the posterior variance, with a flat prior on the constant."""
        sides = self.G_x.table() + ([[arb(1)] * len(self.k_xx)] if self.fit_intercept else [])
        explained = diagonal(self.solution.transpose() * arb_mat(sides))
        return [c + k - e for c, k, e in zip(self.left, self.k_xx, explained, strict=True)]

    @cached_property
    def bias2(self) -> list[arb]:
        """‖k(x,·) − Σ ℓ_i k(x_i,·)‖²: the worst squared bias over the unit ball."""
        L = arb_mat(self.weights)  # (t, n)
        across, inside = diagonal(L * self.G_x), diagonal(L * self.G * L.transpose())
        parts = zip(self.left, self.k_xx, across, inside, strict=True)
        return [c + k - 2 * a + b for c, k, a, b in parts]

    @cached_property
    def complement(self) -> arb_mat:
        """P with y − f = αW⁻¹Py at the rows: A⁻¹, or with a constant A⁻¹ − A⁻¹11ᵀA⁻¹/1ᵀA⁻¹1."""
        inverse = self.system.inv()
        if not self.fit_intercept:
            return inverse
        ones = inverse * arb_mat([[1]] * len(self.w))
        return inverse - ones * ones.transpose() / total(ones.entries())

    @cached_property
    def loo(self) -> list[arb]:
        """Errors at each row of the fit without it, (Py)_i/P_ii."""
        fit = self.complement * arb_mat([[y] for y in self.y])
        pairs = zip(fit.entries(), diagonal(self.complement), strict=True)
        return [a / p for a, p in pairs]

    @cached_property
    def noise(self) -> arb:
        """σ̂² = Σ w r²/(n − df), where n − df is the sum of αP_ii/w_i."""
        fit = (self.complement * arb_mat([[y] for y in self.y])).entries()
        rss = total((self.alpha * a) ** 2 / w for a, w in zip(fit, self.w, strict=True))
        parts = zip(diagonal(self.complement), self.w, strict=True)
        return rss / total(self.alpha * p / w for p, w in parts)

    def noise_norm(self, ell: list[arb]) -> arb:
        """‖ℓ‖ where the noise variance of row i is 1/w_i."""
        return norm(a / w.sqrt() for a, w in zip(ell, self.w, strict=True))


class Reference:
    """Every quantity of a problem, for unit noise.

    `exact` has V1, the mean, gp and bias² of kernel ridge regression. With a sketch, `sketched` has
    V3 and the mean, gp and bias² of the sketched model, `v2` has V2 (the exact k_x and the sketched
    inverse), and `vbar` is the variance of the average of the weights behind V2 and V3.
    """

    def __init__(self, problem: Problem) -> None:
        X, y, w, S = problem.present()
        self.problem = problem
        self.w = [arb(float(a)) for a in w]
        self.y = [arb(float(a)) for a in y]
        self.G = problem.formula(X, X)
        self.G_x = problem.formula(X, problem.X_new)
        self.k_xx = problem.formula.diag(problem.X_new)
        self.exact = self._prediction(self.G, self.G_x, self.k_xx)
        self.S = None if S is None else _unit_rows(S)
        if self.S is not None:
            self._sketch(self.S)
        self._check_digits()

    def _sketch(self, S: arb_mat) -> None:
        rows = _independent_rows(S * self.G * S.transpose())
        independent = arb_mat([S.table()[j] for j in rows]) if rows else arb_mat(0, len(self.w))
        self.G_hat, self.G_hat_x, self.k_hat_xx = self.compressed(independent)
        self.v2 = self._prediction(self.G_hat, self.G_x, self.k_xx)
        self.sketched = self._prediction(self.G_hat, self.G_hat_x, self.k_hat_xx)
        both = zip(self.v2.weights, self.sketched.weights, strict=True)
        middle = [[(a + b) / 2 for a, b in zip(*pair, strict=True)] for pair in both]
        self.vbar = [self.exact.noise_norm(ell) ** 2 for ell in middle]

    def compressed(self, S: arb_mat, shift: arb | int = 0) -> tuple[arb_mat, arb_mat, list[arb]]:
        """k̂ = k Sᵀ(S G Sᵀ + shift)⁻¹S k between rows, from rows to points, and at the points."""
        A, A_x = S * self.G, S * self.G_x  # (m, n), (m, t)
        W = A * S.transpose() + arb_mat(_diagonal_matrix([arb(shift)] * S.nrows()))
        T, T_x = W.solve(A), W.solve(A_x)
        return A.transpose() * T, A.transpose() * T_x, diagonal(A_x.transpose() * T_x)

    def _prediction(self, G: arb_mat, G_x: arb_mat, k_xx: list[arb]) -> Prediction:
        left = [k - k_hat for k, k_hat in zip(self.k_xx, k_xx, strict=True)]
        alpha, fit_intercept = arb(self.problem.alpha), self.problem.fit_intercept
        return Prediction(G, G_x, k_xx, left, self.w, self.y, alpha, fit_intercept)

    @property
    def lam(self) -> arb:
        return arb(self.problem.alpha) / total(self.w)

    @property
    def trace(self) -> arb:
        """tr K with K = M^½ G M^½ and M = W/Σw."""
        return self._weighted_trace(self.G)

    @property
    def sketched_trace(self) -> arb:
        return self._weighted_trace(self.G_hat)

    def _weighted_trace(self, G: arb_mat) -> arb:
        return total(g * w for g, w in zip(diagonal(G), self.w, strict=True)) / total(self.w)

    def _check_digits(self) -> None:
        answers = [*self.exact.variance, *self.exact.gp]
        if self.S is not None:
            answers += [*self.v2.variance, *self.sketched.variance, *self.sketched.gp]
        digits = [a.rel_accuracy_bits() for a in answers if not a.contains(0)]
        if any(not a.is_finite() for a in answers) or min(digits, default=_DIGITS) < _DIGITS:
            raise ArithmeticError("The reference lost its digits: raise ctx.prec.")


# Numbers


def difference(reference: arb, value: float) -> arb:
    """|reference − value|, with the value taken as it is."""
    return abs(reference - arb(float(value)))


def to_floats(values: Iterable[arb]) -> Array:
    return np.array([float(v.mid()) for v in values])


def total(values: Iterable[arb]) -> arb:
    return sum(values, arb(0))


def norm(values: Iterable[arb]) -> arb:
    return total(v * v for v in values).sqrt()


def diagonal(A: arb_mat) -> list[arb]:
    return [A[i, i] for i in range(A.nrows())]


def matrix_of(sketch: Any, n: int) -> Array:
    """S (m, n) of a fitted `sketch_`: the rows it selects, or its entries."""
    if hasattr(sketch, "indices"):
        return np.eye(n)[np.asarray(sketch.indices)]
    return np.asarray(sketch.entries(range(sketch.size), range(n)))


def _unit_rows(S: Array) -> arb_mat:
    """S with rows of unit length; rows of zeros stay as they are."""
    rows = [[arb(float(s)) for s in row] for row in S]
    lengths = [norm(row) if any(s != 0 for s in row) else arb(1) for row in rows]
    return arb_mat([[s / a for s in row] for row, a in zip(rows, lengths, strict=True)])


def _independent_rows(W: arb_mat) -> list[int]:
    """Rows of a Gram matrix that span the others, by Cholesky with the largest pivot.

    A pivot that contains zero is zero: balls are far smaller than any pivot that is not.
    """
    rows, left, chosen = W.table(), list(range(W.nrows())), []
    while left:
        pivot = left[0]
        for j in left:
            if rows[j][j] > rows[pivot][pivot]:
                pivot = j
        if rows[pivot][pivot].contains(0):
            break
        chosen.append(pivot)
        left.remove(pivot)
        for i in left:
            ratio = rows[i][pivot] / rows[pivot][pivot]
            rows[i] = [a - ratio * b for a, b in zip(rows[i], rows[pivot], strict=True)]
    return sorted(chosen)


def _diagonal_matrix(values: list[arb]) -> list[list[arb]]:
    return [[v if i == j else arb(0) for j in range(len(values))] for i, v in enumerate(values)]
