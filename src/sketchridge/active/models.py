"""What a campaign has learned, in memory: models by rounds, their scores and their history."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone

from sketchridge import tuning
from sketchridge.active.pool import Pool
from sketchridge.active.relearn import (
    better_kernel,
    is_due,
    is_due_soon,
    learns,
    with_kernel,
    with_penalty,
)
from sketchridge.active.settings import Estimator
from sketchridge.active.store import Round, Store
from sketchridge.active.sums import PoolSums, has_sums, pool_sums, scores_by_sums
from sketchridge.estimator import SketchedKernelRidge
from sketchridge.exact_estimator import ExactKernelRidge
from sketchridge.kernels import DistanceKernel, Kernel, as_kernel

__all__ = ["LEAST", "Model", "Models", "Templates", "first_kernel", "metrics_of", "prepared"]

Array = np.ndarray
LEAST = 2  # labels for a first model
_LARGEST_SKETCH = 512  # rows of an automatic sketch
_ROWS = 2**16  # points of a pool looked at at a time
_THETAS = {"v2": 1.0, "vbar": 0.5}  # the share of V2's weights, for scores that are had from sums


@dataclass(frozen=True, eq=False)
class Templates:
    """Estimators that are not fitted, of which models have copies.

    ``scoring`` is the one by which points are chosen, with a small sketch and a penalty that it can
    follow; ``shown`` the one that predicts, None where it is the same; ``learning`` the one that
    learns a kernel, None where that is given.
    """

    scoring: Estimator
    shown: Estimator | None = None
    learning: Estimator | None = None


@dataclass(frozen=True, eq=False)
class Model:
    """An estimator fitted to the first ``labels`` labels in so many rounds, and its scores.

    ``shown`` is for others to look at; parameters set on it hold from the next fit on.
    ``sums`` are those behind the scores or, before there are any, those of an earlier model, from
    which they can be had.
    """

    estimator: Estimator
    step: Round  # with the kernel that was learned in it, if one was
    changed: Mapping[str, Any] = field(default_factory=dict)  # parameters set since the start
    shown: Estimator | None = None  # once someone has looked
    given: Mapping[str, Any] = field(default_factory=dict)  # its parameters as it was shown
    sums: PoolSums | None = None
    scores: Array | None = None  # (p,), 0 at labeled rows

    @property
    def rounds(self) -> int:
        return self.step.number + 1

    @property
    def labels(self) -> int:
        return self.step.labels

    def is_of(self, step: Round) -> bool:
        """Whether the model is that of a round in the store."""
        return (self.step.number, self.labels, self.step.edition, self.step.kernel) == (
            step.number,
            step.labels,
            step.edition,
            step.kernel,
        )

    def summary(self, rows: Array) -> dict[str, float]:
        """The scores of some points in two numbers, where there are any."""
        if self.scores is None or not len(rows):
            return {}
        scores = self.scores[rows]
        return {"largest_score": float(scores.max()), "mean_score": float(scores.mean())}

    def changes(self) -> dict[str, Any]:
        """Parameters that users have set, on this model or on those before."""
        if self.shown is None:
            return dict(self.changed)
        now = self.shown.get_params(deep=False)
        new = {name: value for name, value in now.items() if value is not self.given[name]}
        return {**self.changed, **new}


class Models:
    """The model after the rounds in a store, and the one with labels that are in no round yet.

    Rounds and labels alone decide what a model is, so that every process has the same. A round
    starts afresh where labels were corrected before it or where a kernel was learned in it, which
    is then on record and never learned again. Nothing is ever written to the store. Models are
    never changed; each takes the place of another in one assignment, once it is complete.
    """

    def __init__(
        self, store: Store, pool: Pool, templates: Templates, score: str, *, aims: bool = False
    ) -> None:
        """``aims`` says that there is a goal that the first labels are to serve already: kernels
        are learned early and often, and α with them."""
        self._store = store
        self._pool = pool
        self._templates = templates
        self._score = score
        self._aims = aims
        self._is_due = is_due_soon if aims else is_due
        self._given_kernel = with_penalty if aims else with_kernel
        self._steps: list[Round] = []
        self._settled: Model | None = None
        self._ahead: Model | None = None
        self._missing: dict[int, dict[str, Any]] = {}  # metrics of rounds that the store lacks

    @property
    def template(self) -> Estimator:
        """The estimator, not fitted, by which points are chosen."""
        return self._templates.scoring

    def current(self) -> Model | None:
        """The model of all labels there are, or None while they are too few."""
        edition = self._store.edition()
        settled = self._after_the_rounds(edition)
        labels = self._store.count()
        if labels < LEAST:
            return None
        if settled is not None and labels <= settled.labels:
            return settled
        step = Round(len(self._steps), labels, edition=edition)
        ahead = self._ahead
        if ahead is None or not ahead.is_of(replace(step, kernel=ahead.step.kernel)):
            self._ahead = None
            self._ahead = self._next(settled, self._learned(step))
        return self._ahead

    def scored(self, model: Model) -> Model:
        """The model with its scores."""
        if model.scores is not None and len(model.scores) == len(self._pool):
            return model
        rows = np.ones(len(self._pool), dtype=bool)
        rows[self._store.labels()[0][: model.labels]] = False
        scores, sums = self._scores(model, np.flatnonzero(rows))
        return self._put(model, replace(model, scores=scores, sums=sums))

    def shown(self, model: Model) -> Estimator:
        """The estimator that predicts, for others to look at."""
        if model.shown is not None:
            return model.shown
        template = self._templates.shown
        if template is None:
            shown = copy.copy(model.estimator)
        else:
            shown = self._given_kernel(template, self._kernel(model.step))
            shown.set_params(**model.changed)
            shown.fit(*self._data(0, model.labels))
        given = shown.get_params(deep=False)
        self._put(model, replace(model, shown=shown, given=given))
        return shown

    def _put(self, old: Model, new: Model) -> Model:
        """Let a model take the place of the same one that knew less."""
        if old is self._ahead:
            self._ahead = new
        elif old is self._settled:
            self._settled = new
        return new

    def settle(self, model: Model) -> None:
        """Take a model whose round is in the store for the one after its rounds."""
        self._settled = model
        self._ahead = None

    def history(self) -> list[dict[str, Any]]:
        """A row for each round, and one for labels that are in no round yet."""
        model = self.current()
        rows = [
            _row(step, {**self._missing.get(step.number, {}), **step.metrics})
            for step in self._store.rounds()
        ]
        if model is not None and model.rounds > len(rows):
            rows.append(_row(model.step, metrics_of(model)))
        return rows

    def _after_the_rounds(self, edition: int) -> Model | None:
        """The settled model, brought up to the rounds in the store one by one, from the last that
        started afresh."""
        self._forget_lost_rounds()
        self._steps = [*self._steps, *self._store.rounds(len(self._steps))]
        steps = [step for step in self._steps if step.edition == edition]
        if self._settled is not None and self._settled.step.edition != edition:
            self._settled = None
        fresh = [i for i, step in enumerate(steps) if step.kernel is not None]
        steps = steps[fresh[-1] if fresh else 0 :]
        known = -1 if self._settled is None else self._settled.step.number
        for step in steps:
            if step.number <= known:
                continue
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

    def _forget_lost_rounds(self) -> None:
        """Begin again where the last round is not in the store: an older copy was put back."""
        last = self._steps[-1] if self._steps else None
        last = last if self._settled is None else self._settled.step
        if last is None:
            return
        found = self._store.rounds(last.number)
        if not found or replace(found[0], metrics=last.metrics) != last:
            self._steps, self._missing = [], {}
            self._settled = self._ahead = None

    @property
    def _starts_afresh(self) -> bool:
        """Whether a model depends on its labels alone, not on the rounds before."""
        return isinstance(self._templates.scoring, ExactKernelRidge)

    def _learned(self, step: Round) -> Round:
        """A round that begins now, with a kernel where it is time to learn one."""
        learning = self._templates.learning
        before = max((s.labels for s in self._steps if s.kernel is not None), default=0)
        if learning is None or not self._is_due(step.labels, before):
            return step
        X, y = self._data(0, step.labels)
        # what a goal has found since may look unlike all that was known
        earlier = None if self._aims else self._kernel(step)
        return replace(step, kernel=better_kernel(learning, X, y, earlier))

    def _kernel(self, step: Round) -> Mapping[str, Any] | None:
        """The kernel of a round, learned in it or before."""
        if step.kernel is not None:
            return step.kernel
        earlier = [s.kernel for s in self._steps if s.number < step.number and s.kernel is not None]
        return earlier[-1] if earlier else None

    def _data(self, start: int, stop: int) -> tuple[Array, Array]:
        """Points and labels, from the ``start``-th told on."""
        ids, Y = (part[: stop - start] for part in self._store.labels(start))
        return self._pool[ids], Y[:, 0] if Y.shape[1] == 1 else Y

    def _next(self, before: Model | None, step: Round) -> Model:
        """The model of a round from the one before it."""
        is_fresh = before is None or step.kernel is not None or self._starts_afresh
        changed = {} if before is None else before.changes()
        if before is None or is_fresh:
            known = 0
            estimator = self._given_kernel(self._templates.scoring, self._kernel(step))
        else:
            known = before.labels
            estimator = copy.copy(before.estimator)
        estimator.set_params(**changed)
        with warnings.catch_warnings():
            if before is not None:
                warnings.simplefilter("ignore", UserWarning)  # the first round has said so
            estimator.partial_fit(*self._data(known, step.labels))
        sums = None if before is None or is_fresh else before.sums
        return Model(estimator, step, changed, sums=sums)

    def _scores(self, model: Model, rows: Array) -> tuple[Array, PoolSums | None]:
        """Scores at some rows of the pool, 0 elsewhere, and the sums behind them."""
        fitted = model.estimator.fitted_
        if self._score in _THETAS and has_sums(fitted) and not self._pool.is_there:
            sums = pool_sums(self._pool, rows, fitted, model.sums)
            return scores_by_sums(self._pool, sums, fitted, _THETAS[self._score])[0], sums
        score = partial(_score, self._pool.goes_to(fitted), self._score)
        return self._pool.apply(score, rows), None


def _score(fitted: Any, kind: str, X: Array) -> Array:
    """A variance for unit noise, or gp in units of the kernel: (t,)."""
    unit = fitted.kernel.unit if kind == "gp" else 1.0
    return unit * getattr(fitted.ridge, kind)(fitted.at(X))


def prepared(estimator: Estimator, pool: Pool, seed: int) -> Templates:
    """Copies whose fits are functions of the labels alone, of a kernel defined on all the pool.

    What would be learned from the first few labels is fixed until there are enough: the Gaussian
    kernel for "auto", with the median distance in the pool as bandwidth.
    """
    estimator = clone(estimator)
    if isinstance(estimator, SketchedKernelRidge) and estimator.random_state is None:
        estimator.random_state = seed
    learning = clone(estimator) if learns(estimator) else None
    if isinstance(estimator.kernel, str) and estimator.kernel == "auto":
        estimator.kernel = "gaussian"
    kernel = as_kernel(estimator.kernel)
    pool.check(kernel.check_domain)
    open_bandwidth = isinstance(estimator.bandwidth, str) and estimator.bandwidth != "gcv"
    if open_bandwidth and isinstance(kernel, DistanceKernel) and kernel.bandwidth is None:
        estimator.bandwidth = _median(pool, kernel)
    if not isinstance(estimator, SketchedKernelRidge):
        return Templates(estimator, None, learning)
    shown = clone(estimator) if _is_apart(estimator) else None
    estimator.sketch_limit = _LARGEST_SKETCH
    if learning is not None:
        learning.sketch_limit = _LARGEST_SKETCH
    if estimator.solver == "auto":
        estimator.solver = "sketch"
    return Templates(estimator, shown, learning)


def _is_apart(estimator: SketchedKernelRidge) -> bool:
    """Whether a model that predicts is another than one whose sketch has a limit: its penalty then
    is that of the exact problem, which a small sketch cannot follow."""
    automatic = isinstance(estimator.sketch_size, str)
    by_loo = isinstance(estimator.alpha, str) and estimator.alpha == "loo"
    return by_loo and (automatic or estimator.solver != "sketch")


def metrics_of(model: Model) -> dict[str, Any]:
    """What is measured of a model without its scores."""
    estimator = model.estimator
    metrics = {"lambda": estimator.lambda_, "loo_error": estimator.loo_error_}
    if isinstance(estimator, SketchedKernelRidge):
        metrics["sketch_size"] = estimator.sketch_size_
    return metrics


def _row(step: Round, metrics: dict[str, Any]) -> dict[str, Any]:
    learned = {} if step.kernel is None else {"learned": step.kernel["kernel"] or "bandwidth"}
    return {"round": step.number + 1, "labels": step.labels, **metrics, **learned}


def first_kernel(estimator: Estimator, pool: Pool) -> Kernel:
    """The kernel of an estimator before it has seen a label, with the pool's median distance where
    its bandwidth is open."""
    kernel = as_kernel(estimator.kernel)
    if not isinstance(kernel, DistanceKernel) or kernel.bandwidth is not None:
        return kernel
    given = estimator.bandwidth
    if isinstance(given, str):
        given = _median(pool, kernel)
    return kernel.with_bandwidth(given)


def _median(pool: Any, kernel: DistanceKernel) -> float:
    _check_differ(pool)
    try:
        return tuning.median_bandwidth(pool, kernel)
    except ValueError as error:
        if "identical" not in str(error):
            raise
        raise ValueError(
            "Nearly all candidates have equal features: remove those that repeat, so that others "
            "are seen among them."
        ) from None


def _check_differ(pool: Any) -> None:
    """ValueError for a pool whose points are all the same, of which no distance can be taken."""
    if len(pool) > 1 and (getattr(pool, "is_there", False) or _differ(pool)):
        return
    are = "There is only one candidate" if len(pool) == 1 else "All candidates have equal features"
    raise ValueError(
        f"{are}, so that none could be told from another: give several whose features differ (in a "
        "table a column of numbers, or a category)."
    )


def _differ(pool: Any) -> bool:
    first = np.asarray(pool[slice(0, 1)])
    starts = range(0, len(pool), _ROWS)
    return any((np.asarray(pool[slice(i, i + _ROWS)]) != first).any() for i in starts)
