"""Every figure of the paper: small versions run, are the same twice, and their checks can fail."""

from __future__ import annotations

import numpy as np
import pytest

from sketchridge import exact
from sketchridge.kernels import CubicSpline
from sketchridge.paper.base import FAILS, HOLDS, OPEN
from sketchridge.paper.campaigns import Strategy, errors
from sketchridge.paper.experiments import EXPERIMENTS
from sketchridge.paper.mixture import KERNEL, mixture
from sketchridge.paper.real import RealCampaign
from sketchridge.paper.sup_gap import DECAYS, GRID, variances
from sketchridge.paper.synthetic import SyntheticCampaign
from sketchridge.sketches import GaussianSketch

VERDICTS = {HOLDS, FAILS, OPEN}
CHEAP = [name for name in EXPERIMENTS if name.startswith("fig1") or name == "fig2"]


def test_every_figure_of_the_paper_is_there():
    assert list(EXPERIMENTS) == [f"fig1{c}" for c in "abcdef"] + [
        "fig2",
        "fig3-1",
        "fig3-2",
        "fig4",
        "fig5",
        "timing",
        "update",
    ]


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_full_runs_have_the_papers_repetitions_and_cells_are_distinct(name):
    experiment = EXPERIMENTS[name]
    for full in (False, True):
        cells = [str(sorted(cell.items())) for cell in experiment.cells(full)]
        assert len(set(cells)) == len(cells) > 0
    if name.startswith("fig1"):
        first = experiment.cells(True)[0]["value"]
        assert (
            sum(cell["count"] for cell in experiment.cells(True) if cell["value"] == first) == 200
        )
    if name.startswith("fig3"):
        assert len({cell["seed"] for cell in experiment.cells(True)}) == 30


@pytest.mark.parametrize("name", CHEAP)
def test_cheap_figures_run_and_are_the_same_twice(name):
    experiment = EXPERIMENTS[name]
    cells = [{**cell, "count": 2} for cell in experiment.cells(False)]
    rows = [row for cell in cells for row in experiment.run(cell, None)]
    assert rows == [row for cell in cells for row in experiment.run(cell, None)]
    claims = experiment.claims(rows)
    assert claims
    assert {claim.verdict for claim in claims} <= VERDICTS
    assert experiment.figure(rows).axes
    assert experiment.choices


@pytest.mark.parametrize("kernel", [CubicSpline(), DECAYS["gaussian"].kernel])
def test_variances_are_those_of_the_specification(kernel):
    X = np.random.default_rng(0).random((60, 1))
    S = GaussianSketch(4, 5).entries(range(4), range(60))
    v1, v2, vbar = variances(kernel, X, 4, 1e-2, 5)
    K = kernel(X, X) / 60
    k_x = kernel(X, GRID)
    np.testing.assert_allclose(v1, exact.v1(K, k_x, 1e-2), rtol=1e-8)
    np.testing.assert_allclose(v2, exact.v2(K, S, k_x, 1e-2), rtol=1e-6)
    np.testing.assert_allclose(vbar, exact.vbar(K, S, k_x, 1e-2), rtol=1e-6)


def test_the_rules_for_m_are_those_of_the_captions():
    polynomial = DECAYS["polynomial"]
    gaussian = DECAYS["gaussian"]
    assert polynomial.size(1000) == int(np.ceil(1.5 * 1000**0.2))
    assert gaussian.size(1000) == int(np.ceil(2 * np.sqrt(np.log(1000))))
    assert polynomial.size_of_power(1000, 1.0) == int(np.ceil(1.2 * 1000**0.2))
    assert gaussian.size_of_power(1000, 1.0) == int(np.ceil(1.2 * np.log(1000) ** 0.5))


def fake_gaps(varies, law):
    """Rows of two repetitions whose gap follows a law of the value that varies."""
    values = {"n": (50, 100, 1000), "c": (0.4, 1.0, 1.9), "sigma": (0.5, 1.0, 5.0)}[varies]
    return [
        {
            "value": v,
            "seed": s,
            "n": v if varies == "n" else 1000,
            "sigma": v if varies == "sigma" else 1.0,
            "lambda": 1e-3,
            "gap": (1 + 0.01 * s) * law(v),
            "gap_vbar": (0.1 + 0.001 * s) * law(v),
        }
        for v in values
        for s in (0, 1)
    ]


@pytest.mark.parametrize(
    ("name", "law", "expected"),
    [
        ("fig1a", lambda n: 1 / n, HOLDS),
        ("fig1a", lambda n: n**-0.5, FAILS),
        ("fig1c", lambda c: 1.0, HOLDS),
        ("fig1c", lambda c: 10**-c, FAILS),
        ("fig1e", lambda s: s**2, HOLDS),
        ("fig1e", lambda s: s, FAILS),
    ],
)
def test_checks_of_figure_1_can_hold_and_fail(name, law, expected):
    experiment = EXPERIMENTS[name]
    assert experiment.claims(fake_gaps(experiment.varies, law))[0].verdict == expected


