"""What the tests share: the one place tolerances come from, tiny data, dense formulas, and the
tables of kernels and sketches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from sketchridge import SketchedKernelRidge, kernels, sketches
from sketchridge.backends import Backend, NumpyTiles
from sketchridge.basis import Basis, Intercept, basis_of
from sketchridge.factor import Factor, Sample, factorize, sample_of
from sketchridge.query import AtPoints
from sketchridge.ridge import Ridge

Array = np.ndarray
TOLERANCE = {"float64": 1e-10, "float32": 5e-5, "pcg": 1e-7, "percent": 0.03}


def tol(kind: str | np.dtype = "float64") -> float:
    """The relative error allowed: by dtype, or a few percent where the problem itself is
    ill-conditioned."""
    return TOLERANCE[str(kind)]


def assert_close(
    actual: Any,
    desired: Any,
    kind: str | np.dtype = "float64",
    *,
    scale: float | None = None,
    condition: float = 1.0,
) -> None:
    """|actual − desired| ≤ tol · scale · condition.

    ``scale`` is the largest desired entry, ``condition`` the factor that multiplies rounding where
    the inputs were deliberately made ill-conditioned.
    """
    actual, desired = np.asarray(actual), np.asarray(desired)
    assert actual.shape == desired.shape
    if desired.size:
        scale = np.abs(desired).max() if scale is None else scale
        np.testing.assert_allclose(actual, desired, rtol=0, atol=tol(kind) * scale * condition)


def assert_close_each(actual: Array, desired: Array, kind: str | np.dtype = "float64") -> None:
    """|actual − desired| ≤ tol · |desired|, entry by entry."""
    np.testing.assert_allclose(actual, desired, rtol=tol(kind), atol=0, strict=True)


def __getattr__(name: str) -> str:
    """DEVICE, "cuda" where PyTorch finds a GPU: PyTorch is imported only for those who ask."""
    if name != "DEVICE":
        raise AttributeError(f"module 'helpers' has no attribute {name!r}")
    try:
        import torch
    except ImportError:
        return "cpu"
    return "cuda" if torch.cuda.is_available() else "cpu"


# Tiny data


def normal(n: int, d: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal((n, d))


def unit_cube(n: int, d: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).random((n, d))


def targets(n: int, q: int = 1, seed: int = 1) -> Array:
    return np.random.default_rng(seed).standard_normal((n, q))


def uneven(n: int, seed: int = 5) -> Array:
    """Weights between 0.1 and 10."""
    return 10 ** np.random.default_rng(seed).uniform(-1, 1, n)


# Kernels and sketches


def rational_quadratic(s: Any, xp: Any, shape: float) -> Any:
    """A user's profile, which is pure and needs a parameter."""
    return (1 + s / (2 * shape)) ** -shape


def rational_quadratic_slope(s: Any, xp: Any, shape: float) -> Any:
    return -0.5 * (1 + s / (2 * shape)) ** (-shape - 1)


def exponential(s: Any, xp: Any) -> Any:
    """A user's kernel of the inner product."""
    return xp.exp(s)


@dataclass(frozen=True)
class KernelCase:
    """A kernel, a maker of points (n, d, seed) it is defined on, and a d for which its matrices are
    well conditioned."""

    id: str
    kernel: kernels.Kernel
    make: Callable[..., Array]
    d: int = 3

    def __str__(self) -> str:
        return self.id

    def points(self, n: int, seed: int = 0) -> Array:
        return self.make(n, self.d, seed)

    def fitted(self, X: Array) -> kernels.Kernel:
        return self.kernel.fitted(X)


def cityblock(X: Array, Z: Array) -> Array:
    return np.exp(-np.abs(X[:, None] - Z[None]).sum(axis=2))


