"""Make the environment of `make demo` or `make test`, and say how much was downloaded for it.

python3 tools/install.py EXTRA FOLDER

EXTRA is one of the extras in pyproject.toml, and FOLDER the virtual environment to make or use.
"""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
OLDEST = (3, 11)
UNITS = {"bytes": 1e-6, "kB": 1e-3, "MB": 1.0, "GB": 1e3}
CPU_BUILD = "torch==2.13.0+cpu"  # an open range takes the builds with gigabytes for GPUs
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
BOTORCH = "botorch>=0.12"  # after PyTorch, which it would take with gigabytes for GPUs


def main() -> None:
    extra, folder = sys.argv[1:]
    if sys.version_info < OLDEST:
        sys.exit(
            f"sketchridge needs Python 3.11 or newer, and {sys.executable} is "
            f"{platform.python_version()}: give another one, as in "
            f"make {extra} PYTHON3=python3.12"
        )
    print(f"Installing into {folder} what `make {extra}` needs ...", flush=True)
    python = environment(Path(folder))
    output = install_pytorch(python) if extra == "test" else ""
    output += install(python, "--editable", f"{ROOT}[{extra}]")
    if extra == "test":
        install_browser(python)
    print(
        f"{count(output)} packages, {megabytes(output):.0f} MB: the sum of the files that pip "
        "took, from the network, its cache or this machine."
    )


def environment(folder: Path) -> Path:
    """The Python of the virtual environment in a folder, made anew where it is of no use."""
    scripts = "Scripts" if sys.platform == "win32" else "bin"
    python = folder / scripts / ("python.exe" if sys.platform == "win32" else "python")
    if not usable(python):
        venv.EnvBuilder(clear=True, symlinks=sys.platform != "win32", with_pip=True).create(folder)
    return python


def usable(python: Path) -> bool:
    """Whether there is an environment of this version of Python, with pip."""
    code = "import pip, sys; print(sys.version_info[:2])"
    try:
        done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return False
    return done.stdout.strip() == str(sys.version_info[:2])


def install_pytorch(python: Path) -> str:
    """PyTorch for the tests. Without a GPU that is its build for CPUs, or none; pip's output.

    On macOS and Windows the usual build is for CPUs. On Linux it brings gigabytes for GPUs, and
    the build for CPUs is not in every package index: tests that need PyTorch are then skipped.
    """
    if sys.platform != "linux" or shutil.which("nvidia-smi"):
        return install(python, "torch>=2.4", BOTORCH)
    done = pip_install(python, CPU_BUILD)
    if done.returncode:
        print(
            f"PyTorch for CPUs ({CPU_BUILD}) was not found, so tests that need PyTorch are "
            "skipped. To run them, install PyTorch into this environment and run again."
        )
        return ""
    return done.stdout + pip_install(python, BOTORCH).stdout


def install_browser(python: Path) -> None:
    """Chromium for the tests of a campaign's page, where it can be had and none is here."""
    if any(map(shutil.which, BROWSERS)):
        return
    command = [python, "-m", "playwright", "install", "chromium"]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        print(
            "Chromium was not found, so tests in a browser are skipped. To run them, install it "
            "and run again."
        )


def install(python: Path, *what: str) -> str:
    """Install with pip, and return its output; it is shown, and this script ends, on failure."""
    done = pip_install(python, *what)
    if done.returncode:
        print(done.stdout)
        sys.exit(done.returncode)
    return done.stdout


def pip_install(python: Path, *what: str) -> subprocess.CompletedProcess[str]:
    command = [python, "-m", "pip", "install", "--disable-pip-version-check", "--progress-bar=off"]
    return subprocess.run(
        [*command, *what],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )


def count(output: str) -> int:
    """The number of packages that pip says it installed, ours not counted."""
    lists = re.findall(r"^Successfully installed (.*)$", output, re.MULTILINE)
    names = [name for line in lists for name in line.split()]
    return sum(not name.startswith("sketchridge-") for name in names)


def megabytes(output: str) -> float:
    """The size of the files that pip says it took."""
    taken = re.findall(
        r"^\s*(?:Downloading|Using cached) \S+ \(([\d.]+) (bytes|kB|MB|GB)\)",
        output,
        re.MULTILINE,
    )
    local = re.findall(
        r"^Processing (.+?\.(?:whl|zip|tar\.gz))(?: \(from .*\))?$", output, re.MULTILINE
    )
    on_disk = sum(Path(name).stat().st_size for name in local if Path(name).is_file())
    return sum(float(size) * UNITS[unit] for size, unit in taken) + on_disk / 1e6


if __name__ == "__main__":
    main()
