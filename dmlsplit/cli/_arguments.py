"""Arguments and options shared by commands, and the targets, operators of a file and rules that they name."""

from __future__ import annotations

import functools
import itertools
import math
import os
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import click
from click.core import ParameterSource

from dmlsplit.checking import front_ends
from dmlsplit.checking.front_ends import Given, without_nodes
from dmlsplit.checking.question import Keep, keep_all
from dmlsplit.cli import _streams
from dmlsplit.descriptors.enums import FeatureLevel
from dmlsplit.formats.operator_files import Entry
from dmlsplit.rules import REDIRECTS, RULES
from dmlsplit.system.errors import DmlSplitError, InputError, fault_of
from dmlsplit.system.integers import parsed_integer
from dmlsplit.system.spelling import nearest
from dmlsplit.targets.releases import NEWEST, releases
from dmlsplit.targets.runtime_versions import NEWEST as NEWEST_RUNTIME
from dmlsplit.targets.runtime_versions import runtimes
from dmlsplit.targets.target import ASSUMPTIONS, Target, find_target

Command: TypeAlias = Callable[..., int]
Complete: TypeAlias = Callable[[click.Context, click.Parameter, str], list[str]]


if TYPE_CHECKING:
    from click import ParamType as ParamType
else:

    class ParamType(click.ParamType):
        """click's own ParamType is generic only from version 8.4 on."""

        def __class_getitem__(cls, value_type: object) -> type[click.ParamType]:
            return cls


class Real(click.FloatRange):
    """The type of an option whose value is a number in a range. click would accept nan in any range."""

    def convert(self, value: Any, parameter: click.Parameter | None, context: click.Context | None) -> float:
        number = float(super().convert(value, parameter, context))
        if math.isnan(number):
            self.fail(f"'{value}' is not a number", parameter, context)
        return number


class Integer(ParamType[int]):
    """The type of an option whose value is an integer of at least `least`."""

    name = "integer"

    def __init__(self, least: int | None = None) -> None:
        self._least = least

    def convert(self, value: Any, parameter: click.Parameter | None, context: click.Context | None) -> int:
        if isinstance(value, int):  # the default
            return value
        try:
            number = parsed_integer(value)
        except ValueError as error:
            self.fail(str(error), parameter, context)
        if self._least is not None and number < self._least:
            self.fail(f"{number} is less than {self._least}", parameter, context)
        return number


TARGETS: Final = ("feature_level", "directml", "onnxruntime", "windows", "windows_ml")
"""The options that name targets, called like find_target's arguments."""
_TOGETHER: Final = ("onnxruntime", "windows")
_assume_option: Final = click.option(
    "--assume",
    multiple=True,
    type=click.Choice(list(ASSUMPTIONS)),
    help=f"What is known of the device. {'; '.join(f'{name}: {said}' for name, said in ASSUMPTIONS.items())}.",
)


def target_options(*, several: bool = False) -> Callable[[Command], Command]:
    """Returns a decorator that adds --feature-level, --directml, --onnxruntime, --windows, --windows-ml and --assume.
    The command gets the Target that they name as `target`, by default the newest release of DirectML; UsageError is
    raised if they name more than one. If `several`, the command gets a tuple of one or more as `targets` instead."""

    def add(command: Command) -> Command:
        @click.option(
            "--feature-level",
            metavar="L",
            multiple=True,
            shell_complete=completing(lambda: map(str, FeatureLevel)),
            help="Judge by this DML_FEATURE_LEVEL: 3_0, 3.0, DML_FEATURE_LEVEL_3_0.",
        )
        @click.option(
            "--directml",
            metavar="R",
            multiple=True,
            shell_complete=complete_release,
            help=f"Judge by this release: {NEWEST.label} (the default), {NEWEST.name}."
            f"{' May be given several times.' if several else ''}",
        )
        @click.option(
            "--onnxruntime",
            metavar="V",
            multiple=True,
            shell_complete=complete_runtime,
            help="Judge by this version of ONNX Runtime with its DirectML execution provider: "
            f"{NEWEST_RUNTIME.version}, or {NEWEST_RUNTIME.version.rpartition('.')[0]} for its newest patch. A "
            "descriptor is judged by the DirectML in it."
            f"{' May be given several times.' if several else ''}",
        )
        @click.option(
            "--windows",
            metavar="W",
            multiple=True,
            shell_complete=complete_windows,
            help="Judge by the DirectML.dll of this Windows: 10-22H2, 11-24H2. With --onnxruntime: by that version "
            "with this DLL, as in an application that ships none.",
        )
        @click.option(
            "--windows-ml",
            metavar="V",
            multiple=True,
            shell_complete=completing(_windows_ml_names),
            help="Judge by the ONNX Runtime of this Windows ML: 2.1.71, or 2.1 for its newest patch.",
        )
        @_assume_option
        @functools.wraps(command)
        def judging(*args: Any, assume: tuple[str, ...], **options: Any) -> int:
            given = {name: options.pop(name) for name in TARGETS}
            if any(_is_on_command_line(name) for name in given):  # targets from a configuration are then ignored
                given = {name: value if _is_on_command_line(name) else () for name, value in given.items()}
            targets = _targets(assume, **given)
            if several:
                return command(*args, targets=targets, **options)
            if len(targets) > 1:
                raise click.UsageError("--directml, --onnxruntime, --windows: one release at a time")
            return command(*args, target=targets[0], **options)

        return judging

    return add


