"""Memory: what fit and variance add stays near the size of the factor, and a large dense problem does not kill the interpreter."""

import subprocess
import sys
from pathlib import Path

import pytest

import sketchridge

N, M = 50_000, 200
LIMIT = 4 * N * M * 8 + 300_000_000  # bytes

MEASURE = """
import sys
import numpy as np
from sketchridge import SketchedKernelRidge

def peak():
    # VmHWM belongs to this program alone; ru_maxrss starts at the memory of the process that started it.
    with open("/proc/self/status") as lines:
        return next(1024 * int(line.split()[1]) for line in lines if line.startswith("VmHWM"))

sketch, n, m = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
rng = np.random.default_rng(0)
X = rng.random((n, 5))
y = np.sin(3 * X.sum(axis=1)) + 0.1 * rng.standard_normal(n)
before = peak()
model = SketchedKernelRidge(alpha=1e-3 * n, bandwidth=0.5, sketch=sketch, sketch_size=m, random_state=0).fit(X, y)
variance = model.variance(X[:1000])
assert model.sketch_size_ == m and np.isfinite(variance).all()
print(peak() - before)
"""

DENSE = """
import numpy as np
from sketchridge import ExactKernelRidge

rng = np.random.default_rng(0)
X = rng.random((16_000, 5))
y = np.sin(3 * X.sum(axis=1)) + 0.1 * rng.standard_normal(len(X))
mean, std = ExactKernelRidge(alpha=16.0, bandwidth=0.5).fit(X, y).predict(X[:100], return_std=True)
assert np.isfinite(mean).all() and (std > 0).all()
"""


def run(code: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run a program in a fresh interpreter."""
    environment = {"PYTHONPATH": str(Path(sketchridge.__file__).parents[1])}
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


@pytest.mark.parametrize("sketch", ["rpcholesky", "landmarks", "rademacher"])
def test_fit_and_variance_add_little_memory(sketch):
    done = run(MEASURE, sketch, N, M)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < LIMIT


@pytest.mark.slow
def test_sixteen_thousand_rows_do_not_crash_the_exact_estimator():
    done = run(DENSE)
    assert done.returncode == 0, done.stderr
