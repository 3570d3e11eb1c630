"""From the sketch to the exact answer: preconditioned conjugate gradients, with a proof of how far
the result can be off.

Throughout K = M^½ G M^½ and k = M^½ k_x; z = (K + λI)⁻¹k gives V1 = ‖z‖²/Σw. With an intercept z
lies where qᵀz = 1 for the unit vector q = M^½ 1, and residuals are taken orthogonal to q.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sketchridge.backends import Tall
from sketchridge.precision import EPS, FULL, rounding
from sketchridge.progress import status
from sketchridge.query import Query, Theta, share_at
from sketchridge.ridge import Ridge
from sketchridge.system import System, norms

__all__ = ["PrecisionError", "Refined", "exact_mean", "inverse_diagonal", "refined_variance", "v1"]

Array = np.ndarray
Judge = Callable[[Array, Array], Array]  # of the norms of z and of the residual: which go on
Tell = Callable[[], None]  # that another step is done
_BYTES = 2**30  # of the tall matrices while a block of points is refined
_STEPS = 500  # before the residual is taken afresh
_WIDTH = 256  # points in a block: wider ones gain little and cost more algebra
_PATIENCE = 3  # fresh starts that do not halve a residual before a column is given up
_GAIN = 0.9  # of its smallest residual, below which a column has come closer
_WAIT = 30  # steps without that before the residual is taken afresh
_DROP = 1e-3  # of a residual, as far as steps in lower precision can be trusted
_TINY = np.finfo(float).tiny


class PrecisionError(RuntimeError):
    """A tolerance that the chosen precision cannot reach."""


@dataclass(frozen=True, eq=False)
class Refined:
    """Variances for unit noise with a rigorous bound on |√V1 − √V|, with rounding: each (t,)."""

    variance: Array
    bound: Array


def refined_variance(ridge: Ridge, query: Query, *, theta: Theta, steps: int) -> Refined:
    """The variance of the weights θ z₂ + (1 − θ) z₃ after a number of steps toward V1.

    One product with K per step and one for the bound, each O(n²) per point.
    """

    def block(system: System, B: Tall, Z: Tall) -> tuple[Tall, Tall]:
        if steps and _lost(ridge) < 1:  # else rounding undoes every step
            Z = _walk(system, Z, system.residual(B, Z), steps)
            Z = system.normalized(Z)
        return Z, system.residual(B, Z)

    return _in_blocks(ridge, query, theta, block)


def v1(
    ridge: Ridge,
    query: Query,
    *,
    theta: Theta,
    tol: float,
    first: str,
    step: str,
    keep: list[Tall] | None = None,
) -> Refined:
    """V1 with a relative error of at most ``tol``, by as many steps from the weights
    θ z₂ + (1 − θ) z₃ as each point needs.

    A point is done when bound/√V ≤ √(1 + tol) − 1. The first residual is computed in the precision
    ``first``, steps in ``step``, bounds in float64. A tolerance below rounding raises
    PrecisionError. The weights z/√Σw (n, t) are added to ``keep``, block by block, where given.
    """
    allowed = np.sqrt(1 + tol) - 1
    lost = _lost(ridge)

    def unfinished(z: Array, r: Array) -> Array:
        return ~(r / ridge.lam <= (allowed - lost) * z)

    def block(system: System, B: Tall, Z: Tall) -> tuple[Tall, Tall]:
        ways = (System(ridge, first), System(ridge, step))
        Z, R = _solve(system, *ways, B, Z, unfinished)
        z, r = norms(Z), norms(R)
        if unfinished(z, r).any():
            worst = float((r / ridge.lam / (z + _TINY)).max()) + lost
            raise PrecisionError(_advice(ridge, (1 + worst) ** 2 - 1, tol))
        return Z, R

    if not lost < allowed:
        raise PrecisionError(_advice(ridge, (1 + lost) ** 2 - 1, tol))
    return _in_blocks(ridge, query, theta, block, keep)


def exact_mean(
    ridge: Ridge, *, tol: float, step: str, seconds: float = np.inf, tell: Tell | None = None
) -> tuple[Tall, Array]:
    """Coefficients ω (n, q) and offset (q,) of the exact mean k_xᵀω + offset, with
    ‖residual‖ ≤ tol·‖Y‖.

    The mean is then off by at most tol·‖Y‖ in the root mean square over the training rows, and by
    at most √(V1(x)Σw)·tol·‖Y‖ at every x, with ‖Y‖² = Σ w y²/Σw. Where that takes more than so many
    seconds it raises PrecisionError. ``tell`` is told of every step.
    """
    system = System(ridge, FULL, total=0.0)
    Y = ridge.basis.Y.scaled(system.root)
    scale = norms(Y)
    scale = np.where(scale > 0, scale, 1.0)
    Y = Y.map(lambda y, s: y / s, small=(scale,))
    Z, _ = _solution(system, Y, tol, step, seconds, tell)
    offset = np.zeros(len(scale))
    if ridge.intercept is not None:
        left = Y.map(lambda y, kz: y - kz, system.product(Z))
        offset = system.root.gram(left)[0]
    return Z.map(lambda z, m, s: z * m * s, system.root, small=(scale,)), scale * offset


def inverse_diagonal(
    ridge: Ridge,
    rows: Array,
    *,
    tol: float,
    step: str,
    seconds: float,
    tell: Tell | None = None,
) -> Array:
    """B_ii at some rows, B = (G + αW⁻¹)⁻¹ or, with an intercept, B − B11ᵀB/(1ᵀB1): (p,).

    With z all but solving (K + λI)z = e_i, e_iᵀ(z + (K + λI)⁻¹r) is z_i + zᵀr to second order in
    the residual r, so that ‖r‖ ≤ tol leaves tol² of λ⁻¹. One block of conjugate gradients.
    """
    system = System(ridge, FULL, total=0.0)
    unit = np.zeros((len(ridge.sample), len(rows)))
    unit[rows, np.arange(len(rows))] = 1.0
    B = ridge.sample.backend.tall(unit)
    Z, R = _solution(system, B, tol, step, seconds, tell)
    return (_dots(B, Z) + _dots(R, Z)) * system.root.take(rows)[:, 0] ** 2


def _solution(
    system: System, B: Tall, tol: float, step: str, seconds: float, tell: Tell | None = None
) -> tuple[Tall, Tall]:
    """Z with qᵀz = 0 and the residual R, ‖r‖ ≤ tol, for columns B of length 1 or less."""
    ridge = system.ridge
    started = time.monotonic()
    if not EPS[FULL] * ridge.basis.largest < ridge.lam:
        raise PrecisionError(_mean_advice(ridge, 1.0, tol))

    def unfinished(z: Array, r: Array) -> Array:
        if time.monotonic() - started > seconds:
            raise PrecisionError(_mean_advice(ridge, float(r.max()), tol))
        return ~(r <= tol)

    quick = System(ridge, step, total=0.0)
    Z, R = _solve(system, system, quick, B, system.precondition(B), unfinished, tell)
    reached = float(norms(R).max(initial=0.0))
    if not reached <= tol:
        raise PrecisionError(_mean_advice(ridge, reached, tol))
    return Z, R


def _solve(
    system: System,
    first: System,
    quick: System,
    B: Tall,
    Z: Tall,
    unfinished: Judge,
    tell: Tell | None = None,
) -> tuple[Tall, Tall]:
    """Iterate the unfinished columns until none is left or none comes closer.

    The first residual is that of ``first``, and steps are taken with ``quick`` as long as it helps;
    every residual that is judged is taken afresh with ``system``.
    """
    R = first.residual(B, Z)
    active = unfinished(norms(Z), norms(R)) | (first.precision != system.precision)
    stalls = np.zeros(len(active), dtype=int)
    while active.any():
        before = norms(R)
        drop = 0.0 if quick.precision == system.precision else _DROP
        columns = np.flatnonzero(active)
        moved = _descend(quick, _some(Z, columns), _some(R, columns), unfinished, drop, tell)
        moved = system.normalized(moved, columns)
        left = system.residual(_some(B, columns), moved)
        after = norms(left)
        better = after < before[columns]  # never true of NaN: such a column stays where it was
        Z = _replaced(Z, moved, columns[better], np.flatnonzero(better))
        R = _replaced(R, left, columns[better], np.flatnonzero(better))
        if first.precision != system.precision and not better.all():
            R = system.residual(B, Z)  # that of the start is rounded
        first = system
        helped = after <= 0.5 * before[columns]
        stalls[columns] = np.where(helped, 0, stalls[columns] + 1)
        active = unfinished(norms(Z), norms(R))
        if (active & (stalls > 0)).any():
            if quick.precision == system.precision:
                active &= stalls < _PATIENCE
            else:
                quick = system
    return Z, R


def _descend(
    system: System, Z: Tall, R: Tall, unfinished: Judge, drop: float, tell: Tell | None
) -> Tall:
    """Block conjugate gradients: each step moves every column to its best point in the span of all
    columns' directions.

    A column ends when it is finished, or when its residual (by recursion) has fallen by the factor
    ``drop``; the point with the smallest residual is its result.
    """
    columns = np.arange(Z.shape[1])
    best = norms(R)
    least = drop * best
    out = Z
    P: Tall | None = None
    Q: Tall | None = None
    steps = min(_STEPS, 2 * len(Z) + 10)
    gained = 0
    with status("Refining" if tell is None else "") as say:
        for step in range(steps):
            P, Q = system.directions(R, P, Q)
            if not P.shape[1]:
                break
            length = P.gram(R)
            Z = Z.map(lambda z, p: z + p, P @ length)
            R = R.map(lambda r, q: r - q, Q @ length)
            size = norms(R)
            closer = np.flatnonzero(size < best[columns])  # never true of NaN
            gained = step if (size < _GAIN * best[columns]).any() else gained
            out = _replaced(out, Z, columns[closer], closer)
            best[columns[closer]] = size[closer]
            if not np.isfinite(size).all() or step - gained > _WAIT:
                break
            keep = unfinished(norms(Z), 1.1 * size) & (size > least)
            if tell is None:
                say(f"Refining: step {step + 1}, {keep.sum()} of {out.shape[1]} points unfinished")
            else:
                tell()
            if not keep.any():
                break
            kept = np.flatnonzero(keep)
            Z, R, least, columns = _some(Z, kept), _some(R, kept), least[kept], columns[kept]
    return out


def _walk(system: System, Z: Tall, R: Tall, steps: int) -> Tall:
    """A number of steps of conjugate gradients, each column on its own: its result does not depend
    on the others. A column that is solved to rounding stays where it is."""
    lam = system.ridge.lam
    P = system.precondition(R)
    rho = _dots(R, P)
    solved = EPS[FULL] * norms(R)
    for _ in range(steps):
        unsolved = norms(R) > solved
        if not unsolved.any():
            break
        Q = system.project(system.product(P))
        curvature = _dots(P, Q)
        going = unsolved & (curvature > lam / 2 * _dots(P, P)) & (rho > 0)
        length = np.divide(rho, curvature, out=np.zeros_like(rho), where=going)
        Z = Z.map(lambda z, p, a: z + p * a, P, small=(length,))
        R = R.map(lambda r, q, a: r - q * a, Q, small=(length,))
        D = system.precondition(R)
        old, rho = rho, _dots(R, D)
        again = np.divide(rho, old, out=np.zeros_like(rho), where=going & (old > 0))
        P = D.map(lambda d, p, a: d + p * a, P, small=(again,))
    return Z


def _in_blocks(
    ridge: Ridge,
    query: Query,
    theta: Theta,
    block: Callable[[System, Tall, Tall], tuple[Tall, Tall]],
    keep: list[Tall] | None = None,
) -> Refined:
    """Weights and residuals by ``block`` of k and the weights to start from, turned into variances
    and bounds, for as many points at a time as memory allows."""
    sample = ridge.sample
    lost = _lost(ridge)
    size = min(_WIDTH, max(1, _BYTES // (8 * 8 * len(sample))))
    std = np.empty(len(query))
    bound = np.empty(len(query))
    total = np.sqrt(sample.total)
    quiet = np.errstate(over="ignore", invalid="ignore", divide="ignore")  # judged at the end
    with sample.backend.alone(), status("Refining"), quiet:
        for start in range(0, len(query), size):
            rows = slice(start, min(start + size, len(query)))
            some = query.some(rows)
            system = System(ridge, FULL, some.constant)
            B, Z, scale = _started(system, some, theta)
            Z, R = block(system, B, Z)
            std[rows] = scale * norms(Z) / total
            left = scale * norms(R) + some.rounding()
            bound[rows] = left / ridge.lam / total + lost * std[rows]
            if keep is not None:
                keep.append(Z.map(lambda z, s: z * s, small=(scale / total,)))
    if not np.isfinite(std).all() or not np.isfinite(bound).all():
        raise PrecisionError(
            f"The refined variances overflow: λ = {ridge.lam:.3g} is far below the largest "
            f"eigenvalue {ridge.basis.largest:.3g}. Give a larger alpha, or rescale X."
        )
    variance = std**2
    return Refined(variance, bound + np.abs(std - np.sqrt(variance)))


def _started(system: System, query: Query, theta: Theta) -> tuple[Tall, Tall, Array]:
    """k and the weights to start from, each (n, t), in units of what is third: (t,)."""
    ridge = system.ridge
    B = query.columns(ridge.sample).scaled(system.root)
    scale = np.ones(len(query))
    if ridge.intercept is None:  # far from the data squares would underflow
        sizes = B.sum(lambda b: abs(b).sum(axis=0))
        scale = np.where(sizes > 0, sizes, 1.0)
    B = B.map(lambda b, s: b / s, small=(scale,))
    share = share_at(theta, query)
    mixed = np.max(share, initial=0.0) < 1
    a = ridge.features(query) / scale[:, None] if mixed else None
    return B, system.start(B, a, share), scale


def _lost(ridge: Ridge) -> float:
    """What rounding in products with K costs √V, relative."""
    return rounding(FULL, ridge.sample.scales) / ridge.lam + 64 * EPS[FULL]


def _dots(A: Tall, B: Tall) -> Array:
    return A.sum(lambda a, b: (a * b).sum(axis=0), B)


def _some(A: Tall, columns: Array) -> Tall:
    return A if len(columns) == A.shape[1] else A.map(lambda a: a[:, columns])


def _replaced(A: Tall, new: Tall, columns: Array, which: Array) -> Tall:
    """A with some columns replaced by columns of ``new``."""
    if len(columns) == A.shape[1] == new.shape[1]:
        return new
    if not len(columns):
        return A

    def put(a: Array, b: Array) -> Array:
        out = a * 1
        out[:, columns] = b[:, which]
        return out

    return A.map(put, new)


def _advice(ridge: Ridge, reached: float, tol: float) -> str:
    return (
        f"The tolerance {tol:.3g} was not reached: with λ = {ridge.lam:.3g} and the largest "
        f"eigenvalue {ridge.basis.largest:.3g} the relative error is only known to be below "
        f"{reached:.3g}. Use a tol above that, a larger alpha, or a larger sketch_size."
    )


def _mean_advice(ridge: Ridge, reached: float, tol: float) -> str:
    return (
        f"The exact mean was not reached: with λ = {ridge.lam:.3g} and the largest eigenvalue "
        f"{ridge.basis.largest:.3g} the residual stopped at {reached:.3g} of ‖y‖ instead of "
        f"{tol:.3g}. Use a larger alpha, a larger sketch_size, or solver='sketch'."
    )
