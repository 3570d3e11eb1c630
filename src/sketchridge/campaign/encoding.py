"""How columns of a table become features: numbers scaled, categories one-hot; remembered, so that
tables that come later are encoded alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import polars as pl

from sketchridge.campaign.headings import ID, id_column_of, is_target, label_column
from sketchridge.sheets.cells import WORDS, decimal_of, number_like, numbers
from sketchridge.sheets.files import Sheet
from sketchridge.words import among, listed, named_rows, no_column, renaming, shown

__all__ = [
    "Encoding",
    "Feature",
    "check_names",
    "complete",
    "encoding_of",
    "style_of",
    "typed",
]

Array = np.ndarray
_CATEGORIES = 20  # values up to which a column of text is taken for a category
_IN_COMMAS = (
    "; where commas separate the columns decimals need points: save it with semicolons, or as .xlsx"
)
_CHUNK = 2**18  # rows that are encoded at a time
_RENAME = "Give --target {column} if it is the same, and --ignore {column} if it is not."
_CONVERT = "give --unit {unit}, or convert the values; if it is not the same, --ignore {column}."


@dataclass(frozen=True)
class Feature:
    """A column: a number with its mean and spread, or a category with its values."""

    name: str
    mean: float = 0.0
    spread: float = 1.0
    values: Sequence[str] | None = None


@dataclass(frozen=True)
class Encoding:
    """What each column of the tables of a campaign is."""

    target: str
    id: str | None  # the column that names the rows; None where their numbers do
    features: Sequence[Feature]
    carried: Sequence[str]  # columns that go along to the bench and are no features
    unit: str = ""
    low: float | None = None  # the range in which labels are expected
    high: float | None = None

    @property
    def categories(self) -> list[Feature]:
        return [feature for feature in self.features if feature.values is not None]

    @property
    def heading(self) -> str:
        """Of the column for labels on a sheet."""
        return f"{self.target} [{self.unit}]" if self.unit else self.target

    @property
    def behind(self) -> str:
        """The unit as it stands behind a number."""
        return f" {self.unit}" if self.unit else ""

    @property
    def known(self) -> list[str]:
        """Columns that are no labels, whatever their headings."""
        features = [feature.name for feature in self.features]
        return [*([] if self.id is None else [self.id]), *features, *self.carried]

    def is_label(self, column: str) -> bool:
        """Whether a column of one of the campaign's tables holds labels."""
        return column not in self.known and is_target(column, self.target)

    def label_column(self, names: Sequence[str], file: str) -> str | None:
        """Where the labels are in a later table, if it has any."""
        return label_column(names, self.target, self.unit, file, others=self.known)

    def matrix(self, frame: pl.DataFrame) -> Array:
        """The features (p, d) of a typed table."""
        parts = [
            _encoded(frame[start : start + _CHUNK], self.features)
            for start in range(0, max(len(frame), 1), _CHUNK)
        ]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def plain(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> Encoding:
        """The encoding that was written down by `plain`."""
        features = [Feature(**feature) for feature in plain["features"]]
        return cls(**{**plain, "features": features})

    def read(self, sheet: Sheet, *, ids: bool = True) -> pl.DataFrame:
        """A later table with the columns of the first, typed. ValueError for one that lacks some,
        or has a category that the first did not have."""
        needed = [f.name for f in self.features]
        if ids and self.id is not None:
            needed = [self.id, *needed]
        missing = [name for name in needed if name not in sheet.frame.columns]
        if missing:
            columns = sheet.frame.columns
            raise ValueError(
                f"{sheet.name} has no column {shown(missing[0])}, which the campaign's table has"
                f"{among(columns)}{renaming(missing[0], columns)}"
            )
        if sheet.frame.is_empty():
            raise ValueError(f"{sheet.name} has a header and no rows: give it one row at least.")
        numeric = [f.name for f in self.features if f.values is None]
        frame = typed(sheet, numeric)
        if ids and self.id is not None:
            advice = "correct these cells; nothing was changed"
            frame = frame.with_columns(check_names(frame[self.id], sheet.name, advice))
        for feature in self.categories:
            text = complete(frame[feature.name], sheet)
            known = text.is_in(list(feature.values or ()))
            if not known.all():
                new = text.filter(~known).unique(maintain_order=True)
                raise ValueError(
                    f"{shown(feature.name)} has values in {sheet.name} that the campaign's table "
                    f"did not have: {listed(new)}. It knows {listed(feature.values or ())}; a new "
                    "one needs a new campaign."
                )
        return frame


def _encoded(frame: pl.DataFrame, features: Iterable[Feature]) -> Array:
    columns = []
    for feature in features:
        values = frame[feature.name]
        if feature.values is None:
            x = values.cast(pl.Float64).to_numpy()
            columns.append(((x - feature.mean) / feature.spread)[:, None])
        else:
            text = values.cast(pl.String).to_numpy()
            columns.append((text[:, None] == np.array(feature.values, dtype=object)).astype(float))
    return np.ascontiguousarray(np.concatenate(columns, axis=1))


def encoding_of(
    sheet: Sheet,
    *,
    target: str,
    id_column: str | None = None,
    ignore: Sequence[str] = (),
    category: Sequence[str] = (),
    scale: bool = True,
    unit: str = "",
    limits: tuple[float | None, float | None] = (None, None),
    exact_headings: bool = False,
    column: Callable[[str], pl.Series] | None = None,
) -> tuple[Encoding, pl.DataFrame]:
    """What the columns of a campaign's first table are, and the table with their types.

    Of a table that is only the first piece of one, ``column`` gives a column whole.
    Columns of numbers, true and false are features. A column of text is a category if it is
    said to be one or has few values, each more than once on average; else it is carried along.
    ``exact_headings`` is how the first version knew the ids and the labels: letter by letter.
    """
    columns = sheet.frame.columns
    for name in (*([] if id_column is None else [id_column]), *ignore, *category):
        if name not in columns:
            raise ValueError(no_column(sheet.name, name, columns))
    ours = [name for name in columns if name in (ID, target)] if exact_headings else columns
    id_column = id_column or id_column_of(ours, ignore, sheet.name)
    if target == (id_column or ID):
        raise ValueError(
            f"The target cannot be {shown(target)}, which names the rows: give it another name."
        )
    known = [*([] if id_column is None else [id_column]), *ignore]
    labels = label_column(
        ours, target, unit, sheet.name, others=known, rename=_RENAME, convert=_CONVERT
    )
    others = [name for name in columns if name not in (id_column, labels, *ignore)]
    whole = column or sheet.frame.get_column
    kinds = {name: _kind(whole(name), sheet.name, name in category) for name in others}
    numeric = [name for name in others if kinds[name] == "number"]
    frame = typed(sheet, numeric)
    if id_column is not None:
        frame = frame.with_columns(check_names(frame[id_column], sheet.name))
    features = [
        _feature(frame, name, kinds[name], scale, sheet) for name in others if kinds[name] != "text"
    ]
    if not features or not len(frame):
        raise ValueError(
            f"{sheet.name} has no features: at least one column of numbers or categories and one "
            "row are needed."
        )
    carried = [n for n in columns if n in ignore or kinds.get(n) == "text"]
    low, high = limits
    encoding = Encoding(target, id_column, features, carried, unit, low, high)
    return encoding, frame


def _kind(values: pl.Series, file: str, is_category: bool) -> str:
    """ "number", "category" or "text"."""
    name = values.name
    if is_category:
        return "category"
    if values.dtype.is_numeric() or values.dtype == pl.Boolean:
        return "number"
    if values.dtype not in (pl.String, pl.Categorical, pl.Enum):
        return "text"
    text = values.cast(pl.String).drop_nulls()
    like = number_like(text)
    if not len(text):
        return "text"  # which nobody can take for a feature
    share = like.mean()
    if share == 1:
        return "number"
    if float(share or 0.0) >= 0.5:  # type: ignore[arg-type]
        wrong = text.filter(~like).unique(maintain_order=True)
        raise ValueError(
            f"The column {shown(name)} of {file} holds numbers, but also {listed(wrong)}: "
            f"correct these cells, or give --category {name} or --ignore {name}."
        )
    few = text.n_unique() <= min(_CATEGORIES, len(text) / 2)
    return "category" if few else "text"


def _feature(frame: pl.DataFrame, name: str, kind: str, scale: bool, sheet: Sheet) -> Feature:
    if kind == "category":
        return Feature(name, values=sorted(complete(frame[name], sheet).unique().to_list()))
    x = frame[name].cast(pl.Float64).to_numpy()
    spread = float(x.std())
    return Feature(name, float(x.mean()), spread if spread > 0 else 1.0) if scale else Feature(name)


def complete(category: pl.Series, sheet: Sheet) -> pl.Series:
    """A category as text. ValueError where it is missing."""
    text = category.cast(pl.String)
    if text.null_count():
        raise ValueError(
            f"The category {shown(text.name)} is missing in "
            f"{named_rows(np.flatnonzero(text.is_null().to_numpy()) + sheet.first)} of "
            f"{sheet.name}: fill these cells first."
        )
    return text


def typed(sheet: Sheet, numeric: Sequence[str]) -> pl.DataFrame:
    """The table with numbers where numbers are needed, complete and finite."""
    frame = sheet.frame
    decimal = decimal_of(sheet, numeric)
    columns = {name: numbers(frame[name], decimal) for name in numeric}
    bad = np.zeros(len(frame), dtype=bool)
    for name, x in columns.items():
        wrong = frame[name].filter(pl.Series(np.isnan(x)) & ~frame[name].is_null())
        if len(wrong) and wrong.dtype == pl.String and wrong.str.to_lowercase().ne("nan").any():
            raise ValueError(
                f"The column {shown(name)} of {sheet.name} holds {listed(wrong.unique())}, which "
                "are no numbers here: write them without separators of thousands, and with one "
                f"decimal mark throughout{_IN_COMMAS if sheet.separator == ',' else ''}."
            )
        bad |= ~np.isfinite(x)
    if bad.any():
        rows = np.flatnonzero(bad) + sheet.first
        raise ValueError(
            f"Features are missing or infinite in {named_rows(rows)} of {sheet.name}: remove or "
            "fill such rows first."
        )
    return frame.with_columns(_series(x, frame[name]) for name, x in columns.items())


def check_names(given: pl.Series, file: str, advice: str = "give another one as --id") -> pl.Series:
    """Ids as text. ValueError unless they name each row once."""
    ids = given.cast(pl.String)
    if ids.null_count() or ids.n_unique() < len(ids):
        raise ValueError(
            f"The column {shown(given.name)} of {file} must name each row once, without gaps"
            f"{_examples(ids)}: {advice}."
        )
    return ids


def _examples(ids: pl.Series) -> str:
    twice = ids.filter(ids.is_duplicated()).drop_nulls().unique(maintain_order=True)
    return f" ({listed(twice)} more than once)" if len(twice) else ""


def _series(x: Array, given: pl.Series) -> pl.Series:
    """Numbers as they look best: true and false, whole, or with a point."""
    name = given.name
    words = given.dtype == pl.String and given.str.to_lowercase().is_in(list(WORDS)).all()
    if given.dtype == pl.Boolean or (words and len(given)):
        return pl.Series(name, x.astype(bool))
    if np.abs(x).max(initial=0) < 2**53 and (x == np.round(x)).all():
        return pl.Series(name, x.astype(np.int64))
    return pl.Series(name, x)


def style_of(sheet: Sheet, encoding: Encoding) -> dict[str, str]:
    """The separator of columns and the mark of decimals in a table, for those like it."""
    numeric = [feature.name for feature in encoding.features if feature.values is None]
    decimal = decimal_of(sheet, numeric)
    return {"separator": sheet.separator_beside(decimal), "decimal": decimal}
