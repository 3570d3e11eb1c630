"""What is asked of a fitted model: linear functionals of the function, such as its value at x.

A functional is known by its representer, which stands where k_x does for the value at x: for
Σ_j a_j f(x_j) it is k_a = Σ_j a_j k(·, x_j). So means, variances, bounds and refinement are the
same for all of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from scipy.sparse import issparse

from sketchridge.backends import Backend, Points, Tall
from sketchridge.factor import Factor, Sample
from sketchridge.precision import FULL, canceled, safe
from sketchridge.progress import passed
from sketchridge.rows import positions

__all__ = ["AtPoints", "Contrasts", "Functionals", "Query", "Share", "Theta", "share_at"]

Array = np.ndarray


class Query(ABC):
    """Some functionals, t of them, of functions that the kernel makes."""

    backend: Backend
    formed_once: bool = False  # whether a second pass over the data costs nothing

    @abstractmethod
    def __len__(self) -> int: ...

    @property
    @abstractmethod
    def constant(self) -> Array:
        """What each functional makes of the constant 1: (t,)."""

    @abstractmethod
    def safe(self, precision: str) -> str:
        """The precision, or float64 where the question needs it."""

    @abstractmethod
    def features(self, factor: Factor, right: Array) -> Tall:
        """ψᵀA for a small A, with ψ(x) or what the functional makes of ψ: (t, q)."""

    @abstractmethod
    def moments(self, sample: Sample, T: Tall, precision: str) -> tuple[Array, Tall]:
        """k_xᵀMk_x (t,) and k_xᵀMT (t, q)."""

    @abstractmethod
    def products(self, sample: Sample, T: Tall, precision: str) -> Tall:
        """k_xᵀMT: (t, q)."""

    @abstractmethod
    def residual_sqnorm(self, sample: Sample, T: Tall, C: Tall, precision: str) -> Array:
        """(k_x − T c_x)ᵀM(k_x − T c_x): (t,)."""

    @abstractmethod
    def against(self, sample: Sample, T: Tall, precision: str) -> Tall:
        """k_xᵀ T: (t, q)."""

    @abstractmethod
    def at(self, points: Points) -> Tall:
        """The representers' values at some points, a column each: (n', t)."""

    def columns(self, sample: Sample) -> Tall:
        """k_x itself: (n, t)."""
        return self.at(sample.points)

    @abstractmethod
    def prior(self) -> Array:
        """k(x, x), the squared norms of the representers: (t,)."""

    @abstractmethod
    def cross(self) -> Array:
        """k(x, z), the inner products of the representers: (t, t)."""

    @abstractmethod
    def known_rows(self, sample: Sample) -> Array:
        """Which training row's value each functional is, −1 for none: (t,)."""

    @abstractmethod
    def rounding(self) -> Array:
        """What rounding may put k_x off by, in the norm of M, where sums cancel in it: (t,)."""

    @abstractmethod
    def some(self, rows: slice | Array) -> Self:
        """A part of the question."""

    def in_blocks(
        self, width: int, function: Callable[..., Array], *along: Array, formed: bool = False
    ) -> Array:
        """The function of parts so short that matrices of that width are small, and of the parts of
        what goes ``along`` (t, …), put together.

        ``formed`` says that the function needs k_x at all training rows.
        """
        size = self._block(max(width, 1), formed)
        parts = []
        for start in range(0, max(len(self), 1), size):
            if size < len(self):
                passed(start, len(self))
            part = slice(start, min(start + size, len(self)))
            parts.append(function(self.some(part), *(each[part] for each in along)))
        return np.concatenate(parts)

    def _block(self, width: int, formed: bool) -> int:
        return min(max(1, self.backend.block_bytes // (8 * width)), self.backend.longest)


@dataclass(frozen=True, eq=False)
class AtPoints(Query):
    """The value of the function at some points; rows of X and the training rows as they were
    ``given`` tell which of them are the same, since coordinates may round differently."""

    points: Points
    given: tuple[Array, Array] | None = None  # (t, d) and (n, d)

    def __len__(self) -> int:
        return len(self.points)

    @property
    def backend(self) -> Backend:  # type: ignore[override]
        return self.points.backend

    @property
    def constant(self) -> Array:
        return np.ones(len(self))

    def safe(self, precision: str) -> str:
        return safe(precision, self.points.largest, self.points.kernel.growth)

    def features(self, factor: Factor, right: Array) -> Tall:
        return factor.features(self.points, right)

    def moments(self, sample: Sample, T: Tall, precision: str) -> tuple[Array, Tall]:
        squares, products = sample.backend.moments(
            self.points, sample.points, T, weights=sample.weights, precision=precision
        )
        total = sample.total
        return squares / total, products.map(lambda block: block / total)

    def products(self, sample: Sample, T: Tall, precision: str) -> Tall:
        sums = sample.backend.matmul(
            self.points, sample.points, T, weights=sample.weights, precision=precision
        )
        total = sample.total
        return sums.map(lambda block: block / total)

    def residual_sqnorm(self, sample: Sample, T: Tall, C: Tall, precision: str) -> Array:
        squares = sample.backend.residual_sqnorm(
            self.points, sample.points, T, C, weights=sample.weights, precision=precision
        )
        return squares / sample.total

    def against(self, sample: Sample, T: Tall, precision: str) -> Tall:
        backend = sample.backend

        def block(some: AtPoints) -> Tall:
            return backend.matmul(some.points, sample.points, T, precision=precision)

        width = backend.width_for(len(sample))
        if not width or len(self) <= self._block(width, False):
            return block(self)
        return backend.tall(self.in_blocks(width, lambda some: block(some).host()))

    def at(self, points: Points) -> Tall:
        return self.backend.block(points, self.points)

    def prior(self) -> Array:
        return self.points.diag()

    def cross(self) -> Array:
        return np.array(self.at(self.points).host())

    def known_rows(self, sample: Sample) -> Array:
        if self.given is None:
            return positions(sample.points.host(), self.points.host())
        X, training = self.given
        return positions(training, X)

    def rounding(self) -> Array:
        return np.zeros(len(self))

    def some(self, rows: slice | Array) -> AtPoints:
        given = None if self.given is None else (self.given[0][rows], self.given[1])
        return AtPoints(self.points.take(rows), given)


class Functionals(Query):
    """Functionals of many values: their representers are formed, in float64.

    Concrete classes know ``sample``, the training rows, and give ``at``.
    """

    sample: Sample
    formed_once = True

    @property
    def backend(self) -> Backend:  # type: ignore[override]
        return self.sample.backend

    @cached_property
    def formed(self) -> Tall:
        """k_a at the training rows: (n, t)."""
        return self.at(self.sample.points)

    def columns(self, sample: Sample) -> Tall:
        return self.formed

    def safe(self, precision: str) -> str:
        return FULL

    def features(self, factor: Factor, right: Array) -> Tall:
        return factor.represented(self.at, right)

    def moments(self, sample: Sample, T: Tall, precision: str) -> tuple[Array, Tall]:
        squares = self.formed.sum(lambda k, w: (w * k * k).sum(axis=0), sample.weights)
        return squares / sample.total, self.products(sample, T, precision)

    def products(self, sample: Sample, T: Tall, precision: str) -> Tall:
        return sample.backend.tall(sample.gram(self.formed, T))

    def residual_sqnorm(self, sample: Sample, T: Tall, C: Tall, precision: str) -> Array:
        fitted = T @ C.host().T
        squares = self.formed.sum(
            lambda k, f, w: (w * (k - f) * (k - f)).sum(axis=0), fitted, sample.weights
        )
        return squares / sample.total

    def against(self, sample: Sample, T: Tall, precision: str) -> Tall:
        return sample.backend.tall(self.in_blocks(1, lambda some: some.formed.gram(T), formed=True))

    def known_rows(self, sample: Sample) -> Array:
        return np.full(len(self), -1)

    def _block(self, width: int, formed: bool) -> int:
        size = super()._block(width, formed)
        if formed:
            size = min(size, self.backend.slab_bytes // (8 * len(self.sample)))
        return max(1, size)


@dataclass(frozen=True, eq=False)
class Contrasts(Functionals):
    """A f(X), sums of the function's values at some points: Σ_j A_ij f(x_j)."""

    sample: Sample
    points: Points  # X
    A: Any  # (t, points), dense or sparse by rows

    def __len__(self) -> int:
        return int(self.A.shape[0])

    @property
    def constant(self) -> Array:
        return np.asarray(self.A.sum(axis=1)).ravel()

    def at(self, points: Points) -> Tall:
        At = self.backend.tall(_dense(self.A).T)
        return self.backend.matmul(points, self.points, At, precision=FULL)

    def against(self, sample: Sample, T: Tall, precision: str) -> Tall:
        values = AtPoints(self.points).against(sample, T, precision).host()
        return self.backend.tall(self.A @ values)

    def prior(self) -> Array:
        return self.in_blocks(len(self.points), lambda some: np.diagonal(some.cross()).copy())

    def cross(self) -> Array:
        values = self.at(self.points).host()  # k(X, X) Aᵀ
        product = self.A @ values
        return (product + product.T) / 2

    def rounding(self) -> Array:
        scales = self.sample.scales
        farthest = float(self.points.squares().max(initial=0.0))
        size = abs(self.A) @ np.sqrt(self.points.diag() * scales.diag)
        return canceled(scales, farthest, len(self.points), np.asarray(size))

    def some(self, rows: slice | Array) -> Contrasts:
        A = self.A[rows]
        used = np.flatnonzero(np.asarray((A != 0).sum(axis=0)).ravel())
        if 2 * len(used) > len(self.points) or not len(used):
            return Contrasts(self.sample, self.points, A)
        return Contrasts(self.sample, self.points.take(used), A[:, used])


def _dense(A: Any) -> Array:
    return A.toarray() if issparse(A) else A


Share = float | Array  # of V2's weights, for all that is asked or for each: (t,)
Theta = Share | Callable[[Query], Array]  # the same, or by a function of what is asked


def share_at(theta: Theta, query: Query) -> Share:
    """θ, or one for each functional where a function is given."""
    return theta(query) if callable(theta) else theta
