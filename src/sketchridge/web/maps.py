"""What the model says of the candidates, along one or two of their columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl
from markupsafe import Markup, escape

from sketchridge.campaign.encoding import Encoding
from sketchridge.web import svg

__all__ = ["Predicted", "columns_of", "draw_map", "draw_profile"]

Array = np.ndarray
_MOST = 1200  # candidates in a picture
_BAR = 62  # width of the scale of colors
_STEPS = 24


@dataclass(frozen=True, eq=False)
class Predicted:
    """Predictions for all candidates, by what they are."""

    frame: pl.DataFrame  # of `Campaign.predict`
    encoding: Encoding

    def _made(self, name: str) -> Array:
        """A column of the prediction; its name has an ending where a column of the table has it."""
        found = next(each for each in reversed(self.frame.columns[:-1]) if each.startswith(name))
        return self.frame[found].cast(pl.Float64).to_numpy()

    @property
    def names(self) -> pl.Series:
        return self.frame[self.frame.columns[0]]

    @cached_property
    def mean(self) -> Array:
        return self._made("predicted")

    @cached_property
    def low(self) -> Array:
        return self._made("low ")

    @cached_property
    def high(self) -> Array:
        return self._made("high ")

    @cached_property
    def label(self) -> Array:
        """NaN where there is none."""
        return self.frame[self.encoding.heading].fill_null(np.nan).to_numpy()

    def column(self, name: str) -> tuple[Array, Sequence[str] | None]:
        """Of a feature: its numbers, or the places of its values among their names."""
        feature = next(f for f in self.encoding.features if f.name == name)
        values = self.frame[name]
        if feature.values is None:
            return values.cast(pl.Float64).to_numpy(), None
        places = {value: i for i, value in enumerate(feature.values)}
        text = values.cast(pl.String).to_list()
        spread = 0.5 * (np.arange(len(text)) * 0.618 % 1.0 - 0.5)  # beside each other
        return np.array([places[t] for t in text]) + spread, list(feature.values)


def columns_of(encoding: Encoding) -> list[str]:
    """The features that a map can be drawn along."""
    return [feature.name for feature in encoding.features]


def _chosen(labeled: Array, pending: Array) -> Array:
    """Rows in the picture: an even share of the pool, and all that are labeled or pending."""
    rows = np.linspace(0, len(labeled) - 1, _MOST).astype(int)
    extra = np.concatenate([np.flatnonzero(labeled), pending])[-_MOST:]
    return np.unique(np.concatenate([rows, extra]))


def draw_map(found: Predicted, x_name: str, y_name: str, pending: Array) -> Mapping[str, Markup]:
    """Two pictures of the candidates: colored by the mean, and by the width of the interval."""
    x, x_names = found.column(x_name)
    y, y_names = found.column(y_name)
    labeled = np.isfinite(found.label)
    rows = _chosen(labeled, pending)
    half = (found.high - found.low) / 2
    drawn = {}
    for key, values, palette, what in (
        ("mean", found.mean, svg.VIRIDIS, "predicted mean"),
        ("width", half, svg.PURPLES, "half width of the interval"),
    ):
        title = f"Candidates by {x_name} and {y_name}, colored by the {what}"
        plot = svg.Plot(svg.across(x, x_names), svg.upward(y, y_names), x_name, y_name, title)
        color = svg.colors(values[rows], palette)
        order = rows[np.argsort(labeled[rows], kind="stable")]  # labeled ones on top
        for row in order.tolist():
            plot.add(
                _dot(plot, x[row], y[row], color(values[row]), labeled[row], _said(found, row))
            )
        for row in pending.tolist()[-_MOST:]:
            plot.add(_ring(plot, x[row], y[row]))
        plot.add(_bar(values[rows], palette))
        drawn[key] = plot.done(_BAR)
    return drawn


def draw_profile(found: Predicted, name: str) -> Markup:
    """The mean and the interval along one feature, with the labels: a line and a band where it is
    the only one."""
    x, names = found.column(name)
    labeled = np.isfinite(found.label)
    rows = _chosen(labeled, np.empty(0, dtype=int))
    rows = rows[np.argsort(x[rows])]
    levels = np.concatenate([found.low[rows], found.high[rows], found.label[labeled]])
    heading = found.encoding.heading
    plot = svg.Plot(svg.across(x, names), svg.upward(levels), name, heading, f"{heading} by {name}")
    alone = names is None and len(found.encoding.features) == 1
    if alone:
        there = [(plot.x.at(x[i]), i) for i in rows.tolist()]
        upper = [f"{a},{plot.y.at(found.high[i])}" for a, i in there]
        lower = [f"{a},{plot.y.at(found.low[i])}" for a, i in reversed(there)]
        mean = " ".join(f"{a},{plot.y.at(found.mean[i])}" for a, i in there)
        plot.add(f'<polygon class="band" points="{" ".join(upper + lower)}"/>')
        plot.add(f'<polyline class="line" points="{mean}"/>')
    for row in rows.tolist():
        a, low, high = plot.x.at(x[row]), plot.y.at(found.low[row]), plot.y.at(found.high[row])
        if not alone:
            middle = plot.y.at(found.mean[row])
            plot.add(f'<line class="whisker" x1="{a}" y1="{low}" x2="{a}" y2="{high}"/>')
            plot.add(f'<circle class="mean" cx="{a}" cy="{middle}" r="2.4"/>')
    for row in np.flatnonzero(labeled).tolist()[-_MOST:]:
        said = escape(_said(found, row))
        a, b = plot.x.at(x[row]), plot.y.at(found.label[row])
        plot.add(f'<circle class="measured" cx="{a}" cy="{b}" r="4"><title>{said}</title></circle>')
    return plot.done()


def _said(found: Predicted, row: int) -> str:
    """Of a point, when someone points at it."""
    half = (found.high[row] - found.low[row]) / 2
    label = found.label[row]
    known = f", measured {label:.4g}" if np.isfinite(label) else ""
    return f"{found.names[row]}: {found.mean[row]:.4g} ± {half:.2g}{found.encoding.behind}{known}"


def _dot(plot: svg.Plot, x: float, y: float, fill: str, labeled: bool, said: str) -> str:
    kind, size = ("known", 5) if labeled else ("open", 3.6)
    return (
        f'<circle class="{kind}" cx="{plot.x.at(x)}" cy="{plot.y.at(y)}" r="{size}" '
        f'fill="{fill}"><title>{escape(said)}</title></circle>'
    )


def _ring(plot: svg.Plot, x: float, y: float) -> str:
    return f'<circle class="asked" cx="{plot.x.at(x)}" cy="{plot.y.at(y)}" r="7"/>'


def _bar(values: Array, palette: Sequence[str]) -> str:
    """The scale of colors, at the right."""
    low, high = float(values.min()), float(values.max())
    color = svg.colors(np.array([0.0, 1.0]), palette)
    top, bottom, left = svg.TOP, svg.HEIGHT - svg.BOTTOM, svg.WIDTH + 2
    step = (bottom - top) / _STEPS
    parts = [
        f'<rect x="{left}" y="{bottom - (i + 1) * step:.1f}" width="11" '
        f'height="{step + 0.6:.1f}" fill="{color(i / (_STEPS - 1))}"/>'
        for i in range(_STEPS)
    ]
    scale = svg.Axis(low, high if high > low else low + 1.0, bottom, top)
    marks = scale.marks if high > low else [(bottom, svg.short(low))]
    parts += [
        f'<text class="tick" x="{left + 15}" y="{place + 4}">{escape(text)}</text>'
        for place, text in marks
    ]
    return "".join(parts)
