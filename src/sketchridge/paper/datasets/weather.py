"""Monthly weather on a grid, 1990 to 2002: temperature from five other quantities."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from sketchridge.paper.datasets.files import find, from_npz, tables
from sketchridge.paper.datasets.origin import Origin, named_in

__all__ = ["WEATHER_NAMES", "load_weather", "weather_origin"]

Array = np.ndarray
WEATHER_NAMES = ("pre", "vap", "cld", "wet", "frs")
_VARIABLES = ("tmp", *WEATHER_NAMES)
_TABLE = "NA-1990-2002-Monthly.csv"
_READY = "weather.npz"
_YEARS = (1990, 2002)
_STEP = 10  # half-degree boxes in five degrees
Boxes = dict[tuple[int, int], Array]  # (column, row) of the half-degree grid: (years, 12)


def load_weather(folder: Path | str | None = None, *, average: bool = False) -> tuple[Array, Array]:
    """Weather as X (n, 5) and temperature y (n,), a row for each place and month.

    The columns of X are WEATHER_NAMES: precipitation, vapor, cloud, wet days and frost days.

    Parameters
    ----------
    folder : with weather.npz (X and y, as `datasets.pack` writes it); or with the table
        NA-1990-2002-Monthly.csv; or CRU TS 2.1 text files ending in .tmp, .pre,
        .vap, .cld, .wet and .frs; or CRU TS 4 NetCDF files with these letters in their names. Grids
        are brought to 5×5 degrees.
    average : the mean over each 5×5 degree cell, instead of one box in it.
    """
    folder = _needed(folder)
    ready = find(folder, [_READY])
    if ready is not None:
        return from_npz(ready, len(WEATHER_NAMES))
    table = find(folder, [_TABLE])
    if table is not None:
        return _from_table(table)
    files = _cru_files(folder)
    grids = {
        name: _coarse((_from_netcdf if path.suffix == ".nc" else _from_text)(path, name), average)
        for name, path in files.items()
    }
    places = sorted(set.intersection(*(set(grid) for grid in grids.values())))
    if not places:
        raise ValueError(
            f"The files in {folder} share no place with data from {_YEARS[0]} to {_YEARS[1]}."
        )
    columns = {
        name: np.concatenate([grid[place].ravel() for place in places])
        for name, grid in grids.items()
    }
    return _complete(np.column_stack([columns[name] for name in WEATHER_NAMES]), columns["tmp"])


def weather_origin(folder: Path | str | None = None) -> Origin:
    """Which weather `load_weather` reads from a folder."""
    ready = find(_needed(folder), [_READY])
    if ready is not None:
        return Origin(named_in(ready), (ready,))
    table = find(folder, [_TABLE])
    if table is not None:
        return Origin("weather of North America", (table,))
    files = tuple(_cru_files(_needed(folder)).values())
    return Origin("weather of the Climatic Research Unit", files)


def _needed(folder: Path | str | None) -> Path:
    if folder is None:
        raise FileNotFoundError(
            f"load_weather needs a folder with {_TABLE}, or with CRU TS 2.1 text or CRU TS 4 "
            f"NetCDF files of {', '.join(_VARIABLES)}, which the Climatic Research Unit "
            "(University of East Anglia) gives out."
        )
    return Path(folder)


def _from_table(path: Path) -> tuple[Array, Array]:
    """The layout of Lozano et al. (2009), in CRU's integer units."""
    pl = tables()
    try:
        table = pl.read_csv(path, columns=["TMP", *(name.upper() for name in WEATHER_NAMES)])
    except pl.exceptions.PolarsError as error:
        raise ValueError(
            f"{path} is not in the layout of {_TABLE}: {str(error).splitlines()[0]}"
        ) from None
    values = table.cast(pl.Float64)
    return _complete(
        values.select(name.upper() for name in WEATHER_NAMES).to_numpy(), values["TMP"].to_numpy()
    )


def _complete(X: Array, y: Array) -> tuple[Array, Array]:
    keep = np.isfinite(X).all(axis=1) & np.isfinite(y)
    return X[keep], y[keep]


def _cru_files(folder: Path) -> dict[str, Path]:
    """One file for each variable, text or NetCDF."""
    found = {}
    for name in _VARIABLES:
        matches = sorted(
            p
            for p in folder.iterdir()
            if p.suffix == f".{name}" or (p.suffix == ".nc" and f".{name}." in f".{p.name}")
        )
        if not matches:
            raise FileNotFoundError(
                f"{folder} has neither {_TABLE} nor a CRU file of {name!r} (a name ending in "
                f".{name}, or NetCDF)."
            )
        found[name] = matches[0]
    return found


