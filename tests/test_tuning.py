"""What the data choose: scores along the λ path, bandwidths, and the growth of the sketch."""

from __future__ import annotations

import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from helpers import (
    SKETCH_CASES,
    SketchCase,
    assert_close,
    assert_close_each,
    basis_for,
    normal,
    ridge_for,
    targets,
    tol,
    uneven,
    unit_cube,
)
from scipy.spatial.distance import pdist

from sketchridge import SketchedKernelRidge, tuning
from sketchridge.backends import NumpyTiles
from sketchridge.basis import Basis, basis_of
from sketchridge.kernels import Gaussian, Laplacian, Linear
from sketchridge.ridge import Ridge
from sketchridge.sketches import (
    GaussianSketch,
    HadamardSketch,
    LandmarkSketch,
    RPCholeskySketch,
)

N, M, Q = 40, 12, 2

every_sketch = pytest.mark.parametrize("sketch_case", SKETCH_CASES, ids=str)
with_and_without_intercept = pytest.mark.parametrize(
    "fit_intercept", [False, True], ids=["plain", "intercept"]
)
with_and_without_weights = pytest.mark.parametrize(
    "weighted", [False, True], ids=["even", "weighted"]
)


def weights(weighted: bool, n: int = N) -> np.ndarray:
    return uneven(n) if weighted else np.ones(n)


def some_basis(sketch_case: SketchCase, weighted: bool = False, q: int = Q) -> Basis:
    X = normal(N, 3)
    Y = targets(N, q) + 2 + np.sin(X[:, :1])
    sketch = sketch_case.make(M, N, 3)
    return basis_for(Laplacian(1.5).fitted(X), X, Y, sketch, M, w=weights(weighted))


# The path


@with_and_without_weights
@with_and_without_intercept
@every_sketch
def test_path_scores_are_those_of_each_lambda_alone(sketch_case, fit_intercept, weighted):
    """GCV from m numbers per λ equals its residual form; leave-one-out that of the leverages."""
    basis, w = some_basis(sketch_case, weighted), weights(weighted)
    scales = np.array([1.0, 3.0])
    path = tuning.lambda_path(basis, fit_intercept, scales)
    df, gcv, loo = [], [], []
    for lam in path.lam[::7]:
        ridge = ridge_for(basis, float(lam), fit_intercept)
        h, r = ridge.leverages().host(), ridge.residuals().host()
        df.append(h.sum())
        gcv.append(N**2 * (scales * (w @ r**2 / w.sum())).mean() / (N - h.sum()) ** 2)
        loo.append((scales * (w @ (r / (1 - h)) ** 2 / w.sum())).mean())
    assert_close(path.df[::7], np.array(df))
    assert_close(path.gcv[::7], np.array(gcv))
    assert_close(path.loo[::7], np.array(loo))


@with_and_without_intercept
@every_sketch
def test_path_does_not_depend_on_the_scale_of_the_weights(sketch_case, fit_intercept):
    X = normal(N, 3)
    kernel = Laplacian(1.5).fitted(X)
    Y, sketch = targets(N, Q) + 2, sketch_case.make(M, N, 3)
    one, other = (
        tuning.lambda_path(
            basis_for(kernel, X, Y, sketch, M, w=c * uneven(N)), fit_intercept, np.ones(Q)
        )
        for c in (1.0, 13.0)
    )
    for name in ("lam", "df", "gcv", "loo"):
        assert_close(getattr(other, name), getattr(one, name))


@pytest.mark.parametrize("largest", [1e-6, 1.0, 300.0])
def test_grid_runs_from_a_ten_billionth_to_ten_times_the_largest_eigenvalue(largest):
    grid = tuning.penalty_grid(largest)
    assert grid.shape == (100,)
    assert_close(grid[[0, -1]] / largest, np.array([1e-10, 10]))
    assert_close(grid[0] / largest * 1e10, 1.0)
    assert_close(np.diff(np.log(grid)), np.full(99, np.log(1e11) / 99))


