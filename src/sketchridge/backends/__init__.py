"""Where kernel products are computed: one file a device or engine."""

from __future__ import annotations

import shutil
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from sketchridge.backends.base import Backend
from sketchridge.backends.cholesky import Cholesky
from sketchridge.backends.elsewhere import Elsewhere, Unreachable
from sketchridge.backends.numpy_tiles import NumpyTiles
from sketchridge.backends.points import Points
from sketchridge.backends.tall import Room, Tall
from sketchridge.backends.threads import by_rows, on_cluster, over_rows

__all__ = [
    "BACKENDS",
    "LARGE",
    "Backend",
    "Cholesky",
    "Elsewhere",
    "NumpyTiles",
    "Points",
    "Room",
    "Tall",
    "Unreachable",
    "as_backend",
    "by_rows",
    "on_cluster",
    "over_rows",
    "restored",
    "worth_a_gpu",
]

BACKENDS = {
    "numpy": "numpy_tiles.NumpyTiles",
    "torch": "torch_tiles.TorchTiles",
    "triton": "triton_fused.TritonFused",
    "dask": "dask_blocks.DaskBlocks",
}
LARGE = 2**14  # rows from which a GPU is worth sending them to
_DRIVER = Path("/proc/driver/nvidia/version")


def as_backend(spec: object, n: int = 0) -> Backend:
    """The backend meant by a name or an object; "auto" is the GPU, if any, from 16,384 rows on.

    Parameters
    ----------
    spec : str or backend object
        "auto" or a name of `BACKENDS`.
    n : int
        Rows: "auto" takes a GPU only for many.

    Returns
    -------
    backend : Backend
        What computes.

    Examples
    --------
    >>> as_backend("numpy").name
    'numpy'
    """
    if isinstance(spec, Backend):
        return spec
    if not isinstance(spec, str) or spec not in ("auto", *BACKENDS):
        raise ValueError(
            f"Unknown backend {spec!r}: give 'auto', one of {', '.join(map(repr, BACKENDS))} or a "
            "backend object."
        )
    if spec == "auto":
        spec = _best_gpu() if worth_a_gpu(n) else "numpy"
    module, name = BACKENDS[spec].split(".")
    return getattr(_loaded(module), name)()


def restored(name: str, device: str | None) -> Backend:
    """A backend of a device, from a file."""
    module, cls = BACKENDS[name].split(".")
    return getattr(_loaded(module), cls)(device=device)


def worth_a_gpu(n: int) -> bool:
    """Whether n rows are many enough for a GPU, and there is one that PyTorch can use.

    PyTorch is imported only where the machine has a driver for a GPU: importing it takes seconds.
    """
    if n < LARGE or find_spec("torch") is None or not _has_a_driver():
        return False
    return bool(import_module("torch").cuda.is_available())


def _has_a_driver() -> bool:
    return _DRIVER.exists() or shutil.which("nvidia-smi") is not None


def _best_gpu() -> str:
    return "triton" if find_spec("triton") else "torch"


def _loaded(module: str) -> object:
    try:
        return import_module(f"sketchridge.backends.{module}")
    except ImportError as error:
        needed, extra = (
            ("Dask", "dask") if module == "dask_blocks" else ("PyTorch and Triton", "gpu")
        )
        raise ImportError(
            f"This backend needs {needed} ({error}): pip install 'sketchridge[{extra}]'."
        ) from None
