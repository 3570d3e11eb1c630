"""The variance with a share of V2's weights for each point, against its definition and V1."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import assert_close, matrix_of, tol, uneven, unit_cube
from problems import X_TEST, N, X, Y, intercepts, kernel_matrix, points, sketched, values, y

from sketchridge import ExactKernelRidge, SketchedKernelRidge, exact
from sketchridge import ridge as ridge_module
from sketchridge.backends import NumpyTiles
from sketchridge.covariance import sketched_covariance
from sketchridge.sketches import SKETCHES

pytestmark = [
    pytest.mark.filterwarnings("ignore:The sketch:UserWarning"),
    pytest.mark.filterwarnings("ignore:λ = .* is below the rounding:UserWarning"),
]
FEW = 9  # landmarks, too few for λ
SMALL = 0.01  # α for which they are


def model_of(size: int = FEW, **parameters: object) -> SketchedKernelRidge:
    given = {"alpha": SMALL, "sketch_size": size, "noise_variance": 3.0}
    return sketched(**(given | parameters))


def shares(model: SketchedKernelRidge, X_new: np.ndarray) -> np.ndarray:
    fitted = model.fitted_
    return fitted.ridge.shares(fitted.at(X_new))


@pytest.mark.parametrize("name", sorted(SKETCHES))
@pytest.mark.parametrize("size", [1, 5, FEW])
def test_it_is_the_specification(name, size):
    model = model_of(size, sketch=name).fit(X, y)
    found = exact.vtheta(
        kernel_matrix(X, X) / N,
        matrix_of(model.sketch_, N),
        kernel_matrix(X, X_TEST),
        np.ones(len(X_TEST)),
        SMALL / N,
        3.0,
    )
    assert shares(model, X_TEST).min() < 0.5
    assert_close(model.variance(X_TEST, "vtheta"), found, condition=1e3)


@intercepts
def test_a_complete_sketch_gives_v1(fit_intercept):
    model = model_of(N, fit_intercept=fit_intercept).fit(X, y)
    same = ExactKernelRidge(
        "gaussian", bandwidth=0.6, alpha=SMALL, noise_variance=3.0, fit_intercept=fit_intercept
    )
    expected = same.fit(X, y).variance(X_TEST)
    assert_close(model.variance(X_TEST, "vtheta"), expected, condition=1e3)


@intercepts
def test_one_share_for_all_points_is_a_number(fit_intercept):
    model = model_of(fit_intercept=fit_intercept).fit(X, y, uneven(N))
    ridge, query = model.fitted_.ridge, model.fitted_.at(X_TEST)
    for theta in (1.0, 0.5, 0.2):
        each = ridge.mixed(query, lambda some, t=theta: np.full(len(some), t))
        assert_close(each, ridge.mixed(query, theta))


@intercepts
def test_one_pass_is_two_passes(fit_intercept, monkeypatch):
    model = model_of(alpha=0.5, fit_intercept=fit_intercept).fit(X, y, uneven(N))
    expected = model.variance(X_TEST, "vtheta")
    monkeypatch.setattr(ridge_module, "_FEW", 0)
    assert_close(model.variance(X_TEST, "vtheta"), expected, condition=1e4)


@pytest.mark.parametrize("backend", ["numpy", "torch"])
@pytest.mark.parametrize("name", ["rpcholesky", "fourier"])
@pytest.mark.parametrize("few", [0, 4096])
@intercepts
def test_rounding_does_not_hide_what_a_small_sketch_misses(
    fit_intercept, name, few, backend, monkeypatch
):
    if backend == "torch":
        pytest.importorskip("torch")
    monkeypatch.setattr(ridge_module, "_FEW", few)
    X = unit_cube(600, 3)
    y, w = np.sin(5 * X[:, 0]), uneven(600)
    for alpha in (1e-2, 1e-5):
        given = {"alpha": alpha, "bandwidth": 0.5, "fit_intercept": fit_intercept}
        given |= {"sketch": name, "backend": backend}
        full, single = (model_of(20, dtype=d, **given).fit(X, y, w) for d in ("float64", "float32"))
        assert full.gap_ > 30
        exact, found = (model.variance(X[:100], "vtheta") for model in (full, single))
        assert np.quantile(abs(found / exact - 1), 0.95) < tol("percent")


@pytest.mark.parametrize("seed", range(5))
@intercepts
def test_it_lies_between_its_ends(fit_intercept, seed):
    model = model_of(fit_intercept=fit_intercept, random_state=seed).fit(X, y)
    theta = shares(model, X_TEST)
    root = {kind: np.sqrt(model.variance(X_TEST, kind)) for kind in ("v2", "v3", "vtheta")}
    assert (theta > 0).all()
    assert (theta <= 0.54).all()
    assert (root["vtheta"] <= theta * root["v2"] + (1 - theta) * root["v3"] + 1e-12).all()


def test_too_small_a_sketch_is_off_by_less_than_the_average():
    found = {"vbar": [], "vtheta": []}
    for seed in range(10):
        model = model_of(random_state=seed).fit(X, y)
        v1 = model.variance(X_TEST, "v1", tol=1e-6)
        for kind, errors in found.items():
            errors.append(abs(model.variance(X_TEST, kind) / v1 - 1))
    error = {kind: np.quantile(errors, 0.95) for kind, errors in found.items()}
    assert error["vtheta"] < error["vbar"] / 2


@intercepts
def test_it_can_be_bounded_and_refined(fit_intercept):
    model = model_of(fit_intercept=fit_intercept).fit(X, y)
    v1 = np.sqrt(model.variance(X_TEST, "v1", tol=1e-8))
    for steps in (0, 1, 3):
        v, bound = model.variance(X_TEST, "vtheta", refine=steps, return_bound=True)
        assert (abs(np.sqrt(v) - v1) <= bound + 1e-8 * v1).all()
        if not steps:
            assert_close(v, model.variance(X_TEST, "vtheta"), condition=1e3)


@intercepts
def test_covariances_and_contrasts_have_it(fit_intercept):
    model = model_of(fit_intercept=fit_intercept).fit(X, y, uneven(N))
    variance = model.variance(X_TEST, "vtheta")
    covariance = model.covariance(X_TEST, "vtheta")
    assert_close(np.diagonal(covariance), variance, condition=1e3)
    assert np.linalg.eigvalsh(covariance)[0] > -1e-12 * np.trace(covariance)
    assert_close(model.contrast(np.eye(len(X_TEST)), X_TEST, "vtheta")[1], variance, condition=1e3)


def test_several_targets_and_tensors_have_it():
    pytest.importorskip("torch")
    one, other = (model_of(backend=b, noise_variance="auto").fit(X, Y) for b in ("numpy", "torch"))
    found = one.variance(X_TEST, "vtheta")
    assert found.shape == (len(X_TEST), Y.shape[1])
    assert_close(other.variance(X_TEST, "vtheta"), found, condition=1e3)


def test_where_the_data_say_nothing_it_is_zero():
    model = model_of().fit(X, y)
    assert model.variance(np.full((1, X.shape[1]), 1e3), "vtheta") == 0


def test_standard_deviations_have_it_where_the_gap_is_large():
    model = model_of().fit(X, y)
    assert model.gap_ > 2
    with pytest.warns(UserWarning, match="small for this alpha"):
        std = model.predict(X_TEST, return_std=True)[1]
    assert_close(std**2, model.variance(X_TEST, "vtheta"))


def test_slopes_have_none():
    X_new = points(3, seed=4)
    model = model_of().fit(X, values(X)[:, 0])
    with pytest.raises(ValueError, match="not of derivatives"):
        model.gradient(X_new, return_std=True, kind="vtheta")


@pytest.mark.parametrize(("few", "second"), [(0, 0), (4096, 1)])
@intercepts
def test_share_and_variance_are_made_of_the_same_sums(fit_intercept, few, second, monkeypatch):
    """One pass over the data where the bound on rounding allows it, which it does for this α."""
    monkeypatch.setattr(ridge_module, "_FEW", few)
    fitted = model_of(alpha=50.0, fit_intercept=fit_intercept).fit(X, y, uneven(N)).fitted_
    asked = []
    for name in ("moments", "matmul", "residual_sqnorm"):
        whole = getattr(NumpyTiles, name)

        def counted(*given, _name=name, _whole=whole, **options):
            asked.append(_name)
            return _whole(*given, **options)

        monkeypatch.setattr(NumpyTiles, name, counted)
    query = fitted.at(X_TEST)
    asked.clear()
    fitted.ridge.vtheta(query)
    assert asked == ["moments", *["residual_sqnorm"] * second]
    asked.clear()
    sketched_covariance(fitted.ridge, query, "vtheta")
    assert asked.count("moments") == 2 - second
