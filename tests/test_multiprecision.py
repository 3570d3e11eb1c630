"""Means, variances, bounds and certificates against ball arithmetic, on problems made to be hard.

A library may answer within the tolerance of `rounding`, or say in a sentence that it cannot; it may
not be silent and wrong. Errors and warnings count as honest where that tolerance is above 1e-6, or
numbers are near the ends of their range; silence counts as a claim of half a standard deviation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import pytest
from flint import arb
from heard import Heard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from multiprecision import (
    Formula,
    Prediction,
    Problem,
    Reference,
    difference,
    matrix_of,
    norm,
    to_floats,
)
from rounding import Tolerance, tolerances
from sklearn.kernel_ridge import KernelRidge

from sketchridge import ExactKernelRidge, SketchedKernelRidge, exact
from sketchridge.kernels import Polynomial

Array = np.ndarray
UNDERFLOW = arb(1e-150)  # of a standard deviation: the square of less is not a float64
BENIGN = 1e-6  # relative tolerance below which a problem must be answered
HALF = 0.5  # relative error above which a silent answer is wrong, whatever the condition number
NAMES = ["rpcholesky", "landmarks", "gaussian", "rademacher", "sparse", "srht", "fourier"]
DTYPES = ["auto", "float64", "float32"]
RADIAL = ["gaussian", "laplacian", "matern32", "matern52"]


# The reference itself


def some_problem(formula: Formula, *, seed: int = 0, n: int = 9, **options: Any) -> Problem:
    rng = np.random.default_rng(seed)
    X, y, X_new = rng.standard_normal((n, 2)), rng.standard_normal(n), rng.standard_normal((4, 2))
    return Problem(formula, X, y, X_new, **{"alpha": 0.3, **options})


FORMULAS = [
    Formula("gaussian", 0.9),
    Formula("laplacian", 1.5),
    Formula("matern32", 1.2),
    Formula("matern52", 1.2),
    Formula("polynomial", gamma=0.5, coef0=0.7, degree=3),
    Formula("linear"),
]
every_formula = pytest.mark.parametrize("formula", FORMULAS, ids=lambda formula: formula.name)
with_and_without = pytest.mark.parametrize("fit_intercept", [False, True])
WEIGHT = np.geomspace(0.05, 20, 9)[[3, 8, 0, 5, 1, 7, 2, 6, 4]]


def agree(found: list[arb], expected: list[arb]) -> None:
    for a, b in zip(found, expected, strict=True):
        same = bool(abs(a - b) <= 1e-60 * (abs(a) + abs(b) + 1e-30))
        assert same, f"{float(a)} for {float(b)}"


@every_formula
@with_and_without
def test_reference_with_a_full_sketch_is_exact(formula: Formula, fit_intercept: bool) -> None:
    r = Reference(some_problem(formula, fit_intercept=fit_intercept, weight=WEIGHT, S=np.eye(9)))
    agree(r.v2.variance, r.exact.variance)
    agree(r.sketched.variance, r.exact.variance)
    agree(r.vbar, r.exact.variance)
    agree(r.sketched.mean, r.exact.mean)
    agree(r.sketched.gp, r.exact.gp)
    agree(r.sketched.bias2, r.exact.bias2)
    agree([r.sketched_trace], [r.trace])


@every_formula
@with_and_without
def test_reference_splits_gp_into_bias_and_variance(formula: Formula, fit_intercept: bool) -> None:
    """gp = bias² + α V1/σ², and with V3 for the sketched model."""
    S = np.random.default_rng(1).standard_normal((2, 9))
    r = Reference(some_problem(formula, fit_intercept=fit_intercept, weight=WEIGHT, S=S))
    for model in (r.exact, r.sketched):
        parts = zip(model.bias2, model.variance, strict=True)
        agree([b + model.alpha * v for b, v in parts], model.gp)


@every_formula
@with_and_without
def test_reference_takes_weight_two_for_two_rows(formula: Formula, fit_intercept: bool) -> None:
    single = some_problem(formula, fit_intercept=fit_intercept, weight=[2.0] + [1.0] * 8)
    order = [0, *range(9)]
    double = replace(single, X=single.X[order], y=single.y[order], weight=None)
    r, twice = Reference(single), Reference(double)
    for name in ("mean", "variance", "gp", "bias2"):
        agree(getattr(twice.exact, name), getattr(r.exact, name))


def test_reference_takes_a_weight_of_zero_for_absence() -> None:
    S = np.random.default_rng(1).standard_normal((3, 9))
    whole = some_problem(FORMULAS[0], weight=[0.0] + [1.0] * 8, S=S)
    less = replace(whole, X=whole.X[1:], y=whole.y[1:], weight=None, S=S[:, 1:])
    agree(Reference(whole).v2.variance, Reference(less).v2.variance)


@every_formula
def test_reference_is_the_specification_on_benign_problems(formula: Formula) -> None:
    S, n = np.random.default_rng(1).standard_normal((2, 9)), 9
    problem = some_problem(formula, S=S)
    r, lam = Reference(problem), problem.alpha / n
    K, k_x = (to_floats(A.entries()).reshape(n, -1) for A in (r.G, r.G_x))
    K = K / n
    expected = {
        "mean": (r.exact.mean, exact.mean(K, k_x, problem.y, lam)),
        "V1": (r.exact.variance, exact.v1(K, k_x, lam)),
        "V2": (r.v2.variance, exact.v2(K, S, k_x, lam)),
        "V3": (r.sketched.variance, exact.v3(K, S, k_x, lam)),
        "V̄": (r.vbar, exact.vbar(K, S, k_x, lam)),
        "sketched mean": (r.sketched.mean, exact.sketched_mean(K, S, k_x, problem.y, lam)),
    }
    for name, (found, value) in expected.items():
        np.testing.assert_allclose(to_floats(found), value, rtol=1e-9, err_msg=name)


@pytest.mark.parametrize(
    ("formula", "options"),
    [
        (FORMULAS[0], {"kernel": "rbf", "gamma": 1 / (2 * 0.9**2)}),
        (FORMULAS[1], {"kernel": "laplacian", "gamma": 1 / 1.5}),
        (FORMULAS[4], {"kernel": "poly", "gamma": 0.5, "coef0": 0.7, "degree": 3}),
        (FORMULAS[5], {"kernel": "linear"}),
    ],
    ids=["gaussian", "laplacian", "polynomial", "linear"],
)
def test_reference_is_scikit_learns_weighted_mean(formula: Formula, options: dict) -> None:
    problem = some_problem(formula, weight=WEIGHT)
    theirs = KernelRidge(alpha=problem.alpha, **options)
    mean = theirs.fit(problem.X, problem.y, sample_weight=WEIGHT).predict(problem.X_new)
    np.testing.assert_allclose(to_floats(Reference(problem).exact.mean), mean, rtol=1e-10)


def test_reference_is_scikit_learns_posterior_variance() -> None:
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import Matern

    problem = some_problem(FORMULAS[3], weight=WEIGHT)
    process = GaussianProcessRegressor(Matern(1.2, nu=2.5), alpha=0.3 / WEIGHT, optimizer=None)
    _, std = process.fit(problem.X, problem.y).predict(problem.X_new, return_std=True)
    np.testing.assert_allclose(to_floats(Reference(problem).exact.gp), std**2, rtol=1e-9)


@pytest.mark.parametrize("S", [np.zeros((2, 9)), np.ones((3, 9)), np.eye(9)[[0, 0, 1]]])
def test_reference_needs_no_independent_rows_of_the_sketch(S: Array) -> None:
    r = Reference(some_problem(FORMULAS[0], S=S))
    once = Reference(some_problem(FORMULAS[0], S=np.unique(S, axis=0)))
    agree(r.v2.variance, once.v2.variance)
    assert r.sketched_trace < r.trace


@with_and_without
def test_reference_leaves_out_a_row(fit_intercept: bool) -> None:
    problem = some_problem(FORMULAS[0], fit_intercept=fit_intercept, weight=WEIGHT)
    found, rows = Reference(problem).exact.loo, np.arange(9)
    for i in rows:
        less = replace(problem, X=problem.X[rows != i], y=problem.y[rows != i])
        without = replace(less, weight=WEIGHT[rows != i], X_new=problem.X[[i]])
        agree([arb(problem.y[i]) - Reference(without).exact.mean[0]], [found[i]])


@pytest.mark.parametrize("alpha", [1e-2, 1e-5, 1e-8, 1e-11])
@pytest.mark.parametrize("formula", FORMULAS[:4], ids=lambda formula: formula.name)
@with_and_without
def test_near_interpolation_errors_and_noise_keep_their_digits(
    formula: Formula, fit_intercept: bool, alpha: float
) -> None:
    """1 − h is not formed by subtraction. What is left is the condition of K + λI itself."""
    problem = some_problem(formula, fit_intercept=fit_intercept, weight=WEIGHT, alpha=alpha)
    exact_ = Reference(problem).exact
    options = {"alpha": alpha, "fit_intercept": fit_intercept}
    model = ExactKernelRidge(formula.name, bandwidth=formula.bandwidth, **options)
    model.fit(problem.X, problem.y, WEIGHT)
    loo = float(np.average(to_floats(exact_.loo) ** 2, weights=WEIGHT))
    np.testing.assert_allclose(model.loo_error_, loo, rtol=1e-10)
    np.testing.assert_allclose(model.noise_variance_, float(exact_.noise), rtol=1e-10)


# Problems


@dataclass(frozen=True)
class Case:
    """A problem by its few parameters; Hypothesis shrinks these, and the seed makes the data."""

    kernel: str
    n: int
    d: int
    seed: int
    offset: float
    log_scale: float
    log_ratio: float  # of λ/E₁
    log_weight: float  # weights lie within 10^±log_weight
    fit_intercept: bool
    log_y: float
    sketch: str
    size: int
    repeated: bool
    absent: bool

    @cached_property
    def problem(self) -> Problem:
        """Without its sketch where that is a name."""
        rng = np.random.default_rng(self.seed)
        n, d = self.n, self.d
        X = rng.standard_normal((n, d)) + self.offset
        X_new = np.concatenate([X[:1], rng.standard_normal((2, d)) * [[1.0], [3.0]] + self.offset])
        if self.repeated:
            X[n // 2 :] = X[: n - n // 2]
        weight = 10 ** rng.uniform(-self.log_weight, self.log_weight, n)
        if self.absent and n > 3:
            weight[rng.integers(n)] = 0.0
        y = 10.0**self.log_y * (rng.standard_normal(n) + rng.integers(2) * 3.0)
        bandwidth = 10 ** rng.uniform(-0.4, 0.9)
        scale = 10.0 ** self._fitting_scale(X, X_new)
        formula = self._formula(bandwidth * scale, scale)
        plain = Problem(formula, X * scale, y, X_new * scale, 1.0, self.fit_intercept)
        weighted = replace(plain, weight=weight if self.log_weight or self.absent else None)
        return replace(weighted, alpha=self._alpha(weighted), S=self._array(rng))

    def _formula(self, bandwidth: float, scale: float) -> Formula:
        degree = self.degree
        if self.kernel in RADIAL:
            return Formula(self.kernel, bandwidth)
        if self.kernel == "polynomial":
            return Formula("polynomial", gamma=scale**-2.0, coef0=1.0, degree=degree)
        return Formula(self.kernel, degree=degree)

    @property
    def degree(self) -> int:
        return {"linear": 1, "polynomial": 3, "homogeneous": 2}.get(self.kernel, 0)

    def _fitting_scale(self, X: Array, X_new: Array) -> float:
        """log₁₀ of the scale, drawn in where kernel values or α would leave float64's range."""
        if self.kernel in RADIAL or self.kernel == "polynomial":
            return self.log_scale
        largest = np.log10(np.abs(np.concatenate([X, X_new])).max() * np.sqrt(self.d))
        room = [(lim / (2 * self.degree) - largest) for lim in (-280.0, 295.0)]
        return float(np.clip(self.log_scale, room[0], room[1]))

    def _alpha(self, problem: Problem) -> float:
        """α = λ Σw with λ a multiple of the largest eigenvalue of K."""
        X, _, w, _ = problem.present()
        G = problem.formula(X, X)
        top = max((G[i, i] for i in range(len(X))), key=lambda g: float(g.log()))
        unit = to_floats((G / top).entries()).reshape(len(X), -1)
        root = np.sqrt(w)
        largest = np.linalg.eigvalsh(root[:, None] * unit * root)[-1]
        return float((arb(largest * 10.0**self.log_ratio) * top).mid())

    def _array(self, rng: np.random.Generator) -> Array | None:
        if self.sketch == "array":
            return rng.standard_normal((self.size, self.n))
        return np.eye(self.n) if self.sketch == "identity" else None

    def estimator(self, **options: Any) -> SketchedKernelRidge:
        named = self.sketch in NAMES
        return SketchedKernelRidge(
            **self._common(),
            sketch=self.sketch if named or self.sketch == "auto" else self.problem.S,
            sketch_size=self.size if named else "auto",
            random_state=self.seed,
            **{"solver": "sketch", **options},
        )

    def exact_estimator(self) -> ExactKernelRidge:
        return ExactKernelRidge(**self._common())

    def _common(self) -> dict[str, Any]:
        formula = self.problem.formula
        if self.kernel in ("polynomial", "homogeneous"):
            kernel: Any = Polynomial(degree=self.degree, gamma=formula.gamma, coef0=formula.coef0)
        else:
            kernel = self.kernel
        return {
            "kernel": kernel,
            "alpha": self.problem.alpha,
            "noise_variance": 1.0,
            "fit_intercept": self.fit_intercept,
            **({"bandwidth": formula.bandwidth} if formula.radial else {}),
        }

    @property
    def extreme(self) -> bool:
        return abs(self.log_scale) > 30 or abs(self.log_y) > 30


