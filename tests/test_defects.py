"""What must never be wrong again: one test for each known defect of means, variances and fits.

Only the public interface is used. Where a right number and a clear word of caution are both good
answers, either passes; silence with a wrong number does not.
"""

from __future__ import annotations

import builtins
import contextlib
import copy
import gc
import io
import os
import pickle
import re
import shutil
import subprocess
import sys
import tracemalloc
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flint import arb
from heard import Heard, at_most
from multiprecision import Formula, Problem, Reference, to_floats
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process.kernels import RBF
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

import sketchridge
from sketchridge import ExactKernelRidge, SketchedKernelRidge
from sketchridge.backends import NumpyTiles
from sketchridge.backends.torch_tiles import TorchTiles
from sketchridge.backends.triton_fused import TritonFused
from sketchridge.kernels import CubicSpline, Custom, Gaussian, PeriodicSobolev, Polynomial

Array = np.ndarray
SKETCHED = {"sketch_size": 12, "solver": "sketch", "random_state": 0}
COMPLETE = {ExactKernelRidge: {}, SketchedKernelRidge: {"sketch_size": 25}}  # for 25 rows
ROUNDING = 1e-12  # of a benign problem's standard deviations, relative
both = pytest.mark.parametrize("cls", [ExactKernelRidge, SketchedKernelRidge])


def data(n: int = 40, d: int = 2, seed: int = 0) -> tuple[Array, Array, Array]:
    """X (n, d) and y (n,) with a little noise, and 8 other points."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, d))
    y = np.sin(5 * X[:, 0]) + 0.1 * rng.standard_normal(n)
    return X, y, rng.random((8, d))


def made(cls: type, **options: Any) -> Any:
    """An estimator with explicit settings, a small fixed sketch where there is one."""
    fixed = {"kernel": "gaussian", "bandwidth": 0.5, "alpha": 0.1, "noise_variance": 1.0}
    fixed["fit_intercept"] = False
    return cls(**fixed | ({} if cls is ExactKernelRidge else SKETCHED) | options)


def answers(model: Any, X_new: Array) -> list[Array]:
    return [model.predict(X_new), model.variance(X_new), model.variance(X_new, kind="gp")]


def same(found: list[Array], expected: list[Array], rtol: float = 1e-9) -> None:
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=rtol, atol=1e-12)


def run(code: str, *arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    """A program in a fresh interpreter that finds this library."""
    path = os.pathsep.join([str(Path(sketchridge.__file__).parents[1]), *sys.path])
    command = [sys.executable, "-c", code, *map(str, arguments)]
    variables = {**os.environ, "PYTHONPATH": path, **environment}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=variables)


# Bounds and certificates


@pytest.mark.parametrize("seed", range(6))
def test_bounds_hold_with_an_intercept_after_any_number_of_steps(seed: int) -> None:
    """|√V1 − √V| ≤ bound with fit_intercept=True, also where the solution was reached long ago."""
    X, y, _ = data(60, 2, seed)
    common = {"bandwidth": "median", "alpha": 10.0 ** (seed - 2), "fit_intercept": True}
    std = made(ExactKernelRidge, **common).fit(X, y).variance(X) ** 0.5
    model = made(SketchedKernelRidge, **common, sketch_size="auto").fit(X, y)
    for steps in (1, 2, 3, 5, 10, 20):
        V, bound = model.variance(X, kind="v2", refine=steps, return_bound=True)
        assert np.isfinite(V).all()
        assert (np.abs(V**0.5 - std) <= bound + 1e-10 * std).all(), f"after {steps} steps"


@pytest.mark.parametrize("sketch", ["rademacher", "srht", "sparse", "gaussian"])
@pytest.mark.parametrize("offset", [1e4, 1e7])
def test_certificates_hold_where_a_row_of_the_sketch_annihilates_the_data(
    sketch: str,
    offset: float,
) -> None:
    """|√V2 − √V1| ≤ relative·√V2 with a linear kernel on data with an offset."""
    x = offset + np.random.default_rng(0).random(20)
    alpha = 1e-2 * (x @ x)
    exact = x[0] * (x @ x) ** 0.5 / (x @ x + alpha)
    for seed in range(20, 32):
        model = made(SketchedKernelRidge, kernel="linear", bandwidth="median", alpha=alpha)
        model.set_params(sketch=sketch, sketch_size=5, random_state=seed).fit(x[:, None], x)
        std = model.variance([[x[0]]], kind="v2")[0] ** 0.5
        assert abs(std - exact) <= model.certificate_.relative * std + ROUNDING * exact, seed


@pytest.mark.parametrize("dtype", ["auto", "float64", "float32"])
@pytest.mark.parametrize("factor", [1.0, 1e2, 1e3])
def test_bounds_count_the_rounding_of_the_last_digit(dtype: str, factor: float) -> None:
    """Bounds and certificates hold to the last digit where λ is far above tr K."""
    X, y, X_new = data(30)
    X_new = np.concatenate([X_new, [[4.0, 4.0], [9.0, 9.0]]])
    std = exact_std(X, y, X_new, alpha=factor * len(X))
    model = made(SketchedKernelRidge, alpha=factor * len(X), dtype=dtype).fit(X, y)
    V, bound = model.variance(X_new, return_bound=True)
    violated = [s for s, v, b in zip(std, V, bound, strict=True) if off(s, v) > arb(float(b))]
    assert not violated
    V = model.variance(X_new)
    for relative in (model.certificate_.relative, model.certificate("norm").relative):
        allowed = [arb(relative) * arb(float(v)).sqrt() for v in V]
        assert not [s for s, v, a in zip(std, V, allowed, strict=True) if off(s, v) > a]


def exact_std(X: Array, y: Array, X_new: Array, alpha: float) -> list[arb]:
    return Reference(Problem(Formula("gaussian", 0.5), X, y, X_new, alpha)).exact.std


def off(std: arb, variance: float) -> arb:
    return abs(std - arb(float(variance)).sqrt())


@pytest.mark.parametrize("sketch", ["rademacher", "sparse", "gaussian"])
@pytest.mark.parametrize("alpha", [1.0, 1e-3])
def test_certificates_count_products_in_single_precision(sketch: str, alpha: float) -> None:
    """The certificate of a nearly complete dense sketch holds with dtype="float32"."""
    X, y, X_new = data(30)
    std = exact_std(X, y, X_new, alpha)
    options = {"sketch": sketch, "sketch_size": 29, "dtype": "float32", "alpha": alpha}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = made(SketchedKernelRidge, **options).fit(X, y)
    for certificate in (model.certificate_, model.certificate("norm")):
        for s, v in zip(std, model.variance(X_new), strict=True):
            limit = arb(certificate.relative) * arb(float(v)).sqrt()
            assert bool(off(s, v) <= limit), certificate


def test_one_far_outlier_does_not_spoil_certificates_and_refinement() -> None:
    """A row 10⁶ bandwidths away leaves V1 to 0.1% and a certificate of a full sketch."""
    X, y, X_new = data(40)
    X = np.concatenate([X, [[5e5, 0.0]]])
    y = np.append(y, 0.0)
    options = {"sketch_size": len(X), "dtype": "float64"}
    model = made(SketchedKernelRidge, **options).fit(X, y)
    exact = made(ExactKernelRidge).fit(X, y)
    V = model.variance(X_new, kind="v1", tol=1e-3)
    np.testing.assert_allclose(V, exact.variance(X_new), rtol=1e-3)
    assert not model.certificate_.vacuous


# Hard problems


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_a_penalty_below_rounding_is_not_silent(fit_intercept: bool) -> None:
    """Years under a cubic polynomial kernel: V2 and the mean are right, or caution is asked for."""
    rng = np.random.default_rng(0)
    year = np.arange(1960, 2020.0)[:, None]
    y = np.sin((year[:, 0] - 1960) / 8) + 0.1 * rng.standard_normal(60)
    X_new = np.array([[1975.5], [2000.0], [2019.0]])
    heard = Heard()
    model = SketchedKernelRidge("polynomial", alpha=1.0, noise_variance=1.0, random_state=0)
    model.set_params(fit_intercept=fit_intercept)
    heard.ask("fit", lambda: model.fit(year, y))
    if heard.refusals or heard.cautions:
        return
    formula = Formula("polynomial", coef0=1.0, degree=3)
    r = Reference(Problem(formula, year, y, X_new, 1.0, fit_intercept))
    V = heard.ask("v2", lambda: model.variance(X_new))
    mean = heard.ask("mean", lambda: model.predict(X_new))
    if not heard.refusals and not heard.cautions:
        np.testing.assert_allclose(V**0.5, to_floats(r.exact.std), rtol=0.5)
        np.testing.assert_allclose(mean, to_floats(r.exact.mean), atol=0.1)


def test_a_refusal_does_not_recommend_what_is_no_better() -> None:
    """The exact estimator is right about years, or refuses without pointing to the sketched one."""
    year = np.arange(1960, 2020.0)[:, None]
    heard = Heard()
    model = ExactKernelRidge("polynomial", alpha=1.0, noise_variance=1.0)
    heard.ask("fit", lambda: model.fit(year, np.sin(year[:, 0] / 8)))
    if "fit" in heard.refusals:
        assert "SketchedKernelRidge" not in heard.refusals["fit"]
        return
    formula = Formula("polynomial", coef0=1.0, degree=3)
    r = Reference(Problem(formula, year, np.sin(year[:, 0] / 8), year[:3], 1.0))
    V = model.variance(year[:3])
    assert heard.cautions or np.allclose(V**0.5, to_floats(r.exact.std), rtol=0.5)


@pytest.mark.parametrize("options", [{"alpha": 1e-200}, {"alpha": 1e-155, "sketch_size": 5}])
def test_conjugate_gradients_end(options: dict) -> None:
    """solver="pcg" ends within seconds on a hopeless problem, with numbers or with a sentence."""
    X, y, X_new = data(40)
    heard = Heard()
    model = made(SketchedKernelRidge, solver="pcg", bandwidth="median", **options)
    heard.ask("fit", lambda: model.fit(X, y))
    if not heard.refusals:
        mean = heard.ask("mean", lambda: model.predict(X_new))
        assert heard.refusals or np.isfinite(mean).all()


@pytest.mark.parametrize(("n", "alpha", "size"), [(40, 1e-12, 5), (400, 7.6e-10, 7)])
def test_conjugate_gradients_give_up_soon(n: int, alpha: float, size: int) -> None:
    """solver="pcg" with a poor preconditioner succeeds or gives up within five seconds."""
    X, y, _ = data(n)
    model = made(SketchedKernelRidge, solver="pcg", bandwidth="median", alpha=alpha)
    Heard().ask("fit", lambda: model.set_params(sketch_size=size).fit(X, y))


@pytest.mark.parametrize("alpha", [1e-200, 1e-30, 1e-15])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_refining_a_hopeless_problem_warns_of_nothing_but_itself(
    alpha: float,
    fit_intercept: bool,
) -> None:
    """refine=2 gives finite variances or a sentence, without NumPy's warnings and errors."""
    X, y, X_new = data(30)
    heard = Heard()
    model = made(SketchedKernelRidge, alpha=alpha, fit_intercept=fit_intercept)
    heard.ask("fit", lambda: model.fit(X, y))
    if heard.refusals:
        return
    for steps in (0, 2):
        found = heard.ask(
            "v2",
            lambda k=steps: model.variance(X_new, refine=k, return_bound=True),
        )
        if not heard.refusals:
            assert np.isfinite(found[0]).all()
            assert (found[0] >= 0).all()
            assert not np.isnan(found[1]).any()


