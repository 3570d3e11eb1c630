"""The rules of the house: who may import whom, what rooms hide from each other, what
`import sketchridge` loads, and how long and wide a file may be."""

from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
import tokenize
import unicodedata
from collections.abc import Callable, Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

import sketchridge

HOUSE = Path(sketchridge.__file__).parent
FILES = sorted(HOUSE.rglob("*.py"))
ROOMS = [
    "notices",
    "words",
    "writing",
    "progress",
    "kernels",
    "sketch_base",
    "sketches",
    "exact",
    "loo",
    "backends",
    "precision",
    "rpcholesky",
    "sample",
    "factor",
    "rows",
    "query",
    "slopes",
    "basis",
    "shares",
    "ridge",
    "dense",
    "certify",
    "system",
    "refine",
    "forecast",
    "covariance",
    "tuning",
    "descent",
    "candidates",
    "learning",
    "scores",
    "predictive",
    "noise",
    "data",
    "chosen",
    "distribution",
    "varying",
    "model",
    "fitted",
    "solution",
    "selection",
    "exact_fit",
    "checks",
    "dask_input",
    "found",
    "inputs",
    "kinds",
    "answers",
    "questions",
    "regressor",
    "exact_estimator",
    "estimator",
    "columns",
    "encoder",
    "through",
    "pipeline_regressor",
    "table_regressor",
    "saving",
    "active",
    "botorch",
    "proper_scores",
    "calibration",
    "profiles",
    "drawing",
    "plotting",
    "model_plots",
    "effect_plots",
    "reporting",
    "sheets",
    "tables",
    "campaign",
    "web",
    "paper",
    "cli",
    "__main__",
]
APART: dict[str, set[str]] = {  # rooms that know only these others
    "notices": set(),
    "words": set(),
    "writing": set(),
    "progress": set(),
    "kernels": set(),
    "sketch_base": set(),
    "sketches": {"sketch_base"},
    "exact": set(),
    "backends": {"kernels", "loo"},
    "precision": set(),
    "rows": {"backends"},
}
LONGEST = 400
WIDEST = 100
MOST_CODE = 21450  # lines outside paper/
DOCSTRINGS = 0.12, 0.30  # of all lines
NEEDED = {"numpy", "scipy", "scikit-learn", "joblib", "threadpoolctl"}
PRECISIONS = {"float16", "float16x2", "float32"}


def name_of(path: Path) -> str:
    return str(path.relative_to(HOUSE))


every_file = pytest.mark.parametrize("path", FILES, ids=name_of)


def room_of(path: Path) -> str:
    return path.relative_to(HOUSE).parts[0].removesuffix(".py")


def files_outside(*rooms: str) -> list[Path]:
    return [path for path in FILES if room_of(path) not in rooms]


