"""The page about a campaign."""

from __future__ import annotations

from importlib.metadata import version

import numpy as np

from sketchridge.active import ActiveLearner
from sketchridge.plotting import new_figure, plot_error_curve, plot_pool, plot_scores
from sketchridge.reporting import Section, page, picture, table

__all__ = ["campaign_page"]


def campaign_page(learner: ActiveLearner, target: str, gain: str, shown: int) -> str:
    """One HTML document, with up to ``shown`` points of the pool in the map."""
    history = learner.history_
    labeled = learner.labeled_ids_
    pending = learner.pending_ids_
    pool = learner.pool_
    scores = learner.scores()[learner.open_ids_]
    errors = [np.sqrt(row["loo_error"]) for row in history]
    lead = (
        f"{len(labeled):,} labels of {target!r} and {len(pending)} points pending, of "
        f"{len(pool):,} candidates. The leave-one-out error went from {errors[0]:.4g} to "
        f"{errors[-1]:.4g}. {gain}"
    )
    sample = pool[np.unique(np.linspace(0, len(pool) - 1, shown).astype(int))]
    figures = []
    for draw, size in (
        (lambda ax: plot_error_curve(history, ax=ax), (7, 3.8)),
        (lambda ax: plot_scores(scores, ax=ax), (7, 3.8)),
        (lambda ax: plot_pool(sample, pool[labeled], pool[pending], ax=ax), (7, 5.2)),
    ):
        figure, (ax,) = new_figure(size=size)
        draw(ax)
        ax.spines[["top", "right"]].set_visible(False)
        figures.append(figure)
    names = list(dict.fromkeys(name for row in history for name in row))
    rounds = [{name: row.get(name) for name in names} for row in history]
    settings = [
        {"setting": name, "value": str(value)}
        for name, value in learner.settings_.items()
        if name in ("acquisition", "score", "batch_size", "seed", "estimator")
    ]
    sections = [
        Section(
            "Error as labels arrive",
            "Each point is predicted by a model that has not seen it. The points were chosen "
            "because they are hard, so this error is above that on an even sample of the pool.",
            [picture(figures[0], "leave-one-out error against the number of labels")],
        ),
        Section(
            "What is left to learn",
            "The scores of the points that can still be asked for. A long tail to the right means "
            "that some regions are unknown.",
            [picture(figures[1], "histogram of the scores")],
        ),
        Section(
            "Where the points lie",
            "The pool along its two main directions.",
            [picture(figures[2], "labeled and pending points in the pool")],
        ),
        Section("Rounds", "", [table(rounds)]),
        Section("Settings", "", [table(settings)]),
    ]
    return page(
        f"Campaign: {target}",
        lead,
        sections,
        footer=f"Made by sketchridge {version('sketchridge')}.",
    )
