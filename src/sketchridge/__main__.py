"""`python -m sketchridge`: the command `sketchridge`."""

from __future__ import annotations

from sketchridge.cli import main

__all__: list[str] = []

if __name__ == "__main__":
    main()