@pytest.mark.parametrize("alpha", ["gcv", "loo"])
@pytest.mark.parametrize("kernel", ["linear", "gaussian"])
def test_targets_beyond_squares_are_refused_without_an_overflow(alpha: str, kernel: str) -> None:
    """Targets of 1e160 made scores of λ overflow, with NumPy's warnings; those of 1e149 do not."""
    X, y, _ = data(5)
    bandwidth = "median" if kernel == "linear" else 1.0
    model = made(SketchedKernelRidge, kernel=kernel, bandwidth=bandwidth, alpha=alpha)
    Heard().ask("fit", lambda: model.fit(X, y / abs(y).max() * 1e149))
    with pytest.raises(ValueError, match="rescale"):
        model.fit(X, y / abs(y).max() * 1e160)


@pytest.mark.parametrize("alpha", ["gcv", "loo"])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_choosing_a_penalty_warns_of_nothing_but_itself(alpha: str, fit_intercept: bool) -> None:
    """Constant and noise-free targets are fitted without NumPy's warnings."""
    X, _, X_new = data(30)
    for y in (np.zeros(30), np.full(30, 3.0), X[:, 0]):
        heard = Heard()
        model = made(SketchedKernelRidge, alpha=alpha, fit_intercept=fit_intercept)
        heard.ask("fit", lambda y=y, model=model: model.fit(X, y))
        mean = heard.ask("mean", lambda model=model: model.predict(X_new))
        assert heard.refusals or np.isfinite(mean).all()


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("alpha", [1e-4, 1.2e-7])
def test_a_full_fourier_sketch_is_not_silently_wrong(alpha: float, seed: int) -> None:
    """With as many rows as data, the mean and V2 are the exact ones, or caution is asked for."""
    X, y, X_new = data(40, 3, seed)
    heard = Heard()
    options = {"sketch": "fourier", "sketch_size": 40, "alpha": alpha, "dtype": "float64"}
    model = made(SketchedKernelRidge, **options, bandwidth="median").set_params(random_state=seed)
    heard.ask("fit", lambda: model.fit(X, y))
    if heard.refusals or heard.cautions:
        return
    exact = made(ExactKernelRidge, bandwidth=model.bandwidth_, alpha=alpha).fit(X, y)
    mean = heard.ask("mean", lambda: model.predict(X_new))
    V = heard.ask("v2", lambda: model.variance(X_new))
    if not heard.refusals and not heard.cautions:
        np.testing.assert_allclose(mean, exact.predict(X_new), atol=1e-3)
        np.testing.assert_allclose(V, exact.variance(X_new), rtol=0.02)


