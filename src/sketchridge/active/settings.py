"""An estimator as plain values, so that a campaign can be continued by another process."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import reduce
from typing import Any

import numpy as np

from sketchridge.estimator import SketchedKernelRidge
from sketchridge.exact_estimator import ExactKernelRidge
from sketchridge.kernels import (
    CubicSpline,
    DotProduct,
    Gaussian,
    Kernel,
    Laplacian,
    Linear,
    Matern32,
    Matern52,
    PeriodicSobolev,
    Polynomial,
    Radial,
)
from sketchridge.notices import warn

__all__ = [
    "ESTIMATORS",
    "Estimator",
    "estimator_from",
    "estimator_settings",
    "plain_value",
    "restored_value",
]

Estimator = ExactKernelRidge | SketchedKernelRidge
ESTIMATORS: dict[str, type[Estimator]] = {
    cls.__name__: cls for cls in (ExactKernelRidge, SketchedKernelRidge)
}
# What makes a kernel from the fields that are stored of it, and what those are.
_NAMED: dict[str, tuple[Callable[..., Kernel], Callable[[Any], dict[str, Any]]]] = {
    "Gaussian": (Gaussian, lambda k: {"bandwidth": k.bandwidth}),
    "Matern32": (Matern32, lambda k: {"bandwidth": k.bandwidth}),
    "Matern52": (Matern52, lambda k: {"bandwidth": k.bandwidth}),
    "Laplacian": (Laplacian, lambda k: {"bandwidth": k.bandwidth}),
    "Linear": (Linear, lambda k: {}),
    "Polynomial": (
        Polynomial,
        lambda k: {"degree": k.degree, "gamma": k.gamma, "coef0": k.parameters[1]},
    ),
    "CubicSpline": (CubicSpline, lambda k: {}),
    "PeriodicSobolev": (PeriodicSobolev, lambda k: {"order": k.order}),
}
_GENERAL: dict[str, type[Kernel]] = {"Radial": Radial, "DotProduct": DotProduct}
_FUNCTIONS = ("profile", "slope")
_FITTED = ("center",)  # fields that a fit sets


def estimator_settings(estimator: Estimator) -> dict[str, Any]:
    """The estimator's class and parameters.

    ValueError for a parameter that is neither a name, a number nor a kernel that can be rebuilt.
    """
    parameters = estimator.get_params(deep=False)
    plain = {name: plain_value(name, value) for name, value in parameters.items()}
    return {"estimator": type(estimator).__name__, "parameters": plain}


def estimator_from(settings: Mapping[str, Any]) -> Estimator:
    """The estimator that was described by `estimator_settings`.

    >>> settings = estimator_settings(SketchedKernelRidge("matern32", alpha=0.5))
    >>> estimator_from(settings)
    SketchedKernelRidge(alpha=0.5, kernel='matern32')
    """
    kind = settings["estimator"]
    known = ESTIMATORS[kind]().get_params() if kind in ESTIMATORS else {}
    unknown = [name for name in settings["parameters"] if name not in known]
    if unknown:
        raise ValueError(
            f"The campaign's estimator is {kind} with {', '.join(unknown)}, which this sketchridge "
            "does not know: it was started by a newer one. Upgrade sketchridge to continue it."
        )
    parameters = {name: restored_value(value) for name, value in settings["parameters"].items()}
    return ESTIMATORS[kind](**parameters)


def plain_value(name: str, value: Any) -> Any:
    """A parameter as something that can be written down."""
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray | list | tuple):
        array = np.asarray(value)
        deepest = 2 if name == "bandwidth" else 1  # which may be a map (d, k)
        if 1 <= array.ndim <= deepest and array.dtype.kind in "fiu":
            return {"array": array.tolist()}
    if name == "sketch_size" and callable(value):
        return {"function": _path_of(value, name)}
    if isinstance(value, Kernel):
        stored = _named_kernel(value) or _general_kernel(value)
        if stored is not None:
            return stored
    raise ValueError(
        f"A stored campaign must be able to rebuild its estimator, but {name}={value!r} is neither "
        "a name, a number nor a kernel of sketchridge.kernels: choose one of these, or leave "
        "store=None."
    )


def restored_value(value: Any) -> Any:
    """The parameter that was written down."""
    if not isinstance(value, dict):
        return value
    if "array" in value:
        return np.array(value["array"])
    if "function" in value:
        return _function_at(value["function"], "sketch_size")
    name, stored = value["kernel"], value["fields"]
    given = {key: restored_value(v) for key, v in stored.items() if key not in _FITTED}
    if name in _NAMED:
        return _NAMED[name][0](**given)
    given["parameters"] = tuple(given["parameters"])
    for key in _FUNCTIONS:
        given[key] = None if given[key] is None else _function_at(given[key], key)
    given["fused"] = _program_at(given["fused"])
    return _GENERAL[name](**given)


def _named_kernel(kernel: Kernel) -> dict[str, Any] | None:
    """A kernel of this library by its name and parameters; None for any other."""
    name = getattr(kernel, "name", type(kernel).__name__)
    if name not in _NAMED:
        return None
    make, described = _NAMED[name]
    if getattr(kernel, "profile", None) is not getattr(make(), "profile", None):
        return None
    values = described(kernel)
    if not _alike(kernel, make(**values)):
        return None
    return {"kernel": name, "fields": {key: plain_value(key, v) for key, v in values.items()}}


def _alike(one: Any, other: Any) -> bool:
    """Whether two kernels are the same but for what a fit sets."""
    if type(one) is not type(other):
        return False
    names = [f.name for f in fields(one) if f.name not in _FITTED]
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in names)


def _general_kernel(kernel: Kernel) -> dict[str, Any] | None:
    """A user's kernel, its functions by their import paths; None where it is of another kind."""
    kind = type(kernel).__name__
    if type(kernel) is not _GENERAL.get(kind):
        return None
    names = [f.name for f in fields(kernel) if f.name not in _FITTED]  # type: ignore[arg-type]
    values = {name: getattr(kernel, name) for name in names}
    for name in _FUNCTIONS:
        values[name] = None if values[name] is None else _path_of(values[name], name)
    if values["fused"] is not None and not isinstance(values["fused"], str):
        values["fused"] = _path_of(values["fused"], "fused")
    numbers = [plain_value("parameters", number) for number in values.pop("parameters")]
    stored = {name: plain_value(name, value) for name, value in values.items()}
    return {"kernel": kind, "fields": {**stored, "parameters": numbers}}


