"""What the estimators choose by the data, or take as it is given: alpha and bandwidth."""

import numpy as np
import pytest
from helpers import assert_close, tol
from problems import (
    X_TEST,
    H,
    N,
    X,
    Y,
    assert_same_answers,
    full_makers,
    intercepts,
    kernel_matrix,
    makers,
    y,
)
from scipy.spatial.distance import pdist

from sketchridge.kernels import Gaussian


@makers
@pytest.mark.parametrize("criterion", ["gcv", "loo"])
@intercepts
def test_alpha_minimizes_its_criterion(make, criterion, fit_intercept):
    model = make(alpha=criterion, fit_intercept=fit_intercept).fit(X, y)
    path = model.path_  # at n = 80 the sketch grows to the numerical rank
    best = path.lam[np.argmin(path.gcv)]
    if criterion == "loo":  # the largest within 1% of the least
        best = path.lam[path.loo <= 1.01 * path.loo.min()].max()
    assert_close(model.lambda_, best)
    at = np.argmin(np.abs(path.lam - model.lambda_))
    assert_close(model.loo_error_, path.loo[at])
    assert_close(model.effective_dof_, path.df[at])


@makers
@pytest.mark.parametrize("alpha", [1e-3, 1, np.float32(0.5), np.int64(7)])
def test_a_number_as_alpha_is_kept(make, alpha):
    model = make(alpha=alpha).fit(X, y)
    assert_close(model.alpha_, float(alpha))
    assert_close(model.lambda_, float(alpha) / N)


def smoother_complement(mu, U, alpha, fit_intercept):
    """R with I − Ĥ = αR: R = M − M11ᵀM/(1ᵀM1), or M without intercept, with M = (G + αI)⁻¹ and
    G = U diag(mu) Uᵀ."""
    inverse = U / (np.maximum(mu, 0) + alpha) @ U.T
    mass = inverse.sum(axis=0)
    return inverse - np.outer(mass, mass) / mass.sum() if fit_intercept else inverse


def gcv(R, B):
    """n‖RB‖²/(tr R)², in which α cancels: one for each column."""
    return len(R) * ((R @ B) ** 2).sum(axis=0) / np.trace(R) ** 2


def leave_one_out(R, B):
    """The mean of ((RB)_i/R_ii)², in which α cancels: one for each column."""
    return np.mean(((R @ B).T / np.diagonal(R)).T ** 2, axis=0)


bandwidths = pytest.mark.parametrize("h", [0.05, 0.15, H])


@full_makers
@intercepts
@bandwidths
def test_gcv_and_leave_one_out_scores_are_those_of_the_definition(make, h, fit_intercept):
    """Of several targets they are means of the scores divided by the target's variance, times the
    mean variance: no target decides because of its units."""
    scaled = Y * [1.0, 100.0, 0.01]
    mu, U = np.linalg.eigh(kernel_matrix(X, X, h))
    for B in (Y[:, :1], Y, scaled):
        path = make(bandwidth=h, fit_intercept=fit_intercept).fit(X, B).path_
        variances = B.var(axis=0)
        for i in (80, 90, 99):
            R = smoother_complement(mu, U, N * path.lam[i], fit_intercept)
            for score, found in ((gcv, path.gcv[i]), (leave_one_out, path.loo[i])):
                expected = np.mean(score(R, B) / variances) * variances.mean()
                assert_close(found, expected)


@full_makers
@intercepts
@bandwidths
@pytest.mark.parametrize(("criterion", "score"), [("gcv", gcv), ("loo", leave_one_out)])
@pytest.mark.parametrize("seed", range(2))
def test_the_chosen_penalty_is_as_good_as_any(make, seed, criterion, score, h, fit_intercept):
    """The criterion, computed without cancellation, is at the chosen λ within a few percent of its
    minimum over the grid."""
    b = np.random.default_rng([5, seed]).standard_normal(N) + np.sin(3 * X[:, 0])
    model = make(bandwidth=h, alpha=criterion, fit_intercept=fit_intercept).fit(X, b)
    mu, U = np.linalg.eigh(kernel_matrix(X, X, h))
    grid = [model.lambda_, *model.path_.lam[40:]]
    scores = [score(smoother_complement(mu, U, N * lam, fit_intercept), b) for lam in grid]
    assert scores[0] <= min(scores) * (1 + tol("percent"))


