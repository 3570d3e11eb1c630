"""Which variance is meant, by its name."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

__all__ = ["Kinds"]

Array = np.ndarray
_OF_THE_MEAN = ("v1", "v2", "v3", "vbar", "vtheta")  # kinds in units of y²


class Kinds:
    """The kinds of variance that an estimator has, and shapes by the number of targets."""

    _one_target: Any
    _kinds: tuple[str, ...]
    _kind: str  # of a variance, unless one is asked for

    def _check_kind(self, kind: Any) -> None:
        if kind not in self._kinds:
            raise ValueError(
                f"Unknown kind of variance {kind!r} for {type(self).__name__}: give one of "
                f"{', '.join(map(repr, self._kinds))}."
            )

    def _known_kind(self, kind: str | None) -> str:
        kind = self._kind if kind is None else kind
        self._check_kind(kind)
        return kind

    def _covariance_kind(self, kind: str | None) -> str:
        kind = self._known_kind(kind)
        if kind == "bias2":
            raise ValueError(
                "kind='bias2' is a bound on a squared bias, which has no covariance: give "
                "'gp', or a kind of variance of the mean."
            )
        return kind

    def _kind_of_the_mean(self, kind: str | None) -> str:
        check_is_fitted(self)
        kind = self._own_kind if kind is None else kind
        self._check_kind(kind)
        if kind not in _OF_THE_MEAN:
            known = [repr(name) for name in self._kinds if name in _OF_THE_MEAN]
            raise ValueError(
                f"Standard deviations are those of the mean, in units of y, which kind={kind!r} is "
                f"not: give {' or '.join(known)}."
            )
        return kind

    def _shaped(self, values: Array) -> Array:
        """(t, q), or (t,) for one target."""
        return values[:, 0] if self._one_target else np.array(values)

    def _scaled(self, unit: Array, factor: float | Array) -> Array:
        """unit (t,) times a factor for each target: (t,) or (t, q)."""
        return unit * factor if self._one_target else np.outer(unit, factor)

    @property
    @abstractmethod
    def _std_kind(self) -> str:
        """The kind behind predict(return_std=True)."""

    @property
    @abstractmethod
    def _own_kind(self) -> str:
        """The kind that is the variance of the mean which is predicted."""
