"""What the benchmarks compare with, and on which data: dense V1, other packages, data sets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import common
import numpy as np
from settings import exact_ridge
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF

from sketchridge.paper.datasets import load_flights

__all__ = [
    "DATA",
    "SETS",
    "Attempt",
    "Data",
    "DataSet",
    "once",
    "one_thread",
    "run_dense",
    "run_gpr",
    "run_gpytorch",
    "stubbornly",
]

Array = np.ndarray
DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
ATTEMPTS = 3
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1"}
FLIGHT_ROWS = 20_000
CLUSTERS = 20


@dataclass(frozen=True)
class Data:
    """Training rows, targets and the points whose variances are asked for."""

    X: Array
    y: Array
    X_test: Array


@dataclass(frozen=True)
class DataSet:
    """A source of rows, with the Gaussian kernel's bandwidth and the penalty λ it is used with."""

    rows: Callable[[int, Path], Array]
    bandwidth: float
    lam: float

    def problem(self, n: int, points: int, folder: Path) -> Data:
        """n training rows and so many test points, from the same source."""
        X = self.rows(n + points, folder)
        X_test = X[:points]
        X = X[points:]
        return Data(
            X, np.sin(X.sum(axis=1)) + 0.1 * np.random.default_rng(1).standard_normal(n), X_test
        )


def uniform_rows(count: int, _: Path) -> Array:
    return np.random.default_rng(0).uniform(size=(count, 5))


def clustered_rows(count: int, _: Path) -> Array:
    """Clusters with centers 3·N(0, I) and spread 0.15."""
    rng = np.random.default_rng(0)
    centers = 3 * rng.standard_normal((CLUSTERS, 5))
    return centers[rng.integers(CLUSTERS, size=count)] + 0.15 * rng.standard_normal((count, 5))


def flight_rows(count: int, folder: Path) -> Array:
    """The first of 20,000 flights drawn with a fixed seed, columns with mean 0 and deviation 1."""
    if count > FLIGHT_ROWS:
        raise ValueError(
            f"{count} rows were asked for, but the flights are {FLIGHT_ROWS}: give smaller sizes."
        )
    X, _ = load_flights(folder if folder.is_dir() else None)
    X = X[np.random.default_rng(0).choice(len(X), size=FLIGHT_ROWS, replace=False)].astype(float)
    return ((X - X.mean(axis=0)) / X.std(axis=0))[:count]


SETS = {
    "uniform": DataSet(uniform_rows, bandwidth=0.5, lam=1e-4),
    "flights": DataSet(flight_rows, bandwidth=3.6, lam=1e-5),
    "clustered": DataSet(clustered_rows, bandwidth=1.0, lam=1e-4),
}


def run_dense(data: Data, *, bandwidth: float, lam: float) -> tuple[Any, Array]:
    """V1 for unit noise by a dense factorization."""
    model = exact_ridge(bandwidth=bandwidth, alpha=len(data.X) * lam, noise_variance=1.0)
    model.fit(data.X, data.y)
    return model, model.variance(data.X_test, kind="v1")


def run_gpr(data: Data, *, bandwidth: float, lam: float) -> tuple[Any, Array]:
    model = GaussianProcessRegressor(RBF(bandwidth), alpha=len(data.X) * lam, optimizer=None).fit(
        data.X, data.y
    )
    return model, model.predict(data.X_test, return_std=True)[1] ** 2


def run_gpytorch(data: Data, *, love: bool, bandwidth: float, lam: float) -> tuple[Any, Array]:
    """The exact variance, or LOVE with its defaults.

    The exact one is by Cholesky, which is faster here than GPyTorch's conjugate gradients.
    """
    import gpytorch
    import torch

    class Model(gpytorch.models.ExactGP):
        def __init__(self, X: Any, y: Any, likelihood: Any) -> None:
            super().__init__(X, y, likelihood)
            self.mean_module = gpytorch.means.ZeroMean()
            self.covar_module = gpytorch.kernels.RBFKernel()

        def forward(self, X: Any) -> Any:
            return gpytorch.distributions.MultivariateNormal(
                self.mean_module(X), self.covar_module(X)
            )

    likelihood = gpytorch.likelihoods.GaussianLikelihood().double()
    model = Model(torch.from_numpy(data.X), torch.from_numpy(data.y), likelihood).double()
    model.covar_module.lengthscale = bandwidth
    likelihood.noise = len(data.X) * lam
    model.eval()
    how = (
        gpytorch.settings.fast_pred_var()
        if love
        else gpytorch.settings.max_cholesky_size(len(data.X))
    )
    with torch.no_grad(), how:
        posterior = model(torch.from_numpy(data.X_test))
        return (model, posterior.mean), posterior.variance.numpy()


@dataclass(frozen=True)
class Attempt:
    """What a process of its own returned (nothing if it died), and what went wrong on the way."""

    result: dict[str, Any]
    note: str = ""
    default_threads: bool = True


def once(function: Callable[..., Any], *arguments: Any) -> Attempt:
    try:
        return Attempt(common.isolated(function, *arguments))
    except common.ChildFailed as failure:
        return Attempt({}, f"died in 1 attempt ({failure})")


def one_thread(function: Callable[..., Any], *arguments: Any) -> Attempt:
    """With one BLAS thread: it loses little where other work disturbs threads that must wait."""
    try:
        result = common.isolated(function, *arguments, environment=ONE_THREAD)
        return Attempt(result, "with one BLAS thread", default_threads=False)
    except common.ChildFailed as failure:
        return Attempt(
            {}, f"died in 1 attempt with one BLAS thread ({failure})", default_threads=False
        )


def stubbornly(function: Callable[..., Any], *arguments: Any) -> Attempt:
    """More attempts, and then one BLAS thread, where the process dies.

    OpenBLAS's threaded Cholesky can kill it.
    """
    for _ in range(ATTEMPTS):
        try:
            return Attempt(common.isolated(function, *arguments))
        except common.ChildFailed as failure:
            died = f"died in each of {ATTEMPTS} attempts ({failure})"
    try:
        result = common.isolated(function, *arguments, environment=ONE_THREAD)
        return Attempt(
            result,
            f"{died} with the default BLAS threads: run with one thread",
            default_threads=False,
        )
    except common.ChildFailed:
        return Attempt({}, f"{died}, and with one BLAS thread too", default_threads=False)
