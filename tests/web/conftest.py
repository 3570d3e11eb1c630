"""The page of a campaign, with and without one."""

from __future__ import annotations

from pathlib import Path

import pytest
from webpage import PORT, Browser, start

from sketchridge.web.desk import Desk
from sketchridge.web.guard import Guard
from sketchridge.web.server import make_app


@pytest.fixture
def address(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'campaign.db'}"


@pytest.fixture
def app(address):
    """A page without a campaign yet."""
    return make_app(Desk(address), Guard("127.0.0.1", PORT), who="Ann")


@pytest.fixture
def stranger(app) -> Browser:
    return Browser(app)


@pytest.fixture
def empty(app) -> Browser:
    return Browser(app).enter()


@pytest.fixture
def page(app, address, tmp_path) -> Browser:
    """A page with a campaign."""
    start(address, tmp_path)
    return Browser(app).enter()
