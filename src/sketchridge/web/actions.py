"""What can be done: each form of the page, answered by a sentence at the top of the next page."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from flask import Blueprint, request
from werkzeug.exceptions import NotFound
from werkzeug.wrappers import Response

from sketchridge.campaign.labels import OutOfRange
from sketchridge.campaign.operations import Campaign
from sketchridge.web.entries import count_of, labels_from, typed, understood
from sketchridge.web.face import Answer, answers, campaign, desk, place, remember, said, who
from sketchridge.web.files import dropped, received, stored
from sketchridge.web.rows import number
from sketchridge.web.sentences import for_a_page
from sketchridge.web.views import labels_page, measure_page
from sketchridge.words import counted

__all__ = ["actions"]

actions = Blueprint("act", __name__)
_SOON = 1.5  # seconds for which a form waits for what it asked for
_NOTE = 500  # characters of a note


def _note() -> str:
    return request.form.get("note", "").strip()[:_NOTE]


def _accept() -> bool:
    return request.form.get("accept") == "yes"


# Points


@actions.post("/ask")
def ask() -> Response:
    """Choose points to measure; the same form sent twice asks once."""
    now = campaign()
    count = count_of(request.form.get("n", ""))
    title = f"Choosing {counted(count, 'point')}"
    worker = desk().worker
    answer = answers().once(
        "ask-" + request.form.get("once", ""),
        lambda: Answer("", job=worker.do(title, lambda: _asked(now, count)).number),
    )
    job = worker.job(answer.job or 0)
    if job is not None:
        job.wait(_SOON)
    return said(answer, "measure")


def _asked(now: Campaign, count: int) -> str:
    found = len(now.ask(count))
    few = "" if found == count else f" No more than {found:,} could be asked for."
    verb = "is" if found == 1 else "are"
    return f"{counted(found, 'more point')} to measure {verb} in the list.{few}"


@actions.post("/release")
def release() -> Response:
    """Give back all points that are pending."""
    now = campaign()
    count = now.release(None)
    undo = " History can undo that, point by point." if count else ""
    return said(Answer(f"{counted(count, 'point')} released.{undo}"), "measure")


@actions.post("/points/<int:row>/<what>")
def point(row: int, what: str) -> Response:
    """Do something with one point."""
    now = campaign()
    if what not in _ONE or row >= len(now.candidates):
        raise NotFound("The pool has no such point, or this cannot be done with it.")
    name = now.candidates.name(row)
    try:
        sentence = _ONE[what](now, row, name)
    except OutOfRange as error:
        return said(Answer(for_a_page(error), good=False), "point", row=row, outside="yes")
    except ValueError as error:
        return said(Answer(for_a_page(error), good=False), "point", row=row)
    return said(Answer(sentence, saved=[row]), "point", row=row)


def _told_one(now: Campaign, row: int, name: str) -> str:
    labels = labels_from(_one_value(now, row), now)
    new = now.put(labels, accept=_accept(), by=who())
    value = number(float(labels.y[0]))
    return f"{name}: {value} saved." if new else f"{name} had the label {value} already."


def _amended_one(now: Campaign, row: int, name: str) -> str:
    labels = labels_from(_one_value(now, row), now)
    old = _seen({row: request.form.get("was", "")})
    now.replace(labels, old, accept=_accept(), by=who(), note=_note())
    return f"{name} was {number(float(old[0]))} and is {number(float(labels.y[0]))}."


def _one_value(now: Campaign, row: int) -> dict[int, float]:
    text = request.form.get("value", "").strip()
    if not text:
        raise ValueError("Type a value first.")
    values, problems = understood({row: text}, now)
    if problems:
        raise ValueError(problems[row])
    return values


def _retracted(now: Campaign, row: int, name: str) -> str:
    now.retract([name], by=who(), note=_note())
    return f"The label of {name} was taken back; it stays on record."


def _failed(now: Campaign, row: int, name: str) -> str:
    now.fail([name], by=who(), note=_note())
    return f"{name} will not be asked for again."


def _released(now: Campaign, row: int, name: str) -> str:
    now.release([name])
    return f"{name} was released: it may be asked for again. History can undo that."


def _handed_out(now: Campaign, row: int, name: str) -> str:
    now.hand_out_again([name])
    return f"{name} is to be measured again."


_ONE: dict[str, Callable[[Campaign, int, str], str]] = {
    "tell": _told_one,
    "amend": _amended_one,
    "retract": _retracted,
    "fail": _failed,
    "release": _released,
    "again": _handed_out,
}


# Labels


@actions.post("/tell")
def tell() -> Any:
    """Keep what was typed for the points to measure: all of it, or nothing."""
    now = campaign()
    cells = typed(request.form, "label-")
    if not cells:
        return said(Answer("Nothing was typed, so nothing was saved.", good=False), "measure")
    values, problems = understood(cells, now)
    if problems:
        return measure_page(now, typed=cells, problems=problems, problem=_UNREADABLE), 422
    try:
        labels = labels_from(values, now)
        new = now.put(labels, accept=_accept(), by=who())
    except (ValueError, OSError) as error:
        outside = isinstance(error, OutOfRange)
        problem = f"{for_a_page(error)}{'' if outside else _NONE_SAVED}"
        return measure_page(now, typed=cells, problem=problem, outside=outside), 422
    known = len(values) - new
    more = f"; {counted(known, 'label')} had been told before" if known else ""
    answer = Answer(f"{counted(new, 'label')} saved{more}.", saved=list(values))
    return said(answer, "measure", **place())


_UNREADABLE = "Nothing was saved yet: correct the cells that are marked, and save again."
_NONE_SAVED = " Nothing was saved."


@actions.post("/amend")
def amend() -> Any:
    """Correct the labels whose cells were changed: all of them, or none."""
    now = campaign()
    cells = typed(request.form, "amend-")
    was = typed(request.form, "was-")
    cells = {row: text for row, text in cells.items() if text != was.get(row)}
    if not cells:
        return said(Answer("No label was changed, so nothing was saved.", good=False), "labels")
    values, problems = understood(cells, now)
    if problems:
        return labels_page(now, typed=cells, problems=problems, problem=_UNREADABLE), 422
    try:
        old = _seen({row: was.get(row, "") for row in values})
        now.replace(labels_from(values, now), old, accept=_accept(), by=who(), note=_note())
    except (ValueError, OSError) as error:
        outside = isinstance(error, OutOfRange)
        return labels_page(now, typed=cells, problem=for_a_page(error), outside=outside), 422
    many = counted(len(values), "label")
    sentence = f"{many} corrected; what was there before stays on record."
    return said(Answer(sentence, saved=list(values)), "labels", **place())


def _seen(was: dict[int, str]) -> np.ndarray:
    """The labels that someone saw when correcting them."""
    try:
        return np.array([float(text) for text in was.values()])
    except ValueError:
        raise ValueError("The form is incomplete: load the page again.") from None


@actions.post("/points")
def other() -> Response:
    """Go to a point by its name."""
    now = campaign()
    name = request.form.get("name", "").strip()
    if not name:
        raise ValueError("Type the name of a point first.")
    return said(Answer(""), "point", row=int(now.candidates.known_rows([name])[0]))


# Files


@actions.post("/upload")
def upload() -> Response:
    """Keep the labels of a sheet that was filled in."""
    now = campaign()
    try:
        with received(request.files.get("file")) as path:
            new, blank = now.keep(path, accept=_accept(), by=who())
    except OutOfRange as error:
        return said(Answer(for_a_page(error), good=False), "measure", outside="yes")
    rest = f"; {counted(blank, 'row')} had none yet" if blank else ""
    return said(Answer(f"{counted(new, 'label')} saved from the sheet{rest}."), "measure")


@actions.post("/add")
def add() -> Response:
    """Further candidates, from a table."""
    now = campaign()
    path = stored(request.files.get("file"))
    by, accept = who(), _accept()
    title = f"Adding the candidates of {path.name}"
    job = desk().worker.do(title, lambda: _added(now, path, by, accept))
    job.wait(_SOON)
    return said(Answer("", job=job.number), "history")


def _added(now: Campaign, path: Any, by: str, accept: bool) -> str:
    with dropped(path):
        count, labeled = now.add(path, by=by, keep=True, accept=accept)
    known = f", {labeled:,} of them labeled already" if labeled else ""
    return f"{counted(count, 'candidate')} added{known}."


# Who


@actions.post("/who")
def name_yourself() -> Response:
    """Remember who works in this browser."""
    name = request.form.get("name", "")
    there = f"Entries from this browser are now on record as by {name.strip()[:60] or 'nobody'}."
    return remember(said(Answer(there), "measure"), name)
