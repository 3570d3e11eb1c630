"""The Rademacher sketch made on a device: NumPy's Philox generator in PyTorch's integers."""

from __future__ import annotations

from typing import Any

import torch

__all__ = ["signs"]

_MULTIPLIERS = (0xD2E7470EE14C6C93, 0xCA5A826395121157)
_STEPS = (0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B)
_LOW = 0xFFFFFFFF


def signs(seed: int, rows: range, columns: range, cell: tuple[int, int], device: Any) -> Any:
    """S[rows, columns] of a sketch of signs, in int8, those of the host.

    The sign of an entry is the highest bit of a byte of its cell; ``cell`` is the number of rows
    and columns that one generator draws.
    """
    (top, below), (left, right) = (
        (some.start // size, -(-some.stop // size))
        for some, size in zip((rows, columns), cell, strict=True)
    )
    height, width = cell
    words = _words(seed, range(top, below), range(left, right), height * width, device)
    shifts = range(7, 64, 8)
    bits = torch.stack([((words >> shift) & 1).to(torch.int8) for shift in shifts], dim=-1)
    table = bits.reshape(below - top, right - left, height, width).transpose(1, 2)
    table = table.reshape((below - top) * height, (right - left) * width)
    first, start = rows.start - top * height, columns.start - left * width
    return 2 * table[first : first + len(rows), start : start + len(columns)] - 1


def _words(seed: int, rows: range, columns: range, size: int, device: Any) -> Any:
    """The words of a table of cells, 8 entries a word: (rows, columns, size / 8)."""
    blocks = torch.arange(1, size // 32 + 1, device=device).expand(len(rows), len(columns), -1)
    zero = torch.zeros_like(blocks)
    row = torch.arange(rows.start, rows.stop, device=device)[:, None, None]
    column = torch.arange(columns.start, columns.stop, device=device)[:, None]
    counter = [blocks, zero, zero + row, zero + column]
    key = [seed, 0]
    for _ in range(10):
        high0, low0 = _product(counter[0], _MULTIPLIERS[0])
        high1, low1 = _product(counter[2], _MULTIPLIERS[1])
        third = high0 ^ counter[3] ^ _signed(key[1])
        counter = [high1 ^ counter[1] ^ _signed(key[0]), low1, third, low0]
        key = [(k + step) % 2**64 for k, step in zip(key, _STEPS, strict=True)]
    return torch.stack(counter, dim=-1).reshape(len(rows), len(columns), size // 8)


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
