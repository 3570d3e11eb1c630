"""Tables in files of spreadsheets: .csv with commas, semicolons or tabs, .tsv, .xlsx and .parquet,
read as text where they hold text, and written whole or not at all."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from sketchridge.sheets.faults import with_faults
from sketchridge.words import listed, shown
from sketchridge.writing import put

__all__ = [
    "NAMELESS",
    "SUFFIXES",
    "Sheet",
    "check_kind",
    "read_sheet",
    "write_sheet",
]

SUFFIXES = (".csv", ".tsv", ".xlsx", ".parquet")
NAMELESS = ("__UNNAMED__", "_duplicated_")  # how columns without a heading begin when read
_WORKBOOK = 2**20  # rows of a sheet of .xlsx
_FORMULA = r"^[=+\-@\t\r]"
_NUMBER = r"^[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d+)?$"
_OLD = {
    ".xls": "Save it as .xlsx (Excel workbook)",
    ".ods": "Save it as .xlsx or .csv",
    ".numbers": "Export it as .xlsx or .csv",
    ".txt": "If it is a table with commas, semicolons or tabs, rename it to .csv",
}


@dataclass(frozen=True, eq=False)
class Sheet:
    """A table and how its file is written: columns of text, or with types from Parquet."""

    frame: pl.DataFrame
    name: str  # of the file, for sentences
    separator: str = ","
    has_points: bool = False  # numbers are written with decimal points in any country
    first: int = 0  # the row of the file where a piece of it begins
    percents: frozenset[str] = frozenset()  # columns in which a workbook shows 0.125 as 12.5%

    def separator_beside(self, decimal: str) -> str:
        """Of the columns in files like this one; one with a binary format has none of its own."""
        return "," if self.has_points and decimal == "." else self.separator


def read_sheet(path: Path) -> Sheet:
    """A table in a file; cells are stripped, empty ones null, rows and columns of nothing gone."""
    readers: dict[str, Callable[[Path], Sheet]] = {
        ".csv": _read_text,
        ".tsv": _read_text,
        ".xlsx": _read_workbook,
        ".parquet": lambda path: Sheet(pl.read_parquet(path), str(path), has_points=True),
    }
    suffix = path.suffix.lower()
    if suffix not in readers:
        raise ValueError(
            f"{path} is none of {', '.join(SUFFIXES)}. {_OLD.get(suffix, 'Save it as one')}."
        )
    if not path.is_file():
        raise ValueError(f"There is no file {path}.")
    try:
        return readers[suffix](path)
    except (pl.exceptions.PolarsError, OSError, UnicodeError) as error:
        raise ValueError(
            f"{path} cannot be read ({_first_line(error)}): {_advice(error, suffix)}"
        ) from None


def _advice(error: Exception, suffix: str) -> str:
    """What to do about a file that cannot be read."""
    if isinstance(error, UnicodeError):
        return "save it as UTF-8."
    if isinstance(error, OSError):
        return "check that you may read it, and that no other program holds it."
    if suffix == ".parquet":
        return "write it again as .parquet, or as .csv."
    return "every row must have as many cells as the header. Save it again from a spreadsheet."


def _read_text(path: Path) -> Sheet:
    text = _decoded(path.read_bytes())
    if "\n" not in text:
        text = text.replace("\r", "\n")  # lines end so on old Macs
    first, _, rest = text.partition("\n")
    if re.fullmatch(r"sep=.\r?", first):  # which Excel writes for itself
        text = rest
        first = rest.partition("\n")[0]
    separator = "\t" if path.suffix.lower() == ".tsv" else _separator(first)
    if not text.strip():
        raise ValueError(f"{path} is empty.")
    _check_header(_cells(first, separator), path)
    frame = pl.read_csv(
        io.BytesIO(text.encode()),
        separator=separator,
        infer_schema=False,
        raise_if_empty=False,
    )
    return Sheet(_tidy(frame), str(path), separator, has_points=separator == ",")


def _read_workbook(path: Path) -> Sheet:
    try:
        import fastexcel
    except ImportError:
        raise ImportError(
            f"To read {path} install fastexcel: pip install 'sketchridge[excel]', or save it as "
            ".csv."
        ) from None
    try:
        book = fastexcel.read_excel(str(path))
        header = book.load_sheet(0, header_row=None, n_rows=1, dtypes="string").to_polars()
        names = [cell for row in header.rows() for cell in row if cell is not None]
        _check_header(names, path)
        frame = book.load_sheet(0, dtypes="string").to_polars()
        exact = book.load_sheet(0, dtypes="float").to_polars()
    except fastexcel.FastExcelError as error:
        raise ValueError(
            f"{path} cannot be read ({_first_line(error)}): save it again as .xlsx or .csv."
        ) from None
    frame, percents = with_faults(_with_digits(frame, exact), path)
    return Sheet(_tidy(frame), str(path), ";", True, percents=frozenset(map(_bare, percents)))


def _with_digits(frame: pl.DataFrame, exact: pl.DataFrame) -> pl.DataFrame:
    """Cells with the 15 digits that a spreadsheet has; as text they come with nine decimals, so
    that 2.5e-10 is 0."""

    def mended(text: pl.Series) -> pl.Series:
        x = exact[text.name]
        lost = (text.cast(pl.Float64, strict=False) != x).fill_null(False)
        return text.zip_with(~lost, x.map_elements("{:.15g}".format, pl.String))

    return frame.with_columns(map(mended, frame.iter_columns()))


def _decoded(data: bytes) -> str:
    """Text as spreadsheets write it: UTF-8 with or without a mark, UTF-16, or that of Windows."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return data.decode("utf-16")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("cp1252")


