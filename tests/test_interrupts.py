"""An exception in the middle of a fit leaves the model that was, bit for bit, and a retry works."""

import signal
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from problems import X_TEST, M, X, Y
from threadpoolctl import threadpool_info, threadpool_limits

from sketchridge import (
    ExactKernelRidge,
    SketchedKernelRidge,
    candidates,
    chosen,
    exact_fit,
    selection,
)
from sketchridge.backends import NumpyTiles

PRIMITIVES = (
    "place",
    "points",
    "block",
    "schur",
    "matmul",
    "residual_sqnorm",
    "moments",
    "eigh",
    "tall",
    "array",
    "each",
    "total",
    "joined",
    "empty",
    "generate",
    "drawn",
    "solve_triangular",
    "definite",
    "dense",
    "cholesky",
    "triangular",
    "criterion",
    "left_out",
    "side_by_side",
    "picked",
)
_EVERY = 10


class Interrupting(NumpyTiles):
    """A backend whose primitives count their calls, and raise at one of them."""

    def __init__(self) -> None:
        super().__init__(workers=1)
        self.calls = 0
        self.seen: set[str] = set()
        self.names: list[str] = []  # of the calls since it was armed
        self.at: int | None = None
        self.error: type[BaseException] = KeyboardInterrupt

    def arm(self, at: int | None, error: type[BaseException] = KeyboardInterrupt) -> None:
        """Raise the error at the call of that number from now on; never for None."""
        self.calls = 0
        self.names = []
        self.at = at
        self.error = error

    def __getattribute__(self, name: str) -> Any:
        value = super().__getattribute__(name)
        if name not in PRIMITIVES:
            return value

        def counted(*arguments: Any, **options: Any) -> Any:
            self.calls += 1
            self.seen.add(name)
            self.names.append(name)
            if self.calls - 1 == self.at:
                raise self.error(f"in call {self.at}, of {name}")
            return value(*arguments, **options)

        return counted


NOISY = Y + np.random.default_rng(0).standard_normal(Y.shape)  # for penalties of a usual size
y = NOISY[:, 0]
FRAME = pd.DataFrame(X[:, ::-1], columns=["a", "b"])
ANSWERS = {
    "v1": lambda model: model.variance(X_TEST[:4], "v1"),
    "gp": lambda model: model.variance(X_TEST, "gp"),
    "bias2": lambda model: model.variance(X_TEST, "bias2"),
    "interval": lambda model: model.predict_interval(X_TEST),
}
SKETCHED_ANSWERS = {
    "v2": lambda model: model.variance(X_TEST, "v2"),
    "v3": lambda model: model.variance(X_TEST, "v3"),
    "bound": lambda model: model.variance(X_TEST[:4], refine=1, return_bound=True),
}
ATTRIBUTES = (
    "lambda_",
    "alpha_",
    "bandwidth_",
    "noise_variance_",
    "loo_error_",
    "eigenvalues_",
    "s_lambda_",
    "effective_dof_",
    "n_features_in_",
)
SKETCHED_ATTRIBUTES = ("sketch_size_", "gap_", "certificate_", "backend_", "dtype_")


def everything(model) -> dict[str, Any]:
    """All that a fitted model says, for features in whatever number it was fitted to."""
    said: dict[str, Any] = {"variables": sorted(vars(model))}
    said["names"] = list(getattr(model, "feature_names_in_", []))
    attributes = ATTRIBUTES
    answers = ANSWERS
    if isinstance(model, SketchedKernelRidge):
        attributes += SKETCHED_ATTRIBUTES
        answers = ANSWERS | SKETCHED_ANSWERS
    said |= {name: getattr(model, name) for name in attributes}
    d = model.n_features_in_
    at = np.column_stack([X_TEST, X_TEST])[:, :d]
    at = pd.DataFrame(at, columns=said["names"]) if said["names"] else at
    said["mean"] = model.predict(at)
    if d == 2 and not said["names"]:
        said |= {name: answer(model) for name, answer in answers.items()}
    path = model.path_
    return said | {"path": (path.lam, path.df, path.gcv, path.loo)}


def assert_identical(found: dict[str, Any], expected: dict[str, Any]) -> None:
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        if isinstance(value, str | list | int) or not hasattr(value, "__len__"):
            assert found[name] == value, name
        else:
            np.testing.assert_array_equal(found[name], value, err_msg=name)


SKETCHED_OPTIONS: dict[str, dict[str, Any]] = {
    "automatic": {"fit_intercept": True},
    "landmarks": {"alpha": 0.5, "sketch": "landmarks", "sketch_size": M},
    "dense": {"alpha": "loo", "sketch": "gaussian", "sketch_size": 40},
    "exact mean": {"alpha": 0.5, "sketch_size": M, "solver": "pcg", "fit_intercept": True},
}
EXACT_OPTIONS: dict[str, dict[str, Any]] = {
    "exact, gcv": {"fit_intercept": True},
    "exact, alpha": {"alpha": 0.5},
}
OPTIONS = SKETCHED_OPTIONS | EXACT_OPTIONS


