"""A model of a table from the terminal: fit, predict, inspect, compare, demo.

Each command reads its options, calls `sketchridge.tables` and prints; what is heavy is imported by
the command, so that help answers at once.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sketchridge.cli.options import FILE, Category, Confidence, Force, Output
from sketchridge.cli.say import console, percent, say, say_json
from sketchridge.words import counted

if TYPE_CHECKING:
    from sketchridge.tables.work import Opened

__all__ = ["compare", "demo", "fit", "inspect", "predict"]

TablePath = Annotated[Path, typer.Argument(help=f"{FILE}.", metavar="TABLE")]
ModelPath = Annotated[Path, typer.Argument(help="A .skops file of `fit`.", metavar="MODEL")]
Target = Annotated[str, typer.Option(help="The column to predict.")]
Ignore = Annotated[list[str] | None, typer.Option(help="A column that is not used; repeatable.")]
DateFormat = Annotated[
    str | None, typer.Option(help="How dates are written, such as %d/%m/%Y, where it is unclear.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of sentences.")]
Seed = Annotated[int, typer.Option(help="Seed of every draw.")]
_TOP = 6  # columns that are named


def fit(
    table: TablePath,
    target: Target,
    output: Annotated[Path, typer.Option("-o", "--output", help="A .skops file.")] = Path(
        "model.skops"
    ),
    category: Category = None,
    ignore: Ignore = None,
    max_categories: Annotated[
        int, typer.Option(min=2, help="Values of a text column that count; rarer ones are one.")
    ] = 20,
    date_format: DateFormat = None,
    kernel: Annotated[str, typer.Option(help="A kernel by name, or auto to learn it.")] = "auto",
    noise: Annotated[str, typer.Option(help="constant, or varying with x.")] = "constant",
    exact: Annotated[
        bool, typer.Option("--exact", help="The n×n matrix, for up to some 10,000 rows.")
    ] = False,
    fast: Annotated[
        bool, typer.Option("--fast", help="The sketched mean: quicker, less accurate.")
    ] = False,
    seed: Seed = 0,
    force: Force = False,
    json: Json = False,
) -> None:
    """Fit a model of one column of a table by the others, and save it."""
    from sketchridge.writing import check_output

    check_output(output, force, suffixes=(".skops",), never=[table])
    from sketchridge.tables.work import fit_table, summary

    opened = fit_table(
        table,
        target,
        output,
        estimator=_estimator(kernel, noise, exact, fast, seed),
        category=category or [],
        ignore=ignore or [],
        max_categories=max_categories,
        date_format=date_format,
        force=force,
    )
    found = summary(opened)
    if json:
        say_json({**found, "model": str(output)})
        return
    _introduce(found)
    say(f"The model is in {output}.")
    say(f"Next: sketchridge inspect {output}, or sketchridge predict {output} NEW_TABLE -o out.csv")


def _estimator(kernel: str, noise: str, exact: bool, fast: bool, seed: int) -> Any:
    from sketchridge.estimator import SketchedKernelRidge
    from sketchridge.exact_estimator import ExactKernelRidge

    if exact and fast:
        raise ValueError("--exact and --fast contradict each other: give one of them.")
    if exact:
        return ExactKernelRidge(kernel, noise=noise)
    solver = "sketch" if fast else "auto"
    return SketchedKernelRidge(kernel, noise=noise, solver=solver, random_state=seed)


def _introduce(found: dict[str, Any]) -> None:
    """What a model is, in a few sentences."""
    kinds: dict[str, list[str]] = {}
    for name, kind in found["columns"].items():
        kinds.setdefault(kind, []).append(name)
    plural = {"number": "Numbers", "category": "Categories", "date": "Dates"}
    rows = found["rows"]
    took = "" if found["seconds"] is None else f" in {found['seconds']:.1f} s"
    if rows is not None:
        used = counted(len(found["columns"]), "column")
        say(f"Fitted to {counted(rows, 'row')} and {used}{took}.", lead=f"{found['target']}:")
    for kind, names in kinds.items():
        rare = {n: f"{n} (rare values as one)" for n in found["with_rare_values"]}
        say(f"{plural[kind]}: {', '.join(rare.get(n, n) for n in names)}.")
    if found["left_out"]:
        say(f"Not used: {', '.join(found['left_out'])}.")
    r2 = "" if found["loo_r2"] is None else f" (R² {found['loo_r2']:.4f})"
    say(
        f"A row that is left out is predicted to within {found['loo_rmse']:.4g} (root mean "
        f"square); {found['target']} itself varies by {found['target_std']:.4g}{r2}."
    )
    say(f"95% intervals are typically ±{found['median_half_width_95']:.4g}.")
    top = list(found["influence"].items())[:_TOP]
    say(
        "What matters (how far predictions move when a column is shuffled): "
        f"{', '.join(f'{name} {change:.3g}' for name, change in top)}."
    )


def predict(
    model: ModelPath,
    table: TablePath,
    output: Output = Path("predictions.csv"),
    confidence: Confidence = 0.95,
    force: Force = False,
    json: Json = False,
) -> None:
    """Write a table with a mean, a low and a high for each row: intervals for new observations."""
    from sketchridge.checks import check_interval
    from sketchridge.sheets.files import SUFFIXES
    from sketchridge.tables.work import opened, predict_table
    from sketchridge.writing import check_output

    check_interval(confidence, "loo", "both")
    check_output(output, force, suffixes=SUFFIXES, never=[model, table])
    given = opened(model)
    found = predict_table(given, table, confidence)
    found.write(output, force=force)
    if json:
        names = ("known", "seen", "rmse", "coverage", "score")
        known = {name: getattr(found, name) for name in names}
        rows = {"output": str(output), "rows": len(found.frame), "confidence": confidence}
        say_json({**rows, "columns": found.columns, **known})
        return
    say(
        f"{counted(len(found.frame), 'prediction')} with {percent(confidence)} intervals are in "
        f"{output}: the columns {', '.join(found.columns)}."
    )
    if found.coverage is not None:
        say(
            f"{given.model.target_name_} is known in {counted(found.known, 'row')} that the model "
            f"was not fitted to: predictions are off by {found.rmse:.4g} (root mean square), and "
            f"{found.coverage:.1%} of the intervals hold it."
        )
    if found.seen:
        say(
            f"{counted(found.seen, 'row')} the model was fitted to: they test nothing. How well it "
            "predicts rows that are left out is told by `sketchridge inspect`."
        )


def inspect(
    model: ModelPath,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="An .html file; the model's name unless given."),
    ] = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Write one HTML page about a model: accuracy, relevance, effects, calibration, settings."""
    from sketchridge.writing import check_output, write_text

    output = model.with_suffix(".html") if output is None else output
    check_output(output, force, suffixes=(".html",), never=[model])
    from sketchridge.tables.page import model_page
    from sketchridge.tables.work import opened, summary

    given = opened(model)
    found = summary(given)
    write_text(model_page(given), output, force=force)
    if json:
        say_json({**found, "page": str(output)})
        return
    _introduce(found)
    _tell_fit(found)
    say(f"The page is in {output}.")


