"""Where kernel products are computed: one file a device or engine."""

from __future__ import annotations

from sketchridge.backends.base import Backend
from sketchridge.backends.numpy_tiles import NumpyTiles

__all__ = ["BACKENDS", "Backend", "NumpyTiles", "as_backend"]

BACKENDS: dict[str, type[Backend]] = {"numpy": NumpyTiles}
DTYPES = ("float32", "float64")


def as_backend(spec: object, dtype: str) -> Backend:
    """The backend meant by a name or an object, computing in ``dtype``."""
    if isinstance(spec, Backend):
        return spec
    if spec == "auto":
        spec = "numpy"
    if not isinstance(spec, str) or spec not in BACKENDS:
        raise ValueError(f"Unknown backend {spec!r}: give 'auto', one of {', '.join(map(repr, BACKENDS))} or a backend object.")
    if dtype not in DTYPES:
        raise ValueError(f"Unknown dtype {dtype!r}: give 'auto', {' or '.join(map(repr, DTYPES))}.")
    return BACKENDS[spec](dtype)  # type: ignore[call-arg]
