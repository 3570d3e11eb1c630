"""The pool of unlabeled points: read in chunks, and scored at a cost that follows the new labels, not all of them."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from sketchridge.factor import RowFactor
from sketchridge.progress import status
from sketchridge.state import Ridge, State, row_blocks

__all__ = ["Pool", "PoolVariance"]

Array = np.ndarray
_CHUNK = 2**15  # rows read at a time where nothing else limits them
_MEMORY = 2**30  # bytes of statistics above which they live in a file
_PROBES = 64
_AGREEMENT = 0.01


class Pool:
    """The rows that may be asked for: any array with rows, memory-mapped or not, which is never copied whole."""

    def __init__(self, data: Any) -> None:
        array = data if isinstance(data, np.ndarray) else np.asarray(data)
        if array.ndim != 2 or not array.size:
            raise ValueError(f"The pool must be a table of points in rows and features in columns, got shape {array.shape}.")
        if array.dtype.kind not in "fiub":
            raise ValueError(f"The pool must be numeric, got {array.dtype}: encode text columns first.")
        self.array = array
        digest = hashlib.blake2b(repr(array.shape).encode(), digest_size=16)
        for rows in row_blocks(len(array), array.shape[1]):
            X = self[rows]
            if not np.isfinite(X).all():
                bad = rows.start + int(np.flatnonzero(~np.isfinite(X).all(axis=1))[0])
                raise ValueError(f"Row {bad} of the pool has a missing or infinite value: remove or fill such rows first.")
            digest.update(X)
        self.fingerprint = digest.hexdigest()

    def __len__(self) -> int:
        return len(self.array)

    def __getitem__(self, rows: slice | Array) -> Array:
        return np.ascontiguousarray(self.array[rows], dtype=float)

    def chunks(self, width: int) -> Iterator[slice]:
        """Slices of rows so short that an array of that width is small."""
        yield from row_blocks(len(self), max(width, 2**26 // (8 * _CHUNK)))

    def apply(self, function: Callable[[Array], Array], width: int = 1) -> Array:
        """A function of points, chunk by chunk: (p,)."""
        out = np.empty(len(self))
        with status("Scoring the pool") as say:
            for rows in self.chunks(width):
                out[rows] = function(self[rows])
                say(f"Scoring the pool: {rows.stop:,} of {len(self):,} points")
        return out


@dataclass(frozen=True, eq=False)
class _Columns:
    """An array of statistics (p, width), in memory or in a scratch file that goes with it."""

    array: Array | None
    file: Any
    shape: tuple[int, int]

    @classmethod
    def make(cls, shape: tuple[int, int], free: int) -> _Columns:
        """Zeros, in memory where they fit into so many bytes."""
        size = 8 * shape[0] * shape[1]
        if size <= free:
            return cls(np.zeros(shape), None, shape)
        file = tempfile.NamedTemporaryFile(prefix="sketchridge-")
        file.truncate(size)
        return cls(None, file, shape)

    def __getitem__(self, rows: slice) -> Array:
        """A view of some rows that can be written to. A file is mapped anew each time, so that only these rows take memory."""
        if self.array is not None:
            return self.array[rows]
        width = self.shape[1]
        shape = (rows.stop - rows.start, width)
        return np.memmap(self.file, dtype=float, mode="r+", offset=8 * width * rows.start, shape=shape)


class PoolVariance:
    """V2 over a pool as labels arrive.

    With a landmark sketch the rows F_i of the factor never change, and V2(x) follows from ‖k_x‖², 1ᵀk_x and Fᵀk_x, sums over the
    labeled points to which new ones are added: O(m·n_new·p + m²·p) a round. New columns of F, when the sketch grows, take a
    pass over all labeled points. Other sketches are scored afresh.

    Parameters
    ----------
    pool : the points.
    memory : bytes of statistics that may be held in memory; what is larger lives in a scratch file.
    """

    def __init__(self, pool: Pool, *, memory: int = _MEMORY) -> None:
        self.pool, self.memory = pool, memory
        self.residual_form = False
        self._reset()

    def _reset(self) -> None:
        self._state: State | None = None
        self._sums = _Columns.make((len(self.pool), 2), self.memory)  # ‖k_x‖² and 1ᵀk_x
        self._products: list[_Columns] = []  # Fᵀk_x, a piece for each time the sketch grew

    def __call__(self, ridge: Ridge) -> Array:
        """V2(x)/σ² for every row of the pool: (p,).

        The form by sums loses digits where λ is small against the kernel's smoothness; where it differs from the residual form by
        more than 1% on a few rows, all are computed in residual form, as ``residual_form`` then says.
        """
        if isinstance(ridge.state.factor, RowFactor):
            self._update(ridge.state)
            scores = self._scores(ridge)
            probe = np.linspace(0, len(self.pool) - 1, min(_PROBES, len(self.pool))).astype(int)
            wanted = ridge.v2(self.pool[probe])
            self.residual_form = bool((np.abs(scores[probe] - wanted) > _AGREEMENT * wanted).any())
            if not self.residual_form:
                return scores
        self.residual_form = True
        return self.pool.apply(ridge.v2)

    def _update(self, state: State) -> None:
        """Bring the sums up to a state that extends the one they stand for; start again for any other."""
        old = self._state
        if old is not None and not _extends(state, old):
            self._reset()
            old = None
        n_old, r_old = old.factor.F.shape if old is not None else (0, 0)
        n, r = state.factor.F.shape
        self._state = state
        if n > n_old:
            self._add_rows(state, n_old, r_old)
        if r > r_old:
            self._add_columns(state, r_old)

    def _add_rows(self, state: State, n_old: int, r: int) -> None:
        """Sums over the points from ``n_old`` on, for the columns there are."""
        X, backend = state.X[n_old:], state.backend
        right = np.column_stack([state.factor.F[n_old:, :r], np.ones(len(X))])
        none = np.empty((len(X), 0))
        for rows, points in self._chunks(r):
            left = backend.matmul(state.kernel, points, X, right)
            sums = self._sums[rows]
            sums[:, 0] += backend.residual_sqnorm(state.kernel, points, X, none, np.empty((len(points), 0)))
            sums[:, 1] += left[:, r]
            start = 0
            for piece in self._products:
                piece[rows][:] += left[:, start : start + piece.shape[1]]
                start += piece.shape[1]

    def _add_columns(self, state: State, r_old: int) -> None:
        """A pass over all labeled points for the columns from ``r_old`` on."""
        F = state.factor.F[:, r_old:]
        held = sum(8 * piece.array.size for piece in [self._sums, *self._products] if piece.array is not None)
        piece = _Columns.make((len(self.pool), F.shape[1]), self.memory - held)
        for rows, points in self._chunks(F.shape[1]):
            piece[rows][:] = state.backend.matmul(state.kernel, points, state.X, F)
        self._products.append(piece)

    def _chunks(self, width: int) -> Iterator[tuple[slice, Array]]:
        with status("Updating the pool's statistics") as say:
            for rows in self.pool.chunks(width + 1):
                yield rows, self.pool[rows]
                say(f"Updating the pool's statistics: {rows.stop:,} of {len(self.pool):,} points")

    def _scores(self, ridge: Ridge) -> Array:
        """From b = Hᵀk_x: (max(‖k_x‖² − Σ b²/E, 0) + Σ b²/E·(λ/(E+λ))²)/(nλ)²."""
        state, lam, n = ridge.state, ridge.lam, len(ridge.state.X)
        E, shrink = state.E, lam * ridge.D
        scores = np.empty(len(self.pool))
        for rows in self.pool.chunks(len(state.V) + 1):
            sqnorm, total = self._sums[rows].T
            left = np.concatenate([piece[rows] for piece in self._products], axis=1) if self._products else np.empty((len(total), 0))
            b = state.backend.product(left, state.V / np.sqrt(n))  # (t, r)
            a = b**2 / E
            inside = np.maximum(sqnorm - a.sum(axis=1), 0) + a @ shrink**2
            v2 = inside / (n * lam) ** 2
            if ridge.fit_intercept:
                v2 = self._with_intercept(ridge, v2, b, total)
            scores[rows] = v2
        return scores

    def _with_intercept(self, ridge: Ridge, v2: Array, b: Array, total: Array) -> Array:
        """‖w + (1 − 1ᵀw)u‖² from ‖w‖², with 1ᵀw = 1ᵀ(K̂+λI)⁻¹k_x/n and uᵀw = λ 1ᵀ(K̂+λI)⁻²k_x/(n·1ᵀ(I−Ĥ)1)."""
        lam, n, E, u = ridge.lam, len(ridge.state.X), ridge.state.E, ridge.unit_weights
        o = np.sqrt(E) * ridge.state.P[:, -1]  # Hᵀ1
        missing = 1 - (total - b @ (ridge.D * o)) / (n * lam)
        u_w = (total - b @ (o / E * (1 - (lam * ridge.D) ** 2))) / (n * lam * ridge.constant_gap)
        return np.maximum(v2 + 2 * missing * u_w + missing**2 * (u @ u), 0)


def _extends(new: State, old: State) -> bool:
    """Whether the rows and columns of the old factor are the first of the new one's."""
    if not isinstance(old.factor, RowFactor) or not isinstance(new.factor, RowFactor) or new.kernel is not old.kernel:
        return False
    r = len(old.factor.pivots)
    return np.array_equal(new.X[: len(old.X)], old.X) and np.array_equal(new.factor.pivots[:r], old.factor.pivots)
