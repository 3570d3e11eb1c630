"""Learning the kernel: gradients, the choice of form, penalties, and data of every shape."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from helpers import DEVICE, assert_close, normal, uneven
from kernel_of_a_user import RationalQuadratic

from sketchridge import candidates, descent, loo
from sketchridge.backends import torch_loo
from sketchridge.candidates import Race
from sketchridge.descent import Chart, descend, started
from sketchridge.kernels import FORMS, Gaussian, Laplacian, Matern32, Matern52, Radial
from sketchridge.learning import cross_fitted_factor, learn, relevance, spreads
from sketchridge.loo import Problem, best_alpha, criterion_at, left_out, solved

Array = np.ndarray
KERNELS = [Gaussian(), Matern32(), Matern52(), RationalQuadratic(), Laplacian()]
AUTO = [Matern32(), Matern52(), Gaussian(), Laplacian()]
N, D = 40, 3

every_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=repr)
every_form = pytest.mark.parametrize("form", FORMS)
both_criteria = pytest.mark.parametrize("criterion", ["loo", "reml"])
with_and_without_intercept = pytest.mark.parametrize("fit_intercept", [False, True])
with_and_without_weights = pytest.mark.parametrize("weighted", [False, True])
one_target_or_several = pytest.mark.parametrize("q", [1, 2])


def problem_of(
    weighted: bool = False, fit_intercept: bool = True, q: int = 1, n: int = N
) -> Problem:
    X = normal(n, D)
    Y = 2 + np.sin(2 * X[:, :1]) + 0.1 * normal(n, q, seed=1)
    return Problem(X, Y, uneven(n) if weighted else np.ones(n), fit_intercept)


def learned(X: Array, Y: Array, w: Array | None = None, **options: object):
    w = np.ones(len(X)) if w is None else w
    settings = {"kernels": AUTO, "forms": FORMS, "fit_intercept": True, "seed": 0} | options
    return learn(X, Y, w, **settings)


def wavy(X: Array, noise: float = 0.1) -> Array:
    """A function of the first feature alone."""
    x = X[:, :1] / spreads(X[:, :1], np.ones(len(X)))
    return np.sin(2 * x) + noise * normal(len(X), 1, seed=9)


# The criteria and their gradients


@every_kernel
@both_criteria
@with_and_without_weights
@with_and_without_intercept
@one_target_or_several
def test_gradients_by_a_map_and_by_alpha(kernel, criterion, weighted, fit_intercept, q):
    problem = problem_of(weighted, fit_intercept, q)
    M, towards, step = 0.5 * normal(D, D, 2), normal(D, D, 3), 1e-5

    def value(M: Array, log_alpha: float) -> float:
        found = criterion_at(criterion, kernel, problem.X @ M, np.exp(log_alpha), problem)
        return found[0]

    log_alpha = np.log(0.07)
    _, by_U, by_log_alpha = criterion_at(criterion, kernel, problem.X @ M, 0.07, problem)
    along = (value(M + step * towards, log_alpha) - value(M - step * towards, log_alpha)) / 2
    above, below = value(M, log_alpha + step), value(M, log_alpha - step)
    analytic = ((problem.X.T @ by_U) * towards).sum()
    assert analytic == pytest.approx(along / step, rel=1e-6, abs=1e-7)
    assert by_log_alpha == pytest.approx((above - below) / (2 * step), rel=1e-6, abs=1e-7)


@every_kernel
@both_criteria
@with_and_without_weights
@with_and_without_intercept
@one_target_or_several
def test_pytorch_computes_the_same_criteria(kernel, criterion, weighted, fit_intercept, q):
    problem = problem_of(weighted, fit_intercept, q)
    U = problem.X @ (0.5 * normal(D, D, 2))
    ours = criterion_at(criterion, kernel, U, 0.07, problem)
    theirs = torch_loo.criterion_at(criterion, kernel, U, 0.07, problem, torch.device(DEVICE))
    for mine, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(other, mine, rtol=1e-10, atol=1e-12)


@every_kernel
@with_and_without_weights
@with_and_without_intercept
def test_pytorch_leaves_the_same_rows_out(kernel, weighted, fit_intercept):
    problem = problem_of(weighted, fit_intercept, 2)
    U = problem.X @ (0.5 * normal(D, D, 2))
    theirs = torch_loo.left_out(kernel, U, 0.07, problem, torch.device(DEVICE))
    np.testing.assert_allclose(theirs, left_out(kernel, U, 0.07, problem), rtol=1e-9, atol=1e-12)


def test_pytorch_says_where_the_matrix_is_indefinite():
    problem = problem_of(False, True, 1)
    U, device = np.zeros_like(problem.X), torch.device(DEVICE)
    assert torch_loo.criterion_at("loo", Gaussian(), U, 1e-300, problem, device) is None
    assert torch_loo.left_out(Gaussian(), U, 1e-300, problem, device) is None
    assert left_out(Gaussian(), U, 1e-300, problem) is None


@both_criteria
def test_pytorch_says_where_the_matrix_is_not_finite(criterion):
    problem = problem_of(False, True, 1)
    U = problem.X.copy()
    U[3] = np.nan
    for module in (loo, torch_loo):
        device = [torch.device(DEVICE)] if module is torch_loo else []
        assert module.criterion_at(criterion, Gaussian(), U, 0.1, problem, *device) is None
        assert module.left_out(Gaussian(), U, 0.1, problem, *device) is None


@every_form
@every_kernel
@both_criteria
def test_gradients_in_the_chart_of_every_form(form, kernel, criterion):
    problem = problem_of(weighted=True, q=2)
    chart = Chart(form, np.array([2.0, 5.0, 3.0]), 0.05)
    theta = chart.start + 0.1 * np.random.default_rng(4).standard_normal(len(chart.start))
    step = 1e-5

    def value(theta: Array) -> float:
        U = chart.coordinates(theta, problem.X)
        found = criterion_at(criterion, kernel, U, np.exp(theta[-1]), problem)
        return found[0] + chart.pull(theta)[0]

    U = chart.coordinates(theta, problem.X)
    assert_close(U, problem.X @ chart.map(theta))
    _, by_U, by_log_alpha = criterion_at(criterion, kernel, U, np.exp(theta[-1]), problem)
    gradient = np.append(chart.gradient(theta, problem.X, U, by_U), by_log_alpha)
    gradient += chart.pull(theta)[1]
    steps = step * np.eye(len(theta))
    numeric = [(value(theta + e) - value(theta - e)) / (2 * step) for e in steps]
    np.testing.assert_allclose(gradient, numeric, rtol=1e-6, atol=1e-7)


@with_and_without_weights
@with_and_without_intercept
def test_leave_one_out_is_what_leaving_a_row_out_gives(weighted, fit_intercept):
    problem = problem_of(weighted, fit_intercept, q=2, n=15)
    kernel, alpha = Matern32(1.5), 0.1
    G = kernel(problem.X, problem.X)
    model = solved(G, alpha, problem)
    for i in range(3):
        others = np.delete(np.arange(15), i)
        rest = solved(G[np.ix_(others, others)], alpha, problem.some(others))
        mean, gp = rest.predict(G[i : i + 1, others])
        assert_close(model.residuals[i], problem.Y[i] - mean[0])
        assert_close(1 / model.b[i], gp[0] + alpha / problem.w[i])


@with_and_without_intercept
def test_the_restricted_likelihood_is_that_of_contrasts(fit_intercept):
    """Of Zᵀy with orthonormal Z orthogonal to the constant, up to a constant of n."""
    problem = problem_of(weighted=True, fit_intercept=fit_intercept, n=12)
    Z = np.linalg.qr(np.column_stack([np.ones(12), np.eye(12)[:, :-1]]))[0][:, 1:]
    Z = Z if fit_intercept else np.eye(12)
    nu = Z.shape[1]
    differences = []
    for h in (1.0, 3.0):
        A = Z.T @ (Matern52(h)(problem.X, problem.X) + np.diag(0.2 / problem.w)) @ Z
        y = Z.T @ problem.Y[:, 0]
        direct = np.log(y @ np.linalg.solve(A, y) / nu) + np.linalg.slogdet(A)[1] / nu
        found = criterion_at("reml", Matern52(), problem.X / h, 0.2, problem)
        differences.append(found[0] - direct)
    assert differences[0] == pytest.approx(differences[1], rel=1e-9, abs=1e-10)


@both_criteria
def test_absolute_distances_by_log_bandwidths(criterion):
    """∂L/∂log h_j = Σ ∂L/∂A ∘ k ∘ |Δ_j|/h_j, also where rows share values of a feature."""
    problem = problem_of(weighted=True)
    X = np.round(2 * problem.X) / 2
    problem = Problem(X, problem.Y, problem.w, True)
    h, step = np.array([1.0, 2.0, 3.0]), 1e-5
    found = criterion_at(criterion, Laplacian(), X / h, 0.07, problem)
    for j, e in enumerate(step * np.eye(D)):
        above, below = (
            criterion_at(criterion, Laplacian(), X / (h * np.exp(by)), 0.07, problem)[0]
            for by in (e, -e)
        )
        analytic = -(X[:, j] / h[j]) @ found[1][:, j]
        assert analytic == pytest.approx((above - below) / (2 * step), rel=1e-6, abs=1e-8)


def test_a_matrix_that_rounding_makes_indefinite_is_no_error():
    problem = problem_of()
    U = np.zeros_like(problem.X)
    U[:, 0] = 1e-9 * np.arange(N)
    assert criterion_at("loo", Gaussian(), U, 1e-300, problem) is None
    found = descend("loo", Gaussian(), problem, Chart("isotropic", np.full(D, 1e3), 1e-8))
    assert np.isfinite(found.theta).all()


# The penalty


@with_and_without_weights
@with_and_without_intercept
def test_the_path_of_alpha_is_leave_one_out(weighted, fit_intercept):
    problem = problem_of(weighted, fit_intercept, q=2)
    G = Matern32(2.0)(problem.X, problem.X)
    path = best_alpha(G, problem)
    for i in (50, 70, 99):
        r = solved(G, path.alphas[i], problem).residuals
        direct = problem.w @ (r**2).sum(axis=1) / (2 * problem.w.sum())
        assert_close(path.loo[i], direct, condition=10)
    good = path.loo <= 1.01 * path.loo.min()
    assert path.alpha == path.alphas[good].max()


# What is learned


@pytest.mark.parametrize("n", [80, 520])
def test_what_matters_is_found(n):
    X = normal(n, 4) * [1.0, 1e-9, 1e6, 3.0]
    found = learned(X, wavy(X), forms=["isotropic", "ard"])
    share = relevance(found.map, spreads(X, np.ones(n)))
    assert found.form == "ard"
    assert share[0] > 0.8
    assert found.criterion == ("reml" if n == 80 else "loo")
    assert_close(found.kernel.coordinates(X), X @ found.map)
    assert share.sum() == pytest.approx(1)


@pytest.fixture(scope="module")
def steps():
    """What is learned of a function of steps, as trees like it."""
    X = normal(200, 3)
    Y = np.floor(2 * X[:, :1]) + np.floor(1.5 * X[:, 1:2]) + 0.05 * normal(200, 1, seed=2)
    return X, learned(X, Y)


def test_absolute_distances_suit_steps(steps):
    X, found = steps
    assert found.kernel.name == "Laplacian"
    assert found.form == "ard"
    assert relevance(found.map, spreads(X, np.ones(200)))[2] < 0.1
    assert_close(found.map, np.diag(1 / found.kernel.bandwidth))


def test_kernels_are_compared_in_one_form_and_then_the_forms_of_the_best(steps):
    tried = [(step.kernel.name, step.form) for step in steps[1].curve]
    assert tried[:4] == [(kernel.name, "ard") for kernel in AUTO]
    assert tried[4:] == [("Laplacian", "isotropic")]  # it has no full map
    X = normal(100, 3)
    smooth = learned(X, wavy(X))
    assert smooth.kernel.name != "Laplacian"
    assert "Laplacian" not in [step.kernel.name for step in smooth.curve[4:]]


def test_a_function_of_high_frequency_is_not_taken_for_noise():
    """Many bandwidths, which start at the median distance, ended at α = 1000."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(300, 10))
    f = np.sin(25 * X[:, 0]) * (1 + X[:, 1])
    y = f + 0.3 * f.std() * rng.standard_normal(300)
    X, y = (X - X.mean(axis=0)) / X.std(axis=0), (y - y.mean()) / y.std()
    race = Race(Problem(X, y[:, None], np.ones(300), True), "reml", ["ard"])
    found = race.only(Matern32(), "ard")
    assert found.chart.form == "ard"
    assert found.alpha < 1
    assert relevance(found.map, np.ones(10))[:2].sum() > 0.8
    assert race.steps[0].score < 0.3


