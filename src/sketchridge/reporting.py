"""A page for a colleague: figures, tables and text in one HTML file that needs nothing else."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any

from sketchridge.drawing import new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Section", "drawn", "page", "picture", "table"]

_NUMBER = ' class="number"'
_SCREEN = 100  # pixels of an inch, on a screen
_STYLE = """
:root { --ink: #1c2733; --soft: #5d6b7a; --line: #dfe5eb; --accent: #1f5a8a; --paper: #fbfcfd; }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); }
body { font: 16px/1.55 Georgia, "Times New Roman", serif; }
main { max-width: 62rem; margin: 0 auto; padding: 3rem 1.5rem 5rem; }
h1 { font-size: 2rem; line-height: 1.2; margin: 0 0 .4rem; }
h2 { font-size: 1.3rem; margin: 2.6rem 0 .6rem; }
h2 { padding-top: 1.2rem; border-top: 1px solid var(--line); }
.lead { color: var(--soft); font-size: 1.08rem; margin: 0 0 1.5rem; }
figure { margin: 1.2rem 0; }
img { max-width: 100%; height: auto; display: block; margin: 0 auto; }
.wide { overflow-x: auto; }
.grid { display: grid; gap: .4rem 1.5rem; margin: 1.2rem 0; }
.grid { grid-template-columns: repeat(auto-fit, minmax(min(18rem, 100%), 1fr)); }
.grid figure { margin: 0; }
.grid img { width: 100%; }
th.number { text-align: right; padding-right: 1.2rem; }
table { border-collapse: collapse; margin: 1rem 0; width: 100%; }
table { font: 14px/1.45 system-ui, sans-serif; }
th, td { text-align: left; padding: .4rem .7rem .4rem 0; vertical-align: top; }
th, td { border-bottom: 1px solid var(--line); }
th { color: var(--soft); font-weight: 600; }
td.number { text-align: right; padding-right: 1.2rem; }
td.number { font-variant-numeric: tabular-nums; white-space: nowrap; }
.good { color: #1d7a4d; font-weight: 600; }
.bad { color: #b8362f; font-weight: 600; }
.open { color: #9a6a00; font-weight: 600; }
footer { margin-top: 3rem; color: var(--soft); font-size: .9rem; }
"""


@dataclass(frozen=True)
class Section:
    """A heading with paragraphs, and then pieces of HTML made by `picture` and `table`."""

    title: str
    text: str = ""
    pieces: Sequence[str] = field(default_factory=tuple)


def page(title: str, lead: str, sections: Iterable[Section], footer: str = "") -> str:
    """The whole document."""
    body = "\n".join(
        f"<section><h2>{escape(s.title)}</h2>{_paragraphs(s.text)}{''.join(s.pieces)}</section>"
        for s in sections
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta '
        f'charset="utf-8"><title>{escape(title)}</title><meta name="viewport" '
        f'content="width=device-width, initial-scale=1"><style>{_STYLE}</style></head>\n'
        f'<body><main><h1>{escape(title)}</h1><p class="lead">{escape(lead)}</p>\n{body}\n'
        f"<footer>{escape(footer)}</footer></main></body></html>\n"
    )


def drawn(draw: Callable[[Any], Any], size: tuple[float, float], description: str) -> str:
    """What a function draws on axes of its own, for a page.

    Parameters
    ----------
    draw : callable
        Called with the axes.
    size : pair of float
        Width and height in inches.
    description : str
        In words, for those who cannot see it.

    Returns
    -------
    html : str
        A piece of a section.

    Examples
    --------
    >>> drawn(lambda ax: ax.plot([1, 2]), (2, 1), "a line")[:8]
    '<figure>'
    """
    figure, (ax,) = new_figure(size=size)
    draw(ax)
    ax.spines[["top", "right"]].set_visible(False)
    return picture(figure, description)


def picture(figure: Figure, description: str) -> str:
    """A matplotlib figure as part of the page; the description is for those who cannot see it."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=150, bbox_inches="tight", transparent=True)
    data = base64.b64encode(buffer.getvalue()).decode()
    width = round(_SCREEN * figure.get_figwidth())
    source = f"data:image/png;base64,{data}"
    return f'<figure><img alt="{escape(description)}" width="{width}" src="{source}"></figure>'


def table(rows: Sequence[dict[str, Any]], *, classes: dict[str, str] | None = None) -> str:
    """Rows with the same columns. A cell whose text is a key of ``classes`` gets that style."""
    if not rows:
        return ""
    head = "".join(
        f"<th{_NUMBER if _is_number(value) else ''}>{escape(str(name))}</th>"
        for name, value in rows[0].items()
    )
    body = "".join(
        "<tr>" + "".join(_cell(value, classes or {}) for value in row.values()) + "</tr>"
        for row in rows
    )
    content = f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody>"
    return f'<div class="wide"><table>{content}</table></div>'


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _cell(value: Any, classes: dict[str, str]) -> str:
    if _is_number(value):
        text = f"{value:,}" if isinstance(value, int) else f"{value:.4g}"
        return f"<td{_NUMBER}>{text}</td>"
    text = "" if value is None else str(value)
    style = f' class="{classes[text]}"' if text in classes else ""
    return f"<td{style}>{escape(text)}</td>"


def _paragraphs(text: str) -> str:
    return "".join(f"<p>{escape(part.strip())}</p>" for part in text.split("\n\n") if part.strip())
