"""Kernel products on a GPU's tensor cores: tiles of k(P, Q) are made and multiplied in registers.

In "float64" the tensor cores multiply float64 numbers. In the other precisions a number is a sum of
float16 pieces, a high and a low one, of 11 bits each. Coordinates enter the product that gives s
with both, which leaves them an error of 2⁻²². Kernel values and what they are multiplied with are
multiplied in

- 1 pass ("float16"): high · V, where float16 holds the entries of V exactly, as those of a sketch
  of signs;
- 2 passes ("float16x2"): (high + low) · V, for the same V;
- 3 passes ("float32"): high · V_high + low · V_high + high · V_low, for every V.

Tensor cores cut off what they add to a float32 sum instead of rounding it, so such sums drift over
many columns: passes 1 and 2 start afresh every ``_CHUNK`` columns, 3 passes every tile.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
import triton

from sketchridge.backends import triton_kernels
from sketchridge.backends.base import Backend
from sketchridge.backends.elsewhere import Unreachable
from sketchridge.backends.points import Points
from sketchridge.backends.slices import slices
from sketchridge.backends.tall import Tall
from sketchridge.backends.torch_arrays import column_units, powers
from sketchridge.backends.torch_tiles import TorchTiles
from sketchridge.backends.triton_points import Pair, padded, paired, pieces

__all__ = ["TritonFused"]

Array = np.ndarray


class _Shape(NamedTuple):
    """Of a program's tile, with ``width`` columns of V or C at a time, and how it is compiled."""

    rows: int
    columns: int
    width: int
    warps: int
    stages: int
    registers: int | None = None

    def shared(self, size: int, lanes: int, pieces: int) -> int:
        """Bytes of shared memory for points of so many numbers, as Triton 3.6 takes them."""
        buffers = 0 if self.stages == 1 else self.stages - (size == 8)
        points = lanes * (self.rows + self.columns * buffers)
        values = self.columns * self.width * max(buffers, 1) * pieces
        return size * (points + values + self.rows * self.columns)

    @property
    def options(self) -> dict[str, Any]:
        return {
            "BM": self.rows,
            "BN": self.columns,
            "num_warps": self.warps,
            "num_stages": self.stages,
            "maxnreg": self.registers,
        }


_PASSES = {"float16": 1, "float16x2": 2, "float32": 3, "float64": 1}
_PRODUCTS = {  # the fastest first, for sums that are narrow enough
    "float16": (
        _Shape(128, 64, 128, 8, 3, registers=128),
        _Shape(128, 64, 256, 8, 3),
        _Shape(64, 64, 128, 4, 3),
    ),
    "float16x2": (_Shape(64, 64, 256, 4, 3),),
    "float32": (_Shape(64, 64, 128, 4, 3),),
    "float64": (_Shape(64, 32, 128, 4, 3), _Shape(64, 64, 256, 8, 2), _Shape(32, 32, 128, 4, 2)),
}
_RESIDUALS = {torch.float16: _Shape(64, 64, 64, 4, 3), torch.float64: _Shape(64, 64, 16, 4, 3)}
_BLOCK = _Shape(64, 64, 0, 4, 1)
_NARROWEST = 64  # columns of V at a time: for fewer, Triton 3.6 reads past the end of shared memory
_WIDEST_FLOAT64 = 512  # columns of V or C beyond which PyTorch, which makes a tile once, is faster
_CHUNK = 2**14  # columns summed by the tensor cores before they start afresh
_PARTIAL_BYTES = 2**31
_POINTS = 2**21  # handled at a time: their numbers are counted in 32 bits
_SHARED = 227 * 1024  # bytes of a multiprocessor's shared memory, where there is no GPU to ask


