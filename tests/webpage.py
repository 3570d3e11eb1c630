"""A campaign's page in front of a client that behaves as a browser does."""

from __future__ import annotations

import io
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from html import unescape
from pathlib import Path

import numpy as np
import pytest
from helpers import normal

import sketchridge
from sketchridge import SketchedKernelRidge
from sketchridge.campaign.operations import Campaign
from sketchridge.web.desk import Desk
from sketchridge.web.guard import Guard

PORT = 8765
OWN = f"http://127.0.0.1:{PORT}"
POINTS = 40
SCRIPT = "<script>alert(1)</script>"
KINDS = ("water", "oil")


def table(count: int = POINTS, names: str = "S{:03d}") -> str:
    """A table of candidates as text."""
    X = normal(count, 2)
    rows = [
        f"{names.format(i)},{20 + x:.3f},{7 + y:.3f},{KINDS[i % 2]}" for i, (x, y) in enumerate(X)
    ]
    return "\n".join(["id,temperature,ph,solvent", *rows]) + "\n"


class Browser:
    """Sends what a browser sends: a cookie, where it comes from, and the token of forms."""

    def __init__(self, app) -> None:
        self.app = app
        self.guard: Guard = app.extensions["guard"]
        self.desk: Desk = app.extensions["desk"]
        self.client = app.test_client()

    def enter(self) -> Browser:
        assert self.get(f"/?token={self.guard.token}").status_code == 200
        return self

    def get(self, path: str, **headers: str):
        return self.client.get(path, base_url=OWN, headers=headers)

    def post(self, path: str, data: dict, *, form: str | None = None, **headers: str):
        own = {"Origin": OWN, "Sec-Fetch-Site": "same-origin", **headers}
        sent = {"form": self.guard.form if form is None else form, **data}
        return self.client.post(
            path,
            base_url=OWN,
            data=sent,
            headers={name: value for name, value in own.items() if value},
            content_type="multipart/form-data",
        )

    def send(self, path: str, data: dict, **more: str) -> str:
        """Post a form, and read the page that follows."""
        answer = self.post(path, data, **more)
        if answer.status_code == 303:
            answer = self.get(answer.headers["Location"])
        return read(answer)

    def upload(self, path: str, name: str, text: str | bytes, **data: str) -> str:
        raw = text.encode() if isinstance(text, str) else text
        return self.send(path, {"file": (io.BytesIO(raw), name), **data})

    def ask(self, count: int = 5) -> list[int]:
        """Ask for points, wait for them, and give their rows."""
        self.post("/ask", {"n": str(count), "once": f"{np.random.default_rng().integers(2**62)}"})
        self.idle()
        return self.store.pending().tolist()

    def idle(self) -> None:
        for job in self.desk.worker.open_jobs():
            assert job.wait(60)

    @property
    def store(self):
        campaign = self.desk.campaign()
        assert campaign is not None
        return campaign.store

    def name(self, row: int) -> str:
        return self.desk.campaign().candidates.name(row)


def read(answer) -> str:
    """The words of a page, without its marks."""
    text = answer.get_data(as_text=True)
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", text)).split())


def start(address: str, folder: Path, text: str | None = None, **settings) -> None:
    """Begin a campaign without the page."""
    path = folder / "pool.csv"
    path.write_text(text or table(), encoding="utf-8")
    given = {"target": "yield", "unit": "mg/L", "limits": (0.0, 100.0), "batch_size": 5}
    Campaign.create(address, path, estimator=SketchedKernelRidge(), **{**given, **settings})


@contextmanager
def served(address: str, folder: Path, *options: str, port: int = 0) -> Iterator[str]:
    """The page as the terminal serves it, until the end: its address with the token."""
    program = "from sketchridge.cli import main; main()"
    words = ["campaign", "serve", "--port", str(port), "--store", address, *options]
    source = str(Path(sketchridge.__file__).parents[1])
    with subprocess.Popen(
        [sys.executable, "-u", "-c", program, *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": source, "COLUMNS": "500"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        said = ""
        try:
            while "http" not in said:
                line = process.stdout.readline()
                assert line, said
                said += line
            yield re.search(r"http\S+", said)[0]
        finally:
            process.send_signal(signal.SIGINT)
            rest, _ = process.communicate(timeout=60)
        assert "Traceback" not in rest, rest
        assert process.returncode == 0


def chromium() -> str:
    """A browser that is installed, or Playwright's own, or a reason to skip."""
    names = ("chromium", "chromium-browser", "google-chrome")
    found = next(filter(None, map(shutil.which, names)), "") or _of_playwright()
    if not Path(found).is_file():
        pytest.skip(
            "no Chromium is installed (python -m playwright install chromium, or on Debian "
            "apt-get install chromium)"
        )
    return found


def _of_playwright() -> str:
    """Where Playwright keeps its Chromium, once it has one."""
    sync = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    with sync.sync_playwright() as playwright:
        return playwright.chromium.executable_path
