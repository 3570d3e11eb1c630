"""What holds at every point and in every precision: certificates, signs, limits far away."""

import warnings

import numpy as np
import pytest
from helpers import assert_close, tol
from problems import (
    SKETCH_NAMES,
    X_TEST,
    M,
    N,
    X,
    classes,
    fixed,
    intercepts,
    kinds,
    makers,
    names,
    sketched,
    y,
)

from sketchridge import ExactKernelRidge, SketchedKernelRidge

# precision


@pytest.mark.parametrize("name", ["gaussian", "landmarks", "rpcholesky"])
def test_single_precision_is_close_to_double(name):
    options = {"sketch": name, "sketch_size": M}
    single, double = (sketched(dtype=d, **options).fit(X, y) for d in ("float32", "float64"))
    assert (single.dtype_, double.dtype_) == ("float32", "float64")
    assert single.predict(X_TEST).dtype == np.float64
    assert_close(single.predict(X_TEST), double.predict(X_TEST), "float32")
    for kind in kinds(single):
        assert_close(single.variance(X_TEST, kind), double.variance(X_TEST, kind), "float32")


@pytest.mark.filterwarnings("ignore:.*below the rounding")
@pytest.mark.parametrize("kernel", ["gaussian", "matern32", "laplacian", "polynomial", "linear"])
@pytest.mark.parametrize("lam", np.geomspace(1e-1, 1e-9, 9))
def test_automatic_precision_costs_little(kernel, lam):
    """It is single only where that costs V2 less than a hundredth of sketch_tol."""
    options = {"kernel": kernel, "bandwidth": "median", "alpha": N * lam, "sketch_size": 40}
    automatic, double = (sketched(dtype=d, **options).fit(X, y) for d in ("auto", "float64"))
    assert automatic.dtype_ in ("float32", "float64")
    allowed = automatic.sketch_tol / 100
    np.testing.assert_allclose(automatic.variance(X_TEST), double.variance(X_TEST), rtol=allowed)


def test_automatic_precision_follows_the_penalty():
    assert sketched(dtype="auto", alpha=N * 1e-1).fit(X, y).dtype_ == "float32"
    assert sketched(dtype="auto", alpha=N * 1e-9).fit(X, y).dtype_ == "float64"


YEARS = np.arange(1960, 2020.0)[:, None]


@classes
@pytest.mark.parametrize("noise_variance", [1.0, "auto"])
@intercepts
def test_a_penalty_at_the_edge_of_rounding_is_named(cls, noise_variance, fit_intercept):
    """Where a Cholesky factor is still there, but its digits are not."""
    b = np.sin((YEARS[:, 0] - 1960) / 8)
    options = {"alpha": 3e7, "noise_variance": noise_variance, "fit_intercept": fit_intercept}
    with pytest.warns(UserWarning, match=r"below the rounding of float64.*do not trust"):
        cls("polynomial", **options).fit(YEARS, b)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cls("polynomial", **options | {"alpha": 3e12}).fit(YEARS, b)


@pytest.mark.parametrize("dtype", ["auto", "float64"])
@intercepts
def test_a_penalty_below_rounding_is_named(dtype, fit_intercept):
    """Years as a feature of a polynomial kernel: V2 was wrong by ten orders of magnitude, without a
    word."""
    b = np.sin((YEARS[:, 0] - 1960) / 8)
    model = SketchedKernelRidge("polynomial", alpha=1.0, dtype=dtype, fit_intercept=fit_intercept)
    with pytest.warns(UserWarning, match=r"below the rounding of float64.*do not trust"):
        model.fit(YEARS, b)


# certificates


