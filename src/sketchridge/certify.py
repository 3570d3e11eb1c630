"""Bounds on how far V2 can be from V1."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sketchridge.state import Ridge

__all__ = ["Certificate", "trace_certificate"]


@dataclass(frozen=True)
class Certificate:
    """|√V2(x) − √V1(x)| ≤ ``relative`` · √V2(x) for every x, except with probability ``failure_probability``.

    ``relative`` is ``norm``/λ, with ``norm`` a bound on ‖K − K̂‖ (rounding included). From 1 up it says nothing about V1 from
    below: it is vacuous.
    """

    method: str
    norm: float
    relative: float
    failure_probability: float = 0.0

    @property
    def vacuous(self) -> bool:
        return self.relative >= 1

    def __str__(self) -> str:
        if self.vacuous:
            return (
                f"vacuous ({self.method}): the uniform bound on the relative error of √V2 is {self.relative:.3g}; "
                "ask for a bound at each point with variance(X, return_bound=True), or enlarge the sketch"
            )
        return f"{self.method}: the standard deviation √V2 is within {self.relative:.3g} of √V1, relative to √V2, at every point"


def trace_certificate(ridge: Ridge) -> Certificate:
    """The bound (τ + rounding)/λ with τ = tr K − tr K̂ ≥ ‖K − K̂‖. Free."""
    norm = ridge.state.tau + rounding(ridge)
    return Certificate("trace", norm, norm / ridge.lam)


def rounding(ridge: Ridge) -> float:
    """8√n ε tr(K), with ε the precision of the kernel products."""
    eps = np.finfo(ridge.backend.dtype).eps
    return float(8 * np.sqrt(len(ridge.state.X)) * eps * ridge.state.trace)
