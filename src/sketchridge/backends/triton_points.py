"""Points as the programs of ``triton_kernels`` take them: rows whose products give s."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
import triton

from sketchridge.backends.paths import object_at
from sketchridge.backends.points import Points
from sketchridge.kernels import Kernel

__all__ = ["RANGE", "Pair", "padded", "paired", "pieces"]

RANGE = 2.0**14  # of ‖u‖² and of scaled numbers: float16 ends at 65504
_FAR = 2.0**14  # ‖u‖² from which squared distances in float64 are clipped at 0 for every kernel
_WIDEST = 300  # coordinates: numbers of 2²¹ points are counted in 32 bits
_LANES = {torch.float16: (32, 64), torch.float64: (16, 32)}  # of a point: padded to, and at once
_SUMS = {torch.float16: torch.float32, torch.float64: torch.float64}


class Pair(NamedTuple):
    """Rows of P and of Q whose products are s/scale, and what makes gain·k of them."""

    left: Any  # (t, K)
    right: Any  # (n, K)
    scale: float
    gain: float
    options: dict[str, Any]

    @property
    def sums(self) -> torch.dtype:
        """The type in which products are added."""
        return _SUMS[self.left.dtype]


def paired(P: Points, Q: Points, operand: torch.dtype) -> Pair | None:
    """The points in float16 pieces or in float64, or None where they are not for the programs."""
    kernel = P.kernel
    if kernel.fused is None or kernel.geometry == "opaque" or not len(P) or not len(Q):
        return None
    if P.U.shape[1] > _WIDEST:
        return None
    if kernel.geometry == "distance":
        return _distances(P, Q, operand)
    return _inner_products(P, Q, operand)


def padded(A: Any, rows: int, columns: int = 1) -> Any:
    """The array with zeros appended, to multiples of so many rows and columns."""
    more_rows = -len(A) % rows
    more_columns = -A.shape[1] % columns
    if more_rows or more_columns:
        A = torch.nn.functional.pad(A, (0, more_columns, 0, more_rows))
    return A.contiguous()


def pieces(A: Any, count: int, dtype: torch.dtype) -> list[Any]:
    """Arrays of a type, each the rounding of what the ones before leave."""
    out = [A.to(dtype)]
    for _ in range(count - 1):
        A = A - out[-1]
        out.append(A.to(dtype))
    return out


def _distances(P: Points, Q: Points, operand: torch.dtype) -> Pair | None:
    """For a function of ‖u − v‖²; where it is ``folded``, products are slope·s + shift."""
    if P.far().any() and Q.far().any():
        return None
    function = _function(P.kernel)
    halves = operand == torch.float16
    gain = RANGE if halves else 1.0
    largest = max(_largest(P), _largest(Q))
    folded = getattr(function, "folded", None) if halves or largest < _FAR else None
    slope = 1.0 if folded is None else folded.slope
    shift = 0.0 if folded is None else folded.shift(gain)
    if halves and abs(slope) * largest > RANGE:
        return None
    left = _lifted(P, "left", operand, slope, shift)
    right = _lifted(Q, "right", operand, slope, shift)
    if folded is not None:
        function = folded.function
    options = _options(P.kernel, function, left, folded=folded is not None)
    return Pair(left, right, 1.0, gain, options)


def _inner_products(P: Points, Q: Points, operand: torch.dtype) -> Pair | None:
    """For a function of u·v, whose values |k(u, v)|² ≤ k(u, u) k(v, v) decide the gain."""
    scale = gain = 1.0
    if operand == torch.float16:
        top = math.sqrt(_top(P) * _top(Q)) if min(_top(P), _top(Q)) > 0 else 0.0
        small_enough = all(1e-30 < _largest(points) < 1e30 for points in (P, Q))
        if not small_enough or not 1e-15 < top < 1e15:
            return None
        scale = _unit(P) * _unit(Q)
        gain = 2.0 ** (13 - math.ceil(math.log2(top)))
    left = _plain(P, "left", operand)
    right = _plain(Q, "right", operand)
    return Pair(left, right, scale, gain, _options(P.kernel, _function(P.kernel), left))


def _options(kernel: Kernel, function: Any, rows: Any, *, folded: bool = False) -> dict[str, Any]:
    """What a program is compiled for."""
    parameters = getattr(kernel, "parameters", ())
    return {
        "K": rows.shape[1],
        "KB": min(rows.shape[1], _LANES[rows.dtype][1]),
        "FUSED": function,
        "ARGS": tuple(getattr(kernel, "numbers", parameters)),
        "DISTANCE": kernel.geometry == "distance",
        "FOLDED": folded,
    }


def _function(kernel: Kernel) -> Any:
    """The kernel's Triton function, which may be given by its import path."""
    fused = kernel.fused
    found = object_at(fused) if isinstance(fused, str) else fused
    if not hasattr(found, "fn"):
        raise ValueError(
            f"The fused function of {kernel!r} must be decorated with @triton.jit, or be the "
            f"import path of one that is; got {fused!r}."
        )
    return found


