"""Where data files are found, and how they get there."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sketchridge.notices import warn

__all__ = ["download", "find", "from_npz", "tables"]


def find(folder: Path | str | None, names: Sequence[str]) -> Path | None:
    """The first of these files that is in the folder."""
    if folder is None:
        return None
    root = Path(folder)
    if not root.is_dir():
        raise FileNotFoundError(f"There is no folder {root}: say where the data files are.")
    return next((root / name for name in names if (root / name).is_file()), None)


def from_npz(path: Path, columns: int) -> tuple[np.ndarray, np.ndarray]:
    """X (n, columns) and y (n,) of an .npz file."""
    try:
        with np.load(path, allow_pickle=False) as file:
            X = file["X"]
            y = file["y"]
    except (KeyError, ValueError, OSError) as error:
        raise ValueError(f"{path} is no .npz file with arrays X and y: {error}") from None
    if X.ndim != 2 or X.shape[1] != columns or y.shape != X.shape[:1]:
        raise ValueError(
            f"{path} must hold X (n, {columns}) and y (n,), got {X.shape} and {y.shape}."
        )
    return X, y


def download(folder: Path | str, sources: Sequence[tuple[str, str, str | None]]) -> None:
    """Fetch what is not in the folder yet of (name, address, SHA-256), the last of which is checked
    where it is known; needs pooch and a connection."""
    try:
        import pooch
    except ImportError as error:
        raise ImportError(
            "Downloading needs pooch, which is not installed: pip install 'sketchridge[data]'."
        ) from error
    for name, address, known in sources:
        try:
            pooch.retrieve(address, known_hash=known, fname=name, path=folder, progressbar=False)
        except Exception as error:
            raise OSError(
                f"{name} could not be downloaded from {address}: {error}. Put the file into "
                f"{folder} yourself."
            ) from error
        if known is None:
            warn(f"{name} from {address} is unverified: no checksum of the original is known.")


def tables() -> Any:
    """polars, which reads text tables."""
    try:
        import polars
    except ImportError as error:
        raise ImportError(
            "Reading these files needs polars, which is not installed: pip install "
            "'sketchridge[data]'."
        ) from error
    return polars
