"""dmlsplit split: splits arrays in files, even if they are larger than memory."""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final

import click

from dmlsplit.checking.files import judge_alone
from dmlsplit.cli import _streams
from dmlsplit.cli._arguments import Integer, ParamType, read_entries
from dmlsplit.descriptors.descs import SplitOperatorDesc
from dmlsplit.report import text
from dmlsplit.system.errors import InputError, naming
from dmlsplit.system.input_files import input_size, open_input
from dmlsplit.system.integers import parsed_integer
from dmlsplit.system.printable import printable
from dmlsplit.targets.target import find_target

if TYPE_CHECKING:
    from dmlsplit.native.file_split import Advance, FileTensor, NewFile, Shape
    from dmlsplit.native.threads import NumThreads

MAX_OUTPUTS: Final = 100_000


class _Lengths(ParamType[tuple[int, ...]]):
    name = "lengths"

    def convert(self, value: Any, parameter: click.Parameter | None, context: click.Context | None) -> tuple[int, ...]:
        try:
            return tuple(map(parsed_integer, value.split(",")))
        except ValueError:
            self.fail(f"'{value}' is not a list of integers such as 1,2,3", parameter, context)


class _Threads(ParamType["NumThreads"]):
    name = "threads"

    def convert(self, value: Any, parameter: click.Parameter | None, context: click.Context | None) -> NumThreads:
        if value == "auto":
            return "auto"
        try:
            count = parsed_integer(value)
        except ValueError:
            count = 0
        if count < 1:
            self.fail(f"'{value}' is neither a positive number nor 'auto'", parameter, context)
        return count


@click.command()
@click.argument("file", metavar="IN", type=click.Path())
@click.option("--axis", type=Integer(), metavar="A", help="The axis to cut; a negative one counts from the end.")
@click.option("--lengths", type=_Lengths(), metavar="1,2,3", help="The lengths of the pieces; 0 is allowed.")
@click.option("--sections", type=Integer(), metavar="N", help="That many equal pieces.")
@click.option(
    "--descriptor",
    metavar="FILE.json",
    help="IN is raw memory with the layout of the Split in FILE.json; so are the pieces.",
)
@click.option(
    "-o",
    "--output",
    "folder",
    type=_streams.Named(),
    metavar="DIR",
    required=True,
    help="The folder to which the pieces are written.",
)
@click.option("--force", is_flag=True, help="Replace existing pieces, and remove surplus ones.")
@click.option(
    "--threads",
    type=_Threads(),
    metavar="N",
    help="The number of threads that copy; auto (the default): several if that is faster.",
)
def split(
    file: str,
    axis: int | None,
    lengths: tuple[int, ...] | None,
    sections: int | None,
    descriptor: str | None,
    folder: str,
    force: bool,
    threads: NumThreads,
) -> int:
    """Cut the array in IN along an axis, into DIR/IN.0.npy, DIR/IN.1.npy and so on.

    IN is an .npy file of any data type without Python objects, in C or Fortran order; the pieces have the same order.
    With --descriptor, IN is a file of raw memory, and each piece has TotalTensorSizeInBytes bytes, with gaps of 0.

    Files are mapped one window at a time and may be larger than memory. All disk space is reserved first. The pieces
    get their names when all of them are complete; after an interrupt or an error none of them exist, and files that
    --force would have replaced are unchanged. --force also removes surplus pieces of an older split, so that the
    numbered files always belong to one split.

    \b
    Examples:
      dmlsplit split images.npy --axis 0 --sections 4 -o parts
      dmlsplit split qkv.npy --axis -1 --lengths 4096,1024,1024 -o parts
      dmlsplit split input.bin --descriptor split.json -o parts

    \f
    Writes the files and returns the exit status: 1 if the descriptor is refused (then no file is written), else 0.
    Raises UsageError for options that do not fit, InputError for a file that cannot be split, OSError if reading or
    writing fails.
    """
    from dmlsplit.native import core
    from dmlsplit.native.file_split import split_file
    from dmlsplit.native.threads import VARIABLE, thread_count

    core.require()
    if descriptor is None:
        pieces = _npy_pieces(file, folder, axis, lengths, sections)
    else:
        if (axis, lengths, sections) != (None, None, None):
            raise click.UsageError("--descriptor and --axis, --lengths or --sections exclude each other")
        desc = _descriptor(descriptor)
        if desc is None:
            return 1
        pieces = _raw_pieces(file, folder, desc)
    source, outputs, element_size, axis, shown = pieces
    surplus = _surplus(file, folder, len(outputs))
    for path in (*(output.tensor.path for output in outputs), *surplus):
        if os.path.lexists(path):
            _streams.refuse_to_replace(path, [file, descriptor])
    total = sum(output.size - len(output.head) for output in outputs)
    if threads is None:
        threads = None if VARIABLE in os.environ else "auto"
    try:
        count = thread_count(threads, total)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    with _progress(total) as advance:
        split_file(source, outputs, element_size, axis, replace=force, surplus=surplus, threads=count, advance=advance)
    for output, what in zip(outputs, shown, strict=True):
        _streams.write(f"{printable(output.tensor.path, None)}: {what}\n")
    for path in surplus:
        _streams.write(f"{printable(path, None)}: removed, a piece of an older split\n")
    return 0


