"""Noise that varies with x: σ²(x) = ŝ²α·g(x), g fitted to squared leave-one-out residuals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve, eigh

from sketchridge.predictive import ranks_of
from sketchridge.scores import Scores

__all__ = ["NoiseModel", "fit_varying", "landmark_map"]

Array = np.ndarray
_PENALTIES = (100.0, 30.0, 10.0, 3.0, 1.0, 0.3, 0.1)  # 1/β is the prior variance of log g
_LEVELS = (0.8, 0.95)  # of the intervals by which constant and varying noise are compared
_OUTLIER = 16.0  # squares beyond this many times what is expected pull no harder
_STEPS = 30
_DONE = 1e-8  # relative fall of the loss at which the fit ends
_TINY = np.finfo(float).tiny


@dataclass(frozen=True, eq=False)
class NoiseModel:
    """g(x) = exp(constant + ψ(x)ᵀθ), the noise at x over that of constant noise."""

    theta: Array  # (m,)
    constant: float
    penalty: float  # β
    limits: tuple[float, float]  # of log g at the training rows: none is larger or smaller
    left_out: Array  # (N,): g at each score's row, without that row
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
    features: Σ ½(log μ_i + z_i) + ½β‖θ‖², z_i = r_i²/(s²μ_i), is least; beyond 16 z_i grows as its
    logarithm. Several targets share one g, since they share the weights of the mean. β is chosen by
    the same loss, each row left out to first order.

    Parameters
    ----------
    features : (n, m), ψ(x_i) of the training rows; 100 to 300 are enough. O(Nm²) a step.
    scores : of the fit with constant noise, or of weights.

    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(-1, 1, (500, 1))
    >>> r = np.exp(x) * rng.standard_normal((500, 1))
    >>> from sketchridge.scores import scores_of
    >>> noise = fit_varying(x, scores_of(r, np.ones(500), np.ones(500)))
    >>> bool(noise.kept), float((np.log(noise(np.array([[1.0]])) / noise(-np.ones((1, 1)))))[0] > 3)
    (True, 1.0)
    """
    data = _squares(features, scores)
    theta = np.zeros(data.Phi.shape[1])
    best: tuple[float, float, Array, Array] | None = None
    for beta in _PENALTIES:
        theta = _fitted(data, theta, beta)
        f = _left_out(data, theta, beta)
        loss = float(data.share @ _deviance(data, f))
        if best is None or loss < best[0]:
            best = loss, beta, theta, f
    assert best is not None
    _, beta, theta, f = best
    inside = data.Phi @ theta
    limits = float(inside.min()), float(inside.max())
    g = np.exp(np.clip(f, *limits))
    gain, error = _gain(scores, scores.with_noise(scores.noise * g))
    return NoiseModel(theta[:-1], float(theta[-1]), beta, limits, g, gain, error)


def landmark_map(G: Array) -> Array:
    """R (p, r) with features ψ(x) = k(x, X_p) R, from the kernel matrix G (p, p) of p rows.

    R = U diag(λ)^(−1/2): ψ(x)ᵀψ(z) is the Nyström kernel of the p rows.
    """
    values, U = eigh(G)
    keep = values > len(G) * np.finfo(float).eps * values[-1]
    return U[:, keep] / np.sqrt(values[keep])


@dataclass(frozen=True, eq=False)
class _Squares:
    Phi: Array  # (N, m + 1), the last column 1
    ratio: Array  # (N,): r_i²/s², mean over targets
    noise: Array  # (N,)
    rest: Array  # (N,): gp
    share: Array  # (N,): masses times half the number of targets
    at: Array  # (N,)

    def mu(self, f: Array) -> Array:
        return self.noise * np.exp(f) + self.rest


def _squares(features: Array, scores: Scores) -> _Squares:
    Phi = np.column_stack([features[scores.at], np.ones(len(scores.at))])
    s2 = np.maximum(scores.amplitude, _TINY)
    ratio = (scores.residuals**2 / s2).mean(axis=1)
    rest = np.maximum(scores.variances - scores.noise, 0)
    share = scores.masses * (len(s2) / 2)
    return _Squares(Phi, ratio, scores.noise, rest, share, scores.at)


