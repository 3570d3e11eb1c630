"""The page in Chromium, as it is served: wide and narrow, by keyboard, in two windows at once."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Iterator
from typing import Any

import pytest
from webpage import POINTS, chromium, served, start, table

from sketchridge.campaign.operations import Campaign

sync = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
WIDE, NARROW = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
PATHS = ["/", "/labels", "/progress", "/map", "/predictions", "/history", "/sheet", "/points/0"]
PATIENCE = 60_000  # milliseconds: other tests run beside


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    path = chromium()
    with sync.sync_playwright() as playwright:
        try:
            found = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        except sync.Error as error:
            pytest.skip(f"Chromium does not start here: {str(error).splitlines()[0]}")
        yield found
        found.close()


class Window:
    """A window of a browser of its own, which hears every complaint of the page's script."""

    def __init__(self, browser: Any, address: str, size: dict[str, int]) -> None:
        self.context = browser.new_context(viewport=size, accept_downloads=True)
        self.page = self.context.new_page()
        self.page.set_default_timeout(PATIENCE)
        self.complaints: list[str] = []
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("console", self._hear)
        self.origin = re.match(r"http://[^/]+", address)[0]
        self.page.goto(address)
        self.page.wait_for_url(f"{self.origin}/")

    def _hear(self, message: Any) -> None:
        refused = "Content Security Policy" in message.text
        if refused or (message.type == "error" and "Failed to load" not in message.text):
            self.complaints.append(message.text)

    def go(self, path: str) -> None:
        self.page.goto(self.origin + path)

    def says(self, text: str) -> None:
        self.page.get_by_text(text).first.wait_for()

    def ask(self, count: int) -> list[str]:
        """Rows of the points to measure."""
        self.page.get_by_label("Points", exact=True).fill(str(count))
        self.page.get_by_role("button", name="Ask").click()
        self.says("in the list.")
        cells = self.page.locator("input[data-draft]")
        cells.nth(count - 1).wait_for()  # the list follows the words
        return [cells.nth(i).get_attribute("data-draft") for i in range(cells.count())]

    def cell(self, row: str) -> Any:
        return self.page.locator(f"#label-{row}")

    def is_too_wide(self) -> bool:
        return self.page.evaluate("document.documentElement.scrollWidth > window.innerWidth")


@pytest.fixture
def window(browser) -> Iterator[Any]:
    made: list[Window] = []

    def make(address: str, size: dict[str, int] = WIDE) -> Window:
        made.append(Window(browser, address, size))
        return made[-1]

    yield make
    for one in made:
        one.context.close()
        assert one.complaints == []


def picture(window: Window, name: str) -> None:
    """Kept for looking at, where a folder is given for it."""
    folder = os.environ.get("SKETCHRIDGE_PICTURES")
    if folder:
        window.page.screenshot(path=f"{folder}/{name}.png", full_page=True)


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_a_campaign_from_its_table_to_its_predictions(window, address, tmp_path, size):
    name = "narrow" if size == NARROW else "wide"
    (tmp_path / "pool.csv").write_text(table())
    with served(address, tmp_path) as url:
        here = window(url, size)
        page = here.page

        # it starts from a CSV
        page.get_by_label("Table of candidates").set_input_files(tmp_path / "pool.csv")
        page.get_by_role("button", name="Send").click()
        page.get_by_label("or its name").fill("yield")
        page.get_by_label("Unit").fill("mg/L")
        assert not here.is_too_wide()
        picture(here, f"columns-{name}")
        page.get_by_role("button", name="Start").click()
        here.says(f"A campaign over {POINTS} points has begun.")

        # a sheet is printed
        rows = here.ask(7)
        page.get_by_role("link", name="Print a sheet").click()
        page.get_by_role("button", name="Print").wait_for()
        page.emulate_media(media="print")
        assert not page.locator("header.top").is_visible()
        assert page.locator("table.paper tbody tr").count() == 7
        assert page.pdf()[:4] == b"%PDF"
        page.emulate_media(media="screen")
        here.go("/")

        # five labels are entered, by keyboard alone
        here.cell(rows[0]).focus()
        for row in rows[:5]:
            assert page.evaluate("document.activeElement.id") == f"label-{row}"
            page.keyboard.type(f"{int(row) / 2:g}")
            page.keyboard.press("Tab")  # to More
            page.keyboard.press("Tab")  # to the next cell
        picture(here, f"measure-{name}")
        here.cell(rows[4]).press("Enter")
        here.says("5 labels saved.")

        # one is corrected
        here.go("/labels")
        page.locator(f"#amend-{rows[1]}").fill("7,5")
        page.get_by_label("Why").fill("misread")
        page.get_by_label("Why").press("Enter")
        here.says("1 label corrected")
        here.says("misread")
        picture(here, f"labels-{name}")

        # one has failed
        here.go("/")
        page.locator(f"tr[data-row='{rows[5]}']").get_by_role("link").click()
        note = page.get_by_label("Note")
        note.fill("the vial broke")
        note.press("Enter")
        here.says("will not be asked for again")

        # predictions are downloaded
        here.go("/predictions")
        here.says("1 of 1" if POINTS > 50 else "The interval holds")
        page.locator("#table tbody tr").first.wait_for()
        with page.expect_download() as waiting:
            page.get_by_role("link", name="CSV").click()
        waiting.value.save_as(tmp_path / "predictions.csv")
        with (tmp_path / "predictions.csv").open() as file:
            got = list(csv.DictReader(file))
        assert len(got) == POINTS
        assert all(float(row["low 95%"]) <= float(row["high 95%"]) for row in got)

        for path in PATHS:
            here.go(path)
            if path == "/map":
                page.locator("svg").first.wait_for()
            assert not here.is_too_wide(), path
            picture(here, f"{path.strip('/').replace('/', '-') or 'measure'}-{name}")
        campaign = Campaign.open(address)
        told = {label.id: label.y[0] for label in campaign.store.told()}
        wanted = {int(row): int(row) / 2 for row in rows[:5]} | {int(rows[1]): 7.5}
        assert told == wanted
        assert campaign.store.failed().tolist() == [int(rows[5])]
        assert campaign.store.failures()[0].note == "the vial broke"
        assert campaign.store.pending().tolist() == [int(rows[6])]


