"""What people do with the page, from the first table to the last correction."""

from __future__ import annotations

import io
import re
import time

import numpy as np
import polars as pl
import pytest
from webpage import POINTS, Browser, read, start, table

from sketchridge.campaign.operations import Campaign
from sketchridge.web.desk import record_mark


def told(page) -> dict[str, float]:
    return {label.name: label.y[0] for label in page.store.told()}


def learn(page, count: int = 12) -> list[int]:
    """Ask for points and label them all."""
    rows = page.ask(count)
    page.post("/tell", {f"label-{row}": str(10 + row) for row in rows})
    return rows


# Starting


def test_a_campaign_starts_from_an_uploaded_table(empty, tmp_path):
    assert "Start a campaign" in read(empty.get("/"))
    asked = empty.upload("/start", "pool.csv", table())
    assert f"{POINTS} rows, 4 columns" in asked
    key = next(iter(empty.app.extensions["tables"]._kept))
    begun = empty.send(
        f"/start/{key}",
        {"new_target": "yield", "unit": "mg/L", "low": "0", "high": "100", "goal": "explore"}
        | {"batch": "7", "role-3": "left out"},
    )
    assert f"A campaign over {POINTS} points has begun." in begun
    campaign = empty.desk.campaign()
    assert [f.name for f in campaign.encoding.features] == ["temperature", "ph"]
    assert (campaign.encoding.low, campaign.encoding.high) == (0.0, 100.0)
    assert campaign.store.settings()["batch_size"] == 7
    assert len(empty.ask(3)) == 3
    other = Campaign.open(f"sqlite:///{tmp_path / 'campaign.db'}")
    assert len(other.pending()) == 3


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({}, "Say what is measured"),
        ({"new_target": "y", "target": "ph"}, "Say what is measured"),
        ({"new_target": "y", "low": "5", "high": "1"}, "must be below the largest"),
        ({"new_target": "y", "low": "x"}, "The range needs numbers"),
        ({"new_target": "y", "high": "1,000"}, "may be 1000 or 1.000: type it without the comma"),
        ({"new_target": "y", "goal": "target", "value": "1,000"}, "may be 1000 or 1.000"),
        ({"new_target": "y", "goal": "target", "value": "x"}, "is no finite number"),
        ({"new_target": "y", "batch": "0"}, "Ask for 1 to 1,000 points at a time, not '0'"),
        ({"new_target": "y", "goal": "target"}, "To come near a value, give that value too."),
        ({"new_target": "y", "goal": "nonsense"}, "nonsense"),
        ({"new_target": "y", "id": "solvent"}, "choose another column of names"),
    ],
)
def test_settings_that_cannot_be_are_answered_by_a_sentence(empty, given, sentence):
    empty.upload("/start", "pool.csv", table())
    key = next(iter(empty.app.extensions["tables"]._kept))
    answer = empty.post(f"/start/{key}", {"batch": "5", "goal": "explore", **given})
    assert answer.status_code == 422
    assert sentence in read(answer)
    assert empty.desk.campaign() is None


def test_a_second_campaign_does_not_take_the_place_of_the_first(page):
    assert page.get("/start").status_code == 303
    page.upload("/start", "pool.csv", table())
    key = next(iter(page.app.extensions["tables"]._kept))
    answer = page.post(f"/start/{key}", {"new_target": "y", "batch": "5"})
    assert "There is a campaign here already" in read(page.get(answer.headers["Location"]))
    assert page.desk.campaign().encoding.target == "yield"


# Measuring


def test_points_are_asked_for_once_however_often_the_form_is_sent(page):
    form = {"n": "4", "once": "one-key"}
    first = page.send("/ask", form)
    page.idle()
    assert "4 more points to measure are in the list." in first
    assert "4 more points to measure are in the list." in page.send("/ask", form)
    assert len(page.store.pending()) == 4
    assert all(page.name(row) in read(page.get("/")) for row in page.store.pending())


def test_a_form_that_is_sent_twice_says_why_it_failed(page, monkeypatch):
    def fail(self, n=None):
        raise ValueError("The pool is exhausted.")

    monkeypatch.setattr(Campaign, "ask", fail)
    form = {"n": "4", "once": "one-key"}
    for _ in range(2):
        assert "The pool is exhausted." in page.send("/ask", form)
        page.idle()


