"""A query loop of scikit-activeml with our estimator as its model, and our score as its utility."""

import numpy as np
from skactiveml.pool import GreedySamplingTarget
from skactiveml.regressor import SklearnNormalRegressor

from sketchridge import SketchedKernelRidge


def main(rounds=10, batch_size=5):
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, (300, 2))
    truth = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1]
    y = np.full(len(X), np.nan)  # scikit-activeml marks what is not labeled
    start = rng.choice(len(X), 10, replace=False)
    y[start] = truth[start]
    model = SklearnNormalRegressor(
        SketchedKernelRidge(fit_intercept=True, bandwidth=1.0, random_state=0)
    )
    query = GreedySamplingTarget(random_state=0)
    for _ in range(rounds):
        ids = query.query(X, y, reg=model, batch_size=batch_size)
        y[ids] = truth[ids] + 0.05 * rng.standard_normal(len(ids))
    model.fit(X, y)
    mean, std = model.predict(X, return_std=True)
    error = np.sqrt(np.mean((mean - truth) ** 2))
    print(
        f"{np.isfinite(y).sum()} labels: error {error:.3f}, standard errors from {std.min():.3f} "
        f"to {std.max():.3f}"
    )
    return error, std


if __name__ == "__main__":
    main()
