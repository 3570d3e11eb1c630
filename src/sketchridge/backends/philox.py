"""The Rademacher sketch made on a device: NumPy's Philox generator in PyTorch's integers."""

from __future__ import annotations

from typing import Any

import torch

__all__ = ["signs"]

_MULTIPLIERS = (0xD2E7470EE14C6C93, 0xCA5A826395121157)
_STEPS = (0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B)
_LOW = 0xFFFFFFFF


def signs(seed: int, rows: range, columns: range, cell: tuple[int, int], device: Any) -> Any:
    """S[rows, columns] of a sketch of signs, in float64, bit for bit that of the host.

    The sign of an entry is the highest bit of a byte of its cell; ``cell`` is the number of rows
    and columns that one generator draws.
    """
    height, width = cell
    out = torch.empty((len(rows), len(columns)), dtype=torch.float64, device=device)
    first = columns.start // width
    last = -(-columns.stop // width)
    left = columns.start - first * width
    for row in range(rows.start // height, -(-rows.stop // height)):
        table = _bits(seed, row, range(first, last), cell, device)
        top = row * height
        inside = table[max(rows.start - top, 0) : rows.stop - top, left : left + len(columns)]
        place = max(top - rows.start, 0)
        out[place : place + len(inside)] = 2 * inside - 1
    return out


def _bits(seed: int, row: int, columns: range, cell: tuple[int, int], device: Any) -> Any:
    """The bits of a row of cells, side by side: (height, cells · width)."""
    height, width = cell
    words = _words(seed, row, columns, height * width, device)  # (cells, words)
    shifts = range(7, 64, 8)
    bits = torch.stack([((words >> shift) & 1).to(torch.int8) for shift in shifts], dim=-1)
    return bits.reshape(-1, height, width).transpose(0, 1).reshape(height, -1)


def _words(seed: int, row: int, columns: range, size: int, device: Any) -> Any:
    """The words of some cells of a row of cells, 8 entries a word: (cells, size / 8)."""
    blocks = torch.arange(1, size // 32 + 1, device=device).repeat(len(columns), 1)
    zero = torch.zeros_like(blocks)
    place = torch.arange(columns.start, columns.stop, device=device)[:, None]
    counter = [blocks, zero, zero + row, zero + place]
    key = [seed, 0]
    for _ in range(10):
        high0, low0 = _product(counter[0], _MULTIPLIERS[0])
        high1, low1 = _product(counter[2], _MULTIPLIERS[1])
        third = high0 ^ counter[3] ^ _signed(key[1])
        counter = [high1 ^ counter[1] ^ _signed(key[0]), low1, third, low0]
        key = [(k + step) % 2**64 for k, step in zip(key, _STEPS, strict=True)]
    return torch.stack(counter, dim=-1).reshape(len(columns), -1)


def _product(a: Any, m: int) -> tuple[Any, Any]:
    """The upper and the lower word of a times m, unsigned, in signed words that wrap."""
    a0 = a & _LOW
    a1 = _upper(a)
    m0 = m & _LOW
    m1 = m >> 32
    middle = a1 * m0 + _upper(a0 * m0)
    high = a1 * m1 + _upper(middle) + _upper(a0 * m1 + (middle & _LOW))
    return high, a * _signed(m)


def _upper(a: Any) -> Any:
    return (a >> 32) & _LOW


def _signed(word: int) -> int:
    return word - 2**64 if word >= 2**63 else word
