"""Weather from every kind of file, made here in the true formats."""

from __future__ import annotations

import h5netcdf
import numpy as np
import pytest

from sketchridge.paper.datasets import WEATHER_NAMES, load_weather

VARIABLES = ("tmp", *WEATHER_NAMES)


def write_text(path, boxes, *, first=1989, last=2003, multi=0.1, missing=-999):
    """A CRU TS 2.1 file with boxes {(x, y): (years, 12) integers}."""
    lines = [
        "Tyndall Centre grim file created on 22.01.2004 at 17:57 by Dr. Tim Mitchell",
        f"{path.suffix} = something (units)",
        "CRU TS 2.1",
        "[Long=-180.00, 180.00] [Lati= -90.00,  90.00] [Grid X,Y= 720, 360]",
        f"[Boxes={len(boxes):8d}] [Years={first}-{last}] [Multi={multi:10.4f}] [Missing={missing}]",
    ]
    for (x, y), values in boxes.items():
        lines.append(f"Grid-ref={x:4d},{y:4d}")
        lines += ["".join(f"{int(v):5d}" for v in year) for year in values]
    path.write_text("\n".join(lines) + "\n")


def values(seed, years=15):
    return np.random.default_rng(seed).integers(0, 3000, (years, 12))


BOXES = {
    (6, 6): 0,
    (7, 6): 1,
    (16, 26): 2,
    (720, 360): 3,
}  # the first and third are the middle of a 5×5 cell


@pytest.fixture
def text_folder(tmp_path):
    for k, name in enumerate(VARIABLES):
        write_text(
            tmp_path / f"cru_ts_2_10.1901-2002.{name}",
            {place: values(10 * k + b) for place, b in BOXES.items()},
        )
    return tmp_path


def expected(k, b):
    """Variable k of box b, the years 1990 to 2002."""
    return 0.1 * values(10 * k + b)[1:14].ravel()


def test_text_files_are_sub_sampled_to_five_degrees(text_folder):
    X, y = load_weather(text_folder)
    assert X.shape == (2 * 13 * 12, 5)
    np.testing.assert_allclose(y, np.concatenate([expected(0, 0), expected(0, 2)]))
    for k in range(1, 6):
        np.testing.assert_allclose(X[:, k - 1], np.concatenate([expected(k, 0), expected(k, 2)]))


def test_text_files_are_averaged_over_five_degrees(text_folder):
    X, y = load_weather(text_folder, average=True)
    assert X.shape == (3 * 13 * 12, 5)
    np.testing.assert_allclose(y[: 13 * 12], (expected(0, 0) + expected(0, 1)) / 2)


def test_missing_months_are_left_out(text_folder):
    broken = {place: values(b) for place, b in BOXES.items()}
    broken[(6, 6)] = broken[(6, 6)].copy()
    broken[(6, 6)][5, 3] = -999
    write_text(text_folder / "cru_ts_2_10.1901-2002.tmp", broken)
    X, y = load_weather(text_folder)
    assert len(y) == len(X) == 2 * 13 * 12 - 1


def test_netcdf_files_hold_the_same(tmp_path):
    lon = np.arange(-179.75, 180, 0.5)
    lat = np.arange(-89.75, 90, 0.5)
    months = np.arange("1989-01", "2004-01", dtype="datetime64[M]")
    middles = months.astype("datetime64[D]") + np.timedelta64(14, "D")
    days = middles - np.datetime64("1900-01-01")
    for k, name in enumerate(VARIABLES):
        grid = np.full((len(days), len(lat), len(lon)), 9.96921e36, dtype=np.float32)
        for (x, y), b in BOXES.items():
            grid[:, y - 1, x - 1] = 0.1 * values(10 * k + b).ravel()
        with h5netcdf.File(tmp_path / f"cru_ts4.07.1901.2022.{name}.dat.nc", "w") as file:
            file.dimensions = {"time": len(days), "lat": len(lat), "lon": len(lon)}
            for axis, data in (("time", days.astype(int)), ("lat", lat), ("lon", lon)):
                file.create_variable(axis, (axis,), data=data)
            file.create_variable(name, ("time", "lat", "lon"), data=grid, compression="gzip")
    X, y = load_weather(tmp_path)
    np.testing.assert_allclose(y, np.concatenate([expected(0, 0), expected(0, 2)]), rtol=1e-5)
    np.testing.assert_allclose(X[:, 4], np.concatenate([expected(5, 0), expected(5, 2)]), rtol=1e-5)


def test_the_table_of_north_america(tmp_path):
    head = "YEAR,MONTH,LAT,LONG,CO2,CH4,CO,H2,WET,CLD,VAP,PRE,FRS,DTR,TMN,TMP,TMX,GLO,ETR,ETRN\n"
    rows = [
        "1990,1,30.475,-114.75,356.6,1766.4,126.2,532.4,374,335,85,100,948,178,35,124,213,3358.6,5950.5,14514.1\n"
    ] * 3
    (tmp_path / "NA-1990-2002-Monthly.csv").write_text(head + "".join(rows))
    X, y = load_weather(tmp_path)
    np.testing.assert_array_equal(X, [[100, 85, 335, 374, 948]] * 3)
    np.testing.assert_array_equal(y, [124] * 3)


def test_what_is_missing_or_malformed_is_said(text_folder):
    with pytest.raises(FileNotFoundError, match="needs a folder with NA-1990-2002-Monthly"):
        load_weather()
    path = text_folder / "cru_ts_2_10.1901-2002.vap"
    good = path.read_text()
    for text, message in (
        ("nothing\n", "first five lines do not state Years, Multi and Missing"),
        (good.replace("Grid-ref=   7,   6", "Grid=   7,   6"), "expected a Grid-ref"),
        (good[: len(good) // 2], "a year needs 12 integers"),
        (good.replace("Years=1989-2003", "Years=1901-1915"), "covers 1901 to 1915"),
    ):
        path.write_text(text)
        with pytest.raises(ValueError, match=message):
            load_weather(text_folder)
    path.unlink()
    with pytest.raises(FileNotFoundError, match="nor a CRU file of 'vap'"):
        load_weather(text_folder)


def test_a_bad_table_and_a_bad_netcdf(tmp_path):
    (tmp_path / "NA-1990-2002-Monthly.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match="not in the layout"):
        load_weather(tmp_path)
    (tmp_path / "NA-1990-2002-Monthly.csv").unlink()
    for name in VARIABLES:
        (tmp_path / f"x.{name}.nc").write_text("no NetCDF")
    with pytest.raises(ValueError, match="cannot be read as NetCDF"):
        load_weather(tmp_path)