@st.composite
def cases(draw: st.DrawFn, *, sketches: list[str]) -> Case:
    n = draw(st.integers(2, 12))
    sketch = draw(st.sampled_from(sketches))
    by_name = sketch in NAMES or sketch == "auto"
    sometimes = st.integers(0, 3).map(lambda k: k == 3)
    return Case(
        kernel=draw(st.sampled_from([*RADIAL, "linear", "polynomial", "homogeneous"])),
        n=n,
        d=draw(st.integers(1, 3)),
        seed=draw(st.integers(0, 10**6)),
        offset=draw(st.sampled_from([0.0, 0.0, 1.0, 1e2, 1e4, 1e6, 1e7])),
        log_scale=draw(st.just(0.0) | st.integers(-150, 150).map(float)),
        log_ratio=draw(st.floats(-14, 2).map(lambda x: round(x, 2))),
        log_weight=draw(st.sampled_from([0.0, 1.0, 3.0])),
        fit_intercept=draw(st.booleans()),
        log_y=draw(st.just(0.0) | st.integers(-150, 150).map(float)),
        sketch=sketch,
        size=draw(st.integers(1, n)),
        repeated=not by_name and draw(sometimes),
        absent=not by_name and draw(sometimes),
    )


# Judging the answers


@dataclass(frozen=True)
class Judge:
    """Weighs one model's answers: what was heard, and whether a certificate excuses the sketch."""

    case: Case
    heard: Heard
    excused: bool = False

    def std(self, name: str, std: list[arb], tolerance: list[arb]) -> None:
        """√V for the standard deviation."""
        V = self.sound(name, hardness(tolerance, std))
        if V is not None:
            found = [arb(float(v)).sqrt() for v in V]
            self._weigh(f"√{name}", found, std, tolerance, std, [UNDERFLOW] * len(std))

    def values(
        self,
        name: str,
        expected: list[arb],
        tolerance: list[arb],
        size: list[arb],
        hard: float,
    ) -> None:
        """A mean, gp or bias²; ``size`` is what they are compared with."""
        values = self.sound(name, hard)
        if values is not None:
            found = [arb(float(v)) for v in values]
            self._weigh(name, found, expected, tolerance, size, [UNDERFLOW * s for s in size])

    def sound(self, name: str, hard: float) -> Array | None:
        """The answer, if there is one; it has no NaN, and a variance is not negative."""
        if name not in self.heard.answers:
            assert hard > BENIGN or self.case.extreme, f"{name} of a benign problem: {self.heard}"
            return None
        values = np.asarray(self.heard.answers[name])
        assert np.isfinite(values).all(), f"{name} = {values}: {self.heard.said()}"
        assert name == "mean" or (values >= 0).all(), f"{name} = {values}"
        return values

    def _weigh(self, name: str, found: list[arb], *columns: list[arb]) -> None:
        warned = bool(self.heard.cautions) and hardness(columns[1], columns[2]) > BENIGN
        for value, expected, tolerance, size, nothing in zip(found, *columns, strict=True):
            hopeless = bool(tolerance > HALF * size)
            off, limit = abs(value - expected), HALF * size if hopeless else tolerance
            right = bool(off <= limit + nothing)
            assert right or warned or (hopeless and self.excused), (
                f"{name} is {float(value):.6g} for {float(expected):.6g}: off by "
                f"{float(off / size):.2g}, allowed {float(limit / size):.2g}, relative; "
                f"{self.heard.said()}"
            )


