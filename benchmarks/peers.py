"""What the benchmark of prediction compares with: boosting, Gaussian processes, feature machines.

Each function learns from X (n, d), y (n,), both standardized, and predicts the test rows Z, z.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from importlib.util import find_spec
from itertools import product
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.stats import norm
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

__all__ = ["ON_CPU", "ON_GPU", "QUANTILES", "Found", "scored"]

Array = np.ndarray
Found = dict[str, Any]
Peer = Callable[[Array, Array, Array, Array, int], Found]
QUANTILES = "quantile boosting"
Z95 = 1.959963984540054
GPR_ROWS = 2000
GPR_STEPS = 25  # evaluations of the likelihood: each makes d matrices of 2,000 x 2,000


def scored(
    y: Array, mean: Array, low: Array | None = None, high: Array | None = None,
    density: Array | None = None, spread: Array | None = None,
) -> Found:  # fmt: skip
    found: Found = {"rmse": float(np.sqrt(np.mean((y - mean) ** 2)))}
    if low is not None and high is not None:
        held = (low <= y) & (y <= high)
        missed = np.maximum(low - y, 0) + np.maximum(y - high, 0)
        found["coverage"] = float(held.mean())
        found["interval_score"] = float(np.mean(high - low + 2 / 0.05 * missed))
        if spread is not None:
            found["coverage_tenth"] = float(held[spread >= np.quantile(spread, 0.9)].mean())
    if density is not None:
        found["log_density"] = float(np.mean(density))
    return found


def boosting(X: Array, y: Array, Z: Array, z: Array, seed: int) -> Found:
    model = HistGradientBoostingRegressor(max_iter=500, learning_rate=0.05, random_state=seed)
    return scored(z, model.fit(X, y).predict(Z))


def lightgbm(X: Array, y: Array, Z: Array, z: Array, seed: int) -> Found:
    from lightgbm import LGBMRegressor

    model = LGBMRegressor(n_estimators=500, learning_rate=0.05, random_state=seed, verbose=-1)
    return scored(z, model.fit(X, y).predict(Z))


def quantile_boosting(X: Array, y: Array, Z: Array, z: Array, seed: int) -> Found:
    """Conformalized quantile regression: a quarter of the rows calibrates."""
    n = 3 * len(X) // 4
    make = HistGradientBoostingRegressor
    options = {"max_iter": 300, "learning_rate": 0.05, "random_state": seed}
    low, high = (
        make(loss="quantile", quantile=q, **options).fit(X[:n], y[:n]) for q in (0.025, 0.975)
    )
    off = np.maximum(low.predict(X[n:]) - y[n:], y[n:] - high.predict(X[n:]))
    rank = min(int(np.ceil(0.95 * (len(off) + 1))), len(off)) - 1
    wider = np.sort(off)[rank]
    below, above = low.predict(Z) - wider, high.predict(Z) + wider
    return scored(z, (below + above) / 2, below, np.maximum(above, below))


def gaussian_process(X: Array, y: Array, Z: Array, z: Array, seed: int) -> Found:
    """scikit-learn's on 2,000 rows, with one bandwidth for each feature."""
    rows = np.random.default_rng(seed).permutation(len(X))[:GPR_ROWS]
    kernel = ConstantKernel() * Matern(np.ones(X.shape[1]), (1e-2, 1e4), nu=1.5) + WhiteKernel(0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = GaussianProcessRegressor(kernel, optimizer=_some_steps, random_state=seed).fit(
            X[rows], y[rows]
        )
        mean, std = model.predict(Z, return_std=True)
    return scored(z, mean, *_normal(mean, std), norm.logpdf(z, mean, std), std)


def _some_steps(objective: Any, start: Array, bounds: Array) -> tuple[Array, float]:
    """scikit-learn's L-BFGS, with a limit."""
    found = minimize(
        objective,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        options={"maxfun": GPR_STEPS},
    )
    return found.x, found.fun


def gpytorch_exact(X: Array, y: Array, Z: Array, z: Array, seed: int) -> Found:
    """The better, by likelihood, of Matérn 3/2 and RBF with a bandwidth each, 40 Adam steps."""
    import gpytorch
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    to = {"dtype": torch.float32, "device": device}
    tX, ty, tZ = (torch.tensor(a, **to) for a in (X, y, Z))

    class Model(gpytorch.models.ExactGP):
        def __init__(self, kernel: Any, likelihood: Any) -> None:
            super().__init__(tX, ty, likelihood)
            self.mean_module = gpytorch.means.ConstantMean()
            self.covar_module = gpytorch.kernels.ScaleKernel(kernel)

        def forward(self, x: Any) -> Any:
            return gpytorch.distributions.MultivariateNormal(
                self.mean_module(x), self.covar_module(x)
            )

    best: tuple[float, Any, Any] | None = None
    d = X.shape[1]
    for kernel in (
        gpytorch.kernels.MaternKernel(1.5, ard_num_dims=d),
        gpytorch.kernels.RBFKernel(ard_num_dims=d),
    ):
        likelihood = gpytorch.likelihoods.GaussianLikelihood().to(device)
        model = Model(kernel, likelihood).to(device)
        loss = _descended(model, likelihood, tX, ty, 40)
        if best is None or loss < best[0]:
            best = (loss, model, likelihood)
    assert best is not None
    _, model, likelihood = best
    model.eval()
    likelihood.eval()
    with torch.no_grad(), gpytorch.settings.fast_pred_var():
        found = likelihood(model(tZ))
        mean, std = found.mean.cpu().double().numpy(), found.stddev.cpu().double().numpy()
    return scored(z, mean, *_normal(mean, std), norm.logpdf(z, mean, std), std)


def _descended(model: Any, likelihood: Any, X: Any, y: Any, steps: int) -> float:
    import gpytorch
    import torch

    model.train()
    likelihood.train()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    objective = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
    loss = torch.tensor(np.inf)
    for _ in range(steps):
        optimizer.zero_grad()
        loss = -objective(model(X), y)
        loss.backward()
        optimizer.step()
    return float(loss)


def svgp(X: Array, y: Array, Z: Array, z: Array, seed: int) -> Found:
    """A variational GP with 500 inducing points, Matérn 3/2, one bandwidth for each feature."""
    import gpytorch
    import torch

    torch.manual_seed(seed)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    to = {"dtype": torch.float32, "device": device}
    tX, ty, tZ = (torch.tensor(a, **to) for a in (X, y, Z))

    class Model(gpytorch.models.ApproximateGP):
        def __init__(self, points: Any) -> None:
            inner = gpytorch.variational.CholeskyVariationalDistribution(len(points))
            super().__init__(gpytorch.variational.VariationalStrategy(self, points, inner))
            self.mean_module = gpytorch.means.ConstantMean()
            base = gpytorch.kernels.MaternKernel(1.5, ard_num_dims=points.shape[1])
            self.covar_module = gpytorch.kernels.ScaleKernel(base)

        def forward(self, x: Any) -> Any:
            return gpytorch.distributions.MultivariateNormal(
                self.mean_module(x), self.covar_module(x)
            )

    model = Model(tX[torch.randperm(len(tX), device=device)[:500]].clone()).to(device)
    likelihood = gpytorch.likelihoods.GaussianLikelihood().to(device)
    both = [*model.parameters(), *likelihood.parameters()]
    optimizer = torch.optim.Adam(both, lr=0.01)
    objective = gpytorch.mlls.VariationalELBO(likelihood, model, num_data=len(tX))
    for _ in range(1500):
        some = torch.randint(len(tX), (1024,), device=device)
        optimizer.zero_grad()
        loss = -objective(model(tX[some]), ty[some])
        loss.backward()
        optimizer.step()
    model.eval()
    likelihood.eval()
    with torch.no_grad():
        found = likelihood(model(tZ))
        mean, std = found.mean.cpu().double().numpy(), found.stddev.cpu().double().numpy()
    return scored(z, mean, *_normal(mean, std), norm.logpdf(z, mean, std), std)


def xrfm(X: Array, y: Array, Z: Array, z: Array, seed: int) -> Found:
    """Recursive feature machines; kernel, bandwidth and penalty by a fifth of the rows held out."""
    import torch
    from xrfm import xRFM

    torch.manual_seed(seed)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    tX, ty, tZ = (torch.tensor(a, dtype=torch.float32, device=device) for a in (X, y[:, None], Z))
    n = 4 * len(X) // 5
    best = np.inf, np.full(len(Z), np.nan)
    for kernel, bandwidth, penalty in product(("l2", "l1"), (1.5, 4.0, 10.0, 30.0), (1e-5, 1e-3)):
        settings = {
            "model": {"kernel": kernel, "bandwidth": bandwidth, "exponent": 1.0, "diag": False},
            "fit": {"reg": penalty, "iters": 5, "verbose": False, "early_stop_rfm": True},
        }
        model = xRFM(rfm_params=settings, device=device, tuning_metric="mse", verbose=False)
        model.fit(tX[:n], ty[:n], tX[n:], ty[n:])
        error = float(np.mean((np.ravel(_host(model.predict(tX[n:]))) - y[n:]) ** 2))
        if error < best[0]:
            best = error, np.ravel(_host(model.predict(tZ)))
    return scored(z, best[1])


def _host(values: Any) -> Array:
    return np.asarray(values.cpu() if hasattr(values, "cpu") else values)


def _normal(mean: Array, std: Array) -> tuple[Array, Array]:
    return mean - Z95 * std, mean + Z95 * std


ON_CPU: dict[str, Peer] = {
    "HistGradientBoosting": boosting,
    QUANTILES: quantile_boosting,
    "scikit-learn GPR": gaussian_process,
}
if find_spec("lightgbm"):
    ON_CPU["LightGBM"] = lightgbm
ON_GPU: dict[str, Peer] = {}
if find_spec("gpytorch"):
    ON_GPU |= {"GPyTorch exact": gpytorch_exact, "SVGP": svgp}
if find_spec("xrfm"):
    ON_GPU["xRFM"] = xrfm
