"""A file that has gone, a locked database, another campaign in its place, a large pool, odd names:
sentences, and never a trace of Python."""

from __future__ import annotations

import io
import sqlite3
import time

import numpy as np
import pytest
from webpage import OWN, POINTS, PORT, Browser, read, start, table
from werkzeug.datastructures import FileStorage

from sketchridge.campaign.operations import Campaign
from sketchridge.web import desk as desk_of
from sketchridge.web import server
from sketchridge.web.desk import Desk
from sketchridge.web.files import drop, dropped, stored
from sketchridge.web.guard import Guard
from sketchridge.web.server import make_app

PATHS = ["/", "/labels", "/progress", "/map", "/predictions", "/history", "/state", "/points/0"]


def test_a_campaign_whose_file_has_gone(page, tmp_path):
    page.ask(2)
    file = tmp_path / "campaign.db"
    file.rename(tmp_path / "elsewhere.db")
    for path in PATHS:
        answer = page.get(path)
        assert answer.status_code == 503
        assert "is not there any more. Put it back where it was" in read(answer)
    assert page.post("/tell", {"label-0": "1"}).status_code == 503
    assert not file.exists(), "to look has made an empty one"
    (tmp_path / "elsewhere.db").rename(file)
    assert page.get("/").status_code == 200


def test_another_campaign_in_its_place_is_the_one_that_is_shown(page, address, tmp_path):
    page.ask(3)
    assert "yield" in read(page.get("/"))
    (tmp_path / "campaign.db").unlink()
    start(address, tmp_path, table(7), target="purity", unit="")
    text = read(page.get("/"))
    assert "purity" in text
    assert "of 7 candidates" in text


