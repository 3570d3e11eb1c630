"""The criteria of `sketchridge.loo` where PyTorch computes: the same formulas, on a GPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from sketchridge.kernels import DistanceKernel
from sketchridge.loo import Problem

__all__ = ["criterion_at", "left_out"]

Array = np.ndarray
_TINY = np.finfo(float).tiny


def criterion_at(
    name: str,
    kernel: DistanceKernel,
    U: Array,
    alpha: float,
    problem: Problem,
    device: torch.device,
) -> tuple[float, Array, float] | None:
    """The criterion, its gradient by U (n, k) and by log α; None where A is indefinite."""
    u, Y, w = (torch.as_tensor(A, dtype=torch.float64, device=device) for A in _arrays(U, problem))
    distances, gradient = _METRICS[kernel.metric]
    s = distances(u)
    P, logdet = _solved(kernel.evaluate(s.clone(), torch), alpha / w, problem.fit_intercept)
    if P is None:
        return None
    a = P @ Y
    value, by_A = _CRITERIA[name](P, a, Y, w, logdet, problem.fit_intercept)
    by_log_alpha = alpha * float((by_A.diagonal() / w).sum())
    W = kernel.slope_at(s, torch) * by_A
    W = torch.where(torch.isfinite(W), W, 0.0)  # a slope may be infinite at s = 0
    by_U = gradient(W, u).cpu().numpy()
    if not (np.isfinite(value) and np.isfinite(by_U).all() and np.isfinite(by_log_alpha)):
        return None
    return value, by_U, by_log_alpha


def left_out(
    kernel: DistanceKernel, U: Array, alpha: float, problem: Problem, device: torch.device
) -> Array | None:
    """Leave-one-out residuals (n, q); None where A is indefinite."""
    u, Y, w = (torch.as_tensor(A, dtype=torch.float64, device=device) for A in _arrays(U, problem))
    s = _METRICS[kernel.metric][0](u)
    P, _ = _solved(kernel.evaluate(s, torch), alpha / w, problem.fit_intercept)
    if P is None:
        return None
    return (P @ Y / P.diagonal().clamp(min=_TINY)[:, None]).cpu().numpy()


def _arrays(U: Array, problem: Problem) -> tuple[Array, Array, Array]:
    return U, problem.Y, problem.w


def _squared_distances(U: Any) -> Any:
    """‖u_i − u_j‖²: (n, n), with a diagonal of 0."""
    U = U - U.median(dim=0).values
    squares = (U * U).sum(dim=1)
    s = (squares[:, None] + squares).addmm_(U, U.T, alpha=-2).clamp_(min=0)
    s.diagonal().zero_()
    return s


def _by_squared_distances(W: Any, U: Any) -> Any:
    return 4 * (W.sum(dim=1)[:, None] * U - W @ U)


def _absolute_distances(U: Any) -> Any:
    """‖u_i − u_j‖₁, one feature at a time: (n, n)."""
    s = torch.zeros(len(U), len(U), dtype=U.dtype, device=U.device)
    for u in U.T:
        s += (u[:, None] - u).abs_()
    return s


def _by_absolute_distances(W: Any, U: Any) -> Any:
    return torch.stack([2 * (W * (u[:, None] - u).sign_()).sum(dim=1) for u in U.T], dim=1)


_METRICS = {
    "euclidean": (_squared_distances, _by_squared_distances),
    "cityblock": (_absolute_distances, _by_absolute_distances),
}


def _solved(A: Any, noise: Any, fit_intercept: bool) -> tuple[Any, float]:
    """P (n, n) and log|A|, with log 1ᵀB1 where there is an intercept; None where A has no root."""
    A.diagonal().add_(noise)
    L, failed = torch.linalg.cholesky_ex(A)
    if int(failed) or not bool(torch.isfinite(L.diagonal()).all()):
        return None, 0.0
    logdet = 2 * float(L.diagonal().log().sum())
    B = torch.cholesky_inverse(L)
    if not fit_intercept:
        return B, logdet
    ones = B.sum(dim=1)
    total = float(ones.sum())
    if not total > 0:
        return None, 0.0
    return B.addr_(ones, ones, alpha=-1 / total), logdet + float(np.log(total))


def _leave_one_out(
    P: Any, a: Any, Y: Any, w: Any, logdet: float, fit_intercept: bool
) -> tuple[float, Any]:
    b = P.diagonal().clamp(min=_TINY)
    r = a / b[:, None]
    share = w / (w.sum() * r.shape[1])
    L = max(float(share @ (r * r).sum(dim=1)), _TINY)
    g = 2 * share[:, None] * r / L
    u = P @ (g / b[:, None])
    omega = (g * r).sum(dim=1) / b
    cross = u @ a.T
    return float(np.log(L)), (P * omega) @ P - (cross + cross.T) / 2


def _restricted_likelihood(
    P: Any, a: Any, Y: Any, w: Any, logdet: float, fit_intercept: bool
) -> tuple[float, Any]:
    nu = max(len(P) - fit_intercept, 1)
    squares = (Y * a).sum(dim=0).clamp(min=_TINY)
    by_A = P / nu - (a / squares) @ a.T / len(squares)
    return float((squares / nu).log().mean()) + logdet / nu, by_A


_CRITERIA = {"loo": _leave_one_out, "reml": _restricted_likelihood}