def runtime_options(command: Command) -> Command:
    """Returns the command with --onnxruntime, --windows and --assume added; it gets `target`, the Target of a version
    of ONNX Runtime."""

    @click.option(
        "--onnxruntime",
        metavar="V",
        default=NEWEST_RUNTIME.version,
        shell_complete=complete_runtime,
        help="The version of ONNX Runtime with its DirectML execution provider: "
        f"{NEWEST_RUNTIME.version} (the default).",
    )
    @click.option(
        "--windows",
        metavar="W",
        shell_complete=complete_windows,
        help="Use the DirectML.dll of this Windows, as in an application that ships none: 11-22H2.",
    )
    @_assume_option
    @functools.wraps(command)
    def in_session(*args: Any, onnxruntime: str, windows: str | None, assume: tuple[str, ...], **options: Any) -> int:
        (target,) = _targets(assume, onnxruntime=(onnxruntime,), windows=(windows,) if windows else ())
        return command(*args, target=target, **options)

    return in_session


def output_options(*formats: str, json_help: str) -> Callable[[Command], Command]:
    """Returns a decorator that adds --format, whose value the command gets as `format_`, and -o, the file that its
    standard output is written to. --json, the former name of --format json, is hidden."""

    def add(command: Command) -> Command:
        @click.option("--format", "format_", type=click.Choice(formats), default=formats[0], help=json_help)
        @click.option("--json", "as_json", is_flag=True, hidden=True)
        @click.option("-o", "--output", "out", metavar="FILE", type=_streams.Named(), help=_streams.OUTPUT_HELP)
        @functools.wraps(command)
        def printing(*args: Any, format_: str, as_json: bool, out: str | None, **options: Any) -> int:
            if as_json and format_ != "json" and _is_on_command_line("format_"):
                raise click.UsageError(f"--json and --format {format_} exclude each other")
            _streams.refuse_to_replace(out, [options.get("file")])
            with _streams.redirected(out):
                return command(*args, format_="json" if as_json else format_, **options)

        return printing

    return add


def _is_on_command_line(name: str) -> bool:
    return click.get_current_context().get_parameter_source(name) is ParameterSource.COMMANDLINE


def _targets(assume: tuple[str, ...], **given: tuple[str, ...]) -> tuple[Target, ...]:
    """Returns the targets that the options name, without duplicates: one feature level, or releases, versions of ONNX
    Runtime, Windows and Windows ML; each version of ONNX Runtime is combined with each Windows. If they name none, the
    newest release alone. `assume` are the properties of the device. Raises UsageError for unknown names, for options
    that exclude each other, and for several feature levels."""
    feature_level, runtimes_, windows = (given.get(name, ()) for name in ("feature_level", "onnxruntime", "windows"))
    try:
        for name in TARGETS[1:]:
            if feature_level and given.get(name):
                raise ValueError(f"--feature-level and --{name.replace('_', '-')} exclude each other")
        alone = TARGETS if not (runtimes_ and windows) else [name for name in TARGETS if name not in _TOGETHER]
        asked: list[dict[str, str]] = [{name: value} for name in alone for value in given.get(name, ())]
        if runtimes_ and windows:
            asked += [dict(zip(_TOGETHER, names, strict=True)) for names in itertools.product(runtimes_, windows)]
        targets = tuple(dict.fromkeys(_target(names, assume) for names in asked or [{}]))
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    if feature_level and len(targets) > 1:
        raise click.UsageError("--feature-level: one level at a time; 'dmlsplit levels' shows all of them")
    return targets


