"""Which sketch an estimator uses, how large it grows, and what it says about it."""

import warnings

import numpy as np
import pytest
from helpers import assert_close, matrix_of
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import (
    SEED,
    X_TEST,
    H,
    M,
    N,
    X,
    assert_same_answers,
    auto_and_names,
    fixed,
    full,
    intercepts,
    names,
    points,
    sketched,
    values,
    y,
)

from sketchridge import SketchedKernelRidge, tuning
from sketchridge.backends import NumpyTiles
from sketchridge.sketches import SKETCHES


@names
def test_a_named_sketch_has_the_size_asked_for(name):
    model = sketched(sketch=name, sketch_size=M).fit(X, y)
    assert model.sketch_size_ == model.sketch_.size == M
    assert isinstance(model.sketch_, SKETCHES[name])
    assert 0 < len(model.eigenvalues_) <= M


@names
@intercepts
def test_a_fitted_sketch_can_be_used_again(name, fit_intercept):
    options = {"fit_intercept": fit_intercept}
    model = sketched(sketch=name, sketch_size=M, **options).fit(X, y)
    again = sketched(sketch=model.sketch_, random_state=SEED + 1, **options).fit(X, y)
    assert again.sketch_size_ == M
    assert_same_answers(again, model)
    by_array = sketched(sketch=matrix_of(model.sketch_, N), **options).fit(X, y)
    assert_same_answers(by_array, model)


@pytest.mark.parametrize("m", [1, 7, N, 2 * N + 3])
def test_an_array_may_have_any_number_of_rows(m):
    S = np.random.default_rng(SEED).standard_normal((m, N))
    model = sketched(sketch=S).fit(X, y)
    assert model.sketch_size_ == m
    if m >= N:
        assert_close(model.variance(X_TEST), fixed().fit(X, y).variance(X_TEST))


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=25, deadline=None)
def test_only_the_row_space_of_a_sketch_matters(seed):
    """S → QS changes nothing, with Q of condition number up to 1e3."""
    rng = np.random.default_rng(seed)
    S = rng.standard_normal((M, N))
    left, right = (np.linalg.qr(rng.standard_normal((M, M)))[0] for _ in range(2))
    Q = left * np.geomspace(1, 1e3, M) @ right
    mixed = sketched(sketch=Q @ S).fit(X, y)
    assert_same_answers(mixed, sketched(sketch=S).fit(X, y), condition=1e3)


@names
def test_a_sketch_larger_than_the_data_is_capped(name):
    text = r"sketch_size=200 is more than the 80 distinct training rows; it is capped at 80"
    with pytest.warns(UserWarning, match=text):
        model = sketched(sketch=name, sketch_size=200).fit(np.vstack([X, X[:9]]), [*y, *y[:9]])
    assert 0 < model.sketch_size_ <= N
    if name in ("landmarks", "rpcholesky"):
        exact = fixed().fit(np.vstack([X, X[:9]]), [*y, *y[:9]])
        assert_close(model.variance(X_TEST), exact.variance(X_TEST))
    else:
        assert model.sketch_size_ == N


@pytest.mark.parametrize("alpha", ["gcv", "loo"])
def test_a_sketch_too_small_for_the_chosen_alpha_warns(alpha):
    text = r"too small for a sketch of 4 rows.*Give a larger sketch_size or sketch_size='auto'"
    with pytest.warns(UserWarning, match=text):
        sketched(sketch_size=4, alpha=alpha).fit(X, np.sin(2 * X[:, 0]) + X[:, 1])


@pytest.mark.parametrize("name", ["rpcholesky", "landmarks", "gaussian"])
@pytest.mark.parametrize("alpha", ["gcv", "loo"])
@pytest.mark.parametrize("h", [0.01, 0.05, 0.15, H])
def test_a_full_sketch_is_never_too_small(name, alpha, h):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        full(sketch=name, bandwidth=h, alpha=alpha).fit(X, y)


def test_a_sketch_too_small_for_a_given_alpha_is_the_users_choice():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sketched(sketch_size=4, alpha=1e-6).fit(X, y)


@auto_and_names
def test_automatic_growth_that_ends_at_the_cap_warns_with_a_remedy(name, monkeypatch):
    monkeypatch.setattr(tuning, "_FIRST", 4)
    monkeypatch.setattr(
        NumpyTiles, "largest_sketch", lambda self, n: 16
    )  # a cap that a small problem reaches
    text = r"largest automatic size, 16, with a gap.*Give a larger sketch_size"
    with pytest.warns(UserWarning, match=text):
        model = sketched(sketch=name, alpha=1e-3, bandwidth=0.1).fit(X, y)
    assert model.sketch_size_ == 16
    assert model.gap_ > 1.1


