"""The penalty, mean, kernel and intervals of the exact problem, whatever the sketch."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
from helpers import assert_close, assert_close_each, normal

from sketchridge import ExactKernelRidge, SketchedKernelRidge, chosen, selection, solution
from sketchridge.backends import NumpyTiles
from sketchridge.kernels import Laplacian, Linear, Matern32, Radial

rng = np.random.default_rng(0)
X = rng.uniform(-2, 2, (150, 3)) * [1.0, 30.0, 1e-3]
y = np.sin(2 * X[:, 0]) + X[:, 1] / 30 + 0.1 * rng.standard_normal(150)
X_NEW = rng.uniform(-2, 2, (400, 3)) * [1.0, 30.0, 1e-3]
Y_NEW = np.sin(2 * X_NEW[:, 0]) + X_NEW[:, 1] / 30 + 0.1 * rng.standard_normal(400)
H = np.array([1.0, 30.0, 1e-3])
EXACT = {"alpha": "loo", "solver": "auto", "fit_intercept": True, "random_state": 0}
intercepts = pytest.mark.parametrize("fit_intercept", [False, True])
weighted = pytest.mark.parametrize(
    "weight", [None, rng.uniform(0.2, 3, 150)], ids=["even", "weighted"]
)


def sketched(**options):
    return SketchedKernelRidge(**{"bandwidth": H, **EXACT, **options})


@intercepts
@weighted
def test_up_to_4096_rows_the_sketched_estimator_is_the_exact_one(fit_intercept, weight):
    one = ExactKernelRidge(bandwidth=H, alpha="loo", fit_intercept=fit_intercept).fit(X, y, weight)
    other = sketched(fit_intercept=fit_intercept).fit(X, y, weight)
    assert other.fitted_.factor.complete
    assert other.solver_ == "sketch"
    assert_close_each([other.alpha_], [one.alpha_], "pcg")
    assert_close(other.predict(X_NEW), one.predict(X_NEW), "pcg")
    assert_close_each(other.variance(X_NEW, "vbar"), one.variance(X_NEW), "pcg")
    assert_close_each([other.noise_variance_], [one.noise_variance_], "pcg")
    for ours, theirs in zip(
        other.predict_interval(X_NEW), one.predict_interval(X_NEW), strict=True
    ):
        assert_close(ours, theirs, "pcg")  # a limit may be near 0


@pytest.fixture
def iterated(monkeypatch):
    """As for rows too many to factorize their matrix."""
    monkeypatch.setattr(selection, "_COMPLETE", 100)
    monkeypatch.setattr(NumpyTiles, "dense_rows", 0)


@intercepts
@weighted
def test_a_few_rows_more_are_left_out_exactly(fit_intercept, weight, monkeypatch):
    """Mean and leave-one-out errors of the exact problem, whatever the sketch."""
    monkeypatch.setattr(selection, "_COMPLETE", 100)
    options = {"kernel": "matern32", "bandwidth": H, "fit_intercept": fit_intercept}
    model = sketched(sketch_size=20, **options).fit(X, y, weight)
    exact = ExactKernelRidge(alpha=model.alpha_, **options).fit(X, y, weight)
    assert model.solver_ == "cholesky"
    assert pickle.loads(pickle.dumps(model)).solver_ == "cholesky"
    assert_close(model.predict(X_NEW), exact.predict(X_NEW))
    assert_close([model.loo_error_], [exact.loo_error_])
    low, high = model.predict_interval(X_NEW)
    assert 0.88 <= np.mean((low <= Y_NEW) & (high >= Y_NEW)) <= 0.99


def test_what_is_missing_in_the_errors_of_rows_left_out_is_known_from_some(iterated):
    """With a sketch far too small, where 1/B_ii is underestimated, landmarks included."""
    options = {"kernel": "matern32", "bandwidth": 0.3 * H, "alpha": 1e-3}
    exact = ExactKernelRidge(**options, fit_intercept=True).fit(X, y)
    model = sketched(sketch_size=50, **options).fit(X, y)
    assert 0.98 <= model.loo_error_ / exact.loo_error_ <= 1.02
    some = model.fitted_.left_out.errors[:, 0]
    every = exact.fitted_.loo_errors[:, 0]
    assert 0.98 <= (some**2).mean() / (every**2).mean() <= 1.02


def test_a_penalty_that_few_rows_cannot_see_is_found_on_more(monkeypatch):
    """A function of high frequency, noise for 40 rows and not for 150."""
    x = np.sort(np.random.default_rng(0).uniform(0, 1, (150, 1)), axis=0)
    f = np.sin(60 * x[:, 0])
    monkeypatch.setattr(selection, "_COMPLETE", 100)
    monkeypatch.setattr(chosen, "_ROWS", 40)
    options = {"kernel": "matern32", "bandwidth": 0.05, "sketch_size": 50}
    checked = sketched(**options).fit(x, f)
    monkeypatch.setattr(chosen, "_FALLS", 0)
    monkeypatch.setattr(chosen, "_FACTOR", 1.0)
    unchecked = sketched(**options).fit(x, f)
    assert checked.alpha_ < unchecked.alpha_
    assert checked.loo_error_ < 0.9 * unchecked.loo_error_


@intercepts
@weighted
def test_beyond_the_mean_is_that_of_the_exact_problem(fit_intercept, weight, iterated):
    """α from a subsample, here of all rows; the mean to within 1% of the leave-one-out error."""
    options = {"kernel": "matern32", "bandwidth": H, "fit_intercept": fit_intercept}
    exact = ExactKernelRidge(alpha="loo", **options).fit(X, y, weight)
    model = sketched(sketch_size=40, **options).fit(X, y, weight)
    assert not model.fitted_.factor.complete
    assert model.solver_ == "pcg"
    same = ExactKernelRidge(alpha=model.alpha_, **options).fit(X, y, weight)
    off = model.predict(X) - same.predict(X)
    assert np.sqrt((off**2).mean()) <= 0.01 * np.sqrt(exact.loo_error_)
    assert same.loo_error_ <= 1.02 * exact.loo_error_
    low, high = model.predict_interval(X_NEW)
    assert 0.85 <= np.mean((low <= Y_NEW) & (high >= Y_NEW)) <= 0.99  # 40 seeds: 0.932 ± 0.025


def test_the_sketched_mean_is_taken_where_the_exact_one_takes_too_long(iterated, monkeypatch):
    monkeypatch.setattr(solution, "_SECONDS", 0.0)
    with pytest.warns(UserWarning, match="exact mean was given up.*solver='pcg'"):
        model = sketched(kernel="matern32", sketch_size=40).fit(X, y)
    assert model.solver_ == "sketch"
    assert np.isfinite(model.predict(X_NEW)).all()


def test_many_rows_without_a_gpu_take_the_sketched_mean(monkeypatch):
    monkeypatch.setattr(selection, "_COMPLETE", 100)
    monkeypatch.setattr(solution, "_EXACT_MEAN", 120)
    assert sketched(sketch_size=40).fit(X, y).solver_ == "sketch"


# Learned kernels


@pytest.mark.parametrize("bandwidth", ["ard", "full", "auto"])
@pytest.mark.parametrize("cls", [ExactKernelRidge, SketchedKernelRidge])
def test_bandwidths_are_learned_whatever_the_units(cls, bandwidth):
    model = cls("matern32", bandwidth=bandwidth, alpha="loo", fit_intercept=True).fit(X, y)
    error = np.sqrt(np.mean((model.predict(X_NEW) - Y_NEW) ** 2))
    assert error < 0.15  # noise 0.1; 0.35 with the median distance
    assert model.map_.shape[0] == 3
    assert model.feature_relevance_.shape == (3,)
    assert model.feature_relevance_[2] < 0.1  # it says nothing about y
    assert abs(model.feature_relevance_.sum() - 1) < 1e-12
    assert isinstance(model.kernel_, Radial)


def test_a_learned_kernel_fits_again():
    model = sketched(kernel="auto", bandwidth="ard").fit(X, y)
    again = sketched(kernel=model.kernel_, bandwidth=model.map_, alpha=model.alpha_).fit(X, y)
    assert_close(again.predict(X_NEW), model.predict(X_NEW), "pcg")
    assert_close_each(again.map_, model.map_)


def test_partial_fit_keeps_what_was_learned():
    model = sketched(kernel="auto", bandwidth="ard").fit(X[:100], y[:100])
    before = model.map_
    model.partial_fit(X[100:], y[100:])
    np.testing.assert_array_equal(model.map_, before)
    same = sketched(kernel=model.kernel_, bandwidth=before, alpha=model.alpha_).fit(X, y)
    assert_close(model.predict(X_NEW), same.predict(X_NEW), "pcg")


def test_the_same_data_and_seed_give_the_same_map_in_any_order():
    one = sketched(kernel="auto", bandwidth="auto").fit(X, y)
    order = np.random.default_rng(1).permutation(len(X))
    other = sketched(kernel="auto", bandwidth="auto").fit(X[order], y[order])
    np.testing.assert_allclose(other.map_, one.map_, rtol=1e-6, atol=1e-9)
    assert other.kernel_.name == one.kernel_.name


def test_kernels_of_a_given_bandwidth_are_compared_by_leave_one_out():
    model = sketched(kernel="auto").fit(X, y)
    assert model.kernel_.name in ("Matern32", "Matern52", "Gaussian")
    assert model.learning_curve_ == ()
    errors = {
        name: sketched(kernel=name).fit(X, y).loo_error_
        for name in ("matern32", "matern52", "gaussian")
    }
    assert errors[model.kernel_.name.lower()] <= 1.02 * min(errors.values())


def test_what_has_no_slope_is_not_learned():
    with pytest.raises(ValueError, match="learned by the slope of a radial kernel's profile"):
        sketched(kernel="linear", bandwidth="ard").fit(X, y)
    with pytest.raises(ValueError, match="bandwidth='full' is a map of the features"):
        sketched(kernel="laplacian", bandwidth="full").fit(X, y)
    for kernel in ("laplacian", Linear(), Laplacian(1.0)):
        assert np.isfinite(sketched(kernel=kernel, bandwidth="auto").fit(X, y).predict(X_NEW)).all()
    given = sketched(kernel=Matern32(5.0), bandwidth="auto").fit(X, y)
    assert given.bandwidth_ == 5.0


# Intervals


@pytest.fixture(scope="module")
def model():
    return sketched(kernel="auto", bandwidth="ard").fit(X, y)


def test_intervals_hold(model):
    """400 new points: a standard error of 1.1%, and of 2% over training sets."""
    low, high = model.predict_interval(X_NEW)
    assert 0.88 <= np.mean((low <= Y_NEW) & (high >= Y_NEW)) <= 1
    low, high = model.predict_interval(X_NEW, 0.8)
    assert 0.7 <= np.mean((low <= Y_NEW) & (high >= Y_NEW)) <= 0.9
    low, high = model.predict_interval(X_NEW, method="gaussian")
    assert 0.88 <= np.mean((low <= Y_NEW) & (high >= Y_NEW)) <= 1


def test_an_interval_of_one_side_is_open_on_the_other(model):
    low, high = model.predict_interval(X_NEW, 0.9, side="lower")
    assert np.isposinf(high).all()
    assert 0.8 <= np.mean(low <= Y_NEW) <= 1
    low, high = model.predict_interval(X_NEW, 0.9, side="upper")
    assert np.isneginf(low).all()
    assert 0.8 <= np.mean(high >= Y_NEW) <= 1


def test_precise_observations_have_narrower_intervals(model):
    widths = []
    for weight in (0.1, 1.0, 10.0):
        low, high = model.predict_interval(X_NEW, sample_weight=np.full(400, weight))
        widths.append(np.median(high - low))
    low, high = model.predict_interval(X_NEW, include_noise=False)
    assert widths[0] > widths[1] > widths[2] > np.median(high - low) > 0


def test_the_predictive_variance_is_that_of_the_parts(model):
    gp = model.variance(X_NEW, "gp")
    whole = model.predictive_variance(X_NEW)
    assert_close_each(whole, model.amplitude_ * (model.alpha_ + gp), "pcg")
    function = model.predictive_variance(X_NEW, include_noise=False)
    assert_close_each(function, model.amplitude_ * gp, "pcg")
    assert_close_each(model.noise_at(X_NEW), np.full(400, model.noise_variance_))
    assert_close_each([model.noise_variance_], [model.amplitude_ * model.alpha_])


def test_far_from_the_data_the_interval_is_as_wide_as_y_is_spread(model):
    far = model.predict_interval(np.full((1, 3), 1e4))
    half = (far[1][0] - far[0][0]) / 2
    assert np.std(y) <= half <= 20 * np.std(y) * (1 + 1e-12)
    assert abs(model.predict(np.full((1, 3), 1e4))[0]) < 3 * np.std(y) + abs(y.mean())


def test_a_level_that_few_rows_cannot_give_is_said():
    few = sketched(kernel="matern32").fit(X[:15], y[:15])
    with pytest.warns(UserWarning, match=r"at most 93.75%, not 99%"):
        low, high = few.predict_interval(X_NEW, 0.99)
    assert np.isfinite(low).all()
    assert np.isfinite(high).all()


def test_a_given_noise_variance_is_kept():
    model = sketched(noise_variance=4.0).fit(X, y)
    assert model.noise_variance_ == 4.0
    assert_close_each([model.amplitude_ * model.alpha_], [4.0])
    assert (model.predictive_variance(X_NEW) >= 4.0).all()


def test_several_targets_have_their_own_intervals():
    Y = np.column_stack([y, 1e3 * y[::-1]])
    model = sketched(kernel="matern32", bandwidth="ard").fit(X, Y)
    low, high = model.predict_interval(X_NEW)
    assert low.shape == high.shape == (400, 2)
    assert model.amplitude_.shape == (2,)
    assert model.interval_quantiles_.shape[1] == 3


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"confidence_level": 1.0}, "strictly between 0 and 1"),
        ({"method": "normal"}, "give 'loo' or 'gaussian'"),
        ({"side": "left"}, "give 'both', 'lower' or 'upper'"),
        ({"sample_weight": [1.0]}, "sample_weight"),
    ],
)
def test_what_is_no_interval_is_refused(model, options, text):
    with pytest.raises(ValueError, match=text):
        model.predict_interval(X_NEW, **options)


# Odd tables


def odd_table(seed):
    draw = np.random.default_rng(seed)
    n, d = int(draw.integers(3, 60)), int(draw.integers(1, 12))
    A = draw.standard_t(2, (n, d)) * 10.0 ** draw.integers(-6, 7, d)
    A[:, draw.random(d) < 0.2] = 1.5  # constants
    if draw.random() < 0.3:
        A = A[draw.integers(0, n, n)]  # duplicates
    if draw.random() < 0.3:
        A[:, -1] = A[:, 0]
    b = draw.standard_t(2, n) + A[:, 0] / (1e-300 + np.abs(A[:, 0]).max())
    return A, np.round(b) if draw.random() < 0.2 else b


@pytest.mark.parametrize("seed", range(30))
def test_odd_tables_are_learned_without_nan(seed):
    A, b = odd_table(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = sketched(kernel="auto", bandwidth="auto").fit(A, b)
        low, high = model.predict_interval(A)
        assert np.isfinite(model.predict(A)).all()
        assert np.isfinite(low).all()
        assert np.isfinite(high).all()
        assert (low <= high).all()
        assert model.noise_variance_ >= 0


@pytest.mark.parametrize("m", [30, 80])
def test_the_leave_one_out_error_of_the_exact_mean_is_that_of_the_exact_model(m):
    """Whatever the sketch: from 200 rows left out exactly, within 15% in 8 other cases; 35% off
    without them."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (700, 3))
    y = np.sin(4 * X[:, 0]) * X[:, 1] + 0.05 * rng.standard_normal(700)
    given = {"kernel": "matern32", "bandwidth": 0.8, "alpha": 0.02, "fit_intercept": True}
    exact = ExactKernelRidge(**given).fit(X, y)
    found = SketchedKernelRidge(**given, solver="pcg", sketch_size=m, random_state=0).fit(X, y)
    assert found.loo_error_ == pytest.approx(exact.loo_error_, rel=0.25)


