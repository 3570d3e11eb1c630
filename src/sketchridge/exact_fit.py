"""Everything an exact fit found: the dense counterpart of `fitted`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from sketchridge import tuning
from sketchridge.backends import LARGE, Backend, as_backend
from sketchridge.basis import Basis, basis_of
from sketchridge.chosen import (
    carried_over,
    choose_kernel,
    exact_penalty,
    learned_penalty,
    widening_factor,
)
from sketchridge.data import (
    Data,
    estimated_noise,
    extended_data,
    placed,
    placed_again,
    question,
    scaled_path,
    warn_of_the_noise,
)
from sketchridge.dense import DenseRidge, check_memory, dense_ridge
from sketchridge.distribution import LeftOut, distribution
from sketchridge.factor import Sample, factorize, sample_of
from sketchridge.kernels import Kernel
from sketchridge.learning import Learned
from sketchridge.predictive import Predictive
from sketchridge.query import AtPoints, Query
from sketchridge.sketches import RPCholeskySketch
from sketchridge.varying import Varying, better, varying_noise

__all__ = ["ExactFitted", "ExactSettings", "extend_exact", "select_exact"]

Array = np.ndarray
_SEED = 0  # of the rows on which a kernel is learned
_WHOLE = 4096  # rows up to which the penalty is chosen on all of them
_WORTH = 2048  # rows from which a GPU is worth sending them to


@dataclass(frozen=True)
class ExactSettings:
    """The parameters of an `ExactKernelRidge`, checked."""

    kernels: tuple[Kernel, ...]  # one, or those among which the data choose
    bandwidth: Any
    alpha: float | str
    noise_variance: Any  # None where it is estimated
    fit_intercept: bool
    backend: Any = "auto"
    noise: str = "constant"  # or "varying"
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
    varying: Varying | None = None  # noise that varies with x
    saved_predictive: Predictive | None = None  # of a model that was loaded

    @property
    def sample(self) -> Sample:
        return self.ridge.sample

    def at(self, X: Array) -> AtPoints:
        """A question about the function's values at the rows of X."""
        return question(self.sample, self.data, X)

    def mean(self, query: Query) -> Array:
        """The predicted mean, in units of y: (t, q)."""
        center = np.outer(query.constant, self.data.center)
        return center + self.data.scale * self.ridge.mean(query)

    @cached_property
    def predictive(self) -> Predictive:
        """The distribution of new observations, from leave-one-out errors. O(n³)."""
        if self.saved_predictive is not None:
            return self.saved_predictive
        return distribution(
            self.left_out,
            self.kernel,
            factor=self.factor_of_widths,
            noise_variance=None if self.settings.noise_variance is None else self.noise,
            fit_intercept=self.settings.fit_intercept,
        )

    @property
    def left_out(self) -> LeftOut:
        """Every row predicted without itself."""
        return _left_out(self.ridge, self.data, self.varying)

    @property
    def loo_errors(self) -> Array:
        """y of each distinct row minus its prediction without it: (n, q)."""
        return self.left_out.errors

    @cached_property
    def loo_error(self) -> float:
        """Weighted mean of the squared leave-one-out errors, in units of y²."""
        return self.left_out.mean_square(self.plain.w)

    def noise_share(self, query: AtPoints) -> Array | float:
        """g(x), the noise of a new observation over that of a row of weight 1: 1, or (t,)."""
        return 1.0 if self.varying is None else self.varying.at(query.points, self.sample)

    @property
    def plain(self) -> Data:
        """The data with the weights that were given, whatever varying noise has made of them."""
        return self.data if self.varying is None else self.varying.plain

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
        check_memory(self.sample.backend, len(self.sample), with_path=True)
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
            "varying": self.varying,
            "predictive": self.predictive,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        data, settings = state["data"], state["settings"]
        sample = placed_again(settings.backend, state["kernel"], data)
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
            "varying": state["varying"],
            "factor_of_widths": state["predictive"].factor,
            "saved_predictive": state["predictive"],
        }
        self.__dict__.update(values)


def select_exact(settings: ExactSettings, data: Data, say: Callable[[str], None]) -> ExactFitted:
    """Choose whatever is left open, and fit. O(n³) time, O(n²) memory."""
    backend = _backend(settings, data)
    check_memory(backend, len(data.rows), with_path=_sees_all(settings, data))
    chosen = choose_kernel(settings, data, backend, _SEED, say)
    with backend.alone():
        widths = widening_factor(chosen, data, settings, _SEED, say)
    sample = placed(backend, chosen.kernel, data)
    fitted = _finished(settings, data, sample, chosen.learned, widths, say)
    return _with_varying_noise(fitted, say)