def fresh(case: str, backend: Interrupting) -> Any:
    if case in EXACT_OPTIONS:
        return ExactKernelRidge(**EXACT_OPTIONS[case])
    options = SKETCHED_OPTIONS[case]
    return SketchedKernelRidge(**options, backend=backend, dtype="float64", random_state=0)


def first_fit(model):
    model.fit(X, y)


def refit_to_other_data(model):
    model.fit(X[:50] * 2 + 1, NOISY[:50] - 1000)


def refit_with_other_features(model):
    model.fit(X[:, :1], y + 5)


def refit_to_a_table(model):
    model.fit(FRAME, y)


def refit_with_other_parameters(model):
    model.set_params(kernel="matern32", alpha=2.0, fit_intercept=False, bandwidth=0.4)
    model.fit(X, y)


def append(model):
    model.partial_fit(X[60:] + 0.1, y[60:])


def append_repeated_rows(model):
    model.partial_fit(X[30:60], y[30:60] + 1, sample_weight=np.linspace(0, 2, 30))


CHANGES: list[Callable[[Any], None]] = [
    refit_to_other_data,
    refit_with_other_features,
    refit_to_a_table,
    refit_with_other_parameters,
    append,
    append_repeated_rows,
]


@pytest.fixture
def backend(monkeypatch):
    """The backend of every fit in the test, exact ones too."""
    made = Interrupting()
    monkeypatch.setattr(exact_fit, "as_backend", lambda spec, n: made)
    with threadpool_limits(1, user_api="blas"):  # of many tiny fits, threads make slow ones
        yield made


def calls_of(change: Callable[[Any], None], model: Any, backend: Interrupting) -> int:
    backend.arm(None)
    change(model)
    return backend.calls


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("case", OPTIONS)
@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_an_interrupted_first_fit_leaves_nothing(case, error, backend):
    expected = fresh(case, backend)
    total = calls_of(first_fit, expected, backend)
    model = fresh(case, backend)
    before = dict(vars(model))
    for at in range(0, total, _EVERY):
        backend.arm(at, error)
        with pytest.raises(error):
            first_fit(model)
        assert vars(model) == before
        assert not model.__sklearn_is_fitted__()
    backend.arm(None)
    first_fit(model)
    assert_identical(everything(model), everything(expected))


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("case", OPTIONS)
@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_an_interrupted_change_leaves_the_old_model_and_can_be_repeated(case, change, backend):
    """Exceptions take turns; each leaves every answer as it was, and a retry after all of them
    gives what an uninterrupted change gives."""
    expected = fresh(case, backend)
    expected.fit(X[:60], y[:60])
    total = calls_of(change, expected, backend)
    backend.arm(None)
    model = fresh(case, backend)
    model.fit(X[:60], y[:60])
    old = everything(model)
    kept = model._fitted
    for turn, at in enumerate(range(0, total, _EVERY)):
        error = (KeyboardInterrupt, MemoryError)[turn % 2]
        backend.arm(at, error)
        with pytest.raises(error, match="in call"):
            change(model)
        assert model._fitted is kept
        assert model.n_features_in_ == 2
    backend.arm(None)
    assert_identical(everything(model), old)
    change(model)
    assert_identical(everything(model), everything(expected))


# The defaults, which learn the kernel, as they are and with every step that only many rows take.
DEFAULTS: dict[str, tuple[type, dict[tuple[Any, str], int]]] = {
    "sketched": (SketchedKernelRidge, {}),
    "exact": (ExactKernelRidge, {}),
    "sketched, as of many rows": (
        SketchedKernelRidge,
        {
            (candidates, "_IN_TURN"): 30,
            (candidates, "_SIDE_BY_SIDE"): 30,
            (candidates, "_TRIAL"): 25,
            (chosen, "_ROWS"): 30,
            (chosen, "_CHECKED"): 35,
            (selection, "_COMPLETE"): 30,
        },
    ),
}


def default(case: str, backend: Interrupting) -> Any:
    cls, _ = DEFAULTS[case]
    return cls(backend=backend) if cls is ExactKernelRidge else cls(backend=backend, random_state=0)