def hardness(tolerance: list[arb], size: list[arb]) -> float:
    """The largest relative tolerance."""
    return max(float(t / s) for t, s in zip(tolerance, size, strict=True))


def mean_size(found: Prediction) -> list[arb]:
    """‖ℓ‖‖y‖, the size a mean can have."""
    y = norm(w.sqrt() * y for w, y in zip(found.w, found.y, strict=True))
    return [s * y for s in found.std]


def gp_size(found: Prediction) -> list[arb]:
    """The posterior variance and what cancels in it."""
    parts = zip(found.gp, found.k_xx, found.left, strict=True)
    return [abs(g) + k + c for g, k, c in parts]


# The tests


def examples(count: int, sketches: list[str]) -> Callable:
    """A test on ``count`` problems, always the same; a slow one on 34 times as many new ones."""

    def decorate(check: Callable[[Case], None]) -> Callable[[int], None]:
        def test(factor: int) -> None:
            profile = settings(
                max_examples=count * factor,
                deadline=None,
                derandomize=factor == 1,
                suppress_health_check=list(HealthCheck),
                print_blob=True,
            )
            profile(given(case=cases(sketches=sketches))(check))()

        test.__name__ = check.__name__
        test.__doc__ = check.__doc__
        slow = pytest.param(34, marks=pytest.mark.slow)
        return pytest.mark.parametrize("factor", [1, slow], ids=["few", "many"])(test)

    return decorate