def test_a_gap_just_above_the_tolerance_does_not_read_like_it(monkeypatch):
    """ "A gap of 1.1 instead of 1.1" says nothing: the numbers are shown so that they differ."""
    monkeypatch.setattr(NumpyTiles, "largest_sketch", lambda self, n: 16)
    gap = sketched(sketch_size=16, alpha=1e-3, bandwidth=0.1).fit(X, y).gap_
    for tolerance in (tuning.predicted_error(0.98 * gap), tuning.predicted_error(0.9 * gap)):
        with pytest.warns(UserWarning, match="with a gap") as caught:
            sketched(alpha=1e-3, bandwidth=0.1, sketch_tol=tolerance).fit(X, y)
        text = str(caught[0].message)
        reached = text.partition("V2/V3 of ")[2].partition(",")[0]
        asked = text.partition("above the ")[2].partition(" ")[0]
        assert float(reached) > float(asked)


def test_dependent_rows_of_a_sketch_do_not_make_it_complete():
    """A sketch with the same row twice is of less than its size in rank, and yet far from the whole
    kernel matrix."""
    S = np.random.default_rng(SEED).standard_normal((4, N))
    with pytest.warns(UserWarning, match="too small for a sketch of 8 rows"):
        sketched(sketch=np.vstack([S, S]), alpha="gcv").fit(X, np.sin(2 * X[:, 0]) + X[:, 1])


@auto_and_names
@pytest.mark.parametrize("sketch_tol", [0.3, 0.02])
def test_automatic_growth_stops_at_the_tolerance(name, sketch_tol):
    A = points(400, d=3)
    model = SketchedKernelRidge(sketch=name, sketch_tol=sketch_tol, random_state=SEED)
    model.fit(A, values(A)[:, 0])
    assert model.gap_ <= tuning.largest_gap(sketch_tol)
    assert model.sketch_error_ <= sketch_tol
    assert model.sketch_size_ % 32 == 0 or model.sketch_size_ == 400


def test_a_smaller_tolerance_never_gives_a_smaller_sketch():
    A = points(600, d=3)
    b = values(A)[:, 0]
    options = {"alpha": 0.6, "bandwidth": H, "random_state": SEED}
    models = [SketchedKernelRidge(sketch_tol=t, **options).fit(A, b) for t in (1, 0.1, 0.001)]
    sizes = [model.sketch_size_ for model in models]
    assert sizes == sorted(sizes)
    assert sizes[0] < sizes[-1]


@names
@intercepts
def test_gap_is_the_quantile_of_v2_over_v3_on_the_training_rows(name, fit_intercept):
    """With up to 256 rows the probe is all of them."""
    model = sketched(sketch=name, sketch_size=M, fit_intercept=fit_intercept).fit(X, y)
    ratio = model.variance(X, "v2") / model.variance(X, "v3")
    assert_close(model.gap_, np.quantile(ratio, 0.95, method="higher"))


@auto_and_names
def test_the_gap_of_a_grown_sketch_is_that_of_its_variances(name):
    """While the sketch grows, sums are kept from size to size; the gap is still V2 over V3."""
    A = points(200, d=3)
    model = sketched(sketch=name, alpha=0.2, bandwidth=0.5).fit(A, values(A)[:, 0])
    ratio = model.variance(A, "v2") / model.variance(A, "v3")
    np.testing.assert_allclose(model.gap_, np.quantile(ratio, 0.95, method="higher"), rtol=0.01)


@auto_and_names
def test_a_seed_reproduces_the_fit(name):
    states = (7, 7, np.random.RandomState(7), 8)
    models = [sketched(sketch=name, sketch_size=M, random_state=s).fit(X, y) for s in states]
    one, again, generator, different = models
    S = matrix_of(one.sketch_, N)
    answers = one.predict(X_TEST, return_std=True)
    for other in (again, generator, again.fit(X, y)):
        np.testing.assert_array_equal(matrix_of(other.sketch_, N), S)
        np.testing.assert_array_equal(other.predict(X_TEST, return_std=True), answers)
        assert other.gap_ == one.gap_
    assert not np.array_equal(matrix_of(different.sketch_, N), S)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sizes_of_an_array_s_rows_change_nothing(dtype):
    """Rows of 1e±160 gave other variances, and rows of 1e±300 none."""
    S = np.random.default_rng(0).standard_normal((4, N))
    sizes = 10.0 ** np.array([-300.0, -160, 160, 300])[:, None]
    plain, other = (
        sketched(kernel="matern32", sketch=A, solver="sketch", dtype=dtype).fit(X, y)
        for A in (S, sizes * S)
    )
    for kind in ("v2", "v3", "gp"):
        expected = plain.variance(X_TEST, kind)
        assert_close(other.variance(X_TEST, kind), expected, dtype, condition=10)
