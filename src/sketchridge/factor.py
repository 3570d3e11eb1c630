"""The factor F of the sketched kernel matrix, Ĝ = F Fᵀ, and its features: stable m×m algebra."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from sketchridge.backends import Backend, Points, Tall
from sketchridge.precision import EPS, FULL, safe
from sketchridge.rpcholesky import Landmarks, grow, no_landmarks, remaining, with_rows
from sketchridge.sample import Sample, sample_of
from sketchridge.sketches import EntrySketch, RowSketch, Sketch

__all__ = [
    "EntryFactor",
    "Factor",
    "RowFactor",
    "Sample",
    "factorize",
    "sample_of",
    "spectrum",
]

Array = np.ndarray
_EPS = EPS[FULL]
_ROWS = 256  # of a dense sketch, applied at a time


class Factor(ABC):
    """F (n, r) with Ĝ = F Fᵀ, for one sketch and sample."""

    sample: Sample
    sketch: Sketch
    precision: str  # of the products that made it
    nested: bool  # whether columns of F stay as they are when the sketch grows

    @property
    @abstractmethod
    def F(self) -> Tall:
        """(n, r)."""

    @property
    @abstractmethod
    def gram(self) -> Array:
        """FᵀMF: (r, r)."""

    @property
    @abstractmethod
    def complete(self) -> bool:
        """Whether Ĝ = G up to rounding, so that a larger sketch would change nothing."""

    @abstractmethod
    def sensitivity(self) -> Array:
        """By how much each column magnifies rounding in S G Sᵀ: (r,)."""

    @abstractmethod
    def features(self, points: Points, right: Array) -> Tall:
        """ψ(x)ᵀ A for a small A (r, q), ψ(x_i) being row i of F: (t, q)."""

    @abstractmethod
    def represented(self, at: Callable[[Points], Tall], right: Array) -> Tall:
        """The same for functionals whose representers' values at points (n', t) ``at`` gives."""

    @abstractmethod
    def extended(self, sample: Sample, kept: bool) -> Factor:
        """The factor of a sample whose first points are this one's, with ``kept`` old weights."""

    @abstractmethod
    def grown(self, size: int) -> Factor:
        """The factor with a sketch of ``size`` rows, or fewer where the numerical rank runs out."""

    @property
    def explained(self) -> Array:
        """Each column's share of tr K̂: (r,)."""
        return np.diagonal(self.gram)

    def noise(self) -> float:
        """What rounding in the sums may put K̂ off by, as a share of tr K̂ and of F itself."""
        size = np.sqrt(self.explained * self.sensitivity())
        trace = self.sample.scales.trace
        lost = self.sketch.size * EPS[self.precision] * (size @ (size + 2 * np.sqrt(trace)))
        return float(lost) if np.isfinite(lost) else np.inf


def factorize(sample: Sample, sketch: Sketch, precision: str) -> Factor:
    """The factor of the kernel matrix of a sample for a sketch as it stands.

    ``precision`` is that of a dense sketch's sums; landmarks are always exact to float64.
    """
    if isinstance(sketch, RowSketch):
        found = _landmarks(sample, sketch.indices)
        return RowFactor(sample, sketch, found.pivots, found.L, found)
    if isinstance(sketch, EntrySketch):
        return _applied(sample, sketch, precision, None, None, first=0)
    raise TypeError(f"No factor for a sketch of type {type(sketch).__name__}.")


def _landmarks(sample: Sample, rows: Array) -> Landmarks:
    start = no_landmarks(sample.backend, sample.diag.host()[:, 0])
    return with_rows(start, sample.points, sample.diag, rows)


def spectrum(backend: Backend, gram: Array) -> tuple[Array, Array]:
    """E (r,) in descending order and V (m, r) with FᵀMF = V E Vᵀ, without what rounding makes."""
    if not len(gram):
        return np.empty(0), np.empty((0, 0))
    return backend.eigh(gram, len(gram) * _EPS)