def _from_text(path: Path, name: str) -> Boxes:
    """CRU TS 2.1: a header with Years, Multi and Missing, and then the boxes.

    A box is a line with its Grid-ref, and then a line of 12 integers for each year.
    """
    with path.open(encoding="latin-1") as lines:
        header = "".join(next(lines, "") for _ in range(5))
        years = re.search(r"\[Years=\s*(\d+)-\s*(\d+)\]", header)
        scale, missing = (
            re.search(rf"\[{key}=\s*([-+.\d]+)\]", header) for key in ("Multi", "Missing")
        )
        if not (years and scale and missing):
            raise ValueError(
                f"{path} is no CRU TS 2.1 file: its first five lines do not state Years, Multi and "
                "Missing."
            )
        first = int(years[1])
        last = int(years[2])
        return dict(_boxes(lines, path, first, last, float(scale[1]), int(missing[1])))


def _boxes(
    lines: Iterator[str], path: Path, first: int, last: int, scale: float, missing: int
) -> Iterator[tuple[tuple[int, int], Array]]:
    wanted = slice(max(_YEARS[0] - first, 0), _YEARS[1] - first + 1)
    if last < _YEARS[0] or first > _YEARS[1]:
        raise ValueError(f"{path} covers {first} to {last}, not {_YEARS[0]} to {_YEARS[1]}.")
    for line in lines:
        place = re.match(r"Grid-ref=\s*(\d+),\s*(\d+)", line)
        if place is None:
            if line.strip():
                raise ValueError(
                    f"{path} is malformed: expected a Grid-ref, got {line.strip()[:40]!r}."
                )
            continue
        rows = [next(lines, "").rstrip("\n") for _ in range(last - first + 1)]
        try:
            values = np.array(
                [[int(row[5 * k : 5 * k + 5]) for k in range(12)] for row in rows], dtype=float
            )
        except ValueError:
            raise ValueError(
                f"{path} is malformed in the box {place[1]}, {place[2]}: a year needs 12 integers "
                "of 5 places."
            ) from None
        values[values == missing] = np.nan
        yield (int(place[1]) - 1, int(place[2]) - 1), scale * values[wanted]


def _from_netcdf(path: Path, name: str) -> Boxes:
    """CRU TS 4: a variable (time, lat, lon) on that half-degree grid, time in days since 1900."""
    dataset = _opened(path)
    try:
        values = np.ma.filled(np.ma.masked_greater(dataset[name], 1e29), np.nan)
        days = np.asarray(dataset["time"])
        lat = np.asarray(dataset["lat"])
        lon = np.asarray(dataset["lon"])
    except (KeyError, IndexError):
        raise ValueError(
            f"{path} is no CRU TS 4 file of {name!r}: it needs the variables {name}, time, lat and "
            "lon."
        ) from None
    years = np.datetime64("1900-01-01") + days.astype("timedelta64[D]")
    year = years.astype("datetime64[Y]").astype(int) + 1970
    keep = (year >= _YEARS[0]) & (year <= _YEARS[1])
    if keep.sum() % 12 or not keep.any():
        raise ValueError(f"{path} does not hold whole years of {_YEARS[0]} to {_YEARS[1]}.")
    columns, rows = (
        np.round((axis - start) / 0.5).astype(int)
        for axis, start in ((lon, -179.75), (lat, -89.75))
    )
    block = np.asarray(values[keep], dtype=float).reshape(-1, 12, len(lat), len(lon))
    land = np.argwhere(np.isfinite(block).any(axis=(0, 1)))
    return {(int(columns[j]), int(rows[i])): block[:, :, i, j] for i, j in land}


def _opened(path: Path) -> Any:
    try:
        import h5netcdf
    except ImportError as error:
        raise ImportError(
            "NetCDF files need h5netcdf, which is not installed: pip install 'sketchridge[data]'."
        ) from error
    try:
        with h5netcdf.File(path, "r") as file:
            return {name: np.asarray(variable[...]) for name, variable in file.variables.items()}
    except OSError as error:
        raise ValueError(f"{path} cannot be read as NetCDF: {error}") from None


def _coarse(boxes: Boxes, average: bool) -> Boxes:
    """Half-degree boxes brought to 5×5 degrees: every tenth box, or the mean of those with data."""
    if not average:
        return {
            (i // _STEP, j // _STEP): v
            for (i, j), v in boxes.items()
            if i % _STEP == _STEP // 2 and j % _STEP == _STEP // 2
        }
    cells: dict[tuple[int, int], list[Array]] = {}
    for (i, j), values in boxes.items():
        cells.setdefault((i // _STEP, j // _STEP), []).append(values)
    return {place: np.nanmean(np.stack(parts), axis=0) for place, parts in cells.items()}
