"""The command line: `sketchridge campaign …`."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line, with errors as sentences."""
    try:
        from sketchridge.cli.app import app
    except KeyboardInterrupt:
        sys.exit(130)
    except ImportError as error:
        sys.exit(
            f"The command line needs packages that are not installed ({error}): pip install "
            "'sketchridge[cli]'."
        )
    app()