def test_a_locked_database(address, tmp_path, monkeypatch):
    monkeypatch.setattr(desk_of, "_PATIENCE", 0.3)
    start(address, tmp_path)
    page = Browser(make_app(Desk(address), Guard("127.0.0.1", PORT))).enter()
    rows = page.ask(2)
    other = sqlite3.connect(tmp_path / "campaign.db", isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    for path in PATHS:
        answer = page.get(path)
        assert answer.status_code == 503
        assert "database is locked. Nothing was changed." in read(answer)
    answer = page.post("/tell", {f"label-{rows[0]}": "1"})
    assert answer.status_code == 503
    other.execute("COMMIT")
    other.execute("BEGIN IMMEDIATE")  # others write, and the page can be read
    assert page.get("/").status_code == 200
    answer = page.post("/tell", {f"label-{rows[0]}": "77"})
    assert answer.status_code == 422
    assert "locked" in read(answer)
    assert 'value="77"' in answer.get_data(as_text=True)
    other.execute("COMMIT")
    assert page.post("/tell", {f"label-{rows[0]}": "77"}).status_code == 303


def test_a_file_that_is_no_database(tmp_path, address):
    (tmp_path / "campaign.db").write_text("no database at all, but a text of some length" * 50)
    page = Browser(make_app(Desk(address), Guard("127.0.0.1", PORT))).enter()
    answer = page.get("/")
    assert answer.status_code == 503
    assert "file is not a database" in read(answer)


def test_a_fault_of_ours_is_a_sentence(page, monkeypatch):
    def broken(*_):
        raise KeyError("surprise")

    monkeypatch.setattr("sketchridge.web.views.points_of", broken)
    answer = page.get("/")
    assert answer.status_code == 500
    assert "This is a fault of sketchridge (KeyError: 'surprise'). Please report it" in read(answer)
    assert "Traceback" not in answer.get_data(as_text=True)


def test_a_job_that_fails_says_so_and_the_next_one_works(page, monkeypatch):
    monkeypatch.setattr(Campaign, "ask", lambda *_: 1 / 0)
    answer = page.post("/ask", {"n": "3", "once": "a"})
    page.idle()
    assert "This is a fault of sketchridge (ZeroDivisionError" in read(
        page.get(answer.headers["Location"])
    )
    monkeypatch.undo()
    assert len(page.ask(3)) == 3


def test_a_large_file_is_refused(page):
    page.app.config["MAX_CONTENT_LENGTH"] = 10_000
    answer = page.post("/upload", {"file": (io.BytesIO(b"x" * 20_000), "a.csv")})
    assert answer.status_code == 413
    assert "use it from the terminal" in read(answer)


def test_the_server_itself_takes_no_endless_file(monkeypatch, address):
    """It would keep up to 1 GiB of anybody's before the token is looked at."""
    given = {}

    class Server:
        def run(self):
            pass

        def close(self):
            given["sockets"][0].close()

    monkeypatch.setattr(
        server, "create_server", lambda app, **options: given.update(options) or Server()
    )
    server.serve(address, ready=lambda text: None)
    assert given["max_request_body_size"] == 2**27


@pytest.mark.parametrize(
    "name", ["D:evil.csv", "D:\\evil.csv", "..\\evil.csv", "../evil.csv", "C:/x/evil.csv"]
)
def test_a_file_is_kept_in_its_own_folder(name):
    path = stored(FileStorage(io.BytesIO(b"x"), filename=name))
    assert path.name == "evil.csv"
    assert path.read_bytes() == b"x"
    drop(path)
    assert not path.parent.exists()


def test_no_other_folder_is_removed(tmp_path):
    (tmp_path / "theirs.csv").write_text("x")
    with dropped(tmp_path / "theirs.csv"):
        pass
    assert (tmp_path / "theirs.csv").exists()


@pytest.mark.parametrize(
    "name", ["Größe Ωµ", "试剂", "🧪 flask", "a\u202eb", "  x", "007", "x" * 300]
)
def test_names_of_all_kinds(app, address, tmp_path, name):
    rows = [f"{name} {i},{i}" for i in range(8)]
    start(address, tmp_path, "\n".join([f"id,{name}", *rows]), target=f"{name} y", unit="µg")
    page = Browser(app).enter()
    asked = page.ask(4)
    page.post("/tell", {f"label-{row}": str(row) for row in asked[:3]})
    for path in [*PATHS, f"/points/{asked[0]}", f"/labels?search={name}", "/sheet"]:
        assert page.get(path).status_code == 200
    assert name.strip()[:50] in page.get("/sheet").get_data(as_text=True)
    assert len(page.store.told()) == 3
    assert "1 label saved" in page.upload(
        "/upload", "ü.csv", page.get("/download/to_label.csv").data.replace(b",\n", b",5\n")
    )


def test_a_pool_of_100_000_rows(app, address, tmp_path):
    size = 100_000
    values = np.random.default_rng(0).normal(size=(size, 2)).round(4)
    lines = [f"N{i},{x},{y}" for i, (x, y) in enumerate(values)]
    start(address, tmp_path, "\n".join(["id,x,z", *lines]))
    page = Browser(app).enter()
    rows = page.ask(5)
    page.post("/tell", {f"label-{row}": str(row % 97) for row in rows})
    assert page.get("/map").status_code == 200
    page.idle()
    for path in ["/", "/labels", "/points/99999", "/history", "/state", "/map", "/predictions"]:
        begun = time.monotonic()
        answer = page.get(path)
        assert answer.status_code == 200
        assert len(answer.data) < 2_000_000
        assert time.monotonic() - begun < 5, path
    assert "N99999" in read(page.get("/predictions?leaf=999999999"))
    assert "100,000 rows" in read(page.get("/predictions?leaf=2"))


def test_many_points_wait_to_be_measured(page):
    page.ask(POINTS)
    text = page.get("/?leaf=-3").get_data(as_text=True)
    assert text.count("data-draft") == POINTS
    assert page.get("/?leaf=99").status_code == 200
    assert page.get("/?leaf=x").status_code == 200


def test_the_answer_stays_with_the_browser_that_goes_back(page):
    """A page with an old form, from the button that goes back, does nothing twice."""
    row = page.ask(1)[0]
    form = {f"label-{row}": "5"}
    first = page.post("/tell", form)
    again = page.send("/tell", form)
    assert "0 labels saved; 1 label had been told before." in again
    assert len(page.store.told()) == 1
    assert page.client.get(first.headers["Location"], base_url=OWN).status_code == 200