def test_noise_is_learned_from_where_a_single_bandwidth_ended_only_if_that_is_better(monkeypatch):
    rng = np.random.default_rng(0)
    problem = Problem(normal(200, 4), rng.standard_normal((200, 1)), np.ones(200), True)
    race = Race(problem, "reml", ["ard"])
    plain = race._descended(Matern32(), problem, started("reml", Matern32(), problem, "ard"))
    monkeypatch.setattr(candidates, "_NOISE", 0.0)
    found = race.learned(Matern32(), "ard", problem)
    assert min(found.values) <= min(plain.values)


def test_learning_again_does_not_end_worse_than_before(monkeypatch):
    problem = problem_of(n=120)
    race = Race(problem, "loo", ["ard"])
    before = race.learned(Matern32(), "ard", problem.some(slice(0, 80)))
    there = criterion_at("loo", Matern32(), before.coordinates(problem.X), before.alpha, problem)
    assert there is not None
    chart = before.chart
    noise = descent.Descent(Matern32(), chart, np.append(chart.start[:-1], 9.0), (there[0] + 1,), 0)
    for fresh in (race.learned(Matern32(), "ard", problem), noise):
        monkeypatch.setattr(race, "learned", lambda *arguments, fresh=fresh: fresh)
        again = race.learned_again(before, problem)
        assert min(again.values) <= there[0]
        assert (again is fresh) == (fresh is not noise)


