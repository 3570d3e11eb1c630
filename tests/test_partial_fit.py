"""Appending rows equals fitting them all."""

import numpy as np
import pytest
from helpers import assert_close, matrix_of, normal, targets
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import (
    ALPHA,
    SKETCH_NAMES,
    H,
    M,
    N,
    X,
    Y,
    assert_same_answers,
    auto_and_names,
    fixed,
    intercepts,
    makers,
    names,
    points,
    sketched,
    values,
    y,
)

from sketchridge import ExactKernelRidge, SketchedKernelRidge
from sketchridge.sketches import LandmarkSketch

ATTRIBUTES = (
    "lambda_",
    "noise_variance_",
    "effective_dof_",
    "loo_error_",
    "gap_",
    "eigenvalues_",
    "s_lambda_",
)
NOISE = np.random.default_rng(6).standard_normal((N, 3))
ENTRY_NAMES = [name for name in SKETCH_NAMES if name not in ("landmarks", "rpcholesky")]


def split_fit(model, A, b, cuts):
    """Fit on the first rows, append the others."""
    model.fit(A[: cuts[0]], b[: cuts[0]])
    for start, stop in zip(cuts, [*cuts[1:], len(A)], strict=True):
        if start < stop:
            assert model.partial_fit(A[start:stop], b[start:stop]) is model
    return model


@names
@given(data=st.data())
@settings(max_examples=12, deadline=None)
def test_appending_rows_equals_fitting_them_all(name, data):
    """Any split, one target or three, with and without intercept, under the sketch as it ended."""
    cuts = sorted(data.draw(st.lists(st.integers(M, N), min_size=1, max_size=4)))
    b = data.draw(st.sampled_from([y, Y]))
    options = {
        "fit_intercept": data.draw(st.booleans()),
        "bandwidth": data.draw(st.sampled_from([H, [0.5, 0.9]])),
    }
    model = split_fit(sketched(sketch=name, sketch_size=M, **options), X, b, cuts)
    whole = sketched(sketch=model.sketch_, **options).fit(X, b)
    assert_same_answers(model, whole)
    assert_close(model.alpha_, ALPHA)
    for attribute in ATTRIBUTES:
        assert_close(getattr(model, attribute), getattr(whole, attribute))
    assert_close(model.certificate_.norm, whole.certificate_.norm, scale=1.0)


@given(data=st.data())
@settings(max_examples=12, deadline=None)
def test_appending_to_an_exact_fit_equals_fitting_all_rows(data):
    cuts = sorted(data.draw(st.lists(st.integers(2, N), min_size=1, max_size=4)))
    options = {
        "fit_intercept": data.draw(st.booleans()),
        "alpha": data.draw(st.sampled_from([ALPHA, "gcv", "loo"])),
    }
    noisy = Y + NOISE  # so that no penalty is chosen that magnifies rounding
    model = split_fit(fixed(**options), X, noisy, cuts)
    whole = fixed(**options).fit(X, noisy)
    assert_same_answers(model, whole)
    for attribute in ("lambda_", "noise_variance_", "effective_dof_", "loo_error_"):
        assert_close(getattr(model, attribute), getattr(whole, attribute))


@pytest.mark.parametrize("name", ENTRY_NAMES)
def test_appending_rows_equals_a_fit_with_the_same_seed(name):
    """Entries of these sketches are functions of (seed, i, j): they are the same whoever asks, and
    when."""
    model = split_fit(sketched(sketch=name, sketch_size=M), X, y, [20, 33, 34])
    assert_same_answers(model, sketched(sketch=name, sketch_size=M).fit(X, y))


def test_appending_to_an_array_sketch_adds_zero_columns():
    S = np.random.default_rng(0).standard_normal((M, 50))
    model = split_fit(sketched(sketch=S), X, y, [50])
    whole = sketched(sketch=np.hstack([S, np.zeros((M, N - 50))])).fit(X, y)
    assert_same_answers(model, whole)


