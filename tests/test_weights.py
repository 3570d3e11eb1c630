"""Sample weights: precisions of rows, of which 2 is the row given twice and 0 its absence."""

import warnings
from itertools import pairwise

import numpy as np
import pytest
from helpers import assert_close, weights_of_y
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import (
    ALPHA,
    X_TEST,
    H,
    M,
    X,
    Y,
    assert_same_answers,
    auto_and_names,
    fixed,
    full,
    full_makers,
    intercepts,
    kernel_matrix,
    makers,
    names,
    sketched,
    y,
)
from scipy.spatial.distance import pdist
from scipy.stats import chi2
from sklearn.kernel_ridge import KernelRidge

from sketchridge import SketchedKernelRidge, exact
from sketchridge.kernels import Polynomial

SEED = 0
N = 40  # distinct rows
ROWS = X[:N]
penalties = pytest.mark.parametrize("alpha", [ALPHA, "gcv", "loo"])
rng = np.random.default_rng(11)
WEIGHTS = rng.integers(1, 4, N).astype(float)
NOISY = Y[:N] + rng.standard_normal((N, 3))  # so that no tiny penalty magnifies rounding


def repeated(A, b, w, order=None):
    """Each row as often as its weight says, those that come again after all first ones.

    ``order`` shuffles them; then the first of each are in another order, too.
    """
    again = np.repeat(np.arange(len(A)), w.astype(int) - 1)
    rows = np.concatenate([np.arange(len(A)), np.random.default_rng(3).permutation(again)])
    if order is not None:
        rows = rows[np.random.default_rng(order).permutation(len(rows))]
    return A[rows], b[rows]


def assert_same_fit(one, other, at=X_TEST):
    """Everything that a fit says agrees to rounding."""
    assert_same_answers(one, other, at)
    for name in ("lambda_", "noise_variance_", "effective_dof_", "loo_error_", "eigenvalues_"):
        assert_close(getattr(one, name), getattr(other, name))
    assert one.s_lambda_ == other.s_lambda_
    assert one.bandwidth_ == pytest.approx(other.bandwidth_, rel=1e-12)
    for name in ("lam", "df", "gcv", "loo"):  # below 1e-5·E₁ rounding in y is magnified
        assert_close(getattr(one.path_, name)[46:], getattr(other.path_, name)[46:])
    assert_close(one.predict_interval(at), other.predict_interval(at))
    if isinstance(one, SketchedKernelRidge):
        assert one.sketch_size_ == other.sketch_size_
        assert_close(one.gap_, other.gap_)
        assert_close(one.certificate_.relative, other.certificate_.relative, scale=1.0)
        assert_close(one.certificate("norm").norm, other.certificate("norm").norm, scale=1.0)


# weight 2 is a row given twice


@makers
@intercepts
@penalties
@pytest.mark.parametrize("targets", [NOISY[:, 0], NOISY], ids=["one target", "three targets"])
def test_a_weight_is_a_number_of_times(make, fit_intercept, alpha, targets):
    options = {"fit_intercept": fit_intercept, "alpha": alpha}
    weighted = make(**options).fit(ROWS, targets, sample_weight=WEIGHTS)
    assert_same_fit(make(**options).fit(*repeated(ROWS, targets, WEIGHTS)), weighted)


@auto_and_names
@intercepts
@pytest.mark.parametrize("alpha", [ALPHA, "gcv"])
@pytest.mark.filterwarnings("ignore:.*too small for a sketch")
def test_a_weight_is_a_number_of_times_under_every_sketch(name, fit_intercept, alpha):
    options = {"fit_intercept": fit_intercept, "alpha": alpha, "sketch": name, "sketch_size": M}
    weighted = sketched(**options).fit(ROWS, NOISY, sample_weight=WEIGHTS)
    assert_same_fit(sketched(**options).fit(*repeated(ROWS, NOISY, WEIGHTS)), weighted)


