"""Without a GPU, Triton's kernels run in its interpreter; it must know before it is imported."""

import os
import shutil

if shutil.which("nvidia-smi") is None:
    os.environ.setdefault("TRITON_INTERPRET", "1")

import pytest

from sketchridge import ExactKernelRidge, SketchedKernelRidge

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


set_plain()
