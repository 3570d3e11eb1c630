"""The Rademacher sketch made on a device: NumPy's Philox generator in PyTorch's integers, bit for bit."""

from __future__ import annotations

from typing import Any

import torch

__all__ = ["signs"]

_MULTIPLIERS = (0xD2E7470EE14C6C93, 0xCA5A826395121157)
_STEPS = (0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B)
_LOW = 0xFFFFFFFF


def signs(seed: int, rows: range, columns: range, cell: tuple[int, int], device: Any) -> Any:
    """S[rows, columns] of RademacherSketch(seed), in float64: the sign of an entry is the highest bit of a byte of its cell.

    ``cell`` is the number of rows and columns that one generator draws.
    """
    height, width = cell
    out = torch.empty((len(rows), len(columns)), dtype=torch.float64, device=device)
    first, last = columns.start // width, -(-columns.stop // width)
    for row in range(rows.start // height, -(-rows.stop // height)):
        words = _cells(seed, row, range(first, last), height * width, device)  # (cells, words)
        bits = torch.stack([(words >> shift) & 1 for shift in range(7, 64, 8)], dim=-1)
        table = bits.reshape(-1, height, width).transpose(0, 1).reshape(height, -1)
        i, start = row * height, first * width
        inside = table[max(rows.start - i, 0) : rows.stop - i, columns.start - start : columns.stop - start]
        out[max(i - rows.start, 0) : i - rows.start + height] = 2 * inside - 1
    return out


def _cells(seed: int, row: int, columns: range, size: int, device: Any) -> Any:
    """The words of some cells of a row of cells, 8 entries a word: (cells, size / 8)."""
    blocks = torch.arange(1, size // 32 + 1, device=device).repeat(len(columns), 1)
    zero = torch.zeros_like(blocks)
    place = torch.arange(columns.start, columns.stop, device=device)[:, None]
    counter, key = [blocks, zero, zero + row, zero + place], [seed, 0]
    for _ in range(10):
        (high0, low0), (high1, low1) = (_product(c, m) for c, m in zip(counter[::2], _MULTIPLIERS, strict=True))
        counter = [high1 ^ counter[1] ^ _signed(key[0]), low1, high0 ^ counter[3] ^ _signed(key[1]), low0]
        key = [(k + step) % 2**64 for k, step in zip(key, _STEPS, strict=True)]
    return torch.stack(counter, dim=-1).reshape(len(columns), -1)


def _product(a: Any, m: int) -> tuple[Any, Any]:
    """The upper and the lower word of a times m, unsigned, in signed words that wrap."""
    a0, a1, m0, m1 = a & _LOW, _upper(a), m & _LOW, m >> 32
    middle = a1 * m0 + _upper(a0 * m0)
    return a1 * m1 + _upper(middle) + _upper(a0 * m1 + (middle & _LOW)), a * _signed(m)


def _upper(a: Any) -> Any:
    return (a >> 32) & _LOW


def _signed(word: int) -> int:
    return word - 2**64 if word >= 2**63 else word
