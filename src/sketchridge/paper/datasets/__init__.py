"""Real data: flights and weather, from the original files or from a package."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from sketchridge.paper.datasets.flights import FLIGHT_NAMES, load_flights
from sketchridge.paper.datasets.weather import WEATHER_NAMES, load_weather

__all__ = ["FLIGHT_NAMES", "WEATHER_NAMES", "load_flights", "load_weather", "pack"]


def pack(folder: Path | str | None, target: Path | str) -> list[Path]:
    """Write flights.npz and weather.npz, which are read without any further package."""
    root = Path(target)
    root.mkdir(parents=True, exist_ok=True)
    loaded = {"flights": load_flights(folder), "weather": load_weather(folder)}
    paths = []
    for name, (X, y) in loaded.items():
        paths.append(root / f"{name}.npz")
        np.savez_compressed(paths[-1], X=X, y=y)
    return paths