@auto_and_names
def test_a_weight_is_a_number_of_times_while_a_sketch_grows(name):
    A, b = (np.concatenate([part, part + 0.01]) for part in (X, y))
    w = np.random.default_rng(5).integers(1, 4, len(A)).astype(float)
    options = {"sketch": name, "bandwidth": 0.3, "alpha": 1.0}
    weighted = sketched(**options).fit(A, b, sample_weight=w)
    assert weighted.sketch_size_ >= 64
    assert_same_fit(sketched(**options).fit(*repeated(A, b, w)), weighted)


@pytest.mark.parametrize("solver", ["sketch", "pcg"])
@intercepts
def test_refined_variances_and_exact_means_follow_weights(solver, fit_intercept):
    options = {"fit_intercept": fit_intercept, "solver": solver, "sketch_size": M}
    weighted = sketched(**options).fit(ROWS, NOISY, sample_weight=WEIGHTS)
    twice = sketched(**options).fit(*repeated(ROWS, NOISY, WEIGHTS))
    exact = fixed(fit_intercept=fit_intercept).fit(ROWS, NOISY, sample_weight=WEIGHTS)
    kind = "pcg" if solver == "pcg" else "float64"
    assert_close(twice.predict(X_TEST), weighted.predict(X_TEST), kind)
    if solver == "pcg":
        assert_close(weighted.predict(X_TEST), exact.predict(X_TEST), "pcg")
    for refine in (0, 1, 5):
        ours = weighted.variance(X_TEST, refine=refine, return_bound=True)
        assert_close(twice.variance(X_TEST, refine=refine, return_bound=True), ours)
        std1 = np.sqrt(exact.variance(X_TEST) / exact.noise_variance_)
        std = np.sqrt(ours[0] / weighted.noise_variance_)
        bound = ours[1] / np.sqrt(weighted.noise_variance_)
        assert (np.abs(std - std1) <= bound).all()
    v1 = weighted.variance(X_TEST, "v1", tol=1e-6) / weighted.noise_variance_
    expected = exact.variance(X_TEST) / exact.noise_variance_
    np.testing.assert_allclose(v1, expected, rtol=1e-6)


@full_makers
@intercepts
@penalties
@pytest.mark.parametrize("order", range(3))
def test_rows_may_come_in_any_order(make, fit_intercept, alpha, order):
    """The sketch is complete, so that it does not matter which rows it begins with."""
    options = {"fit_intercept": fit_intercept, "alpha": alpha, "bandwidth": 0.2}
    options |= {"sketch_size": N} if make is full else {}
    weighted = make(**options).fit(ROWS, NOISY, sample_weight=WEIGHTS)
    shuffled = make(**options).fit(*repeated(ROWS, NOISY, WEIGHTS, order))
    assert_same_answers(shuffled, weighted)
    for name in ("lambda_", "noise_variance_", "effective_dof_", "loo_error_"):
        assert_close(getattr(shuffled, name), getattr(weighted, name))


@makers
@intercepts
@penalties
def test_genuine_replicates_count_by_their_weights(make, fit_intercept, alpha):
    """Rows measured several times with different y, some of the measurements of weight 2 or 3."""
    A = np.concatenate([ROWS, ROWS[:15], ROWS[:7]])
    b = np.random.default_rng(8).standard_normal((len(A), 2)) + A.sum(axis=1)[:, None]
    w = np.random.default_rng(9).integers(1, 4, len(A)).astype(float)
    options = {"fit_intercept": fit_intercept, "alpha": alpha}
    weighted = make(**options).fit(A, b, sample_weight=w)
    assert_same_fit(make(**options).fit(*repeated(A, b, w)), weighted)


@makers
@intercepts
def test_replicates_enter_the_noise_as_pure_error(make, fit_intercept):
    """σ̂² = (RSS of the means + squares within rows)/(n − df + replicates)."""
    A = np.concatenate([ROWS, ROWS[:15], ROWS[:7]])
    b = np.random.default_rng(8).standard_normal(len(A)) + A.sum(axis=1)
    model = make(fit_intercept=fit_intercept).fit(A, b)
    rss = ((b - model.predict(A)) ** 2).sum()  # within and between at once
    assert_close(model.noise_variance_, rss / (len(A) - model.effective_dof_))


