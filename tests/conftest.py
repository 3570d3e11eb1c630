"""Without a GPU, Triton's kernels run in its interpreter; it must know before it is imported."""

import os
import re
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

if shutil.which("nvidia-smi") is None:
    os.environ.setdefault("TRITON_INTERPRET", "1")

import pytest

from sketchridge import ExactKernelRidge, SketchedKernelRidge

# Where PyTorch or Triton is not to be had, files that import them are left out.
_NEEDS = re.compile(
    r"^(import (torch|triton)|from (triton|test_backends|sketchridge.backends.t))", re.MULTILINE
)
collect_ignore = [
    str(path)
    for path in Path(__file__).parent.rglob("test_*.py")
    if not (find_spec("torch") and find_spec("triton")) and _NEEDS.search(path.read_text())
]

# Tests of the parts are written for one kernel with one bandwidth and no constant: quick, and with
# every choice in sight. Those who ask for `defaults` see the estimators as users do.
PLAIN = {"bandwidth": "median", "alpha": "gcv", "fit_intercept": False}
MAKERS = {
    ExactKernelRidge.__init__: PLAIN,
    SketchedKernelRidge.__init__: PLAIN | {"solver": "sketch"},
}
REAL = {make: (make.__defaults__, dict(make.__kwdefaults__)) for make in MAKERS}


def set_plain() -> None:
    for make, settings in MAKERS.items():
        make.__defaults__ = ("gaussian",)
        make.__kwdefaults__.update(settings)


@pytest.fixture
def defaults():
    """The estimators with their own defaults."""
    for make, (kernel, others) in REAL.items():
        make.__defaults__ = kernel
        make.__kwdefaults__.update(others)
    yield
    set_plain()


@pytest.fixture(autouse=True)
def no_figure_stays_open():
    """Pictures of one test do not count in the next."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


set_plain()