def test_the_first_kernel_is_kept_unless_another_is_better_by_a_margin():
    race = Race(problem_of(n=300), "loo", ["ard"])

    def candidate(kernel, error):
        chart = Chart("ard", np.ones(D), 0.1)
        found = descent.Descent(kernel, chart, chart.start, (), 0.0)
        return candidates._Candidate(found, np.full(300, error), np.ones(300), 0)

    first = candidate(Matern32(), 1.0)
    assert race.best_kernel([first]) is first
    assert race.best_kernel([first, candidate(Gaussian(), 0.985)]) is first
    better = candidate(Laplacian(), 0.95)
    assert race.best_kernel([first, candidate(Gaussian(), 0.96), better]) is better


@pytest.mark.parametrize(("trial", "counted"), [(100, 300), (250, 400)])
def test_rows_that_were_not_learned_from_decide_where_there_are_enough(trial, counted, monkeypatch):
    """All 400 are left out; where less than half of them were not learned from, all count."""
    monkeypatch.setattr(candidates, "_TRIAL", trial)
    X = normal(400, 2)
    w = np.ones(400)
    problem = Problem(X, np.sin(2 * X[:, :1]) + 0.1 * normal(400, 1, 1), w, True)
    race = Race(problem, "reml", ["isotropic"])
    found = race.tried(Matern32(), "isotropic")
    assert len(found.errors) == counted
    assert len(found.fresh.errors) == 400 - trial
    tries = [
        left_out(Matern32(), found.found.coordinates(X), found.found.alpha / lower, problem)
        for lower in (1, 4)
    ]
    least = min(tries, key=lambda each: (each**2).mean())
    assert_close(found.errors, least[400 - counted :, 0] ** 2)


