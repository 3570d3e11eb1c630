"""The programs of ``triton_fused``: each makes tiles of k(P, Q) in registers and uses them there.

Points come as rows U and Z of K numbers whose products give distances or inner products: in float16
pieces or in float64. Sums are float32 or, of float64 numbers, float64. Rows and columns are padded
with zeros; only outputs are masked. FUSED(s, ARGS) is the kernel as a function of s
(``triton_profiles``).
"""

from __future__ import annotations

import triton
import triton.language as tl

__all__ = ["block", "gather", "matmul", "residual", "split"]


@triton.jit
def _values(
    s,
    scale,
    gain,
    FUSED: tl.constexpr,
    ARGS: tl.constexpr,
    DISTANCE: tl.constexpr,
    FOLDED: tl.constexpr,
):
    """gain·k from products s of coordinates; scale and gain are 1 in float64."""
    HALVES: tl.constexpr = s.dtype != tl.float64
    if DISTANCE:
        if not FOLDED:
            s = tl.maximum(s, 0.0)
    elif HALVES:
        s = s * scale
    k = FUSED(s, ARGS)
    if HALVES and not FOLDED:
        k = k * gain
    return k


@triton.jit
def _pairing(u, U, Z, rows, cols, K: tl.constexpr, KB: tl.constexpr):
    """The products of rows of U and Z, the first KB of whose K numbers are u."""
    SWAP: tl.constexpr = u.dtype == tl.float64  # a float64 u takes fewer registers on the right
    lanes = tl.arange(0, KB)[None, :]
    z = tl.load(Z + cols[:, None] * K + lanes)
    s = tl.dot(z, u.T, out_dtype=tl.float64) if SWAP else tl.dot(u, z.T)
    for start in tl.static_range(KB, K, KB):
        u = tl.load(U + rows[:, None] * K + start + lanes)
        z = tl.load(Z + cols[:, None] * K + start + lanes)
        s = tl.dot(z, u.T, s, out_dtype=tl.float64) if SWAP else tl.dot(u, z.T, s)
    return s.T if SWAP else s


