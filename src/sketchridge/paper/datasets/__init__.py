"""Real data: flights and weather, from the original files or from a package."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from sketchridge.paper.datasets.flights import FLIGHT_NAMES, flights_origin, load_flights
from sketchridge.paper.datasets.origin import Origin
from sketchridge.paper.datasets.weather import WEATHER_NAMES, load_weather, weather_origin

__all__ = [
    "FLIGHT_NAMES",
    "WEATHER_NAMES",
    "Origin",
    "load_flights",
    "load_weather",
    "origin_of",
    "pack",
]


def origin_of(name: str, folder: Path | str | None) -> Origin:
    """What would be read from a folder as flights or weather; nothing is read for other names."""
    known = {"flights": flights_origin, "weather": weather_origin}
    return known[name](folder) if name in known else Origin("", ())


def pack(folder: Path | str | None, target: Path | str) -> list[Path]:
    """Write flights.npz and weather.npz, which are read without any further package."""
    root = Path(target)
    root.mkdir(parents=True, exist_ok=True)
    loaded = {"flights": load_flights(folder), "weather": load_weather(folder)}
    paths = []
    for name, (X, y) in loaded.items():
        paths.append(root / f"{name}.npz")
        origin = np.array(origin_of(name, folder).name)
        np.savez_compressed(paths[-1], X=X, y=y, origin=origin)
    return paths
