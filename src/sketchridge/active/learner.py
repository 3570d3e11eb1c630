"""Active learning by ask and tell: the paper's Algorithm 1, with nothing lost between calls."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from sketchridge.active.acquire import ACQUISITIONS, exponential_keys
from sketchridge.active.checks import check_count, checked_ids, checked_targets
from sketchridge.active.gain import mean_posterior_variance, with_points
from sketchridge.active.models import LEAST, Model, Models, metrics_of, prepared
from sketchridge.active.pool import Pool
from sketchridge.active.settings import ESTIMATORS, Estimator, estimator_from, estimator_settings
from sketchridge.active.stopping import as_stop_rules, stop_rules_from, to_settings
from sketchridge.active.store import Draw, MemoryStore, Store
from sketchridge.estimator import SketchedKernelRidge
from sketchridge.exact_estimator import ExactKernelRidge

__all__ = ["ActiveLearner"]

Array = np.ndarray
_KEPT = 2**24  # bytes of a pool up to which a store keeps a copy
_SCORES = {ExactKernelRidge: ("v1", "gp"), SketchedKernelRidge: ("v2", "v3", "vbar", "gp")}


class _Overtaken(Exception):
    """Another process has handed out a point, or begun a round, in the meantime."""


class ActiveLearner:
    """Which points of a pool to measure next. It asks and is told, and owns no loop.

    Rounds, in which the model learns the labels told so far, begin when points are asked for. All
    else only looks: what it needs is computed and never kept in the store.

    Parameters
    ----------
    estimator : an ExactKernelRidge or a SketchedKernelRidge; a copy is fitted. bandwidth="median"
        is that of the pool, λ is chosen anew each round, and an automatic sketch grows up to 512
        rows.
    pool : (p, d) array of candidates, mapped from a file if need be; ids are its row numbers.
    batch_size : how many points `ask` gives.
    acquisition : "weighted" (drawn with probability proportional to the score), "top" (the largest
        scores) or "uniform".
    score : "v1" or "gp" for the exact estimator; "v2", "vbar", "v3" or "gp" for the sketched.
        "auto" is the first. All but gp are for noise variance 1, gp is in units of the kernel.
    stop : a number of labels, a rule of `sketchridge.active.stopping` or several; `should_stop`
        says when one applies.
    store : an SQLAlchemy address such as "sqlite:///campaign.db", where every ask and label is
        kept, or a store of `sketchridge.active.store`; None for memory only.
    random_state : seed of every draw.

    Attributes
    ----------
    estimator_ : fitted to all labels. labeled_ids_, labels_, pending_ids_, open_ids_, draws_.
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
        stop: Any = None,
        store: str | Store | None = None,
        random_state: Any = None,
    ) -> None:
        if type(estimator) not in _SCORES:
            names = ", ".join(ESTIMATORS)
            raise TypeError(f"ActiveLearner needs one of {names}, got {estimator!r}.")
        scores = _SCORES[type(estimator)]
        if score not in ("auto", *scores):
            raise ValueError(
                f"Unknown score {score!r} for {type(estimator).__name__}: give 'auto', "
                f"{', '.join(map(repr, scores))}."
            )
        if acquisition not in ACQUISITIONS:
            raise ValueError(
                f"Unknown acquisition {acquisition!r}: give one of "
                f"{', '.join(map(repr, ACQUISITIONS))}."
            )
        check_count("batch_size", batch_size)
        points = Pool(pool)
        settings: dict[str, Any] = {
            "batch_size": int(batch_size),
            "acquisition": acquisition,
            "score": scores[0] if score == "auto" else score,
            "stop": to_settings(as_stop_rules(stop)),
            "seed": int(check_random_state(random_state).randint(2**31 - 1)),
            "shape": list(points.array.shape),
            "fingerprint": points.fingerprint,
        }
        template = prepared(estimator, points, settings["seed"])
        if store is None:
            record: Store = MemoryStore()
        else:
            record = store if isinstance(store, Store) else _sql_store()(store)
            settings |= estimator_settings(estimator)
        record.begin(settings, points.array if points.array.nbytes <= _KEPT else None)
        self._start(record, settings, template, points)

    @classmethod
    def resume(cls, store: str, pool: Any = None) -> ActiveLearner:
        """Continue a stored campaign where it was left, by whichever process.

        Parameters
        ----------
        store : its address.
        pool : the same pool again, where it was too large to be kept in the store.
        """
        kept = _sql_store().open(store)
        settings = kept.settings()
        data = kept.pool() if pool is None else pool
        if data is None:
            raise ValueError(
                f"The pool of this campaign, {settings['shape'][0]} rows, was too large to be kept "
                "in the store: give it again as pool=."
            )
        points = Pool(data)
        if points.fingerprint != settings["fingerprint"]:
            raise ValueError(
                f"This is not the pool of the campaign: it has the shape {points.array.shape}, the "
                f"campaign's {tuple(settings['shape'])}, or other values. Ids are row numbers, so "
                "the rows and their order must be the same."
            )
        learner = cls.__new__(cls)
        template = prepared(estimator_from(settings), points, settings["seed"])
        learner._start(kept, settings, template, points)
        return learner

    def _start(
        self, store: Store, settings: dict[str, Any], estimator: Estimator, pool: Pool
    ) -> None:
        self._store = store
        self._settings = settings
        self._pool = pool
        self._stop = stop_rules_from(settings["stop"])
        self._models = Models(store, pool, estimator, settings["score"])
        self.stop_reason_ = ""

    # Asking and telling

    def ask(
        self, n: int | None = None, *, return_probability: bool = False
    ) -> Array | tuple[Array, Array]:
        """Ids of points to measure next; they are pending until told or released.

        Where labels have been told since the last time, a round begins.

        Parameters
        ----------
        n : how many, `batch_size` unless given; fewer where the pool runs out.
        return_probability : also return score/Σ score of each at the draw.
        """
        n = self._checked_number(n)
        while True:
            model = self._drawing_model()
            rows = self.open_ids_
            ids, probabilities = self._draw(model, rows, n)
            if self._handed_out(model, rows, ids, probabilities):
                break
        if model is not None:
            self._models.settle(model)
        return (ids, probabilities) if return_probability else ids

    def tell(self, ids: Any, y: Any) -> None:
        """Labels y (t,) or (t, q) of rows of the pool, asked for or not.

        They are kept when this returns, all or none.
        """
        ids = checked_ids(ids, len(self._pool))
        Y = checked_targets(y)
        if len(ids) != len(Y):
            raise ValueError(
                f"{len(ids)} ids came with {len(Y)} labels; there must be one for each."
            )
        if len(ids):
            self._store.tell(ids, Y)

    def release(self, ids: Any) -> None:
        """Points that will not be measured after all: they can be asked for again."""
        self._store.release(checked_ids(ids, len(self._pool)))

    # Looking

    def should_stop(self) -> bool:
        """Whether a rule says to stop, or every point is labeled; `stop_reason_` then says why."""
        labels = len(self.labeled_ids_)
        history = self.history_
        finished = labels == len(self._pool)
        wanted = any(rule.needs_scores for rule in self._stop) and not finished
        model = self._models.current()
        if wanted and model is not None and "mean_score" not in history[-1]:
            history[-1] |= _summary(self._models.scored(model), self.open_ids_)
        reasons = ["every point of the pool is labeled"] if finished else []
        reasons += [reason for rule in self._stop if (reason := rule.reason(labels, history))]
        self.stop_reason_ = "; ".join(reasons)
        return bool(reasons)

    def scores(self) -> Array:
        """The score of every unlabeled row of the pool, ones where there is no model yet, and 0 at
        labeled rows: (p,)."""
        model = self._models.current()
        if model is None:
            return np.ones(len(self._pool))
        return _scores(self._models.scored(model)).copy()

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
        rng = np.random.default_rng([self._settings["seed"], len(self.history_)])
        size = min(sample, len(self._pool))
        X = self._pool[np.sort(rng.choice(len(self._pool), size=size, replace=False))]
        others = rng.choice(self.open_ids_, size=len(ids), replace=False)
        now = mean_posterior_variance(estimator, X)
        ours = mean_posterior_variance(with_points(estimator, self._pool[ids]), X)
        even = mean_posterior_variance(with_points(estimator, self._pool[others]), X)
        return 1 - ours / now, 1 - even / now

    def preview(self, n: int | None = None) -> Array:
        """The ids that `ask` would give now, without handing them out."""
        n = self._checked_number(n)
        return self._draw(self._drawing_model(), self.open_ids_, n)[0]

    @property
    def estimator_(self) -> Estimator:
        """The estimator, fitted to all labels there are.

        Parameters that are set on it hold from the next fit on, in this process; to fit it to
        other data changes nothing in the campaign.
        """
        return self._existing_model().shown

    @property
    def labeled_ids_(self) -> Array:
        """Ids in the order told."""
        return self._store.labels()[0]

    @property
    def labels_(self) -> Array:
        """Labels (t, q) in the order told."""
        return self._store.labels()[1]

    @property
    def pending_ids_(self) -> Array:
        """Ids asked for and neither told nor released, in the order asked for."""
        return self._store.pending()

    @property
    def open_ids_(self) -> Array:
        """Ids that can be asked for: neither labeled nor pending."""
        is_open = np.ones(len(self._pool), dtype=bool)
        is_open[self._store.taken()] = False
        return np.flatnonzero(is_open)

    @property
    def draws_(self) -> list[Draw]:
        """Every point ever handed out, in order, with its round and probability."""
        return self._store.draws()

    @property
    def pool_(self) -> Pool:
        """The pool; ``pool_[ids]`` are points."""
        return self._pool

    @property
    def settings_(self) -> dict[str, Any]:
        """What the campaign was started with, as plain values."""
        return dict(self._settings)

    @property
    def history_(self) -> list[dict[str, Any]]:
        """A row for each round: labels, λ, sketch size, mean squared leave-one-out error and, where
        points were drawn by them, the scores.

        Labels that are in no round yet are in a last row, as if a round began now.
        """
        return self._models.history()

    # How

    def _existing_model(self) -> Model:
        model = self._models.current()
        if model is None:
            raise ValueError(
                f"There is no model before {LEAST} labels are told; there are "
                f"{len(self.labeled_ids_)}."
            )
        return model

    def _drawing_model(self) -> Model | None:
        """The model by which points are drawn, with its scores where they matter."""
        model = self._models.current()
        if model is None or not self._draws_by_score:
            return model
        return self._models.scored(model)

    @property
    def _draws_by_score(self) -> bool:
        return self._settings["acquisition"] != "uniform"

    def _draw(self, model: Model | None, rows: Array, n: int) -> tuple[Array, Array]:
        """Ids among these rows, and their probabilities."""
        if not len(rows):
            raise ValueError(
                f"All {len(self._pool)} points of the pool are labeled or pending "
                f"({len(self.pending_ids_)} are pending): tell or release some, or stop."
            )
        number = 0 if model is None else model.rounds
        keys = exponential_keys(self._settings["seed"], number, len(self._pool))
        scores = np.ones(len(self._pool)) if model is None else _scores(model)
        return ACQUISITIONS[self._settings["acquisition"]](scores, rows, keys, n)

    def _handed_out(
        self, model: Model | None, rows: Array, ids: Array, probabilities: Array
    ) -> bool:
        """Keep what was drawn, and the round with which it was if that is new: both or neither.

        False where another process came first.
        """
        number = 0 if model is None else model.rounds
        metrics = {} if model is None else metrics_of(model)
        if model is not None and self._draws_by_score:
            metrics |= _summary(model, rows)
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
        number = model.rounds - 1
        self._store.open_round(LEAST, model.labels)
        kept = self._store.rounds(number)
        if not kept or not model.is_of(kept[0]):
            raise _Overtaken
        finite = {name: value for name, value in metrics.items() if np.isfinite(value)}
        new = {name: value for name, value in finite.items() if name not in kept[0].metrics}
        if new:
            self._store.record(number, new)

    def _checked_number(self, n: Any) -> int:
        if n is None:
            return self._settings["batch_size"]
        check_count("n", n)
        return int(n)


def _scores(model: Model) -> Array:
    """(p,), or none where points are drawn without."""
    return np.empty(0) if model.scores is None else model.scores


def _summary(model: Model, rows: Array) -> dict[str, float]:
    """The scores of the points that can be asked for in two numbers, where there are any."""
    if model.scores is None or not len(rows):
        return {}
    scores = model.scores[rows]
    return {"largest_score": float(scores.max()), "mean_score": float(scores.mean())}


def _sql_store() -> Any:
    from sketchridge.active.sql import SQLStore

    return SQLStore
