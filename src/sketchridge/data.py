"""What is fitted: rows in units in which they are about 1, placed where a backend computes."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from sketchridge import tuning
from sketchridge.backends import (
    Backend,
    Elsewhere,
    NumpyTiles,
    Unreachable,
    as_backend,
    by_rows,
    on_cluster,
)
from sketchridge.basis import Basis
from sketchridge.factor import Sample, sample_of
from sketchridge.kernels import Kernel
from sketchridge.notices import warn
from sketchridge.precision import FULL
from sketchridge.query import AtPoints
from sketchridge.rows import Repeats, Rows, merged

__all__ = [
    "Data",
    "estimated_noise",
    "extended_data",
    "placed",
    "placed_again",
    "prepared",
    "question",
    "scaled_path",
    "warn_of_rounding",
    "warn_of_silence",
    "warn_of_the_noise",
]

Array = np.ndarray
_SILENT = 1e-12  # share of the noise's σ below which a point is far from all data


@dataclass(frozen=True, eq=False)
class Data:
    """Training rows with their targets in units in which they are about 1."""

    X: Array  # (n, d): distinct rows, or the kernel matrix between them
    rows: Rows
    center: Array  # (q,): taken from y, 0 without an intercept
    scale: Array  # (q,): powers of two by which y is divided
    columns: Array | None = None  # (n,): those of the distinct rows, where X is a kernel matrix
    used: Array | None = None  # given rows with a weight, where others were left out
    given: int = 0  # number of rows as they were given

    @cached_property
    def Y(self) -> Array:
        """(n, q)."""
        return (self.rows.Y - self.center) / self.scale

    def __getstate__(self) -> dict[str, Any]:
        """What was given; the rest follows from it."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @property
    def w(self) -> Array:
        return self.rows.w

    def with_numpy(self) -> Data:
        """With X as a NumPy array, wherever it is."""
        return replace(self, X=np.asarray(self.X)) if on_cluster(self.X) else self

    def without_rows(self) -> Data:
        """What is left of it where the rows are not."""
        rows: Any = Elsewhere(len(self.rows))
        X: Any = Elsewhere(*self.X.shape)
        return replace(self, X=X, rows=rows, used=None)

    @property
    def repeats(self) -> Repeats | None:
        """What repetitions of rows add, in the units of Y; None where no row is repeated."""
        return self.rows.repeats(self.scale) if self.rows.replicates else None


def prepared(X: Array, Y: Array, w: Array, *, fit_intercept: bool, square: bool = False) -> Data:
    """Data from rows as they are given; rows without weight are left out.

    ``square`` is for a kernel matrix in place of X, whose columns are merged too.
    """
    if square and X.shape[0] != X.shape[1]:
        raise ValueError(
            f"kernel='precomputed' is fitted to the (n, n) kernel matrix, got shape {X.shape}."
        )
    used = np.flatnonzero(w > 0)
    given = len(w)
    if len(used) < given:
        X, Y, w = _some(X, used), Y[used], w[used]
        X = X[:, used] if square else X
    rows = merged(X, Y, w)
    kept = None if len(used) == given else used
    if not square:
        whole = len(rows.first) == len(X)
        X = by_rows(np.asarray, X) if whole else _some(X, rows.first)  # a copy, made once
        data = _in_units(X, rows, fit_intercept)
        return replace(data, used=kept, given=given)
    distinct = np.array(X[np.ix_(rows.first, rows.first)], dtype=float)
    data = _in_units(distinct, rows, fit_intercept)
    return replace(data, columns=used[rows.first], used=kept, given=given)


def _some(X: Any, rows: Array) -> Array:
    """Some rows of X, where X is: here, or in blocks on a cluster."""
    return X.chosen(rows) if on_cluster(X) else by_rows(X.__getitem__, rows)


def _in_units(X: Array, rows: Rows, fit_intercept: bool) -> Data:
    q = rows.Y.shape[1]
    center = rows.w @ rows.Y / rows.w.sum() if fit_intercept else np.zeros(q)
    largest = np.maximum(rows.Y.max(axis=0) - center, center - rows.Y.min(axis=0))
    scale = 2.0 ** np.round(np.log2(np.where(largest > 0, largest, 1.0)))
    return Data(X, rows, center, scale)


