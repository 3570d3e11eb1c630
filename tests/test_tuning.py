"""What the data choose: scores along the λ path, bandwidths, noise, and the growth of the sketch."""

from __future__ import annotations

import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from helpers import SKETCH_CASES, SketchCase, assert_close, normal, state_of, targets, tol, unit_cube
from scipy.spatial.distance import pdist

from sketchridge import tuning
from sketchridge.backends import NumpyTiles
from sketchridge.kernels import Gaussian, Laplacian, Linear
from sketchridge.sketches import GaussianSketch, HadamardSketch, LandmarkSketch, RPCholeskySketch
from sketchridge.state import Ridge, State, build

N, M = 40, 12

every_sketch = pytest.mark.parametrize("sketch_case", SKETCH_CASES, ids=str)
with_and_without_intercept = pytest.mark.parametrize("fit_intercept", [False, True], ids=["plain", "intercept"])


def some_state(sketch_case: SketchCase, q: int = 2) -> State:
    X = normal(N, 3)
    return state_of(Laplacian(1.5).fitted(X), X, targets(N, q) + 2 + np.sin(X[:, :1]), sketch_case.make(M, N, 3), M)


def ridge_of(state: State, lam: float, fit_intercept: bool = False) -> Ridge:
    return Ridge(state, lam, fit_intercept, state.backend)


@with_and_without_intercept
@every_sketch
def test_path_scores_are_those_of_each_lambda_alone(sketch_case: SketchCase, fit_intercept):
    """GCV from m numbers a λ equals its residual form; leave-one-out that of the leverages."""
    state = some_state(sketch_case)
    path = tuning.lambda_path(state, fit_intercept)
    ridges = [ridge_of(state, lam, fit_intercept) for lam in path.lam]
    df = np.array([ridge.leverages().sum() for ridge in ridges])
    rss = np.array([(ridge.residuals() ** 2).sum() for ridge in ridges])
    loo = np.array([((ridge.residuals() / (1 - ridge.leverages())[:, None]) ** 2).mean() for ridge in ridges])
    assert_close(path.df, df)
    assert_close(path.gcv, N * rss / (N - df) ** 2)
    assert_close(path.loo, loo)


@pytest.mark.parametrize("largest", [1e-6, 1.0, 300.0])
def test_grid_runs_from_a_ten_billionth_to_ten_times_the_largest_eigenvalue(largest):
    grid = tuning.lambda_grid(largest)
    assert grid.shape == (100,)
    assert_close(grid[[0, -1]] / largest, np.array([1e-10, 10]))
    assert_close(grid[0] / largest * 1e10, 1.0)
    assert_close(np.diff(np.log(grid)), np.full(99, np.log(1e11) / 99))


@with_and_without_intercept
@pytest.mark.parametrize("criterion", ["gcv", "loo"])
def test_chosen_lambda_minimises_the_criterion_on_the_grid(criterion, fit_intercept):
    state = some_state(SKETCH_CASES[0])
    path = tuning.lambda_path(state, fit_intercept)
    assert tuning.choose_lambda(state, criterion, fit_intercept) == path.lam[np.argmin(getattr(path, criterion))]


def test_chosen_lambda_is_not_below_the_floor():
    state = some_state(SKETCH_CASES[0])
    assert tuning.choose_lambda(state, "gcv", False, floor=123.0) == 123.0


