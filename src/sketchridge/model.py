"""What a fitted model is, sketched or exact: frozen, and complete before anything is assigned."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from sketchridge.backends import Backend
from sketchridge.chosen import learned_penalty
from sketchridge.data import Data, estimated_noise, question, warn_of_the_noise
from sketchridge.distribution import LeftOut, distribution
from sketchridge.factor import Sample, sample_of
from sketchridge.kernels import Kernel
from sketchridge.learning import Learned
from sketchridge.predictive import Predictive, gained
from sketchridge.progress import Say
from sketchridge.query import AtPoints, Query
from sketchridge.tuning import LambdaPath
from sketchridge.varying import Varying, varying_noise

__all__ = ["Choices", "Model", "Task", "found_noise", "with_varying_noise"]

Array = np.ndarray


@dataclass(frozen=True, kw_only=True)
class Choices:
    """The parameters that both estimators have, checked."""

    kernels: tuple[Kernel, ...]  # one, or those among which the data choose
    bandwidth: Any
    alpha: float | str
    noise_variance: Any  # None where it is estimated
    fit_intercept: bool
    backend: Any
    noise: str = "constant"  # or "varying"
    width_factor: float | None = None  # of intervals, where the kernel was learned earlier

    @property
    def kernel(self) -> Kernel:
        """The only kernel, or the first."""
        return self.kernels[0]


@dataclass(frozen=True, eq=False, kw_only=True)
class Task:
    """What is to be fitted, once the kernel is known, and who is told how far that is."""

    settings: Any
    data: Data
    learned: Learned | None  # how the kernel was found
    widths: float  # by which intervals are wider because it was
    say: Say
    varying: Varying | None = None  # noise that varies with x, behind the weights of the data

    @property
    def learned_alpha(self) -> float | None:
        """α that was learned with the kernel, for the weights as they were given."""
        given = self.data if self.varying is None else self.varying.plain
        return learned_penalty(self.learned, given)


@dataclass(frozen=True, eq=False, kw_only=True)
class Model(ABC):
    """A fitted model: it answers questions and never changes.

    Concrete classes give ``settings``, a `Choices`, and ``ridge``.
    """

    settings: Any
    data: Data
    kernel: Kernel
    ridge: Any
    noise: Array  # (q,), in units of y²
    learned: Learned | None = None  # how the kernel was found
    factor_of_widths: float = 1.0  # by which intervals are wider because it was
    varying: Varying | None = None  # noise that varies with x
    saved_predictive: Predictive | None = None  # of a fit that needed it, or of a file

    def mean(self, query: Query) -> Array:
        """The predicted mean, in units of y: (t, q)."""
        return np.outer(query.constant, self.data.center) + self.data.scale * self._inside(query)

    def _inside(self, query: Query) -> Array:
        """The same in the data's own units."""
        return self.ridge.mean(query)

    def gp(self, query: Query) -> Array:
        """gp(x), in units of the kernel as it is evaluated: (t,)."""
        return self.ridge.gp(query)

    @property
    @abstractmethod
    def left_out(self) -> LeftOut:
        """Every row predicted without itself."""

    @cached_property
    @abstractmethod
    def path(self) -> LambdaPath:
        """λ, df, gcv and loo over the grid, in units of the kernel and of y²."""

    @property
    @abstractmethod
    def eigenvalues(self) -> Array:
        """Eigenvalues of K, or of K̂, in descending order and units of the kernel."""

    @property
    def sample(self) -> Sample:
        """The training points with their weights, where the backend computes."""
        return self.ridge.sample

    @property
    def backend(self) -> Backend:
        return self.sample.backend

    @property
    def unit(self) -> float:
        """That of the kernel: what λ and eigenvalues inside are to be multiplied by."""
        return self.kernel.unit

    def at(self, X: Array) -> AtPoints:
        """A question about the function's values at the rows of X."""
        return question(self.sample, self.data, X)

    @cached_property
    def predictive(self) -> Predictive:
        """The distribution of new observations, from leave-one-out errors. O(nm²), or O(n³)."""
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

    def _shared_state(self) -> dict[str, Any]:
        """What every saved model has, but for what it predicts."""
        return {
            "settings": self.settings,
            "data": self.data,
            "kernel": self.kernel,
            "lam": self.ridge.lam,
            "noise": self.noise,
            "learned": self.learned,
            "varying": self.varying,
        }

    def _restore(self, state: dict[str, Any], ridge: Any, **values: Any) -> None:
        """Set what every model has, and further values, from what was saved."""
        known = state["predictive"]
        shared = ("settings", "data", "kernel", "noise", "learned", "varying")
        self.__dict__.update(
            {name: state[name] for name in shared},
            ridge=ridge,
            factor_of_widths=getattr(known, "factor", 1.0),
            saved_predictive=known,
            **values,
        )

    def __deepcopy__(self, memo: Any) -> Self:
        return self


def found_noise(
    task: Task,
    kernel: Kernel,
    left_out: Callable[[], LeftOut] | None,
    residual: Callable[[], tuple[Array, float]],
) -> tuple[Array, Predictive | None]:
    """σ², given or estimated, (q,) in units of y²; and the distribution it was taken from.

    With λ by leave-one-out it is ŝ²α, which does not collapse as df approaches n; otherwise
    RSS/(n − df).

    Parameters
    ----------
    left_out : gives every row predicted without itself, if that is where noise comes from.
    residual : gives the weighted RSS (q,) in the data's own units, and n − df.
    """
    settings, data = task.settings, task.data
    if settings.noise_variance is not None:
        given = np.asarray(settings.noise_variance, dtype=float)
        return np.broadcast_to(given, (len(data.scale),)).copy(), None
    warn_of_the_noise(data)
    if left_out is None:
        return estimated_noise(data, *residual()), None
    one = settings.fit_intercept
    found = distribution(left_out(), kernel, factor=task.widths, fit_intercept=one)
    return found.noise_variance, found


def with_varying_noise(
    fitted: Any, landmarks: Array | None, seed: int, refit: Callable[[Sample, Data, Varying], Any]
) -> Any:
    """The fit, or the one with rows weighted by the inverse of their noise, where that is asked for
    and where its own leave-one-out intervals gain by it too.

    ``landmarks`` are rows at which log g has its centers, random ones unless given.
    """
    if fitted.settings.noise == "constant":
        return fitted
    sample = fitted.sample
    scores = fitted.left_out.scores
    with sample.backend.alone():
        found = varying_noise(fitted.data, sample, scores, landmarks, seed=seed)
    if found is None:
        return fitted
    data = found.weighted(sample)
    again = refit(sample_of(sample.points, data.w), data, found)
    gain, error = gained(scores, again.left_out.scores)
    return again if gain > error else fitted