@triton.jit
def matmul(
    U, Z, V, V_low, OUT, scale, gain, t, STEPS: tl.constexpr, K: tl.constexpr, KB: tl.constexpr,
    Q: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BQ: tl.constexpr, PASSES: tl.constexpr,
    FUSED: tl.constexpr, ARGS: tl.constexpr, DISTANCE: tl.constexpr, FOLDED: tl.constexpr,
):  # fmt: skip
    """OUT[c] = gain·k(P, Q[c]) V[c] over chunks c of the points Q.

    One program does a block of rows and a block of columns of V for one chunk.
    """
    SUM: tl.constexpr = OUT.dtype.element_ty
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    u = tl.load(U + rows[:, None] * K + tl.arange(0, KB)[None, :])
    first = tl.program_id(2) * (STEPS * BN)
    Z += first * K
    V += first * Q + tl.program_id(1) * BQ
    V_low += first * Q + tl.program_id(1) * BQ
    lanes = tl.arange(0, BQ)[None, :]
    total = tl.zeros((BM, BQ), dtype=SUM)
    for j in range(0, STEPS * BN, BN):
        cols = j + tl.arange(0, BN)
        v = tl.load(V + cols[:, None] * Q + lanes)
        s = _pairing(u, U, Z, rows, cols, K, KB)
        k = _values(s, scale, gain, FUSED, ARGS, DISTANCE, FOLDED)
        high = k.to(v.dtype)
        if PASSES == 1:
            total = tl.dot(high, v, total, out_dtype=SUM)
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
def gather(
    PARTIAL, OUT, units, gain, t, q, WIDTH: tl.constexpr, CHUNKS: tl.constexpr, BM: tl.constexpr,
    BQ: tl.constexpr,
):  # fmt: skip
    """OUT += Σ_c PARTIAL[c] · units/gain, in float64."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BQ + tl.arange(0, BQ)
    inside = (rows < t)[:, None] & (cols < q)[None, :]
    total = tl.zeros((BM, BQ), dtype=tl.float64)
    for c in range(CHUNKS):
        place = PARTIAL + (c * t + rows)[:, None] * WIDTH + cols[None, :]
        total += tl.load(place, mask=inside, other=0.0).to(tl.float64)
    scale = tl.load(units + cols, mask=cols < q, other=1.0) / gain
    place = OUT + rows.to(tl.int64)[:, None] * q + cols[None, :]
    before = tl.load(place, mask=inside, other=0.0)
    tl.store(place, before + total * scale[None, :], mask=inside)


@triton.jit
def residual(
    U, Z, H, H_low, C, C_low, C_scale, W, OUT, scale, gain, t, STEPS: tl.constexpr, M: tl.constexpr,
    K: tl.constexpr, KB: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BL: tl.constexpr,
    PASSES: tl.constexpr, FUSED: tl.constexpr, ARGS: tl.constexpr, DISTANCE: tl.constexpr,
    FOLDED: tl.constexpr,
):  # fmt: skip
    """OUT[c] = Σ_j w_j (gain·k − C_scale C Hᵀ)² over chunks c of the points Q.

    Points that are there to fill a chunk have the weight 0. M is 0 where only k is squared.
    """
    SUM: tl.constexpr = OUT.dtype.element_ty
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    u = tl.load(U + rows[:, None] * K + tl.arange(0, KB)[None, :])
    unit = tl.load(C_scale + rows)
    lanes = tl.arange(0, BL)
    total = tl.zeros((BM,), dtype=SUM)
    for j in range(STEPS):
        cols = (tl.program_id(1) * STEPS + j) * BN + tl.arange(0, BN)
        fitted = tl.zeros((BM, BN), dtype=SUM)
        for start in range(0, M, BL):
            c_place = rows[:, None] * M + (start + lanes)[None, :]
            h_place = cols[:, None] * M + (start + lanes)[None, :]
            c = tl.load(C + c_place)
            h = tl.load(H + h_place).T
            if PASSES == 1:
                fitted = tl.dot(c, h, fitted, out_dtype=SUM)
            else:
                part = tl.dot(c, h)
                part = tl.dot(tl.load(C_low + c_place), h, part)
                fitted += tl.dot(c, tl.load(H_low + h_place).T, part)
        s = _pairing(u, U, Z, rows, cols, K, KB)
        k = _values(s, scale, gain, FUSED, ARGS, DISTANCE, FOLDED)
        r = k - fitted * unit[:, None]
        total += tl.sum(r * r * tl.load(W + cols)[None, :], axis=1)
    tl.store(OUT + tl.program_id(1) * t + rows, total, mask=rows < t)


@triton.jit
def block(
    U, Z, OUT, t, n, stride, K: tl.constexpr, KB: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
    FUSED: tl.constexpr, ARGS: tl.constexpr, DISTANCE: tl.constexpr, FOLDED: tl.constexpr,
):  # fmt: skip
    """OUT = k(P, Q) in float64, rows of OUT being ``stride`` numbers apart."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    u = tl.load(U + rows[:, None] * K + tl.arange(0, KB)[None, :])
    s = _pairing(u, U, Z, rows, cols, K, KB)
    k = _values(s, 1.0, 1.0, FUSED, ARGS, DISTANCE, FOLDED)
    place = OUT + rows.to(tl.int64)[:, None] * stride + cols[None, :]
    tl.store(place, k, mask=(rows < t)[:, None] & (cols < n)[None, :])


@triton.jit
def split(
    V, UNITS, HIGH, LOW, n, q, stride, WIDTH: tl.constexpr, BM: tl.constexpr, BQ: tl.constexpr
):
    """V/units = high + low in float16, and zeros beyond its n rows and q columns."""
    rows = (tl.program_id(0) * BM + tl.arange(0, BM)).to(tl.int64)[:, None]
    cols = (tl.program_id(1) * BQ + tl.arange(0, BQ))[None, :]
    v = tl.load(V + rows * stride + cols, mask=(rows < n) & (cols < q), other=0.0)
    v = v / tl.load(UNITS + cols, mask=cols < q, other=1.0)
    high = v.to(tl.float16)
    tl.store(HIGH + rows * WIDTH + cols, high)
    tl.store(LOW + rows * WIDTH + cols, (v - high.to(tl.float64)).to(tl.float16))
