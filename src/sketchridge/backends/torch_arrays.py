"""Points and tall matrices as PyTorch's tensors, on the CPU or on a GPU, and algebra there."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from scipy.linalg import cho_factor, cho_solve, solve_triangular

from sketchridge.backends import memory, restored
from sketchridge.backends.base import REMEDY, Backend
from sketchridge.backends.elsewhere import Unreachable
from sketchridge.backends.philox import signs
from sketchridge.backends.points import Points
from sketchridge.backends.slices import slices
from sketchridge.backends.tall import Tall
from sketchridge.backends.torch_loo import criterion_at, left_out
from sketchridge.kernels import DistanceKernel, Kernel
from sketchridge.loo import Problem

__all__ = ["TorchArrays", "column_units", "powers"]

Array = np.ndarray
_PIECE_BYTES = {True: 2**28, False: 2**31}  # of some rows while they are used: CPU, GPU
_UNASKED = 2**28  # bytes that are taken without looking at the memory
_ENTRIES = 2**27  # of a sketch, made at a time
_KEPT = ("reserved", "allocated")  # by PyTorch, and of that in use
_LARGE = 256  # rows of a matrix from which its algebra is worth sending to the device
_ELSEWHERE = "use backend='numpy'"


class TorchArrays(Backend):
    """What a backend of PyTorch's keeps on its device, apart from products with k(P, Q)."""

    def __init__(self, *, device: str | None = None) -> None:
        self._asked = device
        self.device = torch.device(device or self._usual_device())
        self._constants = _Constants()
        self.evaluations = 2.0**31 if self._on_the_host else 2.0**38

    @property
    def slab_bytes(self) -> int:  # type: ignore[override]
        return _PIECE_BYTES[True] if self._on_the_host else int(min(2**33, self._free() / 8))

    def __reduce__(self) -> Any:
        return restored, (type(self).name, self._asked)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({'' if self._asked is None else f'device={self._asked!r}'})"

    def points(self, kernel: Kernel, U: Array) -> Points:
        self._check_device()
        if kernel.geometry == "opaque":
            return Points(self, kernel, np.array(U, dtype=float))
        self.check_memory(8 * U.size, f"A set of {len(U):,} points")
        return Points(self, kernel, self.array(U))

    # Tall matrices

    def array(self, A: Any) -> Any:
        self._check_device()
        if self._constants.knows(A):
            return self._constants.there(A, self._copied)
        return self._copied(A)

    def _copied(self, A: Any) -> Any:
        if not isinstance(A, torch.Tensor):
            self.check_memory(8 * np.size(A), f"An array of {np.size(A):,} numbers")
            copied = np.array(A, dtype=float, order="C", copy=self._on_the_host or None)
            A = torch.from_numpy(copied if copied.flags.writeable else copied.copy())
        return A.to(self.device, torch.float64)

    def host(self, A: Any) -> Array:
        return A.cpu().numpy()

    def empty(self, n: int, q: int) -> Any:
        self._check_device()
        self.check_memory(8 * n * q, f"A matrix of {n:,} × {q:,} numbers")
        return torch.empty((n, q), dtype=torch.float64, device=self.device)

    def joined(self, arrays: Sequence[Any], axis: int) -> Any:
        self.check_memory(8 * sum(A.numel() for A in arrays), "Putting matrices together")
        return torch.cat(list(arrays), dim=axis)

    def each(self, function: Callable[[slice], None], n: int, width: int) -> None:
        for rows in self._chunks(n, width):
            function(rows)

    def total(self, function: Callable[[slice], Any], n: int, width: int) -> Any:
        first, *others = self._chunks(n, width) or [slice(0, 0)]
        out = function(first)
        for rows in others:
            out = out + function(rows)
        return out

    def picked(self, column: Any, places: Array) -> Array:
        return self.host(torch.nonzero(column)[:, 0][places])

    def drawn(self, cumulative_of: Any, u: Array) -> Array:
        cumulative = torch.cumsum(cumulative_of, dim=0)
        rows = torch.searchsorted(cumulative, self.array(u) * cumulative[-1], right=True)
        return self.host(rows.clamp_(max=int(torch.nonzero(cumulative_of)[-1, 0])))

    def square(self, block: Any) -> Any:
        """blockᵀ block: blocks of columns from the diagonal on, at little more than half price."""
        q = block.shape[1]
        out = torch.empty((q, q), dtype=block.dtype, device=block.device)
        step = -(-q // 8) or 1
        for i in range(0, q, step):
            out[i : i + step, i:] = block[:, i : i + step].T @ block[:, i:]
        return torch.triu(out) + torch.triu(out, 1).T

    def worth_holding(self, n: int, q: int) -> bool:
        size = 8 * n * q
        return size <= _UNASKED or size <= self._free() / 2

    def generate(self, sketch: Any, rows: range, columns: range) -> Tall:
        out = self.empty(len(columns), len(rows))
        cell = getattr(sketch, "sign_cell", None)
        width = 1024 if cell is None else cell[1]
        for part in slices(len(columns), max(1, _ENTRIES // max(len(rows), 1) // width) * width):
            some = range(columns.start + part.start, columns.start + part.stop)
            if cell is None:
                out[part] = self.array(sketch.entries(rows, some)).T
            else:
                out[part] = signs(sketch.seed, rows, some, cell, self.device).T
        return Tall(self, (out,))

    # n×n algebra

    def cholesky(self, A: Any) -> Any:
        return _solved(torch.linalg.cholesky, A)

    def triangular(self, L: Any, B: Any, *, transposed: bool = False) -> Any:
        if transposed:
            return torch.linalg.solve_triangular(L.T, B, upper=True)
        return torch.linalg.solve_triangular(L, B, upper=False)

    def criterion(
        self, name: str, kernel: DistanceKernel, U: Array, alpha: float, problem: Problem
    ) -> tuple[float, Array, float] | None:
        if self._on_the_host:
            return super().criterion(name, kernel, U, alpha, problem)
        return criterion_at(name, kernel, U, alpha, problem, self.device)

    def left_out(
        self, kernel: DistanceKernel, U: Array, alpha: float, problem: Problem
    ) -> Array | None:
        if self._on_the_host:
            return super().left_out(kernel, U, alpha, problem)
        return left_out(kernel, U, alpha, problem, self.device)

    # m×m algebra, on the device where it is large

    def frozen(self, A: Any) -> Array:
        found = super().frozen(A)
        if found.size >= _LARGE**2:
            self._constants.add(found, A if isinstance(A, torch.Tensor) else None)
        return found

    def eigh(self, A: Array, cut: float | None = None) -> tuple[Array, Array]:
        if len(A) < _LARGE:
            values, vectors = map(torch.from_numpy, np.linalg.eigh(A))
        else:
            values, vectors = _solved(torch.linalg.eigh, self.array(A))
        dropped = 0 if cut is None else int((values <= cut * values[-1]).sum())
        kept = vectors[:, dropped:].flip(1).contiguous()
        return self.host(values[dropped:].flip(0)), self.frozen(kept)

    def solve_triangular(self, L: Array, B: Array) -> Array:
        if len(L) < _LARGE:
            return solve_triangular(L, B, lower=True, check_finite=False)
        columns = self.array(B).reshape(len(B), -1)
        solved = torch.linalg.solve_triangular(self.array(L), columns, upper=False)
        return self.host(solved).reshape(B.shape)

    def definite(self, A: Array) -> Callable[[Array], Array]:
        if len(A) < _LARGE:
            factor = cho_factor(A, lower=True)
            return lambda B: cho_solve(factor, B)
        L = _solved(torch.linalg.cholesky, self.array(A))

        def solve(B: Array) -> Array:
            solved = torch.cholesky_solve(self.array(B).reshape(len(B), -1), L)
            return self.host(solved).reshape(B.shape)

        return solve

    # The device

    @property
    def dense_rows(self) -> int:  # type: ignore[override]
        return 12_288 if self._on_the_host else 32_768

    @property
    def _on_the_host(self) -> bool:
        return self.device.type == "cpu"

    def _usual_device(self) -> str:
        return "cuda" if torch.cuda.is_available() else "cpu"

    def _check_device(self) -> None:
        if self.device.type == "cuda" and not torch.cuda.is_available():
            raise Unreachable(
                f"A GPU was asked for (device {str(self.device)!r}), but PyTorch "
                f"{torch.__version__} sees none: use backend='numpy', or install a build of "
                "PyTorch for your GPU and its driver."
            )

    def reserve(self, numbers: float, what: str, remedy: str = REMEDY) -> None:
        self.check_memory(int(8 * numbers), what, remedy)

    def check_memory(self, needed: int, what: str, remedy: str = REMEDY) -> None:
        if needed > _UNASKED:
            place = "" if self._on_the_host else " on the GPU"
            memory.check(needed, what + place, f"{remedy}, or {_ELSEWHERE}", free=self._free())

    def _free(self) -> float:
        """Bytes that can still be taken where the backend computes."""
        if self.device.type != "cuda":
            return memory.available()
        free = torch.cuda.mem_get_info(self.device)[0]
        stats = torch.cuda.memory_stats_as_nested_dict(self.device)  # memory_reserved is slow
        reserved, taken = (stats[f"{name}_bytes"]["all"]["current"] for name in _KEPT)
        return free + reserved - taken

    def _zeros(self, n: int, q: int) -> Any:
        return self.empty(n, q).zero_()

    def _chunks(self, n: int, width: int) -> list[slice]:
        """Slices of rows of a tall matrix of that width."""
        return slices(n, max(1, _PIECE_BYTES[self._on_the_host] // (8 * max(width, 1))))


class _Constants:
    """Host arrays that nobody can change, and their copies on a device, which live as long."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[weakref.ref[Array], Any]] = {}

    def add(self, A: Array, there: Any) -> None:
        key = id(A)
        self._known[key] = weakref.ref(A, lambda _: self._known.pop(key, None)), there

    def knows(self, A: Any) -> bool:
        found = self._known.get(id(A))
        return found is not None and found[0]() is A

    def there(self, A: Array, copied: Callable[[Array], Any]) -> Any:
        """The copy on the device, made by the first who asks."""
        of, made = self._known[id(A)]
        if made is None:
            made = copied(A)
            self._known[id(A)] = of, made
        return made


def column_units(A: Any) -> Any:
    """Powers of two by which each column falls below 2¹⁴: (q,)."""
    return powers(torch.linalg.vector_norm(A, torch.inf, dim=0))  # reads A once, makes no copy


def powers(sizes: Any) -> Any:
    """Powers of two by which numbers of these sizes fall below 2¹⁴; 1 for zeros."""
    exponent = torch.frexp(torch.where(sizes > 0, sizes, 1.0))[1]
    return torch.where(sizes > 0, torch.ldexp(torch.ones_like(sizes), exponent - 14), 1.0)


def _solved(function: Callable[[Any], Any], A: Any) -> Any:
    """The function's value, or NumPy's error where the matrix has none."""
    try:
        return function(A)
    except torch.linalg.LinAlgError as error:
        raise np.linalg.LinAlgError(str(error)) from None
