"""Everything an exact fit found: the dense counterpart of `fitted`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from sketchridge import tuning
from sketchridge.backends import LARGE, Backend, as_backend
from sketchridge.basis import Basis, basis_of
from sketchridge.chosen import (
    carried_over,
    choose_kernel,
    exact_penalty,
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
from sketchridge.factor import Sample, factorize
from sketchridge.loo import penalty_grid
from sketchridge.model import Choices, Model, Task, found_noise, with_varying_noise
from sketchridge.precision import FULL, excess
from sketchridge.progress import Say
from sketchridge.sketches import RPCholeskySketch
from sketchridge.system import norms
from sketchridge.varying import Varying

__all__ = ["ExactFitted", "extend_exact", "select_exact"]

Array = np.ndarray
_SEED = 0  # of what is drawn at random
_WHOLE = 4096  # rows up to which the penalty is chosen on all of them
_WORTH = 2048  # rows from which a GPU is worth sending them to
_PRODUCTS = 8  # by which the largest eigenvalue is known, where it matters


@dataclass(frozen=True, eq=False, kw_only=True)
class ExactFitted(Model):
    """A fit by an n×n Cholesky factor."""

    ridge: DenseRidge
    chosen_path: tuning.LambdaPath | None  # where λ was chosen from it
    chosen_eigenvalues: Array | None

    @property
    def left_out(self) -> LeftOut:
        """Every row predicted without itself."""
        return _left_out(self.ridge, self.data, self.varying)

    @cached_property
    def path(self) -> tuning.LambdaPath:
        """λ, df, gcv and loo over the grid, in units of the kernel and of y²."""
        if self.chosen_path is not None:
            return self.chosen_path
        return scaled_path(self._basis, self.settings.fit_intercept, self.data)

    @cached_property
    def eigenvalues(self) -> Array:
        """Eigenvalues of K in descending order, down to rounding."""
        if self.chosen_eigenvalues is not None:
            return self.chosen_eigenvalues
        return self._basis.E * self.unit

    @property
    def _basis(self) -> Basis:
        check_memory(self.sample.backend, len(self.sample), with_path=True)
        return _complete(self.sample, self.data)

    def __getstate__(self) -> dict[str, Any]:
        """What predictions need; the factorization is made again when a variance is asked for."""
        return self._shared_state() | {
            "solution": (self.ridge.coefficients, self.ridge.offset),
            "path": self.chosen_path,
            "eigenvalues": self.chosen_eigenvalues,
            "predictive": self.predictive,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        data, settings = state["data"], state["settings"]
        sample = placed_again(settings.backend, state["kernel"], data)
        ridge = DenseRidge(sample, data.Y, state["lam"], settings.fit_intercept, state["solution"])
        path, eigenvalues = state["path"], state["eigenvalues"]
        self._restore(state, ridge, chosen_path=path, chosen_eigenvalues=eigenvalues)


def select_exact(settings: Choices, data: Data, say: Say) -> ExactFitted:
    """Choose whatever is left open, and fit. O(n³) time, O(n²) memory."""
    backend = _backend(settings, data)
    check_memory(backend, len(data.rows), with_path=_sees_all(settings, data))
    with backend.alone():
        chosen = choose_kernel(settings, data, backend, say)
        widths = widening_factor(chosen, data, settings, say, backend)
    sample = placed(backend, chosen.kernel, data)
    task = Task(settings=settings, data=data, learned=chosen.learned, widths=widths, say=say)
    return _with_varying_noise(task, _finished(task, sample))


def extend_exact(
    old: ExactFitted,
    settings: Choices,
    X: Array,
    Y: Array,
    w: Array,
    say: Say,
) -> ExactFitted:
    """The fit to all rows, with the kernel as it was."""
    data, _ = extended_data(old.plain, X, Y, w, settings.fit_intercept)
    backend = _backend(settings, data)
    check_memory(backend, len(data.rows), with_path=_sees_all(settings, data))
    sample = placed(backend, old.kernel, data)
    share = len(old.data.rows) / len(data.rows)
    learned, widths = carried_over(old.learned, old.factor_of_widths, share)
    task = Task(settings=settings, data=data, learned=learned, widths=widths, say=say)
    return _with_varying_noise(task, _finished(task, sample))


def _with_varying_noise(task: Task, fitted: ExactFitted) -> ExactFitted:
    def refit(sample: Sample, data: Data, varying: Varying) -> ExactFitted:
        return _finished(replace(task, data=data, varying=varying), sample)

    return with_varying_noise(fitted, None, _SEED, refit)


def _finished(task: Task, sample: Sample) -> ExactFitted:
    task.say(f"Fitting {len(sample):,} rows exactly")
    settings, data, kernel = task.settings, task.data, sample.points.kernel
    chosen = _penalized(task, sample)
    ridge = dense_ridge(sample, data.Y, chosen.lam, settings.fit_intercept)
    if not isinstance(settings.alpha, str):
        _warn_of_rounding(ridge)
    noise, predictive = found_noise(
        task,
        kernel,
        (lambda: _left_out(ridge, data, task.varying)) if settings.alpha == "loo" else None,
        lambda: (data.w @ ridge.residuals() ** 2, float(ridge.unfitted().sum())),
    )
    return ExactFitted(
        settings=settings,
        data=data,
        kernel=kernel,
        ridge=ridge,
        noise=noise,
        chosen_path=chosen.path,
        chosen_eigenvalues=chosen.eigenvalues,
        learned=task.learned,
        factor_of_widths=task.widths,
        varying=task.varying,
        saved_predictive=predictive,
    )


class _Chosen(NamedTuple):
    """λ, and what it was chosen from where that is a λ path of all rows."""

    lam: float
    path: tuning.LambdaPath | None = None
    eigenvalues: Array | None = None


def _penalized(task: Task, sample: Sample) -> _Chosen:
    alpha, data, one = task.settings.alpha, task.data, task.settings.fit_intercept
    unit = sample.points.kernel.unit
    if not isinstance(alpha, str):
        return _Chosen(float(alpha) / sample.total / unit)
    known = task.learned_alpha if alpha == "loo" else None
    if known is None and not _sees_all(task.settings, data):
        known = exact_penalty(sample, data, one).alpha
    if known is not None:
        return _Chosen(known / sample.total)
    basis = _complete(sample, data)
    path = scaled_path(basis, one, data)
    scores = path.gcv if alpha == "gcv" else path.loo
    lam = tuning.chosen(alpha, penalty_grid(basis.largest), scores)
    return _Chosen(lam, path, basis.E * unit)


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


def _left_out(ridge: DenseRidge, data: Data, varying: Varying | None) -> LeftOut:
    ratio = 1.0 if varying is None else varying.ratio(ridge.sample)
    alpha = ridge.lam * ridge.sample.total
    return LeftOut(data, alpha, ridge.unfitted(), residuals=ridge.residuals(), noise_ratio=ratio)
