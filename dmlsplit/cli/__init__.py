"""The command line: arguments, exit statuses, and one line on standard error for a user's mistake."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Final

import click

from dmlsplit._version import __version__
from dmlsplit.cli import _streams
from dmlsplit.system import signals
from dmlsplit.system.atomic_files import inputs_noted
from dmlsplit.system.errors import DmlSplitError, fault_of
from dmlsplit.system.garbage import rarely_collected

FAILURE: Final = 2
INTERRUPTED: Final = 130
"""128 + SIGINT, as in a shell."""
BROKEN_PIPE: Final = 141
"""128 + SIGPIPE."""
COMMANDS: Final = {
    "ask": "Ask the real DirectML or ONNX Runtime.",
    "check": "Judge the operators of files.",
    "conformance": "Test an implementation of DirectML against recorded behaviour.",
    "config": "Show compiler flags for C and C++ programs that use the library.",
    "doctor": "Show what this installation contains, and what is missing.",
    "draw": "Draw the operators of a file as SVG.",
    "explain": "Show how ONNX Runtime changes a node, pass by pass.",
    "explain-log": "Explain lines in logs of ONNX Runtime and DirectML.",
    "layer": "Record a program's calls to DirectML, without rebuilding it.",
    "legalize": "Rewrite operators for a lower feature level or release.",
    "levels": "Show what feature levels or releases accept.",
    "library": "Fetch, list and remove the libraries that 'ask' uses.",
    "plan": "Show how operators would run.",
    "rule": "List the rules, or explain one.",
    "run": "Execute a DxDispatch model on the CPU.",
    "split": "Split an array in a file, of any size.",
    "support": "Show the data types and ranks that an operator accepts.",
    "tune": "Measure this machine, and write a profile for copies.",
    "why": "Reduce a model to the few nodes that cause a fault.",
}
"""Maps each command to its help in one line. Its module has the same name (with _ for -), and is imported when the
command is first used."""


class _Commands(Mapping[str, click.Command]):
    def __getitem__(self, name: str) -> click.Command:
        short_help = COMMANDS[name]
        command: click.Command = getattr(
            import_module(f"dmlsplit.cli.{name.replace('-', '_')}"), name.replace("-", "_")
        )
        command.short_help = short_help
        return command

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


class _Group(click.Group):
    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(
    cls=_Group,
    commands=_Commands(),
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.option("--version", "show_version", is_flag=True, help="Show the version and exit.")
@click.pass_context
def cli(context: click.Context, show_version: bool) -> int:
    """DirectML's Split and Join without Windows and without a GPU.

    \b
    Example:
      dmlsplit check operator.json --feature-level 3_0

    Exit status: 0 no errors found; 1 a diagnostic of severity error; 2 wrong usage, unreadable or malformed input.

    \f
    Returns the exit status without a subcommand: 0 for --version, else 2 after the help on standard error. With one,
    click returns the status of the subcommand. Exceptions become a status in `main`.
    """
    if show_version:
        _streams.write(f"dmlsplit {__version__}\n")
        context.exit()
    if context.invoked_subcommand is None:
        click.echo(context.get_help(), err=True)
        return FAILURE
    return 0


def main(args: Sequence[str] | None = None) -> int:
    """Runs a command line (None: the process's) and returns its exit status; no Exception is raised.

    The status is the one that the command returns; 2, after one line on standard error, if it raises an error;
    BROKEN_PIPE if the reader of standard output is gone; INTERRUPTED after Ctrl-C. A signal that asks the process to
    end ends it after the command has cleaned up; if it does not end the process, 128 plus its number is returned.
    """
    try:
        return _status(args)
    except signals.Terminated as terminated:
        (number,) = terminated.args
    # By now the exception is freed, and with it everything that it kept alive. Nothing is flushed, because nobody may
    # be reading.
    signals.end_by(number)
    return 128 + int(number)


def _status(args: Sequence[str] | None) -> int:
    try:
        _streams.prepare()
        with signals.raised(), inputs_noted(), rarely_collected():
            status = cli.main(args, prog_name="dmlsplit", standalone_mode=False)
            _streams.flush()
    except BrokenPipeError:
        status = BROKEN_PIPE  # the reader of the output has closed it
    except SystemExit as leaving:
        # click exits this way if a command runs into a broken pipe and, with 0, after shell completion
        status = BROKEN_PIPE if leaving.code else 0
    except (KeyboardInterrupt, click.Abort):
        status = INTERRUPTED
    except (click.ClickException, DmlSplitError, OSError, MemoryError, UnicodeError) as error:
        _streams.complain(_one_line(error))
        status = FAILURE
    except Exception as error:  # a bug in this program: the user still gets one line
        _streams.complain(fault_of(error))
        status = FAILURE
    _streams.leave()
    return int(status or 0)


def _one_line(error: Exception) -> str:
    if isinstance(error, click.UsageError):
        path = error.ctx.command_path if error.ctx is not None else "dmlsplit"
        return f"{_joined(error.format_message())} (try '{path} --help')"
    if isinstance(error, click.ClickException):
        return _joined(error.format_message())
    if isinstance(error, OSError):
        reason = error.strerror or str(error)
        place = error.filename
        if place is None and isinstance(error, FileNotFoundError) and _is_adrift():
            place = "the current folder"
        return f"{place}: {reason}" if place is not None else reason
    if isinstance(error, MemoryError):
        return "there is not enough memory"
    return _joined(str(error))


def _is_adrift() -> bool:
    """True if the current folder has been deleted. The system then refuses every question for its name, without
    naming anything itself."""
    try:
        os.getcwd()
    except FileNotFoundError:
        return True
    return False


def _joined(message: str) -> str:
    return " ".join(message.split())
