"""Every setting of the experiments is written out."""

from __future__ import annotations

import ast
from inspect import signature
from pathlib import Path

import pytest

from sketchridge import ExactKernelRidge, SketchedKernelRidge
from sketchridge.paper import settings


@pytest.mark.parametrize("kind", [SketchedKernelRidge, ExactKernelRidge])
def test_no_default_of_an_estimator_enters(kind):
    made = [
        {word.arg for word in node.keywords}
        for node in ast.walk(ast.parse(Path(settings.__file__).read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == kind.__name__
    ]
    assert made == [set(signature(kind).parameters)]
