"""Candidates for a learned kernel, compared by the errors of rows that were left out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from sketchridge.backends import Backend, NumpyTiles
from sketchridge.descent import Chart, Descent, descend, started
from sketchridge.kernels import FORMS, DistanceKernel
from sketchridge.loo import Exact, Problem, kernel_matrix, solved
from sketchridge.progress import Say

__all__ = ["Race", "Step", "fitted_model", "kernel_between"]

Array = np.ndarray
_ROWS = {"isotropic": 1000, "ard": 2000, "full": 2000}  # that the chosen form is learned on
_TRIAL = 1000  # rows that candidates are learned on
_COMPARED = 3000  # rows that they are fitted to and compared on, each left out
_LOWER = 4.0  # by which α may be too large for so many rows
_MARGIN = 1.02  # of mean squares; with 1.04 the draw of the rows decided the error of the weather
_IN_TURN = 200  # rows below which all are held out in turn
_TURNS = 4
_NOISE = 10.0  # α from which a kernel explains little
_SIDE_BY_SIDE = 300  # rows from which candidates are learned at the same time
_SQUARES = 5.2  # n×n matrices at a time: 4.2 in a descent, 4.0 left out, 5.1 for the last α
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
    errors: Array  # squared, of rows predicted without themselves: (t,)
    w: Array
    learned: int  # rows at the beginning that it was learned on
    evaluations: int = 0
    seconds: float = 0.0

    @property
    def form(self) -> str:
        return self.found.chart.form

    @property
    def fresh(self) -> _Candidate:
        """By the rows that it was not learned from alone."""
        rows = slice(self.learned, None)
        return replace(self, errors=self.errors[rows], w=self.w[rows], learned=0)

    @property
    def step(self) -> Step:
        kernel, form = self.found.kernel, self.form
        return Step(kernel, form, self.score, self.error, self.evaluations, self.seconds)

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
        backend: Backend | None = None,
    ) -> None:
        self.problem = problem
        self.forms = forms
        self.criterion = criterion
        self.rows = rows
        self.say = say
        self.backend = NumpyTiles() if backend is None else backend
        self.steps: list[Step] = []

    def size(self, form: str) -> int:
        """How many rows a form is learned on in the end."""
        return min(self.rows or _ROWS[form], len(self.problem))

    def winner(self, kernels: Sequence[DistanceKernel]) -> Descent:
        """The kernel and form chosen, learned on all rows of the subsample."""
        forms = [form for form in self.forms if form in kernels[0].forms]
        if len(kernels) * len(forms) == 1:
            return self.only(kernels[0], forms[0])
        chosen = self.best(kernels)
        more = self.size(chosen.form)
        if more <= self.learning_rows(chosen.form):
            return chosen.found
        return self.learned_again(chosen.found, self.head(more))

    def only(self, kernel: DistanceKernel, form: str) -> Descent:
        """Learned without a comparison; its score is that of rows it was learned from."""
        problem = self.head(self.size(form))
        found = self.learned(kernel, form, problem)
        residuals = self.backend.left_out(
            kernel, found.coordinates(problem.X), found.alpha, problem
        )
        errors = _mean_squares(residuals, len(problem))
        evaluations = len(found.values)
        one = _Candidate(found, errors, problem.w, 0, evaluations, found.seconds)
        self.steps.append(one.step)
        return found

    def learned_again(self, before: Descent, problem: Problem) -> Descent:
        """Learned afresh on more rows, or from where it was before where that is better: on noisy
        tables a fresh descent may end where everything is taken for noise."""
        kernel, form = before.kernel, before.chart.form
        fresh = self.learned(kernel, form, problem)
        U = before.coordinates(problem.X)
        there = self.backend.criterion(self.criterion, kernel, U, before.alpha, problem)
        if there is None or min(fresh.values) <= there[0]:
            return fresh
        self.say(f"Learning the kernel: {kernel!r}, {form}, from where it was")
        return self._descended(kernel, problem, before.chart, before.theta)

    def best(self, kernels: Sequence[DistanceKernel]) -> _Candidate:
        """The best kernel with one bandwidth for each feature, then its best form."""
        common = "isotropic" if list(self.forms) == ["isotropic"] else "ard"
        best = self.best_kernel(self.each([partial(self.tried, each, common) for each in kernels]))
        kernel = best.found.kernel
        forms = [form for form in self.forms if form in kernel.forms]
        others = [form for form in forms if form != common]
        tried = self.each([partial(self.tried, kernel, form, best.found) for form in others])
        return _simplest([best, *tried] if common in forms else tried)

    def each(self, candidates: Sequence[Callable[[], _Candidate]]) -> list[_Candidate]:
        """The candidates, side by side where rows are enough for that to be quicker."""
        if len(self.problem) < _SIDE_BY_SIDE:
            tried = [candidate() for candidate in candidates]
        else:
            tried = self.backend.side_by_side(candidates, _SQUARES * len(self.many) ** 2)
        self.steps += [candidate.step for candidate in tried]
        return tried

    def best_kernel(self, tried: Sequence[_Candidate]) -> _Candidate:
        """The first unless another is better by a margin, or where rows are few by a standard error
        of the difference."""
        if len(self.problem) >= _IN_TURN:
            first, *others = tried
            better = min(others, key=lambda each: each.score, default=first)
            return better if better.score * _MARGIN < first.score else first
        best = tried[0]
        for each in sorted(tried[1:], key=lambda each: each.score):
            if each.beats(best):
                best = each
        return best

    @property
    def many(self) -> Problem:
        """The rows on which candidates are compared."""
        return self.head(2 * self.rows if self.rows else _COMPARED)

    def check_memory(self, kernels: Sequence[DistanceKernel]) -> None:
        """Refuse what cannot fit, before any work."""
        alone = len(kernels) * len(self.forms) == 1
        rows = max([0 if alone else len(self.many), *map(self.size, self.forms)])
        if rows >= _SIDE_BY_SIDE:
            self.backend.reserve(
                _SQUARES * rows**2,
                f"Learning the kernel on {rows:,} rows",
                "give kernel='matern32' and bandwidth='median', or a number",
            )

    def head(self, rows: int) -> Problem:
        return self.problem.some(slice(0, rows))

    def learning_rows(self, form: str) -> int:
        """How many rows a candidate is learned on, so that a quarter is left to score it."""
        return min(self.size(form), _TRIAL, 3 * len(self.problem) // 4)

    def tried(self, kernel: DistanceKernel, form: str, near: Descent | None = None) -> _Candidate:
        """A candidate with the errors of rows predicted without themselves; it starts from a result
        that is near."""
        if len(self.problem) < _IN_TURN:
            found, candidate = self._in_turn(kernel, form, near)
        else:
            found, candidate = self._left_out(kernel, form, near)
        evaluations = sum(len(each.values) for each in found)
        seconds = sum(each.seconds for each in found)
        return replace(candidate, evaluations=evaluations, seconds=seconds)

    def _left_out(
        self, kernel: DistanceKernel, form: str, near: Descent | None
    ) -> tuple[list[Descent], _Candidate]:
        """Learned on some rows and fitted to many, each of which is left out.

        α, which was found on few rows, may be smaller on many. Errors of rows that the bandwidths
        were learned from are a little too small, for all kernels alike: where there are others
        enough, they alone count.
        """
        rows = self.learning_rows(form)
        found = self.learned(kernel, form, self.head(rows), near)
        many = self.many
        U = found.coordinates(many.X)
        alphas = found.alpha, found.alpha / _LOWER
        tries = [self.backend.left_out(kernel, U, alpha, many) for alpha in alphas]
        errors = [_mean_squares(residuals, len(many)) for residuals in tries]
        least = min(errors, key=lambda each: float(many.w @ each))
        candidate = _Candidate(found, least, many.w, rows)
        return [found], candidate.fresh if 2 * rows <= len(many) else candidate

    def _in_turn(
        self, kernel: DistanceKernel, form: str, near: Descent | None
    ) -> tuple[list[Descent], _Candidate]:
        """Learned in turns, so that each of few rows is held out once."""
        n = len(self.problem)
        rows = self.learning_rows(form)
        fitted = min(self.rows or n, 3 * n // 4)
        found = []
        parts = []
        for fold in range(_TURNS):
            turned = self.problem.some(np.roll(np.arange(n), fold * (n - fitted)))
            held = turned.some(slice(fitted, None))
            start = None if fold else near  # which has seen the rows held out in other turns
            found.append(self.learned(kernel, form, turned.some(slice(0, rows)), start))
            errors = _squared_errors(found[-1], turned.some(slice(0, fitted)), held)
            parts.append(np.column_stack([errors, held.w]))
        errors, w = np.concatenate(parts).T
        return found, _Candidate(found[0], errors, w, 0)

    def learned(
        self, kernel: DistanceKernel, form: str, problem: Problem, near: Descent | None = None
    ) -> Descent:
        """Learned on the rows of a problem, from a simpler form where it is given or needed.

        Many bandwidths that end where all is noise, as they do for functions of high frequency,
        are learned again from the best single one, where that is better.
        """
        self.say(f"Learning the kernel: {kernel!r}, {form}")
        if near is None and form == "full":
            near = self.learned(kernel, "ard", problem.some(slice(0, self.size("ard"))))
        if near is not None and form != "isotropic":
            return self._from(near, kernel, form, problem)
        chart = started(self.criterion, kernel, problem, form)
        found = self._descended(kernel, problem, chart)
        if form == "isotropic" or found.alpha < _NOISE:
            return found
        single = self.learned(kernel, "isotropic", problem)
        if min(single.values) >= min(found.values):
            return found
        again = self._from(single, kernel, form, problem)
        return min(found, again, key=lambda each: min(each.values))

    def _from(self, near: Descent, kernel: DistanceKernel, form: str, problem: Problem) -> Descent:
        """From where a simpler form ended."""
        chart = Chart(form, 1 / near.map.diagonal(), near.alpha)
        return self._descended(kernel, problem, chart)

    def _descended(
        self, kernel: DistanceKernel, problem: Problem, chart: Chart, theta: Array | None = None
    ) -> Descent:
        evaluate = self.backend.criterion
        return descend(self.criterion, kernel, problem, chart, theta, evaluate=evaluate)


def _simplest(tried: Sequence[_Candidate]) -> _Candidate:
    """Bandwidths for each feature, unless another form is better by a standard error.

    A single bandwidth must beat them by that of the difference, a full map by that of its score on
    rows that it was not learned from: full maps overfit, and many bandwidths, with their pull, lose
    a few percent where one would do but gain a factor where it would not.
    """
    by_form = {each.form: each for each in tried}
    if "ard" not in by_form:
        simple, *others = sorted(tried, key=lambda each: FORMS.index(each.form))
        better = [each for each in others if _is_far_better(each, simple)]
        return better[-1] if better else simple
    chosen = by_form["ard"]
    if "isotropic" in by_form and by_form["isotropic"].beats(chosen):
        chosen = by_form["isotropic"]
    full = by_form.get("full")
    if full is not None and _is_far_better(full, chosen):
        chosen = full
    return chosen


def _is_far_better(one: _Candidate, other: _Candidate) -> bool:
    """By a standard error of its score, on rows that neither was learned from."""
    return one.fresh.score + one.fresh.error < other.fresh.score


def fitted_model(found: Descent, problem: Problem) -> Exact | None:
    """What was learned, fitted to the rows of a problem; None where rounding forbids it."""
    G = kernel_matrix(found.kernel, found.coordinates(problem.X))
    return solved(G, found.alpha, problem)


def kernel_between(found: Descent, X: Array, Z: Array) -> Array:
    """k(X, Z): (t, n)."""
    return found.kernel.block(found.coordinates(X), found.coordinates(Z))


def _mean_squares(residuals: Array | None, n: int) -> Array:
    """Mean over targets: (n,)."""
    return np.full(n, _HOPELESS) if residuals is None else (residuals**2).mean(axis=1)


def _squared_errors(found: Descent, problem: Problem, held: Problem) -> Array:
    """Mean over targets of squared errors at held-out rows: (t,)."""
    model = fitted_model(found, problem)
    if model is None:
        return np.full(len(held), _HOPELESS)
    mean, _ = model.predict(kernel_between(found, held.X, problem.X))
    return ((held.Y - mean) ** 2).mean(axis=1)
