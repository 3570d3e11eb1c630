"""Models kept in files: what they say after a round trip, how large they are, whom a reader has to
trust, where they can be loaded, and that they share nothing with the caller."""

import copy
import io
import os
import pickle
import subprocess
import sys
from pathlib import Path

import joblib
import numpy as np
import pytest
import skops.io
from helpers import DEVICE, assert_close
from problems import KERNEL_NAMES, classes, intercepts, kinds
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.gaussian_process.kernels import RBF

import sketchridge
from sketchridge import ExactKernelRidge, SketchedKernelRidge, fitted
from sketchridge.backends import NumpyTiles
from sketchridge.backends.torch_tiles import TorchTiles
from sketchridge.backends.triton_fused import TritonFused
from sketchridge.kernels import Gaussian
from sketchridge.sketches import SKETCHES

SEED = 0
rng = np.random.default_rng(SEED)
X = rng.uniform(0, 1, (60, 3))
SIGNAL = np.column_stack([np.sin(3 * X[:, 0]) + X[:, 1], X[:, 2] ** 2, X.sum(axis=1)])
Y = SIGNAL + 0.1 * rng.standard_normal((60, 3))
y = Y[:, 0]
X_TEST = rng.uniform(0, 1, (40, 3))
W = rng.integers(1, 4, 60).astype(float)

# What a reader of skops files has to trust for a model with default settings. Another kernel or
# sketch has its own class, and a radial or dot-product kernel the functions it is made of, in the
# place of these.
TRUSTED = [
    "sketchridge.certify.Certificate",
    "sketchridge.data.Data",
    "sketchridge.estimator.SketchedKernelRidge",
    "sketchridge.fitted.Fitted",
    "sketchridge.fitted.Settings",
    "sketchridge.kernels.radial.Radial",
    "sketchridge.kernels.radial.gaussian",
    "sketchridge.kernels.radial.gaussian_slope",
    "sketchridge.precision.Plan",
    "sketchridge.predictive.Predictive",
    "sketchridge.predictive.Ranks",
    "sketchridge.rows.Rows",
    "sketchridge.sketches.RPCholeskySketch",
]
TRUSTED_EXACT = [
    "sketchridge.data.Data",
    "sketchridge.exact_estimator.ExactKernelRidge",
    "sketchridge.exact_fit.ExactFitted",
    "sketchridge.kernels.radial.Radial",
    "sketchridge.kernels.radial.gaussian",
    "sketchridge.kernels.radial.gaussian_slope",
    "sketchridge.model.Choices",
    "sketchridge.predictive.Predictive",
    "sketchridge.predictive.Ranks",
    "sketchridge.rows.Rows",
    "sketchridge.tuning.LambdaPath",
]


def through_pickle(model):
    return pickle.loads(pickle.dumps(model))


def through_joblib(model):
    file = io.BytesIO()
    joblib.dump(model, file)
    file.seek(0)
    return joblib.load(file)


def through_skops(model):
    """Only types of sketchridge, NumPy and scikit-learn may need the reader's trust."""
    data = skops.io.dumps(model)
    untrusted = skops.io.get_untrusted_types(data=data)
    assert {name.partition(".")[0] for name in untrusted} <= {"sketchridge", "numpy", "sklearn"}
    return skops.io.loads(data, trusted=untrusted)


round_trips = pytest.mark.parametrize(
    "restore", [through_pickle, through_joblib, through_skops, copy.deepcopy, copy.copy]
)

ATTRIBUTES = (
    "lambda_",
    "alpha_",
    "noise_variance_",
    "effective_dof_",
    "s_lambda_",
    "eigenvalues_",
    "loo_error_",
)