@every_sketch
def test_floor_is_the_middle_eigenvalue(sketch_case: SketchCase):
    state = some_state(sketch_case)
    assert tuning.sketch_floor(state) == state.E[len(state.E) // 2]


def test_a_complete_sketch_has_no_floor():
    X = normal(N, 3)
    assert tuning.sketch_floor(state_of(Laplacian(1.5).fitted(X), X, targets(N), RPCholeskySketch(), N)) == 0


@every_sketch
def test_a_kernel_that_vanishes_on_the_data_has_no_floor(sketch_case: SketchCase):
    X = np.zeros((N, 2))
    assert tuning.sketch_floor(state_of(Linear(), X, targets(N), sketch_case.make(M, N, 3), M)) == 0


def test_noise_variance_is_that_of_linear_regression():
    """Ordinary least squares: RSS/(n − p), with the right expectation; 30 deviations of χ² by Chebyshev, ≤ 1/900 a target."""
    X, noise = normal(400, 3), 0.5 * normal(400, 2, seed=2)
    residuals = noise - X @ np.linalg.lstsq(X, noise, rcond=None)[0]
    estimate = tuning.noise_variance(residuals, 3.0)
    assert_close(estimate, (residuals**2).sum(axis=0) / 397)
    assert (np.abs(estimate / 0.25 - 1) < 30 * np.sqrt(2 / 397)).all()


def test_noise_variance_of_an_interpolant_is_finite():
    assert np.isfinite(tuning.noise_variance(np.zeros((5, 1)), 5.0)).all()


def fake_ridge(v2: list[float], v3: list[float]) -> SimpleNamespace:
    """A ridge whose variances at training row i are the i-th of these."""
    rows = np.arange(len(v2))[:, None]
    return SimpleNamespace(state=SimpleNamespace(X=rows), v2=lambda X: np.array(v2)[X[:, 0]], v3=lambda X: np.array(v3)[X[:, 0]])


@pytest.mark.parametrize(
    ("v2", "v3", "expected"),
    [
        ([2.0] * 5, [1.0] * 5, 2.0),
        ([0.0] * 4, [0.0] * 4, 1.0),
        ([0.0, 3.0], [0.0, 1.0], 3.0),
        ([1.0, 1.0], [1.0, 0.0], np.inf),
        ([*[1.0] * 95, *[9.0] * 5], [1.0] * 100, 9.0),
        ([*[1.0] * 96, *[9.0] * 4], [1.0] * 100, 1.0),
    ],
)
def test_gap_is_the_upper_quantile_of_the_ratio(v2, v3, expected):
    assert tuning.gap(fake_ridge(v2, v3), np.arange(len(v2))) == expected


def test_gap_of_a_full_sketch_is_one():
    X = normal(N, 3)
    ridge = ridge_of(state_of(Laplacian(1.5).fitted(X), X, targets(N), RPCholeskySketch(), N), 0.01)
    assert_close(np.array(tuning.gap(ridge, np.arange(N))), np.array(1.0))


@pytest.mark.parametrize(("n", "count"), [(1, 1), (255, 255), (5000, 256)])
def test_probe_is_up_to_256_distinct_rows(n, count):
    rows = tuning.probe_rows(n, np.random.default_rng(0))
    assert len(set(rows)) == len(rows) == count
    assert 0 <= rows.min() <= rows.max() < n


def with_lambda(lam: float, sizes: list[int] | None = None):
    """Always the same λ, noting the sketch sizes it was asked for."""
    seen = [] if sizes is None else sizes

    def penalized(state: State) -> Ridge:
        seen.append(state.sketch.size)
        return ridge_of(state, lam)

    return penalized


def guarded(state: State) -> Ridge:
    return ridge_of(state, tuning.choose_lambda(state, "gcv", False, floor=tuning.sketch_floor(state)))


def empty_state(kernel, X: np.ndarray, sketch=None) -> State:
    Y = np.sin(3 * X[:, :1]) + 0.1 * targets(len(X))
    return build(NumpyTiles(), kernel.fitted(X), X, Y, RPCholeskySketch() if sketch is None else sketch)


@pytest.fixture
def no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.fixture(autouse=True)
def bounded_growth(monkeypatch):
    """A growth that never ends fails instead of hanging: no problem here needs more than ten steps."""
    grown, steps = State.grown, []

    def counted(state: State, size: int) -> State:
        steps.append(size)
        assert len(steps) < 30, f"asked again and again for a sketch of {size} rows"
        return grown(state, size)

    monkeypatch.setattr(State, "grown", counted)


@pytest.mark.usefixtures("no_warning")
def test_growth_stops_by_the_gap():
    sizes: list[int] = []
    X = unit_cube(600, 2)
    ridge, gap = tuning.grow_sketch(empty_state(Gaussian(0.3), X), with_lambda(1e-4, sizes), tol=0.1, probe=np.arange(100))
    assert sizes == [64]
    assert 1 - tol() <= gap <= 1.1
    assert gap == tuning.gap(ridge, np.arange(100))


@pytest.mark.usefixtures("no_warning")
def test_growth_goes_on_while_the_gap_is_wide():
    sizes: list[int] = []
    X = unit_cube(600, 3)
    ridge, gap = tuning.grow_sketch(empty_state(Gaussian(0.3), X), with_lambda(1e-4, sizes), tol=0.05, probe=np.arange(100))
    assert sizes == [64, 128, 256, 384, 512, 600][: len(sizes)]
    assert len(sizes) > 1
    assert ridge.state.sketch.size == sizes[-1]
    assert gap <= 1.05


RANK_DEFICIENT = {
    "linear": (Linear(), normal(100, 4)),
    "wide linear": (Linear(), normal(100, 20)),
    "duplicated rows": (Gaussian(1.0), np.repeat(normal(10, 3), 10, axis=0)),
    "clusters": (Gaussian(1.0), np.repeat(10 * normal(6, 3), 20, axis=0) + 1e-9 * normal(120, 3, seed=1)),
    "smooth": (Gaussian(1.0), unit_cube(100, 1)),
    "zero": (Linear(), np.zeros((100, 2))),
}


@pytest.mark.usefixtures("no_warning")
@pytest.mark.parametrize("sketch", [RPCholeskySketch(), LandmarkSketch(), GaussianSketch(0)], ids=lambda s: type(s).__name__)
@pytest.mark.parametrize("lam", [1e-3, 1e-15])
@pytest.mark.parametrize(("kernel", "X"), RANK_DEFICIENT.values(), ids=RANK_DEFICIENT)
def test_growth_stops_at_the_numerical_rank(kernel, X, lam, sketch):
    ridge, gap = tuning.grow_sketch(empty_state(kernel, X, sketch), with_lambda(lam), tol=0.1, probe=np.arange(100))
    assert np.isfinite(gap)
    assert np.isfinite(ridge.v2(X[:5])).all()


def test_growth_stops_at_the_cap_with_a_remedy(monkeypatch):
    monkeypatch.setattr(tuning, "_SIZES", [8, 16, 32])
    sizes: list[int] = []
    state = empty_state(Gaussian(0.2), unit_cube(200, 3))
    with pytest.warns(UserWarning, match=r"largest automatic size, 32, with a gap V2/V3 of .* instead of 1.1.*larger sketch_size"):
        ridge, gap = tuning.grow_sketch(state, with_lambda(1e-5, sizes), tol=0.1, probe=np.arange(100))
    assert sizes == [8, 16, 32]
    assert ridge.state.sketch.size == 32
    assert gap > 1.1


@pytest.mark.usefixtures("no_warning")
def test_growth_ends_with_all_rows():
    """A sketch of n rows is complete: the gap is one, and there is nothing to warn of."""
    X = unit_cube(90, 3)
    ridge, gap = tuning.grow_sketch(empty_state(Laplacian(0.1), X), with_lambda(1e-6), tol=0.01, probe=np.arange(90))
    assert ridge.state.sketch.size == 90
    assert_close(np.array(gap), np.array(1.0))


def test_growth_does_not_stop_because_two_sketch_rows_are_alike():
    """On 200 columns only 8 bits of a Hadamard row matter: of 64 rows two are alike, and yet they do not span the data."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        state = empty_state(Gaussian(0.2), unit_cube(200, 3), HadamardSketch(0))
        _, gap = tuning.grow_sketch(state, with_lambda(1e-5), tol=0.1, probe=np.arange(100))
    assert gap <= 1.1 or caught


def test_the_guard_holds_lambda_where_the_sketch_can_follow():
    """Without noise GCV wants no penalty at all; the guard does not let it pass the middle eigenvalue of the sketch."""
    X = unit_cube(300, 3)
    state = build(NumpyTiles(), Gaussian(0.5).fitted(X), X, np.sin(9 * X[:, :1]), RPCholeskySketch()).grown(64)
    assert tuning.choose_lambda(state, "gcv", False) < tuning.sketch_floor(state)
    assert guarded(state).lam == tuning.sketch_floor(state)


def test_growth_does_not_stop_below_the_guard():
    """There V2/V3 says nothing: a penalty below the floor makes the sketch grow, whatever the tolerance."""
    sizes: list[int] = []
    tuning.grow_sketch(empty_state(Laplacian(0.3), unit_cube(150, 3)), with_lambda(1e-9, sizes), tol=1e12, probe=np.arange(50))
    assert sizes == [64, 128, 150]


@pytest.mark.parametrize(
    ("kernel", "metric"), [(Gaussian(), "euclidean"), (Laplacian(), "cityblock")], ids=["gaussian", "laplacian"]
)
def test_median_bandwidth_is_the_median_distance(kernel, metric):
    X = normal(200, 3)
    assert tuning.median_bandwidth(X, kernel) == np.median(pdist(X, metric))


def test_median_bandwidth_leaves_out_identical_rows():
    X = np.array([[0.0], [0.0], [0.0], [0.0], [1.0], [3.0]])
    assert tuning.median_bandwidth(X, Gaussian()) == 2.0


def test_median_bandwidth_of_many_rows_is_that_of_a_sample():
    """1,000 of 3,000 rows: a sample median of distances, off by more than 10% with probability < 1e-6."""
    X = normal(3000, 2)
    median = tuning.median_bandwidth(X, Gaussian())
    assert median == tuning.median_bandwidth(X, Gaussian())
    assert abs(median / np.median(pdist(X)) - 1) < 0.1


@pytest.mark.parametrize(
    ("X", "text"), [(np.ones((9, 2)), "needs rows that differ"), (np.diag([1e200, -1e200]), "overflow: rescale X")]
)
def test_median_bandwidth_error_is_a_sentence(X, text):
    with pytest.raises(ValueError, match=text), np.errstate(over="ignore"):
        tuning.median_bandwidth(X, Gaussian())


@with_and_without_intercept
def test_gcv_bandwidth_follows_the_data(fit_intercept):
    """A fast wave needs a narrower kernel than the median distance, a slow one must not get such."""
    X, noise = unit_cube(150, 1), 0.05 * targets(150)
    median = tuning.median_bandwidth(X, Gaussian())
    fast, slow = (
        tuning.gcv_bandwidth(NumpyTiles(), Gaussian(), X, np.sin(frequency * X) + noise, fit_intercept) for frequency in (60, 2)
    )
    assert fast < 0.5 * median <= slow
    assert 1 / 8 - tol() <= fast / median <= 8 + tol()


def test_single_precision_error_is_inverse_to_the_penalty():
    state = some_state(SKETCH_CASES[0])
    errors = np.array([tuning.single_precision_error(state, lam) for lam in (0.1, 0.2)])
    assert_close(errors[0], 2 * errors[1])
    assert errors[0] >= np.finfo(np.float32).eps * state.largest / 0.1


@pytest.mark.parametrize("lam_over_largest", [1e-1, 1e-2, 1e-3])
def test_single_precision_error_bounds_what_float32_products_do(lam_over_largest):
    X, X_new = normal(200, 3), normal(20, 3, seed=7)
    state = state_of(Gaussian(1.0).fitted(X), X, targets(200), RPCholeskySketch(), 60)
    lam = lam_over_largest * state.largest
    exact, single = (Ridge(state, lam, False, backend).v2(X_new) for backend in (state.backend, NumpyTiles("float32")))
    assert np.abs(single / exact - 1).max() <= tuning.single_precision_error(state, lam)
