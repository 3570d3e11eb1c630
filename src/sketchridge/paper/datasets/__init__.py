"""Real data: flights and weather, from the original files or from a package."""

from sketchridge.paper.datasets.flights import FLIGHT_NAMES, load_flights
from sketchridge.paper.datasets.weather import WEATHER_NAMES, load_weather

__all__ = ["FLIGHT_NAMES", "WEATHER_NAMES", "load_flights", "load_weather"]