def _target(names: Mapping[str, str], assume: tuple[str, ...]) -> Target:
    levels: dict[str, Any] = dict(names)
    return find_target(**levels, assume=assume)


def allow_path_option(said: str) -> Callable[[Command], Command]:
    """Returns a decorator that adds --allow-path with this help text; the command gets `allow_path`."""
    folder = click.Path(exists=True, file_okay=False)
    return click.option("--allow-path", metavar="DIR", multiple=True, type=folder, help=said)


def model_options(command: Command) -> Command:
    """Returns the command with --shape, --dim, --free-dimension and --allow-path added; it gets their values as
    `given`."""

    @click.option(
        "--shape",
        "shapes",
        metavar="NAME:1,3,640,640",
        multiple=True,
        help="The shape of a tensor of the models, usually an input; ? for unknown sizes.",
    )
    @click.option("--dim", "dims", metavar="NAME=4", multiple=True, help="The size of a symbolic dimension.")
    @click.option(
        "--free-dimension",
        "free_dimensions",
        metavar="NAME=4",
        multiple=True,
        help="Like --dim, but ONNX Runtime knows the size at session creation; --shape and --dim are those of the "
        "first Run.",
    )
    @allow_path_option("Let models read the files they refer to in DIR as well, not only in their own folder.")
    @functools.wraps(command)
    def with_given(
        *args: Any,
        shapes: tuple[str, ...],
        dims: tuple[str, ...],
        free_dimensions: tuple[str, ...],
        allow_path: tuple[str, ...],
        **options: Any,
    ) -> int:
        sizes, overrides = dict(map(_dim, dims)), dict(_dim(text, "--free-dimension") for text in free_dimensions)
        given = Given(dict(map(_shape, shapes)), sizes, allow_path, free_dimensions=overrides)
        return command(*args, given=given, **options)

    return with_given


def _shape(option: str) -> tuple[str, tuple[int | None, ...]]:
    name, _, sizes = option.rpartition(":")
    try:
        shape = tuple([None if size.strip() == "?" else _size(size) for size in sizes.split(",") if sizes.strip()])
    except ValueError:
        name = ""
    if not name:
        raise click.UsageError(f"--shape {option}: NAME:1,3,640,640 is expected, with ? for a size that is unknown")
    return name, shape


def _dim(text: str, option: str = "--dim") -> tuple[str, int]:
    name, _, size = text.rpartition("=")
    try:
        return name, _size(size) if name else _size("")
    except ValueError:
        raise click.UsageError(f"{option} {text}: NAME=4 is expected") from None


def _size(text: str) -> int:
    size = parsed_integer(text)
    if not 0 <= size < 2**63:
        raise ValueError
    return size


def expanded(files: Collection[str]) -> list[str]:
    """Returns the file names with patterns replaced by the sorted names that match, because not every shell expands
    them; a pattern without a match, or that is the name of a file, is kept. Raises InputError if "-" is among the names
    and standard input is closed."""
    refuse_closed_input(files)
    found: list[str] = []
    for file in files:
        matches = [] if os.path.lexists(file) else sorted(set(_matching(file)))
        found += matches or [file]
    return found


_ANY_DEPTH: Final = r"(?:^|(?<=[{0}]))\*\*(?:[{0}]|$)".format(re.escape(os.sep + (os.altsep or "")))


