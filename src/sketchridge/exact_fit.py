"""Everything an exact fit found: the dense counterpart of `fitted`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from sketchridge import tuning
from sketchridge.backends import NumpyTiles
from sketchridge.basis import Basis, basis_of
from sketchridge.data import (
    Data,
    estimated_noise,
    extended_data,
    fitted_kernel,
    placed,
    question,
    scaled_path,
)
from sketchridge.dense import DenseRidge, check_memory, dense_ridge
from sketchridge.factor import Sample, factorize
from sketchridge.kernels import Kernel
from sketchridge.query import AtPoints
from sketchridge.sketches import RPCholeskySketch

__all__ = ["ExactFitted", "ExactSettings", "extend_exact", "select_exact"]

Array = np.ndarray


@dataclass(frozen=True)
class ExactSettings:
    """The parameters of an `ExactKernelRidge`, checked."""

    kernel: Kernel
    bandwidth: Any
    alpha: float | str
    noise_variance: Any  # None where it is estimated
    fit_intercept: bool


@dataclass(frozen=True, eq=False)
class ExactFitted:
    """A fitted model: it answers questions and never changes."""

    settings: ExactSettings
    data: Data
    kernel: Kernel
    ridge: DenseRidge
    noise: Array  # (q,), in units of y²
    chosen_path: tuning.LambdaPath | None  # where λ was chosen from it
    chosen_eigenvalues: Array | None

    @property
    def sample(self) -> Sample:
        return self.ridge.sample

    def at(self, X: Array) -> AtPoints:
        """A question about the function's values at the rows of X."""
        return question(self.sample, self.data, X)

    def mean(self, query: AtPoints) -> Array:
        """The predicted mean, in units of y: (t, q)."""
        return self.data.center + self.data.scale * self.ridge.mean(query)

    @cached_property
    def loo_error(self) -> float:
        """Weighted mean of the squared leave-one-out errors."""
        errors = self.data.scale * self.ridge.residuals() / self.ridge.left()[:, None]
        return float((self.data.w @ errors**2 / self.data.w.sum()).mean())

    @cached_property
    def path(self) -> tuning.LambdaPath:
        """λ, df, gcv and loo over the grid, in units of the kernel and of y²."""
        if self.chosen_path is not None:
            return self.chosen_path
        return _path(self._basis, self.settings, self.data)

    @cached_property
    def eigenvalues(self) -> Array:
        """Eigenvalues of K in descending order, down to rounding."""
        if self.chosen_eigenvalues is not None:
            return self.chosen_eigenvalues
        return self._basis.E * self.kernel.unit

    @property
    def _basis(self) -> Basis:
        check_memory(len(self.sample), with_path=True)
        return _complete(self.sample, self.data)

    def __deepcopy__(self, memo: Any) -> ExactFitted:
        return self

    def __getstate__(self) -> dict[str, Any]:
        """What predictions need; the factorisation is made again when a variance is asked for."""
        return {
            "settings": self.settings,
            "data": self.data,
            "kernel": self.kernel,
            "lam": self.ridge.lam,
            "solution": (self.ridge.coefficients, self.ridge.offset),
            "noise": self.noise,
            "path": self.chosen_path,
            "eigenvalues": self.chosen_eigenvalues,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        data, settings = state["data"], state["settings"]
        sample = placed(NumpyTiles(), state["kernel"], data)
        ridge = DenseRidge(sample, data.Y, state["lam"], settings.fit_intercept, state["solution"])
        values = {
            "settings": settings,
            "data": data,
            "kernel": state["kernel"],
            "ridge": ridge,
            "noise": state["noise"],
            "chosen_path": state["path"],
            "chosen_eigenvalues": state["eigenvalues"],
        }
        self.__dict__.update(values)


def select_exact(settings: ExactSettings, data: Data, say: Callable[[str], None]) -> ExactFitted:
    """Choose whatever is left open, and fit. O(n³) time, O(n²) memory."""
    backend = NumpyTiles()
    check_memory(len(data.rows), with_path=isinstance(settings.alpha, str))
    kernel = fitted_kernel(settings, data, backend)
    return _finished(settings, data, placed(backend, kernel, data), say)


def extend_exact(
    old: ExactFitted,
    settings: ExactSettings,
    X: Array,
    Y: Array,
    w: Array,
    say: Callable[[str], None],
) -> ExactFitted:
    """The fit to all rows, with the kernel as it was."""
    data, _ = extended_data(old.data, X, Y, w, settings.fit_intercept)
    check_memory(len(data.rows), with_path=isinstance(settings.alpha, str))
    return _finished(settings, data, placed(NumpyTiles(), old.kernel, data), say)


def _finished(
    settings: ExactSettings, data: Data, sample: Sample, say: Callable[[str], None]
) -> ExactFitted:
    say(f"Fitting {len(sample):,} rows exactly")
    unit = sample.points.kernel.unit
    path = None
    eigenvalues = None
    if isinstance(settings.alpha, str):
        basis = _complete(sample, data)
        path = _path(basis, settings, data)
        scores = path.gcv if settings.alpha == "gcv" else path.loo
        lam = float(tuning.lambda_grid(basis.largest)[np.argmin(scores)])
        eigenvalues = basis.E * unit
        del basis  # n×n matrices that the factorisation has to make room for
    else:
        lam = float(settings.alpha) / sample.total / unit
    ridge = dense_ridge(sample, data.Y, lam, settings.fit_intercept)
    noise = _noise(settings, data, ridge)
    kernel = sample.points.kernel
    return ExactFitted(settings, data, kernel, ridge, noise, path, eigenvalues)


def _complete(sample: Sample, data: Data) -> Basis:
    """K itself, factorised to its numerical rank."""
    factor = factorize(sample, RPCholeskySketch(), "float64").grown(len(sample))
    return basis_of(factor, sample.backend.tall(data.Y), data.repeats)


def _path(basis: Basis, settings: ExactSettings, data: Data) -> tuning.LambdaPath:
    unit = basis.sample.points.kernel.unit
    return scaled_path(basis, settings.fit_intercept, data, unit)


def _noise(settings: ExactSettings, data: Data, ridge: DenseRidge) -> Array:
    if settings.noise_variance is not None:
        q = len(data.scale)
        return np.broadcast_to(np.asarray(settings.noise_variance, dtype=float), (q,)).copy()
    squares = data.w @ ridge.residuals() ** 2
    return estimated_noise(data, squares, float(ridge.left().sum()))
