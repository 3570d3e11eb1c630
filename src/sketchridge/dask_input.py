"""Dask's arrays and data frames: rows that stay on the workers, and questions asked lazily."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import _check_feature_names, _check_n_features

from sketchridge.backends import Backend, as_backend

__all__ = ["asked_lazily", "computed", "is_dask", "rows_there"]

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
    backend = as_backend("dask" if named else spec)
    array = _known_lengths(X)
    if array.ndim != 2:
        raise ValueError(f"X must be a table of rows and columns, got {array.ndim} dimensions.")
    if array.shape[0] <= backend.limit:  # type: ignore[attr-defined]
        return X.compute()
    if array.dtype.kind not in "biuf":
        raise ValueError(
            f"X has columns that are no numbers (together of type {array.dtype}): encode or drop "
            "them first."
        )
    _remember(estimator, X, array, reset=True)
    rows = backend.rows_of(array)  # type: ignore[attr-defined]
    if not rows.gathered(_is_finite).all():
        raise ValueError("Input X contains NaN or infinity: fill or drop such rows first.")
    return rows


def asked_lazily(estimator: Any, method: str, X: Any, outputs: int = 1, **options: Any) -> Any:
    """A method of a fitted estimator for each chunk of rows of Dask's X: Dask arrays, as many as
    the method has outputs.

    Each worker is given a copy of the model once, and computes with NumPy.
    """
    import dask
    import dask.array as da

    array = X if hasattr(X, "to_delayed") and hasattr(X, "chunks") else X.to_dask_array()
    _remember(estimator, X, array, reset=False)
    array = array.rechunk({1: -1})
    model = dask.delayed(estimator._apart(), traverse=False)
    call = dask.delayed(_answer, nout=outputs if outputs > 1 else None)
    answers = [call(model, method, block, options) for block in array.to_delayed().ravel()]
    several = () if estimator._single_target else (len(estimator._found.noise),)

    def together(parts: list[Any]) -> Any:
        lengths = array.chunks[0]
        pieces = [
            da.from_delayed(part, shape=(length, *several), dtype=float)
            for part, length in zip(parts, lengths, strict=True)
        ]
        return da.concatenate(pieces, allow_unknown_chunksizes=True)

    if outputs == 1:
        return together(answers)
    return tuple(together([answer[k] for answer in answers]) for k in range(outputs))


def _answer(model: Any, method: str, block: Array, options: dict[str, Any]) -> Any:
    if len(block):
        return getattr(model, method)(np.asarray(block), **options)
    return model._nothing(getattr(model, method)(np.zeros((1, block.shape[1])), **options))


def _known_lengths(X: Any) -> Any:
    """Dask's array of X, with the number of rows of each chunk: read once where they are unknown."""
    if not hasattr(X, "chunks"):
        return X.to_dask_array(lengths=True)
    return X if not np.isnan(X.shape[0]) else X.copy().compute_chunk_sizes()


def _remember(estimator: Any, X: Any, array: Any, *, reset: bool) -> None:
    """Names and number of features, as scikit-learn keeps or compares them."""
    _check_feature_names(estimator, getattr(X, "_meta", X), reset=reset)
    _check_n_features(estimator, np.empty((0, array.shape[1])), reset=reset)


def _is_finite(block: Array) -> Array:
    return np.isfinite(block).all(keepdims=True).ravel()
