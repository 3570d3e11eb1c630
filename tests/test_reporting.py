"""The page: self-contained, escaped, and with its numbers aligned."""

from __future__ import annotations

from html.parser import HTMLParser

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot as plt

from sketchridge.reporting import Section, page, picture, table


class Balanced(HTMLParser):
    """Fails on tags that are not closed in order."""

    def __init__(self):
        super().__init__()
        self.open = []
        self.seen = []

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))
        if tag not in ("meta", "img", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def parsed(html):
    parser = Balanced()
    parser.feed(html)
    assert not parser.open
    return parser


def test_a_page_is_one_balanced_document_without_links_to_elsewhere():
    figure, ax = plt.subplots()
    ax.plot([1, 2])
    html = page(
        "A <title>",
        "Lead & more",
        [Section("One", "First.\n\nSecond.", [picture(figure, 'a "line"'), table([{"a": 1}])])],
        "End",
    )
    plt.close(figure)
    parser = parsed(html)
    assert "A &lt;title&gt;" in html
    assert "Lead &amp; more" in html
    images = [attrs for tag, attrs in parser.seen if tag == "img"]
    assert [image["alt"] for image in images] == ['a "line"']
    assert all(image["src"].startswith("data:image/png;base64,") for image in images)
    assert not [attrs for _, attrs in parser.seen if "href" in attrs]
    assert html.count("<p>") == 2


def test_cells_are_escaped_and_numbers_formatted():
    html = table(
        [{"name": "<b>", "n": 12345, "x": 0.000123456, "verdict": "holds", "none": None}],
        classes={"holds": "good"},
    )
    parsed(html)
    assert "&lt;b&gt;" in html
    assert '<td class="number">12,345</td>' in html
    assert '<td class="number">0.0001235</td>' in html
    assert '<td class="good">holds</td>' in html
    assert "<td></td>" in html


def test_no_rows_make_no_table():
    assert table([]) == ""
