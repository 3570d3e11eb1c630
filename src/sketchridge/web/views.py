"""What there is to see: every page and file, none of which changes anything."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from flask import Blueprint, Response, jsonify, redirect, request, url_for
from werkzeug.exceptions import NotFound
from werkzeug.wrappers import Response as AnyResponse

from sketchridge.campaign.operations import Campaign
from sketchridge.web import maps
from sketchridge.web.curves import curves_of
from sketchridge.web.desk import Made, model_mark, record_mark
from sketchridge.web.face import campaign, desk, page, place
from sketchridge.web.files import sheet_bytes
from sketchridge.web.jobs import Job
from sketchridge.web.rows import labels_of, leaf, number, past_of, points_of, released
from sketchridge.words import shown

__all__ = ["labels_page", "measure_page", "views"]

views = Blueprint("page", __name__)
Array = np.ndarray
_TYPES = {
    "csv": "text/csv; charset=utf-8",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "html": "text/html; charset=utf-8",
}
_SORTS = {
    "name": "as in the table",
    "high": "largest mean first",
    "low": "least mean first",
    "wide": "widest interval first",
}


def _leaf_number() -> int:
    text = request.args.get("leaf", "1")
    return int(text) if re.fullmatch(r"[0-9]{1,9}", text) else 1


# Measuring


@views.get("/")
def measure() -> str:
    return measure_page(campaign())


def measure_page(now: Campaign, **values: Any) -> str:
    """The points to measure, with cells to type into; ``values`` say what was typed."""
    pending = now.store.pending().tolist()
    part = leaf(pending, _leaf_number())
    return page(
        "measure.html",
        now,
        part=part,
        points=points_of(now, part.rows),
        batch=now.store.settings()["batch_size"],
        free=len(now.candidates) - len(now.store.taken()),
        **_typed(now, part.rows, values),
    )


def _typed(now: Campaign, there: Sequence[int], values: Mapping[str, Any]) -> dict[str, Any]:
    """What was typed and refused, what of it belongs to rows that are not there any more, and
    labels that are on record."""
    gone = [row for row in values.get("typed", {}) if row not in there]
    return {
        "typed": {},
        "problems": {},
        "problem": "",
        "outside": False,
        "gone": points_of(now, [row for row in gone if row < len(now.candidates)]),
        "known": {label.row: label for label in labels_of(now)} if gone else {},
        **values,
    }


@views.get("/tell")
@views.get("/amend")
def form() -> AnyResponse:
    """A form that was refused is shown at its own address, which holds nothing to look at."""
    to = "page.measure" if request.path == "/tell" else "page.labels"
    return redirect(url_for(to, **place()), 303)


@views.get("/sheet")
def sheet() -> str:
    """The points to measure, to be printed and filled in by hand."""
    now = campaign()
    return page("sheet.html", now, points=points_of(now, now.store.pending().tolist()))


# Labels


@views.get("/labels")
def labels() -> str:
    return labels_page(campaign())


def labels_page(now: Campaign, **values: Any) -> str:
    """Labels, with cells in which they can be corrected."""
    wanted = request.values.get("search", "").strip()
    every = labels_of(now)
    found = [label for label in every if wanted.lower() in label.name.lower()]
    part = leaf(found, _leaf_number())
    return page(
        "labels.html",
        now,
        part=part,
        search=wanted,
        past=past_of,
        **_typed(now, [label.row for label in part.rows], values),
    )


@views.get("/points/<int:row>")
def point(row: int) -> str:
    """All that is known of a point, and what can be done with it."""
    now = campaign()
    if row >= len(now.candidates):
        raise NotFound("The pool has no such point.")
    store = now.store
    label = next((one for one in labels_of(now) if one.row == row), None)
    changes = [change for change in store.changes() if change.id == row]
    failures = [failure for failure in store.failures() if failure.id == row]
    failed = row in store.failed()
    given_back, withdrawn = released(now)
    return page(
        "point.html",
        now,
        point=points_of(now, [row])[0],
        label=label,
        pending=row in store.pending(),
        failed=failed,
        failure=failures[-1] if failures else None,
        past=past_of(changes),
        given_back=row in given_back,
        withdrawn=row in [one.id for one in withdrawn],
        predicted=_prediction_of(now, row),
    )


def _prediction_of(now: Campaign, row: int) -> str:
    """In words, where it is known."""
    made = desk().latest("predictions")
    if made is None or made.mark != model_mark(now) or row >= len(made.value):
        return ""
    found = maps.Predicted(made.value[row : row + 1], now.encoding)
    unit = now.encoding.behind
    said = _rounded(found, 0)
    return f"{said['mean']}{unit}, 95% interval {said['low']} to {said['high']}{unit}"


def _rounded(found: maps.Predicted, row: int) -> dict[str, str]:
    """A prediction with as many digits as its interval allows."""
    values = {"mean": found.mean[row], "low": found.low[row], "high": found.high[row]}
    half = (values["high"] - values["low"]) / 2
    if not 1e-6 < half < 1e9:
        return {name: number(float(value)) for name, value in values.items()}
    digits = max(2 - int(np.floor(np.log10(half))), 0)
    return {name: f"{round(value, digits) + 0.0:.{digits}f}" for name, value in values.items()}


# What was learned


@views.get("/progress")
def progress() -> str:
    now = campaign()
    return page("progress.html", now, curves=curves_of(now))


@views.get("/map")
def map_() -> str:
    """Candidates along two features."""
    now = campaign()
    names = maps.columns_of(now.encoding)
    given = [request.args.get(key, "") for key in "xy"]
    x, y = (g if g in names else names[min(i, len(names) - 1)] for i, g in enumerate(given))
    made, about = _predictions(now)
    drawn: Mapping[str, Any] = {}
    profile = None
    if made is not None:
        found = maps.Predicted(made.value, now.encoding)
        if x == y:
            profile = maps.draw_profile(found, x)
        else:
            pending = now.store.pending()
            drawn = maps.draw_map(found, x, y, pending[pending < len(made.value)])
    return page(
        "map.html",
        now,
        names=names,
        x=x,
        y=y,
        drawn=drawn,
        profile=profile,
        **about,
    )


def _predictions(now: Campaign) -> tuple[Made | None, dict[str, Any]]:
    """The predictions there are, and what is to be said of them: the job that makes newer ones,
    what went wrong, whether they are of all labels, and notes."""
    made, job, problem = _made_or_job(now)
    return made, {
        "job": job,
        "problem": problem,
        "fresh": made is not None and made.mark == model_mark(now),
        "notes": [] if made is None else made.notes,
    }


def _made_or_job(now: Campaign) -> tuple[Made | None, Job | None, str]:
    if now.store.count() < 2:
        return None, None, "There is no model yet: it takes two labels."
    found = desk().predictions(now)
    if isinstance(found, Made):
        return found, None, ""
    older = desk().latest("predictions")
    return older, found if found.is_open else None, found.problem


@views.get("/predictions")
def predictions() -> str:
    """What the model says of every candidate."""
    now = campaign()
    made, about = _predictions(now)
    wanted = request.args.get("search", "").strip()
    sort = request.args.get("sort", "name")
    sort = sort if sort in _SORTS else "name"
    rows: Array = np.empty(0, dtype=int)
    if made is not None:
        rows = _sought(maps.Predicted(made.value, now.encoding), wanted, sort)
    part = leaf(rows.tolist(), _leaf_number())
    shown_rows = [] if made is None else _predicted_rows(now, made.value, part.rows)
    return page(
        "predictions.html",
        now,
        part=part,
        rows=shown_rows,
        search=wanted,
        sort=sort,
        sorts=_SORTS,
        **about,
    )


def _sought(found: maps.Predicted, wanted: str, sort: str) -> Array:
    """Rows whose name holds some letters, in an order."""
    rows = np.arange(len(found.frame))
    if wanted:
        hits = found.names.str.to_lowercase().str.contains(wanted.lower(), literal=True)
        rows = rows[hits.to_numpy()]
    keys = {
        "high": lambda: -found.mean[rows],
        "low": lambda: found.mean[rows],
        "wide": lambda: (found.low - found.high)[rows],
    }
    return rows[np.argsort(keys[sort](), kind="stable")] if sort in keys else rows


def _predicted_rows(
    now: Campaign, frame: pl.DataFrame, rows: Sequence[int]
) -> list[dict[str, Any]]:
    found = maps.Predicted(frame[np.asarray(rows, dtype=np.int64)], now.encoding)
    points = points_of(now, rows)
    return [
        {
            "point": point,
            **_rounded(found, i),
            "label": "" if np.isnan(found.label[i]) else number(float(found.label[i])),
        }
        for i, point in enumerate(points)
    ]


@views.get("/history")
def history() -> str:
    """What was done, and what of it can be undone."""
    now = campaign()
    store = now.store
    name = now.candidates.name
    given_back, withdrawn = released(now)
    changes = [{"id": c.id, "name": name(c.id), **past_of([c])[0]} for c in store.changes()]
    failed = set(store.failed().tolist())
    failures = [(one, name(one.id), one.id in failed) for one in store.failures()]
    return page(
        "history.html",
        now,
        given_back=leaf([(row, name(row)) for row in reversed(given_back)], 1),
        withdrawn=[(one, name(one.id)) for one in reversed(withdrawn)],
        changes=leaf(changes[::-1], 1),
        failures=leaf(failures[::-1], 1),
        told=leaf(labels_of(now), _leaf_number()),
        files=[Path(about["path"]).name for about, _ in store.files()],
        ranged=(now.encoding.low, now.encoding.high) != (None, None),
    )


# For the page's own script


@views.get("/state")
def state() -> Response:
    """Whether anything has changed: the mark of the record, and what is being done."""
    now = desk().campaign()
    mark = "" if now is None else record_mark(now)
    jobs = [{"title": job.title, "seconds": job.seconds} for job in desk().worker.open_jobs()]
    return jsonify(mark=mark, jobs=jobs)


# Files


@views.get("/download/<name>")
def download(name: str) -> AnyResponse | str:
    """A file, or a page that waits until it is made."""
    now = campaign()
    what, _, kind = name.rpartition(".")
    makers: dict[str, Callable[[], Any]] = {"labels": now.export, "report": now.report}
    if what == "to_label" and kind in ("csv", "xlsx"):
        return _file(sheet_bytes(now.pending(), kind, now.style), name)
    if not (
        (what in ("labels", "predictions") and kind in ("csv", "xlsx")) or name == "report.html"
    ):
        raise NotFound(f"There is no file {shown(name)} here.")
    if what == "predictions":
        found = desk().predictions(now)
    else:
        found = desk().made(what, record_mark(now), f"Making {name}", makers[what])
    if isinstance(found, Job):
        problem = found.problem
        return page("wait.html", now, name=name, problem=problem, refresh=not problem)
    if kind == "html":
        return _file(str(found.value).encode(), name)
    return _file(sheet_bytes(found.value, kind, now.style), name)


def _file(data: bytes, name: str) -> Response:
    kind = name.rpartition(".")[2]
    response = Response(data, content_type=_TYPES[kind])
    response.headers["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


@views.get("/start")
def start() -> AnyResponse | str:
    """The first page of a new campaign."""
    if desk().campaign() is not None:
        return redirect(url_for("page.measure"), 303)
    return page("start.html", None)
