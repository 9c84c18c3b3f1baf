"""The weights of a reduced model: random numbers from a recorded seed, or those of the original, which are read
last."""

from __future__ import annotations

import math
import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import onnx
from google.protobuf.message import Message
from onnx import TensorProto, helper, numpy_helper

from dmlsplit.formats.files import AllowedFolders, note_references
from dmlsplit.formats.onnx.loading import without_weights
from dmlsplit.formats.onnx.protobuf import all_nodes, text
from dmlsplit.formats.onnx.tensors import Array, ReadExternal, external_reader, no_external_data, value_of
from dmlsplit.mending.fields import Field, messages
from dmlsplit.mending.source import GRAPH, SourceModel, mapped
from dmlsplit.system.errors import InputError
from dmlsplit.system.printable import printable
from dmlsplit.system.records import record

SMALL: Final = 64
"""The most elements of a tensor that keeps its values: sizes, axes, factors."""
MOST_WRITTEN: Final = 1 << 30
"""The most bytes of weights in a model that is written."""
FURTHEST: Final = 4096
"""More than the numbers that any tensor skips, so that tensors of equal size get different numbers."""
_DRAWN_AT_ONCE: Final = 1 << 20
_SMALL_EXTERNAL: Final = 4096
"""The most elements of external data that are read immediately, because they may be lengths or sizes."""
_INITIALIZER: Final = 5
_WITH_TENSORS: Final = frozenset(
    {"GraphProto", "FunctionProto", "NodeProto", "AttributeProto", "SparseTensorProto", "TensorProto"}
)
_VARIANCES: Final = {"BatchNormalization": 4}
"""The input of an operator that must not be negative."""

PutElsewhere: TypeAlias = "Callable[[TensorProto, Seed | None], bool]"
Source: TypeAlias = str | os.PathLike[str] | bytes | onnx.ModelProto


class Seed(NamedTuple):
    """How a tensor was made: numpy's default_rng(seed).uniform(low, high, skip + count), without the first `skip`, in
    its element type; of integers and BOOL 1 where that is positive, else 0."""

    seed: int
    low: float
    high: float
    skip: int


def drawn_in_pieces(seed: Seed, count: int, data_type: int) -> Iterator[Array]:
    """Yields the first `count` numbers of a seed, from its start (`seed.skip` is not applied), as arrays of the
    TensorProto type `data_type`, piece by piece."""
    dtype = helper.tensor_dtype_to_np_dtype(data_type)
    generator = np.random.default_rng(seed.seed)
    for start in range(0, count, _DRAWN_AT_ONCE):
        numbers = generator.uniform(seed.low, seed.high, min(_DRAWN_AT_ONCE, count - start))
        yield numbers.astype(dtype) if dtype.kind not in "biu" else (numbers > 0).astype(dtype)


def _drawn(seed: Seed, sizes: tuple[int, ...], data_type: int) -> Array:
    """Returns the random numbers of a tensor of these sizes and TensorProto type."""
    pieces = list(drawn_in_pieces(seed, seed.skip + math.prod(sizes), data_type))
    return np.concatenate(pieces)[seed.skip :].reshape(sizes) if pieces else np.zeros(sizes, np.float32)


@record
class Original:
    """A model without its weights, and access to them."""

    model: onnx.ModelProto
    read_external: ReadExternal
    _source: SourceModel
    _initializers: Mapping[str, int]
    _constants: Mapping[str, onnx.NodeProto]

    def tensor(self, tensor: TensorProto) -> TensorProto:
        """Returns the original's tensor of the same name with its data included. Raises InputError if they cannot be
        read."""
        if tensor.external_data:
            sizes = tuple(tensor.dims)
            keys = {text(entry.key): text(entry.value) for entry in tensor.external_data}
            size = bytes_of(tensor)
            made = TensorProto(name=tensor.name, data_type=tensor.data_type, dims=sizes)
            offset = keys.get("offset", "0")
            if not offset.isdecimal() or len(offset) > 18:
                raise InputError(f"'{printable(tensor.name)}' has external data whose offset is not a number")
            made.raw_data = self.read_external(keys.get("location", ""), int(offset), size)
            return made
        found = self._inside(tensor.name)
        if found is None:
            raise InputError(f"the data of '{printable(tensor.name)}' are not found")
        return self.tensor(found) if found.external_data else found

    def _inside(self, name: str) -> TensorProto | None:
        """Returns the tensor of this name in the bytes of the original, an initializer or a Constant's; None if there
        is none."""
        if name in self._constants:
            node = self._source.original(self._constants[name])
            made = TensorProto()
            made.CopyFrom(next(each.t for each in node.attribute if each.name == "value"))
            made.name = name
            return made
        number = self._initializers.get(name)
        if number is None:
            return None
        data = self._source.data
        (graph,) = messages(data, 0, self._source.size, GRAPH)
        for i, place in enumerate(messages(data, graph.content, graph.end, _INITIALIZER)):
            if i == number:
                return _parsed(data, place)
        return None


def _parsed(data: object, place: Field) -> TensorProto:
    made = TensorProto()
    made.ParseFromString(data[place.content : place.end])  # type: ignore[index]
    return made


_not_read: ReadExternal = no_external_data