REPEATED = np.concatenate([ROWS, ROWS[:30], ROWS[:15]])
MEASURED = np.random.default_rng(8).standard_normal(len(REPEATED)) + REPEATED.sum(axis=1)


@full_makers
def test_gcv_counts_every_measurement(make):
    """It is that of all rows as they are given, not of their means."""
    size = {} if make is fixed else {"sketch_size": N}
    path = make(**size).fit(REPEATED, MEASURED).path_
    K = kernel_matrix(REPEATED, REPEATED) / len(REPEATED)
    for i in range(60, 100, 3):
        assert_close(path.gcv[i], exact.gcv(K, MEASURED, path.lam[i]))


@full_makers
def test_gcv_counts_every_measurement_with_an_intercept(make):
    """The same, with an unpenalized constant in the smoother."""
    size = {} if make is fixed else {"sketch_size": N}
    path = make(fit_intercept=True, **size).fit(REPEATED, MEASURED).path_
    n = len(REPEATED)
    G = kernel_matrix(REPEATED, REPEATED)
    for i in range(60, 100, 3):
        H = weights_of_y(G, G, np.ones(n), path.lam[i], True)
        expected = n * ((MEASURED - H @ MEASURED) ** 2).sum() / (n - np.trace(H)) ** 2
        assert_close(path.gcv[i], expected)


@makers
@intercepts
def test_gcv_does_not_interpolate_means_of_noise(make, fit_intercept):
    """Pure noise measured thrice at 12 rows: what is within rows says how large it is. Over means
    alone GCV spent more than 11 of 12 degrees of freedom in a quarter of such draws."""
    options = {"alpha": "gcv", "fit_intercept": fit_intercept, "bandwidth": 0.1}
    A = np.tile(ROWS[:12], (3, 1))
    noise = np.random.default_rng(3).standard_normal((30, 36))
    spent = [make(**options).fit(A, b).effective_dof_ for b in noise]
    assert max(spent) < 11


@full_makers
def test_the_gcv_bandwidth_counts_every_measurement(make):
    """It minimizes the GCV of all rows as they are given, over multiples of the median."""
    size = {} if make is fixed else {"sketch_size": N}
    for seed in range(5):
        b = np.random.default_rng([9, seed]).standard_normal(len(REPEATED))
        b += np.sin(5 * REPEATED[:, 0])
        found = make(bandwidth="gcv", alpha="gcv", **size).fit(REPEATED, b)
        median = np.median(pdist(ROWS))
        least = []
        for h in median * 2.0 ** np.arange(-3, 3.5, 0.5):
            K = kernel_matrix(REPEATED, REPEATED, h) / len(REPEATED)
            lams = np.geomspace(1e-10, 10, 100) * np.linalg.eigvalsh(K)[-1]
            least.append((min(exact.gcv(K, b, lam) for lam in lams), h))
        assert_close(found.bandwidth_, min(least)[1])


@makers
def test_replicates_that_agree_by_chance_are_told(make):
    """{1, 1, 2} at one x may be three measurements, or one of weight 2 and another."""
    A = np.concatenate([ROWS, ROWS[:1], ROWS[:1]])
    tied = np.append(y[:N], [y[0], y[0] + 1])
    with pytest.warns(UserWarning, match=r"counts as one row of more weight.*give noise_variance"):
        make().fit(A, tied)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make(noise_variance=0.1).fit(A, tied)
        make().fit(A, np.append(y[:N], [y[0], y[0]]))
        make().fit(A, np.append(y[:N], [y[0] + 1, y[0] + 2]))


@makers
def test_replicates_alone_give_an_unbiased_noise(make):
    """Two measurements at each row: each adds a degree of freedom.

    σ̂²·dof/σ² is χ² with about 600 degrees of freedom: beyond its 1e-7 quantiles with probability
    2e-7, and the bias of the smooth is far smaller.
    """
    A = np.random.default_rng(0).uniform(-1, 1, (300, 2))
    signal = np.sin(3 * A[:, 0]) + A[:, 1] ** 2
    noise = 0.3 * np.random.default_rng(1).standard_normal((2, 300))
    model = make().fit(np.vstack([A, A]), (signal + noise).ravel())
    dof = 600 - model.effective_dof_
    low, high = chi2.ppf([1e-7, 1 - 1e-7], dof) / dof
    assert low < model.noise_variance_ / 0.09 < high