@with_and_without_weights
@with_and_without_intercept
@pytest.mark.parametrize("criterion", ["gcv", "loo"])
def test_chosen_lambda_minimizes_the_criterion_on_the_grid(criterion, fit_intercept, weighted):
    basis = some_basis(SKETCH_CASES[0], weighted)
    path = tuning.lambda_path(basis, fit_intercept, np.ones(Q))
    chosen = tuning.choose_lambda(basis, criterion, fit_intercept, np.ones(Q))
    good = path.gcv == path.gcv.min() if criterion == "gcv" else path.loo <= 1.01 * path.loo.min()
    assert chosen == path.lam[good].max()


def test_chosen_lambda_is_not_below_the_floor():
    basis = some_basis(SKETCH_CASES[0])
    assert tuning.choose_lambda(basis, "gcv", False, np.ones(Q), floor=123.0) == 123.0


@with_and_without_intercept
def test_scores_of_targets_without_noise_are_not_negative(fit_intercept):
    """By subtraction they would be: y is a combination of features, and constant in one column."""
    X = normal(N, 3)
    kernel = Laplacian(1.5).fitted(X)
    basis = basis_for(kernel, X, targets(N, 2), RPCholeskySketch(), M)
    F = basis.factor.F.host()
    Y = np.column_stack([F @ normal(M, 1), np.full(N, 3.0)])
    exact = basis_of(basis.factor, basis.sample.backend.tall(Y))
    path = tuning.lambda_path(exact, fit_intercept, np.ones(2))
    for score in (path.df, path.gcv, path.loo):
        assert np.isfinite(score).all()
        assert (score >= 0).all()


# Several targets


@with_and_without_weights
def test_target_scales_are_inverse_to_the_variances(weighted):
    Y, w = targets(N, 3) * np.array([1.0, 10.0, 0.1]) + 5, weights(weighted)
    variance = w @ (Y - w @ Y / w.sum()) ** 2 / w.sum()
    assert_close_each(tuning.target_scales(Y, w), variance.mean() / variance)


def test_one_target_is_not_scaled():
    assert_close(tuning.target_scales(100 * targets(N), uneven(N)), np.ones(1))


def test_a_constant_target_does_not_count():
    """And the mean over targets stays that of the others."""
    Y = np.column_stack([targets(N), np.full(N, 3.0), 2 * targets(N)])
    scales = tuning.target_scales(Y, np.ones(N))
    assert scales[1] == 0
    alone = tuning.target_scales(Y[:, [0, 2]], np.ones(N))
    assert_close(scales[[0, 2]] / 3, alone / 2)


def test_only_constant_targets_are_not_scaled():
    np.testing.assert_array_equal(tuning.target_scales(np.ones((N, 2)), np.ones(N)), np.ones(2))


@pytest.mark.parametrize("criterion", ["gcv", "loo"])
def test_units_of_a_target_do_not_decide(criterion):
    X, Y = normal(N, 3), targets(N, 2)
    Y[:, 1] = np.sin(X[:, 0])
    kernel, w = Laplacian(1.5).fitted(X), uneven(N)
    chosen = []
    for units in ([1.0, 1.0], [1e6, 1.0], [1.0, 1e6]):
        basis = basis_for(kernel, X, Y * units, RPCholeskySketch(), M, w=w)
        scales = tuning.target_scales(Y * units, w)
        chosen.append(tuning.choose_lambda(basis, criterion, True, scales))
    assert chosen[0] == chosen[1] == chosen[2]


# The floor


