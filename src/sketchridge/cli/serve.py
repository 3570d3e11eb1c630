"""A campaign as a page in a browser, from the terminal."""

from __future__ import annotations

import html
import tempfile
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from sketchridge.cli.options import DEFAULT, By, PoolPath, Store, who
from sketchridge.cli.say import say

__all__ = ["serve"]


def serve(
    host: Annotated[
        str, typer.Option(help="Where to listen; by default this computer alone can reach it.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 is any free one.")] = 8765,
    show: Annotated[bool, typer.Option("--open", help="Open it in the browser.")] = False,
    by: By = None,
    store: Store = DEFAULT,
    pool: PoolPath = None,
) -> None:
    """Show the campaign as a page in a browser, until Ctrl-C."""
    from sketchridge.web.guard import is_loopback
    from sketchridge.web.server import serve as run

    if not is_loopback(host):
        say(
            f"the page listens at {host}. Whoever in that network has the address with its token "
            "can read and change the campaign, and what is sent is not encrypted: use it in a "
            "network that you trust.",
            lead="Warning:",
        )

    def ready(address: str) -> None:
        say(address, lead="The campaign is at")
        say("Keep this address to yourself: it is the key. Ctrl-C ends the page.")
        if show:
            webbrowser.open(_door(Path(folder), address))

    with tempfile.TemporaryDirectory() as folder:
        run(store, host=host, port=port, pool=pool, who=who(by), ready=ready)


def _door(folder: Path, address: str) -> str:
    """A page that leads to an address, readable by its owner alone: other users of the computer
    see what programs are called with."""
    page = folder / "campaign.html"
    page.touch(mode=0o600)
    page.write_text(f'<meta http-equiv="refresh" content="0;url={html.escape(address)}">')
    return page.as_uri()
