"""Where kernel products are computed: one file a device or engine."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

from sketchridge.backends.base import Backend
from sketchridge.backends.numpy_tiles import NumpyTiles

__all__ = ["BACKENDS", "Backend", "NumpyTiles", "as_backend"]

BACKENDS = {"numpy": "numpy_tiles.NumpyTiles", "torch": "torch_tiles.TorchTiles", "triton": "triton_fused.TritonFused"}
DTYPES = ("float16", "float16x2", "float32", "float64")
_LARGE = 2**14  # rows from which a GPU is worth sending them to


def as_backend(spec: object, dtype: str, n: int = 0) -> Backend:
    """The backend meant by a name or an object, computing in ``dtype``; "auto" is the GPU, if there is one, from 16,384 rows on."""
    if isinstance(spec, Backend):
        return spec
    if not isinstance(spec, str) or spec not in ("auto", *BACKENDS):
        raise ValueError(f"Unknown backend {spec!r}: give 'auto', one of {', '.join(map(repr, BACKENDS))} or a backend object.")
    if dtype not in DTYPES:
        raise ValueError(f"Unknown dtype {dtype!r}: give 'auto', {', '.join(map(repr, DTYPES[:-1]))} or {DTYPES[-1]!r}.")
    if spec == "auto":
        spec = ("triton" if find_spec("triton") else "torch") if n >= _LARGE and _sees_a_gpu() else "numpy"
    if dtype.startswith("float16") and spec != "triton":
        raise ValueError(
            f"dtype={dtype!r} needs a GPU and backend='triton', but the backend is {spec!r}: give 'float32' or 'float64'."
        )
    module, name = BACKENDS[spec].split(".")
    return getattr(_loaded(module), name)(dtype)


def _loaded(module: str) -> object:
    try:
        return import_module(f"sketchridge.backends.{module}")
    except ImportError as error:
        raise ImportError(f"This backend needs PyTorch and Triton ({error}): pip install 'sketchridge[gpu]'.") from None


def _sees_a_gpu() -> bool:
    if find_spec("torch") is None or find_spec("array_api_compat") is None:
        return False
    return import_module("torch").cuda.is_available()
