"""The pool of unlabeled points: read in chunks, and scored at a cost that follows the new labels, not all of them."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from sketchridge.backends.base import Backend
from sketchridge.factor import RowFactor
from sketchridge.progress import status
from sketchridge.state import Ridge, State, row_blocks

__all__ = ["Pool", "PoolVariance"]

Array = np.ndarray
_POINTS = 2**15  # scored at a time where nothing is kept of them
_SUMS = 2**13  # points whose sums are updated at a time: what is computed of them stays in cache
_MEMORY = 2**30  # bytes of statistics above which they live in a file
_PROBES = 64
_AGREEMENT = 0.01
_TASK = "Updating the pool's statistics"


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
            digest.update(X.data)
        self.fingerprint = digest.hexdigest()

    def __len__(self) -> int:
        return len(self.array)

    def __getitem__(self, rows: slice | Array) -> Array:
        return np.ascontiguousarray(self.array[rows], dtype=float)

    def apply(self, function: Callable[[Array], Array], rows: Array) -> Array:
        """A function of points at some rows, chunk by chunk: (p,), 0 elsewhere."""
        out = np.zeros(len(self))
        for part in chunks(rows, _POINTS, "Scoring the pool"):
            out[part] = function(self[part])
        return out


def chunks(rows: Array, size: int, task: str) -> Iterator[Array]:
    """The rows, so many at a time."""
    with status(task) as say:
        for start in range(0, len(rows), size):
            yield rows[start : start + size]
            say(f"{task}: {min(start + size, len(rows)):,} of {len(rows):,} points")


@dataclass(frozen=True, eq=False)
class _Columns:
    """An array of statistics (p, width), where the backend computes or in a scratch file that goes with it."""

    backend: Backend
    array: Any
    file: Any
    shape: tuple[int, int]

    @classmethod
    def make(cls, backend: Backend, shape: tuple[int, int], free: int) -> _Columns:
        """Zeros, in memory where they fit into so many bytes."""
        size = 8 * shape[0] * shape[1]
        if size <= free:
            return cls(backend, backend.zeros(*shape), None, shape)
        file = tempfile.NamedTemporaryFile(prefix="sketchridge-")  # noqa: SIM115, it lives as long as the array
        file.truncate(size)
        return cls(backend, None, file, shape)

    @property
    def held(self) -> int:
        """Bytes in memory."""
        return 0 if self.array is None else 8 * self.shape[0] * self.shape[1]

    def __getitem__(self, rows: Array) -> Any:
        values = self._around(rows)[rows - rows[0]]
        return values if self.file is None else self.backend.asarray(values)

    def __setitem__(self, rows: Array, values: Any) -> None:
        self._around(rows)[rows - rows[0]] = values if self.file is None else self.backend.to_numpy(values)

    def _around(self, rows: Array) -> Any:
        """A view from the first to the last row. A file is mapped anew each time, so that only these take memory."""
        start, stop, width = int(rows[0]), int(rows[-1]) + 1, self.shape[1]
        if self.array is not None:
            return self.array[start:stop]
        return np.memmap(self.file, dtype=float, mode="r+", offset=8 * width * start, shape=(stop - start, width))


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
        self._state: State | None = None

    def _reset(self, backend: Backend) -> None:
        self._sums = _Columns.make(backend, (len(self.pool), 2), self.memory)  # ‖k_x‖² and 1ᵀk_x
        self._products: list[_Columns] = []  # Fᵀk_x, a piece for each time the sketch grew

    def __call__(self, ridge: Ridge, rows: Array) -> Array:
        """V2(x)/σ² at these rows of the pool, 0 at the others: (p,). A row that is left out once is not to come back.

        The form by sums loses digits where λ is small against the kernel's smoothness; where it differs from the residual form by
        more than 1% on a few rows, all are computed in residual form, as ``residual_form`` then says.
        """
        if isinstance(ridge.state.factor, RowFactor):
            self._update(ridge.state, rows)
            scores = self._scores(ridge, rows)
            probe = rows[np.linspace(0, len(rows) - 1, min(_PROBES, len(rows))).astype(int)]
            wanted = ridge.v2(self.pool[probe])
            self.residual_form = bool((np.abs(scores[probe] - wanted) > _AGREEMENT * wanted).any())
            if not self.residual_form:
                return scores
        self.residual_form = True
        return self.pool.apply(ridge.v2, rows)

    def _update(self, state: State, rows: Array) -> None:
        """Bring the sums up to a state that extends the one they stand for; start again for any other."""
        old = self._state
        if old is None or not _extends(state, old):
            self._reset(state.backend)
            old = None
        n_old, r_old = old.factor.F.shape if old is not None else (0, 0)
        n, r = state.factor.F.shape
        self._state = state
        if n > n_old:
            self._add_rows(state, rows, n_old, r_old)
        if r > r_old:
            self._add_columns(state, rows, r_old)

    def _add_rows(self, state: State, rows: Array, n_old: int, r: int) -> None:
        """Sums over the points from ``n_old`` on, for the columns there are."""
        X, backend = state.X[n_old:], state.backend
        right = backend.xp.concat([state.factor.F[n_old:, :r], backend.zeros(len(X), 1) + 1], axis=1)
        none = backend.zeros(len(X), 0)
        for part in chunks(rows, _SUMS, _TASK):
            points = self.pool[part]
            left = backend.matmul(state.kernel, points, X, right)
            sqnorm = backend.residual_sqnorm(state.kernel, points, X, none, backend.zeros(len(points), 0))
            self._sums[part] += backend.xp.stack([sqnorm, left[:, r]], axis=1)
            start = 0
            for piece in self._products:
                piece[part] += left[:, start : start + piece.shape[1]]
                start += piece.shape[1]

    def _add_columns(self, state: State, rows: Array, r_old: int) -> None:
        """A pass over all labeled points for the columns from ``r_old`` on."""
        F = state.factor.F[:, r_old:]
        held = sum(piece.held for piece in [self._sums, *self._products])
        piece = _Columns.make(state.backend, (len(self.pool), F.shape[1]), self.memory - held)
        for part in chunks(rows, _SUMS, _TASK):
            piece[part] = state.backend.matmul(state.kernel, self.pool[part], state.X, F)
        self._products.append(piece)

    def _scores(self, ridge: Ridge, rows: Array) -> Array:
        """From b = Hᵀk_x: (max(‖k_x‖² − Σ b²/E, 0) + Σ b²/E·(λ/(E+λ))²)/(nλ)²."""
        state, lam, n, backend, xp = ridge.state, ridge.lam, len(ridge.state.X), ridge.state.backend, ridge.state.xp
        root, kept = xp.sqrt(state.E), (lam * ridge.D) ** 2
        basis, sums = state.V / (np.sqrt(n) * root), xp.stack([xp.ones_like(kept), kept], axis=1)
        scores = np.zeros(len(self.pool))
        for part in chunks(rows, _SUMS, "Scoring the pool"):
            sqnorm, total = self._sums[part].T
            left = xp.concat([piece[part] for piece in self._products] or [backend.zeros(len(part), 0)], axis=1)
            a = backend.product(left, basis)  # (t, r): b/√E
            explained, remaining = (a**2 @ sums).T
            v2 = (xp.clip(sqnorm - explained, min=0) + remaining) / (n * lam) ** 2
            if ridge.fit_intercept:
                v2 = self._with_intercept(ridge, v2, a * root, total)
            scores[part] = backend.to_numpy(v2)
        return scores

    def _with_intercept(self, ridge: Ridge, v2: Any, b: Any, total: Any) -> Any:
        """‖w + (1 − 1ᵀw)u‖² from ‖w‖², with 1ᵀw = 1ᵀ(K̂+λI)⁻¹k_x/n and uᵀw = λ 1ᵀ(K̂+λI)⁻²k_x/(n·1ᵀ(I−Ĥ)1)."""
        lam, n, E, u, xp = ridge.lam, len(ridge.state.X), ridge.state.E, ridge.unit_weights, ridge.state.xp
        o = xp.sqrt(E) * ridge.state.P[:, -1]  # Hᵀ1
        missing = 1 - (total - b @ (ridge.D * o)) / (n * lam)
        u_w = (total - b @ (o / E * (1 - (lam * ridge.D) ** 2))) / (n * lam * ridge.constant_gap)
        return xp.clip(v2 + 2 * missing * u_w + missing**2 * (u @ u), min=0)


def _extends(new: State, old: State) -> bool:
    """Whether the rows and columns of the old factor are the first of the new one's."""
    if not isinstance(old.factor, RowFactor) or not isinstance(new.factor, RowFactor) or new.kernel is not old.kernel:
        return False
    r = len(old.factor.pivots)
    return np.array_equal(new.X[: len(old.X)], old.X) and np.array_equal(new.factor.pivots[:r], old.factor.pivots)
