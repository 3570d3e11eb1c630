"""Models in files of skops: loaded only where every type in the file is known and harmless."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import BadZipFile

from sketchridge.words import listed
from sketchridge.writing import check_output, put

__all__ = ["TRUSTED", "Saved", "load", "load_with_notes", "save"]

_RADIAL = ("gaussian", "matern32", "matern52")
_DOT = ("linear", "polynomial")
TRUSTED = (  # types of this library that a file may hold; skops knows those of scikit-learn
    "numpy.dtype",
    "sketchridge.backends.elsewhere.Elsewhere",
    "sketchridge.candidates.Step",
    "sketchridge.certify.Certificate",
    "sketchridge.data.Data",
    "sketchridge.encoder.Cycles",
    "sketchridge.encoder.TableEncoder",
    "sketchridge.encoder.level_name",
    "sketchridge.estimator.SketchedKernelRidge",
    "sketchridge.exact_estimator.ExactKernelRidge",
    "sketchridge.exact_fit.ExactFitted",
    "sketchridge.fitted.Fitted",
    "sketchridge.fitted.Settings",
    "sketchridge.kernels.cube.CubicSpline",
    "sketchridge.kernels.cube.PeriodicSobolev",
    "sketchridge.kernels.dot.DotProduct",
    *(f"sketchridge.kernels.dot.{name}" for name in _DOT),
    *(f"sketchridge.kernels.dot.{name}_slope" for name in _DOT),
    "sketchridge.kernels.laplacian.Laplacian",
    "sketchridge.kernels.radial.Radial",
    *(f"sketchridge.kernels.radial.{name}" for name in _RADIAL),
    *(f"sketchridge.kernels.radial.{name}_slope" for name in _RADIAL),
    "sketchridge.learning.Learned",
    "sketchridge.model.Choices",
    "sketchridge.noise.NoiseModel",
    "sketchridge.pipeline_regressor.PipelineRegressor",
    "sketchridge.precision.Plan",
    "sketchridge.predictive.Predictive",
    "sketchridge.predictive.Ranks",
    "sketchridge.rows.Rows",
    "sketchridge.sketches.FourierSketch",
    "sketchridge.sketches.GaussianSketch",
    "sketchridge.sketches.HadamardSketch",
    "sketchridge.sketches.LandmarkSketch",
    "sketchridge.sketches.RPCholeskySketch",
    "sketchridge.sketches.RademacherSketch",
    "sketchridge.sketches.SparseSketch",
    "sketchridge.table_regressor.TableRegressor",
    "sketchridge.tuning.LambdaPath",
    "sketchridge.varying.Varying",
)


class Saved(NamedTuple):
    """A model from a file, and what was written down with it.

    Parameters
    ----------
    model : estimator
        As it was saved.
    notes : dict
        What was written down with it.
    """

    model: Any
    notes: dict[str, Any]


def save(
    model: Any, path: Any, *, notes: Mapping[str, Any] | None = None, force: bool = False
) -> None:
    """Write a fitted model to a .skops file, whole or not at all.

    The file holds the training rows as the kernel sees them: give it only to those who may see
    the data.

    Parameters
    ----------
    model : estimator
        An estimator of this library, a `TableRegressor`, a `PipelineRegressor`, or a pipeline.
    path : path
        A file whose name ends in .skops.
    notes : mapping
        Plain values to keep with it: text, numbers, lists and dictionaries.
    force : bool
        Overwrite an existing file.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from sketchridge import ExactKernelRidge
    >>> X = np.linspace(0, 1, 20)[:, None]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(ExactKernelRidge().fit(X, X[:, 0]), f"{folder}/model.skops")
    ...     load(f"{folder}/model.skops").predict([[0.5]]).round(2)
    array([0.5])
    """
    path = Path(path)
    check_output(path, force, suffixes=(".skops",), never=())
    data = _skops().dumps({"model": model, "notes": dict(notes or {})})
    put(path, lambda file: file.write(data), force)


def load(path: Any, *, trusted: Sequence[str] = ()) -> Any:
    """The model in a .skops file.

    Parameters
    ----------
    path : path
        The file.
    trusted : sequence of str
        Further types to trust, by their full names, such as the functions of a kernel of your
        own. ValueError names those that are missing; nothing of them has been run then.

    Returns
    -------
    model : estimator
        As it was saved.
    """
    return load_with_notes(path, trusted=trusted).model


def load_with_notes(path: Any, *, trusted: Sequence[str] = ()) -> Saved:
    """The model in a .skops file, and the notes that `save` was given.

    Parameters
    ----------
    path : path
        The file.
    trusted : sequence of str
        Further types to trust, by their full names, such as the functions of a kernel of your
        own. ValueError names those that are missing; nothing of them has been run then.

    Returns
    -------
    saved : Saved
        The model and the notes that `save` was given.
    """
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"There is no file {path}.")
    skops = _skops()
    data = path.read_bytes()
    try:
        unknown = skops.get_untrusted_types(data=data)
    except (BadZipFile, KeyError, ValueError, TypeError, AttributeError) as error:
        raise ValueError(
            f"{path} is no model that was saved by sketchridge: give a .skops file of `sketchridge "
            "fit` or of sketchridge.saving.save."
        ) from error
    strange = sorted(set(unknown) - {*TRUSTED, *trusted})
    if strange:
        raise ValueError(
            f"{path} is not loaded: it holds types that are not trusted, {listed(strange)}. If you "
            "know who made the file, load it with sketchridge.saving.load(path, trusted=[...])."
        )
    found = skops.load(io.BytesIO(data), trusted=[*TRUSTED, *trusted])
    if isinstance(found, dict) and "model" in found:
        return Saved(found["model"], dict(found.get("notes", {})))
    return Saved(found, {})


def _skops() -> Any:
    try:
        import skops.io
    except ImportError:
        raise ImportError(
            "Saving and loading models needs skops: pip install 'sketchridge[persist]'."
        ) from None
    return skops.io
