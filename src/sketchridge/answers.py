"""Answers that are tables: tests of contrasts with simultaneous bands, and marginal effects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from scipy.stats import norm

__all__ = ["ContrastTest", "MarginalEffects", "effects_table", "tested"]

Array = np.ndarray
_NUMBERS = 2**24  # drawn at a time


@dataclass(frozen=True, eq=False)
class ContrastTest:
    """Whether A f(X) is what it is held to be: each (p,), or (p, q) for several targets.

    Attributes
    ----------
    estimate, std : A f̂(X) and its standard deviation, in units of y.
    z, p_value : (estimate − value)/std, and how likely a larger |z| is, two-sided.
    p_simultaneous : how likely the largest of all |z| is larger, if every value is right.
    low, high : intervals that hold each with the level of confidence.
    band_low, band_high : intervals that hold all at once with that level.
    critical_value : by how many standard deviations the band goes to either side.
    confidence_level : of intervals and band.
    """

    estimate: Array
    std: Array
    z: Array
    p_value: Array
    p_simultaneous: Array
    low: Array
    high: Array
    band_low: Array
    band_high: Array
    critical_value: float
    confidence_level: float

    def __str__(self) -> str:
        shown = ("estimate", "std", "z", "p_value", "band_low", "band_high")
        head = ["contrast", *shown]
        return _table(head, np.arange(len(self.estimate)), [getattr(self, s) for s in shown])


def tested(
    estimate: Array,
    std: Array,
    correlated: Array,
    value: Array,
    confidence_level: float,
    simulations: int,
    rng: np.random.Generator,
) -> ContrastTest:
    """The test of estimates (p,) or (p, q) whose covariance is ``correlated`` (p, p), or that times
    a number for each target."""
    z = _z_values(estimate - value, std)
    largest = _largest_of_all(correlated, simulations, rng)
    critical = float(np.quantile(largest, confidence_level, method="higher"))
    beyond = len(largest) - np.searchsorted(largest, np.abs(z), side="left")
    alone = norm.ppf(0.5 + confidence_level / 2) * std
    together = critical * std
    return ContrastTest(
        estimate=estimate,
        std=std,
        z=z,
        p_value=_two_sided(z),
        p_simultaneous=np.maximum(_two_sided(z), beyond / len(largest)),
        low=estimate - alone,
        high=estimate + alone,
        band_low=estimate - together,
        band_high=estimate + together,
        critical_value=critical,
        confidence_level=confidence_level,
    )


def _z_values(difference: Array, std: Array) -> Array:
    """difference/std; 0 where both are 0, ±∞ where only std is."""
    known = std > 0
    z = np.where(difference == 0, 0.0, np.copysign(np.inf, difference))
    return np.divide(difference, std, out=z, where=known)


def _two_sided(z: Array) -> Array:
    """The probability that |N(0, 1)| is above |z|."""
    return 2 * norm.sf(np.abs(z))


def _largest_of_all(C: Array, simulations: int, rng: np.random.Generator) -> Array:
    """The largest |z_i| of draws z from the normal distribution with the correlations of C, sorted:
    (simulations,)."""
    std = np.sqrt(np.diagonal(C))
    known = np.flatnonzero(std > 0)
    if not len(known):
        return np.zeros(simulations)
    E, V = np.linalg.eigh(C[np.ix_(known, known)] / np.outer(std[known], std[known]))
    R = V * np.sqrt(np.maximum(E, 0)) @ V.T  # a Cholesky factor's pivots would follow rounding
    size = max(1, _NUMBERS // len(R))
    parts = []
    for start in range(0, simulations, size):
        draws = rng.standard_normal((R.shape[1], min(size, simulations - start)))
        parts.append(np.abs(R @ draws).max(axis=0))
    return np.sort(np.concatenate(parts))


@dataclass(frozen=True, eq=False)
class MarginalEffects:
    """The average effect of each feature: a row for each, arrays (d,), or (d, q) for targets.

    Attributes
    ----------
    feature : names.
    kind : "derivative", the average of ∂f/∂x, or "first difference", the average of f with a
        feature of two values at the larger less that at the smaller.
    effect, std_error : in units of y for one of x, or for the difference.
    z, p_value : effect/std_error, and how likely a larger |z| is without an effect.
    low, high : intervals of the level of confidence for the expectation of the estimate.
    confidence_level : theirs.
    """

    feature: tuple[str, ...]
    kind: tuple[str, ...]
    effect: Array
    std_error: Array
    z: Array
    p_value: Array
    low: Array
    high: Array
    confidence_level: float

    def __len__(self) -> int:
        return len(self.feature)

    def __str__(self) -> str:
        shown = ("effect", "std_error", "z", "p_value", "low", "high")
        columns = [np.array(self.kind), *(getattr(self, name) for name in shown)]
        return _table(["feature", "kind", *shown], self.feature, columns)

    def to_dict(self) -> dict[str, Any]:
        """The columns by name."""
        names = [f.name for f in fields(self) if f.name != "confidence_level"]
        return {name: getattr(self, name) for name in names}

    def to_frame(self) -> Any:
        """A pandas data frame, a row for each feature and target."""
        import pandas as pd

        several = self.effect.ndim > 1
        q = self.effect.shape[1] if several else 1
        columns: Mapping[str, Any] = {
            name: np.repeat(value, q) if np.ndim(value) == 1 else np.ravel(value)
            for name, value in self.to_dict().items()
        }
        target = {"target": np.tile(np.arange(q), len(self))} if several else {}
        return pd.DataFrame({**columns, **target})


def effects_table(
    feature: tuple[str, ...], kind: tuple[str, ...], effect: Array, std: Array, level: float
) -> MarginalEffects:
    """Effects (d,) or (d, q) with their standard errors, as a table."""
    z = _z_values(effect, std)
    reach = norm.ppf(0.5 + level / 2) * std
    return MarginalEffects(
        feature, kind, effect, std, z, _two_sided(z), effect - reach, effect + reach, level
    )


def _table(head: list[str], names: Any, columns: list[Array]) -> str:
    """Columns under a head; several targets stand below each other."""
    q = max((column.shape[1] for column in columns if column.ndim > 1), default=1)
    rows = [head if q == 1 else [head[0], "target", *head[1:]]]
    for i, name in enumerate(names):
        for j in range(q):
            cells = [column[i, j] if column.ndim > 1 else column[i] for column in columns]
            shown = [c if isinstance(c, str) else f"{c:.4g}" for c in cells]
            rows.append([str(name), *([str(j)] if q > 1 else []), *shown])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(c.rjust(w) for c, w in zip(row, widths, strict=True)) for row in rows]
    return "\n".join(lines)
