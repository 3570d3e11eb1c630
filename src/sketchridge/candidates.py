"""Candidates for a learned kernel, compared by their errors on rows that were held out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from sketchridge.descent import Chart, Descent, descend, started
from sketchridge.kernels import FORMS, DistanceKernel
from sketchridge.loo import Criterion, Exact, Problem, criterion_at, kernel_matrix, solved

__all__ = ["Race", "Step", "fitted_model", "kernel_between"]

Array = np.ndarray
Say = Callable[[str], None]
_ROWS = {"isotropic": 1000, "ard": 1500, "full": 2000}  # that the chosen form is learned on
_TRIAL = 1000  # rows that candidates are learned on
_FITTED = 2000  # rows from which they predict the rows held out
_HELD_OUT = 1000  # rows at most by which candidates are compared
_IN_TURN = 200  # rows below which all are held out in turn, to choose a form
_TURNS = 4
_HOPELESS = 1e6  # the squared error of what cannot be computed, in variances of y


@dataclass(frozen=True, eq=False)
class Step:
    """A candidate: its held-out squared error, in variances of y, and what it cost."""

    kernel: DistanceKernel
    form: str
    score: float
    error: float  # standard error of the score
    evaluations: int
    seconds: float


@dataclass(frozen=True, eq=False)
class _Candidate:
    found: Descent
    errors: Array  # squared, held out: (t,)
    w: Array

    @property
    def form(self) -> str:
        return self.found.chart.form

    @property
    def score(self) -> float:
        return float(self.w @ self.errors / self.w.sum())

    @property
    def error(self) -> float:
        """Standard error of the score."""
        return _standard_error(self.errors, self.w)

    def beats(self, other: _Candidate) -> bool:
        """Whether it is better by a standard error of the difference."""
        return self.score + self.error_beside(other) < other.score

    def error_beside(self, other: _Candidate) -> float:
        """Standard error of the difference of two scores on the same rows."""
        return _standard_error(self.errors - other.errors, self.w)


def _standard_error(x: Array, w: Array) -> float:
    """Of the weighted mean."""
    off = w * (x - w @ x / w.sum())
    return float(np.sqrt(off @ off) / w.sum())


class Race:
    """Candidates learned on the same rows and compared on others."""

    def __init__(
        self,
        problem: Problem,
        criterion: str,
        forms: Sequence[str],
        rows: int | None = None,
        say: Say = lambda text: None,
        evaluate: Criterion = criterion_at,
    ) -> None:
        self.problem = problem
        self.forms = forms
        self.criterion = criterion
        self.rows = rows
        self.say = say
        self.evaluate = evaluate
        self.steps: list[Step] = []

    def size(self, form: str) -> int:
        """How many rows a form is learned on in the end."""
        return min(self.rows or _ROWS[form], len(self.problem))

    def forms_of(self, kernel: DistanceKernel) -> list[str]:
        """The forms asked for that a kernel has."""
        return [form for form in self.forms if form in kernel.forms]

    def winner(self, kernels: Sequence[DistanceKernel]) -> Descent:
        """The kernel and form chosen, learned on all rows of the subsample.

        Kernels that have other forms than those before them must beat the form that was chosen for
        those.
        """
        forms = self.forms_of(kernels[0])
        if len(kernels) * len(forms) == 1:
            return self.learned(kernels[0], forms[0], self.head(self.size(forms[0])))
        chosen: _Candidate | None = None
        for _, alike in groupby(kernels, self.forms_of):
            chosen = self.best(list(alike), chosen)
        assert chosen is not None
        more = self.size(chosen.form)
        if more <= self.learning_rows(chosen.form):
            return chosen.found
        return self.learned(chosen.found.kernel, chosen.form, self.head(more))

    def best(self, kernels: Sequence[DistanceKernel], before: _Candidate | None) -> _Candidate:
        """The best of kernels with the same forms, then its form; the one before unless beaten."""
        forms = self.forms_of(kernels[0])
        common = "isotropic" if forms == ["isotropic"] else "ard"
        first = self.tried(kernels[0], common)
        others = [self.tried(kernel, common) for kernel in kernels[1:]]
        best = first
        for each in sorted(others, key=lambda each: each.score):
            if each.beats(best):
                best = each
        if before is not None and not best.beats(before):
            return before
        tried = [best] if common in forms else []
        kernel = best.found.kernel
        tried += [self.tried(kernel, form, best.found) for form in forms if form != common]
        return _simplest(tried)

    def head(self, rows: int) -> Problem:
        return self.problem.some(slice(0, rows))

    def learning_rows(self, form: str) -> int:
        """How many rows a candidate is learned on, so that a quarter is left to score it."""
        return min(self.size(form), _TRIAL, 3 * len(self.problem) // 4)

    def tried(self, kernel: DistanceKernel, form: str, near: Descent | None = None) -> _Candidate:
        """A candidate with its held-out errors; it starts from a result that is near.

        Where rows are few all of them are held out in turn.
        """
        n = len(self.problem)
        rows = self.learning_rows(form)
        fitted = min(self.rows or _FITTED, 3 * n // 4)
        found = []
        parts = []
        for fold in range(_TURNS if n < _IN_TURN else 1):
            turned = self.problem.some(np.roll(np.arange(n), fold * (n - fitted)))
            held = turned.some(slice(fitted, fitted + _HELD_OUT))
            start = None if fold else near  # which has seen the rows held out in other turns
            found.append(self.learned(kernel, form, turned.some(slice(0, rows)), start))
            errors = _squared_errors(found[-1], turned.some(slice(0, fitted)), held)
            parts.append(np.column_stack([errors, held.w]))
        candidate = _Candidate(found[0], *np.concatenate(parts).T)
        evaluations = sum(len(each.values) for each in found)
        seconds = sum(each.seconds for each in found)
        scored = candidate.score, candidate.error
        self.steps.append(Step(kernel, form, *scored, evaluations, seconds))
        return candidate

    def learned(
        self, kernel: DistanceKernel, form: str, problem: Problem, near: Descent | None = None
    ) -> Descent:
        """Learned on the rows of a problem, from a simpler form where it is given or needed."""
        self.say(f"Learning the kernel: {kernel!r}, {form}")
        if near is None and form == "full":
            near = self.learned(kernel, "ard", problem.some(slice(0, self.size("ard"))))
        if near is None or form == "isotropic":
            chart = started(self.criterion, kernel, problem, form)
        else:
            chart = Chart(form, 1 / near.map.diagonal(), near.alpha)
        return descend(self.criterion, kernel, problem, chart, evaluate=self.evaluate)


def _simplest(tried: Sequence[_Candidate]) -> _Candidate:
    """Bandwidths for each feature, unless another form is better by a standard error.

    A single bandwidth must beat them by that of the difference, a full map by that of its score:
    full maps overfit, and many bandwidths, with their pull, lose a few per cent where one would do
    but gain a factor where it would not.
    """
    by_form = {each.form: each for each in tried}
    if "ard" not in by_form:
        simple, *others = sorted(tried, key=lambda each: FORMS.index(each.form))
        better = [each for each in others if each.score + each.error < simple.score]
        return better[-1] if better else simple
    chosen = by_form["ard"]
    if "isotropic" in by_form and by_form["isotropic"].beats(chosen):
        chosen = by_form["isotropic"]
    full = by_form.get("full")
    if full is not None and full.score + full.error < chosen.score:
        chosen = full
    return chosen


def fitted_model(found: Descent, problem: Problem) -> Exact | None:
    """What was learned, fitted to the rows of a problem; None where rounding forbids it."""
    G = kernel_matrix(found.kernel, found.coordinates(problem.X))
    return solved(G, found.alpha, problem)


def kernel_between(found: Descent, X: Array, Z: Array) -> Array:
    """k(X, Z): (t, n)."""
    return found.kernel.block(found.coordinates(X), found.coordinates(Z))


def _squared_errors(found: Descent, problem: Problem, held: Problem) -> Array:
    """Mean over targets of squared errors at held-out rows: (t,)."""
    model = fitted_model(found, problem)
    if model is None:
        return np.full(len(held), _HOPELESS)
    mean, _ = model.predict(kernel_between(found, held.X, problem.X))
    return ((held.Y - mean) ** 2).mean(axis=1)