@pytest.mark.filterwarnings("ignore:.*too small for a sketch")
@pytest.mark.parametrize("alpha", ["gcv", "loo"])
@intercepts
def test_a_penalty_left_to_the_data_is_chosen_anew(alpha, fit_intercept):
    options = {"alpha": alpha, "fit_intercept": fit_intercept}
    model = split_fit(sketched(sketch_size=40, **options), X, y, [60])
    whole = sketched(sketch=model.sketch_, **options).fit(X, y)
    assert_close(model.lambda_, whole.lambda_)
    assert_same_answers(model, whole)


@pytest.mark.filterwarnings("ignore:The sketch reached its largest automatic size")
@auto_and_names
def test_an_automatic_sketch_may_grow_but_keeps_its_rows(name):
    A = points(300)
    b = values(A)[:, 0]
    options = {"alpha": 2.0, "bandwidth": 0.2}
    model = sketched(sketch=name, **options).fit(A[:60], b[:60])
    first = matrix_of(model.sketch_, 60)
    model.partial_fit(A[60:], b[60:])
    S = matrix_of(model.sketch_, 300)
    assert model.sketch_size_ > len(first)
    np.testing.assert_array_equal(S[: len(first), :60], first)
    if name not in ENTRY_NAMES:
        assert not S[: len(first), 60:].any()
    whole = sketched(sketch=model.sketch_, **options).fit(A, b)
    condition = np.linalg.cond(S) if name == "fourier" else 1.0  # near frequencies, near rows
    assert_same_answers(model, whole, condition=condition)


@makers
@pytest.mark.parametrize("bandwidth", ["median", "gcv"])
def test_the_bandwidth_is_kept(make, bandwidth):
    model = make(bandwidth=bandwidth).fit(X[:40], y[:40])
    chosen = model.bandwidth_
    model.partial_fit(3 * X[40:], y[40:])
    assert model.bandwidth_ == chosen


@makers
def test_partial_fit_may_come_first(make):
    assert_same_answers(make().partial_fit(X, y), make().fit(X, y))


@makers
def test_a_single_row_can_be_appended(make):
    size = {"sketch_size": M} if make is sketched else {}
    model = split_fit(make(**size), X, y, list(range(N - 3, N)))
    sketch = {"sketch": model.sketch_} if make is sketched else {}
    assert_same_answers(model, make(**sketch).fit(X, y))


def test_rows_that_are_there_already_can_be_appended():
    """They change weights and means only; the landmarks stay."""
    rng = np.random.default_rng(7)
    more = rng.choice(N, 30)
    b = rng.standard_normal(30)
    for options in ({}, {"fit_intercept": True}, {"alpha": "gcv", "sketch_size": 60}):
        model = sketched(**options).fit(X, y).partial_fit(X[more], b)
        given = {"sketch": model.sketch_} | ({"alpha": "gcv"} if "alpha" in options else {})
        given |= {"fit_intercept": options.get("fit_intercept", False)}
        whole = sketched(**given).fit(np.vstack([X, X[more]]), np.append(y, b))
        assert_same_answers(model, whole)
        for attribute in ATTRIBUTES:
            assert_close(getattr(model, attribute), getattr(whole, attribute))


@makers
def test_a_buffer_that_is_used_again_is_not_a_view(make):
    """A reused buffer must not change the rows that were given before."""
    buffer = np.empty((40, 2))
    model = make()
    for first in (0, 40):
        buffer[:] = X[first : first + 40]
        model.partial_fit(buffer, y[first : first + 40])
    whole = split_fit(make(), X, y, [40])
    np.testing.assert_array_equal(model.predict(X), whole.predict(X))


def automatic(**parameters):
    return SketchedKernelRidge(random_state=0, **parameters)


automatics = pytest.mark.parametrize("make", [automatic, ExactKernelRidge])
MANY = points(200)
NOISY = values(MANY)[:, 0] + np.random.default_rng(5).standard_normal(200)


@pytest.mark.usefixtures("defaults")
@automatics
@pytest.mark.parametrize("first", [2, 12, 40])
def test_what_few_rows_taught_of_the_penalty_is_forgotten(make, first):
    """The kernel they taught is kept; α is that of a fit to all rows with this kernel."""
    model = split_fit(make(), MANY, NOISY, [first, 120])
    sketch = {} if make is ExactKernelRidge else {"sketch": model.sketch_}
    whole = make(kernel=model.kernel_, **sketch).fit(MANY, NOISY)
    assert_close(model.alpha_, whole.alpha_)
    assert_close(model.predict(MANY), whole.predict(MANY), condition=10)