def test_kernel_values_out_of_range_are_not_nan() -> None:
    """At points where a kernel overflows, every kind of variance is a number or a sentence."""
    X, y, _ = data(20)
    for kernel in ("linear", "polynomial"):
        model = made(SketchedKernelRidge, kernel=kernel, bandwidth="median").fit(X, y)
        for kind in ("v1", "v2", "v3", "gp", "bias2"):
            heard = Heard()
            far = np.full((1, 2), 1e130)
            found = heard.ask(kind, lambda k=kind, m=model, x=far: m.variance(x, kind=k))
            assert heard.refusals or np.isfinite(found).all(), (kernel, kind, found)


# Scales


SCALES = [
    ("linear", 1e78, 0.1e156),
    ("linear", 1e89, 0.1e178),
    ("linear", 1e150, 0.1e300),
    ("linear", 1e-80, 0.1e-160),
    ("linear", 1e-150, 0.1e-300),
    ("polynomial", 1e32, 0.1e192),
    ("polynomial", 1e45, 0.1e270),
    ("polynomial", 1e-45, 0.1e-270),
    ("linear", 1e78, "gcv"),
    ("linear", 1e150, "gcv"),
    ("linear", 1e-80, "gcv"),
    ("linear", 1e-150, "gcv"),
    ("polynomial", 1e45, "gcv"),
    ("polynomial", 1e60, "gcv"),
    ("polynomial", 1e-60, "gcv"),
]


@both
@pytest.mark.parametrize(("kernel", "scale", "alpha"), SCALES)
def test_the_scale_of_x_does_not_matter(cls: type, kernel: str, scale: float, alpha: Any) -> None:
    """k(cx, cz) = c^(2p) k(x, z) and α c^(2p): the same means and variances, or a sentence."""
    X, y, X_new = data(25)
    homogeneous = "linear" if kernel == "linear" else Polynomial(degree=3, gamma=1.0, coef0=0.0)
    model, heard = made(cls, kernel=homogeneous, bandwidth="median", alpha=alpha), Heard()
    if cls is SketchedKernelRidge:
        model.set_params(dtype="float64")  # "auto" allows rounding of sketch_tol/100
    plain = clone(model).set_params(alpha="gcv" if alpha == "gcv" else 0.1).fit(X, y)
    heard.ask("fit", lambda: model.fit(X * scale, y))
    if not heard.refusals:
        mean = heard.ask("mean", lambda: model.predict(X_new * scale))
        V = heard.ask("variance", lambda: model.variance(X_new * scale))
    if not heard.refusals:
        np.testing.assert_allclose(mean, plain.predict(X_new), rtol=1e-5, atol=1e-7)
        np.testing.assert_allclose(V, plain.variance(X_new), rtol=1e-5)


Y_OPTIONS = [
    {},
    {"alpha": "gcv"},
    {"alpha": "loo"},
    {"alpha": "gcv", "fit_intercept": True},
    {"bandwidth": "gcv", "alpha": "gcv"},
    {"noise_variance": "auto"},
]


@both
@pytest.mark.parametrize("options", Y_OPTIONS, ids=str)
@pytest.mark.parametrize("scale", [1e155, 1e-170, 1e200])
def test_the_scale_of_y_does_not_matter(cls: type, options: dict, scale: float) -> None:
    """y → cy gives the same λ and bandwidth and c times the mean, or a sentence about y."""
    X, y, X_new = data(25)
    plain = made(cls, **COMPLETE[cls], **options).fit(X, y)
    heard = Heard()
    model = made(cls, **COMPLETE[cls], **options)
    heard.ask("fit", lambda: model.fit(X, y * scale))
    if heard.refusals:
        assert re.search(r"\by\b|target", heard.refusals["fit"])
        return
    mean = heard.ask("mean", lambda: model.predict(X_new))
    assert heard.refusals or heard.cautions or model.lambda_ == pytest.approx(plain.lambda_)
    if not heard.refusals and not heard.cautions:
        assert np.isfinite(model.noise_variance_)
        np.testing.assert_allclose(model.bandwidth_, plain.bandwidth_)
        np.testing.assert_allclose(mean / scale, plain.predict(X_new), rtol=1e-6, atol=1e-9)


def test_the_scale_of_y_does_not_matter_to_conjugate_gradients() -> None:
    """solver="pcg" with y·1e155 gives the scaled mean, or a sentence."""
    X, y, X_new = data(25)
    plain = made(SketchedKernelRidge, solver="pcg").fit(X, y)
    heard = Heard()
    model = made(SketchedKernelRidge, solver="pcg")
    heard.ask("fit", lambda: model.fit(X, y * 1e155))
    if not heard.refusals:
        mean = heard.ask("mean", lambda: model.predict(X_new))
        np.testing.assert_allclose(mean / 1e155, plain.predict(X_new), rtol=1e-5, atol=1e-7)


@both
@pytest.mark.parametrize("alpha", [10**400, 1e308], ids=["beyond float64", "1e308"])
def test_an_enormous_penalty_is_a_penalty_or_a_sentence(cls: type, alpha: Any) -> None:
    """alpha=10**400 is refused as no finite number; alpha=1e308 predicts 0."""
    X, y, X_new = data(20)
    heard = Heard()
    model = made(cls, alpha=alpha)
    heard.ask("fit", lambda: model.fit(X, y))
    if heard.refusals:
        assert "alpha" in heard.refusals["fit"]
    else:
        assert np.abs(model.predict(X_new)).max() < 1e-200