@full_makers
@intercepts
@bandwidths
def test_degrees_of_freedom_stay_below_the_number_of_rows(make, h, fit_intercept):
    model = make(bandwidth=h, fit_intercept=fit_intercept).fit(X, y)
    assert (model.path_.df < N).all()
    assert (np.diff(model.path_.df) <= 0).all()


@full_makers
@pytest.mark.parametrize("criterion", ["gcv", "loo"])
def test_several_targets_share_one_penalty(make, criterion):
    """A penalty for all, whatever units each target is measured in."""
    model = make(alpha=criterion).fit(X, Y)
    assert isinstance(model.lambda_, float)
    rescaled = make(alpha=criterion).fit(X, Y * [1.0, 1024.0, 2.0**-10])
    assert_close(rescaled.lambda_, model.lambda_)
    assert_close(rescaled.predict(X_TEST)[:, 1], 1024 * model.predict(X_TEST)[:, 1])


@makers
def test_one_bandwidth_a_feature_is_a_rescaling(make):
    h = np.array([0.4, 1.5])
    model = make(bandwidth=h).fit(X, y)
    np.testing.assert_array_equal(model.bandwidth_, h)
    rescaled = make(bandwidth=1.0).fit(X / h, y)
    assert_close(model.predict(X_TEST), rescaled.predict(X_TEST / h))
    assert_close(model.variance(X_TEST, "gp"), rescaled.variance(X_TEST / h, "gp"))


@makers
@pytest.mark.parametrize("k", [1, 2, 3])
def test_a_map_is_a_change_of_coordinates(make, k):
    """bandwidth=M, of shape (d, k), means distances ‖(x − z)M‖."""
    M = np.random.default_rng(k).standard_normal((2, k))
    model = make(bandwidth=M).fit(X, y)
    mapped = make(bandwidth=1.0).fit(X @ M, y)
    assert_close(model.predict(X_TEST), mapped.predict(X_TEST @ M))
    assert_close(model.variance(X_TEST, "gp"), mapped.variance(X_TEST @ M, "gp"))
    same = make(bandwidth=np.diag([1 / 0.4, 1 / 1.5])).fit(X, y)
    assert_same_answers(same, make(bandwidth=[0.4, 1.5]).fit(X, y))


@makers
@pytest.mark.parametrize("kind", [list, tuple, np.array])
def test_equal_bandwidths_are_one(make, kind):
    several = make(bandwidth=kind([0.7, 0.7])).fit(X, y)
    assert_same_answers(several, make(bandwidth=0.7).fit(X, y))


@makers
@pytest.mark.parametrize(
    ("kernel", "metric"),
    [("gaussian", "euclidean"), ("matern52", "euclidean"), ("laplacian", "cityblock")],
)
def test_median_bandwidth_is_the_median_distance_between_distinct_rows(make, kernel, metric):
    repeated = np.vstack([X, X[:40]])
    model = make(kernel=kernel, bandwidth="median").fit(repeated, np.append(y, y[:40]))
    assert_close(model.bandwidth_, np.median(pdist(X, metric)))


@makers
@intercepts
def test_gcv_bandwidth_is_no_worse_than_the_median(make, fit_intercept):
    wiggly = np.sin(9 * X[:, 0])
    options = {"alpha": "gcv", "fit_intercept": fit_intercept}
    chosen = make(bandwidth="gcv", **options).fit(X, wiggly)
    median = make(bandwidth="median", **options).fit(X, wiggly)
    assert isinstance(chosen.bandwidth_, float)
    assert chosen.bandwidth_ != median.bandwidth_
    assert chosen.path_.gcv.min() < median.path_.gcv.min()


@makers
@pytest.mark.parametrize("kernel", ["linear", "polynomial"])
def test_kernels_without_a_bandwidth_have_none(make, kernel):
    assert make(kernel=kernel, bandwidth="median").fit(X, y).bandwidth_ is None


@makers
def test_a_kernel_object_keeps_its_own_bandwidth(make):
    model = make(kernel=Gaussian(bandwidth=0.33), bandwidth="median").fit(X, y)
    assert model.bandwidth_ == 0.33
    assert_same_answers(model, make(bandwidth=0.33).fit(X, y))
