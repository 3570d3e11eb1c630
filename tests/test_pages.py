"""Code and commands in the README and in the documentation run, or say why they are not run."""

from __future__ import annotations

import re

import matplotlib.pyplot
import pytest
from pages import CODE, DOCS, SILENT, Block, blocks, command, name_of, pages, run

PAGES = pages()
WRITTEN = {name_of(path): blocks(path.read_text(), name_of(path)) for path in PAGES}
EVERY = [block for found in WRITTEN.values() for block in found]
RUN = [
    name
    for name, found in WRITTEN.items()
    if any(not b.reason for b in found if b.language in CODE)
]
LEFT_OUT = [block for block in EVERY if block.reason]
REASONS = {  # how a reason begins, and how many blocks at most may have it
    "needs a cluster": 4,
    "needs a GPU": 4,
    "installs packages": 6,
    "takes minutes": 8,
    "needs files of your own": 4,
    "needs a package that is not installed here": 2,
    "waits for you": 4,
    "is run by tests/": 6,
}


@pytest.mark.usefixtures("defaults")
@pytest.mark.parametrize("name", RUN)
def test_a_page_runs(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "500")
    monkeypatch.setattr(matplotlib.pyplot, "show", lambda: None)
    assert run(WRITTEN[name])


@pytest.mark.parametrize("block", LEFT_OUT, ids=lambda b: f"{b.page}, line {b.line}: {b.reason}")
def test_what_is_not_run_has_a_reason_from_the_list(block):
    assert block.language in CODE
    assert any(block.reason.startswith(reason) for reason in REASONS), block.reason


@pytest.mark.parametrize("reason", REASONS)
def test_few_blocks_are_not_run(reason):
    assert sum(block.reason.startswith(reason) for block in LEFT_OUT) <= REASONS[reason]


def test_most_code_is_run():
    code = [block for block in EVERY if block.language in CODE]
    assert sum(not block.reason for block in code) > 0.7 * len(code)


@pytest.mark.parametrize("name", WRITTEN)
def test_every_block_says_what_it_is(name):
    known = ("setup", *CODE, *SILENT)
    strange = [b for b in WRITTEN[name] if b.language not in known and b.language[:1] != "{"]
    assert strange == []


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_links_to_files_lead_somewhere(path):
    targets = re.findall(r"\]\((?!https?:|#|mailto:)([^)#\s]+)", path.read_text())
    made = ("gallery/",)  # by the build
    missing = [
        target
        for target in targets
        if not (path.parent / target).exists()
        and not (path.parent / target).resolve().relative_to(DOCS).as_posix().startswith(made)
    ]
    assert missing == []


# The reader of pages sees what it should


PAGE = """# A page

<!-- setup
x = 2
-->

```python
y = x + 1
```

<!-- not run: needs a cluster -->
```sh
sketchridge nonsense
```

```python
>>> y
3
```
"""


def test_the_reader_sees_setups_languages_and_reasons():
    found = blocks(PAGE, "page")
    assert [(b.language, b.line, b.reason) for b in found] == [
        ("setup", 3, ""),
        ("python", 7, ""),
        ("sh", 12, "needs a cluster"),
        ("python", 16, ""),
    ]
    assert run(found) == 2


def test_a_wrong_result_is_found():
    with pytest.raises(AssertionError, match=r"Got:\s+3"):
        run(blocks(PAGE.replace("\n3\n", "\n4\n"), "page"))


def test_code_that_fails_is_found():
    with pytest.raises(NameError, match="nothing"):
        run([Block("page", 1, "python", "nothing")])


def test_a_command_that_fails_is_found():
    with pytest.raises(AssertionError, match="nonsense"):
        command("sketchridge nonsense  # fails", "page")


def test_a_command_of_others_is_to_be_marked():
    with pytest.raises(AssertionError, match="mark what is not run"):
        command("make demo", "page")


def test_a_reason_belongs_to_a_block():
    with pytest.raises(AssertionError, match="needs a GPU"):
        blocks("<!-- not run: needs a GPU -->\nwords\n```python\n1\n```\n", "page")
