"""Noise that varies with x: σ²(x) = ŝ²α·g(x), g fitted to squared leave-one-out residuals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve, eigh
from scipy.special import logsumexp

from sketchridge.predictive import gained
from sketchridge.scores import Scores

__all__ = ["NoiseModel", "fit_varying", "landmark_map"]

Array = np.ndarray
_PENALTIES = (100.0, 30.0, 10.0, 3.0, 1.0, 0.3, 0.1)  # 1/β is the prior variance of log g
_OUTLIER = 16.0  # squares beyond this many times what is expected pull no harder
_STEPS = 30
_DONE = 1e-8  # relative fall of the loss at which the fit ends
_TINY = np.finfo(float).tiny


@dataclass(frozen=True, eq=False)
class NoiseModel:
    """g(x) = exp(constant + ψ(x)ᵀθ), the noise at x over the mean noise of the training rows."""

    theta: Array  # (m,)
    constant: float
    penalty: float  # β
    limits: tuple[float, float]  # of log g at the training rows: none is larger or smaller
    at: Array  # (N,): the distinct training row of each score
    left_out: Array  # (N,): g there, without that row
    gain: float  # by how much the mean leave-one-out interval score is smaller, in amplitudes
    error: float  # its standard error

    @property
    def kept(self) -> bool:
        """Whether intervals gain by at least one standard error."""
        return self.gain > self.error

    def __call__(self, features: Array) -> Array:
        """g at points with features ψ(x) (t, m): (t,), positive."""
        return np.exp(np.clip(self.constant + features @ self.theta, *self.limits))

    def applied(self, scores: Scores) -> Scores:
        """The scores this was fitted to, with each row's noise α g₋ᵢ(x_i)/w_i. Their amplitude is
        mean(r_i²/(α g₋ᵢ/w_i + gp₋ᵢ)), which brings g to scale whatever the noise's tails."""
        return scores.with_noise(scores.noise * self.left_out)


def fit_varying(features: Array, scores: Scores) -> NoiseModel:
    """Fit g by the gamma likelihood of squared leave-one-out residuals.

    r_i² has the mean s²μ_i, μ_i = α g(x_i)/w_i + gp₋ᵢ(x_i), and log g is a ridge regression on
    features, normalized so that g has the mean 1 over the rows: s² and θ make
    Σ ½(log s²μ_i + z_i) + ½β‖θ‖² least, z_i = r_i²/(s²μ_i), which beyond 16 grows as its logarithm.
    Several targets share one g, since they share the weights of the mean. β is chosen by the same
    loss, each row left out to first order.

    Parameters
    ----------
    features : (n, m), ψ(x_i) of the training rows; 100 to 300 are enough. O(Nm²) per step.
    scores : of the fit with constant noise.

    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(-1, 1, (500, 1))
    >>> r = np.exp(x) * rng.standard_normal((500, 1))
    >>> from sketchridge.scores import scores_of
    >>> noise = fit_varying(x, scores_of(r, np.ones(500), np.ones(500)))
    >>> noise.kept, noise.theta.round(1)
    (True, array([2.]))
    """
    data = _squares(features, scores)
    theta = np.zeros(data.Phi.shape[1] + 1)
    fits = []
    for beta in _PENALTIES:
        theta = _fitted(data, theta, beta)
        f = _left_out(data, theta, beta)
        loss = float(data.share @ _deviance(data, f, theta[-1]))
        fits.append(_Fit(loss, beta, theta, f))
    best = min(fits, key=lambda fit: fit.loss)
    inside = data.log_g(best.theta)
    limits = float(inside.min()), float(inside.max())
    g = np.exp(np.clip(best.left_out, *limits))
    gain, error = gained(scores, scores.with_noise(scores.noise * g))
    constant = -data.log_mean(data.Phi @ best.theta[:-1])
    return NoiseModel(best.theta[:-1], constant, best.beta, limits, scores.at, g, gain, error)


def landmark_map(G: Array) -> Array:
    """R (p, r) with features ψ(x) = k(x, X_p) R, from the kernel matrix G (p, p) of p rows.

    R = U diag(λ)^(−1/2): ψ(x)ᵀψ(z) is the Nyström kernel of the p rows.

    >>> landmark_map(np.array([[4.0]]))
    array([[0.5]])
    """
    values, U = eigh(G)
    keep = values > len(G) * np.finfo(float).eps * values[-1]
    return U[:, keep] / np.sqrt(values[keep])


@dataclass(frozen=True, eq=False)
class _Fit:
    loss: float  # of left-out rows
    beta: float
    theta: Array  # (m + 1,): the last is log s², over the amplitude for constant noise
    left_out: Array  # (N,): log g