def training(case: Case, rows: slice = slice(None)) -> tuple[tuple[Array, Array], dict[str, Array]]:
    """X and y, and the weights where there are some."""
    p = case.problem
    weight = {} if p.weight is None else {"sample_weight": p.weight[rows]}
    return (p.X[rows], p.y[rows]), weight


def fitted(case: Case, heard: Heard, estimator: Any, rows: slice = slice(None)) -> Any:
    """The fitted estimator, or None where it refused."""
    arguments, weight = training(case, rows)
    return heard.ask("fit", lambda: estimator.fit(*arguments, **weight))


def ask_kinds(case: Case, heard: Heard, model: Any, kinds: list[str]) -> None:
    X_new = case.problem.X_new
    for kind in kinds:
        question = model.predict if kind == "mean" else partial(model.variance, kind=kind)
        heard.ask(kind, partial(question, X_new))


def judge_model(judge: Judge, found: Prediction, allowed: Tolerance) -> None:
    """The mean, gp and bias² of the exact or of the sketched model."""
    hard = hardness(allowed.std, found.std)
    judge.values("mean", found.mean, allowed.mean, mean_size(found), hard)
    judge.values("gp", found.gp, allowed.gp, gp_size(found), hard)
    judge.values("bias2", found.bias2, allowed.gp, gp_size(found), hard)


