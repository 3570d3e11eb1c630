"""The paper, literally and densely: the specification of everything else.

Nothing here is fast or meant for ill-conditioned problems.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

__all__ = [
    "AssumptionA1",
    "check_a1",
    "exponential_rule",
    "gcv",
    "mean",
    "polynomial_rule",
    "s_lambda",
    "sketched_mean",
    "v1",
    "v2",
    "v3",
    "v3_as_printed",
    "vbar",
    "vtheta",
]

Array = np.ndarray


def mean(K: Array, k_x: Array, y: Array, lam: float) -> Array:
    """ŷ(x) = k_xᵀ(K + λI)⁻¹y/n: (t,).

    Parameters
    ----------
    K : (n, n) array
        The kernel matrix divided by n.
    k_x : (n, t) array
        k(x_i, x), a column for each point.
    y : (n,) array
        Targets.
    lam : float
        The penalty λ, in units of the kernel.

    Returns
    -------
    mean : (t,) array
        In units of y.
    """
    n = len(K)
    return k_x.T @ np.linalg.solve(K + lam * np.eye(n), y) / n


def v1(K: Array, k_x: Array, lam: float, sigma2: float = 1.0) -> Array:
    """V1(x) = σ²/n² · k_xᵀ(K + λI)⁻²k_x: (t,).

    Parameters
    ----------
    K, k_x : (n, n) and (n, t) arrays
        The kernel matrix divided by n, and k(x_i, x) with a column for each point.
    lam, sigma2 : float
        The penalty λ in units of the kernel, and σ² in units of y².

    Returns
    -------
    variance : (t,) array
        In units of y².
    """
    n = len(K)
    z = np.linalg.solve(K + lam * np.eye(n), k_x)
    return sigma2 / n**2 * (z**2).sum(axis=0)


def v2(K: Array, S: Array, k_x: Array, lam: float, sigma2: float = 1.0) -> Array:
    """V2(x) = σ²/(nλ)² · ‖(I − KSᵀ(λSKSᵀ + SK²Sᵀ)⁻¹SK)k_x‖², equation (3.3): (t,).

    Parameters
    ----------
    K, S, k_x : (n, n), (m, n) and (n, t) arrays
        The kernel matrix divided by n, the sketch, and k(x_i, x) with a column for each point.
    lam, sigma2 : float
        The penalty λ in units of the kernel, and σ² in units of y².

    Returns
    -------
    variance : (t,) array
        In units of y².
    """
    n = len(K)
    A = K @ S.T
    r = k_x - A @ _solve(lam * S @ A + A.T @ A, A.T @ k_x)
    return sigma2 / (n * lam) ** 2 * (r**2).sum(axis=0)


def sketched_mean(K: Array, S: Array, k_x: Array, y: Array, lam: float) -> Array:
    """f̂(x) = k_xᵀSᵀ(λSKSᵀ + SK²Sᵀ)⁻¹SKy/n, the sketched estimate of Yang et al.: (t,).

    Parameters
    ----------
    K : (n, n) array
        The kernel matrix divided by n.
    S : (m, n) array
        The sketch.
    k_x : (n, t) array
        k(x_i, x), a column for each point.
    y : (n,) array
        Targets.
    lam : float
        The penalty λ, in units of the kernel.

    Returns
    -------
    mean : (t,) array
        In units of y.
    """
    A = K @ S.T
    return (S @ k_x).T @ _solve(lam * S @ A + A.T @ A, A.T @ y) / len(K)


def v3(K: Array, S: Array, k_x: Array, lam: float, sigma2: float = 1.0) -> Array:
    """V3(x) = σ²/n² · k_xᵀSᵀB⁻¹SK²SᵀB⁻¹Sk_x with B = λSKSᵀ + SK²Sᵀ: (t,).

    It is the variance of the sketched mean.

    Parameters
    ----------
    K, S, k_x : (n, n), (m, n) and (n, t) arrays
        The kernel matrix divided by n, the sketch, and k(x_i, x) with a column for each point.
    lam, sigma2 : float
        The penalty λ in units of the kernel, and σ² in units of y².

    Returns
    -------
    variance : (t,) array
        In units of y².
    """
    A = K @ S.T
    w = A @ _solve(lam * S @ A + A.T @ A, S @ k_x)
    return sigma2 / len(K) ** 2 * (w**2).sum(axis=0)


def v3_as_printed(K: Array, S: Array, k_x: Array, lam: float, sigma2: float = 1.0) -> Array:
    """V3 with the spare K on each side that the paper prints: (t,).

    With S = I it does not reduce to V1.

    Parameters
    ----------
    K, S, k_x : (n, n), (m, n) and (n, t) arrays
        The kernel matrix divided by n, the sketch, and k(x_i, x) with a column for each point.
    lam, sigma2 : float
        The penalty λ in units of the kernel, and σ² in units of y².

    Returns
    -------
    variance : (t,) array
        In units of y².
    """
    return v3(K, S, K @ k_x, lam, sigma2)


def vbar(K: Array, S: Array, k_x: Array, lam: float, sigma2: float = 1.0) -> Array:
    """V̄(x) = σ²/n² · ‖(z₂ + z₃)/2‖² for the weights z₂ and z₃ behind V2 and V3: (t,).

    Parameters
    ----------
    K, S, k_x : (n, n), (m, n) and (n, t) arrays
        The kernel matrix divided by n, the sketch, and k(x_i, x) with a column for each point.
    lam, sigma2 : float
        The penalty λ in units of the kernel, and σ² in units of y².

    Returns
    -------
    variance : (t,) array
        In units of y².
    """
    A = K @ S.T
    B = lam * S @ A + A.T @ A
    z2 = (k_x - A @ _solve(B, A.T @ k_x)) / lam
    z3 = A @ _solve(B, S @ k_x)
    return sigma2 / len(K) ** 2 * (((z2 + z3) / 2) ** 2).sum(axis=0)


def vtheta(K: Array, S: Array, k_x: Array, k_xx: Array, lam: float, sigma2: float = 1.0) -> Array:
    """V_θ(x) = σ²/n² · ‖θ z₂ + (1 − θ) z₃‖² with θ(x) = min(0.54, λ/(λ + 1.5 ρ)).

    ρ(x) = ‖k_x − k̂_x‖²/(n c(x)), where c(x) = k(x,x) − k̂(x,x), is the Rayleigh quotient of K at
    what the sketch misses of k(x, ·).

    Parameters
    ----------
    K, S, k_x : (n, n), (m, n) and (n, t) arrays
        The kernel matrix divided by n, the sketch, and k(x_i, x) with a column for each point.
    k_xx : (t,) array
        k(x, x).
    lam, sigma2 : float
        The penalty λ in units of the kernel, and σ² in units of y².

    Returns
    -------
    variance : (t,) array
        In units of y².
    """
    n = len(K)
    A, s = K @ S.T, S @ k_x
    B = lam * S @ A + A.T @ A
    z2 = (k_x - A @ _solve(B, A.T @ k_x)) / lam
    z3 = A @ _solve(B, s)
    half = _solve(S @ A, s)
    c = k_xx - (s * half).sum(axis=0) / n
    missed = ((k_x - A @ half) ** 2).sum(axis=0) / n
    rho = np.divide(missed, c, out=np.zeros_like(c), where=c > 1e-12 * k_xx)
    theta = np.minimum(0.54, lam / (lam + 1.5 * rho))
    return sigma2 / n**2 * ((theta * z2 + (1 - theta) * z3) ** 2).sum(axis=0)


def gcv(K: Array, y: Array, lam: float) -> float:
    """n‖(I − H)y‖²/(n − tr H)² with H = K(K + λI)⁻¹, for rows as they are given.

    A row of K for each observation: those that repeat x with another y count like all others.

    Parameters
    ----------
    K : (n, n) array
        The kernel matrix divided by n.
    y : (n,) array
        Targets.
    lam : float
        The penalty λ, in units of the kernel.

    Returns
    -------
    score : float
        In units of y².
    """
    n = len(K)
    H = np.linalg.solve(K + lam * np.eye(n), K)
    return float(n * ((y - H @ y) ** 2).sum() / (n - np.trace(H)) ** 2)


def s_lambda(K: Array, lam: float) -> int:
    """s_λ = min{j : μ̂_j ≤ λ} − 1, the number of eigenvalues above λ.

    Parameters
    ----------
    K : (n, n) array
        The kernel matrix divided by n.
    lam : float
        The penalty λ, in units of the kernel.

    Returns
    -------
    count : int
        Eigenvalues above λ.
    """
    return int((np.linalg.eigvalsh(K) > lam).sum())


def polynomial_rule(n: int, alpha: float, c: float = 1.0) -> tuple[float, int]:
    """Example 1, eigenvalues k^(−2α): λ = n^(−2α/(2α+1)) and m = ⌈c n^(1/(2α+1))⌉.

    Parameters
    ----------
    n : int
        The number of rows.
    alpha : float
        How fast eigenvalues fall.
    c : float
        The factor of m.

    Returns
    -------
    lam : float
        The penalty λ.
    m : int
        Rows of the sketch.
    """
    return n ** (-2 * alpha / (2 * alpha + 1)), _ceil(c * n ** (1 / (2 * alpha + 1)))


def exponential_rule(n: int, p: float, c: float = 1.0) -> tuple[float, int]:
    """Example 2, eigenvalues exp(−αk^p): λ = (log n)^(1/p)/n and m = ⌈c (log n)^(1/p)⌉.

    Parameters
    ----------
    n : int
        The number of rows.
    p : float
        How fast eigenvalues fall.
    c : float
        The factor of m.

    Returns
    -------
    lam : float
        The penalty λ.
    m : int
        Rows of the sketch.
    """
    size = np.log(n) ** (1 / p)
    return float(size / n), _ceil(c * size)


@dataclass(frozen=True)
class AssumptionA1:
    """Assumption A1 for one S: singular values of S U₁ in [1/2, 3/2], ‖S U₂ D₂^(1/2)‖ ≤ c′ √λ.

    Parameters
    ----------
    s_lambda : int
        Eigenvalues of K above λ.
    smallest, largest : float
        Singular values of S U₁.
    tail : float
        ‖S U₂ D₂^(1/2)‖.
    lam : float
        The penalty λ.

    Attributes
    ----------
    tail_constant : float
        The smallest c′ for which (ii) holds.
    """

    s_lambda: int
    smallest: float
    largest: float
    tail: float
    lam: float

    @property
    def tail_constant(self) -> float:
        """The smallest c′ for which (ii) holds."""
        return self.tail / np.sqrt(self.lam)

    def holds(self, c: float = 1.0) -> bool:
        """Whether both parts of the assumption hold.

        Parameters
        ----------
        c : float
            The c′ of (ii).

        Returns
        -------
        holds : bool
            Whether (i) and (ii) hold.
        """
        return self.smallest >= 0.5 and self.largest <= 1.5 and self.tail_constant <= c


def check_a1(K: Array, S: Array, lam: float) -> AssumptionA1:
    """Measure Assumption A1 for a sketch as it is; entries of variance 1 must be divided by √m.

    Parameters
    ----------
    K : (n, n) array
        The kernel matrix divided by n.
    S : (m, n) array
        The sketch.
    lam : float
        The penalty λ, in units of the kernel.

    Returns
    -------
    found : AssumptionA1
        What was measured; `holds` judges it.
    """
    D, U = np.linalg.eigh(K)
    above = lam < D
    singular = np.linalg.svd(S @ U[:, above], compute_uv=False) if above.any() else np.ones(1)
    smallest = singular[-1] if above.sum() <= len(S) else 0.0
    below = U[:, ~above] * np.sqrt(np.maximum(D[~above], 0))
    tail = np.linalg.norm(S @ below, 2) if not above.all() else 0.0
    return AssumptionA1(int(above.sum()), float(smallest), float(singular[0]), float(tail), lam)


def _ceil(x: float) -> int:
    """⌈x⌉, taking a whole number that rounding lifted for what it was."""
    return int(np.ceil(np.round(x, 9)))


def _solve(B: Array, C: Array) -> Array:
    """B⁻¹C, or the least-norm solution where B is singular."""
    return np.linalg.lstsq(B, C, rcond=None)[0]
