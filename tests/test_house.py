"""The rules of the house: who may import whom, what `import sketchridge` loads, and how long a file may be."""

import ast
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

import sketchridge

HOUSE = Path(sketchridge.__file__).parent
FILES = sorted(HOUSE.rglob("*.py"))
ROOMS = [
    "progress",
    "kernels",
    "sketches",
    "exact",
    "backends",
    "factor",
    "dense",
    "state",
    "certify",
    "refine",
    "tuning",
    "regressor",
    "estimator",
    "active",
    "datasets",
    "plotting",
    "reporting",
    "experiments",
    "cli",
]
APART = {"kernels": set(), "sketches": set(), "backends": {"kernels"}}  # rooms that know only these others
OPTIONAL = {
    "torch",
    "triton",
    "dask",
    "matplotlib",
    "typer",
    "rich",
    "polars",
    "pandas",
    "sqlalchemy",
    "skops",
    "pooch",
    "gpytorch",
    "hypothesis",
}
LONGEST = 400

every_file = pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(HOUSE)))


def room_of(path: Path) -> str:
    return path.relative_to(HOUSE).parts[0].removesuffix(".py")


def imported_modules(source: str, package: str) -> list[str]:
    """Full dotted names of everything a source file imports, wherever in the file; ``package`` resolves relative imports."""
    names = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            parents = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*parents, *([node.module] if node.module else [])])
            names += [f"{base}.{alias.name}" for alias in node.names]
    return names


def imported_rooms(source: str, package: str = "sketchridge") -> set[str]:
    """The rooms of sketchridge that a source file imports; importing the house itself counts as its top floor, "__init__"."""
    names = [name.split(".") for name in imported_modules(source, package)]
    inside = [parts[1:] for parts in names if parts[0] == "sketchridge"]
    return {parts[0] if parts and parts[0] in ROOMS else "__init__" for parts in inside}


@pytest.mark.parametrize(
    ("source", "package", "rooms"),
    [
        ("import numpy", "sketchridge", set()),
        ("import sketchridge.state", "sketchridge", {"state"}),
        ("import sketchridge", "sketchridge", {"__init__"}),
        ("from sketchridge import tuning, ExactKernelRidge", "sketchridge", {"tuning", "__init__"}),
        ("from sketchridge.backends.base import Backend", "sketchridge", {"backends"}),
        ("from . import state", "sketchridge", {"state"}),
        ("from .state import Ridge", "sketchridge", {"state"}),
        ("from ..state import Ridge", "sketchridge.backends", {"state"}),
        ("def f():\n    from sketchridge.cli import main", "sketchridge", {"cli"}),
    ],
)
def test_the_reader_of_imports_sees_every_form(source, package, rooms):
    assert imported_rooms(source, package) == rooms


def test_every_file_belongs_to_a_room():
    assert {room_of(path) for path in FILES} <= {*ROOMS, "__init__"}


@pytest.mark.parametrize("path", [p for p in FILES if room_of(p) != "__init__"], ids=lambda path: str(path.relative_to(HOUSE)))
def test_a_room_imports_only_from_rooms_above_it(path):
    room = room_of(path)
    package = ".".join(["sketchridge", *path.relative_to(HOUSE).parts[:-1]])
    above = set(ROOMS[: ROOMS.index(room)])
    allowed = APART.get(room, above) | {room}
    assert imported_rooms(path.read_text(), package) <= allowed


def test_rooms_stand_in_the_order_of_the_design():
    """Two rooms more than in design.md: dense after factor, regressor before estimator."""
    assert {("factor", "dense"), ("regressor", "estimator")} <= set(pairwise(ROOMS))
    assert len(set(ROOMS)) == len(ROOMS)


def loaded_by(module: str) -> set[str]:
    code = f"import sys, {module}; print(*{{name.partition('.')[0] for name in sys.modules}})"
    environment = {"PYTHONPATH": str(HOUSE.parent), "PATH": ""}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    return set(done.stdout.split())


def test_import_loads_no_optional_dependency():
    """What scikit-learn itself loads, where it is installed (pandas), does not count."""
    ours, theirs = loaded_by("sketchridge"), loaded_by("sklearn")
    assert "sketchridge" in ours
    assert not (ours - theirs) & OPTIONAL


@every_file
def test_a_file_is_short(path):
    assert len(path.read_text().splitlines()) <= LONGEST


@every_file
def test_a_file_says_what_it_is_and_what_it_offers(path):
    tree = ast.parse(path.read_text())
    assert ast.get_docstring(tree)
    targets = [target for node in tree.body if isinstance(node, ast.Assign) for target in node.targets]
    assert "__all__" in {target.id for target in targets if isinstance(target, ast.Name)}
