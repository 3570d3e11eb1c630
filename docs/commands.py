"""A directive, `commands`, that lists the options of `sketchridge` and of each of its commands."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive
from typer.main import get_command

from sketchridge.cli.app import app


class Commands(Directive):
    """`commands:: fit predict` documents these; `commands:: campaign` all commands below it."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        root: Any = get_command(app)
        found = []
        for name in self.arguments[0].split():
            command = root.commands[name]
            below = getattr(command, "commands", None)
            for title, each in (below or {"": command}).items():
                found.append(self.section(f"sketchridge {name} {title}".strip(), each))
        return found

    def section(self, title: str, command: Any) -> nodes.section:
        """One command: what it does, its arguments and its options."""
        section = nodes.section(ids=[nodes.make_id(title)], names=[title])
        section += nodes.title(title, title)
        section += nodes.paragraph(text=" ".join((command.help or "").split()))
        rows = nodes.definition_list()
        for parameter in command.params:
            if not getattr(parameter, "hidden", False) and parameter.name != "help":
                rows += self.row(parameter)
        if rows.children:
            section += rows
        self.state.document.note_implicit_target(section)
        return section

    def row(self, parameter: Any) -> nodes.definition_list_item:
        names = (
            parameter.opts
            if parameter.param_type_name == "option"
            else [parameter.metavar or parameter.name.upper()]
        )
        term = nodes.term()
        for i, name in enumerate(names):
            term += ([nodes.Text(", ")] if i else []) + [nodes.literal(text=name)]
        term += nodes.Text(remark(parameter))
        text = " ".join((parameter.help or "").split()) or "…"
        return nodes.definition_list_item(
            "", term, nodes.definition("", nodes.paragraph(text=text))
        )


def remark(parameter: Any) -> str:
    """Whether a value is needed, and what it is unless given."""
    if parameter.required:
        return " (needed)"
    default = parameter.default
    if default is None or default is False or callable(default) or not str(default):
        return ""
    return "" if isinstance(default, list | tuple) else f" (unless given: {default})"


def setup(app: Any) -> dict[str, bool]:
    app.add_directive("commands", Commands)
    return {"parallel_read_safe": True}
