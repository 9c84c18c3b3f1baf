"""Checks the numbers of inputs and outputs of a model's nodes against the schemas of their operators."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, lru_cache
from typing import NamedTuple

import onnx

from dmlsplit.formats.onnx.protobuf import all_nodes, domain_of, first_output
from dmlsplit.models.functions import JUDGED
from dmlsplit.models.schemas import schema_of
from dmlsplit.models.scope import opset_of
from dmlsplit.system.errors import InputError, NotLoadedError
from dmlsplit.system.printable import printable, shortened

_LONGEST_NAME = 60
_NEWEST = 2**31 - 1


class Arity(NamedTuple):
    """The minimum and maximum numbers of inputs and outputs, and the inputs that need a name."""

    inputs: tuple[int, int]
    outputs: tuple[int, int]
    needed: tuple[bool, ...]


def check_arity(model: onnx.ModelProto) -> None:
    """Raises NotLoadedError for a node that ONNX Runtime does not load: its operator is newer than the opset, or the
    number of its inputs or outputs is wrong. Raises InputError instead if the opset is newer than the installed onnx,
    which may then not know the operator as it is.

    Split and Concat nodes, which have rules of their own, and operators without a schema are not checked.
    """
    opset = opset_of(model) or _NEWEST  # the newest opset of the domain if the model imports none
    for why in _faults(model, opset):
        if _NEWEST > opset > onnx.defs.onnx_opset_version():
            raise InputError(why)
        raise NotLoadedError(f"{why}; the model is not loaded")


def _faults(model: onnx.ModelProto, opset: int) -> Iterator[str]:
    has_schema = cache(lambda op_type: op_type not in JUDGED and onnx.defs.has(op_type, ""))
    for node in all_nodes(model.graph.node):
        if domain_of(node) != "" or not has_schema(node.op_type):
            continue
        known = _arity(node.op_type, opset)
        if known is None:
            yield f"{_called(node)} has an operator that opset {opset} does not have"
            continue
        for verb, count, (least, most) in (
            ("reads", len(node.input), known.inputs),
            ("writes", len(node.output), known.outputs),
        ):
            if not least <= count <= most:
                tensors = "tensor" if count == 1 else "tensors"
                yield f"{_called(node)} {verb} {count} {tensors}, not {_allowed(least, most)}"
        if "" in node.input and any(n and not name for name, n in zip(node.input, known.needed, strict=False)):
            yield f"{_called(node)} lacks an input"


@lru_cache(maxsize=4096)
def _arity(op_type: str, opset: int) -> Arity | None:
    schema = schema_of(op_type, opset)
    if schema is None:
        return None
    single = onnx.defs.OpSchema.FormalParameterOption.Single
    needed = tuple([parameter.option == single for parameter in schema.inputs])
    return Arity((schema.min_input, schema.max_input), (schema.min_output, schema.max_output), needed)


def _called(node: onnx.NodeProto) -> str:
    return shortened(printable(f"{node.op_type} {node.name or first_output(node)}".strip()), _LONGEST_NAME)


def _allowed(least: int, most: int) -> str:
    return f"{least}" if least == most else f"{least} or more" if most > 1000 else f"{least} to {most}"
