"""Memory: what fit and variance add stays near the size of the factor, what is refused is what
would not fit, and a large dense problem does not kill the interpreter."""

import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import sketchridge
from sketchridge import ExactKernelRidge, SketchedKernelRidge, candidates, dense, exact_fit
from sketchridge.backends import NumpyTiles, memory
from sketchridge.candidates import Race
from sketchridge.kernels import Gaussian, Laplacian, Matern32, Matern52
from sketchridge.learning import learn

M = 200
SKETCHES = {"rpcholesky": 50_000, "landmarks": 50_000, "rademacher": 30_000}
TILES = {"rpcholesky": 100_000_000, "landmarks": 100_000_000, "rademacher": 300_000_000}  # bytes

PEAK = """
import sys
import numpy as np
from sketchridge import ExactKernelRidge, SketchedKernelRidge

def peak():
    # VmHWM belongs to this program alone; ru_maxrss starts at the memory of its parent.
    with open("/proc/self/status") as lines:
        return next(1024 * int(line.split()[1]) for line in lines if line.startswith("VmHWM"))

def data(n):
    rng = np.random.default_rng(0)
    X = rng.random((n, 5))
    return X, np.sin(3 * X.sum(axis=1)) + 0.1 * rng.standard_normal(n)
"""

MEASURE = (
    PEAK
    + """
sketch, n, m = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
X, y = data(n)
before = peak()
model = SketchedKernelRidge(
    alpha=1e-3 * n, bandwidth=0.5, sketch=sketch, sketch_size=m, random_state=0
).fit(X, y)
variance = model.variance(X[:1000])
assert model.sketch_size_ == m and np.isfinite(variance).all()
print(peak() - before)
"""
)

EXACT = (
    PEAK
    + """
alpha, n = eval(sys.argv[1]), int(sys.argv[2])
X, y = data(n)
ExactKernelRidge(alpha=alpha, bandwidth=0.2).fit(X[:50], y[:50]).variance(X[:2])
before = peak()
model = ExactKernelRidge(alpha=alpha, bandwidth=0.2).fit(X, y)
model.variance(X[:300])
model.loo_error_
print(peak() - before)
"""
)

LEARNING = (
    PEAK
    + """
from functools import partial
from sketchridge.backends import NumpyTiles
from sketchridge.kernels import Matern52
from sketchridge.loo import Problem, best_alpha, criterion_at, kernel_matrix, left_out

step, n, workers = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
X, y = data(n)

def work(n):
    problem = Problem(X[:n], y[:n, None], np.ones(n), True)
    if step == "alpha":
        best_alpha(kernel_matrix(Matern52(), X[:n]), problem)
    elif step == "left out":
        left_out(Matern52(), X[:n], 0.1, problem)
    else:
        criterion_at(step, Matern52(), X[:n], 0.1, problem)

backend = NumpyTiles(workers=workers)
backend.side_by_side([partial(work, 50)] * workers)
before = peak()
backend.side_by_side([partial(work, n)] * workers)
print(peak() - before)
"""
)

DENSE = (
    PEAK
    + """
X, y = data(16_000)
model = ExactKernelRidge(alpha=16.0, bandwidth=0.5).fit(X, y)
mean, std = model.predict(X[:100], return_std=True)
assert np.isfinite(mean).all() and (std > 0).all()
"""
)


def run(code: str, *arguments: object, **environment: str) -> str:
    """What a program prints in a fresh interpreter."""
    environment["PYTHONPATH"] = str(Path(sketchridge.__file__).parents[1])
    command = [sys.executable, "-c", code, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("sketch", SKETCHES)
def test_fit_and_variance_add_little_memory(sketch):
    n = SKETCHES[sketch]
    assert int(run(MEASURE, sketch, n, M)) < 4 * 8 * n * M + TILES[sketch]


@pytest.mark.parametrize("alpha", ["1.0", "'gcv'", "'loo'"])
def test_the_exact_estimator_takes_no_more_than_is_checked(alpha, monkeypatch):
    """It took 3.8 times as much: killed instead of refused."""
    n = 2000
    asked = []
    monkeypatch.setattr(memory, "check", lambda needed, *text: asked.append(needed))
    dense.check_memory(NumpyTiles(), n, with_path=alpha != "1.0")
    taken = int(run(EXACT, alpha, n, OMP_NUM_THREADS="1"))  # no threads, on a busy machine
    assert taken <= asked[0] + 30_000_000  # of threads and libraries
    assert taken >= asked[0] / 4  # and does not refuse what would fit easily


@pytest.mark.parametrize("step", ["loo", "reml", "left out", "alpha"])
@pytest.mark.parametrize("workers", [1, 2])
def test_learning_takes_no_more_than_is_checked(step, workers):
    n = 1200
    taken = int(run(LEARNING, step, n, workers, OMP_NUM_THREADS="1"))
    assert taken <= workers * 8 * candidates._SQUARES * n**2 + 10_000_000  # of threads
    assert workers > 1 or taken >= 8 * candidates._SQUARES * n**2 / 2


@pytest.fixture
def few_rows(monkeypatch):
    """Rows and targets, with candidates learned and compared on few of them."""
    monkeypatch.setattr(candidates, "_SIDE_BY_SIDE", 50)
    rng = np.random.default_rng(0)
    X = rng.random((400, 2))
    return X, np.sin(5 * X[:, 0]) + 0.1 * rng.standard_normal(400)


@pytest.mark.usefixtures("defaults")
@pytest.mark.parametrize("cls", [SketchedKernelRidge, ExactKernelRidge])
def test_what_learning_cannot_have_is_refused_before_it_begins(cls, few_rows, monkeypatch):
    monkeypatch.setattr(Race, "learned", lambda *arguments: pytest.fail("begun"))
    asked = 8 * candidates._SQUARES * 400**2
    monkeypatch.setattr(memory, "available", lambda: asked - 1)
    monkeypatch.setattr(exact_fit, "check_memory", lambda *arguments, **options: None)
    text = "Learning the kernel on 400 rows needs .* bytes .* are available: give kernel='matern32'"
    model = cls()
    with pytest.raises(MemoryError, match=text):
        model.fit(*few_rows)
    assert not model.__sklearn_is_fitted__()


@pytest.mark.parametrize(("room", "at_once"), [(1.0, 1), (2.5, 2), (100.0, 3)])
def test_as_many_candidates_are_learned_at_once_as_there_is_memory_for(
    room, at_once, few_rows, monkeypatch
):
    """And what is learned does not depend on it."""
    X, y = few_rows
    backend = NumpyTiles(workers=3)
    kernels = [Matern32(), Matern52(), Gaussian(), Laplacian()]
    running: list[int] = []
    most: list[int] = []
    tried = Race.tried

    def counted(*arguments, **options):
        running.append(1)
        most.append(len(running))
        time.sleep(0.05)
        found = tried(*arguments, **options)
        running.pop()
        return found

    def learned():
        options = {"kernels": kernels, "forms": ["isotropic"], "fit_intercept": True, "seed": 0}
        return learn(X, y[:, None], np.ones(400), **options, backend=backend)

    expected = learned()
    monkeypatch.setattr(Race, "tried", counted)
    one = 8 * candidates._SQUARES * 400**2
    monkeypatch.setattr(memory, "available", lambda: room * one)
    found = learned()
    assert max(most) == at_once
    np.testing.assert_array_equal(found.map, expected.map)


@pytest.mark.slow
def test_sixteen_thousand_rows_do_not_crash_the_exact_estimator():
    run(DENSE)
