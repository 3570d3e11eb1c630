"""Active learning by ask and tell: the paper's Algorithm 1, with nothing lost between calls."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from sketchridge.active.acquire import ACQUISITIONS
from sketchridge.active.checks import check_count, check_one_of, checked_ids, checked_targets
from sketchridge.active.choose import Situation, choose
from sketchridge.active.gain import gains
from sketchridge.active.memory import MemoryStore
from sketchridge.active.models import LEAST, Model, Models, first_kernel, metrics_of, prepared
from sketchridge.active.parts import grown, part_of, stored_pool
from sketchridge.active.pool import Pool
from sketchridge.active.record import Record
from sketchridge.active.settings import ESTIMATORS, Estimator, estimator_from, estimator_settings
from sketchridge.active.stopping import as_stop_rules, stop_rules_from, to_settings
from sketchridge.active.store import Store
from sketchridge.estimator import SketchedKernelRidge
from sketchridge.exact_estimator import ExactKernelRidge

__all__ = ["ActiveLearner"]

Array = np.ndarray
_SCORES = {ExactKernelRidge: ("v1", "gp"), SketchedKernelRidge: ("v2", "v3", "vbar", "gp")}
_FIRST = ("spread", "uniform")


class _Overtaken(Exception):
    """Another process has handed out a point, or begun a round, in the meantime."""


class ActiveLearner(Record):
    """Which points of a pool to measure next. It asks and is told, and owns no loop.

    Rounds, in which the model learns the labels told so far, begin when points are asked for. All
    else only looks: what it needs is computed and never kept in the store.

    Parameters
    ----------
    estimator : an ExactKernelRidge or a SketchedKernelRidge; a copy is fitted. A kernel or
        bandwidth that is to be learned is so at 50, 100, 200, ... labels; before that it is the
        Gaussian kernel with the median distance in the pool. λ is chosen anew each round. Points
        are chosen by a model whose automatic sketch grows up to 512 rows, with a penalty that it
        can follow; `estimator_` predicts without such limits.
    pool : (p, d) array of candidates, mapped from a file if need be; ids are its row numbers.
    batch_size : how many points `ask` gives.
    acquisition : "weighted" (drawn with probability proportional to the score), "top" (the largest
        scores) or "uniform".
    score : "v1" or "gp" for the exact estimator; "v2", "vbar", "v3" or "gp" for the sketched.
        "auto" is the first. All but gp are for noise variance 1, gp is in units of the kernel.
    first : how points are chosen before there is a model: "spread" over the pool, or "uniform".
    stop : a number of labels, a rule of `sketchridge.active.stopping` or several; `should_stop`
        says when one applies.
    store : an SQLAlchemy address such as "sqlite:///campaign.db", where every ask and label is
        kept, or a store of `sketchridge.active.store`; None for memory only.
    random_state : seed of every draw.

    Attributes
    ----------
    estimator_ : fitted to all labels. labeled_ids_, labels_, pending_ids_, failed_ids_, open_ids_,
    draws_, changes_, failures_.
    history_ : a row for each round. stop_reason_ : why to stop. pool_, settings_.

    Examples
    --------
    >>> X = np.linspace(0, 1, 500)[:, None]
    >>> learner = ActiveLearner(SketchedKernelRidge(), X, batch_size=20, stop=60, random_state=0)
    >>> while not learner.should_stop():
    ...     ids = learner.ask()
    ...     learner.tell(ids, np.sin(6 * X[ids, 0]))
    >>> learner.stop_reason_
    '60 labels of a budget of 60'
    >>> learner.estimator_.predict([[0.5]]).round(2)
    array([0.14])
    """

    def __init__(
        self,
        estimator: Estimator,
        pool: Any,
        *,
        batch_size: int,
        acquisition: str = "weighted",
        score: str = "auto",
        first: str = "spread",
        stop: Any = None,
        store: str | Store | None = None,
        random_state: Any = None,
    ) -> None:
        if type(estimator) not in _SCORES:
            names = ", ".join(ESTIMATORS)
            raise TypeError(f"ActiveLearner needs one of {names}, got {estimator!r}.")
        score = _SCORES[type(estimator)][0] if score == "auto" else score
        check_count("batch_size", batch_size)
        points = Pool(pool)
        settings: dict[str, Any] = {
            "batch_size": int(batch_size),
            "acquisition": acquisition,
            "score": score,
            "first": first,
            "stop": to_settings(as_stop_rules(stop)),
            "seed": int(check_random_state(random_state).randint(2**31 - 1)),
            "shape": list(points.shape),
            "fingerprint": points.fingerprints[0],
        }
        if store is None:
            record: Store = MemoryStore()
        else:
            record = store if isinstance(store, Store) else _sql_store()(store)
            settings |= estimator_settings(estimator)
        self._start(record, settings, estimator, points)
        record.begin(settings, part_of(points, 0))

    @classmethod
    def resume(cls, store: str | Store, pool: Any = None) -> ActiveLearner:
        """Continue a stored campaign where it was left, by whichever process.

        Parameters
        ----------
        store : its address.
        pool : the same pool again, where it was too large to be kept in the store; with all that
            was added to it.
        """
        kept = store if isinstance(store, Store) else _sql_store().open(store)
        settings = kept.settings()
        learner = cls.__new__(cls)
        points, added = stored_pool(kept, pool)
        learner._start(kept, settings, estimator_from(settings), points)
        for part in added:
            points.append(part)
        return learner

    def _start(
        self, store: Store, settings: dict[str, Any], estimator: Estimator, pool: Pool
    ) -> None:
        kind = type(estimator)
        check_one_of("score", settings["score"], _SCORES[kind], f" for {kind.__name__}")
        check_one_of("acquisition", settings["acquisition"], ACQUISITIONS)
        check_one_of("choice of first points", settings.get("first", "uniform"), _FIRST)
        self._store = store
        self._settings = settings
        self._pool = pool
        self._stop = stop_rules_from(settings["stop"])
        templates = prepared(estimator, pool, settings["seed"])
        self._first_kernel = first_kernel(templates.scoring, pool)
        self._models = Models(store, pool, templates, settings["score"])
        self.stop_reason_ = ""

    # Asking and telling

    def ask(
        self, n: int | None = None, *, return_probability: bool = False
    ) -> Array | tuple[Array, Array]:
        """Ids of points to measure next; they are pending until told, released or failed.

        Where labels have been told or corrected since the last time, a round begins.

        Parameters
        ----------
        n : how many, `batch_size` unless given; fewer where the pool runs out.
        return_probability : also return score/Σ score of each at the draw.
        """
        n = self._checked_number(n)
        while True:
            model = self._drawing_model()
            rows = self.open_ids_
            ids, probabilities = self._choice(model, rows, n)
            if self._handed_out(model, rows, ids, probabilities):
                break
        if model is not None:
            self._models.settle(model)
        return (ids, probabilities) if return_probability else ids

    def tell(self, ids: Any, y: Any, *, names: Any = (), by: str = "") -> None:
        """Labels y (t,) or (t, q) of rows of the pool, asked for or not.

        They are kept when this returns, all or none. ``names`` of the points and ``by`` whom they
        were measured go on record.
        """
        rows, Y = self._checked_labels(ids, y)
        if len(rows):
            self._store.tell(rows, Y, names=[str(name) for name in names], by=by)

    def amend(self, ids: Any, y: Any, *, by: str = "", note: str = "") -> None:
        """Other labels for points that have one: all or none.

        The old labels stay on record, in `changes_`, with who corrected them, when and why. The
        model is then fitted afresh.
        """
        rows, Y = self._checked_labels(ids, y)
        self._store.amend(rows, Y, by=by, note=note)

    def retract(self, ids: Any, *, by: str = "", note: str = "") -> None:
        """Take labels back that are not of these points; they stay on record, in `changes_`.

        Points that had been asked for are pending again, others can be asked for.
        """
        self._store.retract(self._checked_ids(ids), by=by, note=note)

    def fail(self, ids: Any, *, by: str = "", note: str = "") -> None:
        """Points that cannot be measured: they are never asked for again, unless released."""
        self._store.fail(self._checked_ids(ids), by=by, note=note)

    def release(self, ids: Any) -> None:
        """Points that will not be measured now, or that failed: they can be asked for again."""
        self._store.release(self._checked_ids(ids))

    def add(self, X: Any) -> Array:
        """Further candidates: their ids, which follow those there are."""
        new = Pool(X)
        with self._store.transaction():
            pool = self._current_pool()
            first = len(pool)
            pool.check_width(new)
            self._first_kernel.check_domain(new[slice(None)])
            self._store.add(part_of(new, 0))
        pool.append(new.part(0))
        return np.arange(first, len(pool))

    # Looking

    def should_stop(self) -> bool:
        """Whether a rule says to stop, or nothing is left to measure; `stop_reason_` then says
        why."""
        labels = len(self.labeled_ids_)
        failed = len(self.failed_ids_)
        finished = labels + failed == len(self._current_pool())
        history = self.history_ if any(rule.needs_rounds for rule in self._stop) else []
        wanted = any(rule.needs_scores for rule in self._stop) and not finished
        if wanted and history and "mean_score" not in history[-1]:
            model = self._existing_model()
            history[-1] |= self._models.scored(model).summary(self.open_ids_)
        every = f"every point of the pool is labeled{' or failed' if failed else ''}"
        reasons = [every] if finished else []
        reasons += [reason for rule in self._stop if (reason := rule.reason(labels, history))]
        self.stop_reason_ = "; ".join(reasons)
        return bool(reasons)

    def scores(self) -> Array:
        """The score of every unlabeled row of the pool, ones where there is no model yet, and 0 at
        labeled rows: (p,)."""
        pool = self._current_pool()
        model = self._models.current()
        if model is None:
            return np.ones(len(pool))
        return np.array(self._models.scored(model).scores)

    def expected_gain(self, n: int | None = None, *, sample: int = 1000) -> tuple[float, float]:
        """By what share the mean posterior variance of the pool falls with the next n labels, and
        with n drawn uniformly.

        Variances do not depend on the labels' values, so this is known before they are measured.
        O(n_labels·m²).

        Parameters
        ----------
        n : how many, `batch_size` unless given.
        sample : the number of points of the pool over which the mean is taken.
        """
        estimator = self._existing_model().estimator
        ids = self.preview(n)
        pool = self._current_pool()
        rng = np.random.default_rng([self._settings["seed"], len(self.history_)])
        X = pool[np.sort(rng.choice(len(pool), size=min(sample, len(pool)), replace=False))]
        others = rng.choice(self.open_ids_, size=len(ids), replace=False)
        return gains(estimator, X, pool[ids], pool[others])

    def preview(self, n: int | None = None) -> Array:
        """The ids that `ask` would give now, without handing them out."""
        n = self._checked_number(n)
        return self._choice(self._drawing_model(), self.open_ids_, n)[0]

    @property
    def estimator_(self) -> Estimator:
        """The estimator, fitted to all labels there are.

        Parameters that are set on it hold from the next fit on, in this process; to fit it to
        other data changes nothing in the campaign.
        """
        return self._models.shown(self._existing_model())

    @property
    def history_(self) -> list[dict[str, Any]]:
        """A row for each round: labels, λ, sketch size and mean squared leave-one-out error of the
        model that chooses, the kernel where one was learned and, where points were drawn by them,
        the scores.

        Labels that are in no round yet are in a last row, as if a round began now.
        """
        return self._models.history()

    # How

    def _current_pool(self) -> Pool:
        return grown(self._pool, self._store)

    def _existing_model(self) -> Model:
        self._current_pool()
        model = self._models.current()
        if model is None:
            raise ValueError(
                f"There is no model before {LEAST} labels are told; there are "
                f"{len(self.labeled_ids_)}."
            )
        return model

    def _drawing_model(self) -> Model | None:
        """The model by which points are drawn, with its scores where they matter."""
        self._current_pool()
        model = self._models.current()
        if model is None or not self._draws_by_score:
            return model
        return self._models.scored(model)

    @property
    def _draws_by_score(self) -> bool:
        return self._settings["acquisition"] != "uniform"

    def _choice(self, model: Model | None, rows: Array, n: int) -> tuple[Array, Array]:
        """Ids among these rows, and their probabilities."""
        if not len(rows):
            raise ValueError(
                f"All {len(self._pool)} points of the pool are labeled, pending "
                f"({len(self.pending_ids_)} are) or failed: tell or release some, add candidates, "
                "or stop."
            )
        number = 0 if model is None else model.rounds
        released = [d.id for d in self._store.draws() if d.released and d.round == number]
        situation = Situation(
            pool=self._pool,
            rows=rows,
            known=np.concatenate([self.labeled_ids_, self.pending_ids_]),
            released=np.array(released, dtype=np.int64),
            model=model,
            kernel=self._first_kernel,
            acquisition=self._settings["acquisition"],
            first=self._settings.get("first", "uniform"),  # as before there was a choice
            seed=self._settings["seed"],
            round=number,
        )
        return choose(situation, n)

    def _handed_out(
        self, model: Model | None, rows: Array, ids: Array, probabilities: Array
    ) -> bool:
        """Keep what was drawn, and the round with which it was if that is new: both or neither.

        False where another process came first.
        """
        number = 0 if model is None else model.rounds
        metrics = {} if model is None else metrics_of(model)
        if model is not None and self._draws_by_score:
            metrics |= model.summary(rows)
        try:
            with self._store.transaction():
                if model is not None:
                    self._keep_round(model, metrics)
                if not self._store.claim(ids, probabilities, number):
                    raise _Overtaken
        except _Overtaken:
            return False
        return True

    def _keep_round(self, model: Model, metrics: dict[str, Any]) -> None:
        """The round of a model with its metrics, as far as the store has none of them."""
        number = model.step.number
        self._store.open_round(LEAST, model.labels, model.step.kernel)
        kept = self._store.rounds(number)
        if not kept or not model.is_of(kept[0]):
            raise _Overtaken
        finite = {name: value for name, value in metrics.items() if np.isfinite(value)}
        new = {name: value for name, value in finite.items() if name not in kept[0].metrics}
        if new:
            self._store.record(number, new)

    def _checked_ids(self, ids: Any) -> Array:
        return checked_ids(ids, len(self._current_pool()))

    def _checked_labels(self, ids: Any, y: Any) -> tuple[Array, Array]:
        rows = self._checked_ids(ids)
        Y = checked_targets(y)
        if len(rows) != len(Y):
            raise ValueError(f"{len(rows)} ids came with {len(Y)} labels: give one for each.")
        return rows, Y

    def _checked_number(self, n: Any) -> int:
        if n is not None:
            check_count("n", n)
        return int(self._settings["batch_size"] if n is None else n)


def _sql_store() -> Any:
    from sketchridge.active.sql import SQLStore

    return SQLStore
