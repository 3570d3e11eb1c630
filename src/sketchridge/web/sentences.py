"""Errors as sentences for someone who looks at a page, not at a terminal."""

from __future__ import annotations

import re
import tempfile

from sketchridge.active.database import without_secrets
from sketchridge.notices import complaint

__all__ = ["for_a_page", "in_its_words"]

_WORDS = [  # what the terminal says, and what there is on the page instead
    (r"say so with --yes", "tick “Keep values outside the range” and save again"),
    (
        r"`sketchridge campaign fail` is for what cannot be measured",
        "“Cannot be measured” on a point's own page is for what cannot",
    ),
    (r"or give --category (.+?) or --ignore \1(?=[.;])", r"or leave the column \1 out"),
    (r"choose one with --id", "choose one as the column with their names"),
    (r"start the campaign anew with --id .+?\.", "choose it when a campaign is started."),
    (
        r"Give --target (.+?) if it is the same, and --ignore \1 if it is not\.",
        r"Choose \1 as the column that is measured if it is the same, or leave it out.",
    ),
    (
        r"give --unit (.+?), or convert the values; if it is not the same, --ignore (.+?)\.$",
        r"give the unit \1, or convert the values; if it is not the same, leave \2 out.",
    ),
    (r"give another one as --id", "choose another column of names"),
    (r": say where it is with --pool", ": start the page with --pool and its place"),
    (
        r"Give more rows, a lower confidence_level, or method=\"gaussian\"\.",
        "With more labels that passes.",
    ),
]


def for_a_page(error: BaseException) -> str:
    """What went wrong and what to do, without the words of the terminal, folders of uploaded files
    and passwords.

    >>> for_a_page(ValueError("If they are right, say so with --yes; nothing was changed."))
    'If they are right, tick “Keep values outside the range” and save again; nothing was changed.'
    """
    text = without_secrets(complaint(error))
    return in_its_words(text)


def in_its_words(text: str) -> str:
    """A sentence with the page's own words."""
    text = re.sub(re.escape(tempfile.gettempdir()) + r"/sketchridge-[^/\s]+/", "", text)
    for pattern, words in _WORDS:
        text = re.sub(pattern, words, text)
    return text