def _npy_pieces(
    file: str, folder: str, axis: int | None, lengths: Shape | None, sections: int | None
) -> tuple[FileTensor, list[NewFile], int, int, list[str]]:
    """Returns, for an .npy file whose header is read: the input, the outputs, the element size in bytes, the axis as a
    non-negative index, and a line of text about each output. Raises UsageError for options that do not fit, InputError
    for a file that cannot be split."""
    if axis is None:
        raise click.UsageError("--axis is needed, or --descriptor")
    if (lengths is None) == (sections is None):
        raise click.UsageError("exactly one of --lengths and --sections is needed")
    from dmlsplit.formats import npy
    from dmlsplit.native.arrays import cut
    from dmlsplit.native.file_split import FileTensor, NewFile

    with naming(file), open_input(file) as stream:
        header = npy.read_header(stream, os.fstat(stream.fileno()).st_size)
    dtype, fortran_order = header.dtype, header.fortran_order
    if dtype.hasobject:
        raise InputError(
            f"dtype {printable(str(dtype))} has Python objects, which only unpickling could read", file=file
        )
    if dtype.subdtype is not None:
        raise InputError(f"dtype {printable(str(dtype))} is an array itself", file=file)
    if sections is not None and sections > MAX_OUTPUTS:
        raise click.UsageError(f"--sections {sections}: more than {MAX_OUTPUTS} files")
    try:
        axis, lengths = cut(header.shape, axis, lengths, sections)
    except ValueError as error:
        raise InputError(str(error), file=file) from None
    outputs = []
    for i, length in enumerate(lengths):
        shape = (*header.shape[:axis], length, *header.shape[axis + 1 :])
        head = npy.header_bytes(shape, fortran_order, dtype)
        tensor = FileTensor(_piece(file, folder, i), len(head), shape, _strides(shape, fortran_order, dtype.itemsize))
        outputs.append(NewFile(tensor, head, len(head) + npy.Header(shape, fortran_order, dtype, 0).data_size))
    source = FileTensor(file, header.data_offset, header.shape, _strides(header.shape, fortran_order, dtype.itemsize))
    shown = [f"{printable(str(dtype))} {output.tensor.sizes}" for output in outputs]
    return source, outputs, dtype.itemsize, axis, shown


def _strides(shape: Shape, fortran_order: bool, itemsize: int) -> Shape:
    from dmlsplit.descriptors.layout import packed_strides

    packed = packed_strides(shape[::-1])[::-1] if fortran_order else packed_strides(shape)
    return tuple([stride * itemsize for stride in packed])


def _descriptor(file: str) -> SplitOperatorDesc | None:
    """Returns the descriptor of the only operator of a file, which must be a Split; if the Split is refused, prints the
    faults to standard error and returns None. Raises InputError for any other file."""
    entries = list(read_entries(file))
    for entry in entries:
        if entry.error is not None:
            raise entry.error.in_file(entry.file)
    if len(entries) != 1 or not isinstance(entries[0].descriptor, SplitOperatorDesc):
        raise InputError(f"one DML_OPERATOR_SPLIT is needed, but there are {len(entries)} operators", file=file)
    item = judge_alone(entries[0], find_target())
    if item.report.ok:
        return entries[0].descriptor
    for line in text.lines(item):
        _streams.complain(line)
    return None


def _raw_pieces(
    file: str, folder: str, desc: SplitOperatorDesc
) -> tuple[FileTensor, list[NewFile], int, int, list[str]]:
    from dmlsplit.native.execution import compile
    from dmlsplit.native.file_split import FileTensor, NewFile

    operator = compile(desc)
    whole, parts = operator.tensors
    with naming(file):
        size = input_size(file)
    least = operator.plan.whole_range.end
    if not least <= size <= whole.total:
        rounded = "" if whole.total == least else f", or {whole.total} as it is rounded up or padded"
        raise InputError(f"has {size} bytes, but InputTensor has {least}{rounded}", file=file)
    outputs = [
        NewFile(FileTensor(_piece(file, folder, i), 0, part.sizes, part.strides), b"", part.total)
        for i, part in enumerate(parts)
    ]
    shown = [f"{part.total} bytes" for part in parts]
    return FileTensor(file, 0, whole.sizes, whole.strides), outputs, whole.dtype.itemsize, desc.axis, shown


def _piece(file: str, folder: str, index: int) -> str:
    name = PurePath(file)
    return os.path.join(folder, f"{name.stem}.{index}{name.suffix}")


def _surplus(file: str, folder: str, count: int) -> list[str]:
    """Returns the existing files for pieces from number `count` on; they would be mistaken for pieces of this split."""
    names = (_piece(file, folder, i) for i in itertools.count(count))
    return list(itertools.takewhile(os.path.lexists, names))


@contextmanager
def _progress(total: int) -> Iterator[Advance]:
    """Context manager that shows a progress bar on a terminal and yields a function that advances it by a number of
    bytes."""
    if not _streams.person_reads(sys.stderr):
        yield lambda count: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn, TransferSpeedColumn

    columns = (BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(file=sys.stderr), transient=True) as progress:
        task = progress.add_task("", total=total)
        yield lambda count: progress.advance(task, count)
