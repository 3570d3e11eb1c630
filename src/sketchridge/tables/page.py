"""The page about a model of a table: how well it predicts, what matters, whether intervals hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import Any

from sketchridge.calibration import calibrate_left_out
from sketchridge.encoder import PLURAL
from sketchridge.model_plots import (
    plot_effect,
    plot_errors,
    plot_influence,
    plot_left_out,
    plot_path,
)
from sketchridge.plotting import new_figure, plot_calibration, plot_relevance
from sketchridge.progress import status
from sketchridge.reporting import Section, drawn, page, picture, table
from sketchridge.tables.work import Opened, summary
from sketchridge.words import first_few

__all__ = ["model_page"]

_EFFECTS = 6  # columns whose effect is drawn
_STEPS = 12  # rows of the table of kernels that were tried


def model_page(given: Opened) -> str:
    """One HTML document that needs nothing else."""
    found = summary(given)
    with status("Drawing") as say:
        sections = [
            _accuracy(given, found, say),
            _relevance(given, say),
            _effects(given, say),
            _calibration(given, say),
            _penalty(given, say),
            _sketch(given),
            _columns(given),
            _settings(given, found),
        ]
    rows = found["rows"] or len(given.model.regressor_.fitted_.data.rows.Y_given)
    lead = (
        f"{rows:,} rows with {len(found['columns'])} columns that are used. A row is predicted by "
        f"a model without it with an error of {found['loo_rmse']:.4g} (root mean square), where "
        f"{found['target']!s} itself has a standard deviation of {found['target_std']:.4g}. "
        f"Half of all 95% intervals are narrower than ±{found['median_half_width_95']:.4g}."
    )
    footer = f"Made by sketchridge {version('sketchridge')}."
    kept = [section for section in sections if section is not None]
    return page(f"Model of {found['target']}", lead, kept, footer=footer)


def _accuracy(given: Opened, found: dict[str, Any], say: Callable[[str], None]) -> Section:
    say("Drawing: predictions")
    fitted = given.model.regressor_.fitted_
    rows = fitted.data.rows
    y = rows.Y_given[:, 0]
    predicted = (rows.Y - fitted.loo_errors)[rows.group, 0]
    target = str(found["target"])
    r2 = found["loo_r2"]
    digits = 6 if (r2 or 0) > 0.999 else 4
    share = "" if r2 is None else f" Predictions explain {100 * r2:.{digits}g}% of the variance."
    size = (4.4, 3.8)
    pictures = [
        drawn(
            lambda ax: plot_left_out(y, predicted, target, ax=ax),
            size,
            f"{target} against leave-one-out predictions",
        ),
        drawn(
            lambda ax: plot_errors(y, predicted, target, ax=ax),
            size,
            "leave-one-out errors against predictions",
        ),
    ]
    return Section(
        "How well it predicts",
        "Each row against what a model that has not seen it predicts (leave-one-out). Points far "
        f"from the line are surprising, or wrong: look at them first.{share}",
        [f'<div class="grid">{"".join(pictures)}</div>'],
    )


def _relevance(given: Opened, say: Callable[[str], None]) -> Section:
    say("Drawing: relevance")
    model = given.model
    height = 1.1 + 0.24 * min(len(model.encoder_.kinds_), 30)
    bars = [drawn(lambda ax: plot_influence(model, ax=ax), (5.6, height), "influence of columns")]
    if model.feature_relevance_ is not None:
        text = "relevance of columns"
        bars.append(drawn(lambda ax: plot_relevance(model, ax=ax), (5.6, height), text))
    return Section(
        "What matters",
        "First: by how much predictions change when the values of a column are shuffled among "
        "rows. Second: the share of each column in the distances between rows, as the kernel was "
        "learned; it says how quickly the model forgets a row as the column moves away from it, "
        "which is large for categories. A category counts with all its values, a date with its "
        "cycles.",
        bars,
    )


def _effects(given: Opened, say: Callable[[str], None]) -> Section:
    columns = list(given.model.influence())[:_EFFECTS]
    pieces = []
    for column in columns:
        say(f"Drawing: {column}")
        pieces.append(drawn(_effect(given, column), (3.6, 2.9), f"prediction along {column}"))
    return Section(
        "What the columns do",
        "The prediction along the columns with the most influence, the others at typical values "
        "(medians, the most frequent category). The dark band is the 95% interval for the mean, "
        "the light one that for a new observation; gray points are rows, at the curve plus their "
        "leave-one-out error, those without a value at the median. A typical row may exist "
        "nowhere: read the curves with care where columns depend on each other. Where data are "
        "plentiful or nearly free of noise, most of an interval is what is missed between rows, "
        "and the two bands differ little.",
        [f'<div class="grid">{"".join(pieces)}</div>'],
    )


def _effect(given: Opened, column: str) -> Callable[[Any], Any]:
    return lambda ax: plot_effect(given.model, column, ax=ax)


def _calibration(given: Opened, say: Callable[[str], None]) -> Section:
    say("Drawing: calibration")
    report = calibrate_left_out(given.model.regressor_)
    names = ("coverage by level", "coverage by width", "probability integral transform")
    panels = {name: new_figure(size=(3.6, 2.9)) for name in names}
    plot_calibration(report, axes=[axes[0] for _, axes in panels.values()])
    pieces = [picture(figure, name) for name, (figure, _) in panels.items()]
    rows = [
        {
            "asked for": f"{100 * level:g}%",
            "found": f"{100 * share:.1f}%",
            "median width": float(width),
            "interval score": float(score),
        }
        for level, share, width, score in zip(
            report.levels, report.coverage, report.width, report.score, strict=True
        )
    ]
    return Section(
        "Do the intervals hold?",
        "Each row is predicted without itself. Over all rows coverage is right by "
        "construction, since the intervals are made of these errors; below 2,000 rows they are "
        "wider. The second picture is the one to look at: a line that falls to the right means "
        "that wide intervals are too narrow. The third is flat where errors are distributed as "
        "predicted: high in the middle, most are smaller, with a few large ones. For data that no "
        "fit has seen, predict a table that has the target.",
        [f'<div class="grid">{"".join(pieces)}</div>', table(rows)],
    )


def _penalty(given: Opened, say: Callable[[str], None]) -> Section:
    say("Drawing: penalty")
    fit = given.model.regressor_
    return Section(
        "The penalty",
        f"Errors over the penalties that were compared. The model has λ = {fit.lambda_:.3g} "
        f"(α = {fit.alpha_:.3g}) and {fit.effective_dof_:,.0f} degrees of freedom. Above 4,096 "
        "rows the penalty is chosen on a sample, and curves are those of the sketched model.",
        [drawn(lambda ax: plot_path(fit, ax=ax), (6.4, 3.6), "error against the penalty")],
    )


def _sketch(given: Opened) -> Section | None:
    fit = given.model.regressor_
    if not hasattr(fit, "gap_"):
        return None
    verdict = (
        f"On other data with such a gap, variances of the mean were right to within "
        f"{fit.sketch_error_:.1%} at 95% of points; the certificate below is about all points, and "
        "promises less. Means and intervals depend on neither."
        if fit.gap_ <= 2
        else "It is large: standard deviations of the mean may be off by a factor of "
        f"{1 + fit.sketch_error_:.2g}; means and intervals do not depend on it."
    )
    return Section(
        "The sketch",
        f"Variances come from a sketch of {fit.sketch_size_:,} rows. The gap between two of them, "
        f"V2/V3, is {fit.gap_:.4g}. {verdict}",
        [
            table(
                [
                    {"": "sketch size", "value": f"{fit.sketch_size_:,}"},
                    {"": "gap", "value": f"{fit.gap_:.4g}"},
                    {"": "predicted error of variances", "value": f"{fit.sketch_error_:.2g}"},
                    {"": "where the mean comes from", "value": fit.solver_},
                    {"": "precision of products", "value": fit.dtype_},
                    {"": "certificate", "value": str(fit.certificate_)},
                ]
            )
        ],
    )


def _columns(given: Opened) -> Section:
    encoder = given.model.encoder_
    used: list[dict[str, Any]] = [
        {"column": name, "used as": PLURAL[kind], "features": _shown(encoder, name)}
        for name, kind in encoder.kinds_.items()
    ]
    unused: list[dict[str, Any]] = [
        {"column": name, "used as": "not used", "features": why}
        for name, why in encoder.left_out_.items()
    ]
    dropped = given.notes.get("without_target") or 0
    text = f"{dropped:,} rows had no target and were not used." if dropped else ""
    return Section("The columns", text, [table([*used, *unused])])


def _shown(encoder: Any, name: str) -> str:
    place = encoder.places_[name]
    names = encoder.get_feature_names_out()[place]
    return first_few(map(str, names), 12)


def _settings(given: Opened, found: dict[str, Any]) -> Section:
    fit = given.model.regressor_
    rows: Sequence[dict[str, Any]] = [
        {"setting": name, "value": str(value)} for name, value in fit.get_params().items()
    ]
    names = ("table", "seconds", "version")
    facts = {name: given.notes[name] for name in names if name in given.notes}
    if "fitted" in given.notes:
        facts["fitted"] = given.notes["fitted"].replace("T", " ").replace("+00:00", " UTC")
    facts |= {"kernel found": found["kernel"]}
    facts |= {"noise (standard deviation)": f"{found['noise_std']:.4g}"}
    known = [{"setting": name, "value": str(value)} for name, value in facts.items()]
    tried: list[dict[str, Any]] = [
        {
            "kernel that was tried": _name_of(step.kernel),
            "bandwidths": step.form,
            "held-out error, share of the variance": float(step.score),
        }
        for step in fit.learning_curve_[:_STEPS]
    ]
    text = (
        "The second table has the kernels that were tried. The first choice, Matérn 3/2 with a "
        "bandwidth for each column, is kept unless another is clearly better."
    )
    pieces = [table([*known, *rows]), table(tried)]
    return Section("Settings", text, pieces) if tried else Section("Settings", "", pieces[:1])


def _name_of(kernel: Any) -> str:
    return repr(kernel).partition("(")[0]