def assert_restored(restored, model):
    """Means are the same bit for bit, whatever else is made again agrees to rounding.

    gp and bias2 are differences from k(x, x), to whose size they are rounded.
    """
    assert restored is not model
    assert restored.get_params().keys() == model.get_params().keys()
    np.testing.assert_array_equal(restored.predict(X_TEST), model.predict(X_TEST))
    std = model.predict(X_TEST, return_std=True)[1]
    assert_close(restored.predict(X_TEST, return_std=True)[1], std)
    prior = model.fitted_.kernel.diag(X_TEST).max()
    for kind in kinds(model):
        variance = model.variance(X_TEST, kind)
        scale = max(prior, variance.max()) if kind in ("gp", "bias2") else None
        assert_close(restored.variance(X_TEST, kind), variance, scale=scale)
    assert restored.bandwidth_ == model.bandwidth_
    for name in ATTRIBUTES:
        assert_close(getattr(restored, name), getattr(model, name))
    for name in ("lam", "df", "gcv", "loo"):
        assert_close(getattr(restored.path_, name)[46:], getattr(model.path_, name)[46:])
    if isinstance(model, SketchedKernelRidge):
        for name in ("norm", "relative"):
            found, expected = (getattr(m.certificate_, name) for m in (restored, model))
            assert_close(found, expected, scale=1.0)
        assert restored.gap_ == model.gap_
        assert restored.sketch_size_ == model.sketch_size_
        assert (restored.backend_, restored.dtype_) == (model.backend_, model.dtype_)
    assert restored.n_features_in_ == model.n_features_in_


@round_trips
@intercepts
@pytest.mark.parametrize("sketch", ["auto", *SKETCHES, "array"])
def test_sketched_round_trip(sketch, fit_intercept, restore):
    given = np.eye(len(X))[::2] if sketch == "array" else sketch
    size = 20 if sketch in SKETCHES else "auto"
    model = SketchedKernelRidge(
        alpha=0.5, sketch=given, sketch_size=size, fit_intercept=fit_intercept, random_state=SEED
    ).fit(X, Y, sample_weight=W)
    restored = restore(model)
    assert_restored(restored, model)
    more = X_TEST, np.ones((40, 3))
    before = model.predict(X_TEST)
    if sketch != "array":
        restored.partial_fit(*more)
        np.testing.assert_array_equal(model.predict(X_TEST), before)
        model.partial_fit(*more)
        assert_close(restored.predict(X_TEST), model.predict(X_TEST))
        assert_close(restored.variance(X_TEST), model.variance(X_TEST))


@round_trips
@pytest.mark.parametrize("solver", ["sketch", "pcg"])
def test_refined_answers_survive_too(solver, restore):
    model = SketchedKernelRidge(
        alpha=0.5, sketch_size=10, solver=solver, random_state=SEED, dtype="float64"
    ).fit(X, Y)
    restored = restore(model)
    assert_restored(restored, model)
    steps = {"refine": 2, "return_bound": True}
    assert_close(restored.variance(X_TEST, **steps), model.variance(X_TEST, **steps))
    exact = {"kind": "v1", "return_bound": True}
    (found, its_bound), (expected, bound) = (m.variance(X_TEST, **exact) for m in (restored, model))
    assert (np.abs(np.sqrt(found) - np.sqrt(expected)) <= bound + its_bound).all()
    assert_close(restored.certificate("norm").norm, model.certificate("norm").norm)


@round_trips
@pytest.mark.parametrize("kernel", [*KERNEL_NAMES, Gaussian(0.5), RBF(0.5)], ids=str)
@classes
def test_every_kernel_survives(cls, kernel, restore):
    seed = {"random_state": SEED} if cls is SketchedKernelRidge else {}
    model = cls(kernel, alpha=0.5, fit_intercept=True, **seed).fit(X, y)
    assert_restored(restore(model), model)


@round_trips
def test_exact_round_trip_with_chosen_alpha(restore):
    model = ExactKernelRidge(fit_intercept=True, alpha="loo").fit(X, y, sample_weight=W)
    restored = restore(model)
    assert_restored(restored, model)
    np.testing.assert_array_equal(restored.path_.gcv, model.path_.gcv)
    for each in (restored, model):
        each.partial_fit(X_TEST, X_TEST[:, 0])
    assert_close(restored.predict(X), model.predict(X))


@round_trips
@classes
def test_a_precomputed_kernel_survives(cls, restore):
    model = cls("precomputed", alpha=0.5).fit(RBF(0.5)(X), y)
    k_x = RBF(0.5)(X_TEST, X)
    restored = restore(model)
    np.testing.assert_array_equal(restored.predict(k_x), model.predict(k_x))
    assert_close(restored.variance(k_x), model.variance(k_x))


