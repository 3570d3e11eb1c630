"""(K + λI)z = k with the sketch as preconditioner, and the directions of conjugate gradients.

K = M^½ G M^½ and k = M^½ k_x. With an intercept z lies where qᵀz = 1 for the unit vector q = M^½ 1,
and residuals are taken orthogonal to q.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sketchridge.backends import Tall
from sketchridge.precision import FULL
from sketchridge.query import Share
from sketchridge.ridge import Ridge

__all__ = ["System", "norms"]

Array = np.ndarray
_DEPENDENT = 1e-12  # squared length below which a direction is a combination of the others
_TINY = np.finfo(float).tiny


def norms(A: Tall) -> Array:
    """The lengths of the columns: (q,)."""
    return np.sqrt(A.sum(lambda a: (a * a).sum(axis=0)))


@dataclass(frozen=True, eq=False)
class System:
    """(K + λI)z = k with the sketch as preconditioner, products in one precision.

    With an intercept z lies where qᵀz is ``total``, one for all columns or one for each.
    """

    ridge: Ridge
    precision: str
    total: float | Array = 1.0

    @property
    def root(self) -> Tall:
        """q = M^½ 1: (n, 1)."""
        return self.ridge.sample.root

    @cached_property
    def along(self) -> Tall:
        """M^½e/slack, along which z is moved to qᵀz = 1: (n, 1)."""
        intercept = self.ridge.intercept
        assert intercept is not None
        slack = intercept.slack
        moved = intercept.e.map(lambda e, m: e * m / slack, self.root)
        total = float(self.root.gram(moved)[0, 0])  # 1 but for rounding
        return moved.map(lambda u: u / total)

    def product(self, Z: Tall) -> Tall:
        """(K + λI)Z."""
        sample = self.ridge.sample
        lam = self.ridge.lam
        size = np.ones(Z.shape[1])
        if self.precision != FULL:  # whose range columns may leave
            size = np.ldexp(size, np.frexp(norms(Z))[1])
        scaled = Z.map(lambda z, m, s: z * m / s, self.root, small=(size,))
        products = sample.backend.matmul(
            sample.points, sample.points, scaled, precision=self.precision
        )
        return products.map(lambda p, m, z, s: p * m * s + lam * z, self.root, Z, small=(size,))

    def project(self, R: Tall) -> Tall:
        """R with the direction q taken out, where there is an intercept."""
        if self.ridge.intercept is None:
            return R
        along = self.root.gram(R)  # (1, t)
        return R.map(lambda r, q, a: r - q * a, self.root, small=(along,))

    def residual(self, B: Tall, Z: Tall) -> Tall:
        return self.project(B.map(lambda b, kz: b - kz, self.product(Z)))

    def precondition(self, R: Tall) -> Tall:
        """(K̂ + λI)⁻¹R = (R − H D HᵀR)/λ with H = M^½T, then moved to qᵀz = 0."""
        ridge = self.ridge
        lam = ridge.lam
        T = ridge.T
        b = T.gram(R.scaled(self.root))  # (r, t)
        fitted = T @ ridge.shrink(b.T).T
        Z = R.map(lambda r, f, m: (r - f * m) / lam, fitted, self.root)
        return self._moved(Z, 0.0)

    def start(self, B: Tall, a: Array | None, theta: Share) -> Tall:
        """θ z₂ + (1 − θ) z₃ from k = B (n, t) and a(x) (t, r), which z₂ alone does not need."""
        Z = self.precondition(B)
        if a is not None:
            fitted = self.ridge.basis.factor.F @ (self.ridge.basis.V @ self.ridge.shrink(a).T)
            share = np.broadcast_to(theta, len(a))
            Z = Z.map(lambda z, f, m, s: s * z + (1 - s) * f * m, fitted, self.root, small=(share,))
        return self.normalized(Z)

    def normalized(self, Z: Tall, columns: Array | None = None) -> Tall:
        """Z with qᵀz as it must be, whatever rounding did, where there is an intercept; Z may be
        some of the columns."""
        each = np.ndim(self.total) > 0 and columns is not None
        return self._moved(Z, np.asarray(self.total)[columns] if each else self.total)

    def _moved(self, Z: Tall, to: float | Array) -> Tall:
        if self.ridge.intercept is None:
            return Z
        missing = to - self.root.gram(Z)  # (1, t)
        return Z.map(lambda z, u, a: z + u * a, self.along, small=(missing,))

    def directions(self, R: Tall, P: Tall | None, Q: Tall | None) -> tuple[Tall, Tall]:
        """A basis P' of the preconditioned residuals with P'ᵀ(K + λI)P' = I, conjugate to P, and
        Q' = (K + λI)P'.

        What depends on other columns, or has a curvature below λ by rounding, is left out.
        """
        eigh = self.ridge.sample.backend.eigh
        D = self.precondition(R)
        if P is not None and Q is not None and P.shape[1]:
            D = D.map(lambda d, p: d - p, P @ Q.gram(D))
        length = norms(D) + _TINY
        D = D.map(lambda d, s: d / s, small=(length,))
        squares, U = eigh(D.gram())
        some = squares > _DEPENDENT
        P = (D @ (U[:, some] / np.sqrt(squares[some]))).held()
        Q = self.project(self.product(P))
        curvature, U = eigh(P.gram(Q))
        some = curvature > self.ridge.lam / 2
        U = U[:, some] / np.sqrt(curvature[some])
        return (P @ U).held(), (Q @ U).held()
