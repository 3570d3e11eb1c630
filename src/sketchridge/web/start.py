"""A new campaign, from a table that is sent by a browser."""

from __future__ import annotations

import secrets
import threading
from collections import OrderedDict
from pathlib import Path
from typing import Any

import polars as pl
from flask import Blueprint, current_app, redirect, request, url_for
from werkzeug.exceptions import NotFound
from werkzeug.wrappers import Response

from sketchridge.campaign.operations import Campaign
from sketchridge.campaign.values import number_of
from sketchridge.sheets.files import Sheet, read_sheet
from sketchridge.web.entries import count_of
from sketchridge.web.face import Answer, desk, page, said, who
from sketchridge.web.files import drop, dropped, stored
from sketchridge.web.rows import number
from sketchridge.web.sentences import for_a_page

__all__ = ["Tables", "starting"]

starting = Blueprint("start", __name__)
_PATIENCE = 20.0  # seconds for which the form waits for the campaign
_KEPT = 10  # tables that wait for their settings
_EXAMPLES = 3  # cells that are shown of a column
GOALS = {
    "explore": "learn the whole function",
    "maximize": "find the largest value",
    "minimize": "find the least value",
    "target": "come near a value",
    "boundary": "find where a value is crossed",
}
_ROLES = ("feature", "category", "left out")


class Tables:
    """Tables that came and wait for someone to say what is in them."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, Path] = OrderedDict()
        self._lock = threading.Lock()

    def keep(self, path: Path) -> str:
        """The key of a table; the oldest ones go."""
        key = secrets.token_urlsafe(8)
        with self._lock:
            self._kept[key] = path
            old = [self._kept.popitem(last=False)[1] for _ in range(len(self._kept) - _KEPT)]
        for gone in old:
            drop(gone)
        return key

    def get(self, key: str) -> Path:
        with self._lock:
            path = self._kept.get(key)
        if path is None or not path.is_file():
            raise NotFound("This table is not here any more: send it again.")
        return path

    def close(self) -> None:
        """Remove all."""
        with self._lock:
            for path in self._kept.values():
                drop(path)
            self._kept.clear()


def _tables() -> Tables:
    found: Tables = current_app.extensions["tables"]
    return found


@starting.post("/start")
def table() -> Response:
    """A table of candidates comes."""
    path = stored(request.files.get("file"))
    try:
        read_sheet(path)
    except Exception:
        drop(path)
        raise
    return redirect(url_for("start.columns", key=_tables().keep(path)), 303)


@starting.get("/start/<key>")
def columns(key: str) -> Any:
    """What is in its columns?"""
    if desk().campaign() is not None:
        return redirect(url_for("page.measure"), 303)
    return _asking(key)


def _asking(key: str, problem: str = "", outside: bool = False) -> str:
    path = _tables().get(key)
    frame = read_sheet(path).frame
    return page(
        "columns.html",
        None,
        key=key,
        file=path.name,
        rows=len(frame),
        columns=[(name, _examples(frame[name])) for name in frame.columns],
        given=request.form,
        goals=GOALS,
        roles=_ROLES,
        problem=problem,
        outside=outside,
    )


def _examples(cells: pl.Series) -> str:
    some = cells.drop_nulls().head(_EXAMPLES).to_list()
    empty = cells.null_count()
    text = ", ".join(number(cell)[:30] for cell in some)
    return f"{text} … ({empty:,} empty)" if empty else f"{text} …"


@starting.post("/start/<key>")
def begin(key: str) -> Any:
    """Start the campaign, if all is understood."""
    path = _tables().get(key)
    if desk().campaign() is not None:
        raise ValueError("There is a campaign here already: it was started in the meantime.")
    by = who()
    try:
        settings = _settings(read_sheet(path))
    except ValueError as error:
        return _asking(key, for_a_page(error)), 422
    address = desk().address
    job = desk().worker.do("Starting the campaign", lambda: _begun(address, path, by, settings))
    if not job.wait(_PATIENCE):
        return said(Answer("", job=job.number), "measure")
    if job.problem:
        return _asking(key, job.problem, job.outside), 422
    with dropped(path):
        return said(Answer(job.result), "measure")


def _begun(address: str, path: Path, by: str, settings: dict[str, Any]) -> str:
    from sketchridge.estimator import SketchedKernelRidge

    estimator = SketchedKernelRidge("auto")
    made = Campaign.create(address, path, estimator=estimator, by=by, keep=True, **settings)
    labels = made.store.count()
    known = f" {labels:,} of them are labeled already." if labels else ""
    return f"A campaign over {len(made.candidates):,} points has begun.{known}"


def _settings(sheet: Sheet) -> dict[str, Any]:
    """What was chosen for a new campaign."""
    form = request.form
    usual = "," if sheet.separator == ";" and not sheet.has_points else "."
    target = form.get("target", "")
    named = form.get("new_target", "").strip()
    if bool(named) == bool(target):
        raise ValueError(
            "Say what is measured: choose its column, or type its name if the table has none."
        )
    roles = {name: form.get(f"role-{i}", "feature") for i, name in enumerate(sheet.frame.columns)}
    given = {target, form.get("id", "")}
    goal, value = form.get("goal", "explore"), form.get("value", "").strip()
    needs_value = goal in ("target", "boundary")
    if needs_value and not value:
        raise ValueError(f"To {GOALS[goal]}, give that value too.")
    return {
        "target": named or target,
        "id_column": form.get("id") or None,
        "ignore": [n for n, role in roles.items() if role == "left out" and n not in given],
        "category": [n for n, role in roles.items() if role == "category" and n not in given],
        "unit": form.get("unit", "").strip(),
        "limits": _limits(form.get("low", "").strip(), form.get("high", "").strip(), usual),
        "accept": form.get("accept") == "yes",
        "batch_size": count_of(form.get("batch", "")),
        "goal": f"{goal} {number_of(value, usual)!r}" if needs_value else goal,
    }


def _limits(low: str, high: str, usual: str) -> tuple[float | None, float | None]:
    try:
        least, largest = (number_of(text, usual) if text else None for text in (low, high))
    except ValueError as error:
        raise ValueError(
            f"The range needs numbers, such as 0 and 100, or nothing. {error}"
        ) from None
    if least is not None and largest is not None and not least < largest:
        raise ValueError("The least value of the range must be below the largest.")
    return least, largest