@round_trips
@classes
def test_an_ill_conditioned_model_survives(cls, restore):
    """λ is 5e-10 of the largest eigenvalue, and predictions are the same nevertheless."""
    A, labels = make_blobs(
        n_samples=30, centers=[[0, 0, 0], [1, 1, 1]], cluster_std=0.1, random_state=0
    )
    options = {"random_state": 0} if cls is SketchedKernelRidge else {}
    model = cls(alpha=1e-8, **options).fit(A, labels.astype(float))
    np.testing.assert_array_equal(restore(model).predict(A), model.predict(A))


@round_trips
@classes
def test_unfitted_round_trip(cls, restore):
    model = cls(alpha=0.3)
    restored = restore(clone(model))
    assert restored.get_params() == model.get_params()
    assert not hasattr(restored, "lambda_")


# whom a reader of skops files has to trust


def untrusted(model):
    return skops.io.get_untrusted_types(data=skops.io.dumps(model))


MODELS = {
    "default": {},
    "intercept": {"fit_intercept": True},
    "alpha": {"alpha": 0.5},
    "loo": {"alpha": "loo"},
    "bandwidths": {"bandwidth": [0.5, 1.0, 2.0]},
    "a map": {"bandwidth": np.eye(3)[:, :2]},
    "gcv bandwidth": {"bandwidth": "gcv"},
    "noise": {"noise_variance": 0.1},
}
SKETCHED_MODELS = {
    "size": {"sketch_size": 12, "alpha": 0.5},
    "pcg": {"solver": "pcg", "alpha": 0.5},
    "single precision": {"dtype": "float32", "alpha": 0.5},
    "backend": {"backend": "numpy"},
    "seed": {"random_state": 3},
}


@pytest.mark.parametrize("case", [*MODELS, *SKETCHED_MODELS])
def test_the_list_of_types_to_trust_is_one_and_stable(case):
    options = (MODELS | SKETCHED_MODELS)[case]
    for targets, weights in ((y, None), (Y, W)):
        model = SketchedKernelRidge(**options).fit(X, targets, sample_weight=weights)
        assert untrusted(model) == TRUSTED
        model.predict(X_TEST, return_std=True)
        model.variance(X_TEST, "gp")
        assert untrusted(model.partial_fit(X_TEST, targets[:40])) == TRUSTED


@pytest.mark.parametrize("case", MODELS)
def test_the_list_of_types_to_trust_of_an_exact_model(case):
    found = untrusted(ExactKernelRidge(**MODELS[case]).fit(X, Y, sample_weight=W))
    given = "alpha" in MODELS[case] and not isinstance(MODELS[case]["alpha"], str)
    expected = [name for name in TRUSTED_EXACT if not (given and name.endswith("LambdaPath"))]
    assert found == expected


@pytest.mark.parametrize("name", KERNEL_NAMES)
def test_another_kernel_takes_the_place_of_the_default_one(name):
    found = set(untrusted(SketchedKernelRidge(name, alpha=0.5).fit(X, y)))
    others = {entry for entry in TRUSTED if ".kernels." not in entry}
    assert found >= others
    assert all(entry.startswith("sketchridge.kernels.") for entry in found - others)


@pytest.mark.parametrize("name", SKETCHES)
def test_another_sketch_takes_the_place_of_the_default_one(name):
    found = set(untrusted(SketchedKernelRidge(sketch=name, sketch_size=9, alpha=0.5).fit(X, y)))
    others = {entry for entry in TRUSTED if ".sketches." not in entry}
    assert found == others | {f"sketchridge.sketches.{SKETCHES[name].__name__}"}


def test_nothing_but_the_parameters_of_an_unfitted_model_is_untrusted():
    assert untrusted(SketchedKernelRidge()) == ["sketchridge.estimator.SketchedKernelRidge"]
    assert untrusted(ExactKernelRidge()) == ["sketchridge.exact_estimator.ExactKernelRidge"]


# how large a file is


def fitted_to(n, d, m):
    source = np.random.default_rng(0)
    A = source.standard_normal((n, d))
    b = np.sin(A[:, 0]) + 0.1 * source.standard_normal(n)
    return SketchedKernelRidge(alpha=1e-3 * n, sketch_size=m, random_state=0).fit(A, b)


