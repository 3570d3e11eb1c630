"""Kernel products on a GPU's tensor cores: tiles of k(X, Z) are made in registers and multiplied where they are.

In "float64" the tensor cores multiply float64 numbers. In the other precisions a number is a sum of float16 pieces, a high and a
low one, of 11 bits each. Coordinates enter the product that gives distances with both, which leaves them an error of 2⁻²². Kernel
values and what they are multiplied with are multiplied in

- 1 pass ("float16"): high · V, where V has entries that float16 holds exactly, as those of a sketch of signs;
- 2 passes ("float16x2"): (high + low) · V, for the same V;
- 3 passes ("float32"): high · V_high + low · V_high + high · V_low, for every V.

Tensor cores cut off what they add to a float32 sum instead of rounding it, so such sums drift over many columns: passes 1 and 2
start afresh every ``_CHUNK`` columns, 3 passes every tile.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
import triton

from sketchridge.backends import triton_kernels
from sketchridge.backends.base import Array
from sketchridge.backends.torch_tiles import TorchTiles, lifted
from sketchridge.kernels import Gaussian, Kernel, Linear, Matern32, Matern52, Polynomial

__all__ = ["TritonFused"]


class _Shape(NamedTuple):
    """Of a program: rows and columns of a tile, columns of V or of C at a time, warps, stages of its pipeline, registers."""

    rows: int
    columns: int
    width: int
    warps: int
    stages: int
    registers: int | None = None

    def shared(self, size: int, lanes: int, pieces: int) -> int:
        """Bytes of shared memory for points of so many numbers of a size, as Triton 3.6 takes them."""
        buffers = 0 if self.stages == 1 else self.stages - (size == 8)
        points, values = lanes * (self.rows + self.columns * buffers), self.columns * self.width * max(buffers, 1) * pieces
        return size * (points + values + self.rows * self.columns)


_KINDS: dict[type[Kernel], int] = {Gaussian: 0, Matern32: 1, Matern52: 2, Linear: 3, Polynomial: 4}
_EPS = {"float16": 2.0**-11, "float16x2": 2.0**-15, "float32": 2.0**-23, "float64": 2.0**-52}
_PASSES = {"float16": 1, "float16x2": 2, "float32": 3, "float64": 1}
_PRODUCTS = {  # the fastest first, for sums that are narrow enough
    "float16": (_Shape(128, 64, 128, 8, 3, registers=128), _Shape(128, 64, 256, 8, 3), _Shape(64, 64, 128, 4, 3)),
    "float16x2": (_Shape(64, 64, 256, 4, 3),),
    "float32": (_Shape(64, 64, 128, 4, 3),),
    "float64": (_Shape(64, 32, 128, 4, 3), _Shape(64, 64, 256, 8, 2), _Shape(32, 32, 128, 4, 2)),
}
_RESIDUALS = {torch.float16: _Shape(64, 64, 64, 4, 3), torch.float64: _Shape(64, 64, 16, 4, 3)}
_BLOCK = _Shape(64, 64, 0, 4, 1)
_NARROWEST = 64  # block of columns of V: Triton 3.6 lets tensor cores read past the end of shared memory for narrower ones
_WIDEST_FLOAT64 = 512  # columns of V or C: for more, PyTorch's product, for which every tile is made once, is faster
_CHUNK = 2**14  # columns summed by the tensor cores before they start afresh
_LANES = {torch.float16: (32, 64), torch.float64: (16, 32)}  # coordinates are padded to, and multiplied at a time
_RANGE = 2.0**14  # of ‖u‖² and of scaled numbers: float16 ends at 65504
_FAR = 2.0**20  # ‖u‖² beyond which squared distances in float64 have to be clipped at 0
_PARTIAL_BYTES = 2**31
_POINTS = 2**21  # handled at a time: their pieces are counted in 32 bits
_WIDEST = 300  # features, for the same reason
_LOG2E = math.log2(math.e)
_SHARED = 227 * 1024  # bytes of a multiprocessor's shared memory, where there is no GPU to ask


class TritonFused(TorchTiles):
    """Radial and dot-product kernels fused, in the precisions named above; other kernels as TorchTiles does.

    Parameters
    ----------
    dtype : "float16", "float16x2", "float32" or "float64".
    device : "cuda", or "cpu" in Triton's interpreter.
    """

    name = "triton"
    precisions: tuple[str, ...] = tuple(_EPS)

    def __init__(self, dtype: str = "float32", *, device: str | None = "cuda") -> None:
        super().__init__(dtype, device=device)
        self.precision = dtype
        self.eps = _EPS[dtype]
        self.far = 2.0**-34 if dtype != "float64" else 0.0
        self._operand, self._sum = (torch.float64, torch.float64) if dtype == "float64" else (torch.float16, torch.float32)
        self._shared = _shared_memory(self.device)
        self._last: dict[torch.dtype, tuple[tuple[Any, ...], _Points | None]] = {}  # the points of the last call, by type

    def block(self, kernel: Kernel, X: np.ndarray, Z: np.ndarray) -> Array:
        points = self._points(kernel, X, Z, torch.float64)
        if points is None:
            return super().block(kernel, X, Z)
        out, (rows, columns, _, warps, stages, _) = self._empty(len(X), len(Z)), _BLOCK
        right = _padded(points.Z, columns, 1)
        for start in range(0, len(X), _POINTS):
            part = out[start : start + _POINTS]
            left = _padded(points.U[start : start + _POINTS], rows, 1)
            triton_kernels.block[(len(left) // rows, len(right) // columns)](
                left, right, part, len(part), len(Z), **points.options, BM=rows, BN=columns, num_warps=warps, num_stages=stages
            )
        return out

    def _add_products(self, out: Array, kernel: Kernel, X: np.ndarray, Z: np.ndarray, cols: slice, V: Array) -> None:
        points, (n, q), t = self._points(kernel, X, Z, self._operand), V.shape, len(out)
        if points is None or (self.precision == "float64" and q > _WIDEST_FLOAT64):
            return super()._add_products(out, kernel, X, Z, cols, V)
        mode, units, high, low = self._split(V)
        wide_enough_first = sorted(_PRODUCTS[mode], key=lambda shape: shape.width < min(q, 256))
        narrowed = (s._replace(width=min(s.width, max(_NARROWEST, triton.next_power_of_2(q)))) for s in wide_enough_first)
        shape = self._fitting(narrowed, points, 2 if mode == "float32" else 1)
        if shape is None:
            return super()._add_products(out, kernel, X, Z, cols, V)
        rows, columns, width, warps, stages, registers = shape
        chunk = _chunk(n, -(-t // rows) * -(-q // width))
        low = None if low is None else _padded(low, chunk, width)
        high, right = _padded(high, chunk, width), _padded(points.Z[cols], chunk, 1)
        chunks = len(right) // chunk
        block = min(t, _POINTS, max(1024, _PARTIAL_BYTES // (self._sum.itemsize * high.shape[1] * chunks) // 128 * 128))
        for start in range(0, t, block):
            left, size = _padded(points.U[start : start + block], rows, 1), min(block, t - start)
            partial = torch.empty((chunks, size, high.shape[1]), dtype=self._sum, device=self.device)
            triton_kernels.matmul[(len(left) // rows, high.shape[1] // width, chunks)](
                left, right, high, high if low is None else low, partial, points.scale, points.gain, points.coef0, size,
                **points.options, STEPS=chunk // columns, Q=high.shape[1], BM=rows, BN=columns, BQ=width, PASSES=_PASSES[mode],
                num_warps=warps, num_stages=stages, maxnreg=registers,
            )  # fmt: skip
            triton_kernels.gather[(-(-size // 16), -(-q // 128))](
                partial, out[start : start + size], units, points.gain, size, q,
                WIDTH=high.shape[1], CHUNKS=chunks, BM=16, BQ=128, num_warps=4,
            )  # fmt: skip
        return None

    def _add_squares(self, out: Array, kernel: Kernel, X: np.ndarray, Z: np.ndarray, cols: slice, H: Array, C: Array) -> None:
        points, (n, m) = self._points(kernel, X, Z, self._operand), H.shape
        if points is None or m == 0 or (self.precision == "float64" and m > _WIDEST_FLOAT64):
            return super()._add_squares(out, kernel, X, Z, cols, H, C)
        pieces = 1 if self.precision == "float64" else 2
        shape = self._fitting([_RESIDUALS[self._operand]], points, 2 * pieces)
        if shape is None:
            return super()._add_squares(out, kernel, X, Z, cols, H, C)
        rows, columns, width, warps, stages, _ = shape
        units, chunk = _powers(H.abs().amax(dim=0)), _chunk(n, -(-len(out) // rows))
        H_pieces = [_padded(piece, chunk, width) for piece in _pieces(H / units, pieces, self._operand)]
        right = _padded(points.Z[cols], chunk, 1)
        for part in self._pieces(C):
            left, scaled = _padded(points.U[part], rows, 1), C[part] * units
            row_units = _powers(scaled.abs().amax(dim=1))
            C_pieces = [_padded(piece, rows, width) for piece in _pieces(scaled / row_units[:, None], pieces, self._operand)]
            C_scale = torch.nn.functional.pad(row_units, (0, len(left) - len(scaled))).to(self._sum)
            partial = torch.empty((len(right) // chunk, len(scaled)), dtype=self._sum, device=self.device)
            triton_kernels.residual[(len(left) // rows, len(partial))](
                left, right, H_pieces[0], H_pieces[-1], C_pieces[0], C_pieces[-1], C_scale, partial,
                points.scale, points.gain, points.coef0, n, len(scaled), **points.options,
                STEPS=chunk // columns, M=H_pieces[0].shape[1], BM=rows, BN=columns, BL=width, PASSES=2 * pieces - 1,
                num_warps=warps, num_stages=stages,
            )  # fmt: skip
            out[part] += partial.sum(dim=0, dtype=torch.float64)
        return None

    def _fitting(self, shapes: Iterable[_Shape], points: _Points, pieces: int) -> _Shape | None:
        """The first shape whose tiles fit into shared memory, with as many stages as do."""
        for shape in shapes:
            for stages in range(shape.stages, 0, -1):
                fitting = shape._replace(stages=stages)
                if fitting.shared(points.U.itemsize, points.options["K"], pieces) <= self._shared:
                    return fitting
        return None

    def _split(self, V: Array) -> tuple[str, Array, Array, Array | None]:
        """The precision in which products with V are done, and V = units · (high + low) in what the tensor cores multiply."""
        if self.precision == "float64":
            return "float64", torch.ones_like(V[0]), V, None
        units = _powers(V.abs().amax(dim=0))
        V = V / units
        high, low = _pieces(V, 2, torch.float16)
        if self.precision != "float32" and bool((high == V).all()):
            return self.precision, units, high, None
        return "float32", units, high, low

    def _pieces(self, A: Any) -> Iterator[slice]:
        for rows in super()._pieces(A):
            for i in range(rows.start, rows.stop, _POINTS):
                yield slice(i, min(i + _POINTS, rows.stop))

    def _points(self, kernel: Kernel, X: np.ndarray, Z: np.ndarray, operand: torch.dtype) -> _Points | None:
        """The points as the programs take them, or None where a kernel or range is not for them."""
        kind = _KINDS.get(type(kernel))
        if kind is None or not len(Z) or not len(X) or X.shape[1] > _WIDEST:
            return None
        known = self._last.get(operand)
        if known is None or any(old() is not new for old, new in zip(known[0], (kernel, X, Z), strict=True)):
            U, W = self._coordinates(kernel, X), self._coordinates(kernel, Z)
            self._last.pop(operand, None)
            self._check_memory(24 * (U.numel() + W.numel()), f"Preparing {len(U) + len(W):,} points for kernel products")
            make = _Points.in_float64 if operand == torch.float64 else _Points.in_pieces
            known = self._last[operand] = tuple(map(weakref.ref, (kernel, X, Z))), make(kernel, kind, U, W)
        return known[1]


class _Points:
    """Points X and Z as rows U, Z whose products are s (up to ``scale``), and the numbers their kernel needs."""

    def __init__(self, U: Array, Z: Array, kernel: Kernel, kind: int, *, scale: float = 1.0, gain: float = 1.0, coef0: float = 0.0):
        least, most = _LANES[U.dtype]
        lanes = min(most, max(least, triton.next_power_of_2(U.shape[1])))
        self.U, self.Z, self.scale, self.gain, self.coef0 = _padded(U, 1, lanes), _padded(Z, 1, lanes), scale, gain, coef0
        self.options = {"K": self.U.shape[1], "KB": lanes, "KIND": kind, "DEGREE": int(getattr(kernel, "degree", 1))}

    @classmethod
    def in_float64(cls, kernel: Kernel, kind: int, U: Array, W: Array) -> _Points | None:
        if kernel.geometry == "distance":
            if not _largest(U, W) < _FAR:
                return None
            unit = math.sqrt(_LOG2E) if kind == 0 else 1.0
            return cls(*lifted(U * unit, W * unit), kernel, kind)
        coef0 = W.new_full((len(W), 1), float(getattr(kernel, "coef0", 0.0)))
        return cls(torch.cat([U, torch.ones_like(U[:, :1])], dim=1), torch.cat([W, coef0], dim=1), kernel, kind)

    @classmethod
    def in_pieces(cls, kernel: Kernel, kind: int, U: Array, W: Array) -> _Points | None:
        largest = _largest(U, W)
        if kernel.geometry == "distance":
            if largest * 1.5 > _RANGE:
                return None
            unit, shift = (math.sqrt(_LOG2E), math.log2(_RANGE)) if kind == 0 else (1.0, 0.0)
            return cls(_left(U * unit, shift), _right(W * unit), kernel, kind, gain=_RANGE)
        if not 1e-30 < largest < 1e30:
            return None
        unit = 2.0 ** round(math.log2(largest) / 2 - 6)  # then every coordinate is below 2⁷
        coef0 = float(getattr(kernel, "coef0", 0.0))
        top = (largest + coef0) ** int(getattr(kernel, "degree", 1))
        if not 1e-15 < top < 1e15:
            return None
        gain = 2.0 ** (13 - math.ceil(math.log2(top)))
        (high, low), (its_high, its_low) = (_pieces(A / unit, 2, torch.float16) for A in (U, W))
        left, right = torch.cat([high, high, low], dim=1), torch.cat([its_high, its_low, its_high], dim=1)
        return cls(left, right, kernel, kind, scale=unit**2, gain=gain, coef0=coef0)


def _largest(U: Array, W: Array) -> float:
    return max(float((A * A).sum(dim=1).max()) for A in (U, W))


def _left(U: Array, shift: float) -> Array:
    """(2u, shift − ‖u‖², 1) in pieces, for shift − ‖u − v‖² = (2u, shift − ‖u‖², 1)·(v, 1, −‖v‖²)."""
    (high, low), square = _pieces(U, 2, torch.float16), shift - (U * U).sum(dim=1, keepdim=True)
    ones = torch.ones_like(high[:, :1]).repeat(1, 3)
    return torch.cat([2 * high, 2 * high, 2 * low, *_pieces(square, 3, torch.float16), ones], dim=1)


def _right(W: Array) -> Array:
    (high, low), square = _pieces(W, 2, torch.float16), -(W * W).sum(dim=1, keepdim=True)
    ones = torch.ones_like(high[:, :1]).repeat(1, 3)
    return torch.cat([high, low, high, ones, *_pieces(square, 3, torch.float16)], dim=1)


def _pieces(A: Array, count: int, dtype: torch.dtype) -> list[Array]:
    """Arrays of a type, each the rounding of what the ones before leave."""
    out = []
    for _ in range(count):
        out.append(A.to(dtype))
        A = A - out[-1]
    return out


def _padded(A: Array, rows: int, columns: int) -> Array:
    """The array with zeros appended, to multiples of so many rows and columns."""
    return torch.nn.functional.pad(A, (0, -A.shape[1] % columns, 0, -len(A) % rows)).contiguous()


def _powers(sizes: Array) -> Array:
    """Powers of two by which numbers of these sizes fall below 2¹⁴; 1 for zeros."""
    exponent = torch.frexp(torch.where(sizes > 0, sizes, 1.0))[1]
    return torch.where(sizes > 0, torch.ldexp(torch.ones_like(sizes), exponent - 14), 1.0)


def _shared_memory(device: torch.device) -> int:
    if device.type != "cuda":
        return _SHARED
    card = torch.cuda.current_device() if device.index is None else device.index
    return int(triton.runtime.driver.active.utils.get_device_properties(card)["max_shared_mem"])


def _chunk(n: int, programs: int) -> int:
    """Columns summed at a time: few enough that the sums do not drift and that the GPU has something to do."""
    return min(_CHUNK, triton.next_power_of_2(max(n * programs // 1024, min(n, 1024), 64)))