KERNEL_CASES = [
    KernelCase("gaussian", kernels.Gaussian(bandwidth=0.9), normal),
    KernelCase("gaussian-ard", kernels.Gaussian(bandwidth=np.array([0.5, 1.0, 2.0])), normal),
    KernelCase("gaussian-map", kernels.Gaussian(bandwidth=normal(3, 4, seed=11)), normal),
    KernelCase("laplacian", kernels.Laplacian(bandwidth=1.5), normal),
    KernelCase("matern32", kernels.Matern32(bandwidth=1.2), normal),
    KernelCase("matern52", kernels.Matern52(bandwidth=1.2), normal),
    KernelCase(
        "rational-quadratic",
        kernels.Radial(
            rational_quadratic, rational_quadratic_slope, bandwidth=0.5, parameters=(1.5,)
        ),
        normal,
    ),
    KernelCase("polynomial", kernels.Polynomial(degree=3, gamma=0.5, coef0=0.7), normal, d=5),
    KernelCase("polynomial-default", kernels.Polynomial(), normal, d=5),
    KernelCase("linear", kernels.Linear(), normal, d=40),
    KernelCase("exponential", kernels.DotProduct(exponential, gamma=0.3), normal, d=5),
    KernelCase("cubic-spline", kernels.CubicSpline(), unit_cube),
    KernelCase("periodic-sobolev-1", kernels.PeriodicSobolev(order=1), unit_cube),
    KernelCase("periodic-sobolev-2", kernels.PeriodicSobolev(order=2), unit_cube),
    KernelCase("callable", kernels.as_kernel(cityblock), normal),
    KernelCase("scikit-learn", kernels.as_kernel(ConstantKernel(2.0) * RBF(0.9)), normal),
]
LAPLACIAN = next(case for case in KERNEL_CASES if case.id == "laplacian")


@dataclass(frozen=True)
class SketchCase:
    """A maker (m, n, seed) of a sketch with m rows, or with none yet where the data choose them."""

    id: str
    make: Callable[[int, int, int], sketches.Sketch]

    def __str__(self) -> str:
        return self.id


def _entry(cls: Any) -> Callable[[int, int, int], sketches.Sketch]:
    return lambda m, n, seed: cls(size=m, seed=seed)


def _row(cls: Any) -> Callable[[int, int, int], sketches.Sketch]:
    return lambda m, n, seed: cls(seed=seed)


_NAMED = sketches.SKETCHES.items()
ENTRY_CASES = [
    SketchCase(name, _entry(cls)) for name, cls in _NAMED if issubclass(cls, sketches.EntrySketch)
]
ROW_CASES = [
    SketchCase(name, _row(cls)) for name, cls in _NAMED if issubclass(cls, sketches.RowSketch)
]
ARRAY_CASE = SketchCase("array", lambda m, n, seed: sketches.ArraySketch(normal(m, n, seed)))
SKETCH_CASES = [*ENTRY_CASES, *ROW_CASES, ARRAY_CASE]


def matrix_of(sketch: sketches.Sketch, n: int) -> Array:
    """S itself: (m, n)."""
    if isinstance(sketch, sketches.RowSketch):
        return np.eye(n)[sketch.indices]
    assert isinstance(sketch, sketches.EntrySketch)
    return sketch.entries(range(sketch.size), range(n))


def mixing(m: int, seed: int, condition: float = 1e3) -> Array:
    """A random Q (m, m) of the given condition number."""
    rng = np.random.default_rng(seed)
    U, V = (np.linalg.qr(rng.standard_normal((m, m)))[0] for _ in range(2))
    return U * np.geomspace(1, condition, m) @ V


# From points to a ridge, in one step


def sample_for(
    kernel: kernels.Kernel, X: Array, w: Array | None = None, backend: Backend | None = None
) -> Sample:
    """Points placed with weights, 1 unless given."""
    backend = NumpyTiles() if backend is None else backend
    points = backend.place(kernel, kernel.training_coordinates(X))
    return sample_of(points, np.ones(len(X)) if w is None else w)


def factor_for(sample: Sample, sketch: sketches.Sketch, m: int | None = None) -> Factor:
    """The factor with m sketch rows, in float64."""
    factor = factorize(sample, sketch, "float64")
    grows = isinstance(sketch, sketches.RowSketch) and m is not None
    return factor.grown(m) if grows and m else factor


def basis_for(
    kernel: kernels.Kernel,
    X: Array,
    Y: Array,
    sketch: sketches.Sketch,
    m: int | None = None,
    *,
    w: Array | None = None,
    backend: Backend | None = None,
) -> Basis:
    """The basis with m sketch rows, in float64."""
    sample = sample_for(kernel, X, w, backend)
    return basis_of(factor_for(sample, sketch, m), sample.backend.tall(Y))