def extended_data(
    old: Data, X: Array, Y: Array, w: Array, fit_intercept: bool
) -> tuple[Data, Array]:
    """The data with further rows, and those of them that are new."""
    used = np.flatnonzero(w > 0)
    rows, fresh = old.rows.extended(old.X, X[used], Y[used], w[used])
    X_new = X[used][fresh]
    return _in_units(np.concatenate([old.X, X_new]), rows, fit_intercept), X_new


def placed(backend: Backend, kernel: Kernel, data: Data) -> Sample:
    if kernel.geometry == "opaque":
        coordinates = kernel.training_coordinates(data.X)
    else:
        coordinates = by_rows(kernel.coordinates, data.X)
    return sample_of(backend.place(kernel, coordinates), data.w)


def placed_again(spec: Any, kernel: Kernel, data: Data) -> Sample:
    """On the backend that was asked for, or with NumPy where the machine has no such device."""
    try:
        n = 0 if kernel.geometry == "opaque" else len(data.rows)
        return placed(as_backend(spec, n), kernel, data)
    except (ImportError, Unreachable) as error:
        warn(
            f"The model was fitted with backend={spec!r} and computes with NumPy here. {error} "
            "set_params(backend='numpy') and a fit make that its own."
        )
        return placed(NumpyTiles(), kernel, data)


def question(sample: Sample, data: Data, X: Array) -> AtPoints:
    """A question about values at the rows of X, which are of a kernel matrix where the data are."""
    X = X if data.columns is None else X[:, data.columns]
    kernel = sample.points.kernel
    stays = on_cluster(X)  # on a cluster
    coordinates = by_rows(kernel.coordinates, X) if stays else kernel.coordinates(X)
    given = None if stays else (X, data.X)
    return AtPoints(sample.backend.place(kernel, coordinates), given)


def scaled_path(basis: Basis, fit_intercept: bool, data: Data) -> tuning.LambdaPath:
    """The λ path in units of the kernel and of y²."""
    scales = tuning.target_scales(data.Y, data.w, data.scale)
    path = tuning.lambda_path(basis, fit_intercept, scales)
    unit = basis.sample.points.kernel.unit
    return tuning.LambdaPath(path.lam * unit, path.df, path.gcv, path.loo)


def estimated_noise(data: Data, squares: Array, free: float) -> Array:
    """σ̂² = (RSS + squares of y within distinct rows)/(n − df + replicates), in units of y²: (q,).

    ``squares`` (q,) is the weighted RSS in the data's own units, ``free`` is n − df.
    """
    within = data.rows.within / data.scale / data.scale
    dof = max(free, np.finfo(float).eps) + data.rows.replicates
    return data.scale * data.scale * ((squares + within) / dof)


def warn_of_the_noise(data: Data) -> None:
    """Say where rows cannot tell the noise variance, or may tell it wrongly."""
    if data.rows.tied:
        warn(
            "Some rows repeat both X and y of another row while y differs elsewhere at the same X. "
            "Such a repetition counts as one row of more weight, so the noise variance is too "
            "large if y merely takes few values: give noise_variance then."
        )
    if len(data.rows) == 1 and not data.rows.replicates:
        warn(
            "The noise variance cannot be estimated from one row, and no other distinct row has a "
            "weight: noise_variance_ and standard deviations are 0 or an effect of alpha alone. "
            "Give noise_variance, or more rows."
        )


def warn_of_rounding(lam: float, largest: float, dtype: str) -> None:
    """Say that λ is too small for products of a precision; it and E₁ are in units of the kernel."""
    remedy = ", or center and rescale X"
    if dtype != FULL:
        remedy = f", center and rescale X, or use dtype={FULL!r}"
    warn(
        f"λ = {lam:.3g} is below the rounding of {dtype} products with a largest eigenvalue of "
        f"{largest:.3g}: do not trust the mean or its variance. Give a larger alpha{remedy}."
    )


def warn_of_silence(std: Array, noise: float) -> None:
    """Say how many points with standard deviations (t, …) are far from all data."""
    silent = int((std.reshape(len(std), -1).max(axis=1) < _SILENT * np.sqrt(noise)).sum())
    if silent:
        warn(
            f"{silent} of {len(std)} points are so far from the training data that the model "
            "says nothing about them: their mean and standard deviation are 0. Use "
            "fit_intercept=True, a larger bandwidth, or look at variance(X, kind='gp')."
        )