@both
@pytest.mark.parametrize("alpha", ["gcv", "loo"])
def test_targets_in_other_units_choose_the_same_penalty(cls: type, alpha: str) -> None:
    """λ for several targets does not change when one of them is measured in other units."""
    X, y, _ = data(25)
    Y = np.column_stack([y, np.cos(9 * X[:, 1]) + 0.5 * np.random.default_rng(3).random(25)])
    model = made(cls, **COMPLETE[cls], alpha=alpha)
    chosen = [clone(model).fit(X, Y * [1.0, c]).lambda_ for c in (1e-6, 1.0, 1e6)]
    np.testing.assert_allclose(chosen, chosen[1], rtol=1e-6)


@both
def test_targets_in_other_units_choose_the_same_bandwidth(cls: type) -> None:
    """bandwidth="gcv" for several targets does not depend on their units."""
    X, y, _ = data(25)
    Y = np.column_stack([y, np.cos(25 * X[:, 1])])
    model = made(cls, **COMPLETE[cls], bandwidth="gcv", alpha="gcv")
    chosen = [clone(model).fit(X, Y * [1.0, c]).bandwidth_ for c in (1e-6, 1.0, 1e6)]
    np.testing.assert_allclose(chosen, chosen[1])


@both
@pytest.mark.parametrize("shift", [1e6, 1e9])
def test_a_shift_of_y_does_not_move_the_bandwidth(cls: type, shift: float) -> None:
    """bandwidth="gcv" with an intercept sees y without its mean."""
    X, y, _ = data(25)
    model = made(cls, **COMPLETE[cls], bandwidth="gcv", alpha="gcv", fit_intercept=True)
    plain = clone(model).fit(X, y).bandwidth_
    assert clone(model).fit(X, y + shift).bandwidth_ == pytest.approx(plain)


# The budget


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("alpha", [1e-3, 1e-6])
def test_gp_of_the_exact_estimator_is_right_where_it_is_small(
    alpha: float,
    fit_intercept: bool,
) -> None:
    """gp = bias² + α V1/σ² to a thousandth at the rows themselves, where both are small."""
    X, y, _ = data(12, 1)
    r = Reference(Problem(Formula("gaussian", 0.5), X, y, X, alpha, fit_intercept))
    model = made(ExactKernelRidge, alpha=alpha, fit_intercept=fit_intercept).fit(X, y)
    gp = model.variance(X, kind="gp")
    np.testing.assert_allclose(gp, to_floats(r.exact.gp), rtol=1e-3)
    assert (gp >= alpha * model.variance(X) * (1 - 1e-3)).all()


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_bias2_of_the_exact_estimator_is_within_rounding_of_the_kernel(fit_intercept: bool) -> None:
    """bias² is within 1e-14 k(x,x) of the truth, and neither negative nor above gp."""
    X, y, X_new = data(12, 1)
    X_new = np.concatenate([X, X_new])
    r = Reference(Problem(Formula("gaussian", 0.5), X, y, X_new, 1e-6, fit_intercept))
    model = made(ExactKernelRidge, alpha=1e-6, fit_intercept=fit_intercept).fit(X, y)
    bias2, gp = (model.variance(X_new, kind=kind) for kind in ("bias2", "gp"))
    np.testing.assert_allclose(bias2, to_floats(r.exact.bias2), rtol=1e-6, atol=1e-14)
    assert (bias2 >= 0).all()
    assert (bias2 <= gp).all()


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_bias2_of_the_exact_estimator_at_its_rows_has_digits_of_its_own(
    fit_intercept: bool,
) -> None:
    """At a row of the data bias² is right to 1%, however far it is below ε k(x,x)."""
    X, y, _ = data(12, 1)
    r = Reference(Problem(Formula("laplacian", 0.5), X, y, X, 1e-9, fit_intercept))
    options = {"kernel": "laplacian", "alpha": 1e-9, "fit_intercept": fit_intercept}
    model = made(ExactKernelRidge, **options).fit(X, y)
    np.testing.assert_allclose(
        model.variance(X, kind="bias2"),
        to_floats(r.exact.bias2),
        rtol=1e-2,
    )


# Fits that fail, and models that keep what is theirs


def test_a_refit_that_rounding_stops_leaves_the_old_model() -> None:
    """A refit that is refused in the middle of its numerics leaves the answers as they were."""
    X, y, X_new = data(20)
    model = made(ExactKernelRidge, fit_intercept=True).fit(X, y)
    before = answers(model, X_new)
    heard = Heard()
    twins = np.concatenate([X, X * (1 + 1e-14)])
    model.set_params(alpha=1e-300)
    heard.ask("fit", lambda: model.fit(twins, np.tile(y, 2) + 1000))
    assert not heard.answers or heard.cautions
    if heard.refusals:
        same(answers(model, X_new), before)


