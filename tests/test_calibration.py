"""calibration.py against definitions, scipy.stats and numerical integrals."""

from __future__ import annotations

import doctest

import matplotlib
import numpy as np
import pytest
from helpers import assert_close, normal
from scipy import stats
from scipy.integrate import quad

from sketchridge import calibration as module
from sketchridge.calibration import (
    Calibration,
    calibrate,
    coverage,
    coverage_by_spread,
    crps,
    interval_score,
    negative_log_density,
    pit,
    pit_from_quantiles,
)
from sketchridge.plotting import new_figure, plot_calibration

matplotlib.use("Agg")
from matplotlib import pyplot as plt

NUS = [1.5, 3.0, 30.0, np.inf]


def law(nu: float, mean: float, scale: float):
    return stats.norm(mean, scale) if np.isinf(nu) else stats.t(nu, mean, scale)


def test_examples():
    assert doctest.testmod(module).failed == 0


@pytest.mark.parametrize("nu", NUS)
@pytest.mark.parametrize("y", [-4.0, 0.0, 0.7])
def test_crps_is_its_integral(nu, y):
    of = law(nu, 0.3, 1.7)
    below = quad(lambda u: of.cdf(u) ** 2, -np.inf, y)[0]
    above = quad(lambda u: of.sf(u) ** 2, y, np.inf)[0]
    found = crps(np.array([y]), np.array([0.3]), np.array([1.7]), nu)
    np.testing.assert_allclose(found, below + above, rtol=1e-6)


def test_crps_of_a_student_t_tends_to_that_of_a_gaussian():
    y, zero, one = normal(5, 1), np.zeros((5, 1)), np.ones((5, 1))
    np.testing.assert_allclose(crps(y, zero, one, 1e5), crps(y, zero, one), rtol=1e-3)


def test_crps_without_a_mean_is_refused():
    with pytest.raises(ValueError, match="more than 1 degree of freedom"):
        crps(np.zeros(1), np.zeros(1), np.ones(1), 1.0)


@pytest.mark.parametrize("nu", NUS)
def test_density_and_pit_are_those_of_scipy(nu):
    y, mean, scale = normal(6, 2), normal(6, 2, seed=1), np.exp(normal(6, 2, seed=2))
    of = law(nu, mean, scale)
    assert_close(negative_log_density(y, mean, scale, nu), -of.logpdf(y))
    assert_close(pit(y, mean, scale, nu), of.cdf(y))


def test_interval_score_is_its_definition():
    y = np.array([-2.0, 0.0, 1.0, 1.5])
    low, high = np.full(4, -1.0), np.ones(4)
    expected = [2 + 40 * 1.0, 2, 2, 2 + 40 * 0.5]
    np.testing.assert_allclose(interval_score(y, low, high, 0.95), expected)


def test_the_true_quantiles_have_the_least_interval_score():
    y = stats.norm.ppf((np.arange(4000) + 0.5) / 4000)
    halves = np.linspace(1.0, 3.0, 41)
    scores = [interval_score(y, -h, h, 0.9).mean() for h in halves]
    assert halves[np.argmin(scores)] == pytest.approx(stats.norm.ppf(0.95), abs=0.05)


def test_coverage_counts_the_limits_themselves():
    assert coverage(np.array([0.0, 1.0, 2.0]), np.zeros(3), np.ones(3)) == pytest.approx(2 / 3)


@pytest.mark.parametrize("t", [3, 10, 101])
def test_coverage_by_spread_averages_to_coverage(t):
    y, half = normal(t, 1)[:, 0], np.exp(normal(t, 1, seed=1)[:, 0])
    found = coverage_by_spread(y, -half, half)
    assert len(found) == min(t, 10)
    sizes = [len(part) for part in np.array_split(np.arange(t), len(found))]
    assert np.average(found, weights=sizes) == pytest.approx(coverage(y, -half, half))


def test_pit_from_quantiles_is_linear_between_and_halfway_beyond():
    quantiles = np.tile([[0.0], [1.0], [3.0]], 4)
    found = pit_from_quantiles(
        np.array([-9.0, 0.5, 2.0, 9.0]), quantiles, np.array([0.1, 0.5, 0.9])
    )
    np.testing.assert_allclose(found, [0.05, 0.3, 0.7, 0.95])


# The report


class Model:
    """Normal of the standard deviation in the first column of X, times a factor."""

    def __init__(self, factor: float = 1.0, targets: int = 0):
        self.factor = factor
        self.targets = targets

    def _std(self, X):
        std = self.factor * np.asarray(X)[:, 0]
        return np.tile(std[:, None], self.targets) if self.targets else std

    def predict_interval(self, X, confidence_level=0.95):
        half = stats.norm.ppf((1 + confidence_level) / 2) * self._std(X)
        return -half, half


