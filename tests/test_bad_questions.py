"""Bad questions to a fitted model, and bad batches, are refused with a sentence."""

import numpy as np
import pytest
from problems import classes
from sklearn.exceptions import NotFittedError
from test_bad_input import SEED, TEXT, NoWork, X, not_positive, with_entry, y

from sketchridge import ExactKernelRidge, SketchedKernelRidge

QUESTIONS = {
    "predict": lambda model, A: model.predict(A),
    "std": lambda model, A: model.predict(A, return_std=True),
    "variance": lambda model, A: model.variance(A),
    "gp": lambda model, A: model.variance(A, kind="gp"),
    "interval": lambda model, A: model.predict_interval(A),
}
BAD_POINTS = {
    "too narrow": (X[:, :2], "X has 2 features, but .*KernelRidge is expecting 3 features"),
    "too wide": (
        np.hstack([X, X]),
        "X has 6 features, but .*KernelRidge is expecting 3 features",
    ),
    "NaN": (with_entry(X, np.nan), "Input X contains NaN"),
    "infinity": (with_entry(X, np.inf), "Input X contains infinity"),
    "empty": (X[:0], r"0 sample\(s\)"),
    "one dimension": (X[0], "Expected 2D array, got 1D array"),
    "strings": (with_entry(X, "red", object), TEXT + "'red'"),
    "complex": (X + 1j, "Complex data not supported"),
}


@classes
@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("case", BAD_POINTS)
def test_bad_points_are_refused(case, question, cls):
    A, text = BAD_POINTS[case]
    with pytest.raises(ValueError, match=text):
        QUESTIONS[question](cls(alpha=1.0).fit(X, y), A)


@classes
@pytest.mark.parametrize("question", QUESTIONS)
def test_questions_before_fit(question, cls):
    with pytest.raises(NotFittedError, match=f"This {cls.__name__} instance is not fitted yet"):
        QUESTIONS[question](cls(), X)


ATTRIBUTES = [
    "path_",
    "loo_error_",
    "eigenvalues_",
    "s_lambda_",
    "effective_dof_",
    "lambda_",
    "alpha_",
    "bandwidth_",
    "noise_variance_",
]


@classes
@pytest.mark.parametrize("name", ATTRIBUTES)
def test_attributes_before_fit(name, cls):
    with pytest.raises(NotFittedError, match=f"This {cls.__name__} instance is not fitted yet"):
        getattr(cls(), name)
    assert not hasattr(cls(), name)


@pytest.mark.parametrize(
    "name", ["sketch_", "sketch_size_", "gap_", "certificate_", "dtype_", "backend_"]
)
def test_attributes_of_a_sketch_before_fit(name):
    assert not hasattr(SketchedKernelRidge(), name)


def test_certificate_before_fit():
    text = "This SketchedKernelRidge instance is not fitted yet"
    with pytest.raises(NotFittedError, match=text):
        SketchedKernelRidge().certificate()


@pytest.mark.parametrize(
    ("cls", "kind", "known"),
    [
        (ExactKernelRidge, "v2", "'v1', 'gp', 'bias2'"),
        (ExactKernelRidge, "V1", "'v1', 'gp', 'bias2'"),
        (SketchedKernelRidge, "v4", "'v2', 'v3', 'vbar', 'vtheta', 'gp', 'bias2'"),
        (SketchedKernelRidge, None, "'v2', 'v3', 'vbar', 'vtheta', 'gp', 'bias2'"),
    ],
)
def test_unknown_kinds_of_variance(cls, kind, known):
    text = f"Unknown kind of variance {kind!r} for {cls.__name__}: give one of .*{known}"
    with pytest.raises(ValueError, match=text):
        cls(alpha=1.0).fit(X, y).variance(X, kind)


STEPS_TEXT = "refine must be a whole number of steps from 0 up, got "
BAD_REFINEMENTS = {
    "negative steps": ({"refine": -1}, STEPS_TEXT + "-1"),
    "half a step": ({"refine": 1.5}, STEPS_TEXT + "1.5"),
    "boolean steps": ({"refine": True}, STEPS_TEXT + "True"),
    "a word for steps": ({"refine": "all"}, STEPS_TEXT + "'all'"),
    "steps toward v3": ({"kind": "v3", "refine": 1}, "nothing to refine in kind='v3'"),
    "a bound of gp": ({"kind": "gp", "return_bound": True}, "nothing to refine in kind='gp'"),
    "steps of v1": ({"kind": "v1", "refine": 2}, "kind='v1' takes as many steps as tol needs"),
    "a tolerance of v2": ({"tol": 0.1}, "tol goes with kind='v1', got tol=0.1 and kind='v2'"),
    "tolerance 0": ({"kind": "v1", "tol": 0}, "tol must be a positive finite number .*, got 0"),
    "a word for a tolerance": (
        {"kind": "v1", "tol": "a"},
        "tol must be a positive finite number .*, got 'a'",
    ),
}


