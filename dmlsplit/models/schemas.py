"""The schemas of ONNX's own operators."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

from onnx import FunctionProto, defs

LARGEST_OPSET: Final = 2**31 - 1
"""The largest opset for a schema lookup, which is an int of C: it finds the newest schema."""


@lru_cache(maxsize=4096)
def schema_of(operator: str, opset: int, domain: str = "") -> Any:
    """Returns the onnx.defs.OpSchema of an operator, by default one of the default domain, at an opset; None if it does
    not exist there. Cached: the nodes of models have few different operators."""
    try:
        return defs.get_schema(operator, min(opset, LARGEST_OPSET), domain)
    except (defs.SchemaError, TypeError):  # TypeError: a negative opset beyond an int of C
        return None


def types_of(schema: Any, parameter: Any) -> frozenset[str]:
    """Returns the types, such as "tensor(float)", that a schema accepts for one of its inputs or outputs: the
    parameter's own `types` cannot be read before onnx 1.21."""
    of = {each.type_param_str: each.allowed_type_strs for each in schema.type_constraints}
    return frozenset(of.get(parameter.type_str, [parameter.type_str]))


def since(operator: str, opset: int) -> int | None:
    """Returns the opset that introduced the version of an operator that is in force in `opset`, both opsets of the
    default domain; None if `opset` has no such operator."""
    schema = schema_of(operator, opset)
    return None if schema is None else int(schema.since_version)


def body_version(schema: Any, opset: int) -> int | None:
    """Returns the opset for which the body of a schema's function was written, the newest one up to `opset`; None if
    the operator has no function there, or if `opset` has newer versions of the operators in it."""
    versions = (*schema.function_opset_versions, *schema.context_dependent_function_opset_versions)
    found = max((int(version) for version in versions if version <= opset), default=None)
    if found is None or found not in schema.function_opset_versions:
        return found
    function = FunctionProto.FromString(schema.get_function_with_opset_version(found))
    changed = any(since(node.op_type, found) != since(node.op_type, opset) for node in function.node)
    return None if changed else found
