"""Commands whose words may be numbers below zero, which are no options."""

from __future__ import annotations

import re
from collections.abc import Container
from typing import Any

from typer.core import TyperCommand

__all__ = ["Negatives"]

_NEGATIVE = re.compile(r"-[.,]?\d")


class Negatives(TyperCommand):
    """A command that takes -5 for a word; what else begins with a hyphen must be an option."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        takes = {
            name: not getattr(option, "is_flag", False)
            for option in self.get_params(ctx)
            for name in (*option.opts, *option.secondary_opts)
        }
        words = iter(args)
        for word in words:
            if word == "--":
                break
            name, equals, _ = word.partition("=")
            if takes.get(name, False) and not equals:
                next(words, None)  # whatever it is, it is the option's value
            elif _is_unknown(word, name, takes):
                ctx.fail(f"No such option: {name}")
        ctx.ignore_unknown_options = True
        return super().parse_args(ctx, args)


def _is_unknown(word: str, name: str, known: Container[str]) -> bool:
    """Whether a word looks like an option and is none."""
    if word[:1] != "-" or word == "-" or _NEGATIVE.match(word):
        return False
    return name not in known and (word[:2] == "--" or word[:2] not in known)
