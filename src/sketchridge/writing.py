"""Files that appear whole or not at all, and overwrite nothing unasked."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

__all__ = ["check_output", "put", "write_text"]

_FORCE = "--force (in Python force=True)"


def check_output(
    path: Path, force: bool, *, suffixes: Iterable[str], never: Iterable[Path]
) -> None:
    """Refuse a path before any work is done for it; those in ``never`` even by force."""
    suffixes = list(suffixes)
    if path.suffix.lower() not in suffixes:
        raise ValueError(f"{path} must end in {' or '.join(suffixes)}.")
    if not path.parent.is_dir():
        raise ValueError(f"There is no folder {path.parent}: make it first, or give another.")
    if any(path.exists() and other.exists() and path.samefile(other) for other in never):
        raise ValueError(f"{path} is in use here and is never overwritten: give another.")
    if path.exists() and not force:
        raise ValueError(f"{path} exists: give another name, or overwrite it with {_FORCE}.")


def write_text(text: str, path: Path, *, force: bool = False) -> None:
    """Write a text, whole or not at all."""
    put(path, lambda file: file.write(text.encode()), force)


def put(path: Path, write: Callable[[Any], Any], force: bool) -> None:
    """A file that appears at once when it is complete."""
    try:
        temporary = path.with_name(f".{secrets.token_hex(8)}{path.suffix}")
        try:
            with temporary.open("xb") as file:  # the system applies the umask
                write(file)
                file.flush()
                os.fsync(file.fileno())
            if force:
                os.replace(temporary, path)
            else:
                _link(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)
    except FileExistsError:
        raise ValueError(
            f"{path} has come into being in the meantime: give another name, or overwrite it with "
            f"{_FORCE}."
        ) from None
    except OSError as error:
        raise OSError(f"{path} could not be written: {error.strerror or error}.") from None


def _link(temporary: Path, path: Path) -> None:
    """Give a file its name, unless another has it."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        if path.exists():
            raise FileExistsError from None
        os.replace(temporary, path)