class TritonFused(TorchTiles):
    """Kernels that have a Triton function (``fused``), fused; other kernels as TorchTiles does.

    "float16" and "float16x2" are for products with what float16 holds exactly; other products are
    then done in "float32".

    Parameters
    ----------
    device : "cuda", the default, or "cpu" in Triton's interpreter.

    Examples
    --------
    >>> TritonFused().precisions
    ('float16', 'float16x2', 'float32', 'float64')
    """

    name = "triton"
    precisions: ClassVar[tuple[str, ...]] = tuple(_PASSES)
    far: ClassVar[dict[str, float]] = {
        "float16": 2.0**-34,
        "float16x2": 2.0**-34,
        "float32": 2.0**-34,
        "float64": 0.0,
    }

    def block(self, P: Points, Q: Points) -> Tall:
        pair = paired(P, Q, torch.float64)
        if pair is None:
            return super().block(P, Q)
        out = self.empty(len(P), len(Q))
        for rows in slices(len(P), _POINTS):
            left = padded(pair.left[rows], _BLOCK.rows)
            for cols in slices(len(Q), _POINTS):
                right = padded(pair.right[cols], _BLOCK.columns)
                self._fill(out[rows, cols], left, right, pair)
        return Tall(self, (out,))

    def _fill(self, out: Any, left: Any, right: Any, pair: Pair) -> None:
        grid = (len(left) // _BLOCK.rows, len(right) // _BLOCK.columns)
        sizes = (*out.shape, out.stride(0))
        with self._current():
            triton_kernels.block[grid](left, right, out, *sizes, **pair.options, **_BLOCK.options)

    def moments(
        self, P: Points, Q: Points, T: Tall, *, weights: Tall, precision: str
    ) -> tuple[Array, Tall]:
        by_tiles = precision == "float64" and T.panels_width > _WIDEST_FLOAT64
        fused = not by_tiles and paired(P, Q, _operand(precision)) is not None
        moments = Backend.moments if fused else TorchTiles.moments
        return moments(self, P, Q, T, weights=weights, precision=precision)

    def _add_products(
        self, out: Any, P: Points, Q: Points, cols: slice, V: Any, precision: str
    ) -> None:
        job = self._products_job(P, Q, cols, V, precision)
        if job is None:
            super()._add_products(out, P, Q, cols, V, precision)
            return
        size = job.pair.sums.itemsize * job.high.shape[1] * (len(job.right) // job.chunk)
        for rows in slices(len(out), min(_POINTS, max(1024, _PARTIAL_BYTES // size // 128 * 128))):
            partial = self._partial_products(job, rows)
            self._gather(partial, out[rows], job)

    def _products_job(
        self, P: Points, Q: Points, cols: slice, V: Any, precision: str
    ) -> _Products | None:
        """What the program for products with V is given, or None where the tiles are for it."""
        q = V.shape[1]
        pair = paired(P, Q, _operand(precision))
        if pair is None or (precision == "float64" and q > _WIDEST_FLOAT64):
            return None
        units = torch.ones_like(V[0]) if precision == "float64" else column_units(V)
        mode = _mode(V, units, precision)
        shape = self._product_shape(mode, q, pair)
        if shape is None:
            return None
        chunk = _chunk(len(V), -(-len(P) // shape.rows) * -(-q // shape.width))
        split = self._split(V, units, pair.left.dtype, chunk, shape.width)
        right = padded(pair.right[cols], chunk)
        return _Products(pair, shape, chunk, right, mode, units, split[0], split[-1])

    def _product_shape(self, mode: str, q: int, pair: Pair) -> _Shape | None:
        widest = max(_NARROWEST, triton.next_power_of_2(q))
        wide_enough_first = sorted(_PRODUCTS[mode], key=lambda shape: shape.width < min(q, 256))
        narrowed = (shape._replace(width=min(shape.width, widest)) for shape in wide_enough_first)
        return self._fitting(narrowed, pair, 2 if mode == "float32" else 1)

    def _partial_products(self, job: _Products, rows: slice) -> Any:
        """gain·k V/units for some rows, by chunks of columns of k: (chunks, t, width)."""
        pair, shape = job.pair, job.shape
        left = padded(pair.left[rows], shape.rows)
        t = rows.stop - rows.start
        width = job.high.shape[1]
        chunks = len(job.right) // job.chunk
        partial = torch.empty((chunks, t, width), dtype=pair.sums, device=self.device)
        grid = (len(left) // shape.rows, width // shape.width, chunks)
        arrays = (left, job.right, job.high, job.low, partial)
        with self._current():
            triton_kernels.matmul[grid](
                *arrays,
                pair.scale,
                pair.gain,
                t,
                STEPS=job.chunk // shape.columns,
                Q=width,
                BQ=shape.width,
                PASSES=_PASSES[job.mode],
                **pair.options,
                **shape.options,
            )
        return partial

    def _gather(self, partial: Any, out: Any, job: _Products) -> None:
        """out += Σ_c partial[c] · units/gain."""
        chunks, t, width = partial.shape
        q = out.shape[1]
        sizes = {"WIDTH": width, "CHUNKS": chunks, "BM": 16, "BQ": 128}
        with self._current():
            triton_kernels.gather[(-(-t // 16), -(-q // 128))](
                partial, out, job.units, job.pair.gain, t, q, **sizes, num_warps=4
            )

    def _add_squares(
        self, out: Any, P: Points, Q: Points, cols: slice, H: Any, C: Tall, w: Any, precision: str
    ) -> None:
        job = self._squares_job(P, Q, cols, H, w, precision)
        if job is None:
            super()._add_squares(out, P, Q, cols, H, C, w, precision)
            return
        for rows in self._chunks(len(out), H.shape[1]):
            partial = self._partial_squares(job, rows, C.part(rows) * job.units)
            unit = job.w_unit / job.pair.gain**2
            out[rows, 0] += partial.sum(dim=0, dtype=torch.float64) * unit

    def _squares_job(
        self, P: Points, Q: Points, cols: slice, H: Any, w: Any, precision: str
    ) -> _Squares | None:
        """What the program for residuals is given, or None where the tiles are for it."""
        pair = paired(P, Q, _operand(precision))
        if pair is None or (precision == "float64" and H.shape[1] > _WIDEST_FLOAT64):
            return None
        operand = pair.left.dtype
        count = 1 if operand == torch.float64 else 2
        shape = self._fitting([_RESIDUALS[operand]], pair, 2 * count)
        if shape is None:
            return None
        chunk = _chunk(len(H), -(-len(P) // shape.rows))
        units = column_units(H) if count == 2 else torch.ones_like(H[0])
        its_pieces = self._split(H, units, operand, chunk, shape.width)
        w_unit = powers(w.abs().amax())
        its_w = padded(w / w_unit, chunk).to(pair.sums)
        right = padded(pair.right[cols], chunk)
        return _Squares(pair, shape, chunk, right, units, its_pieces, w_unit, its_w)

    def _partial_squares(self, job: _Squares, rows: slice, C: Any) -> Any:
        """gain² Σ_j w_j (k − C Hᵀ)_j² for some rows, by chunks of columns of k: (chunks, t)."""
        pair, shape, H = job.pair, job.shape, job.H
        left = padded(pair.left[rows], shape.rows)
        units = _row_units(C)
        split = pieces(C / units, len(H), left.dtype)
        its_C = [padded(c, shape.rows, shape.width) for c in split]
        C_scale = padded(units * pair.gain, shape.rows).to(pair.sums)
        chunks = len(job.right) // job.chunk
        partial = torch.empty((chunks, len(C)), dtype=pair.sums, device=self.device)
        arrays = (left, job.right, H[0], H[-1], its_C[0], its_C[-1], C_scale, job.w, partial)
        with self._current():
            triton_kernels.residual[(len(left) // shape.rows, chunks)](
                *arrays,
                pair.scale,
                pair.gain,
                len(C),
                STEPS=job.chunk // shape.columns,
                M=H[0].shape[1],
                BL=shape.width,
                PASSES=2 * len(H) - 1,
                **pair.options,
                **shape.options,
            )
        return partial

    def _split(self, V: Any, units: Any, operand: torch.dtype, rows: int, columns: int) -> Any:
        """V/units in one float64 piece or in two of float16, padded to multiples."""
        if operand == torch.float64:
            return (padded(V, rows, columns),)
        n, q = V.shape
        shape = (n + -n % rows, q + -q % columns)
        high, low = (torch.empty(shape, dtype=operand, device=self.device) for _ in range(2))
        V = V if V.stride(1) == 1 else V.contiguous()
        grid = (shape[0] // 32, shape[1] // 64)
        with self._current():
            sizes = {"WIDTH": shape[1], "BM": 32, "BQ": 64}
            triton_kernels.split[grid](V, units, high, low, n, q, V.stride(0), **sizes)
        return high, low

    def _fitting(self, shapes: Iterable[_Shape], pair: Pair, pieces: int) -> _Shape | None:
        """The first shape whose tiles fit into shared memory, with as many stages as do."""
        available = self._shared()
        for shape in shapes:
            for stages in range(shape.stages, 0, -1):
                fitting = shape._replace(stages=stages)
                if fitting.shared(pair.left.itemsize, pair.left.shape[1], pieces) <= available:
                    return fitting
        return None

    def _chunks(self, n: int, width: int) -> list[slice]:
        widest = [rows.stop - rows.start for rows in super()._chunks(n, width)]
        return slices(n, min(_POINTS, max(widest, default=1)))

    def _usual_device(self) -> str:
        return "cuda"

    def _check_device(self) -> None:
        super()._check_device()
        if self._on_the_host and isinstance(triton_kernels.matmul, triton.JITFunction):
            raise Unreachable(
                "On the CPU Triton's programs run in its interpreter only: set TRITON_INTERPRET=1 "
                "before Triton is imported, or use backend='numpy'."
            )

    def _shared(self) -> int:
        """Bytes of shared memory that a program can have."""
        if self._on_the_host:
            return _SHARED
        index = self.device.index
        return _shared_memory(torch.cuda.current_device() if index is None else index)

    def _current(self) -> AbstractContextManager[object]:
        """A context in which programs are started on this device."""
        return nullcontext() if self._on_the_host else torch.cuda.device(self.device)


class _Products(NamedTuple):
    """k(P, Q[cols]) V, with V = units · (high + low) in what the tensor cores multiply."""

    pair: Pair
    shape: _Shape
    chunk: int
    right: Any
    mode: str
    units: Any
    high: Any
    low: Any


class _Squares(NamedTuple):
    """Residuals of k(P, Q[cols]), with H = units · ΣH and w = w_unit · w."""

    pair: Pair
    shape: _Shape
    chunk: int
    right: Any
    units: Any
    H: tuple[Any, ...]
    w_unit: Any
    w: Any


@cache
def _shared_memory(card: int) -> int:
    properties = triton.runtime.driver.active.utils.get_device_properties(card)
    return int(properties["max_shared_mem"])


def _operand(precision: str) -> torch.dtype:
    """What the tensor cores multiply."""
    return torch.float64 if precision == "float64" else torch.float16


def _mode(V: Any, units: Any, precision: str) -> str:
    """The precision in which products with V are done: 3 passes where float16 does not hold it."""
    if precision in ("float32", "float64"):
        return precision
    V = V / units
    return precision if bool((V.to(torch.float16) == V).all()) else "float32"


def _row_units(C: Any) -> Any:
    """Powers of two that bring rows into the range of float16: (t, 1)."""
    if not C.shape[1]:
        return torch.ones((len(C), 1), dtype=C.dtype, device=C.device)
    return powers(C.abs().amax(dim=1, keepdim=True))


def _chunk(n: int, programs: int) -> int:
    """Columns summed at a time: few enough for sums not to drift and for the GPU to be busy."""
    fewest = max(n * programs // 1024, min(n, 1024), 64)
    return min(_CHUNK, triton.next_power_of_2(fewest))
