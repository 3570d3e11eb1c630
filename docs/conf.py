"""How the documentation is built: `make docs`, and then docs/_build/html/index.html."""

from __future__ import annotations

import os
import re
import sys
import warnings
from pathlib import Path

from docutils import nodes
from numpydoc.docscrape_sphinx import SphinxDocString
from sphinx.addnodes import pending_xref
from sphinx.transforms.post_transforms import SphinxPostTransform

HERE = Path(__file__).parent
ROOT = HERE.parent
sys.path.insert(0, str(HERE))  # the extension `commands`

import sketchridge  # noqa: E402

warnings.filterwarnings("ignore", message=".*FigureCanvasAgg is non-interactive.*")
os.environ.setdefault("COLUMNS", "100")

project = "sketchridge"
author = "The sketchridge developers"
copyright = author
version = release = sketchridge.__version__

extensions = [
    "commands",
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.mathjax",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "sphinx-mathjax-offline",  # formulas need no network
]
exclude_patterns = ["_build", "paper/tables", "paper/figures", "paper/claims.md"]
suppress_warnings = [
    "myst.header",  # pages that GitHub shows too begin where they like
    "config.cache",
]
nitpicky = False

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the docstrings name types, shapes and units
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
toc_object_entries_show_parents = "hide"  # `fit` in the contents, not `SketchedKernelRidge.fit()`
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

sphinx_gallery_conf = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "gallery",
    "filename_pattern": r"plot_",
    "download_all_examples": False,
    "show_memory": False,
    "remove_config_comments": True,
    "min_reported_time": 1000,
    "within_subsection_order": "FileNameSortKey",
    "show_signature": False,
    "write_computation_times": False,
    "capture_repr": (),  # what a script prints, and no <Axes: ...>
}

html_theme = "pydata_sphinx_theme"
html_title = f"sketchridge {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_extra_path = ["paper/report.html"]
html_show_sourcelink = False
html_sidebars = {"index": [], "tour": [], "which-variance": []}  # they have no pages below
html_theme_options = {
    "github_url": "https://github.com/sketchridge/sketchridge",
    "show_prev_next": True,
    "navigation_with_keys": False,
    "header_links_before_dropdown": 6,
    "footer_start": ["copyright"],
    "footer_end": [],
    # The drawing of the house and the table of claims need the width.
    "secondary_sidebar_items": {"**": ["page-toc"], "architecture": [], "paper-claims": []},
}

default_role = "py:obj"  # `name` in a docstring

PAGE = re.compile(r"^docs/([\w/-]+)\.md$")


class PagesByName(SphinxPostTransform):
    """`docs/tables.md` in a text is a link to that page."""

    default_priority = 5  # before links are resolved

    def run(self, **_: object) -> None:
        for literal in list(self.document.findall(nodes.literal)):
            found = PAGE.match(literal.astext())
            if found and found[1] in self.env.found_docs and not literal.children[1:]:
                link = pending_xref(
                    "",
                    nodes.inline(literal.astext(), self.env.titles[found[1]].astext()),
                    refdomain="std",
                    reftype="doc",
                    reftarget="/" + found[1],
                    refexplicit=True,
                    refdoc=self.env.docname,
                    refwarn=True,
                )
                literal.replace_self(link)


class NoEmptyEnds(SphinxPostTransform):
    """A block of code ends with its last line: doctest wants an empty one after it."""

    default_priority = 5

    def run(self, **_: object) -> None:
        for block in self.document.findall(nodes.literal_block):
            if block.rawsource == block.astext():  # and not one of parsed markup
                block.rawsource = block.rawsource.rstrip()
                block.children = [nodes.Text(block.rawsource)]


_process = SphinxDocString._process_param


def whole_description(
    self: SphinxDocString, name: str, lines: list[str], fake_autosummary: bool
) -> tuple[str, list[str]]:
    """What the class says of an attribute, in full, and not the first line of its property."""
    shown, first = _process(self, name, lines, fake_autosummary)
    return shown, lines or first


def plain_marks(app: object, what: str, name: str, item: object, _: object, lines: list) -> None:
    """Bars and underscores in the text of docstrings are themselves, and no markup."""
    code = False
    for i, line in enumerate(lines):
        code = line.lstrip().startswith(">>>") or (code and bool(line.strip()))
        if not code and not line.lstrip().startswith(".."):
            pieces = re.split(r"(`+[^`]+`+)", line)
            pieces[::2] = [
                re.sub(r"(?<=\w)_(?!\w)", r"\\_", p.replace("|", r"\|")) for p in pieces[::2]
            ]
            lines[i] = "".join(pieces)


def setup(app: object) -> None:
    SphinxDocString._process_param = whole_description
    app.add_post_transform(PagesByName)  # type: ignore[attr-defined]
    app.add_post_transform(NoEmptyEnds)  # type: ignore[attr-defined]
    app.connect("autodoc-process-docstring", plain_marks, priority=900)  # type: ignore[attr-defined]
