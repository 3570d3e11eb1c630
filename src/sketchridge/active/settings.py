"""An estimator as plain values, so that a campaign can be continued by another process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from sketchridge.estimator import ExactKernelRidge, SketchedKernelRidge
from sketchridge.kernels import KERNELS

__all__ = ["ESTIMATORS", "Estimator", "estimator_from", "estimator_settings"]

Estimator = ExactKernelRidge | SketchedKernelRidge
ESTIMATORS: dict[str, type[Estimator]] = {cls.__name__: cls for cls in (ExactKernelRidge, SketchedKernelRidge)}
_KERNELS = {cls.__name__: cls for cls in KERNELS.values()}


def estimator_settings(estimator: Estimator) -> dict[str, Any]:
    """The estimator's class and parameters. ValueError for a parameter that is neither a name, a number nor a kernel of ours."""
    parameters = estimator.get_params(deep=False)
    return {"estimator": type(estimator).__name__, "parameters": {name: _plain(name, value) for name, value in parameters.items()}}


def estimator_from(settings: Mapping[str, Any]) -> Estimator:
    """The estimator that was described by `estimator_settings`."""
    parameters = {name: _restored(value) for name, value in settings["parameters"].items()}
    return ESTIMATORS[settings["estimator"]](**parameters)


def _plain(name: str, value: Any) -> Any:
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray | list | tuple) and np.ndim(value) == 1 and np.asarray(value).dtype.kind in "fiu":
        return {"array": np.asarray(value).tolist()}
    if type(value) in _KERNELS.values():
        return {"kernel": type(value).__name__, "fields": {f.name: _plain(f.name, getattr(value, f.name)) for f in fields(value)}}
    raise ValueError(
        f"A stored campaign must be able to rebuild its estimator, but {name}={value!r} is neither a name, a number nor a kernel "
        "of sketchridge.kernels: choose one of these, or leave store=None."
    )


def _restored(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    if "array" in value:
        return np.array(value["array"])
    return _KERNELS[value["kernel"]](**{name: _restored(v) for name, v in value["fields"].items()})
