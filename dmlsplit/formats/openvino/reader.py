"""Converts the layers of an IR to judged nodes."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

from dmlsplit.descriptors.diagnostics import Position
from dmlsplit.descriptors.location import Location
from dmlsplit.formats.arguments import shapes_of
from dmlsplit.formats.files import AllowedFolders
from dmlsplit.formats.joins import JoinNode
from dmlsplit.formats.nodes import ModelNodes, OtherNode, SplitNode
from dmlsplit.formats.openvino.concats import Concat
from dmlsplit.formats.openvino.constants import Weights
from dmlsplit.formats.openvino.document import read_document
from dmlsplit.formats.openvino.graph import Graph, Layer, PortId
from dmlsplit.formats.openvino.splits import Split, path_of
from dmlsplit.formats.openvino.tensors import GivenShapes, Names, PortTensor, put_out
from dmlsplit.rules import RULES
from dmlsplit.system.errors import InputError
from dmlsplit.system.input_files import open_input
from dmlsplit.system.printable import printable

_OPERATIONS: Final = {"split": "Split", "variadicsplit": "VariadicSplit", "concat": "Concat"}
"""OpenVINO compares operation names case-insensitively."""
_OPSET: Final = re.compile(r"opset[1-9][0-9]?")
"""Operations that are the same in every opset since opset1."""


Item: TypeAlias = SplitNode | JoinNode | OtherNode


def read(
    path: str | os.PathLike[str],
    shapes: Mapping[str, Sequence[int | None]] | None = None,
    dims: Mapping[str, int] | None = None,
    allow_paths: Iterable[str | os.PathLike[str]] = (),
) -> list[SplitNode | JoinNode]:
    """Returns the Split, VariadicSplit and Concat layers of an IR of version 10 or 11, in the order of the file,
    including bodies of If, Loop and TensorIterator.

    `path` is the XML; axis and lengths are read from the .bin of the same name, which must be, after resolving links,
    in the XML's folder or in one of `allow_paths`. `shapes` gives sizes that the model leaves open, by the name of a
    tensor or layer, usually a Parameter (None for a size that stays unknown). `dims` has no effect, because an IR has
    no named sizes.

    Raises InputError, with file and line, for files that are not an IR, and for names of tensors that it does not have;
    faults of layers are in their reports.
    """
    return list(read_model(path, shapes, dims, allow_paths).judged)


def read_model(
    path: str | os.PathLike[str],
    shapes: Mapping[str, Sequence[int | None]] | None = None,
    dims: Mapping[str, int] | None = None,
    allow_paths: Iterable[str | os.PathLike[str]] = (),
    require_known_names: bool = True,
    free_dimensions: Mapping[str, int] | None = None,
) -> ModelNodes:
    """Returns the nodes that `read` returns and, as OtherNodes, the layers called Split, VariadicSplit or Concat that
    belong to extensions instead of OpenVINO's opsets; these are not judged.

    `shapes` and `allow_paths` are as in `read`. `dims` and `free_dimensions` have no effect, because an IR has no
    symbolic dimensions. With `require_known_names`, a tensor or symbol that the model does not have raises InputError;
    otherwise it is ignored. Also raises InputError for a file that cannot be read as an IR.
    """
    name = os.fspath(path)
    try:
        weights = Weights(name, AllowedFolders(os.path.dirname(name), allow_paths))
        with open_input(name) as stream:
            model = read_document(stream)
        symbols = [*(dims or ()), *(free_dimensions or ())]
        if symbols and require_known_names:
            raise InputError(f"there is no symbolic dimension '{printable(symbols[0])}'; an IR has none")
        given = GivenShapes(shapes_of(shapes))
        found = sorted(_items(model, weights, given), key=lambda item: item[0])
        of_nodes = _layer_count(model)
        if require_known_names:
            given.check_used(model)
    except InputError as error:
        raise error.in_file(name) from None
    except OSError as error:
        raise InputError(error.strerror or str(error), file=name) from None
    return ModelNodes(tuple([_in_file(item, name, i) for i, (_, item) in enumerate(found)]), of_nodes)


def _items(model: Graph, weights: Weights, given: GivenShapes) -> Iterator[tuple[Position, Item]]:
    """Yields the judged and the listed layers of the model and its bodies, each with its (line, column), not in the
    order of the file."""
    graphs, names = [model], Names()
    while graphs:
        graph = graphs.pop()
        tensors: dict[PortId, PortTensor] = {}
        for layer in graph.in_order():
            op = _OPERATIONS.get(layer.type.lower())
            if op is not None and _OPSET.fullmatch(layer.version):
                found = (
                    Concat.of(graph, layer, tensors) if op == "Concat" else Split.of(graph, layer, op, tensors, weights)
                )
                yield layer.place, found.node(names)
                tensors.update(found.put_out(given))
            else:
                if op is not None:
                    yield layer.place, _other(graph, layer)
                sources = [graph.sources.get((layer.id, port.id)) for port in layer.inputs[:1]]
                first = [tensors[source] for source in sources if source is not None]
                tensors.update(put_out(graph, layer, first[0] if first else None, given))
            graphs += layer.bodies


def _layer_count(model: Graph) -> int:
    """Returns the number of layers in the model and its bodies."""
    graphs, count = [model], 0
    while graphs:
        layers = graphs.pop().layers.values()
        count += len(layers)
        graphs += [body for layer in layers for body in layer.bodies]
    return count


def _other(graph: Graph, layer: Layer) -> OtherNode:
    operator = printable(f"{layer.version}.{layer.type}" if layer.version else layer.type, 60)
    here, judged = Location(node=path_of(graph, layer)), "Split, VariadicSplit or Concat of an opset"
    note = RULES["input/operator-not-judged"].diagnostic(
        here, f"{operator} is not judged", expected=judged, actual=operator, line=layer.line, column=layer.column
    )
    return OtherNode(layer.name, operator, note)


def _in_file(item: Item, file: str, index: int) -> Item:
    if isinstance(item, OtherNode):
        return item
    return replace(item, report=replace(item.report, file=file, index=index))