def _tell_fit(found: dict[str, Any]) -> None:
    say(
        f"Kernel {found['kernel']}, λ = {found['lambda']:.3g} (α = {found['alpha']:.3g}), "
        f"{found['effective_dof']:,.0f} degrees of freedom, noise ±{found['noise_std']:.4g}."
    )
    if "gap" in found:
        say(f"A sketch of {found['sketch_size']:,} rows with the gap {found['gap']:.4g}.")


def compare(
    table: TablePath,
    target: Target,
    folds: Annotated[int, typer.Option(help="Of the cross-validation.")] = 5,
    rows: Annotated[int, typer.Option(help="Rows at most, drawn at random; 0 for all.")] = 5000,
    category: Category = None,
    ignore: Ignore = None,
    date_format: DateFormat = None,
    confidence: Confidence = 0.95,
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Compare with scikit-learn's boosting and Gaussian process on your table, by folds."""
    from dataclasses import asdict

    from sketchridge.checks import check_interval
    from sketchridge.progress import status
    from sketchridge.tables.work import compare_table

    check_interval(confidence, "loo", "both")
    with status("Comparing", after=0.5) as tell:
        n, found = compare_table(
            table,
            target,
            folds=folds,
            rows=rows,
            category=category or [],
            ignore=ignore or [],
            date_format=date_format,
            confidence=confidence,
            seed=seed,
            say=tell,
        )
    if json:
        models = [asdict(each) for each in found]
        say_json({"rows": n, "folds": folds, "confidence": confidence, "models": models})
        return
    say(f"{target} in {counted(n, 'row')}, {folds} folds, {percent(confidence)} intervals.")
    console.print(_comparison(found))
    best = min(found, key=lambda each: each.rmse)
    say(f"The least error on these folds: {best.model}.")


def _comparison(found: list[Any]) -> Any:
    from rich.table import Table

    made = Table(box=None, header_style="dim")
    made.add_column("model", no_wrap=True)
    for name in ("RMSE", "± s.e.", "coverage", "interval score", "s per fold"):
        made.add_column(name, justify="right")
    made.add_column("fitted to")
    for each in found:
        made.add_row(
            each.model,
            f"{each.rmse:.4g}",
            f"{each.rmse_error:.2g}",
            f"{each.coverage:.1%}",
            f"{each.interval_score:.4g}",
            f"{each.seconds:.2f}",
            each.note,
        )
    return made


def demo(
    folder: Annotated[Path, typer.Argument(help="Where its files go.")] = Path("sketchridge-demo"),
    force: Force = False,
    json: Json = False,
) -> None:
    """Make a table of houses with text, dates and gaps; fit, predict and inspect it."""
    from sketchridge.tables.demo import write_demo
    from sketchridge.tables.page import model_page
    from sketchridge.tables.work import fit_table, predict_table, summary
    from sketchridge.writing import check_output, write_text

    names = ("houses.csv", "new_houses.csv", "model.skops", "predictions.csv", "model.html")
    paths = [folder / name for name in names]
    folder.mkdir(parents=True, exist_ok=True)
    for path in paths:
        check_output(path, force, suffixes=(path.suffix,), never=())
    known, new, model, predictions, html = paths
    write_demo(folder, force=force)
    given: Opened = fit_table(known, "price", model, force=force)
    found = predict_table(given, new)
    found.write(predictions, force=force)
    write_text(model_page(given), html, force=force)
    if json:
        say_json({**summary(given), "files": [str(path) for path in paths]})
        return
    _introduce(summary(given))
    say(f"95% intervals hold the price of {found.coverage:.1%} of {found.known} new houses.")
    say(f"Made in {folder}: {', '.join(names)}. The same by hand:")
    say(f"  sketchridge fit {known} --target price -o {model}")
    say(f"  sketchridge predict {model} {new} -o {predictions}")
    say(f"  sketchridge inspect {model}")