def extend_exact(
    old: ExactFitted,
    settings: ExactSettings,
    X: Array,
    Y: Array,
    w: Array,
    say: Callable[[str], None],
) -> ExactFitted:
    """The fit to all rows, with the kernel as it was."""
    data, _ = extended_data(old.plain, X, Y, w, settings.fit_intercept)
    backend = _backend(settings, data)
    check_memory(backend, len(data.rows), with_path=_sees_all(settings, data))
    sample = placed(backend, old.kernel, data)
    share = len(old.data.rows) / len(data.rows)
    learned, widths = carried_over(old.learned, old.factor_of_widths, share)
    fitted = _finished(settings, data, sample, learned, widths, say)
    return _with_varying_noise(fitted, say)


def _with_varying_noise(fitted: ExactFitted, say: Callable[[str], None]) -> ExactFitted:
    """The fit again with rows weighted by the inverse of their noise, as in `selection`."""
    settings = fitted.settings
    if settings.noise == "constant":
        return fitted
    sample = fitted.sample
    scores = fitted.left_out.scores
    with sample.backend.alone():
        found = varying_noise(fitted.data, sample, scores, None, seed=_SEED)
    if found is None:
        return fitted
    data = found.weighted(sample)
    weighted = sample_of(sample.points, data.w)
    widths = fitted.factor_of_widths
    return better(fitted, _finished(settings, data, weighted, fitted.learned, widths, say, found))


def _finished(
    settings: ExactSettings,
    data: Data,
    sample: Sample,
    learned: Learned | None,
    widths: float,
    say: Callable[[str], None],
    varying: Varying | None = None,
) -> ExactFitted:
    say(f"Fitting {len(sample):,} rows exactly")
    unit = sample.points.kernel.unit
    path = None
    eigenvalues = None
    alpha = learned_penalty(learned, data)
    if settings.alpha == "loo" and alpha is not None:
        lam = alpha / sample.total
    elif settings.alpha == "loo" and len(sample) > _WHOLE:
        lam = exact_penalty(sample, data, settings.fit_intercept, _SEED).alpha / sample.total
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
    noise, predictive = _noise(settings, data, ridge, widths, varying)
    kernel = sample.points.kernel
    found = (noise, path, eigenvalues, learned, widths, varying, predictive)
    return ExactFitted(settings, data, kernel, ridge, *found)


def _backend(settings: ExactSettings, data: Data) -> Backend:
    """The one asked for; "auto" is a GPU for fewer rows than where work grows as n."""
    opaque = settings.kernel.geometry == "opaque"  # evaluated on the host
    many = len(data.rows) >= _WORTH and not opaque
    return as_backend(settings.backend, LARGE if many else 0)


def _sees_all(settings: ExactSettings, data: Data) -> bool:
    """Whether the penalty is chosen on a λ path of all rows."""
    return settings.alpha == "gcv" or (settings.alpha == "loo" and len(data.rows) <= _WHOLE)


def _complete(sample: Sample, data: Data) -> Basis:
    """K itself, factorised to its numerical rank."""
    factor = factorize(sample, RPCholeskySketch(), "float64").grown(len(sample))
    return basis_of(factor, sample.backend.tall(data.Y), data.repeats)


def _path(basis: Basis, settings: ExactSettings, data: Data) -> tuning.LambdaPath:
    unit = basis.sample.points.kernel.unit
    return scaled_path(basis, settings.fit_intercept, data, unit)


def _noise(
    settings: ExactSettings,
    data: Data,
    ridge: DenseRidge,
    widths: float,
    varying: Varying | None,
) -> tuple[Array, Predictive | None]:
    """σ², given or estimated, and the distribution it was taken from: as in `selection`."""
    if settings.noise_variance is not None:
        q = len(data.scale)
        given = np.asarray(settings.noise_variance, dtype=float)
        return np.broadcast_to(given, (q,)).copy(), None
    warn_of_the_noise(data)
    if settings.alpha == "loo":
        found = distribution(
            _left_out(ridge, data, varying),
            ridge.sample.points.kernel,
            factor=widths,
            fit_intercept=settings.fit_intercept,
        )
        return found.noise_variance, found
    squares = data.w @ ridge.residuals() ** 2
    return estimated_noise(data, squares, float(ridge.left().sum())), None


def _left_out(ridge: DenseRidge, data: Data, varying: Varying | None) -> LeftOut:
    ratio = 1.0 if varying is None else varying.ratio(ridge.sample)
    alpha = ridge.lam * ridge.sample.total
    return LeftOut(data, alpha, ridge.left(), residuals=ridge.residuals(), noise_ratio=ratio)