@with_and_without_weights
@every_sketch
def test_floor_is_the_middle_eigenvalue(sketch_case: SketchCase, weighted):
    basis = some_basis(sketch_case, weighted)
    assert tuning.sketch_floor(basis) == basis.E[len(basis.E) // 2]


def test_a_complete_sketch_has_no_floor():
    X = normal(N, 3)
    basis = basis_for(Laplacian(1.5).fitted(X), X, targets(N), RPCholeskySketch(), N)
    assert tuning.sketch_floor(basis) == 0


@every_sketch
def test_a_kernel_that_vanishes_on_the_data_has_no_floor(sketch_case: SketchCase):
    X = np.zeros((N, 2))
    basis = basis_for(Linear(), X, targets(N), sketch_case.make(M, N, 3), M)
    assert tuning.sketch_floor(basis) == 0


def test_the_guard_holds_lambda_where_the_sketch_can_follow():
    """Without noise GCV wants no penalty at all; the guard does not let it pass the middle
    eigenvalue of the sketch."""
    X = unit_cube(300, 3)
    kernel, Y = Gaussian(0.5).fitted(X), np.sin(9 * X[:, :1])
    basis = basis_for(kernel, X, Y, RPCholeskySketch(), 64)
    floor = tuning.sketch_floor(basis)
    assert tuning.choose_lambda(basis, "gcv", False, np.ones(1)) < floor
    assert tuning.choose_lambda(basis, "gcv", False, np.ones(1), floor=floor) == floor


# The gap


def fake_ridge(v2: list[float], v3: list[float]) -> SimpleNamespace:
    """A ridge whose variances at training row i are the i-th of these."""
    points = SimpleNamespace(take=lambda rows: rows)
    return SimpleNamespace(
        sample=SimpleNamespace(points=points),
        v2=lambda query: np.array(v2)[query.points],
        v3=lambda query: np.array(v3)[query.points],
    )


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


@with_and_without_weights
@with_and_without_intercept
def test_gap_of_a_full_sketch_is_one(fit_intercept, weighted):
    X = normal(N, 3)
    kernel = Laplacian(1.5).fitted(X)
    basis = basis_for(kernel, X, targets(N), RPCholeskySketch(), N, w=weights(weighted))
    assert_close(tuning.gap(ridge_for(basis, 0.01, fit_intercept), np.arange(N)), 1.0)


@pytest.mark.parametrize(("n", "count"), [(1, 1), (255, 255), (5000, 256)])
def test_probe_is_up_to_256_distinct_rows(n, count):
    rows = tuning.probe_rows(n, np.random.default_rng(0))
    assert len(set(rows)) == len(rows) == count
    assert 0 <= rows.min() <= rows.max() < n


# Growth


def with_lambda(lam: float, sizes: list[int] | None = None, fit_intercept: bool = False):
    """Always the same λ, noting the sketch sizes it was asked for."""
    seen = [] if sizes is None else sizes

    def penalized(basis: Basis) -> Ridge:
        seen.append(basis.factor.sketch.size)
        return ridge_for(basis, lam, fit_intercept)

    return penalized


def empty_basis(kernel, X: np.ndarray, sketch=None, w=None) -> Basis:
    Y = np.sin(3 * X[:, :1]) + 0.1 * targets(len(X))
    sketch = RPCholeskySketch() if sketch is None else sketch
    return basis_for(kernel.fitted(X), X, Y, sketch, w=w)


def grown(basis: Basis, penalized, *, tol=0.1, probe=100, largest=None, say=lambda text: None):
    rows = np.arange(min(probe, len(basis.sample)))
    largest = largest or basis.sample.backend.largest_sketch(len(basis.sample))
    return tuning.grow_sketch(basis, penalized, tol=tol, probe=rows, largest=largest, say=say)


@pytest.fixture
def no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.fixture(autouse=True)
def bounded_growth(monkeypatch):
    """A growth that never ends fails instead of hanging: no problem here needs more than ten
    steps."""
    whole, steps = Basis.grown, []

    def counted(basis: Basis, size: int) -> Basis:
        steps.append(size)
        assert len(steps) < 30, f"asked again and again for a sketch of {size} rows"
        return whole(basis, size)

    monkeypatch.setattr(Basis, "grown", counted)


def sizes_are(monkeypatch, *, first: int, largest: int) -> None:
    """Sizes that small problems reach."""
    monkeypatch.setattr(tuning, "_FIRST", first)
    monkeypatch.setattr(NumpyTiles, "largest_sketch", lambda self, n: largest)
    monkeypatch.setattr(tuning, "_STEP", 4)


def test_errors_and_gaps_are_inverse_and_grow_together():
    gaps = 1 + np.geomspace(1e-8, 1e3, 200)
    errors = np.array([tuning.predicted_error(gap) for gap in gaps])
    assert (np.diff(errors) > 0).all()
    again = np.array([tuning.largest_gap(error) for error in errors])
    np.testing.assert_allclose(again - 1, gaps - 1, rtol=1e-6)
    assert tuning.predicted_error(1.0) < 1e-100
    assert np.isfinite(tuning.predicted_error(1e300))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("tol", [1e300, 1e-300])
def test_any_tolerance_will_do(tol):
    """A gap that was not worth measuring is never taken for one that is small enough."""
    assert 1 <= tuning.largest_gap(tol) < np.inf
    given = {"bandwidth": 0.5, "sketch_tol": tol, "alpha": 1e-3, "random_state": 0}
    model = SketchedKernelRidge("gaussian", solver="sketch", **given)
    model.fit(unit_cube(300, 4), targets(300)[:, 0])
    assert np.isfinite(model.sketch_error_)


@pytest.mark.parametrize("tol", [0.01, 0.1])
@pytest.mark.parametrize("lam", [1e-2, 1e-3, 1e-4])
def test_the_next_size_is_predicted(lam, tol):
    """A few sizes are tried, whatever λ is, and the last is not far beyond what is needed."""
    X = unit_cube(1500, 3)
    sizes: list[int] = []
    grown(empty_basis(Gaussian(0.2), X), with_lambda(lam, sizes), tol=tol)
    assert len(sizes) <= 5
    if len(sizes) > 1:
        less = grown(empty_basis(Gaussian(0.2), X).grown(sizes[-1] // 2), with_lambda(lam), tol=tol)
        assert less[0].basis.factor.sketch.size > sizes[-1] // 2


@pytest.mark.usefixtures("no_warning")
def test_growth_stops_by_the_gap():
    sizes: list[int] = []
    basis = empty_basis(Gaussian(0.3), unit_cube(600, 2))
    ridge, gap = grown(basis, with_lambda(1e-4, sizes))
    assert sizes == [64]
    assert 1 - tuning._ROUGH <= gap <= tuning.largest_gap(0.1)
    assert abs(gap / tuning.gap(ridge, np.arange(100)) - 1) <= tuning._ROUGH


@pytest.mark.usefixtures("no_warning")
def test_growth_goes_on_while_the_gap_is_wide():
    sizes: list[int] = []
    basis = empty_basis(Gaussian(0.3), unit_cube(600, 3))
    ridge, gap = grown(basis, with_lambda(1e-4, sizes), tol=0.02)
    assert sizes[0] == 64
    assert 1 < len(sizes) <= 4
    assert all(size % 32 == 0 or size == 600 for size in sizes)
    assert ridge.basis.factor.sketch.size == sizes[-1]
    assert gap <= tuning.largest_gap(0.02)


@with_and_without_weights
@with_and_without_intercept
@pytest.mark.parametrize("lam", [1e-2, 1e-5, 1e-9])
@pytest.mark.parametrize(
    "sketch", [RPCholeskySketch(), LandmarkSketch(), GaussianSketch(0)], ids=repr
)
def test_the_gap_that_is_carried_along_is_the_gap(
    sketch, lam, fit_intercept, weighted, monkeypatch
):
    """Sums with columns there are already are kept as the sketch grows; rounding may cost 1%."""
    sizes_are(monkeypatch, first=8, largest=64)
    monkeypatch.setattr(tuning, "_next_size", lambda ridge, *_: 2 * ridge.basis.factor.sketch.size)
    monkeypatch.setattr(tuning, "sketch_floor", lambda basis: 0.0)
    seen = []
    carried = tuning._Probe.gap

    def noted(self, ridge: Ridge) -> float:
        found = carried(self, ridge)
        seen.append((found, tuning.gap(ridge, self.rows)))
        return found

    monkeypatch.setattr(tuning._Probe, "gap", noted)
    X = unit_cube(150, 3)
    basis = empty_basis(Gaussian(0.3), X, sketch, weights(weighted, 150))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        grown(basis, with_lambda(lam, fit_intercept=fit_intercept), tol=1e-9)
    assert len(seen) == 4
    found, expected = np.array(seen).T
    np.testing.assert_allclose(found, expected, rtol=tuning._ROUGH)


RANK_DEFICIENT = {
    "linear": (Linear(), normal(100, 4)),
    "wide linear": (Linear(), normal(100, 20)),
    "duplicated rows": (Gaussian(1.0), np.repeat(normal(10, 3), 10, axis=0)),
    "clusters": (
        Gaussian(1.0),
        np.repeat(10 * normal(6, 3), 20, axis=0) + 1e-9 * normal(120, 3, seed=1),
    ),
    "smooth": (Gaussian(1.0), unit_cube(100, 1)),
    "zero": (Linear(), np.zeros((100, 2))),
}


@pytest.mark.usefixtures("no_warning")
@with_and_without_intercept
@pytest.mark.parametrize(
    "sketch",
    [RPCholeskySketch(), LandmarkSketch(), GaussianSketch(0)],
    ids=lambda s: type(s).__name__,
)
@pytest.mark.parametrize("lam", [1e-3, 1e-15])
@pytest.mark.parametrize(("kernel", "X"), RANK_DEFICIENT.values(), ids=RANK_DEFICIENT)
def test_growth_stops_at_the_numerical_rank(kernel, X, lam, sketch, fit_intercept):
    penalized = with_lambda(lam, fit_intercept=fit_intercept)
    ridge, gap = grown(empty_basis(kernel, X, sketch), penalized)
    assert np.isfinite(gap)
    assert np.isfinite(tuning.gap(ridge, np.arange(5)))
    assert ridge.basis.factor.complete


def test_growth_stops_at_the_cap_with_a_remedy(monkeypatch):
    sizes_are(monkeypatch, first=8, largest=32)
    sizes: list[int] = []
    basis = empty_basis(Gaussian(0.2), unit_cube(200, 3))
    text = (
        r"largest automatic size, 32, with a gap V2/V3 of .*, above the 1.543 for which standard "
        r"deviations are within sketch_tol=0.1: they may be off by .* Give a larger"
    )
    with pytest.warns(UserWarning, match=text):
        ridge, gap = grown(basis, with_lambda(1e-5, sizes))
    assert sizes[0] == 8
    assert sizes[-1] == ridge.basis.factor.sketch.size == 32
    assert gap > 1.6


def test_another_largest_size_is_the_cap():
    sizes: list[int] = []
    basis = empty_basis(Gaussian(0.2), unit_cube(200, 3))
    with pytest.warns(UserWarning, match="largest automatic size, 100"):
        ridge, _ = grown(basis, with_lambda(1e-5, sizes), largest=100)
    assert sizes == [64, 100]
    assert ridge.basis.factor.sketch.size == 100


def test_a_sketch_that_is_larger_already_does_not_grow_or_shrink():
    X = unit_cube(200, 3)
    basis = empty_basis(Gaussian(0.2), X).grown(120)
    with pytest.warns(UserWarning, match="largest automatic size, 120"):
        ridge, _ = grown(basis, with_lambda(1e-5), largest=100)
    assert ridge.basis.factor.sketch.size == 120


@pytest.mark.usefixtures("no_warning")
def test_growth_ends_with_all_rows():
    """A sketch of n rows is complete: the gap is one, and there is nothing to warn of."""
    basis = empty_basis(Laplacian(0.1), unit_cube(90, 3))
    ridge, gap = grown(basis, with_lambda(1e-6), tol=0.01)
    assert ridge.basis.factor.sketch.size == 90
    assert abs(gap - 1) <= tuning._ROUGH
    assert_close(tuning.gap(ridge, np.arange(90)), 1.0)


def test_growth_does_not_stop_because_two_sketch_rows_are_alike():
    """On 200 columns only 8 bits of a Hadamard row matter: of 64 rows two are alike, and yet they
    do not span the data."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        basis = empty_basis(Gaussian(0.2), unit_cube(200, 3), HadamardSketch(0))
        _, gap = grown(basis, with_lambda(1e-5))
    assert gap <= tuning.largest_gap(0.1) or caught


def test_growth_does_not_stop_below_the_guard():
    """There V2/V3 says nothing: a penalty below the floor makes the sketch grow, whatever the
    tolerance."""
    sizes: list[int] = []
    basis = empty_basis(Laplacian(0.3), unit_cube(150, 3))
    grown(basis, with_lambda(1e-9, sizes), tol=1e12, probe=50)
    assert sizes == [64, 150]


def test_growth_says_how_far_it_has_come():
    said: list[str] = []
    basis = empty_basis(Gaussian(0.3), unit_cube(600, 2))
    grown(basis, with_lambda(1e-4), say=said.append)
    assert len(said) == 1
    assert said[0].startswith("Growing the sketch: 64 rows, gap V2/V3 1")


# Bandwidths


@pytest.mark.parametrize(
    ("kernel", "metric"),
    [(Gaussian(), "euclidean"), (Laplacian(), "cityblock")],
    ids=["gaussian", "laplacian"],
)
def test_median_bandwidth_is_the_median_distance(kernel, metric):
    X = normal(200, 3)
    assert tuning.median_bandwidth(X, kernel) == np.median(pdist(X, metric))


def test_median_bandwidth_leaves_out_identical_rows():
    X = np.array([[0.0], [0.0], [0.0], [0.0], [1.0], [3.0]])
    assert tuning.median_bandwidth(X, Gaussian()) == 2.0


def test_median_bandwidth_of_many_rows_is_that_of_a_sample():
    """1,000 of 3,000 rows: a sample median of distances, off by more than 10% with probability
    < 1e-6."""
    X = normal(3000, 2)
    median = tuning.median_bandwidth(X, Gaussian())
    assert median == tuning.median_bandwidth(X, Gaussian())
    assert abs(median / np.median(pdist(X)) - 1) < 0.1


@pytest.mark.parametrize(
    ("X", "text"),
    [
        (np.ones((9, 2)), "needs rows that differ"),
        (np.diag([1e200, -1e200]), "overflow: rescale X"),
    ],
)
def test_median_bandwidth_error_is_a_sentence(X, text):
    with pytest.raises(ValueError, match=text), np.errstate(over="ignore"):
        tuning.median_bandwidth(X, Gaussian())


def gcv_bandwidth(X, Y, fit_intercept=False, w=None) -> float:
    w = np.ones(len(X)) if w is None else w
    return tuning.gcv_bandwidth(NumpyTiles(), Gaussian(), X, Y, w, fit_intercept)


@with_and_without_weights
@with_and_without_intercept
def test_gcv_bandwidth_follows_the_data(fit_intercept, weighted):
    """A fast wave needs a narrower kernel than the median distance, a slow one must not get it."""
    X, w = unit_cube(100, 1), weights(weighted, 100)
    noise = 0.05 * targets(100) / np.sqrt(w)[:, None]
    median = tuning.median_bandwidth(X, Gaussian())
    fast, slow = (
        gcv_bandwidth(X, np.sin(frequency * X) + noise, fit_intercept, w) for frequency in (60, 2)
    )
    assert fast < 0.5 * median <= slow
    assert 1 / 8 - tol() <= fast / median <= 8 + tol()


@pytest.mark.parametrize("change", [lambda w: 7 * w, lambda w: w * 2.0**-20])
def test_gcv_bandwidth_does_not_depend_on_the_scale_of_the_weights(change):
    X, w = unit_cube(100, 1), uneven(100)
    Y = np.sin(20 * X) + 0.05 * targets(100)
    assert gcv_bandwidth(X, Y, True, w) == gcv_bandwidth(X, Y, True, change(w))


def test_gcv_bandwidth_follows_the_rows_with_weight():
    """Weights are precisions: rows whose noise is a hundred times as large are not heard."""
    X, odd = unit_cube(200, 1), np.arange(200) % 2 == 1
    wave = np.where(odd[:, None], np.sin(60 * X), np.sin(2 * X))
    found = []
    for heavy in (odd, ~odd):
        w = np.where(heavy, 1.0, 1e-4)
        found.append(gcv_bandwidth(X, wave + 0.05 * targets(200) / np.sqrt(w)[:, None], False, w))
    assert found[0] < 0.5 * found[1]