@contextlib.contextmanager
def interrupted(call: int) -> Iterator[list[int]]:
    """KeyboardInterrupt at a certain call of one of the library's functions; 0 only counts them."""
    home, counted = str(Path(sketchridge.__file__).parent), [0]

    def watch(frame: Any, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(home):
            counted[0] += 1
            if counted[0] == call:
                sys.setprofile(None)
                raise KeyboardInterrupt

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        yield counted
    finally:
        sys.setprofile(before)


def moments(action: Callable[[], Any]) -> list[int]:
    """About fifty calls of an action at which to interrupt it, most of them near its end."""
    with interrupted(0) as counted:
        action()
    total = counted[0]
    spread = np.linspace(1, total, 20).astype(int)
    return sorted({*map(int, spread), *range(max(1, total - 60), total + 1, 2)})


def stop(action: Callable[[], Any], moment: int) -> None:
    """Interrupt an action; it may be done before, since not every run takes as many calls."""
    with contextlib.suppress(KeyboardInterrupt), interrupted(moment):
        action()


FITS = [
    (ExactKernelRidge, {"fit_intercept": True}),
    (ExactKernelRidge, {"alpha": "gcv", "noise_variance": "auto"}),
    (SketchedKernelRidge, {"fit_intercept": True}),
    (SketchedKernelRidge, {"alpha": "gcv", "noise_variance": "auto", "sketch_size": "auto"}),
    (SketchedKernelRidge, {"solver": "pcg"}),
]


@pytest.mark.parametrize(("cls", "options"), FITS)
def test_an_interrupted_refit_leaves_the_old_model(cls: type, options: dict) -> None:
    """After Ctrl-C at any moment of a refit, answers are all of the old model or all of the new."""
    X, y, X_new = data(20)
    old = made(cls, **options).fit(X, y)
    new_X, new_y = data(15, seed=5)[0], np.arange(15.0) + 1000
    new = clone(old).fit(new_X, new_y)
    before, after = answers(old, X_new), answers(new, X_new)
    for moment in moments(lambda: clone(old).fit(new_X, new_y)):
        model = made(cls, **options).fit(X, y)
        stop(partial(model.fit, new_X, new_y), moment)
        found = answers(model, X_new)
        same(found, after if np.allclose(found[0], after[0]) else before)


@pytest.mark.parametrize("options", [f[1] for f in FITS if f[0] is SketchedKernelRidge])
def test_an_interrupted_partial_fit_can_be_repeated(options: dict) -> None:
    """After Ctrl-C at any moment of partial_fit, repeating it counts the new rows once."""
    X, y, X_new = data(20)
    start = made(SketchedKernelRidge, **options).fit(X[:12], y[:12])
    before = answers(start, X_new)
    after = answers(copy.deepcopy(start).partial_fit(X[12:], y[12:]), X_new)
    for moment in moments(lambda: copy.deepcopy(start).partial_fit(X[12:], y[12:])):
        model = made(SketchedKernelRidge, **options).fit(X[:12], y[:12])
        stop(partial(model.partial_fit, X[12:], y[12:]), moment)
        found = answers(model, X_new)
        if np.allclose(found[1], after[1], rtol=1e-9):
            same(found, after)
        else:
            same(found, before)
            same(answers(model.partial_fit(X[12:], y[12:]), X_new), after)


def indefinite(A: Array, B: Array) -> Array:
    return np.sin(10 * np.abs(A[:, None, 0] - B[None, :, 0]))


BAD_FITS = {
    "a bad parameter": {"alpha": -1.0},
    "a kernel that is not positive": {"kernel": indefinite, "bandwidth": "median"},
    "a kernel off its domain": {"kernel": CubicSpline(), "bandwidth": "median"},
}


@both
@pytest.mark.parametrize("bad", BAD_FITS.values(), ids=BAD_FITS)
def test_a_refit_that_fails_leaves_the_old_model(cls: type, bad: dict) -> None:
    """After a refit that raised, the answers are those of before."""
    X, y, X_new = data(20)
    model = made(cls, fit_intercept=True).fit(X, y)
    before = answers(model, X_new)
    model.set_params(**bad)
    with pytest.raises(ValueError, match=r"\."):
        model.fit(3 * X[:10], y[:10] + 1000)
    same(answers(model, X_new), before)


@both
@pytest.mark.parametrize("bad", BAD_FITS.values(), ids=BAD_FITS)
def test_a_first_fit_that_fails_leaves_no_model(cls: type, bad: dict) -> None:
    """After a first fit that raised, everything raises NotFittedError."""
    X, y, X_new = data(20)
    model = made(cls, **bad)
    with pytest.raises(ValueError, match=r"\."):
        model.fit(3 * X, y)
    with pytest.raises(NotFittedError):
        check_is_fitted(model)
    for question in (model.predict, model.variance, model.predict_interval):
        with pytest.raises(NotFittedError):
            question(X_new)


@both
def test_changing_the_data_after_a_fit_changes_nothing(cls: type) -> None:
    """The model keeps its own copy of X and y."""
    X, y, X_new = data(20)
    model = made(cls).fit(X, y)
    before = answers(model, X_new)
    X[:] = 0
    y[:] = 0
    same(answers(model, X_new), before)


def test_changing_the_sketch_after_a_fit_changes_nothing() -> None:
    """The model keeps its own copy of a sketch given as an array."""
    X, y, X_new = data(20)
    S = np.random.default_rng(0).standard_normal((6, 20))
    model = made(SketchedKernelRidge, sketch=S, sketch_size="auto").fit(X, y)
    before = answers(model, X_new)
    S[:] = 0
    same(answers(model, X_new), before)


def test_a_buffer_can_be_used_again_for_partial_fit() -> None:
    """Rows given in one and the same buffer are the rows that were in it."""
    X, y, X_new = data(30)
    model, expected = made(SketchedKernelRidge), made(SketchedKernelRidge)
    buffer, values = np.empty((15, 2)), np.empty(15)
    for rows in (slice(0, 15), slice(15, 30)):
        buffer[:], values[:] = X[rows], y[rows]
        model.partial_fit(buffer, values)
        expected.partial_fit(X[rows].copy(), y[rows].copy())
    same(answers(model, X_new), answers(expected, X_new))


LATER = [
    {"solver": "pcg"},
    {"solver": "sketch"},
    {"fit_intercept": True},
    {"alpha": 5.0},
    {"noise_variance": 9.0},
    {"kernel": "laplacian"},
    {"sketch_size": 3},
]


@pytest.mark.parametrize("later", LATER, ids=str)
def test_parameters_set_after_a_fit_wait_for_the_next_one(later: dict) -> None:
    """set_params leaves a fitted model's answers as they are, or says that it must be fitted."""
    X, y, X_new = data(20)
    model = made(SketchedKernelRidge).fit(X, y)
    before = answers(model, X_new)
    heard = Heard()
    model.set_params(**later)
    found = heard.ask("answers", lambda: answers(model, X_new))
    if not heard.refusals:
        same(found, before)


class Wave:
    """A kernel of the user's with a state."""

    def __init__(self) -> None:
        self.scale = np.array([0.5])

    def __call__(self, A: Array, B: Array) -> Array:
        return np.exp(-(((A[:, None] - B[None]) / self.scale) ** 2).sum(axis=2))


def stretched(kernel: Any) -> None:
    kernel.theta = kernel.theta + 1


LATER_KERNELS: dict[str, tuple[Callable[[], Any], Callable[[Any, Any], Any]]] = {
    "set_params": (lambda: RBF(0.5), lambda m, k: m.set_params(kernel__length_scale=5.0)),
    "theta": (lambda: 2.0 * RBF(0.5), lambda m, k: stretched(k)),
    "a part": (lambda: 2.0 * RBF(0.5), lambda m, k: setattr(k.k2, "length_scale", 5.0)),
    "state": (Wave, lambda m, k: k.scale.fill(5.0)),
    "attribute": (Wave, lambda m, k: setattr(k, "scale", 5.0)),
    "method": (lambda: Wave().__call__, lambda m, k: k.__self__.scale.fill(5.0)),
    "Custom": (lambda: Custom(Wave()), lambda m, k: k.function.scale.fill(5.0)),
    "partial": (lambda: partial(gaussian, h=[0.5]), lambda m, k: k.keywords["h"].append(5.0)),
}


def gaussian(A: Array, B: Array, h: list[float]) -> Array:
    return np.exp(-(((A[:, None] - B[None]) / h[-1]) ** 2).sum(axis=2))


@both
@pytest.mark.parametrize("way", LATER_KERNELS)
def test_a_kernel_changed_after_a_fit_changes_no_model(cls: type, way: str) -> None:
    """The model keeps its own copy of a kernel object; further rows go on with that copy."""
    X, y, X_new = data(20)
    make, change = LATER_KERNELS[way]
    kernel = make()
    model = made(cls, kernel=kernel, bandwidth="auto").fit(X, y)
    expected = made(cls, kernel=make(), bandwidth="auto").fit(X, y)
    change(model, kernel)
    same(answers(model, X_new), answers(expected, X_new))
    same([model.path_.loo], [expected.path_.loo])
    if isinstance(kernel, RBF):  # the estimator has the changed one for the next fit
        assert model.kernel.length_scale == 5.0
    model.partial_fit(X_new, y[:8])
    same(answers(model, X_new), answers(expected.partial_fit(X_new, y[:8]), X_new))


class Uncopied(Wave):
    """That does not let itself be copied, as something that holds a lock or a file."""

    def __deepcopy__(self, memo: Any) -> None:
        raise TypeError("cannot be copied")


@both
def test_a_kernel_that_cannot_be_copied_is_used_as_it_is(cls: type) -> None:
    X, y, X_new = data(20)
    model = made(cls, kernel=Uncopied(), bandwidth="auto").fit(X, y)
    same(
        answers(model, X_new),
        answers(made(cls, kernel=Wave()).set_params(bandwidth="auto").fit(X, y), X_new),
    )


def test_an_older_exact_mean_is_not_brought_back() -> None:
    """solver="pcg" set after a fit by sketching does not predict from an earlier fit."""
    X, y, X_new = data(20)
    model = made(SketchedKernelRidge, solver="pcg", sketch_size=20).fit(X, y)
    model.set_params(solver="sketch").fit(X, y + 100).set_params(solver="pcg")
    heard = Heard()
    mean = heard.ask("mean", lambda: model.predict(X_new))
    if not heard.refusals:
        exact = made(ExactKernelRidge).fit(X, y + 100).predict(X_new)
        np.testing.assert_allclose(mean, exact, rtol=1e-5)


# Parameters


BAD_VALUES = [
    ("tol", lambda m, X: m.variance(X, kind="v1", tol="a")),
    ("refine", lambda m, X: m.variance(X, refine="a")),
    ("kind", lambda m, X: m.variance(X, kind=3)),
    ("confidence_level", lambda m, X: m.predict_interval(X, confidence_level="a")),
    ("method", lambda m, X: m.certificate(3)),
]


@pytest.mark.parametrize(("name", "question"), BAD_VALUES, ids=[name for name, _ in BAD_VALUES])
def test_a_wrong_type_in_a_question_is_explained(name: str, question: Callable) -> None:
    """The error names what was given."""
    X, y, X_new = data(20)
    model = made(SketchedKernelRidge).fit(X, y)
    with pytest.raises((ValueError, TypeError), match=rf"{name}|certificate") as caught:
        question(model, X_new)
    assert re.search(r"'a'|3", str(caught.value))


BAD_SETTINGS = {
    "gamma": {"kernel": Polynomial(gamma="a")},
    "coef0": {"kernel": Polynomial(coef0="a")},
    "degree": {"kernel": Polynomial(degree="a")},
    "order": {"kernel": PeriodicSobolev(order="a")},
    "bandwidth": {"kernel": Gaussian(bandwidth="a"), "bandwidth": "median"},
    "alpha": {"alpha": [1.0]},
    "sketch_tol": {"sketch_tol": "a"},
    "sketch_size": {"sketch_size": "a"},
    "noise_variance": {"noise_variance": "a"},
    "dtype": {"dtype": 3},
    "backend": {"backend": 3},
    "solver": {"solver": 3},
    "random_state": {"random_state": "a"},
}


@pytest.mark.parametrize("name", BAD_SETTINGS)
def test_a_wrong_type_in_a_parameter_is_explained(name: str) -> None:
    """The error is a sentence with the parameter's name or its value."""
    X, y, _ = data(20)
    settings = BAD_SETTINGS[name]
    model = made(SketchedKernelRidge, **({"bandwidth": "median"} | settings))
    with pytest.raises((ValueError, TypeError), match=rf"{name}|'a'|\[1.0\]") as caught:
        model.fit(X, y)
    assert "not supported between" not in str(caught.value)


@pytest.mark.parametrize("order", [1, 2, 5, 10, 40, 130])
def test_periodic_sobolev_kernels_of_high_order_are_right_or_refused(order: int) -> None:
    """1 + 2 Σ cos(2πkt)/(2πk)^(2α), which for large α is 1."""
    X, y, X_new = data(20, 1)
    k = np.arange(1, 2001 if order > 1 else 200_001)
    t = np.concatenate([X, X_new])[:, 0]
    steps = t[:, None] - X[:, 0]
    waves = np.zeros_like(steps)
    for j in k if order == 2 else k[:50] if order > 2 else []:
        waves += 2 * np.cos(2 * np.pi * j * steps) / (2 * np.pi * j) ** (2.0 * min(order, 40))
    if order == 1:  # in closed form
        u = np.mod(steps, 1.0)
        waves = (u**2 - u + 1 / 6) / 2
    G = 1 + waves
    mean = G[20:] @ np.linalg.solve(G[:20] + 0.1 * np.eye(20), y)
    heard = Heard()
    model = made(ExactKernelRidge, kernel=PeriodicSobolev(order=order), bandwidth="median")
    heard.ask("fit", lambda: model.fit(X, y))
    if not heard.refusals:
        np.testing.assert_allclose(model.predict(X_new), mean, atol=1e-8)


# Backends and threads


def test_a_backend_object_is_not_changed_by_a_fit() -> None:
    """A backend given by the user has the same attributes before and after, whatever was fitted."""
    X, y, _ = data(20)
    for backend in (NumpyTiles(), TorchTiles(device="cpu")):
        before = dict(vars(backend))
        made(SketchedKernelRidge, backend=backend, sketch="rademacher", alpha=1e2).fit(X, y)
        assert dict(vars(backend)) == before


@pytest.mark.skipif(not os.environ.get("TRITON_INTERPRET"), reason="for Triton's interpreter")
def test_a_fused_backend_object_keeps_its_device_and_its_precision() -> None:
    """A dense sketch with a backend on a device of its own: fitted there, the object unchanged."""
    X, y, X_new = data(20)
    backend = TritonFused(device="cpu")
    before = {name: v for name, v in vars(backend).items() if not name.startswith("_")}
    options = {"sketch": "rademacher", "alpha": 10.0}
    model = made(SketchedKernelRidge, backend=backend, **options).fit(X, y)
    after = {name: v for name, v in vars(backend).items() if not name.startswith("_")}
    assert after == before
    expected = made(SketchedKernelRidge, **options).fit(X, y)
    same(answers(model, X_new), answers(expected, X_new), rtol=1e-3)


@pytest.mark.skipif(not os.environ.get("TRITON_INTERPRET"), reason="for Triton's interpreter")
def test_a_backend_does_not_keep_the_points_of_a_model_that_is_gone() -> None:
    """After a model is deleted, its backend holds no tensor with a row for each of its points."""
    import torch

    X, y, X_new = data(37)
    backend = TritonFused(device="cpu")
    model = made(SketchedKernelRidge, backend=backend).fit(X, y)
    model.variance(X_new)
    del model
    gc.collect()
    tensors = [o for o in gc.get_objects() if isinstance(o, torch.Tensor)]
    assert not [t.shape for t in tensors if 37 in t.shape]


@pytest.mark.parametrize("dtype", ["float32", "float7"])
def test_dtype_is_not_ignored_beside_a_backend_object(dtype: str) -> None:
    """A dtype that is unknown, or another than the object's, is obeyed or refused."""
    X, y, _ = data(20)
    heard = Heard()
    model = made(SketchedKernelRidge, backend=NumpyTiles(), dtype=dtype)
    heard.ask("fit", lambda: model.fit(X, y))
    assert heard.refusals or model.dtype_ == dtype


LOADED_WITHOUT_TORCH = """
import pickle, sys
import sketchridge.estimator
sys.modules["torch"] = None
try:
    model = pickle.load(open(sys.argv[1], "rb"))
except Exception as error:
    assert " " in str(error) and "backend" in str(error), error
else:
    print(*model.predict([[0.5, 0.5]]))
"""


def test_a_model_with_a_backend_object_is_loaded_elsewhere_or_says_why_not(tmp_path: Path) -> None:
    """Unpickled where its engine is missing, a model predicts, or names the backend it needs."""
    X, y, _ = data(20)
    model = made(SketchedKernelRidge, backend=TorchTiles(device="cpu")).fit(X, y)
    path = tmp_path / "model.pickle"
    path.write_bytes(pickle.dumps(model))
    done = run(LOADED_WITHOUT_TORCH, path)
    assert done.returncode == 0, done.stderr
    if done.stdout.strip():
        assert float(done.stdout) == pytest.approx(model.predict([[0.5, 0.5]])[0])


WITHOUT_AFFINITY = """
import os
if hasattr(os, "sched_getaffinity"):
    del os.sched_getaffinity
import numpy as np
from sketchridge import ExactKernelRidge, SketchedKernelRidge
X = np.random.default_rng(0).random((30, 2))
for cls in (ExactKernelRidge, SketchedKernelRidge):
    assert np.isfinite(cls(alpha=0.1).fit(X, X[:, 0]).predict(X)).all()
"""


def test_estimators_work_where_a_process_has_no_affinity() -> None:
    """macOS and Windows have no os.sched_getaffinity."""
    done = run(WITHOUT_AFFINITY)
    assert done.returncode == 0, done.stderr


OVERLAPPING = """
import threading
import numpy as np
from threadpoolctl import threadpool_info
from sketchridge import SketchedKernelRidge

first_inside, second_inside, first_done = (threading.Event() for _ in range(3))

def kernel(A, B):
    points = {A[0, 0], B[0, 0]}
    if 0.25 in points:
        first_inside.set()
        second_inside.wait(1)
    if 0.75 in points:
        second_inside.set()
        first_done.wait(1)
    return np.exp(-((A[:, None] - B[None]) ** 2).sum(axis=2))

def blas():
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]

X = np.random.default_rng(0).random((50, 2))
model = SketchedKernelRidge(kernel, alpha=0.1, sketch_size=10, solver="sketch", random_state=0)
model.fit(X, X[:, 0])
before, found = blas(), {}

def first():
    found[0.25] = model.predict([[0.25, 0.25]])
    first_done.set()

def second():
    first_inside.wait(5)
    found[0.75] = model.predict([[0.75, 0.75]])

threads = [threading.Thread(target=ask) for ask in (first, second)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
for x, mean in found.items():
    assert np.allclose(mean, model.predict([[x, x]]))
assert len(found) == 2
assert blas() == before, (before, blas())
"""


def test_overlapping_predictions_leave_blas_as_it_was() -> None:
    """A prediction that starts during another and ends after it gives BLAS its threads back."""
    done = run(OVERLAPPING, OPENBLAS_NUM_THREADS="2", MKL_NUM_THREADS="2")
    assert done.returncode == 0, done.stderr


FIRST_LARGE_FIT = """
import os, signal, sys, threading
import numpy as np
from sketchridge import SketchedKernelRidge

X = np.random.default_rng(0).random((16_384, 3))
model = SketchedKernelRidge(
    "gaussian", bandwidth=0.5, alpha=10.0, sketch_size=32, solver="sketch", random_state=0
)
if sys.argv[1] != "never":
    threading.Timer(float(sys.argv[1]), lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    try:
        model.fit(X, X[:, 0])
        threading.Event().wait(5)
    except KeyboardInterrupt:
        pass
model.fit(X, X[:, 0])
assert np.isfinite(model.predict(X[:5])).all()
print("torch" in sys.modules)
"""


@pytest.mark.skipif(shutil.which("nvidia-smi") is not None, reason="for machines without a GPU")
def test_looking_for_a_gpu_does_not_load_pytorch() -> None:
    """A fit large enough for a GPU does not import torch where there is none."""
    done = run(FIRST_LARGE_FIT, "never")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "False"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="sends a signal to itself")