@pytest.mark.parametrize(("factor", "expected"), [(1e-3, HOLDS), (1e6, OPEN)])
def test_a_constant_is_confirmed_or_left_open(factor, expected):
    assert EXPERIMENTS["fig1a"].claims(fake_gaps("n", lambda n: factor / n))[1].verdict == expected


def test_the_mixture_has_its_means_and_variances():
    """Failing with probability below 1e-6."""
    X = mixture(200_000, np.random.default_rng(0))
    assert abs(X.mean() - 2.75) < 0.05
    assert abs(X.var() - (2.75 + 2.25**2)) < 0.15
    assert KERNEL.bandwidth == 1


def test_timing_measures_every_way():
    experiment = EXPERIMENTS["timing"]
    rows = [row for n in (100, 200, 500) for row in experiment.run({"n": n, "repeats": 2}, None)]
    assert len({row["way"] for row in rows}) == 4
    assert all(row["seconds"] > 0 for row in rows)
    assert {claim.verdict for claim in experiment.claims(rows)} <= VERDICTS
    assert experiment.figure(rows).axes


def test_updates_are_timed_against_starting_again():
    experiment = EXPERIMENTS["update"]
    rows = [row for n in (200, 400, 800) for row in experiment.run({"n": n, "repeats": 2}, None)]
    assert {row["way"] for row in rows} == {"update", "from scratch"}
    assert experiment.claims(rows)[0].verdict in VERDICTS
    for power, expected in ((1.0, HOLDS), (2.0, FAILS)):
        made_up = [
            {"n": n, "way": way, "seconds": n**power}
            for way in ("update", "from scratch")
            for n in (100, 200, 400, 800)
        ]
        assert experiment.claims(made_up)[0].verdict == expected


@pytest.mark.parametrize("setting", [1, 2])
def test_synthetic_points_follow_the_paper(setting):
    problem = SyntheticCampaign(setting).problem(0, None)
    assert problem.X.shape == (5000, 1)
    assert problem.X_test.shape == (1000, 1)
    np.testing.assert_allclose(problem.y_test, -1 + 2 * problem.X_test[:, 0] ** 2)
    if setting == 2:
        assert (problem.X[:, 0] < 0.75).sum() == int(np.ceil(np.sqrt(5000)))


@pytest.mark.parametrize(
    "strategy",
    [
        Strategy("exact", "weighted", "v1"),
        Strategy("log", "weighted", "v2"),
        Strategy("auto", "top", "gp"),
    ],
)
def test_errors_fall_and_start_alike(strategy):
    problem = SyntheticCampaign(1).problem(0, None)
    options = {"initial": 50, "batch": 50, "rounds": 3, "seed": 0, "bandwidth": 0.25}
    found = errors(strategy, problem, **options)
    assert len(found) == 4
    assert found == errors(strategy, problem, **options)
    other = errors(Strategy(strategy.model, "uniform", strategy.score), problem, **options)
    assert abs(other[0] - found[0]) < 1e-9


def fake_campaign(experiment, advantage, rounds=50):
    """Rows in which every strategy but uniform sampling is better by an advantage."""
    rng = np.random.default_rng(0)
    rows = []
    for seed in range(5):
        for r in range(rounds + 1):
            common = 1 + rng.random()
            for name in experiment.strategies:
                better = 0 if "rand" in name or "uniform" in name else advantage
                rows.append(
                    {
                        "strategy": name,
                        "seed": seed,
                        "round": r,
                        "mse": common - better + 1e-3 * rng.random(),
                    }
                )
    return rows


@pytest.mark.parametrize(
    "experiment",
    [SyntheticCampaign(2), RealCampaign("flights"), RealCampaign("weather")],
    ids=lambda e: e.name,
)
def test_checks_of_campaigns_can_hold_and_fail(experiment):
    for advantage, expected in ((0.3, HOLDS), (-0.3, FAILS)):
        claims = experiment.claims(fake_campaign(experiment, advantage))
        against_uniform = [c for c in claims if "uniform" in c.name or "random" in c.name]
        assert {claim.verdict for claim in against_uniform} == {expected}
        assert experiment.figure(fake_campaign(experiment, advantage)).axes


def test_real_problems_are_paired_and_scaled(tmp_path):
    rng = np.random.default_rng(0)
    np.savez(
        tmp_path / "flights.npz",
        X=rng.integers(0, 9, (70_000, 8)).astype(np.int16),
        y=rng.integers(0, 99, 70_000),
    )
    problem = RealCampaign("flights").problem(3, tmp_path)
    assert problem.X.shape == (50_000, 8)
    assert problem.X_test.shape == (10_000, 8)
    again = RealCampaign("flights").problem(3, tmp_path)
    np.testing.assert_array_equal(problem.X, again.X)
    everything = np.concatenate([problem.X, problem.X_test])
    np.testing.assert_allclose(everything.std(axis=0), 1)


def test_missing_weather_is_said():
    with pytest.raises(FileNotFoundError, match="needs a folder"):
        RealCampaign("weather").problem(0, None)
