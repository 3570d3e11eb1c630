"""Active learning by ask and tell: the paper's Algorithm 1, with nothing lost between calls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from sketchridge.active.checks import (
    check_count,
    check_one_of,
    checked_ids,
    checked_names,
    checked_targets,
    words,
)
from sketchridge.active.choose import Choice, Situation, choose
from sketchridge.active.correcting import Correcting
from sketchridge.active.gain import mean_sd
from sketchridge.active.goals import EXPLORE, as_goal, checked_acquisition
from sketchridge.active.looking import Looking
from sketchridge.active.memory import MemoryStore
from sketchridge.active.models import LEAST, Model, Models, first_kernel, metrics_of, prepared
from sketchridge.active.parts import part_of, points_of, sql_store, stored_pool
from sketchridge.active.pool import Pool
from sketchridge.active.settings import ESTIMATORS, Estimator, estimator_from, estimator_settings
from sketchridge.active.stopping import as_stop_rules, stop_rules_from, to_settings
from sketchridge.active.store import Store
from sketchridge.estimator import SketchedKernelRidge
from sketchridge.exact_estimator import ExactKernelRidge

__all__ = ["ActiveLearner"]

Array = np.ndarray
_SCORES = {ExactKernelRidge: ("v1", "gp"), SketchedKernelRidge: ("v2", "v3", "vbar", "gp")}
_FIRST = ("spread", "uniform")
_BY_SCORE = ("weighted", "top")
_BY_VARIANCE = ("ivr", "mixed")


class _Overtaken(Exception):
    """Another process has handed out a point, or begun a round, in the meantime."""


class ActiveLearner(Looking, Correcting):
    """Which points of a pool to measure next. It asks and is told, and owns no loop.

    Rounds, in which the model learns the labels told so far, begin when points are asked for. All
    else only looks: what it needs is computed and never kept in the store.

    Parameters
    ----------
    estimator : ExactKernelRidge or SketchedKernelRidge
        A copy is fitted. A kernel or bandwidth that is to be learned is so at 30 labels and
        whenever there are a quarter more; before that it is the Gaussian kernel with the median
        distance in the pool. λ is chosen anew each round. Points are chosen by a model whose
        automatic sketch grows up to 512 rows, with a penalty that it can follow; `estimator_`
        predicts without such limits.
    pool : (p, d) array
        Candidates, mapped from a file if need be; ids are its row numbers. Those of a Dask array
        or data frame stay on the cluster, which scores them.
    batch_size : int
        How many points `ask` gives.
    acquisition : str
        "weighted" (drawn with probability proportional to the score), "top" (the largest
        scores), "uniform", "ivr" (each lowers the pool's mean posterior variance most, given
        those before it) or "mixed" (so, but a quarter is drawn evenly). "auto" is "ivr", and
        "weighted" where a score is given. For the largest or least value "improvement", which is
        expected, or "bound", by which it is possible; other goals have one choice each, which is
        the default.
    score : str
        "v1" or "gp" for the exact estimator; "v2", "vbar", "v3" or "gp" for the sketched.
        "auto" is the first. All but gp are for noise variance 1, gp is in units of the kernel.
    goal : str or tuple
        "explore" (learn the whole function), "maximize", "minimize", ("target", value) (come
        near a value) or ("boundary", value) (find where it is crossed); values are in units of
        y.
    first : str
        How points are chosen before there is a model: "spread" over the pool, or "uniform".
    stop : int, rule or list of rules
        A number of labels, a rule of `sketchridge.active` or several; `should_stop` says when
        one applies.
    store : str, Path, store or None
        An SQLAlchemy address such as "sqlite:///campaign.db", where every ask and label is
        kept, the path of an SQLite file, or a store of `sketchridge.active.store`; None for
        memory only.
    random_state : int, generator or None
        Seed of every draw.

    Attributes
    ----------
    estimator_ : estimator
        Fitted to all labels there are.
    labeled_ids_, labels_ : (t,) and (t, q) arrays
        Ids and labels in the order told; labels in units of y.
    pending_ids_, failed_ids_, open_ids_ : arrays of int
        Asked for and not told; beyond measuring; those that can be asked for.
    draws_, changes_, failures_ : lists
        Every point ever handed out, every correction, every failure, in order.
    history_ : list of dict
        A row for each round.
    stop_reason_ : str
        Why to stop, after `should_stop`.
    goal_, pool_, settings_ : Goal, Pool, dict
        What the campaign was started with.

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
        goal: Any = "explore",
        first: str = "spread",
        stop: Any = None,
        store: str | Path | Store | None = None,
        random_state: Any = None,
    ) -> None:
        if type(estimator) not in _SCORES:
            names = ", ".join(ESTIMATORS)
            raise TypeError(f"ActiveLearner needs one of {names}, got {estimator!r}.")
        if acquisition == "auto" and score != "auto":
            acquisition = "weighted"  # which uses it
        score = _SCORES[type(estimator)][0] if score == "auto" else score
        check_count("batch_size", batch_size)
        aim = as_goal(goal)
        points = Pool(points_of(pool, estimator))
        settings: dict[str, Any] = {
            "batch_size": int(batch_size),
            "acquisition": checked_acquisition(aim, acquisition),
            "score": score,
            "goal": aim.plain(),
            "first": first,
            "stop": to_settings(as_stop_rules(stop)),
            "seed": int(check_random_state(random_state).randint(2**31 - 1)),
            "shape": list(points.shape),
            "fingerprint": points.fingerprints[0],
        }
        if store is None:
            record: Store = MemoryStore()
        else:
            record = store if isinstance(store, Store) else sql_store()(store)
            settings |= estimator_settings(estimator)
        self._start(record, settings, estimator, points)
        record.begin(settings, part_of(points, 0))

    @classmethod
    def resume(cls, store: str | Path | Store, pool: Any = None) -> ActiveLearner:
        """Continue a stored campaign where it was left, by whichever process.

        Parameters
        ----------
        store : str, Path or store
            Its address.
        pool : (p, d) array
            The same pool again, where it was too large to be kept in the store; with all that
            was added to it.

        Returns
        -------
        learner : ActiveLearner
            As it was.
        """
        kept = store if isinstance(store, Store) else sql_store().open(store)
        settings = kept.settings()
        learner = cls.__new__(cls)
        estimator = estimator_from(settings)
        points, added = stored_pool(kept, points_of(pool, estimator))
        learner._start(kept, settings, estimator, points)
        for part in added:
            points.append(part)
        return learner

    def _start(
        self, store: Store, settings: dict[str, Any], estimator: Estimator, pool: Pool
    ) -> None:
        kind = type(estimator)
        check_one_of("score", settings["score"], _SCORES[kind], f" for {kind.__name__}")
        self.goal_ = as_goal(settings.get("goal", EXPLORE))  # as before there was a choice
        checked_acquisition(self.goal_, settings["acquisition"])
        check_one_of("choice of first points", settings.get("first", "uniform"), _FIRST)
        self._store = store
        self._settings = settings
        self._pool = pool
        self._stop = stop_rules_from(settings["stop"])
        templates = prepared(estimator, pool, settings["seed"])
        self._first_kernel = first_kernel(templates.scoring, pool)
        aims = not self.goal_.explores
        self._models = Models(store, pool, templates, settings["score"], aims=aims)
        self.stop_reason_ = ""

    # Asking and telling

    def ask(
        self, n: int | None = None, *, return_probability: bool = False
    ) -> Array | tuple[Array, Array]:
        """Ids of points to measure next; they are pending until told, released or failed.

        Where labels have been told or corrected since the last time, a round begins.

        Parameters
        ----------
        n : int
            How many, `batch_size` unless given; fewer where the pool runs out.
        return_probability : bool
            Also return score/Σ score of each at the draw.

        Returns
        -------
        ids : (n,) array of int
            Row numbers of the pool.
        probability : (n,) array
            If asked for.
        """
        if return_probability and not self.goal_.explores:
            raise ValueError(
                f"With the goal {str(self.goal_)!r} points are not drawn but chosen, so that there "
                "are no probabilities: leave out return_probability, or explore."
            )
        ids, probability = self.ask_with(lambda *drawn: drawn, n)
        return (ids, probability) if return_probability else ids

    def ask_with(self, make: Callable[[Array, Array], Any], n: int | None = None) -> Any:
        """What a function makes of the ids and probabilities of `ask`, before they are handed out.

        Where it raises, no point is handed out: a sheet that cannot be written costs none.

        Parameters
        ----------
        make : callable
            Called with the ids, (n,) array of int, and their probabilities, (n,) array.
        n : int
            How many, `batch_size` unless given; fewer where the pool runs out.

        Returns
        -------
        made : object
            What the function returned.

        Examples
        --------
        >>> pool = np.linspace(0, 1, 50)[:, None]
        >>> learner = ActiveLearner(SketchedKernelRidge(), pool, batch_size=3, random_state=0)
        >>> sheet = learner.ask_with(lambda ids, probabilities: [f"point {i}" for i in ids])
        >>> len(sheet), len(learner.pending_ids_)
        (3, 3)
        """
        n = self._checked_number(n)
        before: tuple[Model | None, Array] | None = None
        while True:
            model = self._drawing_model()
            rows = self.open_ids_
            if before is not None and before[0] is model and np.array_equal(before[1], rows):
                raise ValueError(
                    "The store refuses what this learner draws, though nothing in it has changed: "
                    "was another copy put in its place? Continue it with ActiveLearner.resume."
                )
            before = model, rows
            choice = self._choice(model, rows, n)
            made = make(choice.ids, choice.probabilities)
            if self._handed_out(model, rows, choice):
                break
        if model is not None:
            self._models.settle(model)
        return made

    def tell(self, ids: Any, y: Any, *, names: Any = (), by: str = "") -> None:
        """Labels of rows of the pool, asked for or not; kept when this returns, all or none.

        Parameters
        ----------
        ids : sequence of int
            Row numbers of the pool.
        y : (t,) or (t, q) array
            Their labels, in units of y.
        names : sequence of str
            Of the points, for the record.
        by : str
            Who measured them, for the record.
        """
        rows, Y = self._checked_labels(ids, y)
        if len(rows):
            self._store.tell(rows, Y, names=checked_names(names, len(rows)), by=words(by))

    # How

    def _drawing_model(self) -> Model | None:
        """The model by which points are drawn, with its scores where they matter."""
        self._current_pool()
        model = self._models.current()
        if model is None:
            return None
        if not self.goal_.explores:
            self._models.shown(model)
            return self._models.current()
        return self._models.scored(model) if self._draws_by_score else model

    @property
    def _draws_by_score(self) -> bool:
        return self._settings["acquisition"] in _BY_SCORE

    def _choice(self, model: Model | None, rows: Array, n: int) -> Choice:
        """Ids among these rows, their probabilities, and what was found on the way."""
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
            labeled=self.labeled_ids_,
            pending=self.pending_ids_,
            released=np.array(released, dtype=np.int64),
            model=model,
            kernel=self._first_kernel,
            goal=self.goal_,
            aiming=None if model is None or self.goal_.explores else self._models.shown(model),
            acquisition=self._settings["acquisition"],
            first=self._settings.get("first", "uniform"),  # as before there was a choice
            seed=self._settings["seed"],
            round=number,
        )
        choice = choose(situation, n)
        if model is None or not self.goal_.has_best:
            return choice
        best = self.goal_.best(self.labels_[:, 0])
        return replace(choice, found={"best": best, **choice.found})

    def _handed_out(self, model: Model | None, rows: Array, choice: Choice) -> bool:
        """Keep what was drawn, and the round with which it was if that is new: both or neither.

        False where another process came first.
        """
        number = 0 if model is None else model.rounds
        metrics = {} if model is None else {**metrics_of(model), **choice.found}
        if model is not None and self._draws_by_score:
            metrics |= model.summary(rows)
        if model is not None and self._settings["acquisition"] in _BY_VARIANCE:
            metrics["mean_sd"] = mean_sd(model.estimator, self._pool)
        try:
            with self._store.transaction():
                if model is not None:
                    self._keep_round(model, metrics)
                if not self._store.claim(choice.ids, choice.probabilities, number):
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
        self.goal_.check_targets(Y.shape[1])
        return rows, Y

    def _checked_number(self, n: Any) -> int:
        if n is not None:
            check_count("n", n)
        return int(self._settings["batch_size"] if n is None else n)
