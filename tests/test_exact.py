"""The specification: identities the paper's formulas must satisfy, its rules for m and λ, and
Assumption A1."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import (
    KERNEL_CASES,
    LAPLACIAN,
    SKETCH_CASES,
    KernelCase,
    SketchCase,
    assert_close,
    factor_for,
    matrix_of,
    mixing,
    normal,
    nystrom,
    sample_for,
    targets,
    tol,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.kernel_ridge import KernelRidge

from sketchridge import exact
from sketchridge.kernels import Gaussian

N, M, T, LAM = 25, 8, 6, 0.02


def problem(case: KernelCase, n: int = N):
    """K (n, n) and k_x (n, t)."""
    X, X_new = case.points(n), case.points(T, seed=7)
    kernel = case.fitted(X)
    return kernel(X, X) / n, kernel(X, X_new)


every_kernel = pytest.mark.parametrize("case", KERNEL_CASES, ids=str)


@every_kernel
def test_the_identity_sketch_changes_nothing(case: KernelCase):
    K, k_x = problem(case)
    v1, y = exact.v1(K, k_x, LAM), targets(N)[:, 0]
    assert_close(exact.v2(K, np.eye(N), k_x, LAM), v1)
    assert_close(exact.v3(K, np.eye(N), k_x, LAM), v1)
    assert_close(exact.sketched_mean(K, np.eye(N), k_x, y, LAM), exact.mean(K, k_x, y, LAM))


@every_kernel
def test_v3_as_printed_is_not_v1_for_the_identity_sketch(case: KernelCase):
    K, k_x = problem(case)
    printed, v1 = exact.v3_as_printed(K, np.eye(N), k_x, LAM), exact.v1(K, k_x, LAM)
    assert np.abs(printed - v1).max() > 1e6 * tol() * v1.max()


def test_mean_is_scikit_learns():
    X, X_new, y = normal(N, 3), normal(T, 3, seed=7), targets(N)[:, 0]
    G, k_x = Gaussian(1.0)(X, X), Gaussian(1.0)(X, X_new)
    reference = KernelRidge(alpha=N * LAM, kernel="rbf", gamma=0.5).fit(X, y).predict(X_new)
    assert_close(exact.mean(G / N, k_x, y, LAM), reference)


def test_v1_is_the_variance_of_the_mean():
    """The mean is linear in y: its variance is the sum of squares of its values at unit vectors."""
    K, k_x = problem(KERNEL_CASES[0])
    weights = exact.mean(K, k_x, np.eye(N), LAM)
    assert_close(exact.v1(K, k_x, LAM, 2.5), 2.5 * (weights**2).sum(axis=1))


@every_kernel
def test_gcv_is_that_of_the_smoothers_eigenvalues(case: KernelCase):
    """n Σ (λ/(μ_j + λ))² (u_jᵀy)² over the square of Σ λ/(μ_j + λ)."""
    K, _ = problem(case)
    y = targets(N)[:, 0]
    mu, U = np.linalg.eigh(K)
    kept = LAM / (np.maximum(mu, 0) + LAM)
    assert_close(exact.gcv(K, y, LAM), N * ((kept * (U.T @ y)) ** 2).sum() / kept.sum() ** 2)


@pytest.mark.parametrize("sketch_case", SKETCH_CASES, ids=str)
@every_kernel
def test_v3_is_the_variance_of_the_sketched_mean(case: KernelCase, sketch_case: SketchCase):
    K, k_x = problem(case)
    S = some_sketch(case, sketch_case)
    weights = exact.sketched_mean(K, S, k_x, np.eye(N), LAM)
    assert_close(exact.v3(K, S, k_x, LAM), (weights**2).sum(axis=1))


def some_sketch(case: KernelCase, sketch_case: SketchCase) -> np.ndarray:
    """S as the data make it, for those that choose rows."""
    X = case.points(N)
    factor = factor_for(sample_for(case.fitted(X), X), sketch_case.make(M, N, 3), M)
    return matrix_of(factor.sketch, N)


@pytest.mark.parametrize("sketch_case", SKETCH_CASES, ids=str)
@every_kernel
def test_v2_is_nystrom_in_disguise(case: KernelCase, sketch_case: SketchCase):
    """V2 = σ²/n² ‖(K̂ + λ)⁻¹k_x‖² with K̂ = KSᵀ(SKSᵀ)⁺SK."""
    K, k_x = problem(case)
    S = some_sketch(case, sketch_case)
    z = np.linalg.solve(nystrom(K, S) + LAM * np.eye(N), k_x)
    assert_close(exact.v2(K, S, k_x, LAM), (z**2).sum(axis=0) / N**2)


@given(
    m=st.integers(1, M),
    condition=st.floats(1, 1e3),
    seed=st.integers(0, 10**6),
    lam=st.floats(1e-2, 10),
)
@settings(max_examples=30, deadline=None)
def test_only_the_row_space_of_the_sketch_matters(m, condition, seed, lam):
    K, k_x = problem(LAPLACIAN)
    S, y = normal(m, N, seed), targets(N)[:, 0]
    QS = mixing(m, seed, condition) @ S
    for variance in (exact.v2, exact.v3):
        mixed, plain = variance(K, QS, k_x, lam), variance(K, S, k_x, lam)
        assert_close(mixed, plain, condition=condition)
    mixed, plain = (exact.sketched_mean(K, rows, k_x, y, lam) for rows in (QS, S))
    assert_close(mixed, plain, condition=condition)


@given(c=st.floats(1e-3, 1e3), sigma2=st.floats(1e-3, 1e3))
@settings(max_examples=20, deadline=None)
def test_variances_scale_with_the_noise(c, sigma2):
    K, k_x = problem(KERNEL_CASES[0])
    S = normal(M, N)
    assert_close(exact.v1(K, k_x, LAM, c**2 * sigma2), c**2 * exact.v1(K, k_x, LAM, sigma2))
    for variance in (exact.v2, exact.v3, exact.v3_as_printed):
        scaled = variance(K, S, k_x, LAM, c**2 * sigma2)
        assert_close(scaled, c**2 * variance(K, S, k_x, LAM, sigma2))


@pytest.mark.parametrize(
    ("lam", "expected"), [(5.0, 0), (4.0, 0), (3.9, 1), (1.0, 1), (0.5, 3), (0.1, 3), (1e-4, 4)]
)
def test_s_lambda_counts_the_eigenvalues_above_lambda(lam, expected):
    """Eigenvalues 4, 1, 1 and 0.001, a little lower than that where λ is one of them."""
    Q = np.linalg.qr(normal(4, 4))[0]
    eigenvalues = np.array([4, 1, 1, 1e-3]) * (1 - 1e-12)
    assert exact.s_lambda(Q * eigenvalues @ Q.T, lam) == expected


@pytest.mark.parametrize(
    ("n", "alpha", "c", "lam", "m"),
    [(32, 2, 1, 1 / 16, 2), (1024, 2, 1.5, 1 / 256, 6), (8, 1, 1.2, 1 / 4, 3)],
)
def test_polynomial_rule_balances_at_the_eigenvalue_of_index_m(n, alpha, c, lam, m):
    """Example 1: s = n^(1/(2α+1)), λ = s^(−2α), m = ⌈cs⌉."""
    assert_close(np.array(exact.polynomial_rule(n, alpha, c)), np.array([lam, m]))


@pytest.mark.parametrize(("c", "m"), [(8, 20), (10, 25), (12, 30)])
def test_exponential_rule_gives_the_sizes_of_the_papers_experiment(c, m):
    """Example 2 with p = 2: m = c√log n at n = 500, "m = 20, 25, 30 approximately"."""
    expected = np.array([np.sqrt(np.log(500)) / 500, m])
    assert_close(np.array(exact.exponential_rule(500, 2, c)), expected)


def test_exponential_rule_for_another_power():
    lam, m = exact.exponential_rule(1000, 1, 1.5)
    assert_close(np.array([lam, m]), np.array([np.log(1000) / 1000, 11]))


def spectrum():
    """K with eigenvalues 2^0 … 2^−9, λ between the fourth and the fifth, and the eigenvectors above
    and below."""
    Q = np.linalg.qr(normal(10, 10))[0]
    D = 2.0 ** -np.arange(10)
    return Q * D @ Q.T, 0.1, Q[:, :4], Q[:, 4:], D[4:]


HOLDS = {
    "leading eigenvectors": lambda U1, U2: U1.T,
    "an orthogonal matrix": lambda U1, U2: np.linalg.qr(normal(10, 10, seed=2))[0],
    "the largest scale": lambda U1, U2: 1.49 * U1.T,
    "the smallest scale": lambda U1, U2: 0.51 * U1.T,
}
FAILS = {
    "too large": lambda U1, U2: 2 * np.eye(10),
    "too small": lambda U1, U2: 0.4 * np.eye(10),
    "fewer rows than s_λ": lambda U1, U2: U1[:, :3].T,
    "a direction missed": lambda U1, U2: np.vstack([U1[:, :3].T, U2.T]),
    "a heavy tail": lambda U1, U2: np.vstack([U1.T, 10 * U2[:, :1].T]),
}


@pytest.mark.parametrize("make", HOLDS.values(), ids=HOLDS)
def test_assumption_a1_holds(make):
    K, lam, U1, U2, _ = spectrum()
    report = exact.check_a1(K, make(U1, U2), lam)
    assert report.s_lambda == 4
    assert report.holds()


@pytest.mark.parametrize("make", FAILS.values(), ids=FAILS)
def test_assumption_a1_does_not_hold(make):
    K, lam, U1, U2, _ = spectrum()
    assert not exact.check_a1(K, make(U1, U2), lam).holds()


def test_assumption_a1_measures_its_terms():
    K, lam, U1, U2, D2 = spectrum()
    report = exact.check_a1(K, np.vstack([1.2 * U1.T, 3 * U2.T]), lam)
    measured = np.array([report.smallest, report.largest, report.tail, report.tail_constant])
    assert_close(measured, np.array([1.2, 1.2, 3 * np.sqrt(D2[0]), 3 * np.sqrt(D2[0] / lam)]))
    assert not report.holds()
    assert report.holds(c=3)


@pytest.mark.parametrize(("lam", "s"), [(2.0, 0), (1e-6, 10)])
def test_assumption_a1_without_a_head_or_a_tail(lam, s):
    K, *_ = spectrum()
    report = exact.check_a1(K, np.eye(10), lam)
    assert report.s_lambda == s
    assert report.holds()


def test_a_gaussian_sketch_with_many_rows_satisfies_a1():
    """Singular values of a 400 × 4 Gaussian matrix/√400 leave [1/2, 3/2] with probability
    < 2exp(−400·0.4²/2) < 1e-13, and ‖SU₂D₂^(1/2)‖ ≤ 2√λ likewise."""
    K, lam, *_ = spectrum()
    assert exact.check_a1(K, normal(400, 10, seed=3) / 20, lam).holds(c=2)
