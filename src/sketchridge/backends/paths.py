"""Objects known by where they are defined."""

from __future__ import annotations

from functools import reduce
from importlib import import_module
from typing import Any

__all__ = ["object_at"]


def object_at(path: str) -> Any:
    """What stands at an import path "module:name".

    >>> object_at("math:pi")
    3.141592653589793
    """
    module, _, name = path.partition(":")
    try:
        return reduce(getattr, name.split("."), import_module(module))
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(
            f"Nothing was found at {path!r} ({error}): give an import path 'module:name' of "
            "something that stands in a module."
        ) from None