def ridge_for(
    basis: Basis,
    lam: float,
    fit_intercept: bool = False,
    *,
    precision: str = "float64",
    budget: float = 1e-3,
) -> Ridge:
    """A basis with a penalty."""
    intercept = Intercept(basis, lam) if fit_intercept else None
    return Ridge(basis, lam, intercept, precision, budget)


def at(model: Any, X: Array) -> AtPoints:
    """A question about the rows of X, to whatever has a sample."""
    points = model.sample.points
    return AtPoints(points.backend.place(points.kernel, points.kernel.coordinates(X)))


def values(kernel: kernels.Kernel, X: Array, Z: Array) -> Array:
    """k(X, Z)/unit, dense: what backends compute with."""
    return kernel(X, Z) / kernel.unit


# Dense formulas, from scratch


def nystrom(G: Array, S: Array, G_x: Array | None = None) -> Array:
    """Ĝ = G Sᵀ(S G Sᵀ)⁺S G, or its rows k̂(x, X) where G_x = k(x, X) (t, n) is given."""
    left = G if G_x is None else G_x
    return left @ S.T @ np.linalg.lstsq(S @ G @ S.T, S @ G, rcond=None)[0]


def weights_of_y(G: Array, right: Array, w: Array, lam: float, fit_intercept: bool) -> Array:
    """ℓ (t, n), with which the fit to Σ w (y − f − c)² + α‖f‖² predicts ℓᵀy; α = λΣw.

    (G + α diag(1/w))ℓ = right or, with an intercept, the bordered system that asks for 1ᵀℓ = 1.
    """
    n = len(G)
    A = G + lam * w.sum() * np.diag(1 / w)
    if not fit_intercept:
        return np.linalg.solve(A, right.T).T
    bordered = np.block([[A, np.ones((n, 1))], [np.ones((1, n)), np.zeros((1, 1))]])
    return np.linalg.solve(bordered, np.vstack([right.T, np.ones(len(right))]))[:n].T


def variance_of(weights: Array, w: Array) -> Array:
    """Σ ℓ²/w, the variance for unit noise: (t,)."""
    return (weights**2 / w).sum(axis=1)


def squared_bias(weights: Array, G: Array, right: Array, prior: Array) -> Array:
    """‖k_x − Σ ℓ_i k_i‖² in the space of the kernel: (t,)."""
    quadratic = np.einsum("ti,ij,tj->t", weights, G, weights)
    return prior - 2 * (weights * right).sum(axis=1) + quadratic


# V1 in extended precision, on random problems

Long = np.longdouble
UNDERFLOW = 1e-150  # the square of less is not a float64


def _distances(U: Array, V: Array, power: int) -> Array:
    return (np.abs(U[:, None] - V[None]) ** power).sum(axis=2)


def _matern32(U: Array, V: Array) -> Array:
    r = np.sqrt(3 * _distances(U, V, 2))
    return (1 + r) * np.exp(-r)


LONG_KERNELS: dict[str, tuple[Any, Callable[[Array, Array], Array]]] = {
    "gaussian": ("gaussian", lambda U, V: np.exp(-_distances(U, V, 2) / 2)),
    "matern32": ("matern32", _matern32),
    "laplacian": ("laplacian", lambda U, V: np.exp(-_distances(U, V, 1))),
    "polynomial": (
        kernels.Polynomial(degree=2, gamma=1.0, coef0=0.5),
        lambda U, V: (U @ V.T + Long(0.5)) ** 2,
    ),
    "linear": ("linear", lambda U, V: U @ V.T),
}


def _matern32_slope(U: Array, V: Array) -> Array:
    r = np.sqrt(3 * _distances(U, V, 2))
    return 3 * np.exp(-r)[:, :, None] * (U[:, None] - V[None])


LONG_SLOPES: dict[str, Callable[[Array, Array], Array]] = {  # ∂k(u, v)/∂v: (n, t, d)
    "gaussian": lambda U, V: np.exp(-_distances(U, V, 2) / 2)[:, :, None] * (U[:, None] - V[None]),
    "matern32": _matern32_slope,
    "polynomial": lambda U, V: 2 * (U @ V.T + Long(0.5))[:, :, None] * U[:, None],
    "linear": lambda U, V: np.repeat(U[:, None], len(V), axis=1),
}