@dataclass(frozen=True, eq=False)
class RowFactor(Factor):
    """The factor of a sketch that selects points p: F = k(X, X_p) L⁻ᵀ.

    ``made`` is where the columns came from, if they were made; otherwise, in a model that was
    loaded from a file, they are made again when they are needed, and L with them where it was too
    large to be stored.
    """

    sample: Sample
    sketch: RowSketch
    rows: Array  # (r,): p
    lower: Array | None  # (r, r): L
    made: Landmarks | None = None
    known: Array | None = None  # the part of FᵀWF that is known already
    kept: Points | None = None  # the landmarks themselves, in a model without its rows

    precision = FULL
    nested = True

    @property
    def pivots(self) -> Array:
        """The rows p: (r,)."""
        return self.landmarks.pivots if self.lower is None else self.rows

    @property
    def L(self) -> Array:
        """Lower triangular: (r, r)."""
        return self.landmarks.L if self.lower is None else self.lower

    @cached_property
    def landmark_points(self) -> Points:
        """The landmarks themselves, taken from the rows once."""
        return self.sample.points.take(self.pivots) if self.kept is None else self.kept

    @cached_property
    def landmarks(self) -> Landmarks:
        """The columns, and what they leave unexplained."""
        if self.made is not None:
            return self.made
        if self.lower is None:
            return _landmarks(self.sample, self.rows)
        F = self.features(self.sample.points, np.eye(len(self.pivots))).held()
        diag = self.sample.diag
        return Landmarks(self.pivots, self.L, F, remaining(diag, F, diag, len(self.pivots)))

    @property
    def F(self) -> Tall:
        return self.landmarks.F

    @cached_property
    def gram(self) -> Array:
        if self.known is None or not len(self.known):
            return self.sample.gram(self.F)
        known = self.known / self.sample.total
        old = self.F.columns(0, len(known))
        new = self.F.columns(len(known))
        across = self.sample.gram(old, new)
        return np.block([[known, across], [across.T, self.sample.gram(new)]])

    @property
    def complete(self) -> bool:
        if self.sketch.size >= len(self.sample):
            return True
        return not self.landmarks.residual.mass() > 0

    def sensitivity(self) -> Array:
        scale = np.sqrt(self.sample.diag.take(self.pivots)[:, 0])
        inverse = self.sample.backend.solve_triangular(self.L, np.diag(scale))
        return (inverse**2).sum(axis=1)

    def features(self, points: Points, right: Array) -> Tall:
        backend = self.sample.backend
        none = backend.tall(np.empty((len(points), 0)))
        corner = np.empty((len(self.pivots), 0))
        return backend.schur(points, self.landmark_points, none, corner, self.L) @ right

    def represented(self, at: Callable[[Points], Tall], right: Array) -> Tall:
        backend = self.sample.backend
        values = at(self.landmark_points).host()  # (r, t)
        return backend.tall(backend.solve_triangular(self.L, values).T @ right)

    def extended(self, sample: Sample, kept: bool) -> RowFactor:
        n_old = len(self.sample)
        F = self.features(sample.points.take(slice(n_old, None)), np.eye(len(self.pivots))).held()
        diag = sample.diag.rows(n_old)
        residual = self.landmarks.residual.append(remaining(diag, F, diag, len(self.pivots)))
        made = replace(self.landmarks, F=self.F.append(F), residual=residual)
        known = None
        if kept:
            known = self.gram * self.sample.total + F.gram(weights=sample.weights.rows(n_old))
        return replace(self, sample=sample, made=made, known=known)

    def grown(self, size: int) -> RowFactor:
        s = self.sample
        more = size - self.sketch.size
        room = len(s) * (more + 4 * min(more, 128)) + 6 * size**2  # columns, and blocks of them
        s.backend.reserve(room, f"A sketch of {size:,} rows")
        found, sketch = grow(self.landmarks, s.points, s.weights, s.diag, self.sketch, size)
        known = self.gram * s.total
        return RowFactor(s, sketch, found.pivots, found.L, found, known)