def _lifted(points: Points, side: str, operand: torch.dtype, slope: float, shift: float) -> Any:
    """Rows with slope·‖u − v‖² + shift = (∓2u', shift ± ‖u'‖², 1)·(v', 1, ±‖v'‖²), u' = u√|slope|.

    The sign is that of the slope.
    """

    def make() -> Any:
        sign = math.copysign(1.0, slope)
        U = points.U * math.sqrt(abs(slope))
        squares = sign * (U * U).sum(dim=1, keepdim=True)
        ones = torch.ones_like(squares)
        if side == "left":
            columns = ((-2 * sign * U, side), (squares + shift, "whole"), (ones, "ones"))
        else:
            columns = ((U, side), (ones, "ones"), (squares, "whole"))
        return _in_lanes([_numbers(A, kind, operand) for A, kind in columns])

    return _kept(points, (side, operand, slope, shift), make)


def _plain(points: Points, side: str, operand: torch.dtype) -> Any:
    """Rows whose products are u·v, up to the units of the two sets."""

    def make() -> Any:
        U = points.U if operand == torch.float64 else points.U / _unit(points)
        return _in_lanes([_numbers(U, side, operand)])

    return _kept(points, (side, operand), make)


def _numbers(A: Any, kind: str, operand: torch.dtype) -> Any:
    """Columns in float64, or in float16 pieces: high·high + high·low + low·high of two sides.

    A whole column is in three pieces, which meet three ones.
    """
    if operand == torch.float64:
        return A
    if kind == "ones":
        return A.to(operand).repeat(1, 3)
    if kind == "whole":
        return torch.cat(pieces(A, 3, operand), dim=1)
    high, low = pieces(A, 2, operand)
    return torch.cat([high, high, low] if kind == "left" else [high, low, high], dim=1)


def _in_lanes(columns: list[Any]) -> Any:
    """Columns side by side, and zeros up to the number that is multiplied at once."""
    rows = torch.cat(columns, dim=1)
    least, most = _LANES[rows.dtype]
    return padded(rows, 1, min(most, max(least, triton.next_power_of_2(rows.shape[1]))))


def _kept(points: Points, key: Any, make: Any) -> Any:
    def checked() -> Any:
        what = f"Preparing {len(points):,} points for kernel products"
        points.backend.check_memory(24 * points.U.numel(), what)
        return make()

    return points.kept(("fused", *key), checked)


def _largest(points: Points) -> float:
    """The largest ‖u‖²."""
    return points.kept("largest", lambda: float(_squares(points).max()))


def _top(points: Points) -> float:
    """The largest k(u, u), for a function of u·v."""
    return points.kept("top", lambda: float(points.kernel.evaluate(_squares(points), torch).max()))


def _unit(points: Points) -> float:
    """A power of two by which every coordinate falls below 2⁷."""
    return 2.0 ** round(math.log2(_largest(points)) / 2 - 6)


def _squares(points: Points) -> Any:
    return (points.U * points.U).sum(dim=1)
