"""Strangers, other sites and other names get a sentence and nothing else; names are no HTML."""

from __future__ import annotations

import re
import threading
from html.parser import HTMLParser

import pytest
from webpage import OWN, PORT, SCRIPT, Browser, read, start

from sketchridge.web.desk import Desk
from sketchridge.web.guard import Guard
from sketchridge.web.server import make_app

PATHS = ["/", "/sheet", "/labels", "/points/0", "/progress", "/map", "/predictions", "/history"]
PATHS += ["/state", "/download/to_label.csv", "/start", "/nothing"]
FORMS = ["/ask", "/tell", "/amend", "/release", "/upload", "/add", "/who", "/points", "/start"]
FORMS += [f"/points/0/{what}" for what in ("tell", "amend", "retract", "fail", "release", "again")]


@pytest.fixture
def locked(app, address, tmp_path) -> Browser:
    start(address, tmp_path)
    return Browser(app)


def test_nothing_is_seen_without_the_token(locked):
    for path in PATHS:
        answer = locked.get(path)
        assert answer.status_code == 401
        assert "needs the address that the terminal printed" in read(answer)
        assert "yield" not in read(answer)


def test_strangers_do_not_read_what_is_being_done(locked):
    """Titles of jobs stood on the pages that refuse them."""
    ended = threading.Event()
    job = locked.desk.worker.do("Adding the candidates of secret.csv", ended.wait)
    try:
        for answer in (locked.get("/"), locked.get("/", Host="evil.example")):
            assert answer.status_code in (401, 421)
            assert "secret" not in read(answer)
    finally:
        ended.set()
        assert job.wait(10)


def test_a_host_may_be_written_in_capitals(address):
    app = make_app(Desk(address), Guard("Lab-PC", PORT))
    answer = app.test_client().get("/", base_url=f"http://lab-pc:{PORT}")
    assert answer.status_code == 401


@pytest.mark.parametrize("token", ["", "wrong", "ä", "\ud800"])
def test_a_wrong_token_opens_nothing(locked, token):
    answer = locked.client.get(
        "/", base_url=OWN, query_string={"token": token.encode("utf-8", "replace")}
    )
    assert answer.status_code == 401
    assert "Set-Cookie" not in answer.headers


def test_the_token_becomes_a_cookie_of_this_site_alone(locked):
    answer = locked.get(f"/?token={locked.guard.token}")
    cookie = answer.headers["Set-Cookie"]
    assert cookie.startswith(f"sketchridge_{PORT}=")
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert locked.guard.token not in cookie
    assert locked.get("/").status_code == 200


def test_the_cookie_of_an_earlier_start_is_out_of_date(page, address):
    again = Browser(make_app(Desk(address), Guard("127.0.0.1", PORT)))
    again.client = page.client.__class__(again.app, again.app.response_class)
    old = page.client.get_cookie(f"sketchridge_{PORT}", domain="127.0.0.1")
    again.client.set_cookie(old.key, old.value, domain="127.0.0.1")
    answer = again.get("/")
    assert answer.status_code == 401
    assert "out of date" in read(answer)
    assert again.get("/state").status_code == 401


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example", "Sec-Fetch-Site": "cross-site"},
        {"Origin": "http://evil.example", "Sec-Fetch-Site": ""},
        {"Origin": "null", "Sec-Fetch-Site": ""},
        {"Origin": f"http://127.0.0.1:{PORT}0", "Sec-Fetch-Site": "same-site"},
        {"Origin": f"http://127.0.0.1:{PORT + 1}", "Sec-Fetch-Site": ""},
        {"Origin": "", "Referer": "http://evil.example/127.0.0.1:8765", "Sec-Fetch-Site": ""},
        {"Origin": "", "Sec-Fetch-Site": ""},
        {"Sec-Fetch-Site": "none"},
    ],
)
def test_a_form_of_another_site_is_refused(page, headers):
    for path in FORMS:
        answer = page.post(path, {"n": "3", "once": "1", "value": "1"}, **headers)
        assert answer.status_code == 403, path
        assert "came from another site and was refused" in read(answer)
    assert nothing_happened(page)


@pytest.mark.parametrize("form", ["", "wrong"])
def test_a_form_without_its_token_is_refused(page, form):
    for path in FORMS:
        answer = page.post(path, {"n": "3", "once": "1", "value": "1"}, form=form)
        assert answer.status_code == 403, path
        assert "earlier start of the page" in read(answer)
    assert nothing_happened(page)


