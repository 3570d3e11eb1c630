"""Everything a fit found: made completely, never changed, saved small; weights as repetition, noise
by degrees of freedom, and rows that come later."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError, replace
from typing import Any

import numpy as np
import pytest
from helpers import (
    ENTRY_CASES,
    KERNEL_CASES,
    LAPLACIAN,
    SKETCH_CASES,
    KernelCase,
    assert_close,
    matrix_of,
    normal,
    nystrom,
    targets,
    uneven,
    unit_cube,
    values,
    variance_of,
    weights_of_y,
)

from sketchridge import data as data_module
from sketchridge.backends import NumpyTiles
from sketchridge.data import Data, estimated_noise, extended_data, prepared
from sketchridge.exact_fit import ExactFitted, extend_exact, select_exact
from sketchridge.fitted import Fitted, Settings
from sketchridge.kernels import Gaussian, Laplacian, Linear, Polynomial, Precomputed
from sketchridge.model import Choices
from sketchridge.selection import extend, select
from sketchridge.sketches import ArraySketch, RPCholeskySketch

N, M, T, Q, ALPHA = 40, 10, 6, 2, 0.5

with_and_without_intercept = pytest.mark.parametrize(
    "fit_intercept", [False, True], ids=["plain", "intercept"]
)
with_and_without_weights = pytest.mark.parametrize(
    "weighted", [False, True], ids=["even", "weighted"]
)
solvers = pytest.mark.parametrize("solver", ["sketch", "pcg"])
every_sketch = pytest.mark.parametrize("sketch_case", SKETCH_CASES, ids=str)


def silent(text: str) -> None:
    return None


def settings(*, kernel: Any = None, **changes: Any) -> Settings:
    given = {
        "kernels": (kernel or Laplacian(),),
        "bandwidth": 1.5,
        "alpha": ALPHA,
        "sketch": "rpcholesky",
        "sketch_size": M,
        "sketch_tol": 0.1,
        "solver": "sketch",
        "noise_variance": None,
        "fit_intercept": False,
        "backend": "numpy",
        "dtype": "float64",
        "seed": 3,
    }
    return Settings(**{**given, **changes})


def exact_settings(*, kernel: Any = None, **changes: Any) -> Choices:
    given = {
        "kernels": (kernel or Laplacian(),),
        "bandwidth": 1.5,
        "alpha": ALPHA,
        "noise_variance": None,
        "fit_intercept": False,
        "backend": "auto",
    }
    return Choices(**{**given, **changes})


def given_rows(weighted: bool = True, n: int = N) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows of which a few are the same, and may have other targets."""
    X, Y = normal(n, 3), targets(n, Q) + 3
    X[n // 2 : n // 2 + 5] = X[:5]
    Y[n // 2] = Y[0]
    return X, Y, uneven(n) if weighted else np.ones(n)


def fit(chosen: Settings, X, Y, w) -> Fitted:
    square = isinstance(chosen.kernel, Precomputed)
    data = prepared(X, Y, w, fit_intercept=chosen.fit_intercept, square=square)
    return select(chosen, data, silent)


def fit_exact(chosen: Choices, X, Y, w) -> ExactFitted:
    return select_exact(chosen, prepared(X, Y, w, fit_intercept=chosen.fit_intercept), silent)


KINDS = ("v2", "v3", "gp", "bias2")


def answers(model: Fitted, X_new) -> dict[str, np.ndarray]:
    """What is asked of a fitted model, in units of y² for variances of the mean."""
    query = model.at(X_new)
    found = {kind: getattr(model.ridge, kind)(query) for kind in KINDS}
    for kind in ("v2", "v3"):
        found[kind] = np.outer(found[kind], model.noise)
    return found | {
        "mean": model.mean(query),
        "noise": model.noise,
        "df": np.array(model.ridge.df),
        "loo": np.array(model.loo_error),
    }


def assert_same(
    first: dict, second: dict, but: tuple[str, ...] = (), kind: str = "float64"
) -> None:
    """The mean, and what is made of its coefficients, leave-one-out errors and with alpha="loo" the
    noise, as far as ``kind`` says."""
    by_mean = ("mean", "loo", "noise", "v2", "v3")
    for name in first:
        if name not in but:
            assert_close(first[name], second[name], kind if name in by_mean else "float64")


# Data


@with_and_without_intercept
def test_targets_are_about_one_and_nothing_is_lost(fit_intercept):
    X, Y, w = given_rows()
    Y = Y * np.array([1e-9, 1e12])
    data = prepared(X, Y, w, fit_intercept=fit_intercept)
    assert len(data.X) == len(data.rows) == N - 5
    assert ((np.abs(data.Y).max(axis=0) > 0.7) & (np.abs(data.Y).max(axis=0) < 1.5)).all()
    np.testing.assert_array_equal(np.frexp(data.scale)[0], 0.5)  # powers of two
    assert_close(data.center + data.scale * data.Y, data.rows.Y)
    assert_close(data.center, data.w @ data.rows.Y / w.sum() if fit_intercept else np.zeros(2))


@pytest.mark.parametrize("y", [0.0, 5.0])
@with_and_without_intercept
def test_constant_targets_have_units_too(y, fit_intercept):
    data = prepared(normal(9, 2), np.full((9, 1), y), np.ones(9), fit_intercept=fit_intercept)
    assert np.isfinite(data.Y).all()
    assert_close(data.center + data.scale * data.Y, np.full((9, 1), y))


def test_rows_without_weight_are_left_out():
    X, Y, w = given_rows()
    w[::3] = 0
    left = w > 0
    one, other = (
        prepared(X[rows], Y[rows], w[rows], fit_intercept=True) for rows in (slice(None), left)
    )
    np.testing.assert_array_equal(one.X, other.X)
    np.testing.assert_array_equal(one.Y, other.Y)
    np.testing.assert_array_equal(one.w, other.w)


def test_a_kernel_matrix_loses_rows_and_columns():
    X, Y, w = given_rows()
    w[::3] = 0
    G = LAPLACIAN.kernel(X, X)
    data = prepared(G, Y, w, fit_intercept=False, square=True)
    plain = prepared(X, Y, w, fit_intercept=False)
    assert_close(data.X, LAPLACIAN.kernel(plain.X, plain.X))
    np.testing.assert_array_equal(X[data.columns], plain.X)
    np.testing.assert_array_equal(data.w, plain.w)


def test_the_data_are_a_copy():
    X, Y, w = given_rows()
    model = fit(settings(fit_intercept=True), X, Y.copy(), w.copy())
    before = answers(model, normal(T, 3, seed=7))
    X[:] = 0
    assert_same(answers(model, normal(T, 3, seed=7)), before)


# Select


@with_and_without_weights
@with_and_without_intercept
@every_sketch
def test_a_fit_is_dense_algebras(sketch_case, fit_intercept, weighted):
    """Over all rows as they were given, repeated ones included."""
    X, Y, w = given_rows(weighted)
    X_new = normal(T, 3, seed=7)
    distinct = len(prepared(X, Y, w, fit_intercept=False).rows)
    chosen = settings(sketch=sketch_case.make(M, distinct, 3), fit_intercept=fit_intercept)
    model = fit(chosen, X, Y, w)
    S = np.zeros((model.factor.sketch.size, N))
    S[:, model.data.rows.first] = matrix_of(model.factor.sketch, distinct)
    G, G_x = model.kernel(X, X), model.kernel(X_new, X)
    lam, hat = ALPHA / w.sum(), nystrom(G, S)
    ell_2 = weights_of_y(hat, G_x, w, lam, fit_intercept)
    ell_3 = weights_of_y(hat, nystrom(G, S, G_x), w, lam, fit_intercept)
    smoother = weights_of_y(hat, hat, w, lam, fit_intercept)
    query = model.at(X_new)
    assert_close(model.mean(query), ell_3 @ Y)
    assert_close(model.ridge.v2(query), variance_of(ell_2, w))
    assert_close(model.ridge.v3(query), variance_of(ell_3, w))
    assert_close(model.ridge.df, np.trace(smoother))
    if not weighted:
        squares = ((Y - smoother @ Y) ** 2).sum(axis=0)
        alike = 1  # of the repeated rows one has the same y too: it is no replicate
        assert_close(model.noise, squares / (N - alike - np.trace(smoother)))


@with_and_without_intercept
@with_and_without_weights
def test_noise_counts_squares_within_distinct_rows(fit_intercept, weighted):
    """σ̂² = (Σ w r² over rows as given)/(n − df + replicates)."""
    X, Y, w = given_rows(weighted)
    model = fit(settings(fit_intercept=fit_intercept), X, Y, w)
    residuals = Y - model.mean(model.at(X))
    left = len(model.data.rows) - model.ridge.df + model.data.rows.replicates
    assert_close(model.noise, w @ residuals**2 / left)


@pytest.mark.parametrize("scale", [1e-100, 1.0, 1e100])
def test_noise_is_in_units_of_y(scale):
    X, Y, w = given_rows()
    one, other = (fit(settings(fit_intercept=True), X, c * Y, w) for c in (1.0, scale))
    assert_close(other.noise / scale / scale, one.noise)
    query = one.at(normal(T, 3, seed=7))
    assert_close(other.mean(query) / scale, one.mean(query))
    assert_close(other.loo_error / scale / scale, one.loo_error)


def test_noise_is_that_of_linear_regression():
    """Ordinary least squares: RSS/(n − p), with the right expectation; 30 deviations of χ² by
    Chebyshev, ≤ 1/900 a target."""
    X, noise = normal(400, 3), 0.5 * normal(400, 2, seed=2)
    residuals = noise - X @ np.linalg.lstsq(X, noise, rcond=None)[0]
    data = prepared(X, noise, np.ones(400), fit_intercept=False)
    squares = (residuals**2).sum(axis=0)
    estimate = estimated_noise(data, squares / data.scale**2, 397.0)
    assert_close(estimate, squares / 397)
    assert (np.abs(estimate / 0.25 - 1) < 30 * np.sqrt(2 / 397)).all()


def test_noise_of_an_interpolant_is_finite():
    data = prepared(normal(5, 2), targets(5), np.ones(5), fit_intercept=False)
    assert np.isfinite(estimated_noise(data, np.zeros(1), 0.0)).all()


def test_replicates_give_the_noise_of_an_interpolant():
    """Each row twice, with independent noise of variance 0.25: within ±30 deviations of χ²/200."""
    X = np.repeat(normal(200, 2), 2, axis=0)
    Y = np.sin(X[:, :1]) + 0.5 * targets(400)
    model = fit(settings(alpha=1e-9, sketch_size=200, bandwidth=0.01), X, Y, np.ones(400))
    assert abs(model.noise[0] / 0.25 - 1) < 30 * np.sqrt(2 / 200)
    assert_close(model.noise, model.data.rows.within / 200, scale=0.25, condition=1e3)


def test_noise_of_targets_with_few_values_is_warned_of():
    X, y = np.repeat(normal(20, 2), 3, axis=0), np.tile([[0.0], [0.0], [1.0]], (20, 1))
    with pytest.warns(UserWarning, match="repeat both X and y of another row.*give noise_variance"):
        fit(settings(sketch_size=20), X, y, np.ones(60))


@pytest.mark.parametrize("given", [0.0, 2.5, [1.0, 4.0]])
def test_a_noise_that_was_given_is_kept(given):
    X, Y, w = given_rows()
    chosen = settings(noise_variance=given)
    np.testing.assert_array_equal(fit(chosen, X, Y, w).noise, np.broadcast_to(given, 2))


# Weights


@pytest.mark.filterwarnings("ignore:alpha=")
@with_and_without_intercept
@solvers
@pytest.mark.parametrize("alpha", [ALPHA, "gcv", "loo"])
def test_a_weight_is_a_repetition_in_everything(alpha, solver, fit_intercept):
    X, Y, X_new = normal(N, 3), targets(N, Q) + 3, normal(T, 3, seed=7)
    times = 1 + np.arange(N) % 3
    chosen = settings(alpha=alpha, solver=solver, fit_intercept=fit_intercept)
    weighted = fit(chosen, X, Y, times.astype(float))
    order = np.argsort(np.concatenate([np.arange(t) + 0.0 for t in times]), kind="stable")
    X_all, Y_all = (np.repeat(A, times, axis=0)[order] for A in (X, Y))  # first appearances first
    repeated = fit(chosen, X_all, Y_all, np.ones(times.sum()))
    assert_same(answers(weighted, X_new), answers(repeated, X_new), kind="pcg")
    assert_close(weighted.gap, repeated.gap)
    for name in ("lam", "df", "gcv", "loo"):
        assert_close(getattr(weighted.path, name), getattr(repeated.path, name))


@with_and_without_intercept
@pytest.mark.parametrize("alpha", [ALPHA, "gcv", "loo"])
def test_exact_fits_take_a_weight_for_a_repetition(alpha, fit_intercept):
    X, Y, X_new = normal(N, 3), targets(N, Q) + 3, normal(T, 3, seed=7)
    times = 1 + np.arange(N) % 3
    chosen = exact_settings(alpha=alpha, fit_intercept=fit_intercept)
    one = fit_exact(chosen, X, Y, times.astype(float))
    X_all, Y_all = (np.repeat(A, times, axis=0) for A in (X, Y))
    other = fit_exact(chosen, X_all, Y_all, np.ones(times.sum()))
    query = one.at(X_new)
    assert_close(one.mean(query), other.mean(query))
    assert_close(one.ridge.v1(query), other.ridge.v1(query))
    assert_close(one.noise, other.noise)
    assert_close(one.loo_error, other.loo_error)


SCALED = [(alpha, c) for alpha in (ALPHA, "gcv", "loo") for c in (0.25, 3.0, 1e6)]


@pytest.mark.filterwarnings("ignore:alpha=")
@with_and_without_intercept
@solvers
@pytest.mark.parametrize(("alpha", "c"), SCALED)
def test_weights_and_alpha_times_a_constant_change_the_noise_only(alpha, c, solver, fit_intercept):
    """Which is that of weight 1, and c times as large: variances in units of y² stay."""
    X, Y, X_new = normal(N, 3), targets(N, Q) + 3, normal(T, 3, seed=7)
    w = uneven(N)
    chosen = settings(alpha=alpha, solver=solver, fit_intercept=fit_intercept)
    scaled = chosen if isinstance(alpha, str) else replace(chosen, alpha=c * alpha)
    one, other = fit(chosen, X, Y, w), fit(scaled, X, Y, c * w)
    assert_same(answers(one, X_new), answers(other, X_new), but=("noise",), kind="pcg")
    assert_close(other.noise, c * one.noise, "pcg" if solver == "pcg" else "float64")
    assert_close(other.gap, one.gap)
    assert_close(other.certificate.relative, one.certificate.relative)
    for name in ("lam", "df", "gcv", "loo"):
        assert_close(getattr(other.path, name), getattr(one.path, name))


@with_and_without_intercept
@pytest.mark.parametrize(("alpha", "c"), SCALED)
def test_exact_weights_and_alpha_times_a_constant_change_the_noise_only(alpha, c, fit_intercept):
    X, Y, X_new, w = normal(N, 3), targets(N, Q) + 3, normal(T, 3, seed=7), uneven(N)
    chosen = exact_settings(alpha=alpha, fit_intercept=fit_intercept)
    scaled = chosen if isinstance(alpha, str) else replace(chosen, alpha=c * alpha)
    one, other = fit_exact(chosen, X, Y, w), fit_exact(scaled, X, Y, c * w)
    query = one.at(X_new)
    assert_close(other.mean(query), one.mean(query))
    assert_close(other.noise, c * one.noise)
    assert_close(c * other.ridge.v1(query), one.ridge.v1(query))
    assert_close(other.loo_error, one.loo_error)


# Extend


@with_and_without_weights
@with_and_without_intercept
@solvers
@every_sketch
def test_extended_is_selected_at_once(sketch_case, solver, fit_intercept, weighted):
    """With the same kernel and sketch: new rows, rows there are already, rows without weight."""
    X, Y, w = given_rows(weighted)
    w[25] = 0
    X_new = normal(T, 3, seed=7)
    distinct = len(prepared(X[:20], Y[:20], w[:20], fit_intercept=False).rows)
    sketch = sketch_case.make(M, distinct, 3)
    chosen = settings(sketch=sketch, solver=solver, fit_intercept=fit_intercept)
    first = fit(chosen, X[:20], Y[:20], w[:20])
    second = extend(first, chosen, X[20:30], Y[20:30], w[20:30], silent)
    third = extend(second, chosen, X[30:], Y[30:], w[30:], silent)
    kernel = replace(third.kernel)
    again = replace(chosen, kernels=(kernel,), sketch=third.factor.sketch, sketch_size=None)
    at_once = fit(again, X, Y, w)
    np.testing.assert_array_equal(third.data.X, at_once.data.X)
    assert_same(answers(third, X_new), answers(at_once, X_new), kind="pcg")


def test_rows_that_are_there_already_change_weights_only():
    X, Y, w = given_rows()
    chosen = settings(fit_intercept=True)
    first = fit(chosen, X, Y, w)
    again = extend(first, chosen, X, Y, w, silent)
    X_new = normal(T, 3, seed=7)
    assert len(again.sample) == len(first.sample)
    doubled = fit(replace(chosen, sketch=again.factor.sketch, sketch_size=None), X, Y, 2 * w)
    query = again.at(X_new)
    assert_close(again.mean(query), doubled.mean(query))
    assert_close(again.ridge.v2(query), doubled.ridge.v2(query))


def test_nothing_can_be_appended():
    X, Y, w = given_rows()
    first = fit(settings(), X, Y, w)
    same = extend(first, settings(), X[:0], Y[:0], w[:0], silent)
    none = extend(first, settings(), X[:3], Y[:3], np.zeros(3), silent)
    for model in (same, none):
        assert_same(answers(model, X[:T]), answers(first, X[:T]))


def test_an_automatic_sketch_may_grow_but_keeps_its_rows():
    X = unit_cube(400, 3)
    Y, w = np.sin(9 * X[:, :1]) + 0.1 * targets(400), uneven(400)
    chosen = settings(sketch_size=None, alpha=1e-2, bandwidth=0.3)
    first = fit(chosen, X[:100], Y[:100], w[:100])
    second = extend(first, chosen, X[100:], Y[100:], w[100:], silent)
    kept = first.factor.sketch.indices
    assert second.factor.sketch.size > len(kept)
    np.testing.assert_array_equal(second.factor.sketch.indices[: len(kept)], kept)


def test_extended_data_are_those_prepared_at_once():
    X, Y, w = given_rows()
    data = prepared(X[:22], Y[:22], w[:22], fit_intercept=True)
    more, X_new = extended_data(data, X[22:], Y[22:], w[22:], True)
    at_once = prepared(X, Y, w, fit_intercept=True)
    np.testing.assert_array_equal(more.X, at_once.X)
    np.testing.assert_array_equal(more.Y, at_once.Y)
    np.testing.assert_array_equal(more.X[len(data.X) :], X_new)


# Nothing is changed


def frozen_arrays(*arrays: np.ndarray) -> tuple[np.ndarray, ...]:
    """Copies that cannot be written to."""
    copies = tuple(array.copy() for array in arrays)
    for array in copies:
        array.flags.writeable = False
    return copies


def bytes_of(data: Data) -> list[bytes]:
    """Whatever was put into it, to the last bit; what is computed from it may be kept beside."""
    rows = data.rows
    arrays = (data.X, data.center, data.scale, rows.first, rows.group, rows.Y_given, rows.w_given)
    return [array.tobytes() for array in arrays]


@solvers
@with_and_without_intercept
@every_sketch
def test_select_and_extend_change_nothing_they_were_given(sketch_case, fit_intercept, solver):
    X, Y, w = frozen_arrays(*given_rows())
    h = frozen_arrays(np.array([1.0, 1.5, 2.0]))[0]
    data = prepared(X, Y, w, fit_intercept=fit_intercept)
    sketch = sketch_case.make(M, len(data.rows), 3)
    chosen = settings(sketch=sketch, bandwidth=h, fit_intercept=fit_intercept, solver=solver)
    before = bytes_of(data), pickle.dumps(chosen)
    model = select(chosen, data, silent)
    assert (bytes_of(data), pickle.dumps(chosen)) == before
    found = answers(model, X[:T])
    X_more, Y_more, w_more = frozen_arrays(normal(8, 3, seed=9), targets(8, Q), uneven(8))
    extend(model, chosen, X_more, Y_more, w_more, silent)
    assert (bytes_of(model.data), pickle.dumps(chosen)) == before
    for name, value in answers(model, X[:T]).items():
        np.testing.assert_array_equal(value, found[name])


@with_and_without_intercept
def test_exact_fits_change_nothing_they_were_given(fit_intercept):
    X, Y, w = frozen_arrays(*given_rows())
    chosen = exact_settings(alpha="loo", fit_intercept=fit_intercept)
    data = prepared(X, Y, w, fit_intercept=fit_intercept)
    before = bytes_of(data)
    model = select_exact(chosen, data, silent)
    assert bytes_of(data) == before
    query = model.at(X[:T])
    found = model.mean(query), model.ridge.v1(query), model.loo_error
    extend_exact(model, chosen, X[:5] + 0.1, Y[:5], w[:5], silent)
    assert bytes_of(model.data) == before
    np.testing.assert_array_equal(model.mean(query), found[0])
    np.testing.assert_array_equal(model.ridge.v1(query), found[1])
    assert model.loo_error == found[2]


@pytest.mark.parametrize("name", ["data", "kernel", "ridge", "noise", "omega", "gap"])
def test_a_fitted_model_is_frozen(name):
    model = fit(settings(), *given_rows())
    with pytest.raises(FrozenInstanceError):
        setattr(model, name, None)


class Stop(Exception):
    """What an impatient user does."""


@pytest.mark.parametrize("when", range(4))
def test_an_interrupted_extension_leaves_the_old_model(when):
    X, Y, w = given_rows()
    chosen = settings(sketch_size=None, alpha="gcv", solver="pcg", sketch_tol=10.0)
    model = fit(chosen, X, Y, w)
    before, said = answers(model, X[:T]), []

    def interrupt(text: str) -> None:
        said.append(text)
        if len(said) > when:
            raise Stop

    try:
        extend(model, chosen, normal(9, 3, seed=9), targets(9, Q), np.ones(9), interrupt)
    except Stop:
        assert len(said) == when + 1
    for name, value in answers(model, X[:T]).items():
        np.testing.assert_array_equal(value, before[name])
    assert len(model.sample) == len(before["mean"]) + N - 5 - T


# Files


def reloaded(model: Any) -> Any:
    return pickle.loads(pickle.dumps(model))


@with_and_without_weights
@with_and_without_intercept
@solvers
@every_sketch
def test_a_saved_model_predicts_the_same(sketch_case, solver, fit_intercept, weighted):
    """Means bit for bit; columns of landmarks are made again, so that variances may round."""
    X, Y, w = given_rows(weighted)
    X_new = normal(T, 3, seed=7)
    distinct = len(prepared(X, Y, w, fit_intercept=False).rows)
    chosen = settings(
        sketch=sketch_case.make(M, distinct, 3), solver=solver, fit_intercept=fit_intercept
    )
    model = fit(chosen, X, Y, w)
    again = reloaded(model)
    np.testing.assert_array_equal(again.mean(again.at(X_new)), model.mean(model.at(X_new)))
    np.testing.assert_array_equal(again.noise, model.noise)
    assert_same(answers(again, X_new), answers(model, X_new))
    assert_close(again.gap, model.gap)
    assert again.certificate == model.certificate
    assert again.ridge.precision == model.ridge.precision
    np.testing.assert_array_equal(again.eigenvalues, model.eigenvalues)
    for name in ("lam", "df", "gcv", "loo"):
        assert_close(getattr(again.path, name), getattr(model.path, name))


@pytest.mark.parametrize("case", [case for case in KERNEL_CASES if case.id != "callable"], ids=str)
def test_a_saved_model_of_every_kernel_predicts_the_same(case: KernelCase):
    X, Y, X_new = case.points(N), targets(N, Q), case.points(T, seed=7)
    bandwidth = getattr(case.kernel, "bandwidth", None)
    model = fit(settings(kernel=case.kernel, bandwidth=bandwidth), X, Y, uneven(N))
    again = reloaded(model)
    np.testing.assert_array_equal(again.mean(again.at(X_new)), model.mean(model.at(X_new)))
    assert_same(answers(again, X_new), answers(model, X_new))


def test_a_saved_model_of_a_kernel_matrix_predicts_the_same():
    X, Y, w = given_rows()
    X_new = normal(T, 3, seed=7)
    kernel = Gaussian(1.0)
    chosen = settings(kernel=Precomputed(), bandwidth="median")
    model = fit(chosen, kernel(X, X), Y, w)
    again = reloaded(model)
    G_new = kernel(X_new, X)
    np.testing.assert_array_equal(again.mean(again.at(G_new)), model.mean(model.at(G_new)))
    assert_close(again.ridge.v2(again.at(G_new)), model.ridge.v2(model.at(G_new)))


@every_sketch
def test_a_saved_model_can_be_extended(sketch_case):
    X, Y, w = given_rows()
    X_new = normal(T, 3, seed=7)
    distinct = len(prepared(X, Y, w, fit_intercept=False).rows)
    chosen = settings(sketch=sketch_case.make(M, distinct, 3), fit_intercept=True)
    model = fit(chosen, X, Y, w)
    more = (normal(8, 3, seed=9), targets(8, Q), uneven(8))
    one, other = (extend(m, chosen, *more, silent) for m in (model, reloaded(model)))
    assert_same(answers(one, X_new), answers(other, X_new))


def test_a_model_that_was_saved_twice_is_the_same():
    model = fit(settings(fit_intercept=True), *given_rows())
    once = reloaded(model)
    twice = reloaded(once)
    X_new = normal(T, 3, seed=7)
    for name, value in answers(once, X_new).items():
        np.testing.assert_array_equal(answers(twice, X_new)[name], value)


@pytest.mark.parametrize("solver", ["sketch", "pcg"])
def test_a_saved_model_has_no_matrix_as_long_as_the_data_and_as_wide_as_the_sketch(solver):
    """X, y, w and two numbers for each row, and two m×m matrices."""
    n, m = 3000, 150
    X, y = unit_cube(n, 3), targets(n)
    model = fit(settings(sketch_size=m, bandwidth=0.3, solver=solver), X, y, np.ones(n))
    model.ridge.v2(model.at(X[:5]))  # whatever it keeps in memory is not saved
    width = 3 + 1 + 1 + 2 + (solver == "pcg")
    assert len(pickle.dumps(model)) < 8 * (n * (width + 6) + 2 * m * m) + 20_000


@pytest.mark.parametrize("sketch_case", ENTRY_CASES, ids=str)
def test_a_saved_model_of_a_dense_sketch_has_its_sums_once(sketch_case):
    n, m = 1000, 40
    X, y = unit_cube(n, 3), targets(n)
    chosen = settings(sketch=sketch_case.make(m, n, 3), sketch_size=None, bandwidth=0.3)
    model = fit(chosen, X, y, np.ones(n))
    model.ridge.v2(model.at(X[:5]))
    assert len(pickle.dumps(model)) < 8 * (n * (m + 13) + 3 * m * m) + 20_000


def test_a_saved_model_of_another_device_is_loaded_with_numpy(monkeypatch):
    model = fit(settings(), *given_rows())
    saved = pickle.dumps(model)

    def missing(spec: object, n: int = 0) -> None:
        raise ImportError("This backend needs PyTorch")

    monkeypatch.setattr(data_module, "as_backend", missing)
    with pytest.warns(UserWarning, match="computes with NumPy here. This backend needs PyTorch"):
        again = pickle.loads(saved)
    assert isinstance(again.backend, NumpyTiles)
    X_new = normal(T, 3, seed=7)
    np.testing.assert_array_equal(again.mean(again.at(X_new)), model.mean(model.at(X_new)))


def test_a_saved_model_for_which_a_device_has_no_room_says_so(monkeypatch):
    saved = pickle.dumps(fit(settings(), *given_rows()))

    def full(*given: object) -> None:
        raise RuntimeError("CUDA out of memory")  # as PyTorch has it

    monkeypatch.setattr(NumpyTiles, "points", full)
    with pytest.raises(RuntimeError, match="out of memory"):
        pickle.loads(saved)


@with_and_without_intercept
@with_and_without_weights
@pytest.mark.parametrize("alpha", [ALPHA, "gcv"])
def test_a_saved_exact_model_predicts_the_same(alpha, fit_intercept, weighted):
    X, Y, w = given_rows(weighted)
    X_new = normal(T, 3, seed=7)
    model = fit_exact(exact_settings(alpha=alpha, fit_intercept=fit_intercept), X, Y, w)
    again = reloaded(model)
    query = again.at(X_new)
    np.testing.assert_array_equal(again.mean(query), model.mean(model.at(X_new)))
    for kind in ("v1", "gp", "bias2"):
        found = getattr(again.ridge, kind)(query)
        assert_close(found, getattr(model.ridge, kind)(model.at(X_new)))
    assert_close(again.loo_error, model.loo_error)
    assert_close(again.eigenvalues, model.eigenvalues)
    assert_close(again.path.gcv, model.path.gcv)


def test_a_saved_exact_model_has_no_matrix():
    n = 800
    X, y = unit_cube(n, 3), targets(n)
    model = fit_exact(exact_settings(), X, y, np.ones(n))
    model.ridge.v1(model.at(X[:5]))
    assert len(pickle.dumps(model)) < 8 * n * 16 + 20_000


# Exact fits


@with_and_without_weights
@with_and_without_intercept
def test_an_exact_fit_is_dense_algebras(fit_intercept, weighted):
    """Over all rows as they were given, repeated ones included."""
    X, Y, w = given_rows(weighted)
    X_new = normal(T, 3, seed=7)
    model = fit_exact(exact_settings(fit_intercept=fit_intercept), X, Y, w)
    G, G_x, lam = model.kernel(X, X), model.kernel(X_new, X), ALPHA / w.sum()
    ell = weights_of_y(G, G_x, w, lam, fit_intercept)
    smoother = weights_of_y(G, G, w, lam, fit_intercept)
    query = model.at(X_new)
    assert_close(model.mean(query), ell @ Y)
    assert_close(model.ridge.v1(query), variance_of(ell, w))
    assert_close(model.ridge.df, np.trace(smoother))
    left = len(model.data.rows) + model.data.rows.replicates - np.trace(smoother)
    assert_close(model.noise, w @ (Y - smoother @ Y) ** 2 / left)


@pytest.mark.parametrize("criterion", ["gcv", "loo"])
@with_and_without_intercept
def test_an_exact_fit_chooses_the_minimizer_on_its_grid(criterion, fit_intercept):
    X, Y, w = given_rows()
    Y = 3 * np.sin(X[:, :1]) + targets(N) / np.sqrt(w)[:, None]
    model = fit_exact(exact_settings(alpha=criterion, fit_intercept=fit_intercept), X, Y, w)
    path = model.path
    scores = getattr(path, criterion)
    within = 1.0 if criterion == "gcv" else 1.01
    at = np.flatnonzero(scores <= within * scores.min())[-1]
    chosen = path.lam[at]
    assert_close(model.ridge.lam * model.kernel.unit, chosen)
    fixed = fit_exact(
        exact_settings(alpha=float(chosen * w.sum()), fit_intercept=fit_intercept), X, Y, w
    )
    assert_close(fixed.path.gcv, path.gcv)
    assert_close(fixed.loo_error, path.loo[at])


@with_and_without_intercept
def test_an_extended_exact_fit_is_that_to_all_rows(fit_intercept):
    X, Y, w = given_rows()
    chosen = exact_settings(fit_intercept=fit_intercept)
    first = fit_exact(chosen, X[:22], Y[:22], w[:22])
    second = extend_exact(first, chosen, X[22:], Y[22:], w[22:], silent)
    at_once = fit_exact(replace(chosen, kernels=(first.kernel,)), X, Y, w)
    one, other = (model.at(normal(T, 3, seed=7)) for model in (second, at_once))
    assert_close(second.mean(one), at_once.mean(other))
    assert_close(second.ridge.v1(one), at_once.ridge.v1(other))
    assert_close(second.noise, at_once.noise)


# What is refused, and warned of


SHAPES = r"positive finite number, one such number for each of the 3 features, a map \(3, k\)"
REFUSED = {
    "a bandwidth below 0": ({"bandwidth": -1.0}, SHAPES),
    "a bandwidth of 0": ({"bandwidth": 0.0}, SHAPES),
    "an infinite bandwidth": ({"bandwidth": np.inf}, SHAPES),
    "too many bandwidths": ({"bandwidth": np.ones(4)}, SHAPES),
    "a map of other points": ({"bandwidth": np.ones((2, 3))}, SHAPES),
    "a map of nothing": ({"bandwidth": np.ones((3, 0))}, SHAPES),
    "a map with NaN": ({"bandwidth": np.full((3, 2), np.nan)}, SHAPES),
    "text": ({"bandwidth": ["a"]}, SHAPES),
    "a kernel without bandwidth": (
        {"kernel": Linear(), "bandwidth": 1.0},
        r"kernel Linear.* has no bandwidth, but bandwidth=1.0 was given",
    ),
    "a sketch cannot shrink": (
        {"sketch": RPCholeskySketch(indices=np.arange(20))},
        "sketch_size=10 does not go with a given sketch of 20 rows",
    ),
    "an array cannot grow": (
        {"sketch": normal(5, N)},
        "sketch_size=10 does not go with a given sketch of 5 rows.*nor grow where it is an array",
    ),
    "a sketch of other rows": (
        {"sketch": RPCholeskySketch(indices=np.array([N + 3]))},
        f"selects row {N + 3}, but there are only",
    ),
    "a tiny alpha": ({"alpha": 1e-320}, "alpha = .* is beyond floating point beside kernel"),
    "an alpha that is tiny for the kernel": (
        {"kernel": Polynomial(2), "bandwidth": None, "alpha": 1e-200},
        "beyond floating point beside kernel values of about",
    ),
}


@pytest.mark.parametrize(("changes", "text"), REFUSED.values(), ids=REFUSED)
def test_error_is_a_sentence(changes, text):
    X, Y, w = given_rows()
    if "Polynomial" in repr(changes.get("kernel")):
        X = 1e40 * X
    with pytest.raises(ValueError, match=text):
        fit(settings(**changes), X, Y, w)


def test_a_sketch_larger_than_the_distinct_rows_is_capped():
    X, Y, w = given_rows()
    with pytest.warns(UserWarning, match="sketch_size=38 is more than the 35 distinct training"):
        model = fit(settings(sketch_size=38), X, Y, w)
    assert model.factor.sketch.size == 35


def test_a_chosen_penalty_too_small_for_its_sketch_is_warned_of():
    X = unit_cube(200, 3)
    with pytest.warns(UserWarning, match=r"alpha='gcv' chose λ = .*, too small for a sketch of 5"):
        fit(settings(alpha="gcv", sketch_size=5), X, np.sin(9 * X[:, :1]), np.ones(200))


def test_an_array_sketch_may_have_more_rows_than_there_are_points():
    X, Y, w = given_rows()
    model = fit(settings(sketch=normal(60, N), sketch_size=None), X, Y, w)
    assert isinstance(model.factor.sketch, ArraySketch)
    assert model.factor.complete


def test_the_seed_decides_sketch_and_probe():
    X, Y, w = given_rows()
    one, same, other = (fit(settings(seed=seed), X, Y, w) for seed in (3, 3, 4))
    np.testing.assert_array_equal(one.factor.sketch.indices, same.factor.sketch.indices)
    assert one.gap == same.gap
    assert not np.array_equal(one.factor.sketch.indices, other.factor.sketch.indices)


@pytest.mark.parametrize("alpha", [50.0, 1e-5])
def test_the_plan_decides_the_precision(alpha):
    X, Y, w = given_rows()
    model = fit(settings(dtype="auto", alpha=alpha, sketch="gaussian"), X, Y, w)
    ratio = model.ratio
    assert model.ridge.precision == model.plan.variance(model.sample.scales, ratio)
    expected = model.plan.sketch(
        model.sample.scales, model.sample.scales.trace / model.ridge.lam, ("float32", "float64")
    )
    assert model.factor.precision == expected


def test_question_is_about_the_rows_given():
    X, Y, w = given_rows()
    model = fit(settings(), X, Y, w)
    query = model.at(X[:4])
    assert len(query) == 4
    assert_close(query.points.host(), model.kernel.coordinates(X[:4]))
    assert isinstance(model.data, Data)
    assert_close(values(model.kernel, X[:4], X[:4]), query.columns(model.sample).host()[:4])
