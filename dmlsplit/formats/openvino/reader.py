"""From the layers of an IR to judged SplitNodes."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from dmlsplit.errors import InputError
from dmlsplit.formats.dxdispatch.files import AllowedFolders, regular_file_size
from dmlsplit.formats.jsontext import printable
from dmlsplit.formats.nodes import SplitNode
from dmlsplit.formats.openvino.constants import Weights
from dmlsplit.formats.openvino.document import read_document
from dmlsplit.formats.openvino.graph import Graph, Layer, PortId
from dmlsplit.formats.openvino.splits import Split
from dmlsplit.formats.openvino.tensors import Given, Tensor, put_out

_OPERATIONS: Final = {"split": "Split", "variadicsplit": "VariadicSplit"}
"""OpenVINO compares the names of operations without regard to case."""
_OPSET: Final = re.compile(r"opset[1-9][0-9]?")
"""Every opset so far has Split and VariadicSplit as opset1 introduced them."""


def read(
    path: str | os.PathLike[str],
    shapes: Mapping[str, Sequence[int | None]] | None = None,
    dims: Mapping[str, int] | None = None,
    allow_paths: Iterable[str | os.PathLike[str]] = (),
) -> tuple[SplitNode, ...]:
    """The splits of an IR of version 10 or 11, in the order of the file, those in bodies of If, Loop and TensorIterator
    included.

    `path` is the XML; axis and lengths are read from the .bin of the same name, which must be, links resolved, in the
    XML's folder or in one of `allow_paths`. `shapes` gives sizes that the model leaves open: by the name of a tensor,
    or of a layer with one output, mostly a Parameter. An IR has no named sizes for `dims`.

    Raises InputError, with file and line, for what cannot be read as an IR.
    """
    name = os.fspath(path)
    try:
        regular_file_size(name)
        with open(name, "rb") as stream:
            model = read_document(stream)
        if dims:
            raise InputError(f"there is no symbolic dimension '{printable(next(iter(dims)))}'; an IR has none")
        weights = Weights(name, AllowedFolders(os.path.dirname(name), allow_paths))
        given = Given(shapes or {})
        found = list(_splits(model, weights, given))
        given.check_used(model)
    except InputError as error:
        raise error.in_file(name) from None
    except OSError as error:
        raise InputError(error.strerror or str(error), file=name) from None
    found.sort(key=lambda split: split.place)
    nodes = [split.node() for split in found]
    return tuple([replace(n, report=replace(n.report, file=name, index=i)) for i, n in enumerate(nodes)])


def _splits(model: Graph, weights: Weights, given: Given) -> Iterable[Split]:
    graphs = [model]
    while graphs:
        graph = graphs.pop()
        tensors: dict[PortId, Tensor] = {}
        for layer in graph.in_order():
            op = _operation(layer)
            if op is None:
                sources = [graph.sources.get((layer.id, port.id)) for port in layer.inputs[:1]]
                first = [tensors[source] for source in sources if source is not None]
                tensors.update(put_out(graph, layer, first[0] if first else None, given))
            else:
                split = Split.of(graph, layer, op, tensors, weights)
                yield split
                tensors.update(split.put_out(given))
            graphs += layer.bodies


def _operation(layer: Layer) -> str | None:
    """Split or VariadicSplit of an opset; None for other operations, and for those of extensions."""
    return _OPERATIONS.get(layer.type.lower()) if _OPSET.fullmatch(layer.version) else None