@examples(60, ["identity"])
def test_the_exact_estimator_is_right(case: Case) -> None:
    """Mean, V1, gp and bias²."""
    r, heard = Reference(replace(case.problem, S=None)), Heard()
    allowed = tolerances(r)["exact"]
    model = fitted(case, heard, case.exact_estimator())
    if model is not None:
        ask_kinds(case, heard, model, ["mean", "v1", "gp", "bias2"])
    judge = Judge(case, heard)
    judge.std("v1", r.exact.std, allowed.std)
    judge_model(judge, r.exact, allowed)


def sketched_reference(case: Case, model: Any) -> Reference:
    """For the sketch that was given or drawn; for a full one where nothing was fitted."""
    S = case.problem.S
    if S is None:
        S = np.eye(case.n) if model is None else matrix_of(model.sketch_, case.n)
    return Reference(replace(case.problem, S=S))


def is_vacuous(model: Any) -> bool:
    """Whether the certificate says that V2 may be anything."""
    return model is not None and model.certificate_.vacuous


def judge_sketched(case: Case, heard: Heard, model: Any) -> None:
    """The sketched mean, V2, V3, gp and bias², for the sketch that was drawn.

    Where rounding in S G Sᵀ itself is as large as λ, a vacuous certificate says enough.
    """
    r = sketched_reference(case, model)
    if model is not None:
        ask_kinds(case, heard, model, ["mean", "v2", "v3", "gp", "bias2"])
    allowed = tolerances(r)
    judge = Judge(case, heard, excused=is_vacuous(model))
    judge.std("v2", r.v2.std, allowed["v2"].std)
    judge.std("v3", r.sketched.std, allowed["sketched"].std)
    judge_model(judge, r.sketched, allowed["sketched"])