def test_a_refused_form_stays_on_its_page_of_a_long_table(page):
    """The live update took the rows of the first page."""
    page.ask(40)
    for rows, path, field in ((page.store.pending(), "/tell", "label"), ([], "/amend", "amend")):
        rows = rows if len(rows) else page.store.labels()[0]
        answer = page.post(f"{path}?leaf=2&search=S", {f"{field}-{rows[0]}": "x"})
        assert answer.status_code == 422
        at = "/" if path == "/tell" else "/labels"
        assert f'data-at="{at}?leaf=2&amp;search=S"' in answer.get_data(as_text=True)
        assert page.get(f"{path}?leaf=2").headers["Location"] == f"{at}?leaf=2"
        page.post("/tell", {f"label-{row}": "5" for row in page.store.pending()})


def test_a_refused_correction_of_a_label_that_is_gone_is_shown(page):
    row = page.ask(2)[0]
    name = page.name(row)
    page.post("/tell", {f"label-{row}": "5"})
    page.desk.campaign().retract([name])
    told = page.send("/amend", {f"amend-{row}": "6,5", f"was-{row}": "5"})
    assert "Typed, but not in this list any more" in told
    assert f"{name} 6,5 nothing:" in told


@pytest.mark.parametrize("n", ["", "0", "-1", "1.5", "abc", "1001", "9" * 400, "1e3", "٣", "１"])
def test_a_number_of_points_that_cannot_be(page, n):
    assert "Ask for 1 to 1,000 points at a time" in page.send("/ask", {"n": n, "once": "k"})
    assert not len(page.store.draws())


def test_more_points_than_there_are(page):
    page.post("/ask", {"n": "1000", "once": "k"})
    page.idle()
    assert len(page.store.pending()) == POINTS
    assert "1 of 1" not in read(page.get("/"))
    page.post("/ask", {"n": "1", "once": "k2"})
    page.idle()
    assert len(page.store.pending()) == POINTS


def test_labels_are_entered(page):
    rows = page.ask(5)
    cells = ["12.5", " 1,5 ", "3 mg/L", "+4", "5e0"]
    data = {f"label-{row}": cell for row, cell in zip(rows, cells, strict=True)}
    assert "5 labels saved." in page.send("/tell", data)
    assert [told(page)[page.name(row)] for row in rows] == [12.5, 1.5, 3.0, 4.0, 5.0]
    assert {label.by for label in page.store.told()} == {"Ann"}


@pytest.mark.parametrize(
    ("cell", "sentence"),
    [
        ("abc", "&#39;abc&#39; is no finite number."),
        ("1e400", "is no finite number"),
        ("nan", "is no finite number"),
        ("inf", "is no finite number"),
        ("1_000", "is no finite number"),
        ("1.234,5", "is no finite number"),
        ("1,500", "may be 1500 or 1.500: type it without the comma"),
        ("1e200", "squares beyond floating point"),
        ("12 kg", "is no finite number"),
        ("9" * 79, "expected from 0 to 100"),
        ("<script>", "is no finite number"),
        ("\x00", "is no finite number"),
    ],
)
def test_a_cell_that_cannot_be_is_answered_and_kept(page, cell, sentence):
    first, second = page.ask(2)
    answer = page.post("/tell", {f"label-{first}": cell, f"label-{second}": "5"})
    text = answer.get_data(as_text=True)
    assert answer.status_code == 422
    assert sentence in " ".join(text.split())
    assert told(page) == {}
    assert 'value="5"' in text
    assert "<script>" not in text


def test_empty_cells_stay_as_they_are(page):
    first, second = page.ask(2)
    assert "Nothing was typed" in page.send("/tell", {f"label-{first}": " "})
    page.post("/tell", {f"label-{first}": "1", f"label-{second}": ""})
    assert page.store.pending().tolist() == [second]


def test_a_label_beyond_the_range_is_asked_about(page):
    row = page.ask(1)[0]
    answer = read(page.post("/tell", {f"label-{row}": "10000"}))
    assert "tick “Keep values outside the range” and save again" in answer
    assert "Keep values outside the range" in answer
    assert "--yes" not in answer
    assert told(page) == {}
    page.post("/tell", {f"label-{row}": "10000", "accept": "yes"})
    assert list(told(page).values()) == [10000.0]


