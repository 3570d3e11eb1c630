"""Dask's arrays and data frames: rows that stay on the workers, and questions asked lazily."""

from __future__ import annotations

from abc import abstractmethod
from copy import copy
from typing import Any

import numpy as np
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted, validate_data

from sketchridge.backends import as_backend, on_cluster

__all__ = ["Lazily", "computed", "is_dask", "points_there", "rows_fitted"]

Array = np.ndarray


def is_dask(given: Any) -> bool:
    """Whether something is an array or a table of Dask's, without importing Dask."""
    kind = type(given)
    return kind.__module__.partition(".")[0] == "dask" and hasattr(kind, "npartitions")


def computed(given: Any) -> Any:
    """The same as NumPy's or pandas', if it is Dask's."""
    return given.compute() if is_dask(given) else given


class Lazily:
    """What an estimator does with Dask's arrays and data frames."""

    _is_lazy = False  # whether their rows stay where they are, and answers are lazy
    _fitted: Any
    _one_target: bool

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R² of the predictions at the rows of X.

        Parameters
        ----------
        X : (t, d) array or table
            The points.
        y : (t,) or (t, q) array
            What was observed there.
        sample_weight : (t,) array
            Weights of the rows, 1 unless given.

        Returns
        -------
        score : float
            1 for a perfect prediction, 0 for one that is no better than the mean of y.
        """
        y, w = computed(y), computed(sample_weight)
        return float(r2_score(y, computed(self.predict(X)), sample_weight=w))

    @abstractmethod
    def predict(self, X: Any) -> Any: ...

    def _is_asked_lazily(self, X: Any) -> bool:
        """Whether the answer for X is to be Dask's, computed when it is needed."""
        return self._is_lazy and is_dask(X)

    def _lazily(
        self, asked: str, X: Any, needs: list[str], options: dict[str, Any], *, outputs: int = 1
    ) -> Any:
        """A method for each chunk of rows of Dask's X: Dask arrays, as many as it has outputs.

        A copy of what the method ``needs`` of the model is given to the workers, which compute with
        NumPy. Where it is more rows than a worker is given, the blocks of the fit answer at once.
        """
        check_is_fitted(self)
        _check_table(X)
        _remember(self, X, X.shape[1], reset=False)
        shape = () if self._one_target else (len(self._fitted.noise),)
        apart = self._fitted.apart(needs)
        if apart is None:
            return _answered(self, asked, X, outputs, options)
        model = copy(self) if hasattr(X, "columns") else _unnamed(self)
        model._fitted = apart
        return _asked(model, asked, X, outputs, shape, options)


def _unnamed(model: Any) -> Any:
    """The model for rows whose columns have no names, which was said once."""
    model = copy(model)
    if hasattr(model, "feature_names_in_"):
        del model.feature_names_in_
    return model


def rows_fitted(estimator: Any, X: Any) -> Any:
    """X as it is fitted: Dask's where it is, or here."""
    if not is_dask(X):
        return X
    return _rows_there(estimator, X) if estimator._is_lazy else X.compute()


def _rows_there(estimator: Any, X: Any) -> Any:
    """The rows of Dask's X in blocks on the workers, or here where they are few or the estimator's
    backend is another; checked as scikit-learn checks arrays."""
    spec = estimator.backend
    if estimator.__sklearn_tags__().input_tags.pairwise:  # a kernel matrix is needed as a whole
        return X.compute()
    named = isinstance(spec, str) and spec in ("auto", "dask")
    if not named and getattr(spec, "name", None) != "dask":
        return X.compute()
    rows = points_there(X, spec)
    if not on_cluster(rows):
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
    wrong = _no_numbers(X)
    array = _known_lengths(X if wrong else X.astype(float), backend)
    if array.shape[0] <= backend.limit:
        return np.asarray(backend.cluster.brought(X))
    if wrong:
        raise ValueError(
            f"X has columns that are no numbers ({', '.join(wrong)}): encode or drop them first."
        )
    return backend.rows_of(array)


def _no_numbers(X: Any) -> list[str]:
    """Columns of Dask's X that are no numbers, and of which type."""
    if not hasattr(X, "columns"):
        return [] if X.dtype.kind in "biuf" else [f"type {X.dtype}"]
    return [
        f"{name!r} of type {dtype}"
        for name, dtype in zip(X.columns, X.dtypes, strict=True)
        if dtype.kind not in "biuf" and dtype.name != "category"
    ]


def _answered(model: Any, asked: str, X: Any, outputs: int, options: dict[str, Any]) -> Any:
    """A method for the rows of Dask's X, some thousands at a time: Dask arrays of the answers."""
    import dask.array as da

    backend = model.fitted_.backend
    rows = points_there(X, backend)
    model = _unnamed(model)
    starts = range(0, max(len(rows), 1), backend.limit)
    parts = [_answer(model, asked, rows[i : i + backend.limit], options) for i in starts]
    chunks = X.chunks[0] if hasattr(X, "chunks") else (np.nan,)
    lengths = "auto" if np.isnan(chunks).any() else chunks

    def together(pieces: list[Array]) -> Any:
        whole = np.concatenate(pieces)
        return da.from_array(whole, chunks=(lengths, *whole.shape[1:]))

    if outputs == 1:
        return together(parts)
    return tuple(together([part[k] for part in parts]) for k in range(outputs))


def _asked(
    model: Any, asked: str, X: Any, outputs: int, shape: tuple[int, ...], options: dict[str, Any]
) -> Any:
    """A method of a model for each chunk of Dask's X, with so many numbers in each row."""
    import dask
    import dask.array as da

    chunks = (np.nan,) * X.npartitions
    if hasattr(X, "chunks"):
        X = X.rechunk({1: -1})
        chunks = X.chunks[0]
    model = dask.delayed(model, traverse=False)
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
    found = getattr(_unnamed(model), method)(np.zeros((1, block.shape[1])), **options)
    return tuple(part[:0] for part in found) if isinstance(found, tuple) else found[:0]


def _check_table(X: Any) -> None:
    if X.ndim != 2:
        raise ValueError(f"X must be a table of rows and columns, got {X.ndim} dimensions.")


def _known_lengths(X: Any, backend: Any) -> Any:
    """Dask's array of X with known lengths of chunks: where they are unknown it is read once, of a
    frame the first column."""
    if not hasattr(X, "chunks"):
        lengths = backend.cluster.brought(X[list(X.columns[:1])].map_partitions(len))
        return X.to_dask_array(lengths=tuple(lengths))
    return X if not np.isnan(X.shape[0]) else X.copy().compute_chunk_sizes()


def _remember(estimator: Any, X: Any, d: int, *, reset: bool) -> None:
    """Names and number of features, as scikit-learn keeps or compares them."""
    sample = X.columns.to_frame().T if hasattr(X, "columns") else np.empty((0, d))
    validate_data(estimator, sample, reset=reset, skip_check_array=True)


def _is_finite(block: Array) -> Array:
    return np.isfinite(block).all(keepdims=True).ravel()
