"""The page and its server."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from socket import AF_INET, AF_INET6
from socket import create_server as listen
from typing import Any

try:
    from flask import Flask, request
    from waitress import create_server
except ImportError as error:
    raise ImportError(
        "A page needs Flask and waitress, which are not installed: pip install 'sketchridge[web]'."
    ) from error
from werkzeug.exceptions import HTTPException

from sketchridge.notices import TRACE
from sketchridge.web.actions import actions
from sketchridge.web.desk import Desk
from sketchridge.web.face import Answer, Answers, NoCampaign, page, said
from sketchridge.web.guard import Guard
from sketchridge.web.sentences import for_a_page
from sketchridge.web.start import Tables, starting
from sketchridge.web.views import views

__all__ = ["make_app", "serve"]

_LARGEST = 2**26  # bytes of a file that a browser sends
_THREADS = 12  # requests at a time; none of them takes long
_SENTENCES = {
    404: "There is no such page.",
    405: "This cannot be done here: go back and use the page's own buttons.",
    413: f"The file is larger than {_LARGEST >> 20} MiB: use it from the terminal "
    "(sketchridge campaign new, add or tell).",
}


def make_app(desk: Desk, guard: Guard, *, who: str = "") -> Flask:
    """The page of a campaign, for any server of Python's kind (WSGI).

    ``who`` is on record for entries from a browser that has given no name.
    """
    app = Flask(__name__)
    app.config |= {
        "MAX_CONTENT_LENGTH": _LARGEST,
        "MAX_FORM_MEMORY_SIZE": 2**20,
        "SEND_FILE_MAX_AGE_DEFAULT": 0,
        "WHO": who,
    }
    app.jinja_options = {"trim_blocks": True, "lstrip_blocks": True}
    app.extensions |= {"desk": desk, "guard": guard, "answers": Answers(), "tables": Tables()}
    guard.protect(app)
    for part in (views, actions, starting):
        app.register_blueprint(part)
    app.register_error_handler(NoCampaign, _nothing_yet)
    app.register_error_handler(HTTPException, _refused)
    app.register_error_handler(Exception, _complained)
    return app


def _nothing_yet(error: Exception) -> Any:
    """The first page of a new campaign, in place of any other."""
    return page("start.html", None), 200 if request.method == "GET" else 409


def _refused(error: HTTPException) -> Any:
    code = error.code or 500
    own = error.description if type(error).description != error.description else None
    sentence = own or _SENTENCES.get(code, f"{error.name}.")
    return page("error.html", None, sentence=sentence, jobs=()), code  # strangers read it too


def _complained(error: Exception) -> Any:
    """An error as a sentence: on the page from which a form came, or on one of its own."""
    if os.environ.get(TRACE):
        import traceback

        traceback.print_exception(error)
    sentence = for_a_page(error)
    is_ours = isinstance(error, ValueError)
    if is_ours and request.method == "POST" and request.endpoint in _BACK:
        return said(Answer(sentence, good=False), _BACK[request.endpoint])
    code = 422 if is_ours else 503 if isinstance(error, OSError) else 500
    return page("error.html", None, sentence=sentence), code


_BACK = {  # from where forms come
    "act.ask": "measure",
    "act.release": "measure",
    "act.upload": "measure",
    "act.other": "labels",
    "act.add": "history",
    "start.table": "start",
    "start.begin": "measure",
}


def serve(
    address: str,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    pool: Path | None = None,
    who: str = "",
    ready: Callable[[str], None] = print,
) -> None:
    """Serve the page until it is interrupted.

    Parameters
    ----------
    address : of the store; a campaign can be started from the page where there is none.
    host, port : to listen at; port 0 is a free one.
    pool : where the campaign's first table is now, if it has moved.
    who : is on record for entries from a browser that has given no name.
    ready : is told the address with its token, once the page answers.
    """
    desk = Desk(address, pool)
    desk.campaign()  # what cannot be opened is said in the terminal
    socket = _listening(host, port)
    taken = socket.getsockname()[1]
    guard = Guard(host, taken)
    app = make_app(desk, guard, who=who)
    server = create_server(
        app, sockets=[socket], threads=_THREADS, ident=None, max_request_body_size=2 * _LARGEST
    )
    try:
        shown = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, host)
        shown = f"[{shown}]" if shown.count(":") > 1 and "[" not in shown else shown
        ready(f"http://{shown}:{taken}/?token={guard.token}")
        server.run()
    finally:
        server.close()
        tables: Tables = app.extensions["tables"]
        tables.close()


def _listening(host: str, port: int) -> Any:
    """A socket that nobody else listens at."""
    family = AF_INET6 if ":" in host else AF_INET
    try:
        return listen((host, port), family=family)
    except OSError as error:
        raise OSError(
            f"The page cannot listen at {host}, port {port} ({error.strerror or error}): give "
            "another --port, or 0 for any that is free."
        ) from None