@pytest.mark.usefixtures("defaults")
@automatics
def test_rows_that_taught_nothing_narrow_intervals(make):
    """Scores of 30 rows are too small because they taught the kernel; those of 170 are not."""
    model = make().fit(MANY[:30], NOISY[:30])
    factor = model.fitted_.factor_of_widths
    assert factor > 1.05
    model.partial_fit(MANY[30:150], NOISY[30:150]).partial_fit(MANY[150:], NOISY[150:])
    whole = make(kernel=model.kernel_).fit(MANY, NOISY)
    wider = (0.15 / factor**2 + 0.85) ** -0.5
    half = model.predict_interval(MANY)[1] - model.predict(MANY)
    expected = wider * (whole.predict_interval(MANY)[1] - whole.predict(MANY))
    assert_close(half, expected, condition=10)


def test_sums_become_finer_as_lambda_falls():
    """A dense sketch whose sums were in single precision, which λ = α/n allowed, is applied again
    in full once rows have made λ too small for that."""
    X, y = normal(3000, 2), targets(3000)[:, 0]
    options = {"bandwidth": 1.0, "alpha": 0.2, "sketch": "gaussian", "sketch_size": 20}
    options |= {"noise_variance": 1.0, "sketch_tol": 0.1, "random_state": 0}
    model = SketchedKernelRidge("gaussian", **options).fit(X[:100], y[:100])
    assert model.fitted_.factor.precision == "float32"
    model.partial_fit(X[100:], y[100:])
    assert model.fitted_.factor.precision == "float64"
    again = SketchedKernelRidge("gaussian", **options | {"sketch": model.sketch_}).fit(X, y)
    assert_close(model.variance(X[:50]), again.variance(X[:50]))


@pytest.mark.parametrize("fewer", [1, 20])
def test_landmarks_that_explain_all_count_as_rows_like_the_others(fewer):
    """A complete sketch that is given again may end a rounding above nothing. Its landmarks, 20% of
    the rows that noise and intervals are made of, were left out then."""
    A, b = points(300), values(points(300))[:, 0] + np.random.default_rng(5).standard_normal(300)
    found = SketchedKernelRidge("gaussian", bandwidth=H, random_state=0).fit(A, b)
    rows = found.sketch_.indices[: found.sketch_size_ - fewer]
    assert 40 < len(rows) < 100
    again = SketchedKernelRidge(found.kernel_, sketch=LandmarkSketch(indices=rows)).fit(A, b)
    assert_close(again.noise_variance_, found.noise_variance_, "percent")
    for one, other in zip(again.predict_interval(A), found.predict_interval(A), strict=True):
        assert_close(one, other, "percent")


@intercepts
@pytest.mark.parametrize("alpha", [0.3, "loo"])
def test_intervals_do_not_follow_the_last_digit_of_a_sketch_that_is_complete(alpha, fit_intercept):
    """Of a kernel of rank 20 rounding says whether 20 landmarks leave nothing or nearly nothing."""
    rng = np.random.default_rng(3)
    A = rng.uniform(-1, 1, (125, 3))
    b = np.sin(3 * A[:, 0]) + A[:, 1] ** 2 + 0.1 * rng.standard_normal(125)
    w = rng.integers(1, 4, 125).astype(float)
    options = {"alpha": alpha, "fit_intercept": fit_intercept, "random_state": 0}
    model = SketchedKernelRidge("polynomial", **options)
    for rows in (slice(60), slice(60, None)):
        model.partial_fit(A[rows], b[rows], w[rows])
    whole = SketchedKernelRidge("polynomial", sketch=model.sketch_, **options).fit(A, b, w)
    for name in ("amplitude_", "noise_variance_", "loo_error_"):
        assert_close(getattr(whole, name), getattr(model, name), condition=1e3)
    assert_close(whole.predict_interval(A), model.predict_interval(A), condition=1e3)