@pytest.mark.slow
def test_a_full_map_finds_a_direction():
    X = normal(600, 3)
    Y = np.sin(2 * (X[:, :1] + X[:, 1:2])) + 0.05 * normal(600, 1, seed=2)
    found = learned(X, Y, kernels=[Matern52()], forms=["ard", "full"])
    assert found.form == "full"
    direction = np.linalg.svd(found.map)[0][:, 0]
    assert abs(direction @ [1, 1, 0]) / np.sqrt(2) > 0.99
    assert [step.form for step in found.curve] == ["ard", "full"]


def test_high_frequencies_are_not_taken_for_noise():
    X = np.random.default_rng(0).random((400, 1))
    found = learned(X, np.sin(60 * X) + 0.1 * normal(400, 1), kernels=[Matern52()])
    assert found.form == "isotropic"
    assert found.kernel.bandwidth[0] < 0.2


def test_the_order_of_rows_changes_nothing():
    X = normal(300, 3)
    Y = wavy(X)
    order = np.random.default_rng(1).permutation(300)
    one = learned(X, Y, kernels=AUTO[:1], forms=["ard"], rows=100)
    two = learned(X[order], Y[order], kernels=AUTO[:1], forms=["ard"], rows=100)
    assert len(one.rows) == 100
    np.testing.assert_array_equal(X[one.rows], X[order][two.rows])
    np.testing.assert_allclose(one.map, two.map, rtol=1e-6)
    other = learned(X, Y, kernels=AUTO[:1], forms=["ard"], rows=100, seed=1)
    assert set(other.rows) != set(one.rows)


