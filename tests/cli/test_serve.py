"""The page from the terminal: where it listens, and what is said of that."""

from __future__ import annotations

import socket
import stat
import sys
import webbrowser
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from sketchridge.web import server


@pytest.fixture
def served(monkeypatch):
    """What the command hands to the server."""
    heard = {}

    def serve(address, *, ready, **options):
        heard.update(options, address=address)
        ready("http://127.0.0.1:1/?token=abc")

    monkeypatch.setattr(server, "serve", serve)
    return heard


def test_the_page_is_for_this_computer_unless_another_host_is_given(run, served):
    said = run("serve")
    assert "The campaign is at http://127.0.0.1:1/?token=abc" in said
    assert "Warning" not in said
    assert served["host"] == "127.0.0.1"
    assert served["address"] == "sqlite:///campaign.db"


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.0.7", "lab.example"])
def test_another_host_is_warned_about(run, served, host):
    said = run("serve", "--host", host, "--by", "Ann")
    assert f"Warning: the page listens at {host}." in said
    assert "not encrypted" in said
    assert (served["host"], served["who"]) == (host, "Ann")


@pytest.mark.parametrize("host", ["localhost", "127.0.0.5", "::1"])
def test_this_computer_by_other_names_is_no_danger(run, served, host):
    assert "Warning" not in run("serve", "--host", host)


def test_the_key_is_not_among_the_words_that_the_browser_is_called_with(run, served, monkeypatch):
    """Other users of the computer see those."""
    opened = []

    def look(address):
        page = Path(urlsplit(address).path)
        opened.append((address, page.read_text(), stat.S_IMODE(page.stat().st_mode), page))

    monkeypatch.setattr(webbrowser, "open", look)
    run("serve", "--open")
    [(address, text, mode, page)] = opened
    assert "abc" not in address
    assert "url=http://127.0.0.1:1/?token=abc" in text
    assert mode == 0o600
    assert not page.exists()


def test_a_port_that_is_taken(run):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = run("serve", "--port", port, code=1)
    assert f"cannot listen at 127.0.0.1, port {port}" in said
    assert "give another --port" in said


def test_a_store_that_cannot_be_opened(run, home):
    (home / "campaign.db").write_bytes(b"no database" * 100)
    assert "file is not a database" in run("serve", "--port", 0, code=1)
    assert "cannot be used" in run("serve", "--store", "nonsense", code=1)


def test_without_flask(run, monkeypatch):
    monkeypatch.delitem(sys.modules, "sketchridge.web.server")
    monkeypatch.setitem(sys.modules, "flask", None)
    said = run("serve", code=1)
    assert "not installed" in said
    assert "web]'" in said