class Full(Model):
    def predict(self, X):
        return 0 * self._std(X)

    def predictive_variance(self, X):
        return self._std(X) ** 2


@pytest.fixture
def data() -> tuple[np.ndarray, np.ndarray]:
    """y is an even sample of the standard normal times its spread, so nothing is random."""
    t = 2000
    order = np.random.default_rng(0).permutation(t)
    z = stats.norm.ppf((np.arange(t) + 0.5) / t)[order]
    spread = np.linspace(0.5, 2, t)
    return spread[:, None], spread * z


def test_an_honest_model_is_found_so(data):
    report = calibrate(Full(), *data)
    np.testing.assert_allclose(report.coverage, report.levels, atol=2e-3)
    np.testing.assert_allclose(report.histogram(), 0.1, atol=2e-3)
    assert report.crps == pytest.approx(np.mean(data[0]) / np.sqrt(np.pi), rel=0.03)
    assert report.by_spread.min() > 0.85  # 200 each: below with probability 1e-7
    assert report.t == 2000


def test_a_model_too_narrow_is_found_so(data):
    report = calibrate(Model(0.5), *data)
    assert (report.coverage < report.levels - 5 * report.errors).all()
    assert min(report.histogram()[[0, -1]]) > 0.2
    assert report.crps is None
    assert report.log_density is None


@pytest.mark.parametrize("y", [np.zeros(3), np.array([1.0, -2.0, 0.0])], ids=["right", "wrong"])
def test_a_model_without_doubt_has_scores_too(y):
    report = calibrate(Full(0.0), np.ones((3, 1)), y)
    assert report.crps == pytest.approx(np.abs(y).mean())
    assert np.isfinite(report.log_density)
    assert (report.log_density > 100) == y.any()


def test_targets_are_pooled(data):
    X, y = data
    one, two = calibrate(Full(), X, y), calibrate(Full(targets=2), X, np.column_stack([y, -y]))
    np.testing.assert_allclose(two.coverage, one.coverage, atol=1e-12)
    np.testing.assert_allclose(two.score, one.score)
    assert two.crps == pytest.approx(one.crps)


def test_levels_are_sorted_and_the_nearest_to_95_is_the_main_one(data):
    report = calibrate(Model(), *data, levels=(0.9, 0.5))
    np.testing.assert_array_equal(report.levels, [0.5, 0.9])
    assert report.main_level == 0.9


@pytest.mark.parametrize("levels", [(), (0.0,), (0.5, 1.0), (np.nan,)])
def test_levels_outside_are_refused(data, levels):
    with pytest.raises(ValueError, match="strictly between 0 and 1"):
        calibrate(Model(), *data, levels=levels)


def test_y_of_another_shape_is_refused(data):
    with pytest.raises(ValueError, match=r"shape \(2000,\), but y has \(1999,\)"):
        calibrate(Model(), data[0], data[1][1:])


@pytest.mark.parametrize("wrong", [np.nan, np.inf, None])
def test_what_was_not_observed_is_refused(data, wrong):
    """It counted as outside of its interval."""
    X, y = data
    y = y.astype(object)
    y[3] = wrong
    with pytest.raises(ValueError, match="y is missing or infinite in row 3"):
        calibrate(Model(), X, y)


def test_the_report_reads_as_a_table(data):
    text = str(calibrate(Full(), *data, levels=(0.5, 0.95)))
    lines = text.splitlines()
    assert lines[0] == "2,000 observations"
    assert lines[2].split()[:2] == ["50.0%", "50.0%"]
    assert lines[4].startswith("95% by predicted spread, narrow to wide: ")
    assert "CRPS" in lines[5]
    assert isinstance(calibrate(Full(), *data), Calibration)


# The picture


def test_the_picture_shows_the_report(data):
    report = calibrate(Full(), *data)
    levels, tenths, shares = plot_calibration(report)
    x, y = levels.lines[-1].get_data()
    np.testing.assert_array_equal(x, report.levels)
    np.testing.assert_array_equal(y, report.coverage)
    np.testing.assert_array_equal(tenths.lines[-1].get_ydata(), report.by_spread)
    heights = [bar.get_height() for bar in shares.patches]
    np.testing.assert_allclose(heights, 10 * report.histogram())
    assert levels.get_legend_handles_labels()[1] == ["expected", "found"]
    levels.figure.canvas.draw()
    plt.close("all")


@pytest.mark.parametrize("t", [1, 4])
def test_the_picture_of_few_points_on_given_axes(t):
    report = calibrate(Model(), np.ones((t, 1)), np.zeros(t))
    figure, axes = new_figure(3)
    assert plot_calibration(report, axes=axes) == axes
    figure.canvas.draw()
    assert len(report.by_spread) == t