def test_the_order_of_features_on_a_grid_changes_nothing():
    """There (a, b) and (b, a) are alike but for their order."""
    X = np.unique(np.rint(normal(90, 3)), axis=0)
    options = {"kernels": [Matern32()], "forms": ["isotropic"], "fit_intercept": True, "seed": 0}
    one, other = (learn(A, wavy(X), np.ones(len(X)), **options) for A in (X, X[:, [2, 0, 1]]))
    np.testing.assert_array_equal(one.rows, other.rows)


def test_the_same_data_and_seed_give_the_same():
    X = normal(100, 3)
    one, two = learned(X, wavy(X)), learned(X, wavy(X))
    np.testing.assert_array_equal(one.map, two.map)
    assert (one.alpha, one.form) == (two.alpha, two.form)


def test_units_of_features_and_targets_do_not_matter():
    X = normal(120, 3)
    Y = wavy(X)
    units = np.array([1024.0, 2.0**-30, 1.0])
    one = learned(X, Y, kernels=AUTO[:1], forms=["ard"])
    two = learned(X * units, Y * 2.0**40, kernels=AUTO[:1], forms=["ard"])
    rows = [np.sort(found.rows) for found in (one, two)]
    np.testing.assert_array_equal(*rows)
    np.testing.assert_allclose(two.map * units[:, None], one.map, rtol=0.02, atol=1e-3)


def test_weight_two_counts_more_and_no_intercept_is_obeyed():
    X = normal(60, 2)
    found = learned(X, wavy(X), uneven(60), forms=["ard"], fit_intercept=False)
    assert np.isfinite(found.map).all()
    assert found.alpha > 0


def test_several_targets_one_of_them_constant():
    X = normal(80, 2)
    Y = np.column_stack([1e6 * wavy(X)[:, 0], np.full(80, 3.0)])
    one = learned(X, Y[:, :1], kernels=AUTO[:1], forms=["ard"])
    two = learned(X, Y, kernels=AUTO[:1], forms=["ard"])
    np.testing.assert_allclose(one.map, two.map)


# Odd data


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 7, 12, 29, 30, 31])
@pytest.mark.parametrize("d", [1, 2, 20])
def test_few_rows(n, d):
    X = normal(n, d)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = learned(X, wavy(X) if n > 2 else normal(n, 1))
    assert np.isfinite(found.map).all()
    assert np.isfinite(found.alpha)
    assert found.alpha > 0
    assert found.form == "isotropic" or (n >= 30 and 2 * d < n)


def odd_features() -> dict[str, Array]:
    X = normal(60, 3)
    rng = np.random.default_rng(3)
    spike = X.copy()
    spike[0] = 1e12
    rare = np.column_stack([X, rng.random(60) < 0.03])
    return {
        "a constant feature": np.column_stack([X[:, 0], np.full(60, 0.1), X[:, 1]]),
        "a tiny spread": X * [1.0, 1e-9, 1e-200],
        "a duplicated feature": X[:, [0, 1, 1, 0]],
        "an outlier": spike,
        "heavy tails": rng.standard_cauchy((60, 3)),
        "a rare feature": rare.astype(float),
        "a large offset": X + 1e8,
        "integers": np.round(2 * X) + 10.0 * np.arange(60)[:, None],
        "huge": X * 1e150,
    }


