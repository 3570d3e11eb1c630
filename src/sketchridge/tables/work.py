"""Fit a model to a table in a file, and predict those in others."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from sketchridge.calibration import calibrate_left_out, coverage, interval_score
from sketchridge.columns import numbers_of
from sketchridge.encoder import OTHER, TableEncoder
from sketchridge.progress import status
from sketchridge.saving import Saved, load_with_notes, save
from sketchridge.sheets.files import write_sheet
from sketchridge.table_regressor import TableRegressor, target_values
from sketchridge.tables.compare import Compared, compare
from sketchridge.tables.reading import Table, read_again, read_table

__all__ = [
    "Opened",
    "Prediction",
    "compare_table",
    "fit_table",
    "opened",
    "predict_table",
    "split",
    "summary",
]

Array = np.ndarray
_POINTS = 2**15  # rows that are predicted at a time
_COLUMNS = ("mean", "low", "high")


@dataclass(frozen=True, eq=False)
class Opened:
    """A model of a table, and what is known of how it was made."""

    model: TableRegressor
    notes: dict[str, Any]


@dataclass(frozen=True, eq=False)
class Prediction:
    """A table with predictions beside its rows, and how good they are where that is known."""

    frame: pl.DataFrame
    table: Table
    columns: tuple[str, ...]  # names of mean, low and high
    known: int  # rows with a target that the model was not fitted to
    seen: int  # rows that it was fitted to
    rmse: float | None
    coverage: float | None
    score: float | None

    def write(self, path: Path, *, force: bool = False) -> None:
        """In the style of the table."""
        style = {"separator": self.table.separator, "decimal": self.table.decimal}
        write_sheet(self.frame, path, **style, force=force)


def split(table: Table, target: str) -> tuple[pl.DataFrame, pl.Series]:
    """The other columns, and the target."""
    table.check_column(target)
    return table.frame.drop(target), table.frame[target]


def fit_table(
    path: Path,
    target: str,
    output: Path,
    *,
    estimator: Any = None,
    category: Sequence[str] = (),
    ignore: Sequence[str] = (),
    max_categories: int = 20,
    date_format: str | None = None,
    force: bool = False,
) -> Opened:
    """Fit a model to a table in a file, and save it; ``output`` is checked by the caller."""
    start = time.perf_counter()
    with status(f"Reading {path}"):
        table = read_table(path, text=[*category, *ignore], date_format=date_format)
    for name in (target, *category, *ignore):
        table.check_column(name)
    X, y = split(table, target)
    options: dict[str, Any] = {"category": category, "ignore": ignore}
    model = TableRegressor(estimator, max_categories=max_categories, **options).fit(X, y)
    notes = {
        "table": path.name,
        "target": target,
        "rows": len(y) - y.null_count(),
        "without_target": y.null_count(),
        "reading": table.reading,
        "fitted": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": round(time.perf_counter() - start, 2),
        "version": version("sketchridge"),
    }
    with status(f"Writing {output}"):
        save(model, output, notes=notes, force=force)
    return Opened(model, notes)


def opened(path: Path) -> Opened:
    """The model in a file that `fit_table` wrote. ValueError for another."""
    with status(f"Loading {path}"):
        found: Saved = load_with_notes(path)
    if not isinstance(found.model, TableRegressor):
        raise ValueError(
            f"{path} holds a {type(found.model).__name__}, not the model of a table: make one with "
            "`sketchridge fit`, or use it from Python (sketchridge.saving.load)."
        )
    return Opened(found.model, found.notes)


def predict_table(given: Opened, path: Path, confidence: float = 0.95) -> Prediction:
    """Means and intervals for new observations beside the rows of a table."""
    model = given.model
    with status(f"Reading {path}"):
        table = read_again(path, given.notes.get("reading", {}))
    target = str(model.target_name_)
    known = numbers_of(table.frame[target].to_numpy()) if _has(table, target) else np.empty(0)
    Z = model.transform(table.frame)
    mean, low, high = _answers(model, Z, confidence)
    names = _free_names(table.given.columns)
    shown = _rounded(mean, low, high)
    columns = [pl.Series(name, values) for name, values in zip(names, shown, strict=True)]
    frame = table.given.with_columns(columns)
    rows = np.flatnonzero(~np.isnan(known))
    seen = _was_fitted(model, Z[rows], known[rows])
    rows = rows[~seen]
    if not len(rows):
        return Prediction(frame, table, names, 0, int(seen.sum()), None, None, None)
    y = known[rows]
    limits = low[rows], high[rows]
    return Prediction(
        frame,
        table,
        names,
        len(rows),
        int(seen.sum()),
        float(np.sqrt(np.mean((mean[rows] - y) ** 2))),
        coverage(y, *limits),
        float(interval_score(y, *limits, confidence).mean()),
    )


def _rounded(mean: Array, low: Array, high: Array) -> tuple[Array, ...]:
    """To six digits of a typical half-width: more is of no use to anyone."""
    half = float(np.median(high - low)) / 2 if len(mean) else 0.0
    if not 0 < half < np.inf:
        return mean, low, high
    digits = 5 - int(np.floor(np.log10(half)))
    return tuple(np.round(values, digits) for values in (mean, low, high))


def _was_fitted(model: TableRegressor, Z: Array, y: Array) -> Array:
    """Whether rows, with their targets, are among those that the model was fitted to: (t,)."""
    data = model.regressor_.fitted_.data
    given = zip(data.X[data.rows.group], data.rows.Y_given[:, 0], strict=True)
    fitted = {(x.tobytes(), value) for x, value in given}
    return np.array([(x.tobytes(), v) in fitted for x, v in zip(Z, y, strict=True)], dtype=bool)


def _has(table: Table, target: str) -> bool:
    return target in table.frame.columns and table.frame[target].dtype.is_numeric()


def _answers(model: TableRegressor, Z: Array, confidence: float) -> tuple[Array, Array, Array]:
    parts = []
    with status("Predicting") as say:
        for start in range(0, max(len(Z), 1), _POINTS):
            say(f"Predicting: {start:,} of {len(Z):,} rows")
            some = Z[start : start + _POINTS]
            limits = model.regressor_.predict_interval(some, confidence)
            parts.append((model.regressor_.predict(some), *limits))
    mean, low, high = (np.concatenate(each) for each in zip(*parts, strict=True))
    return mean, low, high


def _free_names(taken: Sequence[str]) -> tuple[str, ...]:
    """mean, low and high, or the same with a word more where the table has one of them."""
    clash = any(name in taken for name in _COLUMNS)
    return tuple(f"predicted {name}" for name in _COLUMNS) if clash else _COLUMNS


def compare_table(
    path: Path,
    target: str,
    *,
    category: Sequence[str] = (),
    ignore: Sequence[str] = (),
    date_format: str | None = None,
    folds: int = 5,
    rows: int = 5000,
    confidence: float = 0.95,
    seed: int = 0,
    say: Callable[[str], None] = lambda text: None,
) -> tuple[int, list[Compared]]:
    """Models of a table in a file by cross-validation, and the number of rows compared."""
    table = read_table(path, text=[*category, *ignore], date_format=date_format)
    for name in (target, *category, *ignore):
        table.check_column(name)
    X, y = split(table, target)
    values = target_values(y, target)
    known = np.flatnonzero(~np.isnan(values))
    encoder = TableEncoder(category=category, ignore=ignore)
    found = compare(
        X[known],
        values[known],
        folds=folds,
        rows=rows,
        confidence=confidence,
        seed=seed,
        encoder=encoder,
        say=say,
    )
    return min(len(known), rows or len(known)), found


def summary(given: Opened) -> dict[str, Any]:
    """What a fit found, as plain values."""
    model, encoder, fit = given.model, given.model.encoder_, given.model.regressor_
    y = fit.fitted_.data.rows.Y_given[:, 0]
    level = calibrate_left_out(fit, [0.95])
    error = float(np.sqrt(fit.loo_error_))
    spread = float(y.std())
    found = {
        **{name: given.notes.get(name) for name in ("table", "rows", "without_target", "seconds")},
        "target": model.target_name_,
        "columns": dict(encoder.kinds_),
        "with_rare_values": [
            name
            for name, kind in encoder.kinds_.items()
            if kind == "category" and OTHER in encoder.levels(name)
        ],
        "left_out": dict(encoder.left_out_),
        "features": len(encoder.get_feature_names_out()),
        "loo_rmse": error,
        "target_std": spread,
        "loo_r2": 1 - (error / spread) ** 2 if spread else None,
        "median_half_width_95": float(level.width[0]) / 2,
        "influence": model.influence(),
        "relevance": model.feature_relevance_,
        "kernel": repr(fit.kernel_).partition("(")[0],
        "alpha": fit.alpha_,
        "lambda": fit.lambda_,
        "effective_dof": fit.effective_dof_,
        "noise_std": float(np.sqrt(fit.noise_variance_)),
    }
    if hasattr(fit, "gap_"):
        found |= {"solver": fit.solver_, "sketch_size": fit.sketch_size_, "gap": fit.gap_}
    return found