@pytest.mark.parametrize("seconds", [0.02, 0.15])
def test_a_first_large_fit_can_be_interrupted_and_repeated(seconds: float) -> None:
    """Ctrl-C early in the first large fit leaves an interpreter in which a second one works."""
    done = run(FIRST_LARGE_FIT, seconds)
    assert done.returncode == 0, done.stderr


# Memory


@contextlib.contextmanager
def pretended_memory(monkeypatch: pytest.MonkeyPatch, free: int, where: str) -> Iterator[None]:
    """A system with so many bytes free, by /proc/meminfo and sysconf or by a control group."""
    plenty, kib = 2**50, 1024
    visible = free if where == "system" else plenty
    limit = free if where == "group" else plenty
    names = ("MemTotal", "MemFree", "MemAvailable")
    files = {
        "meminfo": "".join(f"{name}: {visible // kib} kB\n" for name in names),
        "memory.max": f"{limit}\n",
        "memory.high": f"{limit}\n",
        "memory.current": "0\n",
        "memory.stat": "inactive_file 0\n",
        "memory.limit_in_bytes": f"{limit}\n",
        "memory.usage_in_bytes": "0\n",
    }

    def opened(file: Any, *arguments: Any, **options: Any) -> Any:
        name = os.path.basename(os.fspath(file)) if isinstance(file, str | os.PathLike) else ""
        system = name in files and str(file).startswith(("/proc", "/sys"))
        if not system:
            return real_open(file, *arguments, **options)
        binary = "b" in (arguments[0] if arguments else options.get("mode", "r"))
        return io.BytesIO(files[name].encode()) if binary else io.StringIO(files[name])

    def configured(name: Any) -> int:
        pages = {"SC_PHYS_PAGES", "SC_AVPHYS_PAGES"}
        return visible // real_sysconf("SC_PAGE_SIZE") if name in pages else real_sysconf(name)

    real_open, real_sysconf = builtins.open, os.sysconf
    with monkeypatch.context() as patch:
        patch.setattr(builtins, "open", opened)
        patch.setattr(io, "open", opened)
        patch.setattr(os, "sysconf", configured)
        yield