def nothing_happened(page) -> bool:
    store = page.store
    return not (store.draws() or store.told() or store.failures() or page.desk.worker.open_jobs())


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_another_site_reads_nothing(page, site):
    for path in ("/state", "/download/to_label.csv", "/"):
        assert page.get(path, **{"Sec-Fetch-Site": site}).status_code == 403


@pytest.mark.parametrize(
    "host", ["evil.example:8765", "127.0.0.1", "127.0.0.1:80", "", "x y", "[:"]
)
def test_another_name_of_this_computer_is_refused(empty, host):
    for path in ("/", "/static/page.css"):
        answer = empty.get(path, Host=host)
        assert answer.status_code == 421
        assert "by a name that is not its own" in read(answer)


@pytest.mark.parametrize(
    ("host", "name", "is_known"),
    [
        ("127.0.0.1", "localhost", True),
        ("127.0.0.1", "[::1]", True),
        ("127.0.0.1", "192.168.0.7", False),
        ("0.0.0.0", "192.168.0.7", True),
        ("0.0.0.0", "evil.example", False),
        ("lab.example", "lab.example", True),
    ],
)
def test_names_by_which_the_page_is_known(address, host, name, is_known):
    app = make_app(Desk(address), Guard(host, PORT))
    answer = app.test_client().get("/", headers={"Host": f"{name}:{PORT}"})
    assert answer.status_code == (401 if is_known else 421)


@pytest.mark.parametrize("path", ["/", "/map", "/static/page.js", "/state", "/nothing"])
def test_headers_keep_others_out(empty, path):
    headers = empty.get(path).headers
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["X-Frame-Options"] == "DENY"
    assert ("no-cache" if "static" in path else "no-store") in headers["Cache-Control"]
    assert headers["Cross-Origin-Resource-Policy"] == "same-origin"


class Tags(HTMLParser):
    """What a browser makes of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []
        self.attributes: list[str] = []

    def handle_starttag(self, tag, attributes):
        self.names.append(tag)
        self.attributes += [name for name, _ in attributes]


def test_names_and_notes_are_shown_and_never_obeyed(app, address, tmp_path):
    names = [f"{SCRIPT}{i}" for i in range(6)] + [
        '"><img src=x onerror=a()>',
        "'; DROP",
        "&amp;",
        "=1+1",
    ]
    rows = [f'"{n.replace(chr(34), 2 * chr(34))}",{i},"{SCRIPT}"' for i, n in enumerate(names)]
    text = "\n".join([f'id,x,"{SCRIPT}"', *rows])
    start(
        address,
        tmp_path,
        text,
        target=f"{SCRIPT}t",
        unit="<b>",
        ignore=[SCRIPT],
        limits=(None, None),
    )
    browser = Browser(app).enter()
    browser.post("/who", {"name": SCRIPT})
    rows = browser.ask(10)
    browser.post("/tell", {f"label-{row}": str(row) for row in rows[:6]})
    browser.post(f"/points/{rows[6]}/fail", {"note": SCRIPT})
    browser.post(f"/points/{rows[0]}/amend", {"was": f"{rows[0]}.0", "value": "7", "note": SCRIPT})
    browser.post(f"/points/{rows[7]}/release", {})
    browser.get("/map")
    browser.idle()
    points = [f"/points/{row}" for row in rows]
    for path in [*PATHS[:8], *points, f"/labels?search={SCRIPT}", f"/predictions?search={SCRIPT}"]:
        answer = browser.get(path)
        assert answer.status_code == 200, path
        text = answer.get_data(as_text=True)
        tags = Tags()
        tags.feed(text)
        assert tags.names.count("script") == 1, path
        assert "img" not in tags.names
        assert not [name for name in tags.attributes if name.startswith("on") or name == "style"]
    refused = browser.send("/points", {"name": SCRIPT + "!"})
    assert "is not in the pool" in refused


def test_every_part_of_the_page_is_its_own(page):
    """No address of another computer is in what a browser loads."""
    for path in PATHS[:8]:
        text = page.get(path).get_data(as_text=True)
        found = re.findall(r'(?:src|href|action)="([^"]*)"', text)
        assert found
        assert all(link.startswith(("/", "#")) for link in found), path
        assert "style=" not in text
    for name in ("page.css", "page.js", "icon.svg"):
        text = page.get(f"/static/{name}").get_data(as_text=True)
        assert "http" not in text.replace("http://www.w3.org/2000/svg", "").replace(
            "http-equiv", ""
        )


def test_a_table_that_is_no_table_has_an_answer(empty):
    said = empty.upload("/start", "../../x.csv", "a,a\n1,2\n")
    assert "x.csv has more than one column 'a'" in said
    assert "/x.csv" not in said
