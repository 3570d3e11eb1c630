"""American spelling everywhere, and costs that are said "per point", not "a point"."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PLACES = ("src", "docs", "examples", "benchmarks", "README.md", "CHANGELOG.md", "CONTRIBUTING.md")
WRITTEN = {".py", ".md", ".rst", ".html", ".css", ".js"}
MADE = ("docs/_build/", "docs/gallery/")  # by Sphinx
QUOTING = {  # the paper's sentences, word for word
    "docs/paper/claims.md",
    "docs/paper/report.html",
    "src/sketchridge/paper/readings/quotes.py",
}
AS_GIVEN = (  # names of others, recorded names, and the paper in quotation marks
    "aria-labelledby",
    "CancelledError",
    '"minimiser"',
    '"projected minimiser"',
    '"for analysing convenience"',
)

OUR = "col|neighb|behavi|fav|hon|lab|flav|rig|harb|hum|rum|vap|od|endeav|vig"
DOUBLED = "label|model|travel|cancel|signal|total|channel|fuel|level|equal|panel|tunnel"
ELSEWHERE = (
    "centr(?:es?|ed|ing)|metres?|litres?|fibres?|calibre|grey(?:s|ish)?|defence|offence|pretence|"
    "licen[c]es?|practis(?:e[ds]?|ing)|(?:ana|para|cata)lys(?:e[drs]?|ers?|ing)|artefacts?|"
    "programmes?|judgements?|acknowledgements?|ageing|whilst|amongst|learnt|(?:mis)?spelt|"
    "fulfil|enrol|sceptic(?:s|al)?|per cent"
)
BRITISH = re.compile(
    rf"(?:(?:{OUR})our(?:[a-z]*)|un(?:{DOUBLED})led|(?:{DOUBLED})l(?:ed|ing|ers?)|{ELSEWHERE})"
    r"(?![a-z])",
    re.IGNORECASE,
)
ISE = re.compile(r"[a-z]{3,}is(?:e[drs]?|ers|ing|ations?)(?![a-z])", re.IGNORECASE)
NEVER_IZE = re.compile(  # words that have an s in America too
    r"(?:[a-z]*w|no|(?:un|im)?pr(?:om|em|ec|a)|comprom|compr|conc|surpr|enterpr|disgu|exerc|adv|"
    r"dev|rev|superv|improv|appra|expert|parad|ar|ra|br?u|cru|merchand|dem)"
    r"is(?:e[drs]?|ers|ing|ations?)",
    re.IGNORECASE,
)
COST = re.compile(
    r"(?:\bO\([^()]*(?:\([^()]*\)[^()]*)*\)|\b(?:[mµ]?s|seconds|evaluations|bytes|[kKMG]i?B))"
    r" an? (?:further )?"
    r"(?:point|row|label|column|query|step|round|number|fit|second|λ)(?!\w)"
)
LENGTH = re.compile(r"as long as the (?:data|rows)\b")


def files() -> Iterator[Path]:
    for place in map(ROOT.joinpath, PLACES):
        for path in sorted(place.rglob("*")) if place.is_dir() else [place]:
            name = path.relative_to(ROOT).as_posix()
            if path.suffix in WRITTEN and name not in QUOTING and not name.startswith(MADE):
                yield path


def british(line: str) -> list[str]:
    """Words of a line, also within names, that are spelled the British way."""
    for text in AS_GIVEN:
        line = line.replace(text, "")
    found = [match.group() for match in BRITISH.finditer(line)]
    found += [m.group() for m in ISE.finditer(line) if not NEVER_IZE.fullmatch(m.group())]
    return found


def unclear(line: str) -> list[str]:
    return [match.group() for rule in (COST, LENGTH) for match in rule.finditer(line)]


def said(rule) -> list[str]:
    """Where the rule finds something: file, line and words."""
    return [
        f"{path.relative_to(ROOT)}:{number}: {', '.join(found)}"
        for path in files()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if (found := rule(line))
    ]


def test_spelling_is_american():
    places = said(british)
    assert not places, "\n".join(places)


def test_costs_are_per_point():
    places = said(unclear)
    assert not places, "\n".join(places)


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("The colour of neighbouring, unlabelled points", ["colour", "neighbouring", "unlabelled"]),
        ("_cancelling = projected_minimiser(centred, GREY)", ["cancelling", "centred", "GREY"]),
        ("A = Standardised(K).factorisation()", ["Standardised", "factorisation"]),
        ("modelled behaviour is summarised", ["modelled", "behaviour", "summarised"]),
        ("otherwise pairwise noise is as precise as promised, and raised", []),
        ("four labels of a programmed, centered parameter: licensed", []),
    ],
)
def test_words_are_told_apart(line, found):
    assert set(british(line)) >= set(found)
    assert found or not british(line)


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("The variance costs O(nm) a point.", ["O(nm) a point"]),
        ("O(m log(n)) a row, and 31 µs a point", ["O(m log(n)) a row", "µs a point"]),
        ("an array as long as the data", ["as long as the data"]),
        ("O(nm) per point for a point of n rows, as long as it lasts", []),
    ],
)
def test_costs_are_told_apart(line, found):
    assert unclear(line) == found
