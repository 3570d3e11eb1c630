"""Figure 1: sup|V1 − V| for V2, V3 and V̄, with Assumption A1 measured in every repetition."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse.linalg import eigsh

from sketchridge.exact import exponential_rule, polynomial_rule
from sketchridge.kernels import CubicSpline, Gaussian, Kernel, PeriodicSobolev
from sketchridge.paper.options import Options, blocks
from sketchridge.paper.runs.algebra import sketched_spectrum
from sketchridge.sketches import EntrySketch, GaussianSketch

__all__ = ["DECAYS", "FIXED_LAMBDA", "KERNELS", "Gaps", "Smooth", "even_points"]

Array = np.ndarray
GRID = np.linspace(0, 1, 201)[:, None]
SIZES = (50, 66, 86, 113, 149, 195, 257, 338, 443, 582, 764, 1000)
SIGMAS = (0.5, 1.0, 2.0, 3.0, 4.0, 5.0)
LARGEST = 1000  # n of the panels in which it does not vary
FIXED_LAMBDA = 0.01
_GRID_SIZE = 2000  # points of the grid whose kernel matrix has the eigenvalues of the operator
_LEAST = 20  # training points
_LEADING = 16  # eigenpairs computed at first
KERNELS: dict[str, Kernel] = {
    "cubic spline": CubicSpline(),
    "periodic Sobolev": PeriodicSobolev(2),
    "Gaussian": Gaussian(bandwidth=0.25),
}


@dataclass(frozen=True)
class Decay:
    """λ(n) and the rules for m of Examples 1 and 2 and of the text on Figure 1."""

    kernels: Sequence[str]
    rule: Callable[[int, float, float], tuple[float, int]]
    factor: float  # of m in panels (a), (b), (e), (f)
    powers: Sequence[float]  # c in panels (c), (d)

    def lam(self, n: int) -> float:
        return self.rule(n, 2, 1.0)[0]

    def size(self, n: int) -> int:
        return self.rule(n, 2, self.factor)[1]

    def size_of_power(self, n: int, c: float) -> int:
        base = n ** (1 / 5) if self.rule is polynomial_rule else np.log(n) ** (1 / 2)
        return int(np.ceil(1.2 * base**c))


DECAYS = {
    "polynomial": Decay(
        ("cubic spline", "periodic Sobolev"),
        polynomial_rule,
        1.5,
        (0.4, 0.7, 1.0, 1.3, 1.6, 1.9),
    ),
    "gaussian": Decay(("Gaussian",), exponential_rule, 2.0, (0.3, 0.6, 0.8, 1.0, 1.2, 1.5, 1.8)),
}


class Smooth:
    """Training points X (n, 1): K, its leading eigenpairs, and variances of sketches at X_new."""

    def __init__(self, kernel: Kernel, X: Array, X_new: Array = GRID) -> None:
        self.n = n = len(X)
        self.K = kernel(X, X) / n
        self.k_x = kernel(X, X_new)
        self._known = self._leading(_LEADING)

    def _leading(self, count: int) -> tuple[Array, Array]:
        D, U = eigsh(self.K, k=min(count, self.n - 1), v0=np.ones(self.n))
        order = np.argsort(D)[::-1]
        return D[order], U[:, order]

    def above(self, lam: float) -> tuple[Array, Array]:
        """Eigenvalues above λ, of which there are s_λ, and their eigenvectors."""
        while self._known[0][-1] > lam and len(self._known[0]) < self.n - 1:
            self._known = self._leading(2 * len(self._known[0]))
        D, U = self._known
        return D[lam < D], U[:, lam < D]

    def v1(self, lam: float) -> Array:
        """For unit noise."""
        solved = cho_solve(cho_factor(self.K + lam * np.eye(self.n), lower=True), self.k_x)
        return (solved**2).sum(axis=0) / self.n**2

    def variances(self, sketch: EntrySketch, lam: float) -> tuple[Array, Array, Array]:
        """V2, V3 and V̄ for unit noise."""
        alpha = self.n * lam
        S = sketch.entries(range(sketch.size), range(self.n))
        R = self.n * self.K @ S.T
        spectrum = sketched_spectrum(R, S @ R)
        t = S @ self.k_x
        return (
            spectrum.v2(self.k_x, alpha),
            spectrum.v3(t, alpha),
            spectrum.vbar(self.k_x, t, alpha),
        )

    def assumption(
        self, sketch: EntrySketch, lam: float, variance: float = 1.0
    ) -> tuple[float, float, float]:
        """Of S/√m, entries of variance 1: extreme singular values of S U₁, ‖S U₂ D₂^(1/2)‖/√λ.

        S U₂D₂U₂ᵀ Sᵀ = S K Sᵀ − S U₁D₁U₁ᵀ Sᵀ, so the leading eigenvectors are enough.
        """
        D, U = self.above(lam)
        S = sketch.entries(range(sketch.size), range(self.n)) / np.sqrt(sketch.size * variance)
        inner = S @ U
        tail = S @ self.K @ S.T - (inner * D) @ inner.T
        largest = max(float(np.linalg.eigvalsh(tail)[-1]), 0.0)
        if not len(D):
            return 1.0, 1.0, np.sqrt(largest / lam)
        singular = np.linalg.svd(inner, compute_uv=False)
        smallest = float(singular[-1]) if len(D) <= sketch.size else 0.0
        return smallest, float(singular[0]), float(np.sqrt(largest / lam))


def _count(kernel: str, kernels: Sequence[str], count: int) -> int:
    """Repetitions: all of them for the paper's kernel, at most 50 for one that is beside it."""
    return count if kernel == kernels[0] else min(count, 50)


