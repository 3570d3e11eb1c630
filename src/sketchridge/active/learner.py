"""Active learning by ask and tell: the paper's Algorithm 1, with nothing lost between one call and the next."""

from __future__ import annotations

import warnings
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from sketchridge import tuning
from sketchridge.active.acquire import ACQUISITIONS, exponential_keys
from sketchridge.active.gain import with_points
from sketchridge.active.pool import Pool, PoolVariance
from sketchridge.active.settings import ESTIMATORS, Estimator, estimator_from, estimator_settings
from sketchridge.active.stopping import as_stop_rules, stop_rules_from, to_settings
from sketchridge.active.store import MemoryStore, Round, Store
from sketchridge.estimator import ExactKernelRidge, SketchedKernelRidge
from sketchridge.kernels import ScaledKernel, as_kernel

__all__ = ["ActiveLearner"]

Array = np.ndarray
_LEAST = 2  # labels for a first model
_LARGEST_SKETCH = 512
_KEPT = 2**24  # bytes of a pool up to which a store keeps a copy
_SCORES = {ExactKernelRidge: ("v1", "gp"), SketchedKernelRidge: ("v2", "v3", "gp")}


class ActiveLearner:
    """Which points of a pool to measure next. It asks and is told, and owns no loop.

    Parameters
    ----------
    estimator : an ExactKernelRidge or a SketchedKernelRidge; a copy is fitted. bandwidth="median" is that of the pool, λ is chosen
        anew each round, and an automatic sketch grows up to 512 rows.
    pool : (p, d) array of candidates, memory-mapped if need be; ids are its row numbers.
    batch_size : how many points `ask` gives.
    acquisition : "weighted" (drawn with probability proportional to the score), "top" (the largest scores) or "uniform".
    score : "v1" or "gp" for the exact estimator, "v2", "v3" or "gp" for the sketched; "auto" is the first. Noise variance 1.
    stop : a number of labels, a rule of `sketchridge.active.stopping` or several; `should_stop` says when one applies.
    store : an SQLAlchemy address such as "sqlite:///campaign.db", where every ask and label is kept, or a store of
        `sketchridge.active.store`; None for memory only.
    random_state : seed of every draw.

    Attributes
    ----------
    estimator_ : fitted to all labels. labeled_ids_, pending_ids_. history_ : a row a round. stop_reason_ : why to stop.
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
            raise TypeError(f"ActiveLearner needs one of {', '.join(ESTIMATORS)}, got {estimator!r}.")
        scores = _SCORES[type(estimator)]
        if score not in ("auto", *scores):
            raise ValueError(
                f"Unknown score {score!r} for {type(estimator).__name__}: give 'auto', {', '.join(map(repr, scores))}."
            )
        if acquisition not in ACQUISITIONS:
            raise ValueError(f"Unknown acquisition {acquisition!r}: give one of {', '.join(map(repr, ACQUISITIONS))}.")
        _check_count("batch_size", batch_size)
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
        prepared = _prepared(estimator, points, settings["seed"])
        if store is None:
            record: Store = MemoryStore()
        else:
            record = store if isinstance(store, Store) else _sql_store()(store)
            settings |= estimator_settings(estimator)
        record.begin(settings, points.array if points.array.nbytes <= _KEPT else None)
        self._start(record, settings, prepared, points)

    @classmethod
    def resume(cls, store: str, pool: Any = None) -> ActiveLearner:
        """Continue a stored campaign where it was left, by whichever process.

        Parameters
        ----------
        store : its address. pool : the same pool again, where it was too large to be kept in the store.
        """
        kept = _sql_store().open(store)
        settings = kept.settings()
        data = kept.pool() if pool is None else pool
        if data is None:
            raise ValueError(
                f"The pool of this campaign, {settings['shape'][0]} rows, was too large to be kept in the store: give it again as "
                "pool=."
            )
        points = Pool(data)
        if points.fingerprint != settings["fingerprint"]:
            raise ValueError(
                f"This is not the pool of the campaign: it has the shape {points.array.shape}, the campaign's "
                f"{tuple(settings['shape'])}, or other values. Ids are row numbers, so the rows and their order must be the same."
            )
        learner = cls.__new__(cls)
        learner._start(kept, settings, _prepared(estimator_from(settings), points, settings["seed"]), points)
        return learner

    def _start(self, store: Store, settings: dict[str, Any], estimator: Estimator, pool: Pool) -> None:
        self._store, self._settings, self._pool = store, settings, pool
        self._stop = stop_rules_from(settings["stop"])
        self._estimator = estimator
        self._variance = PoolVariance(pool)
        self._rounds: list[Round] = []  # those the estimator has seen
        self._cached_scores: tuple[int, Array] = (-1, np.empty(0))
        self.stop_reason_ = ""

    def ask(self, n: int | None = None, *, return_probability: bool = False) -> Array | tuple[Array, Array]:
        """Ids of points to measure next; they are pending until told or released.

        Parameters
        ----------
        n : how many, `batch_size` unless given; fewer where the pool runs out.
        return_probability : also return score/Σ score of each at the draw.
        """
        n = self._settings["batch_size"] if n is None else n
        _check_count("n", n)
        while True:
            ids, probabilities = self._draw(int(n))
            if self._store.claim(ids, probabilities, len(self._rounds)):
                return (ids, probabilities) if return_probability else ids

    def tell(self, ids: Any, y: Any) -> None:
        """Labels y (t,) or (t, q) of rows of the pool, asked for or not. They are kept when this returns, all or none."""
        ids, Y = self._checked_ids(ids), _checked_targets(y)
        if len(ids) != len(Y):
            raise ValueError(f"{len(ids)} ids came with {len(Y)} labels; there must be one for each.")
        if len(ids):
            self._store.tell(ids, Y)

    def release(self, ids: Any) -> None:
        """Points that will not be measured after all: they can be asked for again."""
        self._store.release(self._checked_ids(ids))

    def should_stop(self) -> bool:
        """Whether a rule says to stop, or every point is labeled; `stop_reason_` then says why."""
        self._learn()
        labels = len(self.labeled_ids_)
        reasons = ["every point of the pool is labeled"] if labels == len(self._pool) else []
        if any(rule.needs_scores for rule in self._stop) and not reasons and self._rounds:
            self._summarize(self._open_rows())
        reasons += [reason for rule in self._stop if (reason := rule.reason(labels, self.history_))]
        self.stop_reason_ = "; ".join(reasons)
        return bool(reasons)

    def scores(self) -> Array:
        """The score of every unlabeled row of the pool, ones where there is no model yet, and 0 at labeled rows: (p,)."""
        self._learn()
        number = len(self._rounds)
        if self._cached_scores[0] != number:
            rows = self._without(self._store.labels()[0][: self._rounds[-1].labels if number else None])
            self._cached_scores = number, self._scored(rows) if number else np.ones(len(self._pool))
        return self._cached_scores[1]

    def expected_gain(self, n: int | None = None, *, sample: int = 1000) -> tuple[float, float]:
        """By what share the mean posterior variance of the pool falls with the next n labels, and with n drawn uniformly.

        Variances do not depend on the labels' values, so this is known before they are measured. O(n_labels·m²).
        """
        ids, rows = self.preview(n), self._open_rows()
        rng = np.random.default_rng([self._settings["seed"], len(self._rounds)])
        X = self._pool[np.sort(rng.choice(len(self._pool), size=min(sample, len(self._pool)), replace=False))]
        others = rng.choice(rows, size=len(ids), replace=False)
        ridge = self.estimator_._ridge
        now = ridge.gp(X).mean()
        after = [with_points(ridge, self._pool[chosen]).gp(X).mean() for chosen in (ids, others)]
        return float(1 - after[0] / now), float(1 - after[1] / now)

    def preview(self, n: int | None = None) -> Array:
        """The ids that `ask` would give now, without handing them out."""
        return self._draw(self._settings["batch_size"] if n is None else n)[0]

    @property
    def estimator_(self) -> Estimator:
        """The estimator, fitted to all labels there are."""
        self._learn()
        if not self._rounds:
            raise ValueError(f"There is no model before {_LEAST} labels are told; there are {len(self.labeled_ids_)}.")
        return self._estimator

    @property
    def labeled_ids_(self) -> Array:
        """Ids in the order told."""
        return self._store.labels()[0]

    @property
    def pending_ids_(self) -> Array:
        """Ids asked for and neither told nor released, in the order asked for."""
        return self._store.pending()

    @property
    def history_(self) -> list[dict[str, Any]]:
        """A row a round: labels, λ, sketch size, mean squared leave-one-out error and, once scored, the scores."""
        return [{"round": r.number + 1, "labels": r.labels, **r.metrics} for r in self._store.rounds()]

    def _draw(self, n: int) -> tuple[Array, Array]:
        self._learn()
        rows = self._open_rows()
        if not len(rows):
            raise ValueError(
                f"All {len(self._pool)} points of the pool are labeled or pending ({len(self.pending_ids_)} are pending): tell or "
                "release some, or stop."
            )
        acquisition = self._settings["acquisition"]
        scores = self._cached_scores[1]
        if acquisition != "uniform":
            scores = self.scores()
            self._summarize(rows)
        keys = exponential_keys(self._settings["seed"], len(self._rounds), len(self._pool))
        return ACQUISITIONS[acquisition](scores, rows, keys, n)

    def _learn(self) -> None:
        """Bring the estimator up to the labels, round by round as the store has them, so that every process has the same one."""
        self._store.open_round(_LEAST)
        for step in self._store.rounds(len(self._rounds)):
            known = self._rounds[-1].labels if self._rounds else 0
            again = not known or isinstance(self._estimator, ExactKernelRidge)
            start = 0 if again else known
            ids, Y = (part[: step.labels - start] for part in self._store.labels(start))
            y = Y[:, 0] if Y.shape[1] == 1 else Y
            with warnings.catch_warnings():
                if known:
                    warnings.simplefilter("ignore", UserWarning)  # the first round has said so
                (self._estimator.fit if again else self._estimator.partial_fit)(self._pool[ids], y)
            self._rounds.append(step)
            if not step.metrics:
                self._store.record(step.number, _metrics(self._estimator))

    def _scored(self, rows: Array) -> Array:
        score, ridge = self._settings["score"], self._estimator._ridge
        if score == "v2":
            return self._variance(ridge, rows)  # type: ignore[arg-type]
        return self._pool.apply(getattr(ridge, score), rows)

    def _summarize(self, rows: Array) -> None:
        """Record the scores of the points that could be asked for, once a round."""
        number = len(self._rounds) - 1
        if number < 0 or not len(rows) or "mean_score" in self._store.rounds(number)[0].metrics:
            return
        scores = self.scores()[rows]
        self._store.record(number, {"largest_score": float(scores.max()), "mean_score": float(scores.mean())})

    def _open_rows(self) -> Array:
        """Rows that are neither labeled nor pending."""
        return self._without(self._store.taken())

    def _without(self, ids: Array) -> Array:
        """The other rows, in order."""
        is_left = np.ones(len(self._pool), dtype=bool)
        is_left[ids] = False
        return np.flatnonzero(is_left)

    def _checked_ids(self, ids: Any) -> Array:
        values = np.atleast_1d(np.asarray(ids))
        if values.ndim != 1 or (values.size and values.dtype.kind not in "iu"):
            raise ValueError(f"ids must be row numbers of the pool, got {ids!r}.")
        wrong = values[(values < 0) | (values >= len(self._pool))]
        if len(wrong):
            raise ValueError(f"{wrong[0]} is not a row of the pool, which has the rows 0 to {len(self._pool) - 1}.")
        unique, counts = np.unique(values, return_counts=True)
        if len(unique) < len(values):
            raise ValueError(f"{unique[counts > 1][0]} is given more than once: give each id once.")
        return values.astype(np.int64)


def _sql_store() -> Any:
    from sketchridge.active.sql import SQLStore

    return SQLStore


def _prepared(estimator: Estimator, pool: Pool, seed: int) -> Estimator:
    """A copy whose fit is a function of the labels alone."""
    estimator = clone(estimator)
    kernel, median = as_kernel(estimator.kernel), isinstance(estimator.bandwidth, str) and estimator.bandwidth == "median"
    if median and isinstance(kernel, ScaledKernel) and kernel.bandwidth is None:
        estimator.bandwidth = tuning.median_bandwidth(pool, kernel)  # type: ignore[arg-type]
    if isinstance(estimator, SketchedKernelRidge):
        estimator._largest_size = _LARGEST_SKETCH
        if estimator.random_state is None:
            estimator.random_state = seed
    return estimator


def _metrics(estimator: Estimator) -> dict[str, Any]:
    sketched = {"sketch_size": estimator.sketch_size_} if isinstance(estimator, SketchedKernelRidge) else {}
    return {"lambda": estimator.lambda_, "loo_error": estimator.loo_error_, **sketched}


def _checked_targets(y: Any) -> Array:
    try:
        Y = np.asarray(y, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"Labels must be numbers, got {y!r}.") from None
    Y = Y.reshape(-1, 1) if Y.ndim < 2 else Y
    if Y.ndim > 2 or not Y.shape[1]:
        raise ValueError(f"Labels must have the shape (t,) or (t, q), got {Y.shape}.")
    if not np.isfinite(Y).all():
        bad = int(np.flatnonzero(~np.isfinite(Y).all(axis=1))[0])
        raise ValueError(f"Label number {bad} is missing or infinite: tell only points that were measured.")
    return Y


def _check_count(name: str, value: Any) -> None:
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name} must be a whole number from 1 up, got {value!r}.")
