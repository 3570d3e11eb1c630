"""Everything a fit found: frozen, and complete before anything is assigned."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np

from sketchridge import tuning
from sketchridge.backends import Backend, Elsewhere, NumpyTiles, Tall, Unreachable
from sketchridge.basis import Basis, Intercept
from sketchridge.certify import Certificate, trace_certificate
from sketchridge.data import Data, placed_again, scaled_path
from sketchridge.distribution import LeftOut
from sketchridge.factor import EntryFactor, Factor, RowFactor
from sketchridge.model import Choices, Model
from sketchridge.notices import warn
from sketchridge.precision import Plan, offered_or_full
from sketchridge.query import Query
from sketchridge.ridge import Ridge
from sketchridge.sample import Sizes, sample_elsewhere
from sketchridge.varying import Varying

__all__ = ["Fitted", "Probed", "Settings", "rows_left_out"]

Array = np.ndarray
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
    largest_size: int | None = None  # of an automatic sketch, where it is not that of `tuning`

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


class Probed(NamedTuple):
    """What rows that were left out exactly tell of the exact model: all of them, or some."""

    share: float = 1.0  # of what the sketch leaves unexplained, that it leaves too
    ratio: float = 1.0  # its squared leave-one-out error over that with this share
    left: Array | None = None  # (n,): 1 − the diagonal of its smoother


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

    def __post_init__(self) -> None:
        """What predictions need of the rows is taken from them now: later they may be gone."""
        for of, name in (
            (self.ridge, "coefficients"),
            (self.ridge, "offset"),
            (self.ridge.basis, "rest"),
            (self.factor, "chosen"),
        ):
            getattr(of, name, None)

    @property
    def backend(self) -> Backend:
        return self.ridge.sample.backend

    @property
    def factor(self) -> Factor:
        return self.ridge.basis.factor

    @property
    def unit(self) -> float:
        """That of the kernel: what λ and eigenvalues inside are to be multiplied by."""
        return self.kernel.unit

    @property
    def ratio(self) -> float:
        """E₁/λ."""
        return self.ridge.basis.largest / self.ridge.lam

    def mean(self, query: Query) -> Array:
        """The predicted mean, in units of y: (t, q)."""
        if self.omega is None:
            inside = self.ridge.mean(query)
        else:
            against = query.against(self.sample, self.omega, self.plan.full)
            inside = np.outer(query.constant, self.offset) + against.host()
        return np.outer(query.constant, self.data.center) + self.data.scale * inside

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
        return "pcg" if self.probed.left is None else "cholesky"

    @property
    def left_out(self) -> LeftOut:
        """Every row predicted without itself, exactly for this alpha and sketch; for the exact mean
        with the inverse's diagonal as near as rows left out exactly bring it."""
        return rows_left_out(self.ridge, self.data, self.omega, self.probed, self.varying)

    @cached_property
    def path(self) -> tuning.LambdaPath:
        """λ, df, gcv and loo over the grid, in units of the kernel and of y²."""
        return scaled_path(self.ridge.basis, self.settings.fit_intercept, self.data, self.unit)

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
        stays = hasattr(self.data.X, "gathered") and len(self.data.X) > _GATHERED
        return None if stays else self.with_numpy()

    def __getstate__(self) -> dict[str, Any]:
        """What predictions need, as NumPy arrays; columns of landmarks are made again."""
        if isinstance(self.data.X, Elsewhere):
            return self._without_rows()
        try:
            return self._whole()
        except (MemoryError, Unreachable) as error:
            is_here = not hasattr(self.data.X, "gathered")
            if not isinstance(self.factor, RowFactor) or (is_here and self.omega is not None):
                raise
            state = self._without_rows()
            if is_here:
                return state | {"data": self.data, "sizes": None, "varying": self.varying}
            warn(f"The model is saved without its training rows. {error}")
            return state

    def _whole(self) -> dict[str, Any]:
        factor = self.factor
        kept: dict[str, Array | None]
        if isinstance(factor, RowFactor):
            kept = {"pivots": factor.pivots, "L": factor.L}
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
        return self._small() | {
            "settings": settings,
            "data": data,
            "factor": kept,
            "omega": None if self.omega is None else self.omega.host(),
            "gap": self.gap if self.grown_gap is None else self.grown_gap,
            "varying": varying,
            "predictive": self.predictive,
        }

    def _without_rows(self) -> dict[str, Any]:
        factor = self.factor
        assert isinstance(factor, RowFactor)
        here = {"pivots": factor.pivots, "L": factor.L, "chosen": factor.chosen.host()}
        return self._small() | {
            "settings": replace(self.settings, backend="numpy"),
            "data": self.data.without_rows(),
            "sizes": tuple(self.sample.sizes),
            "factor": here,
            "omega": None if self.omega is None else Elsewhere(*self.omega.shape),
            "gap": vars(self).get("gap", self.grown_gap),
            "varying": None if self.varying is None else self.varying.without_rows(),
            "predictive": vars(self).get("predictive", self.saved_predictive),
        }

    def _small(self) -> dict[str, Any]:
        """What has no row for each row of the data."""
        factor = self.factor
        one = self.ridge.intercept
        return {
            "settings": self.settings,
            "kernel": self.kernel,
            "plan": self.plan,
            "sketch": factor.sketch,
            "precision": factor.precision,
            "spectrum": (self.ridge.basis.E, self.ridge.basis.V),
            "projections": (self.ridge.basis.P, self.ridge.basis.rest),
            "lam": self.ridge.lam,
            "intercept": None if one is None else (one.c, one.square, one.offset),
            "coefficients": self.ridge.coefficients,
            "products": self.ridge.precision,
            "noise": self.noise,
            "offset": self.offset,
            "certificate": self.certificate,
            "learned": self.learned,
            "probed": tuple(self.probed),
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
        kept = state["factor"]
        factor: Factor
        if "pivots" in kept:
            U = kept.get("chosen")
            chosen = None if U is None else backend.place(kernel, U)
            factor = RowFactor(sample, state["sketch"], kept["pivots"], kept["L"], kept=chosen)
        else:
            sums = None if kept["sums"] is None else backend.tall(kept["sums"])
            made_in = offered_or_full(state["precision"], backend.precisions)
            factor = EntryFactor(
                sample, state["sketch"], made_in, sums, kept["R"], kept["amplified"]
            )
        E, V = state["spectrum"]
        elsewhere = Elsewhere(len(sample), len(data.scale))
        Y = backend.tall(data.Y) if sizes is None else Tall(backend, (elsewhere,))
        repeats = data.repeats if sizes is None else None
        basis = Basis(factor, Y, E, V, state["projections"], repeats)
        precision = offered_or_full(state["products"], backend.precisions)
        plan = replace(state["plan"], full=offered_or_full(state["plan"].full, backend.precisions))
        lam = state["lam"]
        one = state["intercept"]
        intercept = None if one is None else Intercept(basis, lam, one)
        ridge = Ridge(basis, lam, intercept, precision, plan.budget, state["coefficients"])
        omega = state["omega"]
        if isinstance(omega, Elsewhere):
            omega = Tall(backend, (omega,))
        elif omega is not None:
            omega = backend.tall(omega)
        values = {
            "settings": state["settings"],
            "data": data,
            "kernel": kernel,
            "plan": plan,
            "ridge": ridge,
            "noise": state["noise"],
            "omega": omega,
            "offset": state["offset"],
            "grown_gap": state["gap"],
            "saved_certificate": state["certificate"],
            "learned": state["learned"],
            "probed": Probed(*state["probed"]),
            "varying": state["varying"],
            "factor_of_widths": getattr(state["predictive"], "factor", 1.0),
            "saved_predictive": state["predictive"],
        }
        self.__dict__.update(values)


def _made_of(state: dict[str, Any]) -> Fitted:
    found = Fitted.__new__(Fitted)
    found.__setstate__(state)
    return found


def rows_left_out(
    ridge: Ridge, data: Data, omega: Tall | None, probed: Probed, varying: Varying | None = None
) -> LeftOut:
    """From the sketched model's residuals, or from the exact mean's coefficients ω."""
    factor = ridge.basis.factor
    pivots = factor.pivots if isinstance(factor, RowFactor) else None
    return LeftOut(
        data,
        ridge.lam * ridge.sample.total,
        1 - ridge.leverages().host()[:, 0],
        residuals=ridge.residuals().host() if omega is None else None,
        dual=None if omega is None else omega.host(),
        unexplained=0.0 if factor.complete else ridge.basis.unexplained(),
        share=probed.share,
        ratio=probed.ratio,
        exactly_left=probed.left,
        landmarks=None if factor.complete else pivots,
        noise_ratio=1.0 if varying is None else varying.ratio(ridge.sample),
    )
