"""--format and -o mean the same in every command that has them."""

import json

import click
import pytest

from dmlsplit.cli import cli as commands
from tests.cli.conftest import GOOD

ASKED = {
    "levels": ["levels", "a.json"],
    "levels of no file": ["levels"],
    "releases": ["levels", "--releases"],
    "runtimes": ["levels", "--runtimes"],
    "rule": ["rule", "split/axis-out-of-range"],
    "rules": ["rule"],
}


@pytest.mark.parametrize("arguments", ASKED.values(), ids=ASKED)
@pytest.mark.parametrize("format_", ["text", "json"])
def test_a_file_gets_what_is_printed(cli, tmp_path, arguments, format_):
    (tmp_path / "a.json").write_text(GOOD)
    printed = cli(*arguments, "--format", format_)
    written = cli(*arguments, "--format", format_, "-o", "out")
    assert (written.status, written.out, written.err) == (printed.status, "", printed.err)
    assert (tmp_path / "out").read_text("utf-8") == printed.out != ""
    assert format_ == "text" or json.loads(printed.out)


@pytest.mark.parametrize("arguments", ASKED.values(), ids=ASKED)
def test_the_former_option_is_kept(cli, tmp_path, arguments):
    (tmp_path / "a.json").write_text(GOOD)
    assert cli(*arguments, "--json") == cli(*arguments, "--format", "json")
    assert cli(*arguments, "--json", "--format", "text").status == 2


def test_an_input_is_not_replaced(cli, tmp_path):
    (tmp_path / "a.json").write_text(GOOD)
    assert cli("levels", "a.json", "-o", "a.json").status == 2
    assert (tmp_path / "a.json").read_text() == GOOD


def test_a_failure_writes_nothing(cli, tmp_path):
    (tmp_path / "out").write_text("old")
    assert cli("rule", "split/none", "-o", "out").status == 2
    assert (tmp_path / "out").read_text() == "old"


def test_each_command_with_formats_has_an_output():
    for name in commands.list_commands(None):
        options = {option for p in commands.get_command(click.Context(commands), name).params for option in p.opts}
        assert "--format" not in options or "-o" in options, name