def outside(*rooms: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("path", files_outside(*rooms), ids=name_of)


def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


# Imports


def imported_modules(source: str, package: str) -> list[str]:
    """Full dotted names of everything a source file imports, wherever in the file; ``package``
    resolves relative imports."""
    names = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")
            parents = above[: len(above) - node.level + 1] if node.level else []
            base = ".".join([*parents, *([node.module] if node.module else [])])
            names += [f"{base}.{alias.name}" for alias in node.names]
    return names


def package_of(path: Path) -> str:
    return ".".join(["sketchridge", *path.relative_to(HOUSE).parts[:-1]])


def imported_rooms(source: str, package: str = "sketchridge") -> set[str]:
    """The rooms of sketchridge that a source file imports; importing the house itself counts as its
    top floor, "__init__"."""
    names = [name.split(".") for name in imported_modules(source, package)]
    inside = [parts[1:] for parts in names if parts[0] == "sketchridge"]
    return {parts[0] if parts and parts[0] in ROOMS else "__init__" for parts in inside}


@pytest.mark.parametrize(
    ("source", "package", "rooms"),
    [
        ("import numpy", "sketchridge", set()),
        ("import sketchridge.ridge", "sketchridge", {"ridge"}),
        ("import sketchridge", "sketchridge", {"__init__"}),
        (
            "from sketchridge import tuning, ExactKernelRidge",
            "sketchridge",
            {"tuning", "__init__"},
        ),
        ("from sketchridge.backends.base import Backend", "sketchridge", {"backends"}),
        ("from . import ridge", "sketchridge", {"ridge"}),
        ("from .ridge import Ridge", "sketchridge", {"ridge"}),
        ("from ..ridge import Ridge", "sketchridge.backends", {"ridge"}),
        ("def f():\n    from sketchridge.cli import main", "sketchridge", {"cli"}),
    ],
)
def test_the_reader_of_imports_sees_every_form(source, package, rooms):
    assert imported_rooms(source, package) == rooms


def test_every_file_belongs_to_a_room():
    assert {room_of(path) for path in FILES} <= {*ROOMS, "__init__"}


def test_every_room_is_there_once():
    assert len(set(ROOMS)) == len(ROOMS)
    assert set(ROOMS) <= {room_of(path) for path in FILES}


@outside("__init__")
def test_a_room_imports_only_from_rooms_above_it(path):
    room = room_of(path)
    above = set(ROOMS[: ROOMS.index(room)])
    allowed = APART.get(room, above) | {room}
    assert imported_rooms(path.read_text(), package_of(path)) <= allowed


def loaded_by(modules: str) -> set[str]:
    code = f"import sys, {modules}; print(*{{name.partition('.')[0] for name in sys.modules}})"
    environment = {"PYTHONPATH": str(HOUSE.parent), "PATH": ""}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    return set(done.stdout.split())


def test_import_loads_only_what_is_needed():
    """What scikit-learn itself loads, where it is installed (pandas), does not count."""
    ours, theirs = loaded_by("sketchridge"), loaded_by("sklearn.base, sklearn.utils.validation")
    assert "sketchridge" in ours
    packages = packages_distributions()
    installed = {name for module in ours - theirs for name in packages.get(module, [])}
    assert installed <= {"sketchridge", *NEEDED}


# What rooms hide


def private(name: str) -> bool:
    return name.startswith("_") and not (name.startswith("__") and name.endswith("__"))


@outside("backends")
def test_no_private_name_is_imported_from_another_room(path):
    found = []
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("sketchridge"):
            room = (f"{node.module}.".split("."))[1]
            found += [a.name for a in node.names if private(a.name) and room != room_of(path)]
    assert found == []


def defined_in(tree: ast.Module) -> Iterator[str]:
    """Names of functions, of attributes of classes, and of attributes that are set on self."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            if isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"):
                yield node.attr
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id
        elif isinstance(node, ast.Assign):
            yield from (target.id for target in node.targets if isinstance(target, ast.Name))


def foreign_private_names(path: Path) -> list[str]:
    """`other._name` where `_name` is nothing that the same room defines."""
    rooms = [p for p in FILES if room_of(p) == room_of(path)]
    own = {name for p in rooms for name in defined_in(tree_of(p))}
    found = []
    for node in ast.walk(tree_of(path)):
        if not isinstance(node, ast.Attribute) or not private(node.attr):
            continue
        if node.attr in own | NAMED_TUPLES:
            continue
        if not (isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")):
            found.append(f"{ast.unparse(node.value)}.{node.attr}")
    return found


NAMED_TUPLES = {"_replace", "_asdict", "_fields"}  # which are public in spite of their names
ALLOWED_PRIVATE = {
    "notices.py": ["sys._getframe"],  # the only way to know who called
}


@every_file
def test_no_room_looks_into_the_pockets_of_another(path):
    allowed = set(ALLOWED_PRIVATE.get(name_of(path), []))
    assert set(foreign_private_names(path)) <= allowed


def test_the_allowed_pockets_are_still_looked_into():
    for name, allowed in ALLOWED_PRIVATE.items():
        assert set(foreign_private_names(HOUSE / name)) == set(allowed)


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("x._a", ["x._a"]),
        ("self._a", []),
        ("self.x._a", ["self.x._a"]),
        ("x.__dict__", []),
        ("def _a(): pass\nx._a", []),
        ("class A:\n    _a: int\n    def f(self, other):\n        return other._a", []),
        ("f()._a", ["f()._a"]),
    ],
)
def test_the_reader_of_pockets_sees_every_form(source, found, tmp_path, monkeypatch):
    path = tmp_path / "room.py"
    path.write_text(source)
    monkeypatch.setattr(sys.modules[__name__], "HOUSE", tmp_path)
    monkeypatch.setattr(sys.modules[__name__], "FILES", [path])
    assert foreign_private_names(path) == found


# Arrays belong to backends


TABLES = {  # whose columns are taken out by polars' own to_numpy
    "campaign/candidates.py",
    "campaign/encoding.py",
    "campaign/labels.py",
    "campaign/sources.py",
    "campaign/tables.py",
    "sheets/cells.py",
    "tables/reading.py",
    "tables/work.py",
    "web/maps.py",
    "web/views.py",
    "paper/datasets/flights.py",
    "paper/datasets/weather.py",
}


@outside("backends", "kernels")
def test_nobody_outside_backends_knows_an_array_module(path):
    forbidden = {"xp"} if name_of(path) in TABLES else {"xp", "to_numpy"}
    found = []
    for node in ast.walk(tree_of(path)):
        names = {getattr(node, key, "") for key in ("id", "attr", "arg")}
        found += [f"line {node.lineno}: {name}" for name in names & forbidden]
    assert found == []


ALLOWED_ISINSTANCE = {"active/settings.py"}  # what users gave, to be stored as text


@outside("backends", "kernels")
def test_nobody_outside_backends_asks_whether_something_is_an_array(path):
    found = []
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("isinstance", "issubclass"):
            kinds = {ast.unparse(kind) for kind in ast.walk(node.args[1])}
            found += [ast.unparse(node)] if kinds & {"np.ndarray", "ndarray", "Array"} else []
    assert not found or name_of(path) in ALLOWED_ISINSTANCE, found


@outside("backends", "botorch")
def test_nobody_outside_backends_imports_a_device(path):
    modules = {m.partition(".")[0] for m in imported_modules(path.read_text(), package_of(path))}
    assert not modules & {"torch", "triton", "cupy", "array_api_compat"}


# Precision is decided in one place


def literals(tree: ast.Module) -> Iterator[tuple[ast.Constant, ast.AST | None]]:
    """String literals with what they stand in."""
    for node in ast.walk(tree):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Constant) and isinstance(child.value, str):
                yield child, node


@outside("backends", "precision")
def test_nobody_else_names_a_lower_precision(path):
    found = [
        f"line {literal.lineno}: {literal.value!r}"
        for literal, _ in literals(tree_of(path))
        if literal.value in PRECISIONS
    ]
    assert found == []


@outside("backends", "precision", "paper")
def test_nobody_else_names_float64(path):
    """What must be exact says `FULL`."""
    found = [
        f"line {literal.lineno}: in {ast.unparse(parent)[:60]}"
        for literal, parent in literals(tree_of(path))
        if literal.value == "float64"
    ]
    assert found == []


# What is computed once stays


@every_file
def test_what_is_computed_once_is_never_taken_back(path):
    """No value of a cached property is popped, deleted or overwritten."""
    tree = tree_of(path)
    kept = {
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
        and any("cached_property" in ast.unparse(d) for d in node.decorator_list)
    }
    found = []
    for node in ast.walk(tree):
        text = ast.unparse(node) if isinstance(node, ast.expr | ast.stmt) else ""
        if isinstance(node, ast.Call) and "__dict__.pop" in ast.unparse(node.func):
            found.append(text)
        if isinstance(node, ast.Delete) and any("self." in ast.unparse(t) for t in node.targets):
            found.append(text)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store | ast.Del):
            found += [text] if node.attr in kept else []
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "object.__setattr__":
            found.append(text)
    assert found == []


@every_file
def test_no_file_asks_for_the_affinity_of_the_process(path):
    """Which exists on Linux only."""
    assert "sched_getaffinity" not in path.read_text()


# How a file looks


@every_file
def test_a_file_is_short(path):
    assert len(path.read_text().splitlines()) <= LONGEST


def columns(line: str) -> int:
    """Of a line as ruff counts them: the hat of K̂ takes no place of its own, and what is said to
    other tools at the end of a line does not count."""
    line = re.sub(r"\s+# (type: ignore|noqa).*", "", line)
    return sum(not unicodedata.combining(character) for character in line)


@every_file
def test_lines_are_not_wide(path):
    lines = path.read_text().splitlines()
    assert [i for i, line in enumerate(lines, 1) if columns(line) > WIDEST] == []


@every_file
def test_a_file_says_what_it_is_and_what_it_offers(path):
    tree = tree_of(path)
    assert ast.get_docstring(tree)
    assigned = [node for node in tree.body if isinstance(node, ast.Assign | ast.AnnAssign)]
    targets = [t for node in assigned for t in getattr(node, "targets", None) or [node.target]]
    assert "__all__" in {target.id for target in targets if isinstance(target, ast.Name)}


def imported_for_types(tree: ast.Module) -> list[ast.stmt]:
    """What stands under `if TYPE_CHECKING`: names that `__getattr__` imports when asked for."""
    blocks = [node for node in tree.body if isinstance(node, ast.If)]
    return [n for b in blocks if ast.unparse(b.test) == "TYPE_CHECKING" for n in b.body]


@every_file
def test_what_a_file_offers_is_there(path):
    """Defined or imported; a package may offer its modules."""
    tree = tree_of(path)
    offered: list[str] = []
    modules = {p.name.removesuffix(".py") for p in path.parent.iterdir()}
    defined = set(defined_in(tree)) | (modules if path.name == "__init__.py" else set())
    for node in [*tree.body, *imported_for_types(tree)]:
        if isinstance(node, ast.Import | ast.ImportFrom):
            defined |= {(a.asname or a.name) for a in node.names}
        elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            offered = ast.literal_eval(node.value)
    assert set(offered) <= defined
    assert len(set(offered)) == len(offered)
    assert not [name for name in offered if private(name)]


def docstring_lines(tree: ast.Module) -> set[int]:
    """Line numbers of docstrings."""
    holders = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    lines: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, holders) and ast.get_docstring(node) is not None:
            first = node.body[0]
            lines |= set(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    return lines


def code_lines(source: str) -> set[int]:
    """Line numbers with code: no docstrings, comments or blanks."""
    silent = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in silent and token.type != tokenize.ENDMARKER:
            lines |= set(range(token.start[0], token.end[0] + 1))
    return lines - docstring_lines(ast.parse(source))


@pytest.mark.parametrize(
    ("source", "code", "docs"),
    [
        ("", 0, 0),
        ("x = 1\n\n# why\ny = 2  # how\n", 2, 0),
        ('"""A file\nof two lines."""\n\nx = 1\n', 1, 2),
        ('def f():\n    """Says."""\n    return (\n        1\n    )\n', 4, 1),
        ('x = """no\ndocstring"""\n', 2, 0),
    ],
)
def test_the_counter_of_lines_knows_code_from_words(source, code, docs):
    assert (len(code_lines(source)), len(docstring_lines(ast.parse(source)))) == (code, docs)


def total(count: Callable[[str], int], files: list[Path]) -> int:
    return sum(count(path.read_text()) for path in files)


def test_the_house_is_not_large():
    assert total(lambda source: len(code_lines(source)), files_outside("paper")) <= MOST_CODE


def test_the_house_explains_itself():
    files = files_outside("paper")
    words = total(lambda source: len(docstring_lines(ast.parse(source))), files)
    share = words / total(lambda source: len(source.splitlines()), files)
    assert DOCSTRINGS[0] <= share <= DOCSTRINGS[1]
