"""Checks a model's nodes of ONNX Runtime's own operators against their schemas, which differ between versions.

Source: Graph::VerifyNodeAndOpMatch of ONNX Runtime's graph.cc. Observed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

import onnx

from dmlsplit.formats.onnx.protobuf import DEFAULT_DOMAINS, domain_of, text
from dmlsplit.models.onnx_nodes import name_of
from dmlsplit.models.schemas import LARGEST_OPSET
from dmlsplit.models.scope import Scope
from dmlsplit.onnxruntime.contributed_schemas import CONTRIBUTED, rows_of, schema
from dmlsplit.onnxruntime.schema_checks import Form, called, faults_of, form_of
from dmlsplit.onnxruntime.type_checks import Formal, Signature, fault_of_types, signature_of


class NotLoaded(NamedTuple):
    """The reason why some versions do not load a model: a node's path, what is wrong with the node, and the columns
    (contributed_schemas.column_of) of the versions."""

    path: str
    why: str
    columns: frozenset[int]


def is_contributed(domain: str, op_type: str, opset: int) -> bool:
    """True for an operator of ONNX Runtime's own, or one that no version has, in a model of an opset."""
    return domain == CONTRIBUTED or (domain in DEFAULT_DOMAINS and form_of(op_type, opset or LARGEST_OPSET) is None)


def not_loaded(scope: Scope) -> Iterator[NotLoaded]:
    """Yields the reasons why versions do not load a model with nodes of ONNX Runtime's own operators; `scope` is that
    of the model's graph."""
    opset = scope.origin.opset
    for index, node in enumerate(scope.graph.node):
        domain = domain_of(node)
        if is_contributed(domain, node.op_type, opset):
            rows = rows_of(domain, text(node.op_type), 1 if domain else opset or LARGEST_OPSET)
            for row, columns in rows.items():
                if why := _fault(node, scope, row):
                    yield NotLoaded(name_of(node, scope), f"{called(node)} {why}; the model is not loaded", columns)
        for _, child in scope.children(index) if node.attribute else ():
            yield from not_loaded(child)


def _fault(node: onnx.NodeProto, scope: Scope, row: int | None) -> str:
    """Returns what is wrong with a node whose operator has a row of the table, or has none; "" if nothing is."""
    if row is None:
        return "has an operator that this version does not have"
    form, signature = _schema(row)
    return next(faults_of(node, form), "") or fault_of_types(node, scope, signature)


@lru_cache(maxsize=4096)
def _schema(row: int) -> tuple[Form, Signature]:
    found = schema(row)
    types = found["types"]

    def formals(parameters: Sequence[tuple[str, str, bool]]) -> list[Formal]:
        return [
            Formal(name, option == "Variadic", alike, types.get(name, [name])) for name, option, alike in parameters
        ]

    least, most, least_outputs, most_outputs = found["counts"]
    attributes = found["attributes"]
    form = Form(
        (least, most),
        (least_outputs, most_outputs),
        tuple([option == "Single" for _, option, _ in found["inputs"]]),
        tuple([option == "Single" for _, option, _ in found["outputs"]]),
        {name: kind for name, (kind, _) in attributes.items()},
        tuple(sorted(name for name, (_, is_required) in attributes.items() if is_required)),
    )
    return form, signature_of(formals(found["inputs"]), formals(found["outputs"]), is_inferred=False)