def test_two_tabs_tell_one_point(page):
    row, other = page.ask(2)
    second = Browser(page.app).enter()
    page.post("/tell", {f"label-{row}": "10"})
    assert "1 label saved" not in second.send("/tell", {f"label-{row}": "10"})
    answer = second.post("/tell", {f"label-{row}": "11", f"label-{other}": "3"})
    text = read(answer)
    assert answer.status_code == 422
    assert f"Already labeled, with another value: {page.name(row)}" in text
    assert "Nothing was saved." in text
    assert f"{page.name(row)} 11 10, by Ann" in text
    assert list(told(page).values()) == [10.0]


def test_a_sheet_goes_to_the_bench_and_comes_back(page):
    rows = page.ask(4)
    printed = read(page.get("/sheet"))
    assert all(page.name(row) in printed for row in rows)
    for kind in ("csv", "xlsx"):
        answer = page.get(f"/download/to_label.{kind}")
        assert f'filename="to_label.{kind}"' in answer.headers["Content-Disposition"]
        read_in = pl.read_csv if kind == "csv" else pl.read_excel
        sheet = read_in(io.BytesIO(answer.data))
        assert sheet["id"].to_list() == [page.name(row) for row in rows]
    labels = [float(i) for i in range(1, 4)] + [None]
    filled = sheet.with_columns(pl.Series("yield [mg/L]", labels, dtype=pl.Float64))
    assert "3 labels saved from the sheet; 1 row had none yet." in page.upload(
        "/upload", "filled.csv", filled.write_csv()
    )
    assert sorted(told(page).values()) == [1.0, 2.0, 3.0]


# Correcting


def test_a_label_is_corrected_and_what_it_was_stays(page):
    rows = learn(page, 3)
    row = rows[0]
    page.post("/who", {"name": "Émile Ωmega"})
    data = {f"amend-{r}": str(10 + r) for r in rows} | {f"was-{r}": str(10 + r) for r in rows}
    said = page.send("/amend", data | {f"amend-{row}": "7,25", "note": "misread"})
    assert "1 label corrected" in said
    assert told(page)[page.name(row)] == 7.25
    for path in ("/labels", f"/points/{row}", "/history"):
        text = read(page.get(path))
        assert "misread" in text
        assert "Émile Ωmega" in text
        assert str(10 + row) in text
    assert "No label was changed" in page.send("/amend", data | {f"amend-{row}": str(10 + row)})


def test_a_correction_of_a_value_that_is_not_there_any_more_is_refused(page):
    row = learn(page, 3)[0]
    form = {f"was-{row}": f"{10 + row}"}
    page.post("/amend", form | {f"amend-{row}": "20"})
    answer = page.post("/amend", form | {f"amend-{row}": "21"})
    assert answer.status_code == 422
    assert f"Somebody else has corrected {page.name(row)} in the meantime" in read(answer)
    said = page.send(f"/points/{row}/amend", {"was": f"{10 + row}", "value": "22"})
    assert "Somebody else has corrected" in said
    assert told(page)[page.name(row)] == 20.0
    assert "form is incomplete" in page.send(f"/points/{row}/amend", {"value": "22"})


def test_one_point_through_all_that_can_become_of_it(page):
    row, other = page.ask(2)
    name = page.name(row)
    draw = page.store.draws()[0]
    assert "History can undo that" in page.send(f"/points/{row}/release", {})
    assert page.store.pending().tolist() == [other]
    assert name in read(page.get("/history"))
    assert f"{name} is to be measured again." in page.send(f"/points/{row}/again", {})
    again = page.store.draws()[-1]
    assert (again.id, again.round, again.probability) == (row, draw.round, draw.probability)
    assert "there is nothing to undo" in page.send(f"/points/{row}/again", {})
    page.send(f"/points/{row}/fail", {"note": "the vial broke"})
    assert page.store.failed().tolist() == [row]
    assert "the vial broke" in read(page.get("/history"))
    page.send(f"/points/{row}/release", {})
    assert not len(page.store.failed())
    assert f"{name}: 5 saved." in page.send(f"/points/{row}/tell", {"value": "5"})
    assert "had the label 5 already" in page.send(f"/points/{row}/tell", {"value": "5"})
    assert "amend such a label" in page.send(f"/points/{row}/fail", {})
    page.send(f"/points/{row}/retract", {"note": "of another vial"})
    assert told(page) == {}
    assert "taken back" in read(page.get("/history"))