def test_a_file_holds_the_data_and_two_square_matrices():
    """X, y, weights, groups and tables of scores; the triangular factor and the eigenvectors;
    coefficients."""
    n, d, m = 2000, 13, 128
    model = fitted_to(n, d, m)
    model.variance(np.zeros((3, d)))  # what is kept to answer questions is not stored
    size = len(pickle.dumps(model))
    assert size < 8 * (n * (d + 12) + 2 * m**2 + 10 * m) + 20_000
    assert len(skops.io.dumps(model)) < size + 80_000  # what it says about types


def test_an_exact_file_holds_no_square_matrix():
    n, d = 500, 5
    A = np.random.default_rng(0).standard_normal((n, d))
    model = ExactKernelRidge(alpha=1.0).fit(A, A[:, 0])
    model.variance(A[:3])
    assert len(pickle.dumps(model)) < 8 * n * (d + 13) + 10_000


def test_a_model_of_housing_prices_fits_an_email():
    """15,480 × 13 rows with m = 1,024: it was 281 MB."""
    model = fitted_to(15_480, 13, 1024)
    assert model.sketch_size_ == 1024
    assert len(pickle.dumps(model)) <= 25_000_000
    assert len(skops.io.dumps(model)) <= 25_000_000


def default_fit(**options):
    X = np.random.default_rng(0).uniform(size=(300, 3))
    y = np.sin(5 * X[:, 0]) + X[:, 1] + 0.2 * np.random.default_rng(1).standard_normal(300)
    model = SketchedKernelRidge(
        "matern32", bandwidth=1.0, alpha="loo", fit_intercept=True, **options
    )
    return model.fit(X, y), np.vstack([X[:5], np.random.default_rng(2).uniform(size=(5, 3)) * 2])


LARGE = {
    "complete": {"solver": "auto"},
    "exact": {"solver": "pcg", "sketch_size": 60},
    "weighted": {"solver": "auto", "noise": "varying"},
}


@pytest.mark.parametrize("options", LARGE.values(), ids=LARGE)
@pytest.mark.parametrize("times", [1, 2])
def test_a_large_model_is_saved_without_square_matrices(options, times, monkeypatch):
    """L and V are made again when variances are asked for; the mean needs neither."""
    model, Z = default_fit(random_state=0, **options)
    small = len(pickle.dumps(model))
    monkeypatch.setattr(fitted, "_STORED", 0)
    for _ in range(times):
        stored = pickle.dumps(model)
        model = pickle.loads(stored)
    rank = len(model.eigenvalues_)
    again = pickle.loads(stored)
    assert len(stored) < small - 12 * rank**2
    assert "landmarks" not in vars(again.fitted_.factor)
    before, Z = default_fit(random_state=0, **options)
    assert_close(again.predict(Z), before.predict(Z), condition=100)
    assert_close(again.predict_interval(Z)[0], before.predict_interval(Z)[0], condition=100)
    made_again = again.fitted_.omega is not None
    assert ("landmarks" in vars(again.fitted_.factor)) == made_again
    assert again.solver_ == before.solver_
    for kind in ("v2", "v3", "vbar", "gp", "bias2"):
        assert_close(again.variance(Z, kind), before.variance(Z, kind), condition=1e4)
    assert_close(again.loo_error_, before.loo_error_, condition=100)
    assert again.gap_ == before.gap_
    more = np.random.default_rng(3).uniform(size=(20, 3))
    assert_close(
        again.partial_fit(more, more[:, 0]).predict(Z),
        before.partial_fit(more, more[:, 0]).predict(Z),
        condition=1e4,
    )


def test_a_default_model_of_thousands_of_rows_fits_an_email():
    X = np.random.default_rng(0).standard_normal((3000, 13))
    y = np.sin(X[:, 0]) + 0.1 * np.random.default_rng(1).standard_normal(3000)
    model = SketchedKernelRidge("gaussian", bandwidth=2.0, alpha="loo", random_state=0).fit(X, y)
    assert model.sketch_size_ == 3000
    assert len(pickle.dumps(model)) <= 5_000_000  # 144 MB with two square matrices


# where it can be loaded

