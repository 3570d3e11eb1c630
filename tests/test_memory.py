"""Memory: what fit and variance add stays near the size of the factor, what is refused is what
would not fit, and a large dense problem does not kill the interpreter."""

import subprocess
import sys
from pathlib import Path

import pytest

import sketchridge
from sketchridge import dense
from sketchridge.backends import NumpyTiles, memory

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


@pytest.mark.slow
def test_sixteen_thousand_rows_do_not_crash_the_exact_estimator():
    run(DENSE)
