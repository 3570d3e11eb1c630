"""The commands and how they fail: with a sentence, and without a trace of Python."""

from __future__ import annotations

import os
import warnings
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text
from typer.core import TyperGroup

from sketchridge.cli import campaign, table
from sketchridge.cli.reproduce import reproduce
from sketchridge.cli.say import visible
from sketchridge.cli.serve import serve
from sketchridge.notices import TRACE, complaint
from sketchridge.progress import written_out

__all__ = ["app"]

_IN_PYTHON = 'a lower confidence_level, or method="gaussian".'  # which no command takes


class _Plain(TyperGroup):
    """Errors of the library are for its users: their text is shown, and the exit status is 1."""

    def invoke(self, ctx: Any) -> Any:
        try:
            with warnings.catch_warnings(), written_out():
                warnings.showwarning = _warn
                return super().invoke(ctx)
        except (typer.Exit, typer.Abort):
            raise
        except KeyboardInterrupt:
            _complain("Interrupted: what was not finished was not kept.")
            raise typer.Exit(130) from None
        except Exception as error:
            if os.environ.get(TRACE) or type(error).__module__.startswith(("click", "typer")):
                raise
            _complain(complaint(error))
            raise typer.Exit(1) from None


def _warn(message: Any, *_: Any, **__: Any) -> None:
    text = str(message).replace(_IN_PYTHON, "or a lower --confidence.")
    _aside("Note: ", "bold", text)


def _complain(sentence: str) -> None:
    from sketchridge.active.database import without_secrets

    _aside("Error: ", "bold red", without_secrets(sentence))


def _aside(lead: str, style: str, text: str) -> None:
    """What is no answer, beside the answers."""
    console = Console(stderr=True, soft_wrap=True)
    console.print(Text.assemble((lead, style), visible(text)))


app = typer.Typer(
    cls=_Plain,
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,
    help="Kernel ridge regression with error bars.",
)
for command in (table.fit, table.predict, table.inspect, table.compare, table.demo):
    app.command()(command)
campaign.app.command()(serve)
app.add_typer(campaign.app, name="campaign")
app.command()(reproduce)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version as version_of

        typer.echo(f"sketchridge {version_of('sketchridge')}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="The version.")
    ] = False,
) -> None:
    """Kernel ridge regression with error bars, for data too large for an n×n matrix."""
