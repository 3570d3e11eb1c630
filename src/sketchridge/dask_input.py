"""Dask's arrays and data frames: rows that stay on the workers, and questions asked lazily."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from sketchridge.backends import as_backend

__all__ = ["asked_lazily", "computed", "is_dask", "points_there", "rows_there"]

Array = np.ndarray


def is_dask(given: Any) -> bool:
    """Whether something is Dask's, without importing Dask."""
    return type(given).__module__.partition(".")[0] == "dask"


def computed(given: Any) -> Any:
    """The same as NumPy's or pandas', if it is Dask's."""
    return given.compute() if is_dask(given) else given


def rows_there(estimator: Any, X: Any) -> Any:
    """The rows of Dask's X in blocks on the workers, or here where they are few or the estimator's
    backend is another; checked as scikit-learn checks arrays."""
    spec = estimator.backend
    named = isinstance(spec, str) and spec in ("auto", "dask")
    if not named and getattr(spec, "name", None) != "dask":
        return X.compute()
    rows = points_there(X, spec)
    if not hasattr(rows, "gathered"):
        return X.compute()
    _remember(estimator, X, rows.shape[1], reset=True)
    if not rows.gathered(_is_finite).all():
        raise ValueError("Input X contains NaN or infinity: fill or drop such rows first.")
    return rows


def points_there(X: Any, spec: Any) -> Any:
    """The rows of Dask's X in blocks on the workers of a backend for Dask or, unless one is given,
    of the last client; as NumPy's array where they are few."""
    backend: Any = spec if getattr(spec, "name", None) == "dask" else as_backend("dask")
    _check_table(X)
    array = _known_lengths(X)
    if array.shape[0] <= backend.limit:
        return np.asarray(X.compute())
    if array.dtype.kind not in "biuf":
        raise ValueError(
            f"X has columns that are no numbers (together of type {array.dtype}): encode or drop "
            "them first."
        )
    return backend.rows_of(array)


def asked_lazily(
    estimator: Any, asked: str, X: Any, outputs: int, shape: tuple[int, ...], **options: Any
) -> Any:
    """A method of a fitted estimator for each chunk of rows of Dask's X: Dask arrays, as many as
    the method has outputs, with so many numbers in each row.

    Each worker is given a copy of the model once, and computes with NumPy.
    """
    import dask
    import dask.array as da

    chunks = (np.nan,) * X.npartitions
    _check_table(X)
    _remember(estimator, X, X.shape[1], reset=False)
    if hasattr(X, "chunks"):
        X = X.rechunk({1: -1})
        chunks = X.chunks[0]
    model = dask.delayed(estimator.apart(), traverse=False)
    call = dask.delayed(_answer, nout=outputs if outputs > 1 else None)
    answers = [call(model, asked, block, options) for block in np.ravel(X.to_delayed()).tolist()]

    def together(parts: list[Any]) -> Any:
        pieces = [
            da.from_delayed(part, shape=(length, *shape), dtype=float)
            for part, length in zip(parts, chunks, strict=True)
        ]
        return da.concatenate(pieces, allow_unknown_chunksizes=True)

    if outputs == 1:
        return together(answers)
    return tuple(together([answer[k] for answer in answers]) for k in range(outputs))


def _answer(model: Any, method: str, block: Any, options: dict[str, Any]) -> Any:
    """That of a chunk, which may be empty."""
    if len(block):
        return getattr(model, method)(block, **options)
    found = getattr(model, method)(np.zeros((1, block.shape[1])), **options)
    return tuple(part[:0] for part in found) if isinstance(found, tuple) else found[:0]


def _check_table(X: Any) -> None:
    if X.ndim != 2:
        raise ValueError(f"X must be a table of rows and columns, got {X.ndim} dimensions.")


def _known_lengths(X: Any) -> Any:
    """Dask's array of X with known lengths of chunks: read once where they are unknown."""
    if not hasattr(X, "chunks"):
        return X.to_dask_array(lengths=True)
    return X if not np.isnan(X.shape[0]) else X.copy().compute_chunk_sizes()


def _remember(estimator: Any, X: Any, d: int, *, reset: bool) -> None:
    """Names and number of features, as scikit-learn keeps or compares them."""
    sample = X.columns.to_frame().T if hasattr(X, "columns") else np.empty((0, d))
    validate_data(estimator, sample, reset=reset, skip_check_array=True)


def _is_finite(block: Array) -> Array:
    return np.isfinite(block).all(keepdims=True).ravel()
