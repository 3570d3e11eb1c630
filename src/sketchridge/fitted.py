"""Everything a fit found: frozen, and complete before anything is assigned."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np

from sketchridge import tuning
from sketchridge.backends import Elsewhere, NumpyTiles, Tall, Unreachable, on_cluster
from sketchridge.basis import Basis, Intercept
from sketchridge.certify import Certificate, trace_certificate
from sketchridge.data import Data, placed_again, scaled_path
from sketchridge.dense import DenseRidge
from sketchridge.distribution import LeftOut
from sketchridge.factor import EntryFactor, Factor, RowFactor
from sketchridge.model import Choices, Model, Task
from sketchridge.notices import warn
from sketchridge.precision import EPS, FULL, Plan, offered_or_full
from sketchridge.query import Query
from sketchridge.ridge import Ridge
from sketchridge.sample import Sample, Sizes, sample_elsewhere
from sketchridge.varying import Varying

__all__ = ["Fitted", "Probed", "Settings", "SketchTask", "rows_left_out"]

Array = np.ndarray
_STORED = 20e6  # bytes of L and V beyond which they are made again instead
_NEARLY = 1e-8  # what a mean by other coefficients may be off by, relative
_KNOWN = 1e-6  # of a row's noise: where the sketch misses less, landmarks are rows as others are
_TOLD = {"v3", "gp", "bias2", "predictive"}  # by landmarks, without the training rows
_GATHERED = 2**13  # rows that a cluster gives to the caller, and to each worker


@dataclass(frozen=True, kw_only=True)
class Settings(Choices):
    """The parameters of a `SketchedKernelRidge`, checked."""

    sketch: Any
    sketch_size: Any  # a number, a function of n, or None where it is automatic
    sketch_tol: float
    solver: str
    dtype: str
    seed: int
    largest_size: int | None = None  # of an automatic sketch, where it is not the backend's

    def sized(self, n: int) -> Settings:
        """With the sketch size for n rows, where it was given as a function of them."""
        if self.sketch_size is None or isinstance(self.sketch_size, Integral):
            return self
        size = self.sketch_size(n)
        if not isinstance(size, Integral) or size < 1:
            raise ValueError(
                f"sketch_size as a function of the number of rows must give a whole number from 1 "
                f"up, got {size!r} for {n} rows."
            )
        return replace(self, sketch_size=int(size))

    def probe(self, n: int) -> Array:
        """Up to 256 of n rows at which the gap is measured."""
        return tuning.probe_rows(n, np.random.default_rng(self.seed))


@dataclass(frozen=True, eq=False, kw_only=True)
class SketchTask(Task):
    """That of a fit with a sketch."""

    settings: Settings
    plan: Plan


class Probed(NamedTuple):
    """What rows that were left out exactly tell of the exact model: all of them, or some."""

    share: float = 1.0  # of what the sketch leaves unexplained, that it leaves too
    ratio: float = 1.0  # its squared leave-one-out error over that with this share
    unfitted: Array | None = None  # (n,): 1 − the diagonal of its smoother


@dataclass(frozen=True, eq=False, kw_only=True)
class Fitted(Model):
    """A fit with a sketch."""

    settings: Settings
    plan: Plan
    ridge: Ridge
    omega: Tall | None  # (n, q): coefficients of the exact mean, where that is the solver
    offset: Array  # (q,)
    grown_gap: float | None  # the gap, where growing the sketch has measured it
    probed: Probed = Probed()  # noqa: RUF009, a tuple
    saved_certificate: Certificate | None = None  # of a model that was loaded
    dense: DenseRidge | None = None  # the same, where L and V of a complete sketch were not stored

    def __post_init__(self) -> None:
        """What predictions need of the rows is taken from them now: later they may be gone."""
        ridge, factor = self.ridge, self.factor
        ridge.coefficients, ridge.offset, ridge.basis.rest  # noqa: B018, computed and kept
        if isinstance(factor, RowFactor):
            factor.landmark_points  # noqa: B018

    @property
    def factor(self) -> Factor:
        return self.ridge.basis.factor

    @property
    def ratio(self) -> float:
        """E₁/λ."""
        return self.ridge.basis.largest / self.ridge.lam

    def _inside(self, query: Query) -> Array:
        if self.omega is None:
            return (self.ridge if self.dense is None else self.dense).mean(query)
        against = query.against(self.sample, self.omega, self.plan.full)
        return np.outer(query.constant, self.offset) + against.host()

    def gp(self, query: Query) -> Array:
        return (self.ridge if self.dense is None else self.dense).gp(query)

    @cached_property
    def certificate(self) -> Certificate:
        """A bound on |√V2 − √V1| at every point, from the trace."""
        return self.saved_certificate or trace_certificate(self.ridge)

    @cached_property
    def gap(self) -> float:
        """The 95% quantile of V2/V3 over some training rows."""
        if self.grown_gap is not None:
            return self.grown_gap
        return tuning.gap(self.ridge, self.settings.probe(len(self.sample)))

    @property
    def eigenvalues(self) -> Array:
        """Eigenvalues of K̂ in descending order."""
        return self.ridge.basis.E * self.unit

    @property
    def solver(self) -> str:
        """Where the mean comes from: "cholesky", "pcg" or "sketch", exact too if complete."""
        if self.omega is None:
            return "sketch"
        return "pcg" if self.probed.unfitted is None else "cholesky"

    @property
    def left_out(self) -> LeftOut:
        """Every row predicted without itself, exactly for this alpha and sketch; for the exact mean
        with the inverse's diagonal as near as rows left out exactly bring it."""
        return rows_left_out(self.ridge, self.data, self.omega, self.probed, self.varying)

    @cached_property
    def path(self) -> tuning.LambdaPath:
        """λ, df, gcv and loo over the grid, in units of the kernel and of y²."""
        return scaled_path(self.ridge.basis, self.settings.fit_intercept, self.data)

    def with_numpy(self) -> Fitted:
        """The same model where NumPy computes, whatever the backend of the fit."""
        return _made_of(self._whole() | {"settings": replace(self.settings, backend="numpy")})

    def apart(self, asked: Collection[str]) -> Fitted | None:
        """The same model for a worker of a cluster, which answers with NumPy what is asked: "mean",
        "predictive" or kinds of variance.

        Where landmarks tell that, it is without its rows: O(m² + md) numbers, and up to 6,000
        scores for what is predictive. None where it needs more rows than a cluster gives away.
        """
        told = {*_TOLD, "mean"} if self.omega is None else _TOLD
        if isinstance(self.factor, RowFactor) and told >= set(asked):
            known = self.predictive if "predictive" in asked else None
            return _made_of(self._without_rows() | {"predictive": known})
        stays = on_cluster(self.data.X) and len(self.data.X) > _GATHERED
        return None if stays else self.with_numpy()

    def __getstate__(self) -> dict[str, Any]:
        """What predictions need, as NumPy arrays; columns of landmarks are made again."""
        if isinstance(self.data.X, Elsewhere):
            return self._without_rows()
        try:
            return self._whole()
        except (MemoryError, Unreachable) as error:
            is_here = not on_cluster(self.data.X)
            if not isinstance(self.factor, RowFactor) or (is_here and self.omega is not None):
                raise
            state = self._without_rows()
            if is_here:
                return state | {"data": self.data, "sizes": None, "varying": self.varying}
            warn(f"The model is saved without its training rows. {error}")
            return state

    def _whole(self) -> dict[str, Any]:
        factor = self.factor
        large = self._is_large
        kept: dict[str, Array | None]
        if isinstance(factor, RowFactor):
            kept = {"pivots": factor.rows, "L": None if large else factor.L}
        else:
            assert isinstance(factor, EntryFactor)
            sums = None if factor.sums is None else factor.sums.host()
            kept = {"sums": sums, "R": factor.R, "amplified": factor.amplified}
        data = self.data.with_numpy()
        varying = self.varying
        if varying is not None:
            varying = replace(varying, plain=replace(varying.plain, X=data.X))
        settings = self.settings
        if data.X is not self.data.X:  # it came from a cluster, and is here now
            settings = replace(settings, backend="auto")
        return self._small(large) | {
            "settings": settings,
            "data": data,
            "factor": kept,
            "omega": None if self.omega is None else self.omega.host(),
            "dual": self._dual if large else None,
            "gap": self.gap if self.grown_gap is None else self.grown_gap,
            "varying": varying,
            "predictive": self.predictive,
        }

    @property
    def _is_large(self) -> bool:
        """Whether L and V are left out of a file: the mean of an exact model needs neither."""
        if self.dense is not None:
            return True
        if not isinstance(self.factor, RowFactor) or 16 * self.factor.sketch.size**2 <= _STORED:
            return False
        scales = self.sample.scales
        lost = EPS[FULL] * np.sqrt(scales.diag * scales.trace) / self.ridge.lam
        return self.omega is not None or (self.factor.complete and lost <= _NEARLY)

    @property
    def _dual(self) -> Array | None:
        """M(Y − Ŷ)/λ, the coefficients of a complete sketch's mean as an exact one: (n, q)."""
        if self.dense is not None:
            return self.dense.coefficients
        if self.omega is not None:
            return None
        scale = self.ridge.lam * self.sample.total
        weights = self.sample.weights
        return self.ridge.residuals().map(lambda r, w: r * w / scale, weights).host()

    def _without_rows(self) -> dict[str, Any]:
        factor = self.factor
        assert isinstance(factor, RowFactor)
        here = {"pivots": factor.pivots, "L": factor.L, "chosen": factor.landmark_points.host()}
        return self._small(False) | {
            "settings": replace(self.settings, backend="numpy"),
            "data": self.data.without_rows(),
            "sizes": tuple(self.sample.sizes),
            "factor": here,
            "omega": None if self.omega is None else Elsewhere(*self.omega.shape),
            "gap": vars(self).get("gap", self.grown_gap),
            "varying": None if self.varying is None else self.varying.without_rows(),
            "predictive": vars(self).get("predictive", self.saved_predictive),
        }

    def _small(self, large: bool) -> dict[str, Any]:
        """What has no row for each row of the data; for a large file without what follows from L
        and V, in the order of their columns."""
        none = dict.fromkeys(("spectrum", "projections", "intercept", "coefficients"))
        return (
            self._shared_state()
            | (none if large else self._by_columns())
            | {
                "plan": self.plan,
                "sketch": self.factor.sketch,
                "precision": self.factor.precision,
                "products": self.ridge.precision,
                "offset": self.offset,
                "certificate": self.certificate,
                "probed": tuple(self.probed),
            }
        )

    def _by_columns(self) -> dict[str, Any]:
        basis, one = self.ridge.basis, self.ridge.intercept
        return {
            "spectrum": (basis.E, basis.V),
            "projections": (basis.P, basis.rest),
            "intercept": None if one is None else (one.c, one.square, one.offset),
            "coefficients": self.ridge.coefficients,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        data, kernel = state["data"], state["kernel"]
        sizes = state.get("sizes")
        sample = (
            placed_again(state["settings"].backend, kernel, data)
            if sizes is None
            else sample_elsewhere(NumpyTiles(), kernel, Sizes(*sizes))
        )
        backend = sample.backend
        factor = _factor_of(state, sample)
        elsewhere = Elsewhere(len(sample), len(data.scale))
        Y = backend.tall(data.Y) if sizes is None else Tall(backend, (elsewhere,))
        repeats = data.repeats if sizes is None else None
        basis = Basis(factor, Y, state["spectrum"], state["projections"], repeats)
        precision = offered_or_full(state["products"], backend.precisions)
        plan = replace(state["plan"], full=offered_or_full(state["plan"].full, backend.precisions))
        lam = state["lam"]
        with_constant = state["settings"].fit_intercept
        intercept = Intercept(basis, lam, state["intercept"]) if with_constant else None
        ridge = Ridge(basis, lam, intercept, precision, plan.budget, state["coefficients"])
        omega = state["omega"]
        if isinstance(omega, Elsewhere):
            omega = Tall(backend, (omega,))
        elif omega is not None:
            omega = backend.tall(omega)
        self._restore(
            state,
            ridge,
            plan=plan,
            omega=omega,
            dense=_dense_of(state, sample),
            offset=state["offset"],
            grown_gap=state["gap"],
            saved_certificate=state["certificate"],
            probed=Probed(*state["probed"]),
        )


def _factor_of(state: dict[str, Any], sample: Sample) -> Factor:
    backend, kept = sample.backend, state["factor"]
    if "pivots" in kept:
        U = kept.get("chosen")
        chosen = None if U is None else backend.place(state["kernel"], U)
        return RowFactor(sample, state["sketch"], kept["pivots"], kept["L"], kept=chosen)
    sums = None if kept["sums"] is None else backend.tall(kept["sums"])
    made_in = offered_or_full(state["precision"], backend.precisions)
    return EntryFactor(sample, state["sketch"], made_in, sums, kept["R"], kept["amplified"])


def _dense_of(state: dict[str, Any], sample: Sample) -> DenseRidge | None:
    """The exact model, where its coefficients were kept in place of L and V."""
    dual = state.get("dual")
    if dual is None:
        return None
    saved = dual, state["offset"]
    return DenseRidge(sample, state["data"].Y, state["lam"], state["settings"].fit_intercept, saved)


def _made_of(state: dict[str, Any]) -> Fitted:
    found = Fitted.__new__(Fitted)
    found.__setstate__(state)
    return found


def rows_left_out(
    ridge: Ridge, data: Data, omega: Tall | None, probed: Probed, varying: Varying | None = None
) -> LeftOut:
    """From the sketched model's residuals, or from the exact mean's coefficients ω."""
    factor = ridge.basis.factor
    alpha = ridge.lam * ridge.sample.total
    unexplained = np.zeros(len(data.w)) if factor.complete else ridge.basis.unexplained()
    pivots = factor.pivots if isinstance(factor, RowFactor) else None
    known = (unexplained * data.w <= _KNOWN * alpha).all()
    return LeftOut(
        data,
        alpha,
        1 - ridge.leverages().host()[:, 0],
        residuals=ridge.residuals().host() if omega is None else None,
        dual=None if omega is None else omega.host(),
        unexplained=unexplained,
        share=probed.share,
        ratio=probed.ratio,
        exactly_unfitted=probed.unfitted,
        landmarks=None if known else pivots,
        noise_ratio=1.0 if varying is None else varying.ratio(ridge.sample),
    )
