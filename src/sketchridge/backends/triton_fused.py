"""Kernel products on a GPU's tensor cores: tiles of k(X, Z) are made in registers and multiplied where they are.

A number is a sum of float16 pieces, a high and a low one, of 11 bits each. Coordinates enter the product that gives distances
with both, which leaves them an error of 2⁻²². Kernel values and what they are multiplied with are multiplied in

- 1 pass ("float16"): high · V, where V has entries that float16 holds exactly, as those of a sketch of signs;
- 2 passes ("float16x2"): (high + low) · V, for the same V;
- 3 passes ("float32"): high · V_high + low · V_high + high · V_low, for every V.

Tensor cores cut off what they add instead of rounding it, so sums over many columns drift: passes 1 and 2 start afresh every
``_CHUNK`` columns, 3 passes every tile.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
import triton
import triton.language as tl

from sketchridge.backends.base import Array
from sketchridge.backends.torch_tiles import TorchTiles
from sketchridge.kernels import Gaussian, Kernel, Linear, Matern32, Matern52, Polynomial

__all__ = ["TritonFused"]

_KINDS: dict[type[Kernel], int] = {Gaussian: 0, Matern32: 1, Matern52: 2, Linear: 3, Polynomial: 4}
_EPS = {"float16": 2.0**-11, "float16x2": 2.0**-15, "float32": 2.0**-23, "float64": 2.0**-52}
_COLUMNS = 64  # of a tile
_NARROWEST = 64  # block of columns of V: Triton 3.6 lets tensor cores read past the end of shared memory for narrower ones
_SHAPES = {1: (128, 8, 3), 2: (64, 4, 3), 3: (64, 4, 3)}  # rows, warps and stages of a program, by passes
_REGISTERS = {1: 128}  # of a thread, by passes, where sums are narrow: two programs then share a multiprocessor
_CHUNK = 2**14  # columns summed by the tensor cores before they start afresh
_FEATURES = 64  # coordinates or sketch rows multiplied at a time
_RANGE = 2.0**14  # of ‖u‖² and of scaled numbers: float16 ends at 65504
_PARTIAL_BYTES = 2**31
_POINTS = 2**21  # handled at a time: their pieces are counted in 32 bits
_WIDEST = 300  # features, for the same reason
_LOG2E = tl.constexpr(1.4426950408889634)


@triton.jit
def _profile(s, scale, gain, coef0, KIND: tl.constexpr, DEGREE: tl.constexpr):
    """gain·k from s = −‖u − v‖² (for the Gaussian log₂ of gain·k itself), or from scale·s = u·v."""
    if KIND == 0:
        k = tl.exp2(s)
    elif KIND == 1:
        r = tl.sqrt(tl.maximum(-s, 0.0))
        k = (1.0 + r) * tl.exp2(-r * _LOG2E) * gain
    elif KIND == 2:
        r = tl.sqrt(tl.maximum(-s, 0.0))
        k = (1.0 + r + r * r / 3.0) * tl.exp2(-r * _LOG2E) * gain
    else:
        base = s * scale + coef0
        k = base * gain
        for _ in tl.static_range(DEGREE - 1):
            k *= base
    return k


@triton.jit
def _pairing(u, U, Z, rows, cols, K: tl.constexpr, KB: tl.constexpr):
    """The products of rows of U and Z, of K pieces of coordinates each, the first of which are u."""
    k = tl.arange(0, KB)
    s = tl.dot(u, tl.load(Z + cols[:, None] * K + k[None, :]).T)
    for start in tl.static_range(KB, K, KB):
        u = tl.load(U + rows[:, None] * K + (start + k)[None, :])
        s = tl.dot(u, tl.load(Z + cols[:, None] * K + (start + k)[None, :]).T, s)
    return s


@triton.jit
def _matmul(
    U, Z, V, V_low, OUT, scale, gain, coef0, t,
    STEPS: tl.constexpr, K: tl.constexpr, KB: tl.constexpr, Q: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BQ: tl.constexpr,
    PASSES: tl.constexpr, KIND: tl.constexpr, DEGREE: tl.constexpr,
):  # fmt: skip
    """OUT[c] = gain·k(X, Z[chunk c]) V[chunk c], for a block of rows, a block of columns of V and a chunk c of the points Z."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    u = tl.load(U + rows[:, None] * K + tl.arange(0, KB)[None, :])
    first = tl.program_id(2) * (STEPS * BN)
    Z += first * K
    V += first * Q + tl.program_id(1) * BQ
    V_low += first * Q + tl.program_id(1) * BQ
    lanes = tl.arange(0, BQ)[None, :]
    total = tl.zeros((BM, BQ), dtype=tl.float32)
    for j in range(0, STEPS * BN, BN):
        cols = j + tl.arange(0, BN)
        v = tl.load(V + cols[:, None] * Q + lanes)
        k = _profile(_pairing(u, U, Z, rows, cols, K, KB), scale, gain, coef0, KIND, DEGREE)
        high = k.to(tl.float16)
        if PASSES == 1:
            total = tl.dot(high, v, total)
        if PASSES == 2:
            low = (k - high.to(tl.float32)).to(tl.float16)
            total = tl.dot(high, v, total)
            total = tl.dot(low, v, total)
        if PASSES == 3:
            low = (k - high.to(tl.float32)).to(tl.float16)
            part = tl.dot(high, v)
            part = tl.dot(low, v, part)
            total += tl.dot(high, tl.load(V_low + cols[:, None] * Q + lanes), part)
    place = (tl.program_id(2) * t + rows)[:, None] * Q + tl.program_id(1) * BQ + lanes
    tl.store(OUT + place, total, mask=(rows < t)[:, None])