@examples(70, [*NAMES, "array", "identity", "auto"])
def test_the_sketched_estimator_is_right(case: Case) -> None:
    """The sketched mean, V2, V3, gp and bias², in float64."""
    heard = Heard()
    judge_sketched(case, heard, fitted(case, heard, case.estimator(dtype="float64")))


@examples(10, [*NAMES, "array", "identity", "auto"])
def test_the_averaged_variance_is_right(case: Case) -> None:
    """V̄, from the average of the weights behind V2 and V3."""
    heard = Heard()
    model = fitted(case, heard, case.estimator(dtype="float64"))
    r = sketched_reference(case, model)
    if model is not None:
        ask_kinds(case, heard, model, ["vbar"])
    allowed = tolerances(r)
    both = zip(allowed["v2"].std, allowed["sketched"].std, strict=True)
    judge = Judge(case, heard, excused=is_vacuous(model))
    judge.std("vbar", [v.sqrt() for v in r.vbar], [a + b for a, b in both])


@examples(10, [*NAMES, "auto"])
def test_rows_may_come_in_two_parts(case: Case) -> None:
    """fit and partial_fit, with weights, give what the definitions give for all rows."""
    heard, estimator = Heard(), case.estimator(dtype="float64")
    first = slice(0, max(2, case.size))
    model = fitted(case, heard, estimator, first)
    rest = slice(first.stop, case.n)
    if model is not None and first.stop < case.n:
        arguments, weight = training(case, rest)
        model = heard.ask("partial_fit", lambda: estimator.partial_fit(*arguments, **weight))
    judge_sketched(case, heard, model)


