"""The page about a campaign."""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np

from sketchridge.campaign.predictions import left_out
from sketchridge.model_plots import plot_left_out
from sketchridge.plotting import plot_error_curve, plot_pool, plot_scores
from sketchridge.reporting import Section, drawn, page, table

if TYPE_CHECKING:
    from sketchridge.active import ActiveLearner
    from sketchridge.campaign.operations import Campaign

__all__ = ["campaign_page"]

Array = np.ndarray
_SHOWN = 5000  # points of the pool in the map
_BEST = 10  # labels in the tables of the largest and the smallest
_SETTINGS = ("goal", "acquisition", "score", "first", "batch_size", "estimator")


def campaign_page(campaign: Campaign) -> str:
    """One HTML document."""
    learner = campaign.learner
    history = [row for row in learner.history_ if "loo_error" in row]
    y = learner.labels_[:, 0]
    predicted = left_out(learner.estimator_)
    sections = [
        _agreement(campaign, y, predicted),
        Section(
            "Best so far",
            "The largest and the smallest labels. " + _purpose(campaign),
            [table(_extremes(campaign, learner.labeled_ids_, y, predicted))],
        ),
        _errors(history),
        _scores(learner),
        _places(learner),
        Section("Rounds", "", [table(_rounds(history))]),
        *_corrections(campaign),
        Section("Settings", "", [table(_settings(campaign))]),
    ]
    lead = _lead(campaign, y, predicted)
    footer = f"Made by sketchridge {version('sketchridge')}."
    return page(f"Campaign: {campaign.encoding.target}", lead, sections, footer=footer)


def _lead(campaign: Campaign, y: Array, predicted: Array) -> str:
    learner, unit = campaign.learner, campaign.encoding.behind
    error = float(np.sqrt(np.mean((predicted - y) ** 2)))
    return (
        f"{len(y):,} labels of {campaign.encoding.target!r}, {len(learner.pending_ids_)} points "
        f"pending and {len(learner.failed_ids_)} failed, of {len(learner.pool_):,} candidates. A "
        f"label is predicted by a model without it with an error of {error:.4g}{unit} (root mean "
        f"square); the labels' own spread is {y.std():.4g}{unit}. {campaign.gain()}"
    )


def _agreement(campaign: Campaign, y: Array, predicted: Array) -> Section:
    heading = campaign.encoding.heading
    picture = drawn(
        lambda ax: plot_left_out(y, predicted, heading, ax=ax),
        (5.4, 5.0),
        "labels against leave-one-out predictions",
    )
    return Section(
        "Observed and predicted",
        "Each label against what a model that has not seen it predicts. Points far from the line "
        "are surprising, or wrong: look at them first.",
        [picture],
    )


def _errors(history: list[dict[str, Any]]) -> Section:
    picture = drawn(
        lambda ax: plot_error_curve(history, ax=ax),
        (7, 3.8),
        "leave-one-out error against the number of labels",
    )
    return Section(
        "Error as labels arrive",
        "The root mean square of leave-one-out errors of the model by which points are chosen. "
        "They were chosen because they are hard, so this error is above that on an even sample of "
        "the pool.",
        [picture],
    )


def _scores(learner: ActiveLearner) -> Section:
    scores = learner.scores()[learner.open_ids_]
    picture = drawn(lambda ax: plot_scores(scores, ax=ax), (7, 3.8), "histogram of the scores")
    return Section(
        "What is left to learn",
        "The scores of the points that can still be asked for. A long tail to the right means that "
        "some regions are unknown.",
        [picture],
    )


def _places(learner: ActiveLearner) -> Section:
    pool = learner.pool_
    sample = pool[np.unique(np.linspace(0, len(pool) - 1, _SHOWN).astype(int))]
    labeled, pending = pool[learner.labeled_ids_], pool[learner.pending_ids_]
    picture = drawn(
        lambda ax: plot_pool(sample, labeled, pending, ax=ax),
        (7, 5.2),
        "labeled and pending points in the pool",
    )
    title, text = "Where the points lie", "The pool along its two main directions."
    return Section(title, text, [picture])


def _purpose(campaign: Campaign) -> str:
    goal = campaign.goal
    if goal.explores:
        return "Points are chosen to learn the whole function, not to find its largest value."
    return f"Points are chosen for a goal: {goal}."


def _extremes(campaign: Campaign, rows: Any, y: Any, predicted: Any) -> list[dict[str, Any]]:
    order = np.argsort(y)
    largest = order[::-1][:_BEST]
    smallest = np.setdiff1d(order[:_BEST], largest)
    chosen = [*largest, *sorted(smallest, key=lambda i: -y[i])]
    return [
        {
            "point": campaign.candidates.name(rows[i]),
            campaign.encoding.heading: float(y[i]),
            "predicted without it": float(predicted[i]),
        }
        for i in chosen
    ]


def _rounds(history: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """With errors in units of y."""
    shown = [
        {("error (LOO)" if k == "loo_error" else k): v for k, v in row.items()} for row in history
    ]
    for row in shown:
        if "error (LOO)" in row:
            row["error (LOO)"] = float(np.sqrt(row["error (LOO)"]))
    names = list(dict.fromkeys(name for row in shown for name in row))
    return [{name: row.get(name) for name in names} for row in shown]


def _corrections(campaign: Campaign) -> list[Section]:
    name = campaign.candidates.name
    learner = campaign.learner
    changes: list[dict[str, Any]] = [
        {
            "point": name(change.id),
            "was": change.old[0],
            "is": "taken back" if change.new is None else change.new[0],
            "by": change.by,
            "when": change.at,
            "note": change.note,
        }
        for change in learner.changes_
    ]
    failures: list[dict[str, Any]] = [
        {"point": name(f.id), "by": f.by, "when": f.at, "note": f.note}
        for f in learner.failures_
        if not f.withdrawn
    ]
    made: list[tuple[str, list[dict[str, Any]]]] = [
        ("Corrected labels", changes),
        ("Points that cannot be measured", failures),
    ]
    return [Section(title, "", [table(rows)]) for title, rows in made if rows]


def _settings(campaign: Campaign) -> list[dict[str, str]]:
    settings = campaign.learner.settings_
    settings["goal"] = campaign.goal
    shown = {name: str(settings[name]) for name in _SETTINGS if name in settings}
    seed = settings["notes"].get("seed", settings["seed"])
    return [{"setting": k, "value": v} for k, v in {**shown, "seed": str(seed)}.items()]
