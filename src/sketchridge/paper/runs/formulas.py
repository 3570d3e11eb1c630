"""The paper's formulas, and the steps of its proof, measured on small problems."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from sketchridge import exact
from sketchridge.paper.options import Options, blocks
from sketchridge.paper.runs.gaps import DECAYS, GRID, KERNELS, even_points
from sketchridge.sketches import GaussianSketch

__all__ = ["SIZES", "Formulas"]

Array = np.ndarray
SIZES = (50, 100, 200, 400, 800)
MIDDLE = 200  # the size at which variances are compared with draws of the noise
_LEAST = 20  # training points
_DRAWS = 4000
_POINTS = slice(5, 200, 10)  # of the grid: 20
_RANKS = {"polynomial": (3, 300), "gaussian": (3, 12)}  # of the eigenvalues whose decay is read
_CUT = 1e-10  # of the pseudo-inverse, of the largest eigenvalue
_EVEN = 2000  # points of the grid whose kernel matrix has the eigenvalues of the operator


class Formulas:
    """Rows of a name and a value: residuals of identities, ratios of variances, T²/λ."""

    takes = frozenset({"repetitions", "n"})
    reads = ""
    alone = False

    def cells(self, options: Options) -> list[dict]:
        count = options.count(quick=10, full=100)
        options.least(min(options.n or SIZES), _LEAST, "the formulas")
        spectra = [{"decay": decay, "n": 0, "first": None, "count": 0} for decay in DECAYS]
        return spectra + [
            {"decay": decay, "n": n, "first": first, "count": length}
            for decay in DECAYS
            for n in options.n or SIZES
            for first, length in blocks(options.first_seed, count, 25)
        ]

    def run(self, cell: dict, data: Path | None) -> list[dict]:
        if not cell["n"]:
            return _decay(cell["decay"])
        seeds = range(cell["first"], cell["first"] + cell["count"])
        return [
            {"decay": cell["decay"], "n": cell["n"], "seed": seed, "name": name, "value": value}
            for seed in seeds
            for name, value in _measured(cell["decay"], cell["n"], seed)
        ]


def _measured(decay: str, n: int, seed: int) -> Iterator[tuple[str, float]]:
    rule = DECAYS[decay]
    kernel = KERNELS[rule.kernels[0]]
    X = even_points(n, seed)
    K = kernel(X, X) / n
    k_x = kernel(X, GRID)
    lam = rule.lam(n)
    m = rule.size(n)
    S = GaussianSketch(m, seed).entries(range(m), range(n))
    rng = np.random.default_rng([seed, n, 4])
    yield from _identities(K, S, k_x, lam, rng)
    yield from _steps(K, S, k_x, lam, float(kernel.diag(GRID).max()))
    if n == MIDDLE:
        yield from _variances(K, S, k_x[:, _POINTS], lam, rng)


def _identities(
    K: Array, S: Array, k_x: Array, lam: float, rng: np.random.Generator
) -> Iterator[tuple[str, float]]:
    """Residuals, each over the size of what should vanish with it."""
    n = len(K)
    inner = lam * K + K @ K
    inverse = np.linalg.inv(K + lam * np.eye(n))
    pseudo = np.linalg.pinv(inner, rcond=_CUT, hermitian=True)
    printed = (np.eye(n) - K @ pseudo @ K) / lam
    yield "binomial", _relative(printed - inverse, inverse)
    y = rng.standard_normal(n)
    omega = inverse @ y / n  # stationary: K(Kω − y/n + λω) = 0
    yield "minimiser", _relative(K @ (K @ omega - y / n + lam * omega), K @ y / n)
    g = k_x[:, 100]
    B = lam * S @ K @ S.T + S @ K @ K @ S.T
    alpha = np.linalg.lstsq(B, S @ K @ g, rcond=None)[0] / n
    pull = S @ K @ (g - n * K @ S.T @ alpha)
    push = n * lam * S @ K @ S.T @ alpha
    yield "projected minimiser", _relative(pull - push, S @ K @ g)
    yield "first part", _first_part(K, S, g, lam)
    yield "blocks", _blocks(K, S)


def _first_part(K: Array, S: Array, g: Array, lam: float) -> float:
    """G₁ = ‖z₁ − √n D₁S̃₁ᵀα̃‖ over ‖z₁‖, for α̃ = S̃₁(S̃₁ᵀS̃₁)⁻¹D₁⁻¹z₁/√n; 0 where m < s_λ."""
    n = len(K)
    D, U = np.linalg.eigh(K)
    above = lam < D
    if above.sum() > len(S) or not above.any():
        return 0.0
    z1 = U[:, above].T @ g / np.sqrt(n)
    S1 = S @ U[:, above]
    tilde = S1 @ np.linalg.solve(S1.T @ S1, z1 / D[above]) / np.sqrt(n)
    return _relative(z1 - np.sqrt(n) * D[above] * (S1.T @ tilde), z1)


def _blocks(K: Array, S: Array) -> float:
    """The four blocks listed for S K, with the last fifth of points and one row of S new."""
    n, old = len(K), len(K) - len(K) // 5
    rows = len(S) - 1
    S1, S12, S21, S2 = S[:rows, :old], S[:rows, old:], S[rows:, :old], S[rows:, old:]
    K1, K12, K21, K2 = K[:old, :old], K[:old, old:], K[old:, :old], K[old:, old:]
    listed = np.block(
        [
            [S1 @ K1 + S12 @ K21, S1 @ K12 + S12 @ K2],
            [S21 @ K1 + S2 @ K21, S21 @ K12 + S2 @ K2],
        ]
    )
    assert listed.shape == (len(S), n)
    return _relative(listed - S @ K, S @ K)


def _steps(
    K: Array, S: Array, k_x: Array, lam: float, largest: float
) -> Iterator[tuple[str, float]]:
    """Of the proof: T₁²/λ and T₂²/λ for functions of norm 1, and its first inequality."""
    n = len(K)
    v1 = exact.v1(K, k_x, lam)
    v2 = exact.v2(K, S, k_x, lam)
    squares = {"T1": v1 * n * lam**2, "T2": v2 * n * lam**2}  # V = σ²/(nλ²) T²
    s = exact.s_lambda(K, lam)
    for name, value in squares.items():
        if len(S) >= s:
            yield name, float(value.max() / lam / largest)
    bound = (np.sqrt(squares["T1"]) + np.sqrt(squares["T2"])) ** 2 / (n * lam**2)
    yield "inequality", float(np.abs(v1 - v2).max() / bound.max())
    D = np.maximum(np.linalg.eigvalsh(K), 0)
    yield "tail of the trace", float(D[lam >= D].sum() / D.sum())


def _variances(
    K: Array, S: Array, k_x: Array, lam: float, rng: np.random.Generator
) -> Iterator[tuple[str, float]]:
    """Variances over draws of the noise, over the formulas: geometric means over points."""
    n = len(K)
    noise = rng.standard_normal((n, _DRAWS))
    A = K @ S.T
    B = lam * S @ A + A.T @ A
    means = {
        "exact": exact.mean(K, k_x, noise, lam),
        "projected": (k_x - A @ np.linalg.solve(B, A.T @ k_x)).T @ noise / (n * lam),
        "sketched": exact.sketched_mean(K, S, k_x, noise, lam),
    }
    seen = {name: mean.var(axis=1) for name, mean in means.items()}
    formulas = {
        "V1": seen["exact"] / exact.v1(K, k_x, lam),
        "V2": seen["projected"] / exact.v2(K, S, k_x, lam),
        "V3": seen["sketched"] / exact.v3(K, S, k_x, lam),
        "V3 as printed": seen["sketched"] / exact.v3_as_printed(K, S, k_x, lam),
        "V2 to V3": np.abs(exact.v2(K, S, k_x, lam) / exact.v3(K, S, k_x, lam) - 1),
    }
    for name, ratio in formulas.items():
        yield name, float(np.exp(np.log(ratio).mean()))


def _decay(decay: str) -> list[dict]:
    """Eigenvalues of the operator, over the ranks in which their decay is read."""
    grid = (np.arange(_EVEN)[:, None] + 0.5) / _EVEN
    kernel = KERNELS[DECAYS[decay].kernels[0]]
    D = np.linalg.eigvalsh(kernel(grid, grid) / _EVEN)[::-1]
    first, last = _RANKS[decay]
    return [
        {"decay": decay, "n": 0, "name": "eigenvalue", "rank": k, "value": float(D[k - 1] / D[0])}
        for k in range(first, last + 1)
    ]


def _relative(difference: Array, whole: Array) -> float:
    return float(np.linalg.norm(difference) / np.linalg.norm(whole))
