"""Bounds for contrasts and derivatives are never violated: random problems, extended precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers import UNDERFLOW, Array, RandomProblem, random_problem

from sketchridge.refine import PrecisionError, refined_variance
from sketchridge.slopes import slopes_at

quiet = pytest.mark.filterwarnings("ignore:λ = ", "ignore:sketch_size")


def contrasts(t: int, rng: np.random.Generator) -> Array:
    """Differences, averages, sums of any kind, one that is 0 and one that all but cancels."""
    A = rng.standard_normal((7, t))
    A[0] = 0
    A[0, :2] = 1, -1
    A[1] = 1 / t
    A[2] = 0
    A[3, 3:] = 0
    A[4] -= A[4].mean()
    A[5] = 0
    A[5, 0], A[5, -3] = 1, -1
    return A


def with_a_neighbor(problem: RandomProblem, rng: np.random.Generator) -> RandomProblem:
    """The first point once more, all but where it was, in place of the third from the end."""
    step = problem.X_new[0] * (1 + 1e-7 * rng.standard_normal(problem.X_new.shape[1]))
    problem.X_new[-3] = step
    problem.V[-3] = step.astype(problem.V.dtype) / problem.V.dtype.type(problem.h)
    return problem


def violations(seed: int, **options: Any) -> list[str]:
    """Which bounds of a random problem do not hold."""
    rng = np.random.default_rng([3, seed])
    problem = with_a_neighbor(random_problem(seed, **options), rng)
    model = problem.model
    A = contrasts(len(problem.X_new), rng)
    exact = problem.contrast_std(A)
    found = []
    for kind, refine in (("v2", 0), ("vbar", 0), ("vbar", 3)):
        _, variance, bound = model.contrast(
            A, problem.X_new, kind, refine=refine, return_bound=True
        )
        if (np.abs(np.sqrt(variance) - exact) > bound + UNDERFLOW).any():
            found.append(f"contrast {kind} {refine} ({problem.name})")
    try:
        _, variance, bound = model.contrast(A, problem.X_new, "v1", return_bound=True)
        if (np.abs(np.sqrt(variance) - exact) > bound + UNDERFLOW).any():
            found.append(f"contrast v1 ({problem.name})")
    except PrecisionError:
        pass  # it says that it cannot
    exact_slopes = problem.slope_std()
    if exact_slopes is not None:
        query = slopes_at(
            model.fitted_.sample, model.fitted_.at(problem.X_new), problem.X_new.shape[1]
        )
        refined = refined_variance(model.fitted_.ridge, query, theta=0.5, steps=1)
        gap = np.abs(np.sqrt(refined.variance) - exact_slopes)
        if (gap > refined.bound + UNDERFLOW).any():
            found.append(f"slope ({problem.name})")
    return found


def all_violations(seeds: Any, **options: Any) -> list[str]:
    return [v for seed in seeds for v in violations(seed, **options)]


@quiet
@pytest.mark.parametrize("first", range(0, 100, 25))
def test_no_bound_is_violated(first):
    assert all_violations(range(first, first + 25)) == []


@quiet
def test_a_first_residual_in_lower_precision_bounds_nothing():
    """Where no step improves on it, it used to be kept, and was below the one in float64."""
    assert violations(1392) == []


@quiet
def test_no_bound_is_violated_in_float32():
    assert all_violations(range(30), dtype="float32") == []


@pytest.mark.slow
@quiet
@pytest.mark.parametrize("first", range(0, 2000, 250))
def test_no_bound_is_violated_in_2000_problems(first):
    assert all_violations(range(first, first + 250)) == []
