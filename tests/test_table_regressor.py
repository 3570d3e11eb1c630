"""One estimator for tables and for pipelines: it answers as the estimator behind it does, and lives
with scikit-learn's tools."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import skops.io
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from sketchridge import (
    ExactKernelRidge,
    PipelineRegressor,
    SketchedKernelRidge,
    TableRegressor,
    make_model,
    saving,
)
from sketchridge.model_plots import plot_effect, plot_influence, plot_path
from sketchridge.plotting import plot_interval, plot_observed_predicted, plot_relevance
from sketchridge.profiles import along

N = 70
rng = np.random.default_rng(0)
DAY = np.datetime64("2021-01-01") + rng.integers(0, 800, N).astype("timedelta64[D]")
TABLE = pd.DataFrame(
    {
        "size": np.where(np.arange(N) % 9 == 0, np.nan, rng.random(N)),
        "color": rng.choice(["red", "blue"], N),
        "day": DAY,
    }
)
Y = pd.Series(
    np.nan_to_num(TABLE["size"], nan=0.5) * 3
    + (TABLE["color"] == "red")
    + 0.1 * rng.standard_normal(N),
    name="price",
)
ASKED = {
    "predict": lambda m, X: m.predict(X, return_std=True),
    "predict_interval": lambda m, X: m.predict_interval(X, 0.8, side="upper"),
    "variance": lambda m, X: m.variance(X, "gp"),
    "predictive_variance": lambda m, X: m.predictive_variance(X, include_noise=False),
    "noise_at": lambda m, X: m.noise_at(X),
    "log_density": lambda m, X: m.log_density(X, np.ones(len(X))),
    "covariance": lambda m, X: m.covariance(X),
    "sample": lambda m, X: m.sample(X, 2, random_state=0),
    "contrast": lambda m, X: m.contrast(np.eye(len(X))[:2], X),
    "test_contrast": lambda m, X: m.test_contrast(np.eye(len(X))[:2], X, 1.0).p_value,
    "gradient": lambda m, X: m.gradient(X, return_std=True),
    "marginal_effects": lambda m, X: m.marginal_effects(X).effect,
}


@pytest.fixture(scope="module")
def model() -> TableRegressor:
    return TableRegressor(SketchedKernelRidge("matern32", bandwidth="ard")).fit(TABLE, Y)


@pytest.fixture(scope="module")
def pipeline():
    columns = make_column_transformer(
        (OneHotEncoder(sparse_output=False), ["color"]), (StandardScaler(), ["size"])
    )
    return make_pipeline(columns, ExactKernelRidge("matern32")).fit(TABLE.fillna(0.5), Y)


@pytest.mark.parametrize("ask", ASKED.values(), ids=ASKED)
def test_a_table_is_answered_as_its_features_are(model, ask):
    Z = model.encoder_.transform(TABLE[:9])
    assert_same(ask(model, TABLE[:9]), ask(model.regressor_, Z))


@pytest.mark.parametrize("ask", ASKED.values(), ids=ASKED)
def test_a_pipeline_is_answered_as_its_features_are(pipeline, ask):
    X = TABLE.fillna(0.5)[:9]
    assert_same(ask(PipelineRegressor(pipeline), X), ask(pipeline[-1], pipeline[:-1].transform(X)))


def assert_same(found, expected):
    several = isinstance(found, tuple)
    pairs = zip(found, expected, strict=True) if several else [(found, expected)]
    for a, b in pairs:
        np.testing.assert_array_equal(a, b)


def test_names_follow_the_columns(model, pipeline):
    assert list(model.get_feature_names_out())[:2] == ["size", "size is missing"]
    assert model.marginal_effects().feature == tuple(model.get_feature_names_out())
    assert set(model.feature_relevance_) == {"size", "color", "day"}
    assert sum(model.feature_relevance_.values()) == pytest.approx(1)
    assert model.target_name_ == "price"
    wrapped = PipelineRegressor(pipeline)
    assert set(wrapped.feature_relevance_) == set(pipeline[:-1].get_feature_names_out())


def test_influence_is_about_predictions(model):
    found = model.influence()
    assert list(found)[:2] == ["size", "color"]
    assert found == model.influence()


def test_pandas_polars_and_the_target_column_change_nothing(model):
    mean = model.predict(TABLE)
    np.testing.assert_array_equal(model.predict(pl.from_pandas(TABLE)), mean)
    np.testing.assert_array_equal(model.predict(TABLE.assign(price=Y)), mean)
    np.testing.assert_array_equal(model.predict(TABLE[["day", "color", "size"]]), mean)


def test_make_model_is_fit():
    table = pl.from_pandas(TABLE.assign(price=Y))
    made = make_model(table, "price", estimator=ExactKernelRidge())
    same = TableRegressor(ExactKernelRidge()).fit(TABLE, Y)
    np.testing.assert_array_equal(made.predict(TABLE), same.predict(TABLE))
    assert made.target_name_ == "price"
    with pytest.raises(ValueError, match="Did you mean 'price'"):
        make_model(table, "Price")


def test_rows_without_a_target_are_dropped_with_their_weights():
    y = Y.to_numpy().copy()
    y[:5] = np.nan
    w = rng.random(N)
    with pytest.warns(UserWarning, match="5 of 70 rows have no 'y'"):
        found = TableRegressor(ExactKernelRidge()).fit(TABLE, y, sample_weight=w)
    same = TableRegressor(ExactKernelRidge()).fit(TABLE[5:], y[5:], sample_weight=w[5:])
    np.testing.assert_array_equal(found.predict(TABLE), same.predict(TABLE))


@pytest.mark.parametrize("count", [N - 1, N + 30])
@pytest.mark.filterwarnings("ignore:5 of 70 rows")
def test_weights_of_another_length_are_refused(count):
    """Those of the rows with a target were taken, whatever they were of."""
    y = Y.to_numpy().copy()
    y[:5] = np.nan
    for target in (y, Y):
        with pytest.raises(ValueError, match=f"{count}"):
            TableRegressor(ExactKernelRidge()).fit(TABLE, target, sample_weight=np.ones(count))


@pytest.mark.parametrize(
    ("y", "text"),
    [
        (["a"] * N, "must be numbers, but holds text such as 'a'"),
        ([None] * N, "is empty"),
        (np.zeros((N, 2)), "One target is needed"),
        (np.full(N, np.inf), "infinite"),
        (np.zeros(N - 1), "inconsistent numbers of samples"),
        ([1.0] + [np.nan] * (N - 1), "At least two rows with a target are needed, got 1"),
    ],
)
@pytest.mark.filterwarnings("ignore:.*rows have no")
def test_other_targets_are_refused(y, text):
    with pytest.raises(ValueError, match=text):
        TableRegressor(ExactKernelRidge()).fit(TABLE, y)


def test_a_fit_that_fails_leaves_the_old_model(model):
    kept = clone(model).fit(TABLE, Y)
    before = kept.predict(TABLE)
    with pytest.raises(ValueError, match="must be numbers"):
        kept.fit(TABLE, ["a"] * N)
    np.testing.assert_array_equal(kept.predict(TABLE), before)


def test_other_estimators_are_refused(pipeline):
    with pytest.raises(ValueError, match="LinearRegression has no intervals"):
        TableRegressor(LinearRegression()).fit(TABLE, Y)
    for given in (make_pipeline(LinearRegression()), LinearRegression()):
        with pytest.raises(ValueError, match="LinearRegression has no intervals"):
            PipelineRegressor(given).fit(TABLE[["size"]], Y)


def test_search_over_settings():
    grid = {"estimator__kernel": ["gaussian", "linear"], "max_categories": [2, 20]}
    found = GridSearchCV(TableRegressor(ExactKernelRidge()), grid, cv=2).fit(TABLE, Y)
    assert found.best_score_ > 0.5
    wrapped = PipelineRegressor(make_pipeline(StandardScaler(), ExactKernelRidge()))
    grid = {"pipeline__exactkernelridge__kernel": ["gaussian", "linear"]}
    found = GridSearchCV(wrapped, grid, cv=2).fit(TABLE[["size"]].fillna(0.5), Y)
    assert found.best_estimator_.predict_interval(TABLE[["size"]][1:3])[0].shape == (2,)


def test_weights_reach_the_end_of_a_pipeline(pipeline):
    w = rng.random(N)
    X = TABLE.fillna(0.5)
    found = PipelineRegressor(pipeline).fit(X, Y, sample_weight=w)
    same = clone(pipeline).fit(X, Y, exactkernelridge__sample_weight=w)
    np.testing.assert_array_equal(found.predict(X), same.predict(X))


@pytest.mark.parametrize("through", ["pickle", "skops"])
def test_models_can_be_kept(model, pipeline, through, tmp_path):
    X = TABLE.fillna(0.5)
    for kept in (model, PipelineRegressor(pipeline)):
        if through == "pickle":
            loaded = pickle.loads(pickle.dumps(kept))
        else:
            path = tmp_path / f"{type(kept).__name__}.skops"
            saving.save(kept, path, notes={"a": 1})
            loaded, notes = saving.load_with_notes(path)
            assert notes == {"a": 1}
        np.testing.assert_array_equal(loaded.predict(X), kept.predict(X))
        np.testing.assert_array_equal(loaded.predict_interval(X), kept.predict_interval(X))


class Stranger(LinearRegression):
    """A type that no file of ours holds."""


def test_only_trusted_types_are_loaded(tmp_path):
    skops.io.dump(Stranger(), tmp_path / "s.skops")
    with pytest.raises(ValueError, match=r"types that are not trusted, '.*Stranger'"):
        saving.load(tmp_path / "s.skops")
    name = f"{Stranger.__module__}.Stranger"
    assert isinstance(saving.load(tmp_path / "s.skops", trusted=[name]), Stranger)


def test_nothing_is_overwritten_by_a_model(model, tmp_path):
    saving.save(model, tmp_path / "m.skops")
    with pytest.raises(ValueError, match="exists"):
        saving.save(model, tmp_path / "m.skops")
    saving.save(model, tmp_path / "m.skops", force=True)
    with pytest.raises(ValueError, match="must end in"):
        saving.save(model, tmp_path / "m.pkl")


def test_every_trusted_name_is_there():
    from importlib import import_module

    for name in saving.TRUSTED:
        module, _, last = name.rpartition(".")
        assert hasattr(import_module(module), last)


@pytest.mark.parametrize("feature", ["size", "color", "day", 0])
@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_pictures_take_tables_and_names(model, feature, kind):
    X = TABLE if kind == "pandas" else pl.from_pandas(TABLE)
    ax = plot_interval(model, X, Y, feature=feature)
    assert ax.get_xlabel() == (feature if isinstance(feature, str) else "size")


def test_pictures_take_pipelines(model, pipeline):
    X = TABLE.fillna(0.5)
    assert plot_interval(pipeline, X, Y, feature="color").get_xlabel() == "color"
    plot_observed_predicted(model, X, Y)
    labels = [t.get_text() for t in plot_relevance(pipeline).get_yticklabels()]
    assert set(labels) == set(pipeline[:-1].get_feature_names_out())
    assert len(plot_relevance(model).get_yticklabels()) == 3
    plot_path(pipeline)
    with pytest.raises(ValueError, match="no column 'hue'"):
        plot_interval(model, X, Y, feature="hue")


@pytest.mark.parametrize("column", ["size", "color", "day"])
def test_effects_are_predictions_at_typical_rows(model, column):
    ax = plot_effect(model, column)
    assert ax.get_xlabel() == column
    assert ax.get_ylabel() == "price"
    place = along(TABLE, "color", 2)
    levels = [tick.get_text() for tick in plot_effect(model, "color").get_xticklabels()]
    assert set(levels) == set(place.x)
    with pytest.raises(ValueError, match="does not use a column 'hue'"):
        plot_effect(model, "hue")


def test_no_curve_is_drawn_between_a_few_values():
    rng = np.random.default_rng(0)
    month, size = rng.integers(1, 13, 80).astype(float), rng.random(80)
    model = make_model({"month": month, "size": size, "price": np.sin(month) + size}, "price")
    curves = {name: plot_effect(model, name).lines[-1] for name in ("month", "size")}
    assert curves["month"].get_xdata().tolist() == list(range(1, 13))
    assert len(curves["size"].get_xdata()) > 100


def test_influence_is_drawn(model):
    assert len(plot_influence(model).get_yticklabels()) == 3
