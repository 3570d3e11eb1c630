"""Build the wheel, install it into a bare environment with [cli], and run what people run first.

python3 tools/wheel.py [FOLDER]

FOLDER, a temporary one unless given, gets the wheel and the environment. Nothing of the working
tree can be imported from there: what is missing in the wheel is found. It prints how long each
step took, and ends with status 1 at the first that fails.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
TARGET = 20.0  # seconds of an installation that is aimed at; 31 s with [cli] on two cores
QUICK = 0.4  # seconds of help


def main() -> None:
    if len(sys.argv) > 1:
        check(Path(sys.argv[1]).resolve())
        return
    with tempfile.TemporaryDirectory() as folder:
        check(Path(folder))


def check(folder: Path) -> None:
    """All steps, in a folder."""
    python = environment(folder / "environment")
    built, took = timed(build, folder)
    print(f"{built.name}: {built.stat().st_size / 1e3:.0f} kB, built in {took}")
    _, took = timed(run, folder, python, "-m", "pip", *QUIET, "install", f"{built}[cli]")
    print(f"installed with [cli] in {took} (aim: {TARGET:.0f} s)")
    size = sum(path.stat().st_size for path in python.parents[1].rglob("*") if path.is_file())
    print(f"the environment has {size / 1e6:.0f} MB")
    command = python.with_name("sketchridge.exe" if sys.platform == "win32" else "sketchridge")
    run(folder, command, "--version")
    for words in (["--help"], ["fit", "--help"], ["predict", "--help"], ["campaign", "--help"]):
        run(folder, command, *words)  # once for the compiled files
        best = min(timed(run, folder, command, *words)[1] for _ in range(5))
        print(f"sketchridge {' '.join(words)}: {best} (to be below {QUICK} s)")
    said, took = timed(run, folder, command, "demo")
    print(f"sketchridge demo: {took}\n{said}")


QUIET = ("--disable-pip-version-check", "--quiet")


def build(folder: Path) -> Path:
    """The wheel of the working tree."""
    options = ("wheel", "--no-deps", "--wheel-dir", folder / "wheel", ROOT)
    run(folder, sys.executable, "-m", "pip", *QUIET, *options)
    return next((folder / "wheel").glob("sketchridge-*.whl"))


def environment(folder: Path) -> Path:
    """The Python of a new environment with nothing but pip."""
    venv.EnvBuilder(clear=True, symlinks=sys.platform != "win32", with_pip=True).create(folder)
    windows = sys.platform == "win32"
    return folder / ("Scripts" if windows else "bin") / ("python.exe" if windows else "python")


def run(folder: Path, *command: object) -> str:
    """What a command says, run in a folder; this script ends where it fails."""
    words = [str(word) for word in command]
    plain = {"capture_output": True, "text": True, "encoding": "utf-8", "errors": "replace"}
    done = subprocess.run(words, cwd=folder, check=False, **plain)
    if done.returncode:
        sys.exit(f"{' '.join(words)} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def timed(work, *arguments):
    """What some work gives, and how long it took: by the clock, and of processors."""
    start, used = time.perf_counter(), processor()
    found = work(*arguments)
    return found, Took(time.perf_counter() - start, processor() - used)


class Took(NamedTuple):
    """Seconds; on a busy machine those of processors say more."""

    clock: float
    cpu: float

    def __str__(self) -> str:
        return f"{self.clock:.2f} s ({self.cpu:.2f} s of processors)"


def processor() -> float:
    """Seconds that processes which this script has run have computed."""
    times = os.times()
    return times.children_user + times.children_system


if __name__ == "__main__":
    main()
