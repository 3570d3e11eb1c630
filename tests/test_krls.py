"""The numbers that the R package KRLS (1.7-0) prints in its vignette "Quickstart"."""

from __future__ import annotations

import numpy as np
import pytest
from problems import fixed, full
from scipy.special import ndtri

Array = np.ndarray
LAMBDA, SIGMA = 0.4049892, 2.45606  # printed; its kernel is exp(−‖x − z‖²/σ)


class FromR:
    """The random numbers of R after set.seed: Mersenne Twister, and normal ones by inversion."""

    def __init__(self, seed: int) -> None:
        numbers = [seed]
        for _ in range(675):
            numbers.append((69069 * numbers[-1] + 1) % 2**32)
        self.twister = np.random.MT19937()
        key = np.array(numbers[-624:], dtype=np.uint32)
        self.twister.state = {"bit_generator": "MT19937", "state": {"key": key, "pos": 624}}

    def runif(self, n: int, low: float = 0.0, high: float = 1.0) -> Array:
        return low + (high - low) * self.twister.random_raw(n) * 2.3283064365386963e-10

    def rnorm(self, n: int) -> Array:
        first, second = self.runif(2 * n).reshape(n, 2).T
        return ndtri((np.floor(2**27 * first) + second) / 2**27)


def test_the_numbers_are_those_of_r():
    np.testing.assert_allclose(FromR(1).runif(2), [0.2655087, 0.3721239], atol=5e-8)
    np.testing.assert_allclose(FromR(1).rnorm(2), [-0.6264538, 0.1836433], atol=5e-8)


@pytest.mark.parametrize("make", [fixed, lambda **o: full(sketch_size=200, **o)])
def test_the_quickstart_of_krls(make):
    """It divides x and y by their spread and takes RSS/n for the noise variance."""
    r = FromR(1)
    x1, x2 = r.runif(200, -2, 2), r.runif(200, -2, 2)
    y = np.sin(x1) + 0.5 * x2 * (x1 > 0) + 0.3 * r.rnorm(200)
    X = np.column_stack([x1, x2])
    unit = y.std(ddof=1) / X.std(axis=0, ddof=1)
    points = (X - X.mean(axis=0)) / X.std(axis=0, ddof=1)
    values = (y - y.mean()) / y.std(ddof=1)
    model = make(bandwidth=np.sqrt(SIGMA / 2), alpha=LAMBDA, noise_variance=1.0)
    left = values - model.fit(points, values).predict(points)
    effects = model.marginal_effects()
    printed = {"rtol": 0, "atol": 1e-6}  # of numbers with seven digits, λ and σ among them
    np.testing.assert_allclose(model.effective_dof_, 14.25015, atol=1e-5)
    np.testing.assert_allclose(1 - left.var() / values.var(), 0.8755594, **printed)
    np.testing.assert_allclose(unit * effects.effect, [0.5184107, 0.2611639], **printed)
    error = unit * effects.std_error * np.sqrt(np.mean(left**2))
    np.testing.assert_allclose(error, [0.02599911, 0.02853130], **printed)
    quartiles = np.quantile(unit * model.gradient(points), [0.25, 0.5, 0.75], axis=0)
    expected = [[0.19724353, 0.07743713], [0.4375873, 0.2845457], [0.7898796, 0.4579881]]
    np.testing.assert_allclose(quartiles, expected, **printed)
