"""Verdicts follow from rows: with made-up rows every claim can hold and fail."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from sketchridge.paper.experiments import EXPERIMENTS
from sketchridge.paper.readings.quotes import QUOTES
from sketchridge.paper.readings.real import RealReading
from sketchridge.paper.readings.synthetic import SyntheticReading
from sketchridge.paper.runs.real import MODELS, WHOLE
from sketchridge.paper.runs.synthetic import STRATEGIES
from sketchridge.paper.statistics import Estimate, arithmetic, geometric, rate, share
from sketchridge.paper.verdicts import (
    DEPENDS,
    FAILS,
    HOLDS,
    OPEN,
    SAME,
    SHOWN,
    above_zero,
    all_of,
    below,
    by_reading,
    same,
    within,
)

KINDS = {HOLDS, FAILS, OPEN, SAME, DEPENDS, SHOWN}


def verdict_of(name, claims):
    return next(claim.kind for claim in claims if name in claim.name)


# Statistics and verdicts


def test_estimates():
    assert arithmetic([2.0]) == Estimate(2.0, -np.inf, np.inf)
    found = arithmetic([1.0, 2.0, 3.0])
    assert abs(found.high - found.mean - 4.302652729911275 / np.sqrt(3)) < 1e-9
    assert arithmetic([1.0, 2.0, 3.0], 0.99).high > found.high
    assert geometric([1.0, 100.0]).mean == pytest.approx(10)
    assert rate([1, 10, 100], [5, 0.5, 0.05]).mean == pytest.approx(-1)
    assert rate([1, 10, 100], [2, 2, 2]) == Estimate(0.0, 0.0, 0.0)
    assert share(0, 20).low == 0
    assert 0.1 < share(0, 20).high < 0.2
    assert str(Estimate(1.23456, 1, 2)) == "1.23 [1, 2]"
    assert Estimate(1.0, 0.5, 2.0) * -1 == Estimate(-1.0, -2.0, -0.5)


def test_an_interval_over_n_respects_the_steps_of_m():
    """Means that go in steps are scatter about the line, however many repetitions they are of."""
    n = np.geomspace(50, 1000, 12)
    stairs = 1 / np.array([2, 2, 2, 4, 4, 4, 8, 8, 8, 16, 16, 16])
    found = rate(n, stairs)
    assert found.high - found.low > 0.1


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (-2, -1, HOLDS),
        (1, 2, FAILS),
        (-1, 1, OPEN),
        (-0.1, 0.1, f"{SAME} 10%"),
    ],
)
def test_comparisons(low, high, expected):
    assert same(Estimate((low + high) / 2, low, high), 0.2, "10%") == expected


def test_other_verdicts():
    assert below(Estimate(0, -1, 1), 1) == HOLDS
    assert within(Estimate(2, 1.9, 2.1), 1, 3) == HOLDS
    assert within(Estimate(2, 1.9, 2.1), 3, 4) == FAILS
    assert within(Estimate(2, 1.9, 3.1), 1, 3) == OPEN
    assert [above_zero(Estimate(0, *e)) for e in ((1, 2), (0, 0), (-1, 1))] == [HOLDS, FAILS, OPEN]
    assert all_of([HOLDS, FAILS, OPEN]) == FAILS
    assert all_of([HOLDS, HOLDS]) == HOLDS
    assert all_of([HOLDS, OPEN]) == OPEN
    assert by_reading({"a": HOLDS, "b": FAILS}) == DEPENDS
    assert by_reading({"a": HOLDS, "b": OPEN}) == OPEN
    assert by_reading({"a": SAME, "b": SAME}) == SAME


# Figure 1


def fake_gaps(experiment, law, *, scatter=0.01):
    """Rows of two repetitions whose gaps follow a law of (value, m, λ)."""
    decay = experiment.maker
    values = {"n": (50, 100, 200, 400, 1000), "c": (0.4, 0.7, 1.0, 1.9), "sigma": (0.5, 1.0, 5.0)}
    rows = []
    for kernel, value, seed, (reading, lam), m_is in product(
        {"polynomial": ("cubic spline", "periodic Sobolev"), "gaussian": ("Gaussian",)}[
            decay.decay
        ],
        values[decay.varies],
        (0, 1),
        (("optimal", 1e-3), ("fixed", 1e-2)),
        ("rule", "fixed"),
    ):
        gap = law(value) * (1 + scatter * seed)
        n = value if decay.varies == "n" else 1000
        rows.append(
            {
                "kernel": kernel,
                "lambda_is": reading,
                "m_is": m_is,
                "value": value,
                "seed": seed,
                "n": n,
                "m": 6,
                "lambda": lam,
                "s_lambda": 3,
                "sup_v1": 1.0,
                "gap_v2": gap,
                "gap_v3": gap,
                "gap_vbar": gap / 3,
                "a1_low": 0.8,
                "a1_high": 1.2,
                "a1_tail": 0.9,
            }
        )
        rows[-1]["value"] = value
    if decay.varies == "n":
        for n in (10**4, 10**6, 10**8, 10**10):
            size = {"polynomial": n**0.2, "gaussian": np.log(n) ** 0.5}[decay.decay]
            spectrum = {"kernel": rows[0]["kernel"], "lambda_is": "spectrum", "m_is": "none"}
            rows.append({**spectrum, "value": n, "n": n, "s_lambda": size})
    return rows


@pytest.mark.parametrize("name", ["fig1a", "fig1b"])
def test_rates_can_hold_fail_and_be_those_of_the_theorem(name):
    experiment = EXPERIMENTS[name]
    fast = experiment.claims(fake_gaps(experiment, lambda n: 1 / n))
    slow = experiment.claims(fake_gaps(experiment, lambda n: n**-0.01))
    assert verdict_of("rate 1/n", fast) == HOLDS
    assert verdict_of("rate 1/n", slow) == FAILS
    assert verdict_of("the scaling", fast) == HOLDS
    assert verdict_of("the scaling", slow) == FAILS
    assert verdict_of("bound of the example", fast) == HOLDS
    assert verdict_of("bound of the example", slow) == FAILS
    assert verdict_of("consistent", fast) == HOLDS
    assert verdict_of("s_λ", fast) == HOLDS
    assert verdict_of("A1 (ii)", fast) == HOLDS
    assert verdict_of("averaged", fast) == HOLDS


def test_an_assumption_that_never_holds_is_said():
    experiment = EXPERIMENTS["fig1b"]
    rows = [{**r, "a1_low": 0.1} for r in fake_gaps(experiment, lambda n: 1 / n)]
    assert verdict_of("A1 (i)", experiment.claims(rows * 10)) == FAILS
    good = fake_gaps(experiment, lambda n: 1 / n) * 30
    assert verdict_of("A1 (i)", experiment.claims(good)) == HOLDS


@pytest.mark.parametrize(
    ("law", "expected"),
    [
        (lambda c: max(1 - c, 0) + 1e-3, HOLDS),  # flat from c = 1 on, on both axes
        (lambda c: 2 - c, FAILS),
        (lambda c: 10 ** (-8 * c), DEPENDS),
    ],
)
def test_no_gain_beyond_one_depends_on_the_axes(law, expected):
    experiment = EXPERIMENTS["fig1c"]
    assert verdict_of("no gain", experiment.claims(fake_gaps(experiment, law))) == expected


@pytest.mark.parametrize(("power", "linear", "theory"), [(1, HOLDS, FAILS), (2, FAILS, HOLDS)])
def test_linear_and_quadratic_growth_in_the_noise_are_told_apart(power, linear, theory):
    experiment = EXPERIMENTS["fig1e"]
    claims = experiment.claims(fake_gaps(experiment, lambda s: s**power))
    assert verdict_of("almost linearly", claims) == linear
    assert verdict_of("as the theory says", claims) == theory


# Campaigns


def fake_synthetic(setting, factor, minority):
    """Errors of all but random sampling are those of random sampling times a factor."""
    rng = np.random.default_rng(0)
    rows = []
    for seed, r in product(range(12), range(51)):
        common = rng.lognormal(-3, 0.1)
        for name in STRATEGIES:
            better = 1 if "rand" in name else factor
            row = {"strategy": name, "seed": seed, "round": r}
            row["mse"] = common * better * rng.lognormal(0, 0.01)
            row["minority"] = int(r if "rand" in name else minority * r) + seed % 2
            rows.append(row if setting == 2 else {k: v for k, v in row.items() if k != "minority"})
    return rows


def test_claims_of_setting_1_can_hold_fail_and_tie():
    experiment = SyntheticReading(1)
    better = [
        {**r, "mse": r["mse"] * (0.5 if r["strategy"].startswith("rsKRR+V2") else 1)}
        for r in fake_synthetic(1, 1.0, 0)
    ]
    assert verdict_of("smallest", experiment.claims(better)) == HOLDS
    assert verdict_of("smallest", experiment.claims(fake_synthetic(1, 1.0, 0))) == FAILS
    assert verdict_of("as fast", experiment.claims(fake_synthetic(1, 1.0, 0))) == HOLDS
    assert verdict_of("as fast", experiment.claims(fake_synthetic(1, 2.0, 0))) == FAILS
    assert experiment.figure(better).axes


def test_claims_of_setting_2_can_hold_and_fail():
    experiment = SyntheticReading(2)
    good = experiment.claims(fake_synthetic(2, 0.5, 3))
    bad = experiment.claims(fake_synthetic(2, 2.0, 0.1))
    for name in ("faster convergence", "lower MSE", "the minority is selected"):
        assert verdict_of(name, good) == HOLDS
        assert verdict_of(name, bad) == FAILS
    assert verdict_of("comparable", good) == HOLDS
    assert verdict_of("extra bias", good) == SAME
    assert experiment.figure(fake_synthetic(2, 0.5, 3)).axes


def fake_real(change):
    """V2's error is uniform sampling's times a factor; errors fall towards that of the pool."""
    rng = np.random.default_rng(0)
    rows = []
    for seed, model in product(range(5), MODELS):
        noise = rng.normal(0, 0.001, 30)
        for name in ("V2", "uniform", "V2-top", "gp"):
            factor = 1 + change if name == "V2" else 1
            for r in range(25):
                rmse = factor * (1 + 0.2 * np.exp(-r / 4)) + noise[r]
                row = {"strategy": name, "model": model, "seed": seed, "round": r, "m": 9}
                rows.append({**row, "rmse": rmse})
        whole = {"strategy": WHOLE, "model": model, "seed": seed, "round": 25, "m": 9, "rmse": 1.0}
        rows.append(whole)
    return rows


@pytest.mark.parametrize("source", ["flights", "weather"])
def test_claims_of_real_data_can_hold_fail_and_tie(source):
    experiment = RealReading(source)
    for change, expected in ((-0.05, HOLDS), (0.05, FAILS), (0.0, SAME)):
        claims = experiment.claims(fake_real(change))
        assert verdict_of("the paper's m", claims) == expected
        assert verdict_of("rounds to the error", claims) == expected
        assert verdict_of("first rounds", claims) == expected
    names = set(experiment.figures(fake_real(0.0)))
    assert names == {experiment.name, f"{experiment.name}-learned", f"{experiment.name}-automatic"}


# Times and sketches


def test_orders_of_growth_can_hold_and_fail():
    for power, expected in ((1.0, HOLDS), (2.0, FAILS)):
        rows = [
            {"varies": x, "n": 9, "m": 9, "new": 9, x: v, "way": way, "seconds": v**power * 1e-6}
            for x, v, way in product(
                ("n", "m", "new"), (100, 200, 400, 800), ("update", "from scratch")
            )
        ]
        assert verdict_of("O(m n n_s)", EXPERIMENTS["update"].claims(rows)) == expected
        assert EXPERIMENTS["update"].figure(rows).axes
    for ratio, advantage, papers in ((30, HOLDS, HOLDS), (3, HOLDS, FAILS), (0.5, FAILS, FAILS)):
        rows = [
            {"n": n, "way": f"{v}, {how}", "seconds": (ratio if v == "V1" else 1) * n**2 * 1e-8}
            for n, v, how, _ in product(
                (500, 1000, 2000), ("V1", "V2"), ("printed formula", "this library"), range(2)
            )
        ]
        claims = EXPERIMENTS["timing"].claims(rows)
        assert verdict_of("practical advantage", claims) == advantage
        assert verdict_of("4.654", claims) == papers
        assert verdict_of("order of growth", claims) == HOLDS


@pytest.mark.parametrize(("needed", "expected"), [(1.25, SAME), (2.0, FAILS), (7.0, HOLDS)])
def test_hadamard_sketches_may_need_more_rows(needed, expected):
    rows = [
        {
            "kernel": kernel,
            "sketch": sketch,
            "multiple": x,
            "seed": seed,
            "s_lambda": 10,
            "relative_gap": 1e-3 if x >= (needed if sketch == "Hadamard" else 1.25) else 1.0,
            "a1": 1,
        }
        for kernel, sketch, x, seed in product(
            ("cubic spline", "Gaussian"), ("Gaussian", "Hadamard"), (1.0, 1.25, 2.0, 7.0), (0, 1)
        )
    ]
    claims = EXPERIMENTS["sketches"].claims(rows)
    assert verdict_of("Hadamard", claims) == expected
    assert verdict_of("is enough", claims) == HOLDS
    assert EXPERIMENTS["sketches"].figure(rows).axes


def test_the_mixture_is_judged_by_falling_intervals():
    def rows(medians):
        return [
            {
                "second_is": reading,
                "m": m,
                "seed": s,
                "kind": "error",
                "median": value * (1 + 0.01 * s),
                "far": 0,
            }
            for reading in ("standard deviation", "variance")
            for m, value in zip((20, 25, 30), medians, strict=True)
            for s in range(5)
        ]

    claims = EXPERIMENTS["fig2"].claims
    assert claims(rows((0.5, 0.1, 0.01)))[0].verdict == HOLDS
    assert claims(rows((0.1, 0.5, 0.01)))[0].verdict == FAILS


# The whole


def test_every_sentence_that_is_quoted_is_judged():
    used = set()
    for name, experiment in EXPERIMENTS.items():
        if name.startswith("fig1"):
            claims = experiment.claims(fake_gaps(experiment, lambda v: 1 / v))
        elif name == "fig3-1":
            claims = experiment.claims(fake_synthetic(1, 1.0, 0))
        elif name == "fig3-2":
            claims = experiment.claims(fake_synthetic(2, 1.0, 1))
        elif name in ("fig4", "fig5"):
            claims = experiment.claims(fake_real(0.0))
        else:
            continue
        used |= {claim.sentence for claim in claims}
        assert {claim.kind for claim in claims} <= KINDS
        assert all(claim.statistic and claim.measured for claim in claims)
    elsewhere = {"cost", "mn", "update", "times", "advantage", "similar", "hadamard", "only_s"}
    left = {key for key, (_, sentence) in QUOTES.items() if sentence not in used} - elsewhere
    assert left == set()
