"""A BoTorch model whose posterior is a fitted estimator's, so that BoTorch's acquisition functions
run on models of many rows. It needs `pip install 'sketchridge[botorch]'`."""

from __future__ import annotations

from typing import Any

import numpy as np

from sketchridge.dense import DenseRidge
from sketchridge.factor import EntryFactor, RowFactor
from sketchridge.regressor import KernelRegressor
from sketchridge.ridge import Ridge

try:
    import torch
    from botorch.models.model import Model
    from botorch.posteriors.gpytorch import GPyTorchPosterior
    from gpytorch.distributions import MultitaskMultivariateNormal, MultivariateNormal
    from linear_operator import to_linear_operator
except ImportError as error:
    raise ImportError(
        "A BoTorch model needs BoTorch, which is not installed: pip install 'sketchridge[botorch]'."
    ) from error

__all__ = ["BotorchModel"]

Array = np.ndarray


class BotorchModel(Model):
    """The posterior of a fitted estimator, differentiable in x, for BoTorch.

    The mean is the estimator's. The covariance is ŝ² times the posterior covariance
    `covariance(X, kind="gp")`, with the amplitude ŝ² = `amplitude_`; `sample` draws from the same
    distribution. A sketched model costs O(m²) per point, however many rows it was fitted to.

    Parameters
    ----------
    estimator : estimator
        A fitted `SketchedKernelRidge` or `ExactKernelRidge`, whose kernel is a function of a
        distance or of an inner product and has a slope.

    Attributes
    ----------
    num_outputs : int
        The number of targets.
    batch_shape : torch.Size
        Of the model itself, which is one.

    Examples
    --------
    >>> from sketchridge import SketchedKernelRidge
    >>> X = np.linspace(0, 1, 50)[:, None]
    >>> model = BotorchModel(SketchedKernelRidge(random_state=0).fit(X, np.sin(6 * X[:, 0])))
    >>> posterior = model.posterior(torch.tensor([[[0.25]]], dtype=torch.float64))
    >>> posterior.mean.shape, round(posterior.mean.item(), 2)
    (torch.Size([1, 1, 1]), 1.0)
    >>> model.num_outputs, model.batch_shape
    (1, torch.Size([]))
    """

    points: torch.Tensor
    root: torch.Tensor
    L: torch.Tensor | None
    V: torch.Tensor | None
    shrink: torch.Tensor
    constant: torch.Tensor
    free: torch.Tensor
    coefficients: torch.Tensor
    offset: torch.Tensor
    rows: torch.Tensor | None
    jacobian: torch.Tensor
    origin: torch.Tensor
    amplitude: torch.Tensor
    noise: torch.Tensor

    def __init__(self, estimator: KernelRegressor) -> None:
        super().__init__()
        fitted = estimator.fitted_
        self.kernel = fitted.kernel
        self._varying = fitted.varying is not None
        self.kernel.check_slopes()
        if self.kernel.geometry == "opaque":
            raise ValueError(
                f"BoTorch needs derivatives by PyTorch, which {self.kernel!r} does not have: use a "
                "kernel of a distance or of an inner product, such as 'matern52' or 'polynomial'."
            )
        arrays = _features(fitted.ridge)
        arrays["coefficients"], arrays["offset"], arrays["rows"] = _mean(fitted)
        d = fitted.data.X.shape[1]
        arrays["jacobian"] = self.kernel.jacobian(d)
        arrays["origin"] = self.kernel.coordinates(np.zeros((1, d)))
        arrays["amplitude"] = fitted.predictive.amplitude
        arrays["noise"] = fitted.noise
        for name, array in arrays.items():
            tensor = None if array is None else torch.tensor(array, dtype=torch.float64)
            self.register_buffer(name, tensor)

    @property
    def num_outputs(self) -> int:
        """The number of targets."""
        return len(self.noise)

    @property
    def batch_shape(self) -> torch.Size:
        """Of the model itself, which is one."""
        return torch.Size()

    def posterior(
        self,
        X: torch.Tensor,
        output_indices: list[int] | None = None,
        observation_noise: bool | torch.Tensor = False,
        posterior_transform: Any = None,
        **_: Any,
    ) -> Any:
        """The joint distribution of the function at X (…, q, d), of new observations on request.

        Parameters
        ----------
        X : (…, t, d) tensor
            The points.
        output_indices : list of int
            Which targets; all unless given.
        observation_noise : bool or tensor
            Of new observations, not of the function.
        posterior_transform : PosteriorTransform
            As BoTorch has it.

        Returns
        -------
        posterior : GPyTorchPosterior
            The joint distribution, in units of y.
        """
        self.eval()
        mean, covariance = self.moments(X.to(torch.float64))
        eye = torch.eye(X.shape[-2], dtype=mean.dtype, device=mean.device)
        noise = self.noise
        if isinstance(observation_noise, torch.Tensor) or (observation_noise and self._varying):
            raise ValueError(
                "observation_noise must be True or False, the noise variance being that of the "
                "fit, and False where it varies with x (noise='varying')."
            )
        parts = []
        for j in range(self.num_outputs) if output_indices is None else output_indices:
            each = self.amplitude[j] * covariance
            each = each + noise[j] * eye if observation_noise else each
            parts.append(MultivariateNormal(mean[..., j], to_linear_operator(each)))
        several = len(parts) > 1
        joint = MultitaskMultivariateNormal.from_independent_mvns(parts) if several else parts[0]
        posterior = GPyTorchPosterior(joint)
        return posterior if posterior_transform is None else posterior_transform(posterior)

    def moments(self, X: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The mean (…, q, targets), and the covariance (…, q, q) for amplitude 1."""
        U = X @ self.jacobian + self.origin
        a = self._features(U)
        missing = 1 - a @ self.constant
        covariance = self._kernel(U, U) - (a * self.shrink) @ a.transpose(-1, -2)
        covariance = covariance + self.free * missing[..., :, None] * missing[..., None, :]
        features = a if self.rows is None else self._kernel(U, self.rows)
        return features @ self.coefficients + self.offset, covariance

    def _features(self, U: torch.Tensor) -> torch.Tensor:
        """a(x): (…, q, r)."""
        a = self._kernel(U, self.points) * self.root
        if self.L is not None:
            a = torch.linalg.solve_triangular(self.L, a.transpose(-1, -2), upper=False)
            a = a.transpose(-1, -2)
        return a if self.V is None else a @ self.V

    def _kernel(self, U: torch.Tensor, V: torch.Tensor) -> torch.Tensor:
        products = U @ V.transpose(-1, -2)
        if self.kernel.geometry == "distance":
            squares = (U * U).sum(-1)[..., :, None] + (V * V).sum(-1)[..., None, :]
            products = (squares - 2 * products).clamp_min(0)
        return _Profile.apply(products, self.kernel)


class _Profile(torch.autograd.Function):
    """κ(s), with its slope as the derivative."""

    @staticmethod
    def forward(ctx: Any, s: torch.Tensor, kernel: Any) -> torch.Tensor:
        ctx.save_for_backward(s)
        ctx.kernel = kernel
        return kernel.evaluate(s.detach().clone(), torch)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        (s,) = ctx.saved_tensors
        return grads[0] * ctx.kernel.sloped().evaluate(s.clone(), torch), None


def _features(ridge: Ridge | DenseRidge) -> dict[str, Array | None]:
    """a(x) = Vᵀ L⁻¹ (root ∘ k(points, x)), without L or V where they are None, with which gp is
    k − Σ_j shrink_j a_j² + free (1 − constant·a)².

    For a sketch a(x) = Vᵀψ(x) and shrink = ED; for an exact model a(x) = L⁻¹M^½k_x, shrink = 1.
    """
    sample = ridge.sample
    if isinstance(ridge, DenseRidge):
        whole = np.tril(sample.backend.host(ridge.factor.L))
        of_one = sample.backend.solve_triangular(whole, ridge.root)
        return {
            "points": sample.points.host(),
            "root": ridge.root,
            "L": whole,
            "V": None,
            "shrink": np.ones(len(sample)),
            "constant": of_one,
            "free": np.asarray(ridge.lam / ridge.slack if ridge.fit_intercept else 0.0),
        }
    factor, basis, one = ridge.basis.factor, ridge.basis, ridge.intercept
    if isinstance(factor, RowFactor):
        points, L, V = sample.points.take(factor.pivots), factor.L, basis.V
    else:
        assert isinstance(factor, EntryFactor)
        points, L, V = sample.points, None, (factor.St @ (factor.R @ basis.V)).host()
    return {
        "points": points.host(),
        "root": np.ones(len(points)),
        "L": L,
        "V": V,
        "shrink": basis.E * ridge.D,
        "constant": ridge.D * basis.o,
        "free": np.asarray(0.0 if one is None else ridge.lam / one.slack),
    }


def _mean(fitted: Any) -> tuple[Array, Array, Array | None]:
    """Coefficients of a(x), or of k(x, rows) for an exact mean, offset, and those rows."""
    data, ridge, offset = fitted.data, fitted.ridge, fitted.ridge.offset
    rows = None
    if isinstance(ridge, DenseRidge):
        coefficients, rows = ridge.coefficients, fitted.sample.points.host()
    elif fitted.omega is None:
        coefficients = ridge.coefficients
    else:
        coefficients, offset = fitted.omega.host(), fitted.offset
        rows = fitted.sample.points.host()
    return data.scale * coefficients, data.center + data.scale * offset, rows