def long_std(
    G: Array, k_x: Array, w: Array, alpha: float, fit_intercept: bool, one: Array | float = 1.0
) -> Array:
    """√V1 for unit noise by iterative refinement in extended precision: (t,).

    G (n, n) and k_x (n, t) are extended too; ``one`` is what functionals make of the constant.
    """
    n = len(G)
    A = G + Long(alpha) * np.diag(1 / w.astype(Long))
    right = np.column_stack([k_x, np.ones(n, dtype=Long)])
    inverse = np.linalg.inv(A.astype(float))
    Z = np.zeros_like(right)
    for _ in range(8):
        Z = Z + inverse @ (right - A @ Z).astype(float)
    ell, u = Z[:, :-1], Z[:, -1] / Z[:, -1].sum()
    if fit_intercept:
        ell = ell + np.outer(u, one - ell.sum(axis=0))
    return np.sqrt((ell**2 / w.astype(Long)[:, None]).sum(axis=0)).astype(float)


@dataclass(frozen=True)
class RandomProblem:
    """A fitted model with noise variance 1, test points, √V1 there, and how to find it again."""

    model: SketchedKernelRidge
    X_new: Array
    std: Array
    name: str
    kernel: str
    U: Array  # (n, d): the training rows in units of the bandwidth, extended
    V: Array  # (t, d): X_new
    h: float
    w: Array
    alpha: float

    def std_of(self, k: Array, one: Array) -> Array:
        """√V1 of functionals with representers k (n, p): (p,)."""
        _, formula = LONG_KERNELS[self.kernel]
        G = formula(self.U, self.U)
        return long_std(G, k, self.w, self.alpha, bool(self.model.fit_intercept), one)

    def contrast_std(self, A: Array) -> Array:
        """√V1 of A f(X_new): (p,)."""
        _, formula = LONG_KERNELS[self.kernel]
        A = A.astype(Long)
        return self.std_of(formula(self.U, self.V) @ A.T, A.sum(axis=1))

    def slope_std(self) -> Array | None:
        """√V1 of the derivatives at X_new: (t d,), or None for a kernel that has none."""
        if self.kernel not in LONG_SLOPES:
            return None
        k = LONG_SLOPES[self.kernel](self.U, self.V).reshape(len(self.U), -1) / Long(self.h)
        return self.std_of(k, np.zeros(k.shape[1]))


def random_problem(seed: int, **options: Any) -> RandomProblem:
    """A small problem of any kind: kernel, sketch, size, penalty, intercept, weights."""
    rng = np.random.default_rng(seed)
    name = str(rng.choice(list(LONG_KERNELS)))
    kernel, formula = LONG_KERNELS[name]
    n, d = int(rng.integers(5, 60)), int(rng.integers(1, 6))
    lam, fit_intercept = 10 ** rng.uniform(-9, -1), bool(rng.integers(2))
    X = rng.standard_normal((n, d))
    if rng.random() < 0.3:
        X[n // 2 :] = X[: n - n // 2]
    near, far = rng.standard_normal((4, d)), 10 * rng.standard_normal((2, d))
    X_new = np.concatenate([near, X[:2], far, np.full((1, d), 100.0)])
    h = 10 ** rng.uniform(-0.5, 0.7) if name in ("gaussian", "matern32", "laplacian") else None
    sketch = str(rng.choice(list(sketches.SKETCHES)))
    w = 10 ** rng.uniform(-1, 1, n) if rng.random() < 0.5 else np.ones(n)
    settings = {
        "bandwidth": h or "median",
        "alpha": float(w.sum() * lam),
        "sketch": sketch,
        "sketch_size": int(rng.integers(1, n + 1)),
        "noise_variance": 1.0,
        "fit_intercept": fit_intercept,
        "random_state": seed,
        **options,
    }
    model = SketchedKernelRidge(kernel, **settings).fit(X, rng.standard_normal(n), w)
    U, V = (A.astype(Long) / Long(h or 1) for A in (X, X_new))
    alpha = float(settings["alpha"])
    std = long_std(formula(U, U), formula(U, V), w, alpha, bool(settings["fit_intercept"]))
    where = f"{name}, {sketch}, seed {seed}"
    return RandomProblem(model, X_new, std, where, name, U, V, h or 1.0, w, alpha)