@dataclass(frozen=True, eq=False)
class _Squares:
    Phi: Array  # (N, m)
    ratio: Array  # (N,): r_i²/s², mean over targets, s² that for constant noise
    noise: Array  # (N,)
    rest: Array  # (N,): gp
    share: Array  # (N,): masses times half the number of targets
    at: Array  # (N,)

    def log_mean(self, f: Array) -> float:
        """The log of the mean of eᶠ."""
        return float(logsumexp(f, b=self.share) - np.log(self.share.sum()))

    def log_g(self, theta: Array) -> Array:
        f = self.Phi @ theta[:-1]
        return f - self.log_mean(f)


def _squares(features: Array, scores: Scores) -> _Squares:
    s2 = np.maximum(scores.amplitude, _TINY)
    ratio = (scores.residuals**2 / s2).mean(axis=1)
    rest = np.maximum(scores.variances - scores.noise, 0)
    share = scores.masses * (len(s2) / 2)
    return _Squares(features[scores.at], ratio, scores.noise, rest, share, scores.at)


def _deviance(data: _Squares, log_g: Array, log_s2: float) -> Array:
    """log s²μ + z, z growing as its logarithm beyond 16: (N,)."""
    mean = np.exp(log_s2) * (data.noise * np.exp(log_g) + data.rest)
    z = data.ratio / mean
    beyond = _OUTLIER * np.log(np.maximum(z / _OUTLIER, 1.0))
    return np.log(mean) + np.minimum(z, _OUTLIER) + beyond


def _loss(data: _Squares, theta: Array, beta: float) -> float:
    penalty = beta * (theta[:-1] @ theta[:-1]) / 2
    return float(data.share @ _deviance(data, data.log_g(theta), theta[-1]) + penalty)


def _fitted(data: _Squares, theta: Array, beta: float) -> Array:
    """Fisher scoring from theta on, with halved steps where the loss would rise."""
    loss = _loss(data, theta, beta)
    for _ in range(_STEPS):
        step = _step(data, theta, beta)
        before = loss
        for _ in range(_STEPS):
            loss = _loss(data, theta + step, beta)
            if loss <= before:
                break
            step = step / 2
        else:
            return theta
        theta = theta + step
        if before - loss <= _DONE * (1 + abs(before)):
            break
    return theta


def _step(data: _Squares, theta: Array, beta: float) -> Array:
    _, J, pull = _working(data, theta)
    gradient = J.T @ (data.share * pull) - _ridge(data, beta) * theta
    return cho_solve(_hessian(data, J, beta), gradient)


def _left_out(data: _Squares, theta: Array, beta: float) -> Array:
    """log g at each row without that row, by one Fisher step from the fit to all: (N,).

    Σ_j share_j pull_j J_j/(1 − h) is taken from the gradient, j the observations of the distinct
    row and h = Σ_j share_j J_jᵀH⁻¹J_j their leverage.
    """
    centered, J, pull = _working(data, theta)
    solved = cho_solve(_hessian(data, J, beta), J.T)  # (m + 1, N)
    leverage = data.share * np.einsum("ij,ji->i", J, solved)
    moved = data.share * pull * np.einsum("ij,ji->i", centered, solved[:-1])
    h, change = (np.bincount(data.at, part)[data.at] for part in (leverage, moved))
    return data.log_g(theta) - change / np.maximum(1 - h, 0.1)


def _working(data: _Squares, theta: Array) -> tuple[Array, Array, Array]:
    """∂log g/∂θ (N, m), J = ∂log(s²μ)/∂(θ, log s²) (N, m + 1), and min(z, 16) − 1 (N,)."""
    g = np.exp(data.log_g(theta))
    mu = data.noise * g + data.rest
    weights = data.share * g / (data.share @ g)
    centered = data.Phi - weights @ data.Phi
    J = np.column_stack([centered * (data.noise * g / mu)[:, None], np.ones(len(mu))])
    return centered, J, np.minimum(data.ratio / (np.exp(theta[-1]) * mu), _OUTLIER) - 1


def _ridge(data: _Squares, beta: float) -> Array:
    """β for every feature, nothing for log s²."""
    return np.append(np.full(data.Phi.shape[1], beta), 0.0)


def _hessian(data: _Squares, J: Array, beta: float) -> tuple[Array, bool]:
    """The Cholesky factor of H = Jᵀ diag(share) J + β."""
    H = J.T @ (J * data.share[:, None])
    H[np.diag_indices_from(H)] += _ridge(data, beta)
    return cho_factor(H, lower=True)
