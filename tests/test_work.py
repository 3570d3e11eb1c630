"""How many kernel values are computed: what is symmetric is made by halves, and an intercept costs
no further pass over the data."""

from __future__ import annotations

import pytest
from helpers import normal, targets

from sketchridge import SketchedKernelRidge
from sketchridge.backends import NumpyTiles
from sketchridge.kernels import Radial

N, T = 300, 20


class Counted:
    """exp(−s/2), counting the values it has made."""

    __name__ = "counted"

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, s, xp):
        self.count += s.size
        s *= -0.5
        return xp.exp(s, out=s)

    def spent(self, function) -> int:
        before = self.count
        function()
        return self.count - before


def model(counted: Counted, **changes) -> SketchedKernelRidge:
    options = {"bandwidth": 1.0, "alpha": 1.0, "sketch_size": 20, "dtype": "float64"}
    options |= {"noise_variance": 1.0, "random_state": 0} | changes
    backend = NumpyTiles(tile=16, workers=1)
    return SketchedKernelRidge(Radial(counted), backend=backend, **options)


@pytest.mark.parametrize("sketch", ["gaussian", "rademacher", "srht"])
def test_a_dense_sketch_is_applied_to_half_of_the_kernel_matrix(sketch):
    """All n² values were made before, whatever n."""
    counted = Counted()
    X, y = normal(N, 2), targets(N)[:, 0]
    spent = counted.spent(lambda: model(counted, sketch=sketch).fit(X, y))
    assert N * N / 2 < spent < 0.6 * N * N


@pytest.mark.parametrize("sketch", ["gaussian", "rpcholesky"])
def test_an_intercept_costs_no_further_pass(sketch):
    """V2 with an intercept took three passes over the data where two were enough without."""
    counted = Counted()
    X, y, X_new = normal(N, 2), targets(N)[:, 0], normal(T, 2, seed=1)
    with_one, without = (
        model(counted, sketch=sketch, fit_intercept=one).fit(X, y) for one in (True, False)
    )
    spent = counted.spent(lambda: with_one.variance(X_new, "v2"))
    assert spent == counted.spent(lambda: without.variance(X_new, "v2")) <= 2 * N * T