@dataclass(frozen=True, eq=False)
class EntryFactor(Factor):
    """F = (G Sᵀ) R with R Rᵀ = (S G Sᵀ)⁺: a sketch with entries everywhere.

    The raw sums G Sᵀ are kept, to be added to, and so is Sᵀ while the model is in memory.
    """

    sample: Sample
    sketch: EntrySketch
    precision: str
    sums: Tall | None  # (n, m); None while there are none
    R: Array  # (m, r)
    amplified: Array | None = None  # (r,)
    transposed: Tall | None = None  # Sᵀ: (n, m)

    nested = False

    @cached_property
    def F(self) -> Tall:
        return (self.sums @ self.R).held() if self.sums is not None else self._nothing

    @property
    def _nothing(self) -> Tall:
        return self.sample.backend.tall(np.empty((len(self.sample), 0)))

    @cached_property
    def St(self) -> Tall:
        """Sᵀ: (n, m)."""
        if self.transposed is not None:
            return self.transposed
        return self.sample.backend.generate(
            self.sketch, range(self.sketch.size), range(len(self.sample))
        )

    @cached_property
    def gram(self) -> Array:
        return self.sample.gram(self.F)

    @property
    def complete(self) -> bool:
        trace = self.sample.scales.trace
        coarse = self.sketch.size * EPS[self.precision] * trace
        return bool(trace - self.explained.sum() <= 8 * (self.noise() + coarse)) and bool(
            self.noise() <= trace / 100
        )

    def sensitivity(self) -> Array:
        return np.empty(0) if self.amplified is None else self.amplified

    def features(self, points: Points, right: Array) -> Tall:
        if not self.sketch.size:
            return self.sample.backend.tall(np.empty((len(points), 0))) @ right
        St = self.St @ (self.R @ right)
        backend = self.sample.backend
        precision = safe(self.precision, points.largest, points.kernel.growth)
        found = backend.matmul(points, self.sample.points, St, precision=precision)
        far = self._far(found, right, precision)
        if not len(far):
            return found
        values = np.array(found.host())
        some = points.take(far)
        values[far] = backend.matmul(some, self.sample.points, St, precision=FULL).host()
        return backend.tall(values)

    def _far(self, found: Tall, right: Array, precision: str) -> Array:
        """Rows of ψᵀA so small, beside those of training points, that kernel values behind them may
        have left the range of the precision."""
        limit = self.sample.backend.far[precision]
        if not limit:
            return np.empty(0, dtype=int)
        squares = found.map(lambda f: (f * f).sum(axis=1)[:, None]).host()[:, 0]
        usual = np.einsum("ij,ij->", right, self.gram @ right)
        return np.flatnonzero(squares < limit * usual)

    def represented(self, at: Callable[[Points], Tall], right: Array) -> Tall:
        values = at(self.sample.points)  # (n, t)
        if not self.sketch.size:
            return self.sample.backend.tall(np.zeros((values.shape[1], right.shape[1])))
        return self.sample.backend.tall(values.gram(self.St) @ (self.R @ right))

    def extended(self, sample: Sample, kept: bool) -> EntryFactor:
        """Old rows gain k(X_old, X_new) S_newᵀ, new rows are k(X_new, X) Sᵀ: O(m n n_new)."""
        n_old = len(self.sample)
        backend = sample.backend
        rows = range(self.sketch.size)
        old = sample.points.take(slice(0, n_old))
        new = sample.points.take(slice(n_old, None))
        St_new = backend.generate(self.sketch, rows, range(n_old, len(sample)))
        St = self.St.append(St_new)
        gained = backend.matmul(old, new, St_new, precision=self.precision)
        sums = self._sums.map(lambda a, b: a + b, gained)
        added = backend.matmul(new, sample.points, St, precision=self.precision)
        return _entry_factor(sample, self.sketch, self.precision, sums.append(added.held()), St)

    @property
    def _sums(self) -> Tall:
        return self._nothing if self.sums is None else self.sums

    def grown(self, size: int) -> EntryFactor:
        sketch = self.sketch.grown(size)
        St = self.St if self.sketch.size else None
        return _applied(self.sample, sketch, self.precision, self.sums, St, first=self.sketch.size)


def _applied(
    sample: Sample,
    sketch: EntrySketch,
    precision: str,
    sums: Tall | None,
    St: Tall | None,
    *,
    first: int,
) -> EntryFactor:
    """The factor with the sketch's rows from ``first`` on applied too. O(n² m)."""
    points = sample.points
    more = sketch.size - first
    room = 6 * (len(sample) * more + sketch.size**2)
    sample.backend.reserve(room, f"A sketch of {sketch.size:,} rows")
    nothing = sample.backend.tall(np.empty((len(sample), 0)))
    sums = nothing if sums is None else sums
    St = nothing if St is None else St
    for start in range(first, sketch.size, _ROWS):
        rows = range(start, min(start + _ROWS, sketch.size))
        new = sample.backend.generate(sketch, rows, range(len(sample)))
        St = St.beside(new)
        sums = sums.beside(sample.backend.matmul(points, points, new, precision=precision))
    if not sketch.size:
        return EntryFactor(sample, sketch, precision, None, np.empty((0, 0)))
    return _entry_factor(sample, sketch, precision, sums, St)


def _entry_factor(
    sample: Sample, sketch: EntrySketch, precision: str, sums: Tall, St: Tall
) -> EntryFactor:
    """R = C Q Ω^(−1/2) from C (S G Sᵀ) C = Q Ω Qᵀ, with C = diag(1/p).

    Each entry of G Sᵀ is a sum of terms of at most √(g_i g_j)|S_lj|, with g = diag G, so rounding
    in entry (l, k) of S G Sᵀ is at most ε p_l p_k with p_l = Σ_j √g_j |S_lj|. C makes that ε in
    every entry: a row of S whose sums cancel weighs as little as it is worth, where a diagonal of 1
    would let its rounding spoil what other rows know. ω that rounding decides are dropped.
    """
    backend = sample.backend
    W = St.gram(sums)
    p = St.sum(lambda s, g: (abs(s) * g**0.5).sum(axis=0), sample.diag)  # (m,)
    d = np.diagonal(W)
    lost = EPS[precision] * p**2
    scale = np.where(d > lost, 1 / np.where(d > lost, p, 1.0), 0.0)
    omega, Q = backend.eigh(scale[:, None] * (W + W.T) / 2 * scale, len(W) * _EPS)
    R = scale[:, None] * Q / np.sqrt(omega)
    amplified = p**2 @ R**2
    return EntryFactor(sample, sketch, precision, sums, R, amplified, St)
