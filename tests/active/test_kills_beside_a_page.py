"""Processes are killed while the page of their campaign is open in a browser, which asks for news
all the time and labels points that the dead have left: nothing is lost, and the page shows it."""

from __future__ import annotations

import re
import time
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_kills import P, X, check, kill, label
from webpage import chromium, served

from sketchridge import SketchedKernelRidge
from sketchridge.campaign.operations import Campaign

pytest.importorskip("playwright", reason="Playwright is not installed")


def begin(url: str, folder: Path) -> None:
    """A campaign over the same points, from a table."""
    rows = [f"P{i},{x!r},{z!r}" for i, (x, z) in enumerate(X.tolist())]
    (folder / "pool.csv").write_text("\n".join(["id,x,z", *rows]))
    estimator = SketchedKernelRidge(bandwidth=1.0, alpha=0.1, sketch_size=16)
    options: dict[str, Any] = {
        "target": "y",
        "batch_size": 3,
        "scale": False,
        "acquisition": "weighted",
    }
    Campaign.create(url, folder / "pool.csv", estimator=estimator, **options)


def look(address: str, path: str, journal: Path, ready: Any, end: Any, counts: Any) -> None:
    """Keep the page open, and label what waits there; a line for every label that it says is
    saved."""
    from playwright.sync_api import Error, sync_playwright

    with sync_playwright() as playwright, journal.open("a", buffering=1) as lines:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        context = browser.new_context()
        page, other = context.new_page(), context.new_page()
        page.set_default_timeout(60_000)
        statuses: dict[int, int] = {}
        complaints: list[str] = []
        for tab in (page, other):
            tab.on("response", lambda r: statuses.update({r.status: statuses.get(r.status, 0) + 1}))
            tab.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(address)
        page.wait_for_url(re.match(r"http://[^/]+/", address)[0])
        other.goto(re.match(r"http://[^/]+/", address)[0] + "labels")
        ready.set()
        while not end.is_set():
            page.wait_for_timeout(1000)
            try:
                cells = page.locator("tr:not(.gone) input[data-draft]")
                row = (
                    cells.first.get_attribute("data-draft", timeout=500) if cells.count() else None
                )
                if row is None:
                    continue
                page.locator(f"#label-{row}").fill(
                    repr(float(label(np.array([int(row)]))[0])), timeout=500
                )
                page.locator(f"#label-{row}").press("Enter", timeout=500)
            except Error:
                continue  # somebody else was quicker
            page.wait_for_load_state()
            if page.get_by_text("1 label saved").count():
                lines.write(f"told {row}\n")
        page.wait_for_load_state()
        counts["quiet"] = True  # nothing is typed any more
        while "labels" not in counts:
            page.wait_for_timeout(200)
        wanted = f"{counts['labels']:,}"
        for tab in (page, other):
            tab.locator("#counts b").first.filter(has_text=wanted).wait_for()
        counts.update(statuses=statuses, complaints=complaints)
        browser.close()


@pytest.mark.parametrize("kills", [pytest.param(200, marks=pytest.mark.slow)])
def test_kills_while_the_page_is_open(url, tmp_path, kills):
    path = chromium()
    begin(url, tmp_path)
    context = get_context("spawn")
    with served(url, tmp_path) as address, context.Manager() as shared:
        ready, end, counts = shared.Event(), shared.Event(), shared.dict()
        journal = tmp_path / "browser.txt"
        viewer = context.Process(target=look, args=(address, path, journal, ready, end, counts))
        viewer.start()
        try:
            assert ready.wait(120), "the page did not open"
            kill(url, tmp_path, kills, seed=3)
            end.set()
            while viewer.is_alive() and "quiet" not in counts:
                time.sleep(0.2)
            counts["labels"] = len(Campaign.open(url).store.told())
            viewer.join(120)
            assert viewer.exitcode == 0
            seen = dict(counts)
        finally:
            viewer.kill()
    said = len(journal.read_text().split())
    print(f"{kills} kills; {seen}; {said // 2} labels from the browser; of {P} points")
    assert seen["complaints"] == []
    assert not [status for status in seen["statuses"] if status >= 500]
    assert seen["statuses"][200] > kills / 10
    assert check(url, tmp_path) == seen["labels"]
