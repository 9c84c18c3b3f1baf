"""A hook of mkdocs: the line `::: commands` of a page becomes the help of every command, as the program prints it."""

from __future__ import annotations

from typing import Final

import click

from dmlsplit.cli import cli

PLACE: Final = "::: commands"
WIDTH: Final = 90


def on_page_markdown(markdown: str, **_: object) -> str:
    """Called by mkdocs for each page."""
    return markdown.replace(PLACE, "\n".join(sections())) if PLACE in markdown else markdown


def sections() -> list[str]:
    width = {"terminal_width": WIDTH, "max_content_width": WIDTH}
    root = click.Context(cli, info_name="dmlsplit", **cli.context_settings, **width)
    lines = ["## dmlsplit", "", "```text", cli.get_help(root), "```", ""]
    for name in cli.list_commands(root):
        command = cli.commands[name]
        context = click.Context(command, parent=root, info_name=name, **width)
        lines += [f"## dmlsplit {name}", "", "```text", command.get_help(context), "```", ""]
        for inner in command.list_commands(context) if isinstance(command, click.Group) else ():
            below = click.Context(command.commands[inner], parent=context, info_name=inner, **width)
            lines += ["```text", command.commands[inner].get_help(below), "```", ""]
    return lines