LOAD = """
import sys
{before}
import pickle
import numpy as np
with open(sys.argv[1], "rb") as file:
    model, Z = pickle.load(file)
mean, std = model.predict(Z, return_std=True)
model.partial_fit(Z, Z[:, 0])
np.savez(sys.argv[2], mean=mean, std=std, backend=model.backend_, later=model.predict(Z))
"""
NO_TORCH = """
class Hidden:
    def find_spec(self, name, path=None, target=None):
        hidden = name.partition(".")[0] in ("torch", "triton")
        return None if hidden else PathFinder.find_spec(name, path, target)

from importlib.machinery import PathFinder
sys.meta_path[sys.meta_path.index(PathFinder)] = Hidden()
"""


def loaded_elsewhere(model, folder: Path, before: str = "") -> dict[str, np.ndarray]:
    """What a model says in a new process, after rows were appended there too."""
    with open(folder / "model.pkl", "wb") as file:
        pickle.dump((model, X_TEST), file)
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    environment["PYTHONPATH"] = str(Path(sketchridge.__file__).parents[1])
    command = [sys.executable, "-c", LOAD.format(before=before)]
    done = subprocess.run(
        [*command, folder / "model.pkl", folder / "said.npz"],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    with np.load(folder / "said.npz") as said:
        return dict(said)


def assert_says_the_same(said, model, kind="float64"):
    mean, std = model.predict(X_TEST, return_std=True)
    assert_close(said["mean"], mean, kind)
    assert_close(said["std"], std, kind)
    later = copy.deepcopy(model).partial_fit(X_TEST, X_TEST[:, 0])
    assert_close(said["later"], later.predict(X_TEST), kind)


MISSING = "cuda:99"  # as if a model had been fitted on a machine with a hundred GPUs
OPTIONS = {"alpha": 0.5, "fit_intercept": True, "random_state": SEED, "dtype": "float64"}


def test_a_backend_by_name_is_replaced_where_its_library_is_missing(tmp_path):
    model = SketchedKernelRidge(backend="torch", **OPTIONS).fit(X, y)
    assert model.backend_ == "torch"
    said = loaded_elsewhere(model, tmp_path, NO_TORCH)
    assert said["backend"] == "numpy"
    assert_says_the_same(said, model)


def test_a_backend_object_is_replaced_where_its_device_is_missing(tmp_path):
    backend = TorchTiles(device="cpu")
    model = SketchedKernelRidge(backend=backend, **OPTIONS).fit(X, y)
    backend._asked = MISSING
    said = loaded_elsewhere(model, tmp_path)
    assert said["backend"] == "numpy"
    assert_says_the_same(said, model)


@pytest.mark.parametrize(
    ("sketch", "dtype"),
    [("rademacher", "float16x2"), ("rademacher", "float16"), ("rpcholesky", "float32")],
)
@pytest.mark.parametrize("solver", ["sketch", "pcg"])
def test_precisions_that_only_a_gpu_has_are_replaced_too(sketch, dtype, solver, tmp_path):
    """A model fitted in half precision, here by Triton's interpreter, goes on in float64."""
    backend = TritonFused(device=DEVICE)
    options = OPTIONS | {"dtype": dtype, "sketch": sketch, "sketch_size": 20, "alpha": 5.0}
    options |= {"solver": solver}
    model = SketchedKernelRidge(backend=backend, **options).fit(X, y)
    mean, std = model.predict(X_TEST, return_std=True)
    backend._asked = MISSING
    said = loaded_elsewhere(model.set_params(dtype="auto"), tmp_path)
    assert said["backend"] == "numpy"
    np.testing.assert_allclose(said["mean"], mean, atol=1e-3)
    np.testing.assert_allclose(said["std"], std, rtol=1e-2)


def test_a_backend_object_keeps_its_settings():
    model = SketchedKernelRidge(backend=NumpyTiles(workers=1, tile=64), **OPTIONS).fit(X, y)
    restored = through_pickle(model)
    assert (restored.backend.workers, restored.backend.tile) == (1, 64)
    assert_restored(restored, model)


# nothing is shared with the caller


@classes
def test_the_callers_arrays_may_change_after_a_fit(cls):
    arrays = {
        "X": X.copy(),
        "y": Y.copy(),
        "sample_weight": W.copy(),
        "bandwidth": np.array([0.5, 0.7, 0.9]),
        "noise": np.array([0.1, 0.2, 0.3]),
    }
    options = {"bandwidth": arrays["bandwidth"], "noise_variance": arrays["noise"], "alpha": 0.5}
    if cls is SketchedKernelRidge:
        arrays["sketch"] = np.random.default_rng(1).standard_normal((9, 60))
        options["sketch"] = arrays["sketch"]
    model = cls(fit_intercept=True, **options)
    model.fit(arrays["X"], arrays["y"], sample_weight=arrays["sample_weight"])
    before = [model.predict(X_TEST), *(model.variance(X_TEST, kind) for kind in kinds(model))]
    for array in arrays.values():
        array[...] = -7.0
    after = [model.predict(X_TEST), *(model.variance(X_TEST, kind) for kind in kinds(model))]
    for one, other in zip(after, before, strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(model.bandwidth_, [0.5, 0.7, 0.9])
    np.testing.assert_array_equal(model.noise_variance_, [0.1, 0.2, 0.3])


@classes
def test_a_kernel_object_may_change_after_a_fit(cls):
    h = np.array([0.5, 0.7, 0.9])
    model = cls(Gaussian(bandwidth=h), alpha=0.5).fit(X, y)
    before = model.predict(X_TEST, return_std=True)
    h[:] = 100.0
    np.testing.assert_array_equal(model.predict(X_TEST, return_std=True), before)


@classes
def test_what_is_predicted_may_be_changed(cls):
    """Answers are the caller's own."""
    model = cls(alpha=0.5, bandwidth=[0.5, 0.7, 0.9]).fit(X, Y)
    expected = [a.copy() for a in model.predict(X_TEST, return_std=True)]
    fitted = (model.eigenvalues_, model.noise_variance_, model.bandwidth_)
    for answer in (*model.predict(X_TEST, return_std=True), *fitted):
        answer[...] = np.nan
    for found, wanted in zip(model.predict(X_TEST, return_std=True), expected, strict=True):
        np.testing.assert_array_equal(found, wanted)


@classes
@pytest.mark.parametrize("alpha", [0.5, "loo"])
def test_what_was_found_may_be_changed(cls, alpha):
    """Attributes are the caller's own too, and their next reading is that of before."""
    model = cls(alpha=alpha, bandwidth=[0.5, 0.7, 0.9]).fit(X, Y)

    def answers():
        arrays = [model.eigenvalues_, model.path_.loo, model.kernel_.bandwidth]
        if cls is SketchedKernelRidge:
            arrays.append(model.sketch_.indices)
        return [*arrays, model.predict(X_TEST), *model.predict_interval(X_TEST)]

    before = [a.copy() for a in answers()]
    for answer in answers():
        answer[...] = 1
    for found, wanted in zip(answers(), before, strict=True):
        np.testing.assert_array_equal(found, wanted)


VIEWS = {
    "strides": lambda A: np.repeat(np.repeat(A, 2, axis=0), 3, axis=1)[::2, ::3],
    "backwards": lambda A: A[::-1, ::-1].copy()[::-1, ::-1],
    "Fortran order": np.asfortranarray,
    "read-only": lambda A: np.broadcast_to(A[None], (1, *A.shape))[0],
    "a subclass": lambda A: A.copy().view(np.memmap),
}


@classes
@pytest.mark.parametrize("view", VIEWS)
def test_views_are_copied(cls, view):
    make = VIEWS[view]
    A = make(X)
    model = cls(alpha=0.5).fit(A, y)
    plain = cls(alpha=0.5).fit(X, y)
    assert_close(through_pickle(model).predict(make(X_TEST)), plain.predict(X_TEST))
    assert type(model._fitted.data.X) is np.ndarray
    assert not np.shares_memory(model._fitted.data.X, A)


@classes
def test_single_precision_data_are_the_numbers_they_are(cls):
    A = X.astype(np.float32)
    options = {"random_state": SEED} if cls is SketchedKernelRidge else {}
    one = cls(alpha=0.5, **options).fit(A, y.astype(np.float32))
    other = cls(alpha=0.5, **options).fit(A.astype(float), y.astype(np.float32).astype(float))
    assert one.predict(A).dtype == np.float64
    np.testing.assert_array_equal(one.predict(A), other.predict(A.astype(float)))
