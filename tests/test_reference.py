"""Every public name is in the reference, says what it takes and gives, and has an example that is
run."""

from __future__ import annotations

import ast
import inspect
import re
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pages import blocks

import sketchridge

docscrape = pytest.importorskip("numpydoc.docscrape")

REFERENCE = Path(__file__).parents[1] / "docs" / "reference"
MODULES = (
    *("active", "backends", "botorch", "calibration", "effect_plots", "encoder", "exact"),
    *("kernels", "model_plots", "plotting", "saving", "sketches"),
)
INSIDE = {  # offered to other rooms of the library only, and why
    "active.ActiveLearner": "it is sketchridge.ActiveLearner",
    "backends": "the contract of backends is tests/test_backends.py",
    "encoder": "what TableEncoder is made of",
    "kernels.CANDIDATES": "those of kernel='auto'",
    "kernels.DistanceKernel": "base class",
    "kernels.FORMS": "of learned bandwidths",
    "plotting.axes_for": "for other plots",
    "plotting.new_figure": "for other plots",
    "sketches.CELL": "how entries are drawn",
    "sketches.EntrySketch": "base class",
    "sketches.RowSketch": "base class",
    "sketches.Sketch": "base class",
}
SHARED = (  # scikit-learn's own methods
    *("get_params", "set_params", "score", "get_metadata_routing"),
    *(f"set_{name}_request" for name in ("fit", "partial_fit", "predict", "score")),
)


class Name(NamedTuple):
    """A name of the reference, with the page that documents it."""

    page: str
    path: str
    item: Any
    kind: str  # "function", "class", "method", "attribute" or "data"


def found(path: str) -> Any:
    """What a dotted path leads to."""
    parts = path.split(".")
    for k in range(len(parts), 0, -1):
        try:
            item: Any = import_module(".".join(parts[:k]))
        except ModuleNotFoundError:
            continue
        for part in parts[k:]:
            item = (
                inspect.getattr_static(item, part) if inspect.isclass(item) else getattr(item, part)
            )
        return item
    raise AssertionError(path)


def members(cls: type, asked: str | None) -> list[str]:
    """The public methods and properties of a class that its directive documents."""
    if asked is None:
        return []
    if asked.strip():
        return [name.strip() for name in asked.split(",")]
    names = []
    for name in dir(cls):
        item = inspect.getattr_static(cls, name)
        ours = callable(item) or isinstance(item, property | cached_property | classmethod)
        if ours and not name.startswith("_") and name not in (*SHARED, "fitted_", "apart"):
            names.append(name)
    return names


def listed() -> list[Name]:
    """What the directives of the reference name."""
    names = []
    for page in sorted(REFERENCE.glob("*.md")):
        directive = r"^\.\. auto(\w+):: (\S+)\n((?:   :.*\n)*)"
        for kind, path, options in re.findall(directive, page.read_text(), re.MULTILINE):
            item = found(path)
            names.append(Name(page.name, path, item, kind))
            asked = re.search(r":members:(.*)\n", options)
            for member in members(item, asked and asked[1]) if kind == "class" else []:
                inner = inspect.getattr_static(item, member)
                is_value = isinstance(inner, property | cached_property)
                kind_of = "attribute" if is_value else "method"
                inner = inner.__func__ if isinstance(inner, classmethod | staticmethod) else inner
                names.append(Name(page.name, f"{path}.{member}", inner, kind_of))
    return names


NAMES = listed()
PATHS = {name.path for name in NAMES}
CALLED = [name for name in NAMES if name.kind in ("function", "method", "class")]
CLASSES = [name for name in NAMES if name.kind == "class"]
some = {"ids": lambda name: name.path.removeprefix("sketchridge.")}


def used(page: Path) -> set[str]:
    """Names and attributes in the code of a page that is run."""
    code = [b for b in blocks(page.read_text(), page.name) if b.language == "python"]
    return set().union(*(words(b.code) for b in code if not b.reason))


def words(code: str) -> set[str]:
    """Every name and attribute in Python, or in examples with `>>>`."""
    if ">>> " in code:
        code = "\n".join(re.findall(r"^\s*(?:>>>|\.\.\.) ?(.*)$", code, re.MULTILINE))
    nodes = list(ast.walk(ast.parse(code)))
    return {n.attr for n in nodes if isinstance(n, ast.Attribute)} | {
        n.id for n in nodes if isinstance(n, ast.Name)
    }


SHOWN = {page.name: used(page) for page in REFERENCE.glob("*.md")}
SHOWN_EVERYWHERE = SHOWN["fitted-attributes.md"]


def test_every_name_that_is_offered_is_in_the_reference():
    missing = [f"sketchridge.{n}" for n in sketchridge.__all__ if f"sketchridge.{n}" not in PATHS]
    for module in MODULES:
        if module == "botorch":
            pytest.importorskip("botorch")
        offered = import_module(f"sketchridge.{module}").__all__
        unknown = [f"{module}.{name}" for name in offered]
        inside = set(INSIDE) if module not in INSIDE else {*INSIDE, *unknown}
        missing += [n for n in unknown if n not in inside and f"sketchridge.{n}" not in PATHS]
    assert missing == []


@pytest.mark.parametrize("name", [n for n in NAMES if n.kind != "data"], **some)
def test_a_public_name_has_an_example_that_is_run(name):
    """In its own docstring or its class's, or on its page; an attribute also on that of fitted
    attributes."""
    owner, _, short = name.path.rpartition(".")
    own = ">>> " in (inspect.getdoc(name.item) or "")
    above = inspect.getdoc(found(owner)) or "" if owner in PATHS else ""
    known = words(above) if ">>> " in above else set()
    assert own or short in known | SHOWN[name.page] | SHOWN_EVERYWHERE


@pytest.mark.parametrize("name", CALLED, **some)
def test_what_is_taken_is_explained_with_its_type(name):
    doc = docscrape.NumpyDocString(inspect.getdoc(name.item) or "")
    told = {p.strip("* ") for entry in doc["Parameters"] for p in entry.name.split(",")}
    taken = inspect.signature(name.item).parameters.values()
    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    names = {p.name for p in taken if p.name not in ("self", "cls") and p.kind not in variable}
    hidden = {"center", "labels", "scale"} if name.kind == "class" else set()  # set by a fit
    assert names - told - hidden == set()
    for entry in doc["Parameters"]:
        assert entry.type, f"{entry.name} has no type"
        assert entry.desc, f"{entry.name} is not explained"


@pytest.mark.parametrize("name", [n for n in CALLED if n.kind != "class"], **some)
def test_what_is_given_back_is_explained_with_its_type(name):
    doc = docscrape.NumpyDocString(inspect.getdoc(name.item) or "")
    silent = inspect.signature(name.item).return_annotation in ("None", None)
    assert silent == (not doc["Returns"])
    for entry in doc["Returns"]:
        assert entry.type
        assert entry.desc, f"{entry.name} is not explained"


@pytest.mark.parametrize("name", CLASSES, **some)
def test_attributes_are_explained_with_their_types(name):
    doc = docscrape.NumpyDocString(inspect.getdoc(name.item) or "")
    told = {p.strip() for entry in doc["Attributes"] for p in entry.name.split(",")}
    own = f"{name.path}."
    values = {
        n.path.removeprefix(own) for n in NAMES if n.path.startswith(own) if n.kind == "attribute"
    }
    assert values - told == set()
    for entry in doc["Attributes"]:
        assert entry.type, f"{entry.name} has no type"
        assert entry.desc, f"{entry.name} is not explained"