def even_points(n: int, seed: int) -> Array:
    """X ~ U[0, 1]: (n, 1)."""
    return np.random.default_rng([seed, n]).random((n, 1))


@dataclass(frozen=True)
class Gaps:
    """The rows of one panel: what varies is n, c or sigma."""

    decay: str
    varies: str
    takes = frozenset({"repetitions", "n"})
    reads = ""
    alone = False

    def cells(self, options: Options) -> list[dict]:
        kernels = DECAYS[self.decay].kernels
        if self.varies == "sigma":
            kernels = kernels[:1]
        count = options.count(quick=40, full=200)
        given = {"n": SIZES, "c": DECAYS[self.decay].powers, "sigma": (1.0,)}[self.varies]
        values = options.n or given if self.varies == "n" else given
        n = LARGEST if self.varies == "n" else options.one_n(LARGEST)
        options.least(int(min(values)) if self.varies == "n" else n, _LEAST, "Figure 1")
        spectra = [{"kernel": k, "value": "spectrum"} for k in kernels if self.varies == "n"]
        return spectra + [
            {"kernel": kernel, "value": value, "n": n, "first": first, "count": length}
            for kernel in kernels
            for value in values
            for first, length in blocks(options.first_seed, _count(kernel, kernels, count), 50)
        ]

    def run(self, cell: dict, data: Path | None) -> list[dict]:
        if cell["value"] == "spectrum":
            return self._spectrum(cell["kernel"])
        seeds = range(cell["first"], cell["first"] + cell["count"])
        return [row for seed in seeds for row in self._repetition(cell, seed)]

    def _sizes(self, n: int, value: float) -> dict[str, int]:
        """m by the paper's rule and, where n varies, that of the largest n."""
        decay = DECAYS[self.decay]
        if self.varies == "c":
            return {"rule": decay.size_of_power(n, value)}
        if self.varies == "n":
            return {"rule": decay.size(n), "fixed": decay.size(LARGEST)}
        return {"rule": decay.size(n)}

    def _repetition(self, cell: dict, seed: int) -> list[dict]:
        value = cell["value"]
        n = int(value) if self.varies == "n" else cell["n"]
        problem = Smooth(KERNELS[cell["kernel"]], even_points(n, seed))
        rows: list[dict] = []
        for reading, lam in (("optimal", DECAYS[self.decay].lam(n)), ("fixed", FIXED_LAMBDA)):
            v1 = problem.v1(lam)
            for m_is, m in self._sizes(n, value).items():
                sketch = GaussianSketch(m, seed)
                gaps = [float(np.abs(v1 - v).max()) for v in problem.variances(sketch, lam)]
                low, high, tail = problem.assumption(sketch, lam)
                row = {
                    "kernel": cell["kernel"],
                    "lambda_is": reading,
                    "m_is": m_is,
                    "value": value,
                    "seed": seed,
                    "n": n,
                    "m": m,
                    "lambda": lam,
                    "s_lambda": len(problem.above(lam)[0]),
                    "sup_v1": float(v1.max()),
                    "gap_v2": gaps[0],
                    "gap_v3": gaps[1],
                    "gap_vbar": gaps[2],
                    "a1_low": low,
                    "a1_high": high,
                    "a1_tail": tail,
                }
                rows += self._scaled(row) if self.varies == "sigma" else [row]
        return rows

    def _scaled(self, row: dict) -> list[dict]:
        """For every σ: all variances are those of σ = 1 times σ²."""
        columns = ("sup_v1", "gap_v2", "gap_v3", "gap_vbar")
        return [
            {**row, "value": sigma, **{name: sigma**2 * row[name] for name in columns}}
            for sigma in SIGMAS
        ]

    def _spectrum(self, kernel: str) -> list[dict]:
        """s_λ far beyond n = 1,000, by the eigenvalues of the kernel on an even grid."""
        rows: list[dict] = []
        grid = (np.arange(_GRID_SIZE)[:, None] + 0.5) / _GRID_SIZE
        eigenvalues = np.linalg.eigvalsh(KERNELS[kernel](grid, grid) / _GRID_SIZE)
        for n in np.geomspace(1e4, 1e10, 40).round().astype(int):
            lam = DECAYS[self.decay].lam(int(n))
            rows.append(
                {
                    "kernel": kernel,
                    "lambda_is": "spectrum",
                    "m_is": "none",
                    "value": int(n),
                    "n": int(n),
                    "lambda": lam,
                    "s_lambda": int((eigenvalues > lam).sum()),
                }
            )
        return rows