def test_a_point_beyond_measuring_is_never_asked_for_again(page):
    row = page.ask(1)[0]
    page.post(f"/points/{row}/fail", {})
    assert row not in page.ask(POINTS)


def test_all_are_released_and_each_can_be_taken_again(page):
    rows = page.ask(3)
    assert "3 points released." in page.send("/release", {})
    for row in rows:
        page.post(f"/points/{row}/again", {})
    assert page.store.pending().tolist() == rows


def test_a_point_that_was_never_released(page):
    assert "was never released" in page.send("/points/0/again", {})


@pytest.mark.parametrize("path", ["/points/99999", "/points/x", "/points/0/explode", "/x.csv"])
def test_what_is_not_there(page, path):
    ends = page.get(path).status_code if path.count("/") < 3 else page.post(path, {}).status_code
    assert ends == 404


def test_a_point_is_found_by_its_name(page):
    assert "Not measured, and not asked for." in page.send("/points", {"name": "S007"})
    assert "spreadsheets drop zeros" in page.send("/points", {"name": "s007"})


def test_more_candidates(page):
    learn(page)
    more = table(10, "T{:03d}")
    page.upload("/add", "more.csv", more)
    page.idle()
    assert page.store.size() == POINTS + 10
    assert "T003" in page.send("/points", {"name": "T003"})
    page.upload("/add", "more.csv", more)
    page.idle()
    assert page.store.size() == POINTS + 10


def test_labels_of_more_candidates_are_in_the_range(page):
    learn(page)
    more = "id,temperature,ph,solvent,yield\nT1,20.5,7,oil,777\n"
    answer = page.post("/add", {"file": (io.BytesIO(more.encode()), "more.csv")})
    page.idle()
    assert page.store.size() == POINTS
    said = read(page.get(answer.headers["Location"]))
    assert "tick “Keep values outside the range”" in said
    page.upload("/add", "more.csv", more, accept="yes")
    page.idle()
    assert told(page)["T1"] == 777.0


def test_labels_of_a_first_table_are_in_the_range(empty):
    lines = table().splitlines()
    lines = [f"{line},{'yield' if i == 0 else 50 * i}" for i, line in enumerate(lines)]
    empty.upload("/start", "pool.csv", "\n".join(lines))
    key = next(iter(empty.app.extensions["tables"]._kept))
    given = {"target": "yield", "low": "0", "high": "100", "goal": "explore", "batch": "7"}
    asked = empty.send(f"/start/{key}", given)
    assert "is expected from 0 to 100, but 38 labels are not" in asked
    assert "Keep values outside the range" in asked
    assert empty.desk.campaign() is None
    assert "40 of them are labeled already" in empty.send(
        f"/start/{key}", given | {"accept": "yes"}
    )


# Looking


def ready(page, path: str) -> str:
    """A page that is computed."""
    for _ in range(100):
        answer = page.get(path)
        if "being fitted" not in answer.get_data(as_text=True):
            return answer.get_data(as_text=True)
        page.idle()
    raise AssertionError(path)


@pytest.mark.parametrize("path", ["/map", "/predictions"])
def test_there_is_no_model_of_one_label(page, path):
    assert "it takes two labels" in read(page.get(path))
    assert "it takes two labels" in read(page.get("/progress"))


def test_predictions_are_those_of_the_terminal(page):
    learn(page)
    text = ready(page, "/predictions")
    assert "S000" in text
    answer = page.get("/download/predictions.csv")
    got = pl.read_csv(io.BytesIO(answer.data))
    campaign = Campaign.open(page.desk.address)
    wanted = campaign.predict()
    assert got.columns == wanted.columns
    np.testing.assert_allclose(got["predicted"], wanted["predicted"], rtol=1e-9)
    assert page.get("/download/predictions.xlsx").data[:2] == b"PK"
    found = read(page.get("/predictions?search=s01&sort=high"))
    assert "S010" in found
    assert "S020" not in found
    values = [float(v) for v in re.findall(r"S0\d\d ([-\d.]+) ", found)]
    assert values == sorted(values, reverse=True)
    assert "No candidate has" in read(page.get("/predictions?search=[.*"))


