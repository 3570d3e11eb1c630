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
    extended_data,
    placed,
    placed_again,
    scaled_path,
    warn_of_rounding,
)
from sketchridge.dense import DenseRidge, check_memory, dense_ridge
from sketchridge.distribution import LeftOut
from sketchridge.factor import Sample, factorize, sample_of
from sketchridge.learning import Learned
from sketchridge.model import Choices, Model, found_noise, with_varying_noise
from sketchridge.precision import FULL, excess
from sketchridge.query import Query
from sketchridge.sketches import RPCholeskySketch
from sketchridge.system import norms
from sketchridge.varying import Varying

__all__ = ["ExactFitted", "extend_exact", "select_exact"]

Array = np.ndarray
_SEED = 0  # of the rows on which a kernel is learned
_WHOLE = 4096  # rows up to which the penalty is chosen on all of them
_WORTH = 2048  # rows from which a GPU is worth sending them to
_PRODUCTS = 8  # by which the largest eigenvalue is known, where it matters


@dataclass(frozen=True, eq=False, kw_only=True)
class ExactFitted(Model):
    """A fit by an n×n Cholesky factor."""

    ridge: DenseRidge
    chosen_path: tuning.LambdaPath | None  # where λ was chosen from it
    chosen_eigenvalues: Array | None

    def mean(self, query: Query) -> Array:
        """The predicted mean, in units of y: (t, q)."""
        center = np.outer(query.constant, self.data.center)
        return center + self.data.scale * self.ridge.mean(query)

    @property
    def left_out(self) -> LeftOut:
        """Every row predicted without itself."""
        return _left_out(self.ridge, self.data, self.varying)

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

    def __getstate__(self) -> dict[str, Any]:
        """What predictions need; the factorization is made again when a variance is asked for."""
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


def select_exact(settings: Choices, data: Data, say: Callable[[str], None]) -> ExactFitted:
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
    settings: Choices,
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
    def refit(data: Data, varying: Varying) -> ExactFitted:
        sample = sample_of(fitted.sample.points, data.w)
        widths = fitted.factor_of_widths
        return _finished(fitted.settings, data, sample, fitted.learned, widths, say, varying)

    return with_varying_noise(fitted, None, _SEED, refit)


def _finished(
    settings: Choices,
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
    alpha = learned_penalty(learned, data if varying is None else varying.plain)
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
        del basis  # n×n matrices that the factorization has to make room for
    else:
        lam = float(settings.alpha) / sample.total / unit
    ridge = dense_ridge(sample, data.Y, lam, settings.fit_intercept)
    if not isinstance(settings.alpha, str):
        _warn_of_rounding(ridge)
    kernel = sample.points.kernel
    noise, predictive = found_noise(
        settings,
        data,
        kernel,
        widths,
        (lambda: _left_out(ridge, data, varying)) if settings.alpha == "loo" else None,
        lambda: (data.w @ ridge.residuals() ** 2, float(ridge.left().sum())),
    )
    return ExactFitted(
        settings=settings,
        data=data,
        kernel=kernel,
        ridge=ridge,
        noise=noise,
        chosen_path=path,
        chosen_eigenvalues=eigenvalues,
        learned=learned,
        factor_of_widths=widths,
        varying=varying,
        saved_predictive=predictive,
    )


def _warn_of_rounding(ridge: DenseRidge) -> None:
    """Where λ is all but lost, though the factorization did not fail."""
    sample, lam, unit = ridge.sample, ridge.lam, ridge.sample.points.kernel.unit
    growth = ridge.growth / lam
    if excess(FULL, sample.scales, growth * sample.scales.trace) > 1:  # tr K, no less than E₁
        largest = _largest(sample)
        if excess(FULL, sample.scales, growth * largest) > 1:
            warn_of_rounding(lam * unit, largest * unit, FULL)


def _largest(sample: Sample) -> float:
    """E₁, by power iteration."""
    backend, points = sample.backend, sample.points
    W = backend.tall(np.random.default_rng(_SEED).standard_normal((len(sample), 1)))
    length = norms(W)
    for _ in range(_PRODUCTS):
        scaled = W.map(lambda w, m, s: w * m / s, sample.root, small=(length,))
        W = backend.matmul(points, points, scaled, precision=FULL).scaled(sample.root)
        length = np.maximum(norms(W), np.finfo(float).tiny)
    return float(length[0])


def _backend(settings: Choices, data: Data) -> Backend:
    """The one asked for; "auto" is a GPU for fewer rows than where work grows as n."""
    opaque = settings.kernel.geometry == "opaque"  # evaluated on the host
    many = len(data.rows) >= _WORTH and not opaque
    return as_backend(settings.backend, LARGE if many else 0)


def _sees_all(settings: Choices, data: Data) -> bool:
    """Whether the penalty is chosen on a λ path of all rows."""
    return settings.alpha == "gcv" or (settings.alpha == "loo" and len(data.rows) <= _WHOLE)


def _complete(sample: Sample, data: Data) -> Basis:
    """K itself, factorized to its numerical rank."""
    factor = factorize(sample, RPCholeskySketch(), FULL).grown(len(sample))
    return basis_of(factor, sample.backend.tall(data.Y), data.repeats)


def _path(basis: Basis, settings: Choices, data: Data) -> tuning.LambdaPath:
    unit = basis.sample.points.kernel.unit
    return scaled_path(basis, settings.fit_intercept, data, unit)


def _left_out(ridge: DenseRidge, data: Data, varying: Varying | None) -> LeftOut:
    ratio = 1.0 if varying is None else varying.ratio(ridge.sample)
    alpha = ridge.lam * ridge.sample.total
    return LeftOut(data, alpha, ridge.left(), residuals=ridge.residuals(), noise_ratio=ratio)