def test_two_windows_and_the_terminal_at_once(window, address, tmp_path):
    start(address, tmp_path)
    with served(address, tmp_path) as url:
        one, two = window(url), window(url, NARROW)
        rows = one.ask(4)
        two.cell(rows[0]).wait_for()  # it came by itself
        one.cell(rows[0]).fill("1.5")  # typed and not sent
        one.cell(rows[1]).fill("2.5")
        two.cell(rows[0]).fill("9")
        two.cell(rows[2]).fill("3")
        two.page.get_by_role("button", name="Save labels").click()
        two.says("2 labels saved.")
        Campaign.open(address).ask(2)  # from the terminal

        one.says("has been labeled, released or has failed elsewhere")
        sync.expect(one.page.locator("input[data-draft]")).to_have_count(5, timeout=PATIENCE)
        assert one.cell(rows[0]).input_value() == "1.5"
        assert one.cell(rows[1]).input_value() == "2.5"
        assert not one.cell(rows[2]).count()

        one.page.get_by_role("button", name="Save labels").click()
        one.says("Already labeled, with another value: S")
        one.says("Typed, but not in this list any more")
        assert one.cell(rows[1]).input_value() == "2.5"
        one.page.reload()
        assert one.cell(rows[1]).input_value() == "2.5"  # kept in the window
        one.says("Typed in this window and not saved")
        one.page.get_by_role("button", name="Forget").click()
        one.page.get_by_role("button", name="Save labels").click()
        one.says("1 label saved.")
        one.page.go_back()
        one.page.go_forward()
        told = {str(label.id): label.y[0] for label in Campaign.open(address).store.told()}
        assert told == {rows[0]: 9.0, rows[2]: 3.0, rows[1]: 2.5}


def test_a_page_that_was_started_anew_says_so_and_keeps_what_was_typed(window, address, tmp_path):
    start(address, tmp_path)
    with served(address, tmp_path) as url:
        here = window(url)
        row = here.ask(1)[0]
        here.cell(row).fill("4.5")
    here.says("The page does not answer")
    port = int(re.search(r":(\d+)/", url)[1])
    with served(address, tmp_path, port=port) as again:
        here.says("This address is out of date")
        assert here.cell(row).input_value() == "4.5"
        here.page.goto(again)
        here.page.wait_for_url(f"{here.origin}/")
        assert here.cell(row).input_value() == "4.5"
        here.cell(row).press("Enter")
        here.says("1 label saved.")


def test_the_keyboard_reaches_everything_and_is_seen(window, address, tmp_path):
    start(address, tmp_path)
    with served(address, tmp_path) as url:
        here = window(url)
        here.ask(2)
        here.go("/")
        reached = []
        for _ in range(30):
            here.page.keyboard.press("Tab")
            found = here.page.evaluate(
                """() => {
                    const it = document.activeElement, style = getComputedStyle(it);
                    if (it === document.body) return null;
                    const name = it.getAttribute("aria-label") || it.labels?.[0]?.textContent
                        || it.textContent;
                    return [name.trim(), style.outlineStyle, parseFloat(style.outlineWidth)];
                }"""
            )
            if found is None:
                break
            name, style, width = found
            assert name
            assert style == "solid", name
            assert width >= 2, name
            reached.append(name)
        wanted = ["To the content", "Measure", "Labels", "Points", "Ask", "Print a sheet"]
        wanted += ["Save labels", "Send", "Release all", "Remember"]
        places = [reached.index(name) for name in wanted]
        assert places == sorted(places)