def _deviance(data: _Squares, f: Array) -> Array:
    """log μ + z, z growing as its logarithm beyond 16: (N,)."""
    mu = data.mu(f)
    z = data.ratio / mu
    beyond = _OUTLIER * np.log(np.maximum(z / _OUTLIER, 1.0))
    return np.log(mu) + np.minimum(z, _OUTLIER) + beyond


def _fitted(data: _Squares, theta: Array, beta: float) -> Array:
    """Fisher scoring from theta on, with halved steps where the loss would rise."""
    loss = _loss(data, theta, beta)
    for _ in range(_STEPS):
        part, pull = _working(data, data.Phi @ theta)
        gradient = data.Phi.T @ (data.share * part * pull) - _ridge(data, beta) * theta
        step = cho_solve(_hessian(data, part, beta), gradient)
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


def _left_out(data: _Squares, theta: Array, beta: float) -> Array:
    """f₋ᵢ = f_i − Σ h_j e_j/(1 − Σ h_j), sums over the observations of i's distinct row: (N,).

    h_j = W_j ψ_jᵀ(ΨᵀWΨ + β)⁻¹ψ_j and e_j are leverage and residual of the last Fisher step.
    """
    f = data.Phi @ theta
    part, pull = _working(data, f)
    solved = cho_solve(_hessian(data, part, beta), data.Phi.T)
    quadratic = np.einsum("ij,ji->i", data.Phi, solved)
    h = np.bincount(data.at, data.share * part**2 * quadratic)[data.at]
    he = np.bincount(data.at, data.share * part * pull * quadratic)[data.at]
    return f - he / np.maximum(1 - h, 0.1)


def _working(data: _Squares, f: Array) -> tuple[Array, Array]:
    """The noise's part of μ, ∂log μ/∂f, and min(z, 16) − 1: each (N,)."""
    mu = data.mu(f)
    return data.noise * np.exp(f) / mu, np.minimum(data.ratio / mu, _OUTLIER) - 1


def _ridge(data: _Squares, beta: float) -> Array:
    """β for every feature; next to nothing for the constant, which noise-free data do not know."""
    return np.append(np.full(data.Phi.shape[1] - 1, beta), 1e-6)


def _hessian(data: _Squares, part: Array, beta: float) -> tuple[Array, bool]:
    """The Cholesky factor of ΨᵀWΨ + β, W = share·part² Fisher's weights."""
    weighted = data.Phi * (np.sqrt(data.share) * part)[:, None]
    H = weighted.T @ weighted
    H[np.diag_indices_from(H)] += _ridge(data, beta)
    return cho_factor(H, lower=True)


def _loss(data: _Squares, theta: Array, beta: float) -> float:
    penalty = _ridge(data, beta) @ theta**2 / 2
    return float(data.share @ _deviance(data, data.Phi @ theta) + penalty)


def _gain(constant: Scores, varying: Scores) -> tuple[float, float]:
    """By how much the mean interval score falls, and the standard error of that."""
    scale = np.sqrt(np.maximum(constant.amplitude, _TINY))
    falls = (_interval_scores(constant) - _interval_scores(varying)) / scale
    fall = falls.mean(axis=1)
    total = constant.masses.sum()
    gain = float(constant.masses @ fall / total)
    return gain, float(np.sqrt(constant.masses @ (fall - gain) ** 2) / total)


def _interval_scores(scores: Scores) -> Array:
    """2h + 2/(1 − level)·max(|r| − h, 0), mean over levels, of intervals ±c√variance: (N, q)."""
    ranks = ranks_of(np.abs(scores.values), scores.masses)
    width = np.sqrt(scores.variances)[:, None]
    miss = np.abs(scores.residuals)
    halves = [(level, ranks.at(level) * width) for level in _LEVELS]
    each = [2 * h + 2 / (1 - level) * np.maximum(miss - h, 0) for level, h in halves]
    return np.mean(each, axis=0)
