"""Asking a library questions that it may refuse, and hearing everything it says meanwhile."""

from __future__ import annotations

import re
import signal
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Heard", "at_most", "is_refusal", "listening"]

SECONDS = 5.0  # for one question
CAUTION = r"trust|rounding|precision|digits|too small|too coarse|ill-conditioned|accura|reliab"


@dataclass
class Heard:
    """What a library said while it was asked: answers, refusals, and warnings that ask for care."""

    answers: dict[str, Any] = field(default_factory=dict)
    refusals: dict[str, str] = field(default_factory=dict)
    cautions: list[str] = field(default_factory=list)

    def ask(self, name: str, question: Callable[[], Any]) -> Any:
        """The answer; None where the library refuses with a sentence."""
        try:
            with listening(self.cautions), at_most(SECONDS):
                self.answers[name] = question()
        except Exception as error:
            if not is_refusal(error):
                raise
            self.refusals[name] = str(error)
        return self.answers.get(name)

    def said(self) -> str:
        return "; ".join([*self.refusals.values(), *self.cautions]) or "nothing was said"


def is_refusal(error: Exception) -> bool:
    """Whether an error is the library's own sentence; NumPy's and SciPy's have no full stop."""
    kind = type(error)
    own = kind is ValueError or kind.__name__ == "PrecisionError"
    return own and str(error).rstrip().endswith(".") and " " in str(error)


@contextmanager
def listening(cautions: list[str]) -> Iterator[None]:
    """Collect warnings that ask for care. RuntimeWarnings are nobody's words: they fail."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        yield
    leaked = [str(w.message) for w in heard if issubclass(w.category, RuntimeWarning)]
    assert not leaked, f"RuntimeWarning: {leaked[0]}"
    said = [str(w.message) for w in heard if issubclass(w.category, UserWarning)]
    cautions += [text for text in said if re.search(CAUTION, text)]


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """TimeoutError after so many seconds, where the system has alarms."""
    if not hasattr(signal, "setitimer"):
        yield
        return

    def stop(*_: object) -> None:
        raise TimeoutError(f"No answer within {seconds} s.")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