@names
def test_certificate_holds(name):
    """|√V2 − √V1| ≤ relative·√V2 at every point: a theorem, so on every problem."""
    rng = np.random.default_rng([4, 0])
    for trial in range(25):
        n, d, m = rng.integers(2, 60), rng.integers(1, 6), rng.integers(1, 40)
        A = rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-1, 1)
        b = rng.standard_normal(n)
        B = np.vstack([A, rng.standard_normal((20, d)) * 3, 100 + A[:1]])
        options = {
            "kernel": ["gaussian", "laplacian", "matern32", "polynomial", "linear"][trial % 5],
            "alpha": n * 10.0 ** rng.uniform(-7, 0),
            "noise_variance": 1.0,
        }
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of a sketch size above n
            model = SketchedKernelRidge(
                **options, sketch=name, sketch_size=int(m), random_state=trial
            ).fit(A, b)
        sd2 = np.sqrt(model.variance(B, "v2"))
        sd1 = np.sqrt(ExactKernelRidge(**options).fit(A, b).variance(B, "v1"))
        relative = model.certificate_.relative
        assert relative >= 0
        assert (np.abs(sd2 - sd1) <= relative * sd2).all(), (trial, n, d, m, options)


def test_certificate_says_when_it_says_nothing():
    cases = ((60, 8.0), (2, 1e-6))
    tight, loose = (sketched(sketch_size=m, alpha=a).fit(X, y).certificate_ for m, a in cases)
    assert not tight.vacuous
    assert tight.relative < 1
    assert "within" in str(tight)
    assert loose.vacuous
    assert loose.relative >= 1
    assert "no uniform guarantee" in str(loose)
    assert "return_bound=True" in str(loose)


# signs and limits

LAMBDAS = np.geomspace(1e-1, 1e-9, 5)
EVERYWHERE = np.vstack([X, X_TEST, X + 1e-9, 1e3 * X, X[:5] + 1e6, X[:5] + 1e12])


@pytest.mark.filterwarnings("ignore:.*far from the training data")
@pytest.mark.filterwarnings("ignore:.*below the rounding")
@pytest.mark.parametrize("lam", LAMBDAS)
@pytest.mark.parametrize("name", ["exact", "auto", *SKETCH_NAMES])
@pytest.mark.parametrize("dtype", ["auto", "float32"])
@intercepts
def test_std_is_never_negative_or_nan(name, dtype, lam, fit_intercept):
    options = {"alpha": N * lam, "fit_intercept": fit_intercept}
    if name == "exact":
        model = fixed(**options)
    else:
        model = sketched(sketch=name, sketch_size=40, dtype=dtype, **options)
    mean, std = model.fit(X, y).predict(EVERYWHERE, return_std=True)
    assert np.isfinite(mean).all()
    assert np.isfinite(std).all()
    assert (std >= 0).all()
    for kind in kinds(model):
        v = model.variance(EVERYWHERE, kind)
        assert np.isfinite(v).all()
        assert (v >= 0).all()


@makers
def test_far_from_the_data_the_variance_of_the_mean_vanishes_and_the_posterior_does_not(make):
    model = make().fit(X, y)
    far = X[:5] + 1e3
    for kind in kinds(model):
        expected = 1.0 if kind in ("gp", "bias2") else 0.0
        np.testing.assert_array_equal(model.variance(far, kind), np.full(5, expected))
    np.testing.assert_array_equal(model.predict(far), np.zeros(5))


@makers
def test_a_model_that_says_nothing_says_so(make):
    model = make().fit(X, y)
    there = np.vstack([X[:3], X[:5] + 1e3])
    with pytest.warns(UserWarning, match=r"5 of 8 points are so far .*Use fit_intercept=True"):
        model.predict(there, return_std=True)
    low, high = model.predict_interval(there)
    assert (high - low > 0.1).all()  # an interval is not 0 ± 0 there
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict(X, return_std=True)
        make(fit_intercept=True).fit(X, y).predict(there, return_std=True)


@makers
def test_far_from_the_data_the_intercept_remains(make):
    model = make(fit_intercept=True, noise_variance=1.0).fit(X, y)
    mean, std = model.predict(X[:5] + 1e3, return_std=True)
    assert_close(mean, np.full(5, mean[0]))
    assert abs(mean[0] - y.mean()) < np.ptp(y)
    # No unbiased estimate of a constant varies less than the average.
    assert (std >= (1 - tol()) / np.sqrt(N)).all()