@triton.jit
def _gather(PARTIAL, OUT, units, gain, t, q, WIDTH: tl.constexpr, CHUNKS: tl.constexpr, BM: tl.constexpr, BQ: tl.constexpr):
    """OUT += Σ_c PARTIAL[c] · units/gain, in float64."""
    rows, cols = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BQ + tl.arange(0, BQ)
    inside = (rows < t)[:, None] & (cols < q)[None, :]
    total = tl.zeros((BM, BQ), dtype=tl.float64)
    for c in range(CHUNKS):
        total += tl.load(PARTIAL + (c * t + rows)[:, None] * WIDTH + cols[None, :], mask=inside, other=0.0).to(tl.float64)
    scale = tl.load(units + cols, mask=cols < q, other=1.0) / gain
    place = OUT + rows.to(tl.int64)[:, None] * q + cols[None, :]
    tl.store(place, tl.load(place, mask=inside, other=0.0) + total * scale[None, :], mask=inside)


@triton.jit
def _residual(
    U, Z, H, H_low, C, C_low, C_scale, OUT, scale, gain, coef0, n, t,
    STEPS: tl.constexpr, M: tl.constexpr, K: tl.constexpr, KB: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BL: tl.constexpr,
    KIND: tl.constexpr, DEGREE: tl.constexpr,
):  # fmt: skip
    """OUT[c] = the squared row norms of k(X, Z) − C Hᵀ over a chunk c of the points Z."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    u = tl.load(U + rows[:, None] * K + tl.arange(0, KB)[None, :])
    unit = tl.load(C_scale + rows)
    lanes = tl.arange(0, BL)
    total = tl.zeros((BM,), dtype=tl.float32)
    for j in range(STEPS):
        cols = (tl.program_id(1) * STEPS + j) * BN + tl.arange(0, BN)
        fitted = tl.zeros((BM, BN), dtype=tl.float32)
        for start in range(0, M, BL):
            c_place = rows[:, None] * M + (start + lanes)[None, :]
            h_place = cols[:, None] * M + (start + lanes)[None, :]
            c, h = tl.load(C + c_place), tl.load(H + h_place).T
            part = tl.dot(c, h)
            part = tl.dot(tl.load(C_low + c_place), h, part)
            fitted += tl.dot(c, tl.load(H_low + h_place).T, part)
        k = _profile(_pairing(u, U, Z, rows, cols, K, KB), scale, gain, coef0, KIND, DEGREE) / gain
        r = tl.where((cols < n)[None, :], k - fitted * unit[:, None], 0.0)
        total += tl.sum(r * r, axis=1)
    tl.store(OUT + tl.program_id(1) * t + rows, total, mask=rows < t)


class TritonFused(TorchTiles):
    """Radial and dot-product kernels fused, in the precisions named above; other kernels, and float64, as TorchTiles does.

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
        self._last: tuple[tuple[Any, ...], _Points | None] | None = None  # the points of the last call
        self.far = 2.0**-34 if dtype != "float64" else 0.0

    def _add_products(self, out: Array, kernel: Kernel, X: np.ndarray, Z: np.ndarray, cols: slice, V: Array) -> None:
        points = self._points(kernel, X, Z)
        if points is None:
            return super()._add_products(out, kernel, X, Z, cols, V)
        (n, q), t = V.shape, len(out)
        units = _powers(V.abs().amax(dim=0))
        V = V / units
        high = V.to(torch.float16)
        exact = self.precision != "float32" and bool((high == V).all())
        passes = (1 if self.precision == "float16" else 2) if exact else 3
        wide = 256 if passes < 3 else 128
        width = min(wide, max(_NARROWEST, triton.next_power_of_2(q)))
        rows, warps, stages = _SHAPES[passes]
        chunk = _chunk(n, -(-t // rows) * -(-q // width))
        low = None if exact else _padded((V - high).to(torch.float16), chunk, width)
        high, Z = _padded(high, chunk, width), _padded(points.Z[cols], chunk, 1)
        chunks, block = len(Z) // chunk, self._rows(len(Z), chunk, high.shape[1], t)
        for start in range(0, t, block):
            U = _padded(points.U[start : start + block], rows, 1)
            size = min(block, t - start)
            partial = torch.empty((chunks, size, high.shape[1]), dtype=torch.float32, device=self.device)
            grid = (len(U) // rows, high.shape[1] // width, chunks)
            lanes, registers = min(U.shape[1], _FEATURES), _REGISTERS.get(passes) if width <= 128 else None
            _matmul[grid](
                U, Z, high, high if low is None else low, partial, points.scale, points.gain, points.coef0, size,
                STEPS=chunk // _COLUMNS, K=U.shape[1], KB=lanes, Q=high.shape[1], BM=rows, BN=_COLUMNS, BQ=width, PASSES=passes,
                KIND=points.kind, DEGREE=points.degree, num_warps=warps, num_stages=stages, maxnreg=registers,
            )  # fmt: skip
            _gather[(-(-size // 16), -(-q // 128))](
                partial, out[start : start + size], units, points.gain, size, q,
                WIDTH=high.shape[1], CHUNKS=chunks, BM=16, BQ=128, num_warps=4,
            )  # fmt: skip
        return None

    def _add_squares(self, out: Array, kernel: Kernel, X: np.ndarray, Z: np.ndarray, cols: slice, H: Array, C: Array) -> None:
        points = self._points(kernel, X, Z) if H.shape[1] else None
        if points is None:
            return super()._add_squares(out, kernel, X, Z, cols, H, C)
        n = len(H)
        units, chunk = _powers(H.abs().amax(dim=0)), _chunk(n, -(-len(out) // 64))
        H_high, H_low = (_padded(piece, chunk, _FEATURES) for piece in _pieces(H / units, 2))
        Z = _padded(points.Z[cols], chunk, 1)
        for rows in self._pieces(C):
            U, scaled = _padded(points.U[rows], 64, 1), C[rows] * units
            row_units = _powers(scaled.abs().amax(dim=1))
            C_high, C_low = (_padded(piece, 64, _FEATURES) for piece in _pieces(scaled / row_units[:, None], 2))
            C_scale = torch.nn.functional.pad(row_units, (0, len(U) - len(scaled))).to(torch.float32)
            partial = torch.empty((len(Z) // chunk, len(scaled)), dtype=torch.float32, device=self.device)
            _residual[(len(U) // 64, len(partial))](
                U, Z, H_high, H_low, C_high, C_low, C_scale, partial, points.scale, points.gain, points.coef0, n, len(scaled),
                STEPS=chunk // _COLUMNS, M=H_high.shape[1], K=U.shape[1], KB=min(U.shape[1], _FEATURES), BM=64, BN=_COLUMNS,
                BL=_FEATURES, KIND=points.kind, DEGREE=points.degree, num_warps=4, num_stages=3,
            )  # fmt: skip
            out[rows] += partial.sum(dim=0, dtype=torch.float64)
        return None

    def _rows(self, n: int, chunk: int, width: int, t: int) -> int:
        """Rows handled at a time, so that the partial sums are small."""
        return min(t, _POINTS, max(1024, _PARTIAL_BYTES // (4 * width * -(-n // chunk)) // 128 * 128))

    def _pieces(self, A: Any) -> Iterator[slice]:
        for rows in super()._pieces(A):
            for i in range(rows.start, rows.stop, _POINTS):
                yield slice(i, min(i + _POINTS, rows.stop))

    def _points(self, kernel: Kernel, X: np.ndarray, Z: np.ndarray) -> _Points | None:
        """The points in float16 pieces, or None where a kernel, precision or range is not for this backend's kernels."""
        kind = _KINDS.get(type(kernel))
        if kind is None or self.precision == "float64" or not len(Z) or not len(X) or X.shape[1] > _WIDEST:
            return None
        if self._last is None or any(known() is not new for known, new in zip(self._last[0], (kernel, X, Z), strict=True)):
            U, W = self._coordinates(kernel, X), self._coordinates(kernel, Z)
            self._last = tuple(map(weakref.ref, (kernel, X, Z))), _Points.of(kernel, kind, U, W)
        return self._last[1]


class _Points:
    """Points X and Z as float16 pieces U, Z whose product is s (up to ``scale``), and the numbers their kernel needs."""

    def __init__(self, U: Array, Z: Array, *, kind: int, scale: float, gain: float, kernel: Kernel) -> None:
        self.U, self.Z, self.kind, self.scale, self.gain = U, Z, kind, scale, gain
        self.degree, self.coef0 = int(getattr(kernel, "degree", 1)), float(getattr(kernel, "coef0", 0.0))

    @classmethod
    def of(cls, kernel: Kernel, kind: int, U: Array, W: Array) -> _Points | None:
        largest = max(float((A * A).sum(dim=1).max()) if len(A) else 0.0 for A in (U, W))
        if kernel.geometry == "distance":
            if largest * 1.5 > _RANGE:
                return None
            unit, shift = (math.sqrt(_LOG2E.value), math.log2(_RANGE)) if kind == 0 else (1.0, 0.0)
            return cls(_left(U * unit, shift), _right(W * unit), kind=kind, scale=1.0, gain=_RANGE, kernel=kernel)
        if not 1e-30 < largest < 1e30:
            return None
        unit = 2.0 ** round(math.log2(largest) / 2 - 6)  # then every coordinate is below 2⁷
        top = (largest + float(getattr(kernel, "coef0", 0.0))) ** int(getattr(kernel, "degree", 1))
        if not 1e-15 < top < 1e15:
            return None
        gain = 2.0 ** (13 - math.ceil(math.log2(top)))
        left, right = _pieces(U / unit, 2), _pieces(W / unit, 2)
        pairs = ((0, 0), (0, 1), (1, 0))
        sides = [torch.cat([side[p[i]] for p in pairs], dim=1) for i, side in enumerate((left, right))]
        U, W = (_padded(side, 1, _lanes(side.shape[1])) for side in sides)
        return cls(U, W, kind=kind, scale=unit**2, gain=gain, kernel=kernel)


def _left(U: Array, shift: float) -> Array:
    """(2u, shift − ‖u‖², 1) in pieces, for shift − ‖u − v‖² = (2u, shift − ‖u‖², 1)·(v, 1, −‖v‖²)."""
    (high, low), square = _pieces(U, 2), shift - (U * U).sum(dim=1, keepdim=True)
    ones = torch.ones_like(high[:, :1]).repeat(1, 3)
    sides = torch.cat([2 * high, 2 * high, 2 * low, *_pieces(square, 3), ones], dim=1)
    return _padded(sides, 1, _lanes(sides.shape[1]))


def _right(W: Array) -> Array:
    (high, low), square = _pieces(W, 2), -(W * W).sum(dim=1, keepdim=True)
    ones = torch.ones_like(high[:, :1]).repeat(1, 3)
    sides = torch.cat([high, low, high, ones, *_pieces(square, 3)], dim=1)
    return _padded(sides, 1, _lanes(sides.shape[1]))


def _pieces(A: Array, count: int) -> list[Array]:
    """Float16 arrays, each the rounding of what the ones before leave."""
    out = []
    for _ in range(count):
        out.append(A.to(torch.float16))
        A = A - out[-1]
    return out


def _padded(A: Array, rows: int, columns: int) -> Array:
    """The array with zeros appended, to multiples of so many rows and columns."""
    return torch.nn.functional.pad(A, (0, -A.shape[1] % columns, 0, -len(A) % rows)).contiguous()


def _lanes(width: int) -> int:
    """To a multiple of what a pairing is padded: 32, and 64 from there."""
    return min(_FEATURES, max(32, triton.next_power_of_2(width)))


def _powers(sizes: Array) -> Array:
    """Powers of two by which numbers of these sizes fall below 2¹⁴; 1 for zeros."""
    exponent = torch.frexp(torch.where(sizes > 0, sizes, 1.0))[1]
    return torch.where(sizes > 0, torch.ldexp(torch.ones_like(sizes), exponent - 14), 1.0)


def _chunk(n: int, programs: int) -> int:
    """Columns summed at a time: few enough that the sums do not drift and that the GPU has something to do."""
    return min(_CHUNK, triton.next_power_of_2(max(n * programs // 1024, min(n, 1024), _COLUMNS)))
