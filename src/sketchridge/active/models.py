"""What a campaign has learnt, in memory: models by rounds, their scores and their history."""

from __future__ import annotations

import copy
import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone

from sketchridge import tuning
from sketchridge.active.pool import Pool, PoolSums, has_sums, pool_sums, scores_by_sums
from sketchridge.active.settings import Estimator
from sketchridge.active.store import Round, Store
from sketchridge.estimator import SketchedKernelRidge
from sketchridge.exact_estimator import ExactKernelRidge
from sketchridge.kernels import ScaledKernel, as_kernel

__all__ = ["LEAST", "Model", "Models", "metrics_of", "prepared"]

Array = np.ndarray
LEAST = 2  # labels for a first model
_LARGEST_SKETCH = 512  # rows of an automatic sketch
_THETAS = {"v2": 1.0, "vbar": 0.5}  # the share of V2's weights, for scores that are had from sums


@dataclass(frozen=True, eq=False)
class Model:
    """An estimator fitted to the first ``labels`` labels in so many rounds, and its scores.

    ``shown`` is a copy for others to look at; parameters set on it hold from the next fit on.
    ``sums`` are those behind the scores or, before there are any, those of an earlier model, from
    which they can be had.
    """

    estimator: Estimator
    shown: Estimator
    rounds: int
    labels: int
    sums: PoolSums | None = None
    scores: Array | None = None  # (p,), 0 at labeled rows

    def is_of(self, step: Round) -> bool:
        """Whether the model is that of a round."""
        return (self.rounds, self.labels) == (step.number + 1, step.labels)


class Models:
    """The model after the rounds in a store, and the one with labels that are in no round yet.

    Rounds and labels alone decide what a model is, so that every process has the same. Nothing is
    ever written to the store. Models are never changed; each takes the place of another in one
    assignment, once it is complete.
    """

    def __init__(self, store: Store, pool: Pool, estimator: Estimator, score: str) -> None:
        self._store = store
        self._pool = pool
        self._estimator = estimator  # not fitted; models have copies of it
        self._score = score
        self._settled: Model | None = None
        self._ahead: Model | None = None
        self._missing: dict[int, dict[str, Any]] = {}  # metrics of rounds that the store lacks

    def current(self) -> Model | None:
        """The model of all labels there are, or None while they are too few."""
        settled = self._after_the_rounds()
        labels = len(self._store.labels()[0])
        if labels < LEAST or (settled is not None and labels <= settled.labels):
            return settled
        step = Round(settled.rounds if settled is not None else 0, labels)
        if self._ahead is None or not self._ahead.is_of(step):
            self._ahead = None
            self._ahead = self._next(settled, step)
        return self._ahead

    def scored(self, model: Model) -> Model:
        """The model with its scores."""
        if model.scores is not None:
            return model
        rows = np.ones(len(self._pool), dtype=bool)
        rows[self._store.labels()[0][: model.labels]] = False
        scores, sums = self._scores(model, np.flatnonzero(rows))
        done = replace(model, scores=scores, sums=sums)
        if model is self._ahead:
            self._ahead = done
        elif model is self._settled:
            self._settled = done
        return done

    def settle(self, model: Model) -> None:
        """Take a model whose round is in the store for the one after its rounds."""
        self._settled = model
        self._ahead = None

    def history(self) -> list[dict[str, Any]]:
        """A row for each round, and one for labels that are in no round yet."""
        model = self.current()
        rounds = self._store.rounds()
        rows = [
            _row(step, {**self._missing.get(step.number, {}), **step.metrics}) for step in rounds
        ]
        if model is not None and model.rounds > len(rows):
            rows.append(_row(Round(model.rounds - 1, model.labels), metrics_of(model)))
        return rows

    def _after_the_rounds(self) -> Model | None:
        """The settled model, brought up to the rounds in the store one by one."""
        known = 0 if self._settled is None else self._settled.rounds
        steps = self._store.rounds(known)
        for step in steps:
            is_complete = "loo_error" in step.metrics
            if self._starts_afresh and is_complete and step is not steps[-1]:
                continue
            is_here = self._ahead is not None and self._ahead.is_of(step)
            model = self._ahead if is_here else self._next(self._settled, step)
            assert model is not None
            if not is_complete:
                self._missing[step.number] = metrics_of(model)
            self.settle(model)
        return self._settled

    @property
    def _starts_afresh(self) -> bool:
        """Whether a model depends on its labels alone, not on the rounds before."""
        return isinstance(self._estimator, ExactKernelRidge)

    def _next(self, before: Model | None, step: Round) -> Model:
        """The model of a round from the one before it."""
        if before is None or self._starts_afresh:
            known = 0
            estimator = copy.copy(self._estimator)
        else:
            known = before.labels
            estimator = copy.copy(before.estimator)
        if before is not None:
            estimator.set_params(**before.shown.get_params(deep=False))
        ids, Y = (part[: step.labels - known] for part in self._store.labels(known))
        y = Y[:, 0] if Y.shape[1] == 1 else Y
        with warnings.catch_warnings():
            if before is not None:
                warnings.simplefilter("ignore", UserWarning)  # the first round has said so
            estimator.partial_fit(self._pool[ids], y)
        sums = None if before is None else before.sums
        return Model(estimator, copy.copy(estimator), step.number + 1, step.labels, sums)

    def _scores(self, model: Model, rows: Array) -> tuple[Array, PoolSums | None]:
        """Scores at some rows of the pool, 0 elsewhere, and the sums behind them."""
        fitted = model.estimator.fitted_
        if self._score in _THETAS and has_sums(fitted):
            sums = pool_sums(self._pool, rows, fitted, model.sums)
            return scores_by_sums(self._pool, sums, fitted, _THETAS[self._score])[0], sums
        variance = getattr(fitted.ridge, self._score)
        unit = fitted.kernel.unit if self._score == "gp" else 1.0
        return self._pool.apply(lambda X: unit * variance(fitted.at(X)), rows), None


def prepared(estimator: Estimator, pool: Pool, seed: int) -> Estimator:
    """A copy whose fit is a function of the labels alone, of a kernel defined on all the pool.

    What would be learned from the first few labels is fixed: the Gaussian kernel for "auto", with
    the median distance in the pool as bandwidth.
    """
    estimator = clone(estimator)
    if isinstance(estimator.kernel, str) and estimator.kernel == "auto":
        estimator.kernel = "gaussian"
    kernel = as_kernel(estimator.kernel)
    for rows in pool.slices():
        kernel.check_domain(pool[rows])
    open_bandwidth = isinstance(estimator.bandwidth, str) and estimator.bandwidth != "gcv"
    if open_bandwidth and isinstance(kernel, ScaledKernel) and kernel.bandwidth is None:
        estimator.bandwidth = tuning.median_bandwidth(pool, kernel)  # type: ignore[arg-type]
    if isinstance(estimator, SketchedKernelRidge):
        estimator.sketch_limit = _LARGEST_SKETCH
        if estimator.solver == "auto":
            estimator.solver = "sketch"
        if estimator.random_state is None:
            estimator.random_state = seed
    return estimator


def metrics_of(model: Model) -> dict[str, Any]:
    """What is measured of a model without its scores."""
    estimator = model.estimator
    metrics = {"lambda": estimator.lambda_, "loo_error": estimator.loo_error_}
    if isinstance(estimator, SketchedKernelRidge):
        metrics["sketch_size"] = estimator.sketch_size_
    return metrics


def _row(step: Round, metrics: dict[str, Any]) -> dict[str, Any]:
    return {"round": step.number + 1, "labels": step.labels, **metrics}