UNITS = [2.0, 10.0, 0.25, 0.1, 1e-3]


def assert_unit_of_weights_cancels(make, A, fit_intercept, c):
    """w → cw with α → cα is the same model, whose noise of a row of weight 1 is c times as large;
    V1 is σ² times a squared norm over Σw, in which c cancels."""
    b = np.random.default_rng(8).standard_normal(len(A)) + A.sum(axis=1)
    w = np.random.default_rng(9).integers(1, 4, len(A)).astype(float)
    one = make(fit_intercept=fit_intercept, alpha=ALPHA).fit(A, b, sample_weight=w)
    other = make(fit_intercept=fit_intercept, alpha=c * ALPHA).fit(A, b, sample_weight=c * w)
    assert_close(other.lambda_, one.lambda_)
    assert_close(other.loo_error_, one.loo_error_)
    assert_close(other.noise_variance_, c * one.noise_variance_)
    assert_same_answers(other, one)


@makers
@intercepts
@pytest.mark.parametrize("c", UNITS)
def test_the_unit_of_weights_cancels(make, fit_intercept, c):
    assert_unit_of_weights_cancels(make, ROWS, fit_intercept, c)


@makers
@pytest.mark.parametrize("c", UNITS)
def test_the_unit_of_weights_cancels_where_rows_are_measured_again(make, c):
    assert_unit_of_weights_cancels(make, np.concatenate([ROWS, ROWS[:15]]), False, c)


@full_makers
def test_replicates_of_whole_weights_do_not_bias_the_noise(make):
    """y_i ~ N(0, σ²/w_i) at 40 rows measured twice, with weights 4: over 400 draws the mean of σ̂²
    has a standard deviation of 1%, and is off by 5 of them with probability below 1e-6."""
    A = np.concatenate([ROWS, ROWS])
    w = np.full(len(A), 4.0)
    w[:3] = 1.0  # so that 4 is not the unit
    noise = np.random.default_rng(2).standard_normal((len(A), 400)) / np.sqrt(w)[:, None]
    size = {} if make is fixed else {"sketch_size": N}
    model = make(alpha=200.0, **size).fit(A, noise, sample_weight=w)
    dof = len(A) - model.effective_dof_
    assert abs(model.noise_variance_.mean() - 1) < 5 * np.sqrt(2 / dof / 400)


@makers
@pytest.mark.parametrize("alpha", ["gcv", "loo"])
def test_equal_weights_choose_what_no_weights_choose(make, alpha):
    """λ is the same, the noise of a row of weight 1 is a multiple."""
    options = {"fit_intercept": True, "alpha": alpha, "bandwidth": "median"}
    plain = make(**options).fit(ROWS, NOISY[:, 0])
    for c in (2.0, 0.1, 7.0):
        model = make(**options).fit(ROWS, NOISY[:, 0], sample_weight=np.full(N, c))
        assert_close(model.lambda_, plain.lambda_)
        assert_close(model.alpha_, c * plain.alpha_)
        assert_close(model.noise_variance_, c * plain.noise_variance_)
        assert_same_answers(model, plain)


@pytest.mark.parametrize("m", [4, N])
def test_the_columns_of_an_array_are_added_where_rows_are_merged(m):
    S = np.random.default_rng(2).standard_normal((m, N))
    half = np.concatenate([S / 2, S / 2], axis=1)
    once = np.concatenate([S, np.zeros_like(S)], axis=1)
    weighted = sketched(sketch=S, bandwidth=0.2).fit(ROWS, NOISY, sample_weight=np.full(N, 2.0))
    for spread in (half, once):
        twice = sketched(sketch=spread, bandwidth=0.2)
        twice.fit(np.vstack([ROWS, ROWS]), np.vstack([NOISY, NOISY]))
        assert_same_answers(twice, weighted)


