"""What a fit found, as attributes of a fitted estimator."""

from __future__ import annotations

import copy
import inspect
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from sketchridge import tuning
from sketchridge.certify import Certificate
from sketchridge.kernels import DistanceKernel, Kernel
from sketchridge.learning import Step, relevance, spreads
from sketchridge.predictive import Predictive
from sketchridge.progress import answering
from sketchridge.sketches import Sketch

__all__ = ["Found", "FoundSketch"]

Array = np.ndarray


class Found:
    """Reads the fitted object behind an estimator, ``_fitted``.

    Classes derived from it get a section of their docstring that explains every fitted attribute.
    """

    _fitted: Any
    _one_target: bool

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if cls.__doc__ is not None and "Parameters" in cls.__doc__:
            cls.__doc__ = f"{inspect.cleandoc(cls.__doc__)}\n\n{_explained(cls)}"

    @property
    def lambda_(self) -> float:
        """float : the penalty λ = α/Σw, in units of the kernel."""
        return float(self.fitted_.ridge.lam * self.fitted_.kernel.unit)

    @property
    def alpha_(self) -> float:
        """float : the penalty α, given or chosen, in units of the kernel times those of the
        weights."""
        given = self.fitted_.settings.alpha
        total = self.fitted_.sample.total
        return self.lambda_ * total if isinstance(given, str) else float(given)

    @property
    def bandwidth_(self) -> float | Array | None:
        """float, array or None : the bandwidth, one, one for each feature (d,), or a map (d, k), in
        units of the features; None for kernels that have none."""
        return copy.copy(getattr(self.fitted_.kernel, "bandwidth", None))

    @property
    def kernel_(self) -> Kernel:
        """Kernel : the kernel, given, chosen or learned, with its bandwidth."""
        return copy.deepcopy(self.fitted_.kernel)

    @property
    def map_(self) -> Array | None:
        """array (d, k) or None : M, with distances ‖(x − z)M‖: diag(1/h) for bandwidths h; None
        without any."""
        kernel = self.fitted_.kernel
        if not isinstance(kernel, DistanceKernel):
            return None
        h = np.asarray(kernel.bandwidth, dtype=float)
        if h.ndim == 2:
            return h.copy()
        return np.diag(np.broadcast_to(1 / h, self.fitted_.data.X.shape[1:]))

    @property
    def feature_relevance_(self) -> Array | None:
        """array (d,) or None : how much each feature matters to distances, with sum 1; None without
        a map."""
        M = self.map_
        data = self.fitted_.plain
        return None if M is None else relevance(M, spreads(data.X, data.w))

    @property
    def learning_curve_(self) -> tuple[Step, ...]:
        """tuple of Step : what learning the kernel has tried; nothing where it was given."""
        learned = self.fitted_.learned
        return () if learned is None else learned.curve

    @property
    def amplitude_(self) -> float | Array:
        """float or array (q,) : ŝ², by which gp is multiplied to be in units of y²; one for each
        target."""
        amplitude = self._predictive.amplitude / self.fitted_.kernel.unit
        return float(amplitude[0]) if self._one_target else amplitude

    @property
    def interval_quantiles_(self) -> Array:
        """array (l, 1 + q) : a row for each level that n rows can give: the level, and for each
        target c, by which half-widths are multiplied."""
        return self._predictive.quantiles

    @property
    def noise_variance_(self) -> float | Array:
        """float or array (q,) : σ² of a row of weight 1, in units of y²; one for each target."""
        noise = self.fitted_.noise
        return float(noise[0]) if self._one_target else noise.copy()

    @property
    def path_(self) -> tuning.LambdaPath:
        """LambdaPath : λ, df, gcv and loo over the grid, each (100,); computed when asked for,
        O(nm²). λ is in units of the kernel, gcv and loo are in units of y²."""
        with answering("Computing the λ path"):
            return copy.deepcopy(self.fitted_.path)

    @property
    def loo_error_(self) -> float:
        """float : the mean squared leave-one-out error in units of y², weighted, exact for the
        fitted alpha (and sketch); computed when asked for."""
        with answering("Leaving out every row"):
            return self.fitted_.loo_error

    @property
    def eigenvalues_(self) -> Array:
        """array (r,) : eigenvalues of K, or of K̂ for a sketch, in descending order and units of the
        kernel."""
        with answering("Computing eigenvalues"):
            return self.fitted_.eigenvalues.copy()

    @property
    def s_lambda_(self) -> int:
        """int : s_λ, the number of eigenvalues above λ; for a sketch a lower bound limited by m."""
        return int((self.eigenvalues_ > self.lambda_).sum())

    @property
    def effective_dof_(self) -> float:
        """float : degrees of freedom, the trace of the smoother."""
        with answering("Counting degrees of freedom"):
            return float(self.fitted_.ridge.df)

    @property
    def fitted_(self) -> Any:
        """Fitted or ExactFitted : what the fit found, frozen. Internal: for other rooms of this
        library, in a form that may change."""
        check_is_fitted(self)
        return self._fitted

    @property
    def _predictive(self) -> Predictive:
        """The distribution of new observations."""
        with answering("Leaving out every row"):
            return self.fitted_.predictive


class FoundSketch(Found):
    """Reads what only a sketched fit has."""

    @property
    def solver_(self) -> str:
        """str : where the mean comes from: "cholesky" or "pcg", the exact mean by a dense factor or
        by conjugate gradients, or "sketch", which is exact too where the sketch is complete."""
        return self.fitted_.solver

    @property
    def sketch_(self) -> Sketch:
        """Sketch : the sketch, to be used again or grown, (m, distinct training rows)."""
        return copy.deepcopy(self.fitted_.factor.sketch)

    @property
    def sketch_size_(self) -> int:
        """int : the number of rows m of the sketch."""
        return self.fitted_.factor.sketch.size

    @property
    def certificate_(self) -> Certificate:
        """Certificate : a bound on |√V2 − √V1| at every point, from the trace: free."""
        return self.fitted_.certificate

    @property
    def dtype_(self) -> str:
        """str : the precision of the kernel products behind the variances."""
        return self.fitted_.ridge.precision

    @property
    def gap_(self) -> float:
        """float : the 95% quantile of V2/V3 over some training rows: how far V2 is from V1."""
        return self.fitted_.gap

    @property
    def sketch_error_(self) -> float:
        """float : how far the square of `return_std` may be from V1, relative, at 95% of points:
        predicted from the gap, by a table that held in 90% of problems
        (docs/averaged-variance.md). Not a bound."""
        return tuning.predicted_error(self.fitted_.gap)


def _explained(cls: type) -> str:
    """The section Attributes, made of what each property says of itself: "type : what it is"."""
    lines = ["Attributes", "----------"]
    for name in dir(cls):
        found = inspect.getattr_static(cls, name)
        if isinstance(found, property) and name.endswith("_") and name[0] != "_":
            kind, _, meaning = inspect.cleandoc(found.__doc__ or "").partition(" : ")
            if "Internal" in meaning:
                continue
            lines += [f"{name} : {kind}", *(f"    {line}" for line in meaning.splitlines())]
    return "\n".join(lines)