def moments_of(names: list[str]) -> list[int]:
    """The first and the last call of each primitive, and every so many."""
    last = {name: at for at, name in enumerate(names)}
    first = {name: at for at, name in reversed(list(enumerate(names)))}
    often = range(0, len(names), max(_EVERY, len(names) // 5))
    return sorted({*first.values(), *last.values(), *often})


@pytest.mark.usefixtures("defaults")
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("case", DEFAULTS)
def test_interrupted_fits_with_the_defaults_leave_what_was(case, backend, monkeypatch):
    """A first fit, a fit to other data and further rows, in this order."""
    for (room, name), value in DEFAULTS[case][1].items():
        monkeypatch.setattr(room, name, value)
    model, expected = default(case, backend), default(case, backend)
    # where memory is short, an exact mean of many rows is computed in another way
    errors = [KeyboardInterrupt] if "many" in case else [KeyboardInterrupt, MemoryError]
    changes = [
        lambda each: each.fit(X[:50], y[:50]),
        lambda each: each.fit(X[:40] * 2 + 1, NOISY[:40, :1] - 1000),
        lambda each: each.partial_fit(X[60:70] + 0.1, NOISY[60:70, :1]),
    ]
    for change in changes:
        backend.arm(None)
        change(expected)
        moments = moments_of(backend.names)
        before = dict(vars(model))
        for turn, at in enumerate(moments):
            error = errors[turn % len(errors)]
            backend.arm(at, error)
            with pytest.raises(error, match="in call"):
                change(model)
            assert vars(model) == before
        backend.arm(None)
        change(model)
        assert_identical(everything(model), everything(expected))
    learned = {"criterion"} | ({"side_by_side", "left_out"} if "many" in case else set())
    factorized = {"dense", "cholesky", "triangular"}
    assert backend.seen >= learned | (factorized if case != "sketched" else set())


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_an_interrupted_choice_of_the_bandwidth_leaves_the_old_model(backend):
    """It takes thirteen fits, so that every hundredth call has to do."""
    model = fresh("automatic", backend)
    model.fit(X[:60], y[:60])
    old = everything(model)
    expected = fresh("automatic", backend).set_params(bandwidth="gcv")
    total = calls_of(first_fit, expected, backend)
    model.set_params(bandwidth="gcv")
    for at in range(0, total, 10 * _EVERY):
        backend.arm(at)
        with pytest.raises(KeyboardInterrupt):
            first_fit(model)
    backend.arm(None)
    assert_identical(everything(model), old)
    first_fit(model)
    assert_identical(everything(model), everything(expected))


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_answers_after_each_interruption_are_those_of_before(backend):
    """Not only after the last: what an interrupted change computed must not be kept anywhere."""
    model = fresh("dense", backend)
    model.fit(X[:60], y[:60])
    old = everything(model)
    total = calls_of(append, fresh("dense", backend).fit(X[:60], y[:60]), backend)
    for at in range(0, total, 5 * _EVERY):
        backend.arm(at)
        with pytest.raises(KeyboardInterrupt):
            append(model)
        backend.arm(None)
        assert_identical(everything(model), old)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_an_interrupted_question_can_be_asked_again(backend):
    model = fresh("exact mean", backend)
    model.fit(X, y)
    expected = everything(model)
    other = fresh("exact mean", backend)
    other.fit(X, y)
    backend.arm(None)
    everything(other)
    total = backend.calls
    asked = fresh("exact mean", backend)
    asked.fit(X, y)
    for at in range(0, total, 3 * _EVERY):
        backend.arm(at)
        try:
            everything(asked)
        except KeyboardInterrupt:
            continue
        break  # what was computed is kept, so that later ones need fewer calls
    backend.arm(None)
    assert_identical(everything(asked), expected)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_the_primitives_of_a_fit_are_interrupted(backend):
    """Otherwise the tests above would test nothing."""
    for case in OPTIONS:
        model = fresh(case, backend)
        model.fit(X[:60], y[:60])
        append(model)
        everything(model)
    assert backend.seen >= set(PRIMITIVES) - {"definite", "criterion", "left_out", "side_by_side"}


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs timers that send signals")
@pytest.mark.parametrize(
    ("cls", "n"), [(SketchedKernelRidge, 3000), (ExactKernelRidge, 400)], ids=["sketched", "exact"]
)
def test_a_real_signal_at_any_moment_leaves_the_old_model_or_the_new(cls, n):
    """Between any two lines, those that hold BLAS to one thread among them."""
    rng = np.random.default_rng(0)
    A = rng.random((n, 3))
    b = np.sin(5 * A[:, 0]) + 0.1 * rng.standard_normal(n)
    options = {"alpha": 0.1, "bandwidth": 0.5, "fit_intercept": True}
    options |= {"random_state": 0} if cls is SketchedKernelRidge else {}
    blas = [library["num_threads"] for library in threadpool_info()]
    start = time.perf_counter()
    expected = cls(**options).fit(A, b + 1000).predict(A[:5])
    duration = time.perf_counter() - start
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        for _ in range(20):
            model = cls(**options).fit(A[:200], b[:200])
            old = model.predict(A[:5])
            try:
                signal.setitimer(signal.ITIMER_REAL, max(1e-4, rng.uniform(0, duration)))
                model.fit(A, b + 1000)
                time.sleep(duration + 1)  # a signal that comes late ends this, and no other test
            except KeyboardInterrupt:
                found = model.predict(A[:5])
                is_old = np.array_equal(found, old)
                assert is_old or np.allclose(found, expected, rtol=1e-9, atol=0)
    finally:
        signal.signal(signal.SIGALRM, before)
    np.testing.assert_allclose(model.fit(A, b + 1000).predict(A[:5]), expected, rtol=1e-9)
    assert [library["num_threads"] for library in threadpool_info()] == blas
