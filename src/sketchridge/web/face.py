"""What every page needs: the campaign, who looks at it, and what is to be said at its top."""

from __future__ import annotations

import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, unquote

from flask import current_app, redirect, render_template, request, url_for
from werkzeug.wrappers import Response

from sketchridge.campaign.operations import Campaign
from sketchridge.campaign.overview import overview
from sketchridge.web.desk import Desk, record_mark
from sketchridge.web.guard import Guard
from sketchridge.web.rows import number, when

__all__ = [
    "Answer",
    "Answers",
    "NoCampaign",
    "answers",
    "campaign",
    "desk",
    "page",
    "place",
    "remember",
    "said",
    "who",
]

_WHO = "sketchridge_who"
_KEPT = 500  # answers
_LONGEST = 60  # characters of somebody's name
NAV = (
    ("measure", "Measure"),
    ("labels", "Labels"),
    ("progress", "Progress"),
    ("map", "Map"),
    ("predictions", "Predictions"),
    ("history", "History"),
)


_AT = {"act.tell": "measure", "act.amend": "labels"}  # where a form shown again can be reloaded


class NoCampaign(Exception):
    """There is none yet: it can be started from the page."""


@dataclass(frozen=True)
class Answer:
    """What became of a form."""

    sentence: str
    good: bool = True
    saved: Sequence[int] = field(default=())  # rows whose entries are kept
    job: int | None = None


class Answers:
    """Answers to forms, shown on the page to which the browser is then sent; a form that a browser
    sends twice has one answer."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, Answer] = OrderedDict()
        self._lock = threading.Lock()

    def keep(self, answer: Answer) -> str:
        """The key by which it is found again."""
        key = secrets.token_urlsafe(8)
        with self._lock:
            self._kept[key] = answer
            while len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        return key

    def once(self, key: str, make: Callable[[], Answer]) -> Answer:
        """The answer to the form with this key, made when it comes for the first time."""
        with self._lock:
            if key not in self._kept:
                self._kept[key] = make()
            return self._kept[key]

    def get(self, key: str) -> Answer | None:
        with self._lock:
            return self._kept.get(key)


def desk() -> Desk:
    """That of the running app."""
    found: Desk = current_app.extensions["desk"]
    return found


def answers() -> Answers:
    found: Answers = current_app.extensions["answers"]
    return found


def campaign() -> Campaign:
    """The campaign, or `NoCampaign`."""
    found = desk().campaign()
    if found is None:
        raise NoCampaign
    return found


def who() -> str:
    """Who works in this browser, for the record."""
    given = request.cookies.get(_WHO)
    if given is None:
        return str(current_app.config["WHO"])
    return unquote(given)[:_LONGEST]


def remember(response: Response, name: str) -> Response:
    """Let a browser know who works in it."""
    name = " ".join(name.split())[:_LONGEST]
    response.set_cookie(
        _WHO, quote(name), max_age=31536000, httponly=True, samesite="Strict", path="/"
    )
    return response


def said(answer: Answer, to: str, **values: Any) -> Response:
    """Send the browser to a page with an answer at its top."""
    key = answers().keep(answer)
    return redirect(url_for(f"page.{to}", said=key, **values), 303)


def place() -> dict[str, Any]:
    """Where in a long table someone is."""
    return {key: request.args[key] for key in ("leaf", "search") if request.args.get(key)}


def page(template: str, now: Campaign | None, **values: Any) -> str:
    """A page with all that stands around it."""
    guard: Guard = current_app.extensions["guard"]
    answer = answers().get(request.args.get("said", ""))
    job = None if answer is None or answer.job is None else desk().worker.job(answer.job)
    to = _AT.get(str(request.endpoint))
    about: dict[str, Any] = {"jobs": desk().worker.open_jobs()}
    if now is not None:
        about |= {"now": overview(now.store), "encoding": now.encoding, "mark": record_mark(now)}
    return render_template(
        template,
        nav=NAV,
        form=guard.form,
        once=secrets.token_urlsafe(12),
        at=url_for(f"page.{to}", **place()) if to else "",
        answer=answer,
        asked=job,
        who=who(),
        number=number,
        when=when,
        **{**about, **values},
    )
