"""The documentation is built without a warning, and holds what it should."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("sphinx_gallery")

DOCS = Path(__file__).parents[1] / "docs"
SCRIPTS = sorted((DOCS.parent / "examples" / "gallery").glob("plot_*.py"))


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site as `make docs` builds it, gallery and all, in a folder of its own."""
    folder = tmp_path_factory.mktemp("site")
    options = ["-b", "html", "-W", "--keep-going", "-q", "-d", folder / "trees"]
    command = [sys.executable, "-m", "sphinx", *options, DOCS, folder / "html"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "html"


def test_every_page_is_there_and_can_be_reached(site):
    made = {p.relative_to(site) for p in site.rglob("*.html")}
    pages = {page for page in made if page.parts[0] != "_static"}
    linked = set()
    for page in pages:
        found = re.findall(r'href="([^"#?]+\.html)', (site / page).read_text())
        targets = [site / page.parent / target for target in found if "://" not in target]
        linked |= {target.resolve().relative_to(site.resolve()) for target in targets}
    assert linked - pages == set()
    assert pages - linked <= {Path("search.html")}


def test_every_script_of_the_gallery_made_a_picture(site):
    for script in SCRIPTS:
        page = (site / "gallery" / f"{script.stem}.html").read_text()
        assert f"sphx_glr_{script.stem}_001.png" in page


def test_the_reference_lists_attributes_with_their_meaning(site):
    page = (site / "reference" / "sketched-kernel-ridge.html").read_text()
    assert "the penalty λ = α/Σw" in page
    assert "sketchridge.SketchedKernelRidge.predict_interval" in page
