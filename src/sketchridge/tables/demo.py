"""A made table with text, dates and gaps, for those who want to see before they bring their own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from sketchridge.sheets.files import write_sheet

__all__ = ["houses", "write_demo"]

_DISTRICTS = {"Center": 1.35, "Harbor": 1.2, "Hill": 1.1, "North": 0.95, "South": 0.9, "Mill": 0.85}


def houses(n: int, seed: int) -> pl.DataFrame:
    """Made sales of houses: numbers, text, dates, gaps, and a price in thousands.

    >>> houses(3, 0).columns[:4]
    ['sale', 'sold', 'district', 'area']
    """
    rng = np.random.default_rng(seed)
    day = rng.integers(0, 3 * 365, n)
    district = rng.choice(list(_DISTRICTS), n, p=[0.25, 0.2, 0.2, 0.15, 0.15, 0.05])
    area = np.exp(rng.normal(4.5, 0.35, n)).round(0)
    built = rng.integers(1900, 2022, n).astype(float)
    condition = rng.choice(["poor", "fair", "good"], n, p=[0.2, 0.5, 0.3])
    energy = np.clip(rng.normal(260 - 0.8 * (built - 1900), 30), 30, None).round(0)
    season = 1 + 0.05 * np.sin(2 * np.pi * (day - 80) / 365.25)
    age = 1 + 0.2 * ((built - 1960) / 60) ** 2
    state = np.array([{"poor": 0.85, "fair": 1.0, "good": 1.12}[c] for c in condition])
    factor = np.array([_DISTRICTS[d] for d in district])
    price = 2.9 * area**0.95 * factor * age * state * season * (1 - (energy - 200) / 2000)
    price = (price * np.exp(rng.normal(0, 0.06, n))).round(1)
    dates = np.datetime64("2021-01-01") + day.astype("timedelta64[D]")
    frame = pl.DataFrame(
        {
            "sale": [f"S{seed}{i:04d}" for i in range(n)],
            "sold": dates,
            "district": district,
            "area": area,
            "built": built.astype(np.int64),
            "condition": condition,
            "energy": energy,
            "price": price,
        }
    )
    gaps = {"energy": rng.random(n) < 0.15, "condition": rng.random(n) < 0.05}
    return frame.with_columns(frame[name].set(pl.Series(gap), None) for name, gap in gaps.items())


def write_demo(folder: Path, *, force: bool = False) -> tuple[Path, Path]:
    """Two tables: houses that were sold, and further ones to predict."""
    folder.mkdir(parents=True, exist_ok=True)
    known, new = folder / "houses.csv", folder / "new_houses.csv"
    write_sheet(houses(600, 1), known, force=force)
    write_sheet(houses(400, 2), new, force=force)
    return known, new
