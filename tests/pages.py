"""Blocks of code in pages of Markdown, and how they are run.

A block of `python` is run, all blocks of a page in one namespace; one with `>>>` says what must
come out. Each line of a block of `sh` is a command of `sketchridge`. Blocks of `text`, and
directives such as `{tip}`, are no code. Two comments, which no reader sees, say more:

    <!-- not run: why -->      above a block that needs a cluster, a GPU, a network or minutes
    <!-- setup                 Python that makes what the page takes for given, such as X and y,
    ... -->                    or files in the folder where its commands run
"""

from __future__ import annotations

import doctest
import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

REPOSITORY = Path(__file__).parents[1]
DOCS = REPOSITORY / "docs"
CODE = ("python", "sh")
SILENT = ("text", "md")
_PIECE = re.compile(
    r"^<!-- (?P<word>not run:|setup)(?P<said>.*?)-->$"
    r"|^(?P<fence>`{3,})(?P<language>[^\n`]*)\n(?P<code>.*?)^(?P=fence)$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Block:
    """One piece of code: its language, or "setup", and the reason where it is not run."""

    page: str
    line: int
    language: str
    code: str
    reason: str = ""


def pages() -> list[Path]:
    """Every page that people read: the README, and the documentation with what is below it."""
    inside = [path for path in sorted(DOCS.rglob("*.md")) if not hidden(path)]
    return [REPOSITORY / "README.md", REPOSITORY / "CONTRIBUTING.md", *inside]


def hidden(path: Path) -> bool:
    """Whether a page is made by the build."""
    parts = path.relative_to(DOCS).parts
    return parts[0] in ("_build", "gallery")


def name_of(path: Path) -> str:
    return path.relative_to(REPOSITORY).as_posix()


def blocks(text: str, page: str = "") -> list[Block]:
    """The blocks of a page and its setups, in order.

    A reason that no block follows at once is a mistake.
    """
    found: list[Block] = []
    reason, end = "", 0
    for piece in _PIECE.finditer(text):
        between = text[end : piece.start()].strip()
        assert not (reason and between), f"{page}: nothing follows at once on 'not run:{reason}'"
        line = text.count("\n", 0, piece.start()) + 1
        end = piece.end()
        if piece["word"] == "not run:":
            reason = piece["said"].strip()
            assert reason, f"{page}, line {line}: say why it is not run"
            continue
        language = "setup" if piece["word"] else piece["language"].strip()
        code = piece["said"] if piece["word"] else piece["code"]
        found.append(Block(page, line, language, code, reason))
        reason = ""
    assert not reason, f"{page}: nothing follows on 'not run: {reason}'"
    return found


def run(found: list[Block]) -> int:
    """Run the blocks of one page in the current folder; how many there were."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    ran = 0
    for block in found:
        if block.reason or block.language not in ("setup", *CODE):
            continue
        where = f"{block.page}, line {block.line}"
        if block.language == "sh":
            for line in block.code.splitlines():
                command(line, where)
        elif ">>> " in block.code:
            compare(block, namespace)
        else:
            exec(compile("\n" * block.line + block.code, block.page, "exec"), namespace)
        ran += block.language != "setup"
    return ran


def command(line: str, where: str) -> None:
    """One line of a terminal: a comment, nothing, or a command of ours, which must succeed."""
    from sketchridge.cli.app import app

    words = shlex.split(line, comments=True)
    if not words:
        return
    assert words[0] == "sketchridge", f"{where}: mark what is not run: {line}"
    result = CliRunner().invoke(app, words[1:])
    assert result.exit_code == 0, f"{where}: {line}\n{result.output}"


def compare(block: Block, namespace: dict[str, Any]) -> None:
    """Run examples with `>>>`, and compare what they print."""
    test = doctest.DocTestParser().get_doctest(block.code, {}, block.page, block.page, block.line)
    test.globs = namespace
    said: list[str] = []
    runner = doctest.DocTestRunner(verbose=False)
    runner.run(test, out=said.append, clear_globs=False)
    assert not runner.failures, "".join(said)
