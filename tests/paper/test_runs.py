"""What makes the rows is the paper: fast forms equal `exact.py`, and nothing leaks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sketchridge import ActiveLearner, exact
from sketchridge.kernels import Gaussian
from sketchridge.paper.options import FRESH, Options, blocks
from sketchridge.paper.runs import real
from sketchridge.paper.runs.algebra import Exact, loo_alpha, sketched_spectrum
from sketchridge.paper.runs.campaign import Problem, first_labels, simulate
from sketchridge.paper.runs.gaps import DECAYS, GRID, KERNELS, Gaps, Smooth, even_points
from sketchridge.paper.runs.mixture import Mixture, mixture
from sketchridge.paper.runs.other_sketches import SKETCHES, OtherSketches
from sketchridge.paper.runs.products import Held, Labeled, Streamed, gaussian_block
from sketchridge.paper.runs.synthetic import (
    ExactModel,
    SketchedModel,
    Synthetic,
    features,
    synthetic_problem,
)
from sketchridge.paper.runs.times import Timing, Update
from sketchridge.paper.settings import sketched_ridge
from sketchridge.sketches import GaussianSketch

RNG = np.random.default_rng(0)
X = RNG.random((60, 1))
X_NEW = RNG.random((9, 1))
Y = np.sin(5 * X[:, 0]) + 0.1 * RNG.standard_normal(60)


def parts(kernel, m=4):
    S = GaussianSketch(m, 5).entries(range(m), range(60))
    K = kernel(X, X) / 60
    R = 60 * K @ S.T
    return S, K, kernel(X, X_NEW), sketched_spectrum(R, S @ R)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("lam", [1e-1, 1e-3])
def test_the_algebra_is_that_of_the_specification(name, lam):
    kernel = KERNELS[name]
    S, K, k_x, spectrum = parts(kernel)
    alpha = 60 * lam
    t = S @ k_x
    close = {"rtol": 1e-6, "atol": 1e-12}
    np.testing.assert_allclose(spectrum.v2(k_x, alpha), exact.v2(K, S, k_x, lam), **close)
    np.testing.assert_allclose(spectrum.v3(t, alpha), exact.v3(K, S, k_x, lam), **close)
    np.testing.assert_allclose(spectrum.vbar(k_x, t, alpha), exact.vbar(K, S, k_x, lam), **close)
    mean = exact.sketched_mean(K, S, k_x, Y, lam)
    np.testing.assert_allclose(spectrum.mean(t, Y, alpha), mean, rtol=1e-6, atol=1e-9)
    squares = (k_x**2).sum(axis=0)
    sums = spectrum.v2_from_sums(squares, spectrum.H.T @ k_x, alpha)
    np.testing.assert_allclose(sums, spectrum.v2(k_x, alpha), rtol=1e-5)


def test_a_complete_sketch_gives_the_exact_problem():
    kernel = KERNELS["cubic spline"]
    G = kernel(X, X)
    k_x = kernel(X, X_NEW)
    spectrum = sketched_spectrum(G, G)
    whole = Exact(G)
    for v in (spectrum.v2(k_x, 0.1), spectrum.v3(k_x, 0.1)):
        np.testing.assert_allclose(v, whole.v1(k_x, 0.1), rtol=1e-7)
    prior = kernel.diag(X_NEW)
    gp = prior - (k_x * np.linalg.solve(G + 0.1 * np.eye(60), k_x)).sum(axis=0)
    np.testing.assert_allclose(spectrum.gp(prior, k_x, 0.1), gp, rtol=1e-6)


def test_the_penalty_has_the_least_leave_one_out_error():
    G = KERNELS["Gaussian"](X, X)
    whole = Exact(G)
    alpha = loo_alpha(whole.U, whole.E, Y)

    def error(value):
        residuals = []
        for i in range(60):
            rest = np.arange(60) != i
            weights = np.linalg.solve(G[np.ix_(rest, rest)] + value * np.eye(59), Y[rest])
            residuals.append(Y[i] - G[i, rest] @ weights)
        return np.mean(np.square(residuals))

    step = 10 ** (11 / 99)
    assert error(alpha) <= min(error(alpha * step), error(alpha / step))


# Figure 1


@pytest.mark.parametrize("name", KERNELS)
def test_variances_and_the_assumption_are_those_of_the_specification(name):
    problem = Smooth(KERNELS[name], X)
    sketch = GaussianSketch(4, 5)
    S = sketch.entries(range(4), range(60))
    np.testing.assert_allclose(problem.v1(1e-2), exact.v1(problem.K, problem.k_x, 1e-2), rtol=1e-8)
    v2 = problem.variances(sketch, 1e-2)[0]
    np.testing.assert_allclose(v2, exact.v2(problem.K, S, problem.k_x, 1e-2), rtol=1e-6)
    for lam in (1e-1, 1e-3):
        found = exact.check_a1(problem.K, S / 2, lam)
        assert len(problem.above(lam)[0]) == found.s_lambda
        expected = (found.smallest, found.largest, found.tail_constant)
        np.testing.assert_allclose(problem.assumption(sketch, lam), expected, rtol=1e-6)


def test_the_rules_for_m_are_those_of_the_captions():
    polynomial = DECAYS["polynomial"]
    gaussian = DECAYS["gaussian"]
    assert polynomial.size(1000) == int(np.ceil(1.5 * 1000**0.2))
    assert gaussian.size(1000) == int(np.ceil(2 * np.sqrt(np.log(1000))))
    assert polynomial.size_of_power(1000, 1.3) == int(np.ceil(1.2 * 1000 ** (1.3 / 5)))
    assert gaussian.size_of_power(1000, 1.5) == int(np.ceil(1.2 * np.log(1000) ** 0.75))
    assert polynomial.lam(1000) == pytest.approx(1000**-0.8)


@pytest.mark.parametrize("varies", ["n", "c", "sigma"])
def test_panels_have_their_repetitions_and_both_readings(varies):
    panel = Gaps("gaussian", varies)
    cells = panel.cells(Options(full=True))
    one = [c for c in cells if c["value"] == cells[-1]["value"]]
    assert sum(c["count"] for c in one) == 200
    assert min(c["first"] for c in one) == FRESH
    rows = panel.run(
        {**cells[-1], "value": 100 if varies == "n" else 1.0, "n": 100, "count": 2}, None
    )
    assert {row["lambda_is"] for row in rows} == {"optimal", "fixed"}
    assert rows == panel.run(
        {**cells[-1], "value": 100 if varies == "n" else 1.0, "n": 100, "count": 2}, None
    )
    if varies == "sigma":
        by_sigma = {r["value"]: r["gap_v2"] for r in rows if r["lambda_is"] == "fixed"}
        assert by_sigma[5.0] == pytest.approx(25 * by_sigma[1.0])


# Figure 2 and the others


def test_both_mixtures_have_their_moments():
    """Failing with probability below 1e-6."""
    for reading, (a, b) in {"standard deviation": (0.25, 25), "variance": (0.5, 5)}.items():
        drawn = mixture(200_000, reading, np.random.default_rng(0))
        assert abs(drawn.mean() - 2.75) < 0.06
        assert abs(drawn.var() - ((a + b) / 2 + 2.25**2)) < 0.4
    rows = Mixture().run(Mixture().cells(Options(repetitions=2))[0], None)
    assert sum(row["kind"] == "point" for row in rows) == 3 * 50
    assert sum(row["kind"] == "error" for row in rows) == 2 * 3


def test_every_sketch_is_run():
    rows = OtherSketches().run({"kernel": "Gaussian", "n": 150, "first": 0, "count": 1}, None)
    assert {row["sketch"] for row in rows} == set(SKETCHES)
    small = [row["relative_gap"] for row in rows if row["multiple"] == 7.0]
    assert max(small) < 1e-3


def test_times_are_measured_for_every_way():
    cell = {"n": 100, "m": 10, "repeats": 2, "backend": "numpy"}
    assert {row["way"] for row in Timing().run(cell, None)} == {
        *(f"{v}, {how}" for v in ("V1", "V2") for how in ("printed formula", "this library")),
        "V1, K given",
        "V2, K and S given",
        "S K, K and S given",
    }
    rows = Update().run({**cell, "varies": "n", "new": 20}, None)
    assert {row["way"] for row in rows} == {"update", "from scratch"}
    assert {cell["varies"] for cell in Update().cells(Options())} == {"n", "m", "new"}


# Figure 3


@pytest.mark.parametrize("setting", [1, 2])
def test_synthetic_points_follow_the_paper(setting):
    problem = synthetic_problem(setting, 5000, 0)
    assert problem.X.shape == (5000, 1)
    assert problem.X_test.shape == (1000, 1)
    np.testing.assert_allclose(problem.y_test, -1 + 2 * problem.X_test[:, 0] ** 2)
    if setting == 2:
        assert (problem.X[:71, 0] < 0.6).all()
        assert (problem.X[71:, 0] > 0.6).all()


@pytest.mark.parametrize("setting", [1, 2])
def test_campaigns_in_few_features_are_exact(setting):
    problem = synthetic_problem(setting, 400, 3)
    L = features(np.concatenate([problem.X, problem.X_test]))
    ids = first_labels(400, 80, 3)
    kernel = Gaussian(bandwidth=0.25)
    K = kernel(problem.X[ids], problem.X[ids]) / 80
    k_x = kernel(problem.X[ids], problem.X)
    whole = ExactModel(problem, L)
    whole.add(ids[:50])
    whole.add(ids[50:])
    lam = whole.alpha / 80
    scores = whole.scores(np.arange(400))
    np.testing.assert_allclose(scores, exact.v1(K, k_x, lam), rtol=1e-6)
    mean = exact.mean(K, k_x, problem.y[ids], lam)
    np.testing.assert_allclose(whole.predicted(whole.L), mean, atol=1e-8)
    few = SketchedModel(problem, L, n_is="labels", score="v2", seed=3)
    few.add(ids)
    lam = few.alpha / 80
    S = GaussianSketch(5, 3).entries(range(5), range(80))  # ⌈log 80⌉
    scores = few.scores(np.arange(400))
    np.testing.assert_allclose(scores, exact.v2(K, S, k_x, lam), rtol=1e-4)
    mean = exact.sketched_mean(K, S, k_x, problem.y[ids], lam)
    np.testing.assert_allclose(few.predicted(few.L), mean, atol=1e-7)


def test_the_same_points_are_drawn_as_by_the_librarys_learner():
    """With λ given and m fixed: uniform keys and V2 are those of ActiveLearner."""
    problem = synthetic_problem(1, 300, 0)
    L = features(np.concatenate([problem.X, problem.X_test]))
    model = SketchedModel(problem, L, n_is="labels", score="v2", seed=7)
    first = first_labels(300, 60, 0)
    model.add(first)
    estimator = sketched_ridge(
        kernel=Gaussian(bandwidth=0.25),
        alpha=model.alpha,
        sketch=GaussianSketch(5, 7),
        noise_variance=1.0,
        dtype="float64",
    )
    learner = ActiveLearner(
        estimator,
        problem.X,
        batch_size=10,
        acquisition="weighted",
        score="v2",
        stop=None,
        store=None,
        random_state=0,
    )
    learner.tell(first, problem.y[first])
    rows = learner.open_ids_
    np.testing.assert_allclose(learner.scores()[rows], model.scores(rows), rtol=1e-5)


def test_a_setting_starts_alike_for_all_strategies_and_counts_the_minority():
    rows = Synthetic(2).run({"seed": 0, "n": 1700, "rounds": 2}, None)
    assert len(rows) == 7 * 3
    start = {row["minority"] for row in rows if row["round"] == 0}
    assert len(start) == 1
    assert all(0 <= row["minority"] <= 42 for row in rows)


def test_a_pool_that_is_too_small_is_refused():
    with pytest.raises(ValueError, match=r"labels 1600 points, more than the 1000"):
        Synthetic(1).cells(Options(n=(1000,)))


# Figures 4 and 5


def small_problem(n=500, d=3, seed=0):
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((n + 100, d))
    y = np.sin(Z[:, 0]) + 0.1 * rng.standard_normal(n + 100)
    return Problem(Z[:n], y[:n], Z[n:], y[n:])


@pytest.mark.parametrize("products", ["held", "streamed"])
def test_products_that_accumulate_are_those_of_the_specification(products):
    problem = small_problem()
    m = 12
    labeled = Labeled(problem.X, problem.X_test, m, seed=2)
    pool = {
        "held": lambda: Held(problem.X, m, keep=True, dtype=np.float32),
        "streamed": lambda: Streamed(problem.X, m, "numpy"),
    }[products]()
    model = real.RealModel(problem, labeled, lambda n: m, "v2", pool)
    for start in (0, 40, 90):
        model.add(np.arange(start, {0: 40, 40: 90, 90: 150}[start]))
    kernel = Gaussian(bandwidth=1.0)
    ids = np.arange(150)
    K = kernel(problem.X[ids], problem.X[ids]) / 150
    S = GaussianSketch(m, 2).entries(range(m), range(150))
    lam = model.alpha / 150
    rows = np.arange(150, 500)
    k_x = kernel(problem.X[ids], problem.X[rows])
    np.testing.assert_allclose(model.scores(rows), exact.v2(K, S, k_x, lam), rtol=2e-3)
    np.testing.assert_allclose(pool.sketched(rows), S @ k_x, atol=1e-3)
    y = problem.y[ids] - model.center
    k_test = kernel(problem.X[ids], problem.X_test)
    mean = model.center + exact.sketched_mean(K, S, k_test, y, lam)
    expected = np.mean((mean - problem.y_test) ** 2)
    assert model.error() == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("backend", ["numpy", "torch"])
@pytest.mark.parametrize("score", ["v2", "gp"])
@pytest.mark.parametrize("kind", ["labels", "pool", "fixed", "learned"])
def test_scores_are_right_at_every_row_for_every_size(kind, score, backend):
    """With m = 90 of smooth points V2·α² is 1e-9 of ‖k_x‖²: sums in single precision are noise."""
    if backend == "torch":
        pytest.importorskip("torch")
    problem = small_problem()
    problem = replace(problem, X=problem.X / 3, X_test=problem.X_test / 3)
    cell = {"strategy": "V2", "model": kind, "seed": 2, "pool": 500, "m": 90, "backend": backend}
    model = real._model(cell, problem, score)
    for start in (0, 100):
        model.add(np.arange(start, start + 100))
    rows = np.arange(200, 500)
    k_x = gaussian_block(problem.X[:200], problem.X[rows])
    S = model.labeled.S[: model.m]
    expected = (
        model.spectrum.v2(k_x, model.alpha)
        if score == "v2"
        else model.spectrum.gp(np.ones(300), S @ k_x, model.alpha)
    )
    np.testing.assert_allclose(model.scores(rows), expected, rtol=0.02)


def test_kernel_blocks_are_the_gaussian_kernel():
    problem = small_problem()
    expected = Gaussian(bandwidth=1.0)(problem.X[:20], problem.X[:30])
    np.testing.assert_allclose(gaussian_block(problem.X[:20], problem.X[:30]), expected, rtol=1e-12)


def test_labels_that_are_not_told_have_no_influence():
    problem = small_problem()
    first = first_labels(500, 40, 0)
    drawn = []
    for change in (0.0, 1e3):
        y = problem.y.copy()
        y[np.setdiff1d(np.arange(500), first)] += change
        changed = replace(problem, y=y)
        labeled = Labeled(changed.X, changed.X_test, 8, seed=0)
        pool = Held(changed.X, 8, keep=True, dtype=np.float32)
        model = real.RealModel(changed, labeled, lambda n: 8, "v2", pool)
        errors, told = simulate(model, "weighted", 500, first, batch=40, rounds=1, seed=0)
        drawn.append((errors[0], list(told[1])))
    assert drawn[0] == drawn[1]


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    flights = rng.integers(0, 9, (7000, 8)).astype(np.int16)
    np.savez(tmp_path / "flights.npz", X=flights, y=rng.integers(0, 99, 7000))
    weather = rng.integers(0, 99, (3000, 5)).astype(float)
    y = 10 * weather[:, 0] + rng.standard_normal(3000)
    np.savez(tmp_path / "weather.npz", X=weather, y=y)
    real._loaded.cache_clear()
    return tmp_path


def test_real_problems_are_scaled_by_the_pool_and_in_their_unit(folder):
    problem = real.real_problem(real.SOURCES["weather"], 1600, 3, folder)
    np.testing.assert_allclose(problem.X.std(axis=0), 1)
    np.testing.assert_allclose(problem.X.mean(axis=0), 0, atol=1e-12)
    assert problem.X_test.shape == (1400, 5)
    assert problem.y.std() < 40  # °C, not tenths
    again = real.real_problem(real.SOURCES["weather"], 1600, 3, folder)
    np.testing.assert_array_equal(problem.X, again.X)


def test_every_cell_of_a_data_set_runs(folder):
    options = Options(repetitions=1, n=(1600,), m=(20,))
    cells = real.Real("weather").cells(options)
    rows = [
        row for cell in cells for row in real.Real("weather").run({**cell, "rounds": 1}, folder)
    ]
    found = {(row["strategy"], row["model"]) for row in rows}
    assert {
        (s, m) for s in ("V2", "uniform", real.WHOLE) for m in ("labels", "pool", "fixed")
    } <= found
    assert {("V2", "auto"), ("V2", "learned"), ("gp", "fixed"), ("V2-top", "labels")} <= found
    start = {row["rmse"] for row in rows if row["round"] == 0 and row["model"] == "fixed"}
    assert max(start) - min(start) < 1e-9
    assert all(row["m"] == 8 for row in rows if row["model"] == "pool")


def test_half_of_the_pool_stays_unlabeled():
    for name, source in real.SOURCES.items():
        cells = real.Real(name).cells(Options(full=True))
        labels = source.batch * (1 + max(cell["rounds"] for cell in cells))
        assert labels == source.pool // 2
        seeds = {c["seed"] for c in cells if (c["strategy"], c["model"]) == ("V2", "labels")}
        assert len(seeds) == 30
        assert min(seeds) == FRESH


def test_missing_weather_is_said():
    with pytest.raises(FileNotFoundError, match="needs a folder"):
        real.real_problem(real.SOURCES["weather"], 1000, 0, None)


def test_a_table_that_is_too_short_is_said(folder):
    with pytest.raises(ValueError, match="too few for a pool of 50000"):
        real.real_problem(real.SOURCES["flights"], 50_000, 0, folder)


def test_blocks_cover_all_seeds():
    assert sum(length for _, length in blocks(5, 23, 10)) == 23
    assert GRID.shape == (201, 1)
    assert even_points(5, 0).shape == (5, 1)
