"""The BoTorch model has our posterior, its derivatives are right, and acquisition functions run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers import assert_close, uneven
from problems import X_TEST, D, N, T, X, Y, fixed, sketched, y

torch = pytest.importorskip("torch")
pytest.importorskip("botorch")

from botorch.acquisition import ExpectedImprovement, qLogExpectedImprovement  # noqa: E402
from botorch.acquisition.objective import ScalarizedPosteriorTransform  # noqa: E402
from botorch.optim import optimize_acqf  # noqa: E402

from sketchridge import ExactKernelRidge  # noqa: E402
from sketchridge.botorch import BotorchModel  # noqa: E402

W = uneven(N)
MODELS = {
    "exact": lambda **o: fixed(**o),
    "landmarks": lambda **o: sketched(sketch_size=20, **o),
    "dense sketch": lambda **o: sketched(sketch="gaussian", sketch_size=20, **o),
    "exact mean": lambda **o: sketched(sketch_size=20, solver="pcg", **o),
}
every_model = pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)


def tensor(A: Any, **options: Any) -> Any:
    return torch.tensor(A, dtype=torch.float64, **options)


@every_model
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("kernel", ["gaussian", "matern32", "polynomial"])
def test_the_posterior_is_ours(make, fit_intercept, kernel):
    options = {} if kernel != "polynomial" else {"bandwidth": "median"}
    model = make(kernel=kernel, fit_intercept=fit_intercept, **options).fit(X, y, W)
    posterior = BotorchModel(model).posterior(tensor(X_TEST))
    assert_close(posterior.mean.numpy()[:, 0], model.predict(X_TEST), "pcg")
    C = model.amplitude_ * model.covariance(X_TEST, "gp")
    assert_close(posterior.distribution.covariance_matrix.numpy(), C, "pcg")
    noisy = BotorchModel(model).posterior(tensor(X_TEST), observation_noise=True)
    expected = np.diag(C) + model.noise_variance_
    assert_close(noisy.variance.numpy()[:, 0], expected, "pcg")


@every_model
def test_batches_and_several_targets(make):
    model = make(fit_intercept=True).fit(X, Y)
    bridge = BotorchModel(model)
    points = X_TEST[: T - T % 6].reshape(-1, 2, 3, D)
    posterior = bridge.posterior(tensor(points))
    assert bridge.num_outputs == 3
    assert posterior.mean.shape == (len(points), 2, 3, 3)
    flat = model.predict(points.reshape(-1, D)).reshape(posterior.mean.shape)
    assert_close(posterior.mean.numpy(), flat, "pcg")
    one = bridge.posterior(tensor(points), output_indices=[1])
    assert_close(one.mean.numpy()[..., 0], flat[..., 1], "pcg")
    summed = ScalarizedPosteriorTransform(tensor([1.0, 2.0, 3.0]))
    added = bridge.posterior(tensor(points), posterior_transform=summed)
    assert_close(added.mean.numpy()[..., 0], flat @ [1, 2, 3], "pcg")


@every_model
def test_derivatives(make):
    model = make(fit_intercept=True).fit(X, y)
    bridge = BotorchModel(model)
    at = tensor(X_TEST[:4], requires_grad=True)
    bridge.posterior(at).mean.sum().backward()
    assert_close(at.grad.numpy(), model.gradient(X_TEST[:4]), "pcg")
    at = tensor(X_TEST[:3], requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: bridge.moments(x)[1], (at,), atol=1e-6)


@pytest.mark.parametrize("acquisition", [ExpectedImprovement, qLogExpectedImprovement])
def test_acquisition_functions_find_the_maximum(acquisition):
    rng = np.random.default_rng(0)
    points = rng.random((400, 2))
    values = -((points - 0.3) ** 2).sum(axis=1) + 0.01 * rng.standard_normal(400)
    model = sketched(bandwidth=0.5, alpha=0.01, sketch_size=50, fit_intercept=True)
    bridge = BotorchModel(model.fit(points, values))
    torch.manual_seed(0)
    bounds = tensor([[0.0, 0.0], [1.0, 1.0]])
    acqf = acquisition(bridge, best_f=-0.05)
    found, _ = optimize_acqf(acqf, bounds=bounds, q=1, num_restarts=4, raw_samples=32)
    assert np.abs(found.numpy() - 0.3).max() < 0.15


@pytest.mark.parametrize(
    ("kernel", "message"),
    [("laplacian", "no derivative"), ("cubic_spline", "which CubicSpline.. does not have")],
)
def test_kernels_without_derivatives_in_pytorch_are_refused(kernel, message):
    inside = (X + 1) / 2
    options = {"bandwidth": 1.0} if kernel == "laplacian" else {}
    model = ExactKernelRidge(kernel, alpha=1.0, **options).fit(inside, y)
    with pytest.raises(ValueError, match=message):
        BotorchModel(model)


def test_noise_is_that_of_the_fit():
    bridge = BotorchModel(fixed().fit(X, y))
    with pytest.raises(ValueError, match="observation_noise must be True or False"):
        bridge.posterior(tensor(X_TEST), observation_noise=tensor(X_TEST))
