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
    from sketchridge.campaign.operations import Campaign

__all__ = ["campaign_page"]

_SHOWN = 5000  # points of the pool in the map
_BEST = 10  # labels in the tables of the largest and the smallest
_SETTINGS = ("goal", "acquisition", "score", "first", "batch_size", "estimator")


def campaign_page(campaign: Campaign) -> str:
    """One HTML document."""
    learner = campaign.learner
    history = [row for row in learner.history_ if "loo_error" in row]
    labeled, pending, failed = learner.labeled_ids_, learner.pending_ids_, learner.failed_ids_
    y = learner.labels_[:, 0]
    pool = learner.pool_
    unit = campaign.encoding.behind
    target = campaign.encoding.target
    predicted = left_out(learner.estimator_)
    error = float(np.sqrt(np.mean((predicted - y) ** 2)))
    lead = (
        f"{len(labeled):,} labels of {target!r}, {len(pending)} points pending and {len(failed)} "
        f"failed, of {len(pool):,} candidates. A label is predicted by a model without it with an "
        f"error of {error:.4g}{unit} (root mean square); the labels' own spread is "
        f"{y.std():.4g}{unit}. {campaign.gain()}"
    )
    scores = learner.scores()[learner.open_ids_]
    sample = pool[np.unique(np.linspace(0, len(pool) - 1, _SHOWN).astype(int))]
    sections = [
        Section(
            "Observed and predicted",
            "Each label against what a model that has not seen it predicts. Points far from the "
            "line are surprising, or wrong: look at them first.",
            [
                drawn(
                    lambda ax: plot_left_out(y, predicted, campaign.encoding.heading, ax=ax),
                    (5.4, 5.0),
                    "labels against leave-one-out predictions",
                )
            ],
        ),
        Section(
            "Best so far",
            "The largest and the smallest labels. " + _purpose(campaign),
            [table(_extremes(campaign, labeled, y, predicted))],
        ),
        Section(
            "Error as labels arrive",
            "The root mean square of leave-one-out errors of the model by which points are chosen. "
            "They were chosen because they are hard, so this error is above that on an even sample "
            "of the pool.",
            [
                drawn(
                    lambda ax: plot_error_curve(history, ax=ax),
                    (7, 3.8),
                    "leave-one-out error against the number of labels",
                )
            ],
        ),
        Section(
            "What is left to learn",
            "The scores of the points that can still be asked for. A long tail to the right means "
            "that some regions are unknown.",
            [drawn(lambda ax: plot_scores(scores, ax=ax), (7, 3.8), "histogram of the scores")],
        ),
        Section(
            "Where the points lie",
            "The pool along its two main directions.",
            [
                drawn(
                    lambda ax: plot_pool(sample, pool[labeled], pool[pending], ax=ax),
                    (7, 5.2),
                    "labeled and pending points in the pool",
                )
            ],
        ),
        Section("Rounds", "", [table(_rounds(history))]),
        *_corrections(campaign),
        Section("Settings", "", [table(_settings(campaign))]),
    ]
    footer = f"Made by sketchridge {version('sketchridge')}."
    return page(f"Campaign: {target}", lead, sections, footer=footer)


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