@makers
def test_a_precomputed_kernel_is_merged_and_weighted_too(make):
    A, b = repeated(ROWS, NOISY, WEIGHTS)
    options = {"kernel": "precomputed", "bandwidth": "median"}
    weighted = make(**options).fit(kernel_matrix(ROWS, ROWS), NOISY, sample_weight=WEIGHTS)
    twice = make(**options).fit(kernel_matrix(A, A), b)
    plain = make().fit(ROWS, NOISY, sample_weight=WEIGHTS)
    expected = plain.predict(X_TEST)
    assert_close(weighted.predict(kernel_matrix(X_TEST, ROWS)), expected)
    assert_close(twice.predict(kernel_matrix(X_TEST, A)), expected)
    assert_close(twice.noise_variance_, plain.noise_variance_)
    none = np.zeros(len(A))
    none[:N] = WEIGHTS
    without = make(**options).fit(kernel_matrix(A, A), b, sample_weight=none)
    assert_close(without.predict(kernel_matrix(X_TEST, A)), expected)


# weight 0 is absence


@makers
@intercepts
@penalties
@pytest.mark.parametrize("bandwidth", [H, "median", "gcv"])
def test_a_row_without_weight_is_not_there(make, fit_intercept, alpha, bandwidth):
    """Whatever it holds: an outlier in X and y among them."""
    options = {"fit_intercept": fit_intercept, "alpha": alpha, "bandwidth": bandwidth}
    places = np.sort(np.random.default_rng(4).choice(N + 10, N, replace=False))
    A = np.full((N + 10, 2), 1e6)
    b = np.full((N + 10, 3), -1e6)
    w = np.zeros(N + 10)
    A[places], b[places], w[places] = ROWS, NOISY, WEIGHTS
    found = make(**options).fit(A, b, sample_weight=w)
    assert_same_fit(found, make(**options).fit(ROWS, NOISY, sample_weight=WEIGHTS))


@names
def test_a_row_without_weight_is_no_column_of_a_sketch(name):
    w = np.concatenate([WEIGHTS, np.zeros(5)])
    A = np.vstack([ROWS, X[N : N + 5]])
    b = np.vstack([NOISY, Y[N : N + 5]])
    found = sketched(sketch=name, sketch_size=M).fit(A, b, sample_weight=w)
    expected = sketched(sketch=name, sketch_size=M).fit(ROWS, NOISY, sample_weight=WEIGHTS)
    assert_same_fit(found, expected)


def test_a_sketch_array_has_columns_for_rows_without_weight_too():
    """It has one for each row that is given; those of rows without weight do not matter."""
    S = np.random.default_rng(2).standard_normal((M, N + 5))
    w = np.concatenate([WEIGHTS, np.zeros(5)])
    order = np.random.default_rng(3).permutation(N + 5)
    A = np.vstack([ROWS, X[N : N + 5]])
    b = np.vstack([NOISY, Y[N : N + 5]])
    expected = sketched(sketch=S[:, :N]).fit(ROWS, NOISY, sample_weight=WEIGHTS)
    found = sketched(sketch=S[:, order]).fit(A[order], b[order], sample_weight=w[order])
    assert_same_answers(found, expected)


@makers
def test_a_nearly_weightless_row_is_nearly_absent(make):
    w = np.concatenate([WEIGHTS, np.full(5, 1e-14)])
    A = np.vstack([ROWS, X[N : N + 5]])
    b = np.vstack([NOISY, Y[N : N + 5]])
    size = {} if make is fixed else {"sketch_size": N + 5}
    found = make(noise_variance=1.0, **size).fit(A, b, sample_weight=w)
    size = {} if make is fixed else {"sketch_size": N}
    expected = make(noise_variance=1.0, **size).fit(ROWS, NOISY, sample_weight=WEIGHTS)
    assert_same_answers(found, expected)
    assert_close(found.effective_dof_, expected.effective_dof_)