def _matching(pattern: str) -> Iterator[str]:
    """Yields the names that match a pattern, as glob.glob does, except that ** does not follow links, which may form
    cycles."""
    import glob  # most files are named

    deep = re.search(_ANY_DEPTH, pattern)
    if deep is None:
        yield from glob.glob(pattern)
        return
    above, below = pattern[: deep.start()], pattern[deep.end() :]
    for top in glob.glob(above) if above else [""]:
        for folder, names, _ in os.walk(top or os.curdir):
            names[:] = [name for name in names if not name.startswith(".")]
            inside = folder if top else os.path.relpath(folder)
            yield from _matching(os.path.join("" if inside == os.curdir else glob.escape(inside), below or "*"))


def read_entries(file: str, given: Given | None = None) -> Iterator[Entry]:
    """Yields the operators of a file (standard input for "-"); a node of a model is represented by its descriptor.
    Raises InputError if standard input is closed."""
    return map(without_nodes, read_with_nodes(file, given))


def read_with_nodes(file: str, given: Given | None = None) -> Iterator[Entry]:
    """Yields the operators of a file (standard input for "-"); an entry of a model has its node. Raises InputError if
    standard input is closed."""
    refuse_closed_input([file])
    return front_ends.read_entries(file, given)


@contextmanager
def judging_of(file: str) -> Iterator[None]:
    """Context manager that raises an InputError with the file's name in place of any unexpected exception in the block,
    as `check` does; usage errors, DmlSplitError and OSError pass."""
    try:
        yield
    except (click.ClickException, click.Abort, click.exceptions.Exit, DmlSplitError, OSError):
        raise
    except Exception as error:
        raise fault_of(error).in_file(file) from None


def refuse_closed_input(files: Iterable[str]) -> None:
    """Raises InputError if "-" is among the names and standard input is closed."""
    if "-" in files and sys.stdin is None:
        raise InputError("standard input is closed")


def rule_filter(select: Iterable[str], ignore: Iterable[str]) -> Keep:
    """Returns a function that takes a rule id and returns True if the rule is wanted: it is in `select`, or `select` is
    empty, and it is not in `ignore`. Both contain ids, including former ones, or scopes such as `tensor/`. Raises
    UsageError for an id or scope that does not exist."""
    selected, ignored = rule_ids(select, "--select"), rule_ids(ignore, "--ignore")
    if not (selected or ignored):
        return keep_all
    return ((selected or frozenset(RULES)) - ignored).__contains__


def rule_ids(names: Iterable[str], option: str) -> frozenset[str]:
    """Returns the current ids of rules named by an id, current or former, or by a scope. Raises UsageError, which names
    `option`, for one that does not exist."""
    ids: set[str] = set()
    for name in dict.fromkeys(names):
        found = [id for id in RULES if id.startswith(name)] if name.endswith("/") else []
        if not found:
            found = [known_rule_id(name, option)]
        ids.update(found)
    return frozenset(ids)


def completing(names: Callable[[], Iterable[str]]) -> Complete:
    """Returns a shell completion that offers those of the names returned by `names` that begin with the typed text."""
    return lambda context, parameter, start: [name for name in dict.fromkeys(names()) if name.startswith(start)]


def _windows_names() -> Iterable[str]:
    from dmlsplit.targets.windows import windows_versions

    return [each.name for each in windows_versions()]


def _windows_ml_names() -> Iterable[str]:
    from dmlsplit.targets.windows import windows_ml_versions

    return [each.version for each in windows_ml_versions()]


complete_rule: Final = completing(lambda: RULES)
complete_runtime: Final = completing(lambda: [each.version for each in runtimes()])
complete_windows: Final = completing(_windows_names)
complete_release: Final = completing(lambda: [name for each in releases() for name in (each.label, each.name)])


def known_rule_id(name: str, option: str = "") -> str:
    """Returns the current id of the rule whose current or former id is `name`. Raises UsageError, which suggests the
    nearest ids, if there is no such rule; `option` is the option that the error names, "" for none."""
    id = REDIRECTS.get(name, name)
    if id in RULES:
        return id
    # A slug without its scope may occur in several scopes.
    near = [id for id in RULES if id.split("/")[1] == name] or list(filter(None, [nearest(name, RULES)]))
    suggestion = f"; did you mean {' or '.join(near)}?" if near else "; 'dmlsplit rule' lists them"
    raise click.UsageError(f"{option + ': ' if option else ''}there is no rule '{name}'{suggestion}")
