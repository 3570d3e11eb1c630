"""Campaigns from the terminal, in a folder of their own."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from sketchridge.cli.app import app


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "500")
    return tmp_path


@pytest.fixture
def run(home):
    """A function that runs a command, and gives what it says."""

    def run(*arguments, code=0, input=None):
        result = CliRunner().invoke(app, ["campaign", *map(str, arguments)], input=input)
        assert result.exit_code == code, result.output
        assert "Traceback" not in result.output
        return " ".join(result.output.split())

    return run
