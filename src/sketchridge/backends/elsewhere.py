"""What stands where training rows would be, in a model that is without them."""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = ["Elsewhere", "Unreachable"]


class Unreachable(RuntimeError):
    """What is on a cluster cannot be brought here, or a device is not there."""


class Elsewhere:
    """Training rows, or numbers for each of them, that are not here.

    It has their shape. Whatever needs more of them is told what to do.

    >>> rows = Elsewhere(1000, 3)
    >>> len(rows), rows.shape
    (1000, (1000, 3))
    """

    def __init__(self, *shape: int) -> None:
        self.shape = shape

    def __len__(self) -> int:
        return self.shape[0]

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):  # asked by Python itself, to copy or pickle it
            raise AttributeError(name)
        self._needed()

    def _needed(self, *_: Any) -> NoReturn:
        raise RuntimeError(
            "This needs all training rows, and the model is here without them: they were on a Dask "
            "cluster. It gives means of a sketch, 'v3', 'gp', 'bias2', and intervals that were "
            "asked for while the rows were there. Fit it again for anything else."
        )

    __array__ = __getitem__ = __iter__ = __mul__ = __matmul__ = __rmatmul__ = _needed
