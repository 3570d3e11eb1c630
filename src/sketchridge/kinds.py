"""Which variance is meant, by its name."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from sklearn.utils.validation import check_is_fitted

__all__ = ["Kinds"]

_OF_THE_MEAN = ("v1", "v2", "v3", "vbar", "vtheta")  # kinds in units of y²


class Kinds:
    """The kinds of variance that an estimator has."""

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

    @property
    @abstractmethod
    def _std_kind(self) -> str:
        """The kind behind predict(return_std=True)."""

    @property
    @abstractmethod
    def _own_kind(self) -> str:
        """The kind that is the variance of the mean which is predicted."""