def test_a_standard_deviation_far_from_v1_is_not_returned_without_a_word():
    X = normal(300, 3)
    model = SketchedKernelRidge(bandwidth=1.0, alpha=1e-3, sketch_size=20, random_state=0)
    model.fit(X, np.sin(X[:, 0]))
    assert model.gap_ > 2
    with pytest.warns(UserWarning, match=r"sketch of 20 rows is small .* off by a factor of"):
        model.predict(X[:5], return_std=True)


def test_the_seed_of_the_sketch_moves_an_exact_mean_by_rounding_only(monkeypatch):
    """Neither the kernel, α nor the mean of more rows than a complete sketch depends on it."""
    monkeypatch.setattr(selection, "_COMPLETE", 100)
    models = [
        sketched(kernel="matern32", bandwidth="ard", random_state=s).fit(X, y) for s in (0, 1)
    ]
    assert not models[0].fitted_.factor.complete
    np.testing.assert_array_equal(models[0].map_, models[1].map_)
    assert models[0].alpha_ == pytest.approx(models[1].alpha_, rel=1e-9)
    assert_close(models[0].predict(X_NEW), models[1].predict(X_NEW), "pcg")


@pytest.mark.parametrize("left", [5, 39])
def test_few_rows_beside_landmarks_do_not_widen_intervals(left):
    """Landmarks, which are counted then, were far surer than they are of their own values: widths
    were twice those of the exact model."""
    X = normal(100, 6)
    y = np.sin(X[:, 0]) + X[:, 1] + 0.05 * normal(100, 1)[:, 0]
    given = {"kernel": "matern32", "bandwidth": 3.0, "alpha": 0.003, "fit_intercept": True}
    exact = ExactKernelRidge(**given).fit(X, y)
    found = sketched(**given, sketch_size=100 - left).fit(X, y)
    assert found.solver_ == "cholesky"
    widths = [np.median(np.subtract(*m.predict_interval(X + 0.1)[::-1])) for m in (found, exact)]
    assert widths[0] == pytest.approx(widths[1], rel=0.2)
