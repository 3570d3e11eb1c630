"""What a campaign knows, for whoever looks: it is computed, and nothing here writes."""

from __future__ import annotations

from typing import Any

import numpy as np

from sketchridge.active.choose import Choice
from sketchridge.active.gain import Gain, gains
from sketchridge.active.goals import Goal
from sketchridge.active.models import LEAST, Model, Models
from sketchridge.active.parts import grown
from sketchridge.active.pool import Pool
from sketchridge.active.record import Record
from sketchridge.active.settings import Estimator
from sketchridge.active.stopping import StopRule, reasons_to_stop

__all__ = ["Looking"]

Array = np.ndarray


class Looking(Record):
    """Models, scores and what more labels would bring, of a learner that chooses by `_choice`."""

    _pool: Pool
    _models: Models
    _stop: list[StopRule]
    goal_: Goal
    stop_reason_: str

    def should_stop(self) -> bool:
        """Whether a rule says to stop, or nothing is left to measure; `stop_reason_` then says
        why.

        Returns
        -------
        stop : bool
            True where one does.
        """
        labels = len(self.labeled_ids_)
        failed = len(self.failed_ids_)
        size = len(self._current_pool())
        history = self.history_ if any(rule.needs_rounds for rule in self._stop) else []
        wanted = any(rule.needs_scores for rule in self._stop) and labels + failed < size
        if wanted and history and "mean_score" not in history[-1]:
            model = self._existing_model()
            history[-1] |= self._models.scored(model).summary(self.open_ids_)
        reasons = reasons_to_stop(self._stop, labels, failed, size, history)
        self.stop_reason_ = "; ".join(reasons)
        return bool(reasons)

    def scores(self) -> Array:
        """The score of every unlabeled row of the pool, 1 where there is no model yet.

        It is 0 at labeled rows.

        Returns
        -------
        scores : (p,) array
            For noise variance 1; gp in units of the kernel.
        """
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
        n : int
            How many, `batch_size` unless given; fewer where the pool runs out.
        sample : int
            The number of points of the pool over which the mean is taken.

        Returns
        -------
        ours, even : float
            Shares between 0 and 1.
        """
        found = self.expected(n, sample=sample)
        return found.ours, found.even

    def expected(self, n: int | None = None, *, sample: int = 1000) -> Gain:
        """`expected_gain` with the sizes of the sketch, now and with the next labels.

        Parameters
        ----------
        n : int
            How many, `batch_size` unless given; fewer where the pool runs out.
        sample : int
            The number of points of the pool over which the mean is taken.

        Returns
        -------
        gain : Gain
            ours, even, size_now and size_then.
        """
        estimator = self._existing_model().estimator
        ids = self.preview(n)
        pool = self._current_pool()
        rng = np.random.default_rng([self._settings["seed"], len(self.history_)])
        X = pool[np.sort(rng.choice(len(pool), size=min(sample, len(pool)), replace=False))]
        others = rng.choice(self.open_ids_, size=len(ids), replace=False)
        return gains(estimator, X, pool[ids], pool[others])

    def preview(self, n: int | None = None) -> Array:
        """The ids that `ask` would give now, without handing them out.

        Parameters
        ----------
        n : int
            How many, `batch_size` unless given; fewer where the pool runs out.

        Returns
        -------
        ids : (n,) array of int
            Row numbers of the pool.
        """
        n = self._checked_number(n)
        return self._choice(self._drawing_model(), self.open_ids_, n).ids

    def outlook(self) -> dict[str, float]:
        """What is left to gain for a goal other than to explore, before more is measured.

        Returns
        -------
        found : dict
            `best`, the label that is largest, least or nearest, of goals that have one;
            `promise`, the largest expected improvement on it at a point of the pool, in units
            of y; `chance`, the largest probability that a point improves on it by 1% of the
            labels' spread; of a boundary `unsure`, the expected share of points that the model
            has on the wrong side.

        Examples
        --------
        >>> from sketchridge import ActiveLearner, SketchedKernelRidge
        >>> X = np.linspace(0, 1, 500)[:, None]
        >>> learner = ActiveLearner(
        ...     SketchedKernelRidge(), X, batch_size=8, goal="maximize", random_state=0)
        >>> for _ in range(3):
        ...     ids = learner.ask()
        ...     learner.tell(ids, np.sin(6 * X[ids, 0]))
        >>> found = learner.outlook()
        >>> round(found["best"], 2), found["chance"] < 0.05
        (1.0, True)
        """
        if self.goal_.explores:
            raise ValueError(
                "This campaign explores: there is no value to improve on. expected_gain says what "
                "more labels teach."
            )
        self._existing_model()
        return dict(self._choice(self._drawing_model(), self.open_ids_, 1).found)

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

    def _choice(self, model: Model | None, rows: Array, n: int) -> Choice:
        raise NotImplementedError

    def _drawing_model(self) -> Model | None:
        raise NotImplementedError

    def _checked_number(self, n: Any) -> int:
        raise NotImplementedError

    def _existing_model(self) -> Model:
        self._current_pool()
        model = self._models.current()
        if model is None:
            raise ValueError(
                f"There is no model before {LEAST} labels are told; there are "
                f"{len(self.labeled_ids_)}."
            )
        return model
