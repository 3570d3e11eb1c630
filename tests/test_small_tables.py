"""Random small tables, with whatever real ones have: no crash, no NaN, no interval inside out."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from sketchridge import ExactKernelRidge, SketchedKernelRidge

Array = np.ndarray
Rng = np.random.Generator
FEATURES = (
    lambda rng, shape: rng.standard_normal(shape),
    lambda rng, shape: rng.standard_t(1, shape),
    lambda rng, shape: rng.integers(0, 3, shape).astype(float),
    lambda rng, shape: np.exp(5 * rng.standard_normal(shape)),
    lambda rng, shape: 1e7 + rng.random(shape),
)
NOISES = (
    lambda rng, shape: 0.1 * rng.standard_normal(shape),
    lambda rng, shape: rng.standard_t(1, shape),
    lambda rng, shape: rng.integers(0, 2, shape).astype(float),
    lambda rng, shape: np.zeros(shape),
)


def table(rng: Rng) -> tuple[Array, Array, Array | None]:
    """X (n, d), y (n,) or (n, q), and weights or None."""
    n = int(np.exp(rng.uniform(np.log(3), np.log(200))))
    d = int(rng.integers(1, 51 if rng.random() < 0.5 else 6))
    X = FEATURES[rng.integers(len(FEATURES))](rng, (n, d))
    if rng.random() < 0.3:
        X[:, rng.integers(d)] = rng.choice([0.0, 3.3, 1e8])  # a constant
    if rng.random() < 0.05:
        X[:] = 1.0
    if rng.random() < 0.3:
        X = X[rng.integers(n, size=n)]  # duplicates, with other y
    if rng.random() < 0.2:
        X = X * 10.0 ** rng.integers(-100, 100)
    if rng.random() < 0.2:
        X = X * 10.0 ** rng.integers(-6, 6, size=d)
    return X, responses(rng, X), weights(rng, n)


def responses(rng: Rng, X: Array) -> Array:
    q = int(rng.choice([0, 0, 0, 1, 3]))
    shape = len(X), max(q, 1)
    first = X[:, :1] - X[:, :1].mean()
    signal = np.sin(3 * first / max(float(np.abs(first).max()), 1e-300)) * rng.choice([0, 1, 1])
    Y = signal + NOISES[rng.integers(len(NOISES))](rng, shape)
    if rng.random() < 0.1:
        Y[:, 0] = rng.choice([0.0, 5.3, 1e9])
    if rng.random() < 0.2:
        Y = Y + 1e7
    if rng.random() < 0.2:
        Y = Y * 10.0 ** rng.integers(-100, 100, size=shape[1])
    return Y if q else Y[:, 0]


def weights(rng: Rng, n: int) -> Array | None:
    kind = rng.random()
    if kind < 0.15:
        return rng.uniform(0.01, 1, n)
    if kind < 0.25:
        return np.append(1.0, rng.integers(0, 3, n - 1))
    return 10.0 ** rng.uniform(-12, 12, n) if kind < 0.3 else None


def complaints(seed: int) -> list[str]:
    """What is wrong with the answers of a model of one table, with the estimators' defaults."""
    rng = np.random.default_rng([77, seed])
    X, y, w = table(rng)
    model = ExactKernelRidge() if seed % 4 == 3 else SketchedKernelRidge(random_state=0)
    around = rng.standard_normal((3, X.shape[1]))
    T = np.concatenate([X[:5], 1.5 * X[:1], X[:1] + 1e3 * (X.std(axis=0) + 1), around])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        warnings.simplefilter("error", RuntimeWarning)
        model.fit(X, y, sample_weight=w)
        mean, std = model.predict(T, return_std=True)
        intervals = {
            "95%": model.predict_interval(T),
            "of the function": model.predict_interval(T, 0.5, include_noise=False),
            "gaussian": model.predict_interval(T, 0.9, method="gaussian"),
        }
        single = [model.predict_interval(T, 0.9, side="lower")[0]]
        single += [model.predict_interval(T, 0.9, side="upper")[1]]
        positive = {
            "std": std,
            "gp": model.variance(T, "gp"),
            "bias2": model.variance(T, "bias2"),
            "predictive variance": model.predictive_variance(T),
            "noise": model.noise_variance_,
            "amplitude": model.amplitude_,
            "leave-one-out error": model.loo_error_,
        }
    found = [
        name for name, v in positive.items() if not (np.isfinite(v) & (np.asarray(v) >= 0)).all()
    ]
    found += [] if np.isfinite([mean, *single]).all() else ["mean or a one-sided bound"]
    for name, (low, high) in intervals.items():
        fine = np.isfinite([low, high]).all() and (low <= mean).all() and (mean <= high).all()
        found += [] if fine else [f"interval {name}"]
    return found


def check(seeds: range) -> None:
    wrong = {}
    for seed in seeds:
        try:
            found = complaints(seed)
        except Exception as error:  # whatever it is, it is counted
            found = [repr(error)[:200]]
        if found:
            wrong[seed] = found
    assert not wrong


@pytest.mark.usefixtures("defaults")
def test_thirty_tables_have_answers():
    check(range(30))


@pytest.mark.slow
@pytest.mark.usefixtures("defaults")
@pytest.mark.parametrize("part", range(20))
def test_two_thousand_tables_have_answers(part):
    check(range(100 * part, 100 * part + 100))