@pytest.mark.parametrize("case", BAD_REFINEMENTS)
def test_bad_refinements_are_refused(case):
    options, text = BAD_REFINEMENTS[case]
    with pytest.raises(ValueError, match=text):
        SketchedKernelRidge(alpha=1.0).fit(X, y).variance(X, **options)


def test_unknown_certificate():
    with pytest.raises(ValueError, match="Unknown certificate 'luck': give 'trace'"):
        SketchedKernelRidge(alpha=1.0).fit(X, y).certificate("luck")


@classes
@pytest.mark.parametrize("level", [0, 1, -0.5, 1.5, 95, np.nan, "high", None])
def test_confidence_level_out_of_range(level, cls):
    text = f"confidence_level must lie strictly between 0 and 1, got {level!r}"
    with pytest.raises(ValueError, match=text):
        cls(alpha=1.0).fit(X, y).predict_interval(X, confidence_level=level)


BAD_BATCHES = {
    "too narrow": (X[:, :2], y, "X has 2 features, but .*KernelRidge is expecting 3 features"),
    "NaN": (with_entry(X, np.nan), y, "Input X contains NaN"),
    "empty": (X[:0], y[:0], r"0 sample\(s\)"),
    "y too short": (X, y[:-1], r"inconsistent numbers of samples: \[24, 23\]"),
    "two targets": (
        X,
        np.column_stack([y, y]),
        "y has 2 targets, but the estimator was fitted with 1",
    ),
    "y too large": (X, 1e155 * y, "whose squares are beyond floating point"),
    "too far away": (1e200 * X, y, "overflow.*: rescale X"),
}


@classes
@pytest.mark.parametrize("case", BAD_BATCHES)
def test_bad_batches_are_refused_and_change_nothing(case, cls):
    A, b, text = BAD_BATCHES[case]
    model = cls().fit(X, y)
    before = model.predict(X, return_std=True)
    state = dict(vars(model))
    with pytest.raises(ValueError, match=text):
        model.partial_fit(A, b)
    assert vars(model) == state
    np.testing.assert_array_equal(model.predict(X, return_std=True), before)


@classes
def test_one_target_after_two_is_refused(cls):
    model = cls().fit(X, np.column_stack([y, y]))
    with pytest.raises(ValueError, match=r"y has 1 targets?, but the estimator was fitted with 2"):
        model.partial_fit(X, y)


@classes
def test_points_outside_the_domain_cannot_be_appended(cls):
    model = cls("cubic_spline", alpha=1.0).fit(X, y)
    with pytest.raises(ValueError, match=r"\[0, ?1\]"):
        model.partial_fit(X + 0.5, y)


@classes
@pytest.mark.parametrize(
    "bad",
    [{"alpha": -1.0}, {"bandwidth": [1.0, 1.0]}, {"kernel": not_positive}],
    ids=["alpha", "bandwidth", "kernel"],
)
def test_a_failed_fit_leaves_the_estimator_unfitted(cls, bad):
    model = cls(**bad)
    with pytest.raises(ValueError, match=r"alpha|bandwidth|kernel"):
        model.fit(X, y)
    with pytest.raises(NotFittedError):
        model.predict(X)
    assert not hasattr(model, "n_features_in_")


@classes
def test_a_failed_refit_leaves_the_model_that_was(cls):
    """Also where scikit-learn has taken note of the new data already."""
    model = cls(alpha=0.1, fit_intercept=True).fit(X, y)
    before = model.predict(X, return_std=True)
    model.set_params(kernel=not_positive)
    with pytest.raises(ValueError, match="not_positive"):
        model.fit(X[:, :2], np.column_stack([y + 1000, y]))
    assert model.n_features_in_ == 3
    np.testing.assert_array_equal(model.predict(X, return_std=True), before)


def test_a_solver_set_after_the_fit_is_for_the_next_one():
    model = SketchedKernelRidge(alpha=0.1, random_state=SEED).fit(X, y)
    before = model.predict(X)
    np.testing.assert_array_equal(model.set_params(solver="pcg").predict(X), before)


def test_a_problem_too_large_for_a_dense_matrix_is_refused_before_any_work():
    A = np.arange(3_000_000.0)[:, None]
    text = (
        r"ExactKernelRidge on 3,000,000 rows needs \d[\d,]+ bytes \([\d.]+ GiB\), but .* are "
        "available: use SketchedKernelRidge"
    )
    with pytest.raises(MemoryError, match=text):
        ExactKernelRidge(kernel=NoWork(), alpha=1.0).fit(A, A[:, 0])