# against others


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ({"kernel": "gaussian", "bandwidth": H}, {"kernel": "rbf", "gamma": 1 / (2 * H**2)}),
        ({"kernel": "laplacian", "bandwidth": H}, {"kernel": "laplacian", "gamma": 1 / H}),
        ({"kernel": Polynomial(2), "bandwidth": "median"}, {"kernel": "poly", "degree": 2}),
        ({"kernel": "linear", "bandwidth": "median"}, {"kernel": "linear"}),
    ],
    ids=["gaussian", "laplacian", "polynomial", "linear"],
)
@full_makers
@pytest.mark.parametrize("alpha", [1e-2, 1.0, 10.0])
def test_mean_equals_kernel_ridge_with_weights(make, ours, theirs, alpha):
    w = np.random.default_rng(1).uniform(0.1, 5, len(X))
    reference = KernelRidge(alpha=alpha, **theirs).fit(X, Y, sample_weight=w)
    model = make(alpha=alpha, **ours).fit(X, Y, sample_weight=w)
    expected = reference.predict(X_TEST)
    assert_close(model.predict(X_TEST), expected)


@full_makers
@intercepts
def test_leave_one_out_and_the_posterior_are_those_of_the_definition(make, fit_intercept):
    """The weighted mean of squared errors at rows left out whole, and
    gp = k(x, x) − k_xᵀ(G + αW⁻¹)⁻¹k_x, with the constant's share."""
    w = np.random.default_rng(1).uniform(0.1, 5, N)
    size = {} if make is fixed else {"sketch_size": N}
    model = make(fit_intercept=fit_intercept, **size).fit(ROWS, NOISY, sample_weight=w)
    errors = []
    for i in range(N):
        rest = np.arange(N) != i
        other = fixed(fit_intercept=fit_intercept)
        other.fit(ROWS[rest], NOISY[rest], sample_weight=w[rest])
        errors.append(NOISY[i] - other.predict(ROWS[i : i + 1])[0])
    assert_close(model.loo_error_, (w @ np.square(errors)).mean() / w.sum())
    A = kernel_matrix(ROWS, ROWS) + ALPHA * np.diag(1 / w)
    k_x = kernel_matrix(ROWS, X_TEST)
    gp = 1 - (k_x * np.linalg.solve(A, k_x)).sum(axis=0)
    ones = np.linalg.solve(A, np.ones(N))
    if fit_intercept:
        gp += (1 - ones @ k_x) ** 2 / ones.sum()
    assert_close(model.variance(X_TEST, "gp"), gp)


@full_makers
@intercepts
def test_v1_is_the_variance_of_the_mean_under_weighted_noise(make, fit_intercept):
    """y_i ~ N(f(x_i), σ²/w_i), 3,000 times: each target is a draw.

    A sample variance over its expectation is χ² over its degrees of freedom; its 1e-8 quantiles at
    30 points are left with probability below 1e-6.
    """
    draws, sigma = 3000, 0.7
    w = np.random.default_rng(1).uniform(0.2, 5, N)
    signal = np.sin(3 * ROWS[:, :1])
    noise = np.random.default_rng(2).standard_normal((N, draws)) / np.sqrt(w)[:, None]
    size = {} if make is fixed else {"sketch_size": N}
    model = make(fit_intercept=fit_intercept, noise_variance=sigma**2, **size)
    model.fit(ROWS, signal + sigma * noise, sample_weight=w)
    found = model.predict(X_TEST).var(axis=1, ddof=1)
    low, high = chi2.ppf([1e-8, 1 - 1e-8], draws - 1) / (draws - 1)
    for kind in ("v1",) if make is fixed else ("v2", "v3"):
        ratio = found / model.variance(X_TEST, kind)[:, 0]
        assert (low < ratio).all()
        assert (ratio < high).all()


