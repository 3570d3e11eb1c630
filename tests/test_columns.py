"""Columns of pandas and polars tables are the same numbers, text and dates."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest

from sketchridge.columns import cells_of, check_table, dates_of, kind_of, numbers_of, texts_of

BERLIN = "Europe/Berlin"
NUMBERS = {
    "pandas float": pd.Series([1.5, np.nan]),
    "pandas nullable": pd.Series([1.5, None], dtype="Float64"),
    "pandas object": pd.Series([1.5, None], dtype=object),
    "polars": pl.Series([1.5, None]),
    "decimal": pl.Series([Decimal("1.5"), None]),
    "list": [1.5, None],
}
DATES = {
    "pandas": pd.to_datetime(pd.Series(["2024-01-02", None])),
    "pandas with a zone": pd.to_datetime(pd.Series(["2024-01-02 01:00", None])).dt.tz_localize(
        BERLIN
    ),
    "polars": pl.Series([date(2024, 1, 2), None]),
    "polars with a zone": pl.Series([datetime(2024, 1, 2, 1), None]).dt.replace_time_zone(BERLIN),
    "text": ["2024-01-02", None],
    "text with a zone": ["2024-01-02T01:00+01:00", None],
    "objects": [date(2024, 1, 2), None],
}
TEXTS = {
    "pandas": pd.Series(["a", None]),
    "pandas category": pd.Series(["a", None], dtype="category"),
    "polars": pl.Series(["a", None]),
    "polars category": pl.Series(["a", None], dtype=pl.Categorical),
}


@pytest.mark.parametrize("given", NUMBERS.values(), ids=NUMBERS)
def test_numbers(given):
    cells = cells_of({"x": given}, "x")
    assert kind_of(cells, "x") == "number"
    np.testing.assert_array_equal(numbers_of(cells), [1.5, np.nan])


@pytest.mark.parametrize("given", [np.array([1 + 2j, 0]), [1 + 2j, None], np.complex64([1j])])
def test_complex_numbers_are_no_numbers(given):
    """Their imaginary parts were dropped."""
    with pytest.raises(ValueError, match="of the type complex"):
        kind_of(cells_of({"x": given}, "x"), "x")


@pytest.mark.parametrize("given", DATES.values(), ids=DATES)
def test_dates(given):
    cells = cells_of({"x": given}, "x")
    assert kind_of(cells, "x") in ("date", "text")
    np.testing.assert_array_equal(dates_of(cells), [19724, np.nan])


@pytest.mark.parametrize("given", TEXTS.values(), ids=TEXTS)
def test_texts(given):
    cells = cells_of({"x": given}, "x")
    assert kind_of(cells, "x") == "text"
    assert texts_of(cells).tolist() == ["a", None]
    assert dates_of(cells) is None


def test_codes_with_gaps_are_the_text_they_were():
    assert texts_of(np.array([3.0, np.nan])).tolist() == ["3", None]
    assert texts_of(np.array([3, 4])).tolist() == ["3", "4"]


@pytest.mark.parametrize("given", [pl.Series([None, None]), pd.Series([np.nan]), [None]])
def test_empty(given):
    assert kind_of(cells_of({"x": given}, "x"), "x") == "empty"


@pytest.mark.parametrize("given", [[timedelta(1)], pl.Series([time(1)]), [[1]], [{}], [b"x"]])
def test_what_is_no_number_text_or_date_is_refused(given):
    with pytest.raises(ValueError, match=r"'x' holds|type"):
        kind_of(cells_of({"x": pd.Series(given)}, "x"), "x")


def test_a_column_of_two_kinds_is_refused():
    with pytest.raises(ValueError, match="'x' holds number and texts"):
        kind_of(cells_of({"x": pd.Series([1, "a"], dtype=object)}, "x"), "x")


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (np.zeros((2, 2)), "A table is needed .* got ndarray"),
        (pd.DataFrame(np.zeros((2, 2))), "names that are text, got '0', '1'"),
        (pd.DataFrame(np.zeros((2, 2)), columns=["a", "a"]), "More than one column"),
    ],
)
def test_what_is_no_table_is_refused(given, text):
    with pytest.raises(ValueError, match=text):
        check_table(given)