@examples(40, [*NAMES, "array", "identity"])
def test_a_refined_variance_keeps_its_tolerance(case: Case) -> None:
    """kind="v1": |V − V1| ≤ tol·V1, or a sentence."""
    r, heard = Reference(replace(case.problem, S=None)), Heard()
    tol = [1e-1, 1e-3, 1e-6][case.seed % 3]
    model = fitted(case, heard, case.estimator())
    if model is not None:
        heard.ask("v1", lambda: model.variance(case.problem.X_new, kind="v1", tol=tol))
    near = hardness(tolerances(r)["exact"].std, r.exact.std) / tol  # of rounding to tol
    V = Judge(case, heard).sound("v1", near * BENIGN)
    if V is not None:
        for v, v1 in zip(V, r.exact.variance, strict=True):
            right = bool(difference(v1, v) <= tol * v1 + UNDERFLOW**2)
            assert right, f"{v} for {float(v1)}: {heard.said()}"


@examples(60, [*NAMES, "array", "identity", "auto"])
def test_bounds_hold(case: Case) -> None:
    """|√V1 − √V| ≤ bound after 0 to 5 steps, rounding included, in every precision."""
    r, heard = Reference(replace(case.problem, S=None)), Heard()
    model = fitted(case, heard, case.estimator(dtype=DTYPES[case.seed % 3]))
    if model is None:
        return
    for steps in range(6):
        question = partial(model.variance, kind="v2", refine=steps, return_bound=True)
        answer = heard.ask(f"{steps} steps", partial(question, case.problem.X_new))
        if answer is None:
            continue
        assert not np.isnan(answer).any()
        assert np.min(answer) >= 0
        for v, bound, std in zip(*answer, r.exact.std, strict=True):
            off = abs(std - arb(float(v)).sqrt())
            holds = np.isinf(bound) or bool(off <= arb(float(bound)) + UNDERFLOW)
            assert holds, f"{steps} steps: {v**0.5:.6g} ± {bound:.2g}, but √V1 = {float(std):.6g}"


@examples(30, [*NAMES, "array", "identity", "auto"])
def test_certificates_hold(case: Case) -> None:
    """|√V2 − √V1| ≤ relative·√V2 at every point, in every precision."""
    r, heard = Reference(replace(case.problem, S=None)), Heard()
    model = fitted(case, heard, case.estimator(dtype=DTYPES[case.seed % 3]))
    if model is None:
        return
    V = heard.ask("v2", lambda: model.variance(case.problem.X_new, kind="v2"))
    for method in ("trace", "norm"):
        certificate = heard.ask(method, partial(model.certificate, method))
        if V is None or certificate is None or np.isinf(certificate.relative):
            continue
        for v, exact_std in zip(V, r.exact.std, strict=True):
            std = arb(float(v)).sqrt()
            off = abs(std - exact_std)
            holds = bool(off <= arb(certificate.relative) * std + UNDERFLOW)
            assert holds, f"√V2 = {float(std):.6g}, √V1 = {float(exact_std):.6g}: {certificate}"


@examples(20, [*NAMES, "array", "identity"])
def test_the_exact_mean_of_a_sketched_estimator_is_right(case: Case) -> None:
    """solver="pcg": a residual of at most 1e-8 of y, so the mean is within 1e-6 of ‖ℓ‖‖y‖."""
    r, heard = Reference(replace(case.problem, S=None)), Heard()
    allowed = tolerances(r)["exact"]
    model = fitted(case, heard, case.estimator(solver="pcg"))
    if model is not None:
        heard.ask("mean", lambda: model.predict(case.problem.X_new))
    size = mean_size(r.exact)
    coarse = [t + 1e-6 * s for t, s in zip(allowed.mean, size, strict=True)]
    hard = hardness(allowed.std, r.exact.std)
    Judge(case, heard).values("mean", r.exact.mean, coarse, size, hard)