def _path_of(function: Any, role: str) -> str:
    """The import path "module:name" of a function that stands in a module."""
    plain = getattr(function, "fn", function)  # what @triton.jit has wrapped
    path = f"{getattr(plain, '__module__', None)}:{getattr(plain, '__qualname__', None)}"
    if "<" in path or _found_at(path) is not function:
        raise ValueError(
            f"A stored campaign keeps the {role} by its name, but {function!r} cannot "
            "be found by one: define it with def in a module, not as a lambda or inside another "
            "function, or leave store=None."
        )
    _check_role(function, path, role)
    return path


def _function_at(path: str, role: str) -> Any:
    """The function at an import path, of a module that has been imported already.

    What a file names is never imported because of it: that is for whoever resumes to do.
    """
    module = path.partition(":")[0]
    if module not in sys.modules:
        raise ValueError(
            f"The campaign has the {role} {path!r}: import {module} first, then resume."
        )
    function = _found_at(path)
    if function is None:
        raise ValueError(
            f"The campaign has the {role} {path!r}, but there is no such name: define it "
            "as it was when the campaign was started."
        )
    _check_role(function, path, role)
    return function


def _program_at(path: str | None) -> Any:
    """The Triton function at an import path; those of this library are looked up when needed."""
    if path is None or path.startswith("sketchridge."):
        return path
    found = _found_at(path)
    if found is None:
        warn(
            f"The campaign's kernel has a Triton function, {path!r}, whose module has not been "
            "imported: import it before resuming, or the kernel is left to PyTorch."
        )
    return found


def _found_at(path: str) -> Any:
    """What stands at "module:name" in a module that has been imported, or None."""
    module, _, name = path.partition(":")
    start: Any = sys.modules.get(module)
    return reduce(lambda found, part: getattr(found, part, None), name.split("."), start)


def _check_role(function: Any, path: str, role: str) -> None:
    """Only functions f(s, xp, …) of kernels, and f(n) of sizes, are called because a file names
    them."""
    wanted = {"sketch_size": ["n"], "fused": None}.get(role, ["s", "xp"])
    if wanted is None:
        return
    is_plain = inspect.isfunction(function)
    names = list(inspect.signature(function).parameters) if is_plain else []
    given = names if role == "sketch_size" else names[:2]
    if given != wanted:
        more = ", …" if role != "sketch_size" else ""
        raise ValueError(
            f"{path!r} cannot be the {role} of a stored campaign: its arguments must be named "
            f"({', '.join(wanted)}{more})."
        )