@contextmanager
def opened(source: Source, allow_paths: Iterable[str | os.PathLike[str]]) -> Iterator[Original]:
    """Context manager that yields a model without its weights; the file stays open in the block, so that the weights
    can be read. Raises InputError if it is not a model, OSError if it cannot be read."""
    with ExitStack() as stack:
        if isinstance(source, onnx.ModelProto):
            source = source.SerializeToString()
        if isinstance(source, bytes):
            read, read_external = SourceModel(source), _not_read
        else:
            read = SourceModel(stack.enter_context(mapped(source)))
            note_references(read.locations, source)
            folder = os.path.dirname(os.path.abspath(source))
            read_external = external_reader(AllowedFolders(folder, allow_paths))
        initializers = {text(tensor.name): i for i, tensor in enumerate(read.model.graph.initializer)}
        constants = {
            text(node.output[0]): node
            for node in read.model.graph.node
            if node.op_type == "Constant" and len(node.output) == 1
        }
        model = without_weights(read.model)
        for tensor in tensors_of(model):
            if tensor.external_data and math.prod(tensor.dims) <= _SMALL_EXTERNAL:
                with suppress(InputError):
                    array = value_of(tensor, read_external)
                    if array is not None:
                        tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
        yield Original(model, read_external, read, initializers, constants)


def tensors_of(message: Message) -> Iterator[TensorProto]:
    """Yields all tensors in a message, at any depth, in the order of its fields."""
    return (tensor for tensor, _ in _placed(message, False))


def _placed(message: Message, in_graph: bool) -> Iterator[tuple[TensorProto, bool]]:
    """Yields all tensors in a message, each with True if it is an initializer of a graph; a message that is a tensor
    gives itself, with `in_graph`."""
    if isinstance(message, TensorProto):
        yield message, in_graph
        return
    for descriptor, value in message.ListFields():
        if descriptor.message_type is not None and descriptor.message_type.name in _WITH_TENSORS:
            for inside in [value] if isinstance(value, Message) else value:
                yield from _placed(inside, isinstance(message, onnx.GraphProto))


def is_missing(tensor: TensorProto) -> bool:
    """True for a tensor whose data are not in the model."""
    return bool(tensor.data_location == TensorProto.EXTERNAL)


def seeds_for(model: onnx.ModelProto, seed: int) -> dict[int, Seed]:
    """Maps the numbers of tensors in a model (their order in `tensors_of`) to seeds for their elements: the tensors of
    floating-point numbers with more than SMALL elements, and all whose data are missing."""
    never_negative = {
        node.input[place]
        for node in all_nodes(model.graph.node)
        if (place := _VARIANCES.get(node.op_type)) is not None and len(node.input) > place
    }
    found: dict[int, Seed] = {}
    for number, tensor in enumerate(tensors_of(model)):
        count = math.prod(tensor.dims)
        if not is_missing(tensor) and (count <= SMALL or not _is_float(tensor.data_type)):
            continue
        fan = max(count // max(tensor.dims[0], 1), 1) if tensor.dims else 1
        high = 2.0 ** -round(math.log2(fan) / 2)
        skip = zlib.crc32(tensor.name.encode("utf-8", "surrogatepass")) % FURTHEST
        found[number] = Seed(seed, high / 2 if tensor.name in never_negative else -high, high, skip)
    return found


def filled(
    model: onnx.ModelProto, original: Original, seeds: Mapping[int, Seed], elsewhere: PutElsewhere | None = None
) -> onnx.ModelProto:
    """Returns a copy of the model with its weights: random numbers for the tensors with a seed, the original's for
    others that lack their data.

    `elsewhere` gets each such initializer and its seed, and returns True if it has put the data elsewhere. Raises
    InputError if they are too large, of a type that cannot be made, or not found.
    """
    made = onnx.ModelProto()
    made.CopyFrom(model)
    total = 0
    for number, (tensor, in_graph) in enumerate(_placed(made, False)):
        seed = seeds.get(number)
        if seed is None and not is_missing(tensor):
            continue
        if in_graph and elsewhere is not None and elsewhere(tensor, seed):
            continue
        total += bytes_of(tensor)
        if total > MOST_WRITTEN:
            raise InputError(f"the weights of the reduced model need more than {MOST_WRITTEN} bytes")
        if seed is None:
            tensor.CopyFrom(original.tensor(tensor))
        else:
            tensor.CopyFrom(numpy_helper.from_array(_drawn(seed, tuple(tensor.dims), tensor.data_type), tensor.name))
    return made


def bytes_of(tensor: TensorProto) -> int:
    """Returns the size of a tensor's elements in bytes. Raises InputError for a type, or dimensions, that cannot be
    written."""
    if any(size < 0 for size in tensor.dims):
        raise InputError(f"'{printable(tensor.name)}' has negative dimensions")
    try:
        dtype = helper.tensor_dtype_to_np_dtype(tensor.data_type)
    except (KeyError, ValueError):
        dtype = None
    if dtype is None or dtype.kind == "O":
        raise InputError(f"'{printable(tensor.name)}' has data of a type that is not written")
    return int(math.prod(tensor.dims) * dtype.itemsize)


def _is_float(data_type: int) -> bool:
    return data_type in (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE)
