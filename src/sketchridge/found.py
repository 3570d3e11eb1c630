"""What a fit found, as attributes of a fitted estimator."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from sketchridge import tuning
from sketchridge.kernels import Kernel, ScaledKernel
from sketchridge.learning import Step, relevance, spreads

__all__ = ["Found"]

Array = np.ndarray


class Found:
    """Reads the fitted object behind an estimator, ``_fitted``."""

    _fitted: Any
    _one_target: bool

    @property
    def lambda_(self) -> float:
        """The penalty λ = α/Σw, in units of the kernel."""
        return float(self._found.ridge.lam * self._found.kernel.unit)

    @property
    def alpha_(self) -> float:
        """The penalty α, given or chosen, in units of the kernel times those of the weights."""
        given = self._found.settings.alpha
        total = self._found.sample.total
        return self.lambda_ * total if isinstance(given, str) else float(given)

    @property
    def bandwidth_(self) -> float | Array | None:
        """The bandwidth, one or one for each feature; None for kernels that have none."""
        return copy.copy(getattr(self._found.kernel, "bandwidth", None))

    @property
    def kernel_(self) -> Kernel:
        """The kernel, given, chosen or learned, with its bandwidth."""
        return copy.deepcopy(self._found.kernel)

    @property
    def map_(self) -> Array | None:
        """M (d, k), with distances ‖(x − z)M‖: diag(1/h) for bandwidths h; None without any."""
        kernel = self._found.kernel
        if not isinstance(kernel, ScaledKernel):
            return None
        h = np.asarray(kernel.bandwidth, dtype=float)
        if h.ndim == 2:
            return h.copy()
        return np.diag(np.broadcast_to(1 / h, self._found.data.X.shape[1:]))

    @property
    def feature_relevance_(self) -> Array | None:
        """How much each feature matters to distances, with sum 1: (d,); None without a map."""
        M = self.map_
        data = self._found.data
        return None if M is None else relevance(M, spreads(data.X, data.w))

    @property
    def learning_curve_(self) -> tuple[Step, ...]:
        """What learning the kernel has tried; nothing where it was given."""
        learned = self._found.learned
        return () if learned is None else learned.curve

    @property
    def amplitude_(self) -> float | Array:
        """ŝ², by which gp is multiplied to be in units of y²; one for each target."""
        amplitude = self._found.predictive.amplitude / self._found.kernel.unit
        return float(amplitude[0]) if self._single_target else amplitude

    @property
    def interval_quantiles_(self) -> Array:
        """A row for each level that so many rows can give: the level, and for each target c."""
        return self._found.predictive.quantiles

    @property
    def noise_variance_(self) -> float | Array:
        """σ² of a row of weight 1, in units of y²; one for each target."""
        noise = self._found.noise
        return float(noise[0]) if self._single_target else noise.copy()

    @property
    def path_(self) -> tuning.LambdaPath:
        """λ, df, gcv and loo over the grid, each (100,); computed when asked for, O(nm²).

        λ is in units of the kernel, gcv and loo are in units of y².
        """
        return copy.deepcopy(self._found.path)

    @property
    def loo_error_(self) -> float:
        """Mean squared leave-one-out error in units of y², weighted, exact for the fitted alpha
        (and sketch); computed when asked for."""
        return self._found.loo_error

    @property
    def eigenvalues_(self) -> Array:
        """Eigenvalues of K, or of K̂ for a sketch, in descending order and units of the kernel."""
        return self._found.eigenvalues.copy()

    @property
    def s_lambda_(self) -> int:
        """s_λ, the number of eigenvalues above λ; for a sketch a lower bound limited by m."""
        return int((self.eigenvalues_ > self.lambda_).sum())

    @property
    def effective_dof_(self) -> float:
        """Degrees of freedom, the trace of the smoother."""
        return float(self._found.ridge.df)

    @property
    def fitted_(self) -> Any:
        """What the fit found, a frozen `Fitted` or `ExactFitted`. Internal: for other rooms of this
        library, in a form that may change."""
        return self._found

    @property
    def _found(self) -> Any:
        check_is_fitted(self)
        return self._fitted

    @property
    def _single_target(self) -> bool:
        return self._one_target
