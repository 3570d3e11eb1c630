"""How tables become features: which columns are used, what gaps and rare values turn into."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest

from sketchridge.encoder import MISSING, OTHER, Cycles, TableEncoder

N = 60
rng = np.random.default_rng(0)
TABLE = {
    "size": np.where(np.arange(N) % 7 == 0, np.nan, rng.random(N)),
    "color": np.array(["red", "blue", None])[rng.integers(0, 3, N)],
    "day": np.datetime64("2020-01-01") + rng.integers(0, 900, N).astype("timedelta64[D]"),
    "flag": rng.random(N) > 0.5,
    "name": np.array([f"n{i}" for i in range(N)], dtype=object),
    "constant": np.ones(N),
    "empty": np.full(N, np.nan),
    "id": np.arange(N),
}
USED = ("size", "color", "day", "flag")


def fitted(table=TABLE, **options) -> TableEncoder:
    with pytest.warns(UserWarning, match="left out"):
        return TableEncoder(**options).fit(table)


def test_kinds_and_reasons():
    encoder = fitted()
    assert encoder.kinds_ == {
        "size": "number",
        "color": "category",
        "day": "date",
        "flag": "number",
    }
    assert encoder.left_out_.keys() == {"name", "constant", "empty", "id"}
    assert "different in every row" in encoder.left_out_["name"]


def test_pandas_and_polars_give_the_same_features():
    encoder = fitted(pd.DataFrame(TABLE))
    Z = encoder.transform(pd.DataFrame(TABLE))
    np.testing.assert_array_equal(Z, encoder.transform(pl.DataFrame(TABLE)))
    np.testing.assert_array_equal(Z, fitted(pl.DataFrame(TABLE)).transform(TABLE))
    assert Z.shape == (N, len(encoder.get_feature_names_out()))


def test_features_by_hand():
    encoder = fitted()
    Z = encoder.transform(TABLE)
    named = dict(zip(encoder.get_feature_names_out(), Z.T, strict=True))
    missing = np.isnan(TABLE["size"])
    median = np.median(TABLE["size"][~missing])
    np.testing.assert_array_equal(named["size"], np.where(missing, median, TABLE["size"]))
    np.testing.assert_array_equal(named["size is missing"], missing)
    np.testing.assert_array_equal(named["color=red"], TABLE["color"] == "red")
    np.testing.assert_array_equal(
        named[f"color={MISSING}"], np.array([c is None for c in TABLE["color"]])
    )
    days = (TABLE["day"] - np.datetime64("1970-01-01")).astype(float)
    np.testing.assert_array_equal(named["day"], days)
    np.testing.assert_allclose(named["day: year (sin)"], np.sin(2 * np.pi * days / 365.2425))


def test_places_and_columns_agree():
    encoder = fitted()
    Z = encoder.transform(TABLE)
    for name, place in encoder.places_.items():
        np.testing.assert_array_equal(encoder.encoded(name, TABLE[name]), Z[:, place])


def test_rare_values_are_one():
    values = np.array(["a"] * 40 + ["b"] * 30 + [f"rare{i // 2}" for i in range(30)])
    encoder = TableEncoder(max_categories=3).fit({"x": values})
    assert encoder.levels("x") == ["a", "b", OTHER]
    with pytest.warns(UserWarning, match="'new'. They are taken as rare ones"):
        assert encoder.transform({"x": ["new"]}).tolist() == [[0, 0, 1]]


def test_codes_are_categories_if_they_are_said_to_be():
    encoder = TableEncoder(category=["x"]).fit({"x": [1, 2, 1, 2]})
    assert encoder.transform({"x": [1.0]}).tolist() == encoder.transform({"x": ["1"]}).tolist()


def test_cycles_are_those_that_repeat_and_that_the_target_goes_with():
    days = np.arange(0, 1000.0, 0.25)[:, None]
    weekly = np.sin(2 * np.pi * days[:, 0] / 7) + rng.standard_normal(len(days))
    assert Cycles().fit(days).periods_ == ["year", "week", "day"]
    assert Cycles().fit(days, weekly).periods_ == ["year", "week"]
    assert Cycles().fit(days[:300]).periods_ == ["week", "day"]
    assert Cycles().fit(np.arange(0, 1000.0, 30)[:, None]).periods_ == ["year"]
    assert Cycles().fit(np.zeros((3, 1))).periods_ == []


def test_new_gaps_and_new_columns_are_told():
    encoder = TableEncoder().fit({"x": np.arange(5.0)})
    with pytest.warns(UserWarning, match="'x' is empty in 1 rows, and never was"):
        assert encoder.transform({"x": [None, 3.0]}).tolist() == [[2.0], [3.0]]
    with pytest.warns(UserWarning, match="without the column 'more': it is ignored"):
        encoder.transform({"x": [1.0], "more": [1]})


@pytest.mark.parametrize(
    ("table", "text"),
    [
        ({"y": [1.0]}, "no column 'x', which the model was fitted with"),
        ({"x": ["a"]}, "'x' held numbers when the model was fitted, and holds text here"),
        ({"x": [np.inf]}, "infinite"),
        (np.zeros((2, 1)), "A table is needed"),
    ],
)
def test_another_table_is_refused(table, text):
    encoder = TableEncoder().fit({"x": np.arange(5.0)})
    with pytest.raises(ValueError, match=text):
        encoder.transform(table)


def test_dates_as_text_must_stay_dates():
    encoder = TableEncoder().fit({"x": ["2024-01-01", "2024-01-05", None]})
    assert encoder.kinds_ == {"x": "date"}
    with pytest.raises(ValueError, match="holds 'soon' here: write dates as 2024-01-31"):
        encoder.transform({"x": ["soon"]})


@pytest.mark.parametrize("options", [{"category": ["z"]}, {"ignore": ["z"]}])
def test_unknown_columns_in_options_are_refused(options):
    with pytest.raises(ValueError, match="no column 'z'"):
        TableEncoder(**options).fit({"x": [1.0, 2.0]})


@pytest.mark.parametrize("rows", [1, 2, 2**17 + 1])
def test_any_number_of_rows(rows):
    encoder = TableEncoder().fit({"x": np.arange(5.0), "c": ["a", "b", "a", "b", "a"]})
    assert encoder.transform({"x": np.ones(rows), "c": ["a"] * rows}).shape == (rows, 3)


@pytest.mark.filterwarnings("ignore:.*left out")
def test_text_with_too_many_values_is_left_out_and_said():
    texts = [f"t{i}" for i in range(40)] + ["t1"] * 20
    with pytest.warns(UserWarning, match="40 different texts in 60 rows"):
        encoder = TableEncoder().fit({"x": np.arange(60.0), "t": texts})
    assert encoder.kinds_ == {"x": "number"}
    assert TableEncoder(category=["t"]).fit({"x": np.arange(60.0), "t": texts}).kinds_["t"]
