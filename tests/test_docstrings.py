"""Examples in docstrings say what is true, and what people import has one."""

from __future__ import annotations

import doctest
import inspect
from importlib import import_module
from pathlib import Path

import pytest

import sketchridge
from sketchridge import active, kernels, sketches
from sketchridge.regressor import KernelRegressor

HOUSE = Path(sketchridge.__file__).parent
FILES = [path for path in sorted(HOUSE.rglob("*.py")) if ">>> " in path.read_text()]


def module_of(path: Path) -> str:
    parts = path.relative_to(HOUSE.parent).with_suffix("").parts
    return ".".join(parts).removesuffix(".__init__")


@pytest.mark.parametrize("name", [module_of(path) for path in FILES])
@pytest.mark.usefixtures("defaults")
def test_examples_hold(name):
    if name == "sketchridge.botorch":
        pytest.importorskip("botorch")
    found = doctest.testmod(import_module(name))
    assert found.attempted
    assert not found.failed


def public(module) -> list[tuple[str, object]]:
    """What can be called or made; abstract classes are for deriving from."""
    offered = [(name, getattr(module, name)) for name in module.__all__]
    return [(n, item) for n, item in offered if callable(item) and not inspect.isabstract(item)]


SHOWN = [pair for module in (sketchridge, kernels, sketches, active) for pair in public(module)]
QUESTIONS = (
    *("predict", "predict_interval", "covariance", "sample", "contrast", "test_contrast"),
    *("gradient", "marginal_effects"),
)
SHOWN += [(name, getattr(KernelRegressor, name)) for name in QUESTIONS]


@pytest.mark.parametrize(("name", "item"), SHOWN, ids=[name for name, _ in SHOWN])
def test_a_public_name_has_an_example(name, item):
    assert ">>> " in (item.__doc__ or "")