@pytest.mark.parametrize("name", odd_features())
@pytest.mark.parametrize("form", ["isotropic", "ard", "full"])
def test_odd_features(name, form):
    X = odd_features()[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = learned(X, wavy(X), kernels=AUTO[:2], forms=[form])
    assert found.form == form
    assert np.isfinite(found.map).all()
    zero = (found.map == 0).all(axis=1)
    np.testing.assert_array_equal(zero, X.min(axis=0) == X.max(axis=0))
    fitted = found.kernel.fitted(X)
    assert np.isfinite(fitted(X[:5], X)).all()


@pytest.mark.parametrize("name", odd_features())
def test_odd_features_and_absolute_distances(name):
    X = odd_features()[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = learned(X, wavy(X), kernels=[Laplacian()])
    assert found.form in ("isotropic", "ard")
    assert_close(found.kernel.coordinates(X), X @ found.map)
    assert np.isfinite(found.kernel.fitted(X)(X[:5], X)).all()


@pytest.mark.parametrize("what", ["y", "X"])
def test_nothing_to_learn(what):
    X = normal(20, 2) if what == "y" else np.ones((1, 2))
    found = learned(X, np.ones((len(X), 1)))
    assert np.isfinite(found.map).all()
    assert found.form == "isotropic"


def test_a_profile_without_a_slope_is_refused():
    kernel = Radial(lambda s, xp: np.exp(-s), name="mine")
    with pytest.raises(ValueError, match="without the slope of its profile"):
        learned(normal(30, 2), normal(30, 1), kernels=[kernel])


def test_an_infinite_slope_is_allowed():
    """exp(−√s) has one at s = 0."""
    kernel = Radial(
        lambda s, xp: xp.exp(-xp.sqrt(s)), lambda s, xp: -0.5 * xp.exp(-xp.sqrt(s)) / xp.sqrt(s)
    )
    X = normal(60, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = learned(X, wavy(X), kernels=[kernel], forms=["ard"])
    assert relevance(found.map, spreads(X, np.ones(60)))[0] > 0.7


def test_unknown_forms_are_refused():
    with pytest.raises(ValueError, match="forms must be some of"):
        learned(normal(30, 2), normal(30, 1), forms=["round"])


# Spreads, starts and cross-fitting


def test_spreads():
    x = normal(2000, 1)
    w = np.ones(2000)
    assert spreads(x, w)[0] == pytest.approx(1, rel=0.1)
    assert spreads(1e6 + 1e-3 * x, w)[0] == pytest.approx(1e-3, rel=0.1)
    assert spreads(np.full((5, 1), 0.1), np.ones(5))[0] == 0
    outlier = x.copy()
    outlier[0] = 1e9
    assert spreads(outlier, w)[0] == pytest.approx(1, rel=0.1)
    rare = np.zeros((1000, 1))
    rare[:10] = 1
    assert spreads(rare, np.ones(1000))[0] == pytest.approx(0.0995, rel=0.01)
    two, once = np.repeat(x[:500], 2, axis=0), x[:500]
    assert_close(spreads(two, np.ones(1000)), spreads(once, np.full(500, 2.0)))


def test_many_bandwidths_start_at_the_median_distance():
    problem = problem_of()
    chart = started("loo", Matern32(), problem, "ard")
    assert chart.alpha == 0.01
    assert (chart.base == chart.base[0]).all()


def test_cross_fitting_widens_what_learning_narrowed():
    X = normal(40, 8)
    Y = wavy(X, noise=0.5)
    options = {"kernel": Matern32(), "fit_intercept": True, "seed": 0}
    wide = cross_fitted_factor(X, Y, np.ones(40), form="ard", **options)
    assert 1 < wide < 10
    assert wide == cross_fitted_factor(X, Y, np.ones(40), form="ard", **options)
    X = normal(250, 1)
    factor = cross_fitted_factor(X, wavy(X), np.ones(250), form="isotropic", **options)
    assert 1 <= factor < 1.2


@pytest.mark.parametrize("n", [3, 9, 10, 15])
def test_cross_fitting_of_few_rows(n):
    X = normal(n, 2)
    options = {"kernel": Matern32(), "form": "isotropic", "fit_intercept": True, "seed": 0}
    factor = cross_fitted_factor(X, wavy(X), np.ones(n), **options)
    assert 1 <= factor < np.inf