def test_maps_show_every_candidate_and_the_labels(page):
    rows = learn(page)
    text = ready(page, "/map?x=temperature&y=ph")
    assert text.count("<svg") == 2
    assert text.count('class="known"') == 2 * len(rows)
    assert text.count('class="open"') == 2 * (POINTS - len(rows))
    assert ready(page, "/map?x=solvent&y=ph").count("water</text>") == 2
    assert ready(page, "/map?x=ph&y=ph").count('class="whisker"') == POINTS
    assert ready(page, "/map?x=nothing&y=<b>").count("<svg") == 2


def test_progress_has_error_and_uncertainty(page):
    for _ in range(3):
        learn(page, 6)
    text = page.get("/progress").get_data(as_text=True)
    assert text.count("<svg") == 2
    assert "Leave-one-out error against the number of labels" in text
    assert text.count("<tr>") == 3


def test_labels_and_report_are_downloaded_when_they_are_made(page):
    learn(page)
    for name in ("labels.csv", "labels.xlsx", "report.html"):
        for _ in range(50):
            answer = page.get(f"/download/{name}")
            if "attachment" in answer.headers.get("Content-Disposition", ""):
                break
            assert "comes by itself" in read(answer)
            page.idle()
        assert len(answer.data) > 500


def test_looking_changes_nothing(page, tmp_path):
    learn(page)
    ready(page, "/map")
    page.get("/download/report.html")
    page.idle()
    before = (tmp_path / "campaign.db").read_bytes()
    paths = ["/", "/sheet", "/labels", "/points/0", "/progress", "/map", "/predictions"]
    for path in [*paths, "/history", "/state", "/download/labels.csv"]:
        page.get(path)
    page.idle()
    assert (tmp_path / "campaign.db").read_bytes() == before


def test_every_change_is_seen_by_the_other_browser_and_the_terminal(page):
    other, marks = Browser(page.app).enter(), []

    def look():
        marks.append(other.get("/state").json["mark"])
        assert marks[-1] == record_mark(Campaign.open(page.desk.address))

    look()
    rows = page.ask(4)
    look()
    page.post("/tell", {f"label-{rows[0]}": "1"})
    look()
    page.post(f"/points/{rows[0]}/amend", {"was": "1", "value": "2"})
    look()
    page.post(f"/points/{rows[1]}/fail", {})
    look()
    page.post(f"/points/{rows[2]}/release", {})
    look()
    page.post(f"/points/{rows[2]}/again", {})
    look()
    Campaign.open(page.desk.address).release([page.name(rows[3])])  # from the terminal
    look()
    assert len(set(marks)) == len(marks)
    assert "1 labels 1 to measure 1 failed" in read(other.get("/labels"))


def test_long_work_does_not_keep_the_page_waiting(page):
    learn(page)
    page.desk.worker.do("Sleeping", lambda: time.sleep(4))
    begun = time.monotonic()
    for path in ("/", "/labels", "/history", "/state", "/progress"):
        assert page.get(path).status_code == 200
    assert time.monotonic() - begun < 2
    assert page.get("/state").json["jobs"][0]["title"] == "Sleeping"
    assert "Sleeping …" in read(page.get("/"))
    assert "The model is being fitted" in read(page.get("/map"))
    page.idle()
    assert "<svg" in ready(page, "/map")


def test_a_goal_is_followed(app, address, tmp_path):
    start(address, tmp_path, goal="maximize")
    page = Browser(app).enter()
    for _ in range(2):
        learn(page, 6)
    page.ask(2)
    text = page.get("/progress").get_data(as_text=True)
    assert "Best so far" in text
    assert "What is left to gain" in text
    assert "Goal: maximize" in read(page.get("/"))


def test_a_form_that_was_refused_can_be_loaded_again(page):
    assert page.get("/tell").headers["Location"] == "/"
    assert page.get("/amend").headers["Location"] == "/labels"
