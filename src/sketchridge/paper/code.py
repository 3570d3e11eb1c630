"""A fingerprint of the code that makes rows: of a module and all it imports of this library.

Modules that are imported by name count where their folder is in `_BY_NAME`: all files of it do.
"""

from __future__ import annotations

import ast
import hashlib
from functools import cache
from pathlib import Path

__all__ = ["fingerprint", "sources"]

_ROOT = Path(__file__).parents[1]
_HOUSE = _ROOT.name
_BY_NAME = ("backends",)  # folders whose __init__.py imports the others by name


def sources(module: str) -> list[Path]:
    """The files of a module and of everything it imports of this library, directly or not.

    >>> [path.name for path in sources("sketchridge.paper.options")]
    ['options.py']
    """
    waiting = [_file(module)]
    found: set[Path] = set()
    while waiting:
        path = waiting.pop()
        if path is None or path in found:
            continue
        found.add(path)
        waiting += [_file(name) for name in _imported(path)]
        waiting += _by_name(path)
    return sorted(found)


@cache
def fingerprint(module: str) -> str:
    """Changes with the text of any of those files."""
    digest = hashlib.sha256()
    for path in sources(module):
        digest.update(str(path.relative_to(_ROOT)).encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _imported(path: Path) -> list[str]:
    """Names of modules of this library, or of what is in them; `import` with dots is not used."""
    names: list[str] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return [name for name in names if name.partition(".")[0] == _HOUSE]


def _by_name(path: Path) -> list[Path]:
    """What a front door may import by a name that only a run knows: the files beside it."""
    folder = path.parent.relative_to(_ROOT).as_posix()
    is_door = path.name == "__init__.py" and folder in _BY_NAME
    return sorted(path.parent.glob("*.py")) if is_door else []


def _file(module: str) -> Path | None:
    """The file of a module, or None for a name in one; the front door imports everything."""
    parts = module.split(".")[1:]
    if not parts:
        return None
    path = _ROOT.joinpath(*parts)
    for candidate in (path.with_suffix(".py"), path / "__init__.py"):
        if candidate.is_file():
            return candidate
    return None
