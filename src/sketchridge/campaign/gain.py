"""What more labels would bring, in sentences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from sketchridge.active.goals import REACHED, Goal, is_reached

if TYPE_CHECKING:
    from sketchridge.active.gain import Gain
    from sketchridge.campaign.encoding import Encoding

__all__ = ["gain_sentence", "goal_sentence", "same_sentence"]

_LITTLE = 0.01  # of the mean variance: what is not worth a batch
_ALIKE = 0.1  # of a gain: differences that nobody would see
_WORDS = {"maximize": "largest", "minimize": "least", "target": "nearest"}


def gain_sentence(gain: Gain, count: int) -> str:
    """What the next points teach of the whole function, with the sketch that they would have."""
    compared = f"against {gain.even:.1%} with points drawn evenly"
    if abs(gain.ours - gain.even) < _ALIKE * max(gain.ours, gain.even):
        compared = "about as with points drawn evenly"
    if gain.size_now is None or gain.size_now == gain.size_then:
        sketch = ""
    else:
        sketch = f" (the sketch would grow from {gain.size_now} to {gain.size_then} rows)"
    little = " More labels bring little." if gain.ours < _LITTLE else ""
    return (
        f"Expected gain of the next {count} points: the pool's mean posterior variance falls by "
        f"{gain.ours:.1%}, {compared}{sketch}.{little}"
    )


def goal_sentence(goal: Goal, found: Mapping[str, float], encoding: Encoding) -> str:
    """How far a goal has been reached, and what is left to gain.

    >>> from sketchridge.campaign.encoding import Encoding
    >>> goal_sentence(Goal("boundary", 5.0), {"unsure": 0.002}, Encoding("y", None, (), ()))
    'The model has 0.2% of the candidates on the wrong side of 5, as far as it can tell. The goal \
is reached: more labels bring little.'
    """
    unit = encoding.behind
    done = " The goal is reached: more labels bring little." if is_reached(goal, found) else ""
    if "unsure" in found:
        return (
            f"The model has {found['unsure']:.1%} of the candidates on the wrong side of "
            f"{goal.value:g}{unit}, as far as it can tell.{done}"
        )
    aim = f" to {goal.value:g}{unit}" if goal.value is not None else ""
    if done:
        done = (
            f"{done} No candidate has a chance of more than {REACHED:.0%} to improve on it by 1% "
            "of the labels' spread."
        )
    return (
        f"The {_WORDS[goal.name]} label so far{aim} is {found['best']:g}{unit}. The most promising "
        f"candidate is expected to improve on it by {found['promise']:.3g}{unit}, with a chance of "
        f"{found['chance']:.0%} for 1% of the labels' spread.{done}"
    )


def same_sentence(count: int, value: float, encoding: Encoding) -> str:
    """What can be said of a best value where all labels are equal."""
    unit = encoding.behind
    return (
        f"All {count} labels are {value:g}{unit}: they show no candidate that is better than "
        "another, and whether the goal is reached cannot be said from them. Look whether they are "
        "right; if they are, add candidates of another kind, or stop."
    )
