"""Who may see the page: one who has the address with its token, and comes from no other site."""

from __future__ import annotations

import hmac
import ipaddress
import secrets
import socket
from urllib.parse import urlsplit

from flask import Flask, Response, render_template, request
from werkzeug.exceptions import Forbidden, MisdirectedRequest, Unauthorized
from werkzeug.wrappers import Response as AnyResponse

__all__ = ["Guard", "is_loopback"]

_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",  # else forms would not say where they are from
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_LATER = (
    "This page needs the address that the terminal printed when it was started, with its token. An "
    "address of an earlier start, or a browser that was open then, is out of date."
)
_ELSEWHERE = (
    "This request came from another site and was refused: nothing was changed. Open the page by "
    "the address that the terminal printed."
)
_OLD_FORM = (
    "This form is of an earlier start of the page, and nothing was changed. Load the page again "
    "and send it once more."
)


class Guard:
    """Checks of every request, before anything else sees it.

    A token in the address opens the page once; a cookie that only this page's own requests carry
    takes its place. A request must name this computer as its host, lest a name that somebody else
    owns leads here; beyond the entry it must come from this page, as its browser says.
    """

    def __init__(self, host: str, port: int) -> None:
        self.token = secrets.token_urlsafe(32)
        self.form = secrets.token_urlsafe(32)  # in every form
        self._session = secrets.token_urlsafe(32)
        self._cookie = f"sketchridge_{port}"  # cookies are for all ports of a host
        self._port = port
        self._is_open = not is_loopback(host)
        self._names = {"127.0.0.1", "localhost", "::1", host.lower()}
        if self._is_open:
            self._names |= {socket.gethostname().lower(), socket.getfqdn().lower()}

    def protect(self, app: Flask) -> None:
        """Stand before an app."""
        app.before_request(self._check)
        app.after_request(_with_headers)

    def _check(self) -> AnyResponse | None:
        self._check_host()
        if request.endpoint == "static":
            return None
        if request.path == "/" and request.method == "GET" and "token" in request.args:
            return self._entered(request.args["token"])
        if not _same(request.cookies.get(self._cookie, ""), self._session):
            raise Unauthorized(_LATER)
        self._check_origin()
        if request.method == "POST" and not _same(request.form.get("form", ""), self.form):
            raise Forbidden(_OLD_FORM)
        return None

    def _check_host(self) -> None:
        """A name that somebody else let point here would make their pages part of this one."""
        try:
            parts = urlsplit(f"//{request.headers.get('Host', '')}")
            name, port = (parts.hostname or "").lower(), parts.port or 80
        except ValueError:
            name, port = "", 0
        known = name in self._names or (self._is_open and _is_number(name))
        if not known or port != self._port:
            raise MisdirectedRequest(
                "The page was asked for by a name that is not its own. Open it by the address "
                "that the terminal printed."
            )

    def _check_origin(self) -> None:
        """Browsers say where a request comes from; one that changes something must say so."""
        site = request.headers.get("Sec-Fetch-Site")
        origin = request.headers.get("Origin") or request.headers.get("Referer")
        changes = request.method not in ("GET", "HEAD")
        if site not in (None, "same-origin", *([] if changes else ["none"])):
            raise Forbidden(_ELSEWHERE)
        own = f"{request.scheme}://{request.host}"
        if origin is not None and not (origin == own or origin.startswith(f"{own}/")):
            raise Forbidden(_ELSEWHERE)
        if changes and origin is None:
            raise Forbidden(_ELSEWHERE)

    def _entered(self, token: str) -> AnyResponse:
        """The cookie for the token, by a page of our own: a browser that came by a link in a
        message would not send the cookie to where it is redirected."""
        if not _same(token, self.token):
            raise Unauthorized(_LATER)
        response = Response(render_template("enter.html"))
        response.set_cookie(self._cookie, self._session, httponly=True, samesite="Strict")
        return response


def is_loopback(host: str) -> bool:
    """Whether only this computer can reach a host.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _is_number(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _same(given: str, right: str) -> bool:
    """Compared in a time that says nothing of where they differ."""
    return hmac.compare_digest(given.encode(), right.encode())


def _with_headers(response: Response) -> Response:
    for name, value in _HEADERS.items():
        response.headers.setdefault(name, value)
    return response
