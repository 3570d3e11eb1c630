"""This library beside scikit-learn's boosting and Gaussian process, on a table of one's own."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from scipy.stats import norm
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sketchridge.calibration import coverage, interval_score
from sketchridge.encoder import TableEncoder
from sketchridge.estimator import SketchedKernelRidge

__all__ = ["MODELS", "Compared", "compare"]

Array = np.ndarray
Answer = tuple[Array, Array, Array]  # mean, low and high
_GPR_ROWS = 2000  # O(n³) for every step of its optimizer
_WIDE = 8  # features above which it has one bandwidth for all


@dataclass(frozen=True)
class Compared:
    """A model, by cross-validation: means over folds, with the standard error of the RMSE."""

    model: str
    rmse: float
    rmse_error: float
    coverage: float
    interval_score: float
    seconds: float  # to fit and predict, in one fold
    note: str


def compare(
    X: pl.DataFrame,
    y: Array,
    *,
    folds: int = 5,
    rows: int = 5000,
    confidence: float = 0.95,
    seed: int = 0,
    encoder: TableEncoder | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> list[Compared]:
    """Cross-validate all models on the same folds of the same rows, encoded alike.

    Parameters
    ----------
    X, y : the table and its target (n,), complete.
    folds : how many. rows : so many at most are drawn at random; 0 for all.
    confidence : of the intervals. seed : of rows, folds and models.
    encoder : how columns become features; a plain `TableEncoder` unless given.
    say : told how far it is.
    """
    if not 2 <= folds <= len(y):
        raise ValueError(f"Between 2 folds and one for each of {len(y)} rows are needed: {folds}.")
    rng = np.random.default_rng(seed)
    chosen = np.sort(rng.permutation(len(y))[: rows or None])
    X, y = X[chosen], y[chosen]
    encoder = TableEncoder() if encoder is None else encoder
    splits = list(KFold(folds, shuffle=True, random_state=seed).split(y))
    found: dict[str, list[tuple[float, float, float, float]]] = {name: [] for name in MODELS}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of columns, in every fold; of optimizers' bounds
        for number, (train, test) in enumerate(splits, start=1):
            fitted = encoder.fit(X[train], y[train])
            Z, Z_test = fitted.transform(X[train]), fitted.transform(X[test])
            for name, answer in MODELS.items():
                say(f"Fold {number} of {folds}: {name}")
                start = time.perf_counter()
                mean, low, high = answer(Z, y[train], Z_test, confidence, seed)
                took = time.perf_counter() - start
                found[name].append((*_judged(y[test], mean, low, high, confidence), took))
    note = f"{min(_GPR_ROWS, len(splits[0][0])):,} rows"
    notes = {"Gaussian process": note}
    return [_summed(name, each, notes.get(name, "")) for name, each in found.items()]


def _judged(
    y: Array, mean: Array, low: Array, high: Array, confidence: float
) -> tuple[float, float, float]:
    """The mean squared error, the coverage and the interval score."""
    score = float(interval_score(y, low, high, confidence).mean())
    return float(np.mean((y - mean) ** 2)), coverage(y, low, high), score


def _summed(name: str, each: list[tuple[float, float, float, float]], note: str) -> Compared:
    squares, inside, scores, seconds = (np.array(column) for column in zip(*each, strict=True))
    rmse = float(np.sqrt(squares.mean()))
    error = float(np.sqrt(squares).std(ddof=1) / np.sqrt(len(squares)))
    return Compared(
        name, rmse, error, float(inside.mean()), float(scores.mean()), float(seconds.mean()), note
    )


def _ours(Z: Array, y: Array, Z_test: Array, confidence: float, seed: int) -> Answer:
    model = SketchedKernelRidge(random_state=seed).fit(Z, y)
    return (model.predict(Z_test), *model.predict_interval(Z_test, confidence))


def _boosting(Z: Array, y: Array, Z_test: Array, confidence: float, seed: int) -> Answer:
    """The mean by squared error, the limits by two quantiles."""
    settings: Iterator[dict[str, Any]] = iter(
        [
            {},
            {"loss": "quantile", "quantile": (1 - confidence) / 2},
            {"loss": "quantile", "quantile": (1 + confidence) / 2},
        ]
    )
    mean, low, high = (
        HistGradientBoostingRegressor(random_state=seed, **each).fit(Z, y).predict(Z_test)
        for each in settings
    )
    return mean, low, high


def _gaussian_process(Z: Array, y: Array, Z_test: Array, confidence: float, seed: int) -> Answer:
    rows = np.random.default_rng(seed).permutation(len(y))[:_GPR_ROWS]
    length = np.ones(Z.shape[1]) if Z.shape[1] <= _WIDE else 1.0
    kernel = ConstantKernel() * Matern(length, nu=1.5) + WhiteKernel(0.1)
    process = GaussianProcessRegressor(kernel, normalize_y=True, random_state=seed)
    model = make_pipeline(StandardScaler(), process).fit(Z[rows], y[rows])
    mean, std = model.predict(Z_test, return_std=True)
    half = float(norm.ppf((1 + confidence) / 2)) * std
    return mean, mean - half, mean + half


MODELS: dict[str, Callable[[Array, Array, Array, float, int], Answer]] = {
    "sketchridge": _ours,
    "gradient boosting": _boosting,
    "Gaussian process": _gaussian_process,
}
