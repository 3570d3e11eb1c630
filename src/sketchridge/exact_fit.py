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
from sketchridge.chosen import choose_kernel, widening_factor
from sketchridge.data import (
    Data,
    estimated_noise,
    extended_data,
    placed,
    question,
    scaled_path,
    warn_of_the_noise,
)
from sketchridge.dense import DenseRidge, check_memory, dense_ridge
from sketchridge.distribution import distribution
from sketchridge.factor import Sample, factorize
from sketchridge.kernels import Kernel
from sketchridge.learning import Learned
from sketchridge.predictive import Predictive
from sketchridge.query import AtPoints
from sketchridge.sketches import RPCholeskySketch

__all__ = ["ExactFitted", "ExactSettings", "extend_exact", "select_exact"]

Array = np.ndarray
_SEED = 0  # of the rows on which a kernel is learned


@dataclass(frozen=True)
class ExactSettings:
    """The parameters of an `ExactKernelRidge`, checked."""

    kernels: tuple[Kernel, ...]  # one, or those among which the data choose
    bandwidth: Any
    alpha: float | str
    noise_variance: Any  # None where it is estimated
    fit_intercept: bool
    width_factor: float | None = None  # of intervals, where the kernel was learned earlier

    @property
    def kernel(self) -> Kernel:
        """The only kernel, or the first."""
        return self.kernels[0]


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
    learned: Learned | None = None  # how the kernel was found
    factor_of_widths: float = 1.0  # by which intervals are wider because it was
    saved_predictive: Predictive | None = None  # of a model that was loaded

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
    def predictive(self) -> Predictive:
        """The distribution of new observations, from leave-one-out errors. O(n³)."""
        if self.saved_predictive is not None:
            return self.saved_predictive
        given = None if self.settings.noise_variance is None else self.noise
        return _predictive(self.ridge, self.data, self.settings, self.factor_of_widths, given)

    @cached_property
    def loo_errors(self) -> Array:
        """y of each distinct row minus its prediction without it: (n, q)."""
        return self.data.scale * self.ridge.residuals() / self.ridge.left()[:, None]

    @cached_property
    def loo_error(self) -> float:
        """Weighted mean of the squared leave-one-out errors."""
        return float((self.data.w @ self.loo_errors**2 / self.data.w.sum()).mean())

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
            "learned": self.learned,
            "predictive": self.predictive,
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
            "learned": state["learned"],
            "factor_of_widths": state["predictive"].factor,
            "saved_predictive": state["predictive"],
        }
        self.__dict__.update(values)


def select_exact(settings: ExactSettings, data: Data, say: Callable[[str], None]) -> ExactFitted:
    """Choose whatever is left open, and fit. O(n³) time, O(n²) memory."""
    backend = NumpyTiles()
    check_memory(len(data.rows), with_path=isinstance(settings.alpha, str))
    chosen = choose_kernel(settings, data, backend, _SEED, say)
    widths = widening_factor(chosen, data, settings, _SEED, say)
    sample = placed(backend, chosen.kernel, data)
    return _finished(settings, data, sample, chosen.learned, widths, say)


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
    sample = placed(NumpyTiles(), old.kernel, data)
    return _finished(settings, data, sample, old.learned, old.factor_of_widths, say)


def _finished(
    settings: ExactSettings,
    data: Data,
    sample: Sample,
    learned: Learned | None,
    widths: float,
    say: Callable[[str], None],
) -> ExactFitted:
    say(f"Fitting {len(sample):,} rows exactly")
    unit = sample.points.kernel.unit
    path = None
    eigenvalues = None
    if settings.alpha == "loo" and learned is not None and learned.criterion == "reml":
        lam = learned.alpha * float(data.w.mean()) / sample.total
    elif isinstance(settings.alpha, str):
        basis = _complete(sample, data)
        path = _path(basis, settings, data)
        scores = path.gcv if settings.alpha == "gcv" else path.loo
        lam = tuning.chosen(settings.alpha, tuning.lambda_grid(basis.largest), scores)
        eigenvalues = basis.E * unit
        del basis  # n×n matrices that the factorisation has to make room for
    else:
        lam = float(settings.alpha) / sample.total / unit
    ridge = dense_ridge(sample, data.Y, lam, settings.fit_intercept)
    noise, predictive = _noise(settings, data, ridge, widths)
    kernel = sample.points.kernel
    return ExactFitted(
        settings, data, kernel, ridge, noise, path, eigenvalues, learned, widths, predictive
    )


def _complete(sample: Sample, data: Data) -> Basis:
    """K itself, factorised to its numerical rank."""
    factor = factorize(sample, RPCholeskySketch(), "float64").grown(len(sample))
    return basis_of(factor, sample.backend.tall(data.Y), data.repeats)


def _path(basis: Basis, settings: ExactSettings, data: Data) -> tuning.LambdaPath:
    unit = basis.sample.points.kernel.unit
    return scaled_path(basis, settings.fit_intercept, data, unit)


def _noise(
    settings: ExactSettings, data: Data, ridge: DenseRidge, widths: float
) -> tuple[Array, Predictive | None]:
    """σ², given or estimated, and the distribution it was taken from: as in `selection`."""
    if settings.noise_variance is not None:
        q = len(data.scale)
        given = np.asarray(settings.noise_variance, dtype=float)
        return np.broadcast_to(given, (q,)).copy(), None
    warn_of_the_noise(data)
    if settings.alpha == "loo":
        found = _predictive(ridge, data, settings, widths)
        return found.noise_variance, found
    squares = data.w @ ridge.residuals() ** 2
    return estimated_noise(data, squares, float(ridge.left().sum())), None


def _predictive(
    ridge: DenseRidge,
    data: Data,
    settings: ExactSettings,
    widths: float,
    noise_variance: Array | None = None,
) -> Predictive:
    return distribution(
        data,
        ridge.sample.points.kernel,
        ridge.lam * ridge.sample.total,
        ridge.left(),
        residuals=ridge.residuals(),
        factor=widths,
        noise_variance=noise_variance,
        fit_intercept=settings.fit_intercept,
    )