@full_makers
def test_noise_is_that_of_a_row_of_weight_one(make):
    """σ̂² under y_i ~ N(f(x_i), σ²/w_i), over 400 draws: the mean of χ² variables with about 30
    degrees of freedom each, off by 5 standard deviations with probability below 1e-6."""
    w = np.random.default_rng(1).uniform(0.2, 5, N)
    noise = np.random.default_rng(2).standard_normal((N, 400)) / np.sqrt(w)[:, None]
    size = {} if make is fixed else {"sketch_size": N}
    model = make(alpha=20.0, **size).fit(ROWS, 0.5 * noise, sample_weight=w)
    dof = N - model.effective_dof_
    assert abs(model.noise_variance_.mean() / 0.25 - 1) < 5 * np.sqrt(2 / dof / 400) + 0.02


# appending


@makers
@given(data=st.data())
@settings(max_examples=15, deadline=None)
def test_appending_with_weights_equals_fitting_with_them(make, data):
    """Any split, batches that repeat rows that are there, and weights of 0 among them."""
    seed = data.draw(st.integers(0, 1000))
    source = np.random.default_rng(seed)
    rows = np.concatenate([np.arange(N), source.integers(0, N, 25)])
    rows[:20] = source.permutation(20)
    A = ROWS[rows]
    b = NOISY[rows] + source.standard_normal((len(rows), 1))
    w = np.round(source.uniform(0, 3, len(rows)), 1)
    w[:2] = 1.0
    cuts = [0, *sorted(data.draw(st.lists(st.integers(20, 60), max_size=3))), len(rows)]
    options = {"fit_intercept": data.draw(st.booleans())}
    size = {"sketch_size": 12} if make is sketched else {}
    model = make(**options, **size)
    for start, stop in pairwise(cuts):
        if start < stop and w[start:stop].any():
            model.partial_fit(A[start:stop], b[start:stop], sample_weight=w[start:stop])
    sketch = {"sketch": model.sketch_} if make is sketched else {}
    whole = make(**options, **sketch).fit(A, b, sample_weight=w)
    assert_same_fit(model, whole)


@names
@intercepts
def test_appending_with_weights_under_every_sketch(name, fit_intercept):
    options = {"fit_intercept": fit_intercept, "sketch": name, "sketch_size": M}
    A = np.vstack([ROWS, ROWS[5:15]])
    b = np.vstack([NOISY, NOISY[:10]])
    w = np.random.default_rng(5).integers(1, 5, len(A)) / 2
    model = sketched(**options).fit(A[:25], b[:25], sample_weight=w[:25])
    model.partial_fit(A[25:], b[25:], sample_weight=w[25:])
    given_sketch = options | {"sketch": model.sketch_, "sketch_size": "auto"}
    assert_same_fit(model, sketched(**given_sketch).fit(A, b, sample_weight=w))


# One row says nothing about noise

ALONE = {
    "all rows alike": (np.ones((3, 2)), np.full(3, 2.0), None),
    "all other weights 0": (ROWS, NOISY[:, 0], np.eye(N)[7]),
}


@makers
@intercepts
@penalties
@pytest.mark.parametrize(("A", "b", "w"), ALONE.values(), ids=ALONE)
def test_one_row_alone_cannot_tell_the_noise(make, fit_intercept, alpha, A, b, w):
    """A warning at the caller's line says so; a noise variance that is given is believed."""
    options = {"fit_intercept": fit_intercept, "alpha": alpha}
    text = r"cannot be estimated from one row.*are 0 or.*Give noise_variance, or more rows"
    with pytest.warns(UserWarning, match=text) as caught:
        make(**options).fit(A, b, sample_weight=w)
    assert {warning.filename for warning in caught} == {__file__}
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*cannot be estimated")
        model = make(noise_variance=0.5, **options).fit(A, b, sample_weight=w)
        assert model.noise_variance_ == 0.5


@makers
def test_one_row_measured_twice_can(make):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = make(fit_intercept=True).fit(np.ones((2, 2)), [1.0, 2.0])
    assert_close(model.noise_variance_, 0.5)


@makers
def test_a_second_row_ends_the_warning(make):
    with pytest.warns(UserWarning, match="cannot be estimated"):
        model = make().fit(np.ones((2, 2)), [1.0, 1.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.partial_fit(ROWS, NOISY[:, 0])