def _separator(header: str) -> str:
    """Of the columns: what stands most often outside quotes in the header."""
    bare = re.sub(r'"[^"]*"', "", header)
    return max((",", ";", "\t"), key=bare.count)


def _cells(header: str, separator: str) -> list[str]:
    cells = re.findall(rf'"(?:[^"]|"")*"|[^{separator}\r\n]+', header)
    return [cell.strip().strip('"') for cell in cells]


def _check_header(names: list[str], path: Path) -> None:
    names = [name.strip() for name in names if name.strip()]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"{path} has more than one column {listed(twice)}: rename one of them.")


def _tidy(frame: pl.DataFrame) -> pl.DataFrame:
    """Cells without blanks around them, formulas as they were before we made them harmless."""
    text = pl.col(pl.String).str.strip_chars()
    frame = frame.with_columns(text.str.replace(r"^'([=+\-@])", "$1"))
    empty = pl.col(pl.String)
    frame = frame.with_columns(pl.when(empty.str.len_bytes() > 0).then(empty))
    frame = frame.rename({name: _bare(name) for name in frame.columns})
    nameless = [
        name
        for name in frame.columns
        if (not name or name.startswith(NAMELESS)) and frame[name].null_count() == len(frame)
    ]
    frame = frame.drop(nameless)
    return frame.filter(~pl.all_horizontal(pl.all().is_null())) if frame.width else frame


def _bare(name: str) -> str:
    return re.sub(r"^'([=+\-@])", r"\1", name.strip())


def check_kind(path: Path, rows: int = 0) -> None:
    """An error where a file of this kind cannot be written here, or not with so many rows."""
    if path.suffix.lower() != ".xlsx":
        return
    try:
        import xlsxwriter  # noqa: F401
    except ImportError:
        raise ImportError(
            "To write .xlsx install XlsxWriter: pip install 'sketchridge[excel]', or give a name "
            "that ends in .csv."
        ) from None
    if rows >= _WORKBOOK:
        raise ValueError(
            f"A workbook holds {_WORKBOOK - 1:,} rows below its header, and here are {rows:,}: "
            "give a name that ends in .csv or .parquet."
        )


def write_sheet(
    frame: pl.DataFrame,
    path: Path,
    *,
    separator: str = ",",
    decimal: str = ".",
    force: bool = False,
) -> None:
    """Write a table, whole or not at all; text that a spreadsheet would obey is made harmless."""
    check_kind(path, len(frame))
    suffix = path.suffix.lower()
    if suffix == ".parquet":
        put(path, lambda file: frame.write_parquet(file), force)
        return
    frame = harmless(frame)
    if suffix == ".xlsx":
        put(path, lambda file: _write_workbook(frame, file), force)
        return
    comma = decimal == ","
    if suffix == ".tsv":
        separator = "\t"
    elif comma or separator == "\t":
        separator = ";" if comma else ","
    marks: dict[str, Any] = {"separator": separator, "decimal_comma": comma}
    marks["include_bom"] = not _is_ascii(frame)  # without it a spreadsheet on Windows shows Âµ
    put(path, lambda file: frame.write_csv(file, **marks), force)


def _is_ascii(frame: pl.DataFrame) -> bool:
    texts = frame.select(pl.col(pl.String)).iter_columns()
    alike = all((text.str.len_bytes() == text.str.len_chars()).all() for text in texts)
    return alike and "".join(frame.columns).isascii()


def harmless(frame: pl.DataFrame) -> pl.DataFrame:
    """Text that begins like a formula gets an apostrophe, which `read_sheet` takes away again."""
    moments = pl.selectors.temporal()
    frame = frame.with_columns(moments.cast(pl.String))
    text = pl.col(pl.String)
    risky = text.str.contains(_FORMULA) & ~text.str.contains(_NUMBER)
    frame = frame.with_columns(pl.when(risky).then("'" + text).otherwise(text).name.keep())
    return frame.rename({n: f"'{n}" if re.match(_FORMULA, n) else n for n in frame.columns})


def _write_workbook(frame: pl.DataFrame, file: Any) -> None:
    """Ids and other text as text, so that a spreadsheet keeps 007."""
    import xlsxwriter

    plain = {"strings_to_formulas": False, "strings_to_urls": False, "strings_to_numbers": False}
    with xlsxwriter.Workbook(file, {**plain, "nan_inf_to_errors": True}) as book:
        page = book.add_worksheet("points")
        page.freeze_panes(1, 0)
        page.write_row(0, 0, frame.columns, book.add_format({"bold": True}))
        for number, row in enumerate(frame.iter_rows(), start=1):
            page.write_row(number, 0, ["" if cell is None else cell for cell in row])
        page.autofit()


def _first_line(error: Exception) -> str:
    lines = str(error).splitlines() or [type(error).__name__]
    return shown(lines[0]).strip("'\"")
