"""Everything a fit found: frozen, and complete before anything is assigned."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np

from sketchridge import tuning
from sketchridge.backends import Backend, Tall
from sketchridge.basis import Basis, Intercept
from sketchridge.certify import Certificate, trace_certificate
from sketchridge.data import Data, placed_again, scaled_path
from sketchridge.distribution import LeftOut
from sketchridge.factor import EntryFactor, Factor, RowFactor
from sketchridge.model import Choices, Model
from sketchridge.precision import Plan, offered_or_full
from sketchridge.query import Query
from sketchridge.ridge import Ridge
from sketchridge.varying import Varying

__all__ = ["Fitted", "Probed", "Settings", "rows_left_out"]

Array = np.ndarray


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
        """Where the mean comes from: "pcg", or "sketch", which is exact too if it is complete."""
        return "sketch" if self.omega is None else "pcg"

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
        state = self.__getstate__()
        state["settings"] = replace(self.settings, backend="numpy")
        data = self.data
        state["data"] = replace(data, X=np.asarray(data.X))
        found = Fitted.__new__(Fitted)
        found.__setstate__(state)
        return found

    def __getstate__(self) -> dict[str, Any]:
        """What predictions need, as NumPy arrays; columns of landmarks are made again."""
        factor = self.factor
        one = self.ridge.intercept
        kept: dict[str, Array | None]
        if isinstance(factor, RowFactor):
            kept = {"pivots": factor.pivots, "L": factor.L}
        else:
            assert isinstance(factor, EntryFactor)
            sums = None if factor.sums is None else factor.sums.host()
            kept = {"sums": sums, "R": factor.R, "amplified": factor.amplified}
        return {
            "settings": self.settings,
            "data": self.data,
            "kernel": self.kernel,
            "plan": self.plan,
            "sketch": factor.sketch,
            "precision": factor.precision,
            "factor": kept,
            "spectrum": (self.ridge.basis.E, self.ridge.basis.V),
            "projections": (self.ridge.basis.P, self.ridge.basis.rest),
            "lam": self.ridge.lam,
            "intercept": None if one is None else (one.c, one.square, one.offset),
            "coefficients": self.ridge.coefficients,
            "products": self.ridge.precision,
            "noise": self.noise,
            "omega": None if self.omega is None else self.omega.host(),
            "offset": self.offset,
            "gap": self.gap if self.grown_gap is None else self.grown_gap,
            "certificate": self.certificate,
            "learned": self.learned,
            "probed": tuple(self.probed),
            "varying": self.varying,
            "predictive": self.predictive,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        data, kernel = state["data"], state["kernel"]
        sample = placed_again(state["settings"].backend, kernel, data)
        backend = sample.backend
        kept = state["factor"]
        factor: Factor
        if "pivots" in kept:
            factor = RowFactor(sample, state["sketch"], kept["pivots"], kept["L"])
        else:
            sums = None if kept["sums"] is None else backend.tall(kept["sums"])
            made_in = offered_or_full(state["precision"], backend.precisions)
            factor = EntryFactor(
                sample, state["sketch"], made_in, sums, kept["R"], kept["amplified"]
            )
        E, V = state["spectrum"]
        basis = Basis(factor, backend.tall(data.Y), E, V, state["projections"], data.repeats)
        precision = offered_or_full(state["products"], backend.precisions)
        plan = replace(state["plan"], full=offered_or_full(state["plan"].full, backend.precisions))
        lam = state["lam"]
        one = state["intercept"]
        intercept = None if one is None else Intercept(basis, lam, one)
        ridge = Ridge(basis, lam, intercept, precision, plan.budget, state["coefficients"])
        values = {
            "settings": state["settings"],
            "data": data,
            "kernel": kernel,
            "plan": plan,
            "ridge": ridge,
            "noise": state["noise"],
            "omega": None if state["omega"] is None else backend.tall(state["omega"]),
            "offset": state["offset"],
            "grown_gap": state["gap"],
            "saved_certificate": state["certificate"],
            "learned": state["learned"],
            "probed": Probed(*state["probed"]),
            "varying": state["varying"],
            "factor_of_widths": state["predictive"].factor,
            "saved_predictive": state["predictive"],
        }
        self.__dict__.update(values)


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
