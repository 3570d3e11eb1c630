"""How error and uncertainty have fallen, as pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from markupsafe import Markup

from sketchridge.campaign.operations import Campaign
from sketchridge.campaign.overview import Overview, overview
from sketchridge.web.svg import line_chart

__all__ = ["Curve", "curves_of"]


@dataclass(frozen=True)
class Curve:
    """A picture with its name and what it means."""

    name: str
    meaning: str
    picture: Markup


# Of a round: its heading, the name of the axis, what it means, and how a value is drawn.
_KINDS: Mapping[str, tuple[str, str, str]] = {
    "mean_score": (
        "Uncertainty",
        "√ mean score",
        "The uncertainty of the mean at points that can still be asked for, in units of the noise "
        "of one measurement: how much is left to learn.",
    ),
    "mean_sd": (
        "Uncertainty",
        "sd of the function",
        "The standard deviation that the model left to the function, without the noise of a "
        "measurement, on average over the candidates.",
    ),
    "promise": (
        "What is left to gain",
        "expected improvement",
        "By how much the most promising candidate was expected to improve on the best label.",
    ),
    "unsure": (
        "Uncertainty",
        "share on the wrong side",
        "The expected share of candidates that the model had on the wrong side of the boundary.",
    ),
    "best": ("Best so far", "best label", "The best label when points were asked for."),
}


_BY_KERNEL = (
    "The uncertainty at points that can still be asked for, on the scale of the kernel: how much "
    "is left to learn."
)


def curves_of(campaign: Campaign) -> list[Curve]:
    """Those of which there is something on record."""
    now = overview(campaign.store)
    found = [_error(now, campaign), *(_curve(now, key) for key in _KINDS)]
    return [curve for curve in found if curve is not None]


def _error(now: Overview, campaign: Campaign) -> Curve | None:
    """The leave-one-out error beside the standard deviation of the labels."""
    found = _series(now.history, "loo_error")
    if found is None:
        return None
    spread = float(np.std(campaign.store.labels()[1][:, 0]))
    drawn = line_chart(
        found[0],
        np.sqrt(found[1]).tolist(),
        y_name=f"error{_unit(now)}",
        title="Leave-one-out error against the number of labels",
        reference=(spread, "spread of the labels"),
    )
    return Curve(
        "Error",
        "The root mean square error with which the model predicts each label without having seen "
        "it. Points are chosen where it is hard, so the error on an even sample is usually "
        "smaller.",
        drawn,
    )


def _curve(now: Overview, key: str) -> Curve | None:
    """What was measured of each round."""
    found = _series(now.history, key)
    if found is None:
        return None
    name, axis, meaning = _KINDS[key]
    values = np.sqrt(found[1]).tolist() if key == "mean_score" else found[1]
    units = _unit(now) if key in ("promise", "best", "mean_sd") else ""
    if key == "mean_score" and now.settings["score"] == "gp":
        meaning = _BY_KERNEL
    title = f"{name} against the number of labels"
    return Curve(name, meaning, line_chart(found[0], values, y_name=f"{axis}{units}", title=title))


def _unit(now: Overview) -> str:
    return f" [{now.unit}]" if now.unit else ""


def _series(
    history: Sequence[Mapping[str, Any]], key: str
) -> tuple[list[float], list[float]] | None:
    rows = [(float(row["labels"]), float(row[key])) for row in history if key in row]
    return ([x for x, _ in rows], [y for _, y in rows]) if rows else None