MEMORY = [
    (ExactKernelRidge, {"alpha": 1.0}, 900, 900),
    (ExactKernelRidge, {"alpha": "gcv"}, 900, 900),
    (SketchedKernelRidge, {"sketch_size": 400}, 4000, 400),
    (SketchedKernelRidge, {"sketch_size": 400, "sketch": "gaussian"}, 4000, 400),
]
TILES = 2**22  # bytes that small blocks may take beside the matrices


@pytest.mark.parametrize("where", ["system", "group"])
@pytest.mark.parametrize(("cls", "options", "n", "columns"), MEMORY)
def test_a_fit_that_is_not_refused_has_the_memory_it_needs(
    cls: type,
    options: dict,
    n: int,
    columns: int,
    where: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With three matrices' room a fit stays within it, or is refused with the bytes it needs."""
    X, y, _ = data(n, 8)
    model = made(cls, **options)
    matrix = 8 * n * columns
    for free in (matrix // 2, 3 * matrix):
        refusal = ""
        tracemalloc.start()
        try:
            with pretended_memory(monkeypatch, free, where):
                clone(model).fit(X, y)
        except (ValueError, MemoryError) as error:
            refusal = str(error)
        finally:
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
        assert peak <= free + TILES, f"{peak / matrix:.1f} matrices where {free / matrix} are free"
        assert not refusal or re.search(r"[KMGT]i?B|bytes", refusal)


def test_a_saved_model_has_no_matrix_with_a_row_for_each_point_and_sketch_row() -> None:
    """A pickle is about as large as the points and m×m, and gives the same answers when loaded."""
    n, d, m = 3000, 4, 150
    X, y, X_new = data(n, d)
    model = made(SketchedKernelRidge, sketch_size=m).fit(X, y)
    saved = pickle.dumps(model)
    assert len(saved) <= 8 * (n * (d + 8) + 3 * m**2) + 2**17
    same(answers(pickle.loads(saved), X_new), answers(model, X_new))


@pytest.mark.slow
def test_a_saved_model_of_a_table_of_houses_is_small() -> None:
    """15,480 rows of 13 features with a sketch of 1,024 rows take at most 25 MB."""
    X, y, _ = data(15_480, 13)
    model = made(SketchedKernelRidge, sketch_size=1024, bandwidth=1.0).fit(X, y)
    assert len(pickle.dumps(model)) <= 25_000_000


# What users are told


@both
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_far_from_the_data_an_interval_is_not_a_point_at_zero(
    cls: type,
    fit_intercept: bool,
) -> None:
    """Far away an interval is as wide as y is spread, or something is said."""
    X, y, _ = data(80)
    y = y + 8
    options = {"bandwidth": "median", "alpha": "loo", "noise_variance": "auto"}
    if cls is SketchedKernelRidge:
        options["sketch_size"] = "auto"
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model = made(cls, **options, fit_intercept=fit_intercept).fit(X, y)
        low, high = model.predict_interval(np.full((1, 2), 100.0))
    half = (high - low)[0] / 2
    told = [str(w.message) for w in said if re.search(r"far|intercept|outside", str(w.message))]
    assert told or 1 <= half / y.std() <= 20
    assert told or low[0] < 8 < high[0]


@pytest.mark.parametrize("inside_a_pipeline", [False, True])
def test_warnings_point_to_the_line_that_called(inside_a_pipeline: bool) -> None:
    """A warning of a fit names the user's file, also where a pipeline stands between."""
    X, y, _ = data(20)
    model = made(SketchedKernelRidge, sketch_size=50)
    estimator = make_pipeline(StandardScaler(), model) if inside_a_pipeline else model
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        estimator.fit(X, y)
    assert [w for w in said if "sketch_size" in str(w.message)]
    assert {w.filename for w in said} == {__file__}


def test_warnings_of_partial_fit_point_to_the_line_that_called() -> None:
    """A warning of partial_fit names the user's file."""
    X, y, _ = data(20)
    model = made(SketchedKernelRidge, sketch_size=50)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model.partial_fit(X[:10], y[:10])
        model.partial_fit(X[10:], y[10:])
    assert said
    assert {w.filename for w in said} == {__file__}


@pytest.mark.slow
def test_a_warning_about_the_gap_shows_two_different_numbers() -> None:
    """Where a gap is only just too large, the message has digits enough to show it."""
    X, y, _ = data(4500, 12)
    model = made(SketchedKernelRidge, kernel="laplacian", bandwidth=3.0, alpha=0.5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gap = model.set_params(sketch_size="auto", sketch_tol=1e-9).fit(X, y).gap_
    assert gap > 1
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model.set_params(sketch_tol=(gap - 1) * (1 - 1e-4)).fit(X, y)
    texts = [str(w.message) for w in said if "gap" in str(w.message)]
    for text in texts:
        shown = re.findall(r"\d+\.\d+(?:e[+-]?\d+)?", text)
        assert len(set(shown[:2])) == 2, text


def test_a_hopeless_fit_ends() -> None:
    """No fit of forty rows takes more than five seconds, whatever its penalty."""
    X, y, _ = data(40)
    for alpha in (1e-300, 1e-100, 1e-18, 1e300):
        for cls in (ExactKernelRidge, SketchedKernelRidge):
            with at_most(5.0):
                Heard().ask("fit", lambda a=alpha, c=cls: made(c, alpha=a).fit(X, y))
