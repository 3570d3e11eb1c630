"""Pictures as SVG inside the page: no script, no file, sharp at every size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, floor, isfinite, log10

import numpy as np
from markupsafe import Markup, escape

__all__ = ["Axis", "Plot", "colors", "line_chart", "short", "ticks"]

Array = np.ndarray
WIDTH = 440
HEIGHT = 290
LEFT, RIGHT, TOP, BOTTOM = 68, 14, 14, 44  # around the data
VIRIDIS = [
    "#440154",
    "#472d7b",
    "#3b528b",
    "#2c728e",
    "#21918c",
    "#28ae80",
    "#5ec962",
    "#addc30",
    "#fde725",
]
PURPLES = ["#e9e6f3", "#cfcbe6", "#aba6d1", "#8a7fbd", "#6a51a3", "#4a1d8a"]


def short(value: float) -> str:
    """A number at an axis.

    >>> short(0.30000000000000004), short(-1500.0), short(2e6)
    ('0.3', '−1500', '2e6')
    """
    text = f"{value:.4g}".replace("e+0", "e").replace("e-0", "e-").replace("e+", "e")
    return text.replace("-", "−")


def ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Round numbers from low to high.

    >>> ticks(0.0, 10.0)
    [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]
    """
    span = high - low
    if not (isfinite(span) and span > 0):
        return [low]
    rough = span / most
    power = 10.0 ** floor(log10(rough))
    step = next(s * power for s in (1, 2, 2.5, 5, 10) if s * power >= rough * (1 - 1e-9))
    first, last = ceil(low / step - 1e-9), floor(high / step + 1e-9)
    return [float(i * step) for i in range(first, last + 1)]


def cut(text: str, most: int) -> str:
    """A name that fits.

    >>> cut("dimethylformamide", 7)
    'dimeth…'
    """
    return text if len(text) <= most else text[: most - 1] + "…"


@dataclass(frozen=True)
class Axis:
    """Values on their way to places: numbers, or names that stand at 0, 1, 2, ..."""

    low: float
    high: float
    start: float  # places
    end: float
    names: Sequence[str] | None = None

    def at(self, value: float) -> float:
        share = (value - self.low) / ((self.high - self.low) or 1.0)
        return round(self.start + share * (self.end - self.start), 1)

    @property
    def marks(self) -> list[tuple[float, str]]:
        if self.names is not None:
            return [(self.at(i), cut(str(name), 7)) for i, name in enumerate(self.names)]
        return [(self.at(value), short(value)) for value in ticks(self.low, self.high)]


def axis(values: Array, start: float, end: float, names: Sequence[str] | None = None) -> Axis:
    """An axis with a little room at either end."""
    if names is not None:
        return Axis(-0.6, len(names) - 0.4, start, end, names)
    low, high = float(np.min(values)), float(np.max(values))
    room = 0.04 * (high - low) or 0.5 * abs(low) or 1.0
    return Axis(low - room, high + room, start, end)


class Plot:
    """A picture that is put together: axes, then what is drawn between them."""

    def __init__(self, x: Axis, y: Axis, x_name: str, y_name: str, title: str) -> None:
        self.x = x
        self.y = y
        self._title = title
        self._parts = [*_frame(x, y), *_names(x_name, y_name)]

    def add(self, part: str) -> None:
        """A piece of SVG, all of whose texts are escaped."""
        self._parts.append(part)

    def done(self, extra: int = 0) -> Markup:
        """The picture, with room for something at its right."""
        head = (
            f'<svg class="plot" viewBox="0 0 {WIDTH + extra} {HEIGHT}" role="img" '
            f'aria-label="{escape(self._title)}">'
        )
        return Markup(head + "".join(self._parts) + "</svg>")


def across(values: Array, names: Sequence[str] | None = None) -> Axis:
    """The axis from left to right."""
    return axis(values, LEFT, WIDTH - RIGHT, names)


def upward(values: Array, names: Sequence[str] | None = None) -> Axis:
    """The axis from the bottom to the top."""
    return axis(values, HEIGHT - BOTTOM, TOP, names)


def _frame(x: Axis, y: Axis) -> list[str]:
    bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    parts = []
    for place, text in y.marks:
        parts.append(f'<line class="grid" x1="{LEFT}" y1="{place}" x2="{right}" y2="{place}"/>')
        parts.append(
            f'<text class="tick" x="{LEFT - 8}" y="{place + 4}" text-anchor="end">'
            f"{escape(text)}</text>"
        )
    for place, text in x.marks:
        parts.append(
            f'<line class="tickline" x1="{place}" y1="{bottom}" x2="{place}" y2="{bottom + 4}"/>'
        )
        parts.append(
            f'<text class="tick" x="{place}" y="{bottom + 17}" text-anchor="middle">'
            f"{escape(text)}</text>"
        )
    parts.append(f'<line class="base" x1="{LEFT}" y1="{bottom}" x2="{right}" y2="{bottom}"/>')
    return parts


def _names(x: str, y: str) -> list[str]:
    middle = (TOP + HEIGHT - BOTTOM) / 2
    return [
        f'<text class="name" x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 6}" '
        f'text-anchor="middle">{escape(cut(x, 50))}</text>',
        f'<text class="name" transform="translate(13 {middle}) rotate(-90)" '
        f'text-anchor="middle">{escape(cut(y, 38))}</text>',
    ]


def line_chart(
    x: Sequence[float],
    y: Sequence[float],
    *,
    y_name: str,
    title: str,
    reference: tuple[float, str] | None = None,
) -> Markup:
    """Values by numbers of labels, joined by a line, with a dashed one to compare them with."""
    levels = [*y, 0.0, *([] if reference is None else [reference[0]])]
    across_, up = across(np.asarray(x, dtype=float)), upward(np.asarray(levels))
    up = Axis(min(0.0, min(levels)), up.high, up.start, up.end)
    plot = Plot(across_, up, "labels", y_name, title)
    if reference is not None:
        level = up.at(reference[0])
        plot.add(
            f'<line class="reference" x1="{LEFT}" y1="{level}" x2="{WIDTH - RIGHT}" y2="{level}"/>'
        )
        plot.add(
            f'<text class="remark" x="{WIDTH - RIGHT}" y="{level - 5}" text-anchor="end">'
            f"{escape(reference[1])}</text>"
        )
    places = [(across_.at(a), up.at(b)) for a, b in zip(x, y, strict=True)]
    joined = " ".join(f"{a},{b}" for a, b in places)
    floor_ = up.at(up.low)
    area = f"{places[0][0]},{floor_} {joined} {places[-1][0]},{floor_}"
    plot.add(f'<polygon class="under" points="{area}"/><polyline class="line" points="{joined}"/>')
    for (a, b), labels, value in zip(places, x, y, strict=True):
        said = escape(f"{short(value)} at {labels:,.0f} labels")
        plot.add(f'<circle class="dot" cx="{a}" cy="{b}" r="3.5"><title>{said}</title></circle>')
    return plot.done()


def colors(values: Array, palette: Sequence[str]) -> Callable[[float], str]:
    """A color for each value between the least and the largest."""
    low, high = float(np.min(values)), float(np.max(values))
    anchors = np.array([[int(c[i : i + 2], 16) for i in (1, 3, 5)] for c in palette], dtype=float)
    places = np.linspace(0, 1, len(anchors))

    def color(value: float) -> str:
        share = (value - low) / ((high - low) or 1.0)
        rgb = [round(float(np.interp(share, places, anchors[:, i]))) for i in range(3)]
        return "#{:02x}{:02x}{:02x}".format(*rgb)

    return color
