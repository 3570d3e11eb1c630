"""The commands and how they fail: with a sentence, and without a trace of Python."""

from __future__ import annotations

from typing import Any

import typer
from rich.console import Console
from rich.text import Text
from typer.core import TyperGroup

from sketchridge.cli import campaign
from sketchridge.cli.reproduce import reproduce

__all__ = ["app"]


class _Plain(TyperGroup):
    """Errors of the library are for its users: their text is shown, and the exit status is 1."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except (ValueError, OSError, ImportError) as error:
            Console(stderr=True, soft_wrap=True).print(
                Text.assemble(("Error: ", "bold red"), str(error))
            )
            raise typer.Exit(1) from None


app = typer.Typer(
    cls=_Plain,
    no_args_is_help=True,
    add_completion=False,
    help="Kernel ridge regression with error bars.",
)
app.add_typer(campaign.app, name="campaign")
app.command()(reproduce)


@app.callback()
def _root() -> None:
    """Kernel ridge regression with error bars, for data too large for an n×n matrix."""
