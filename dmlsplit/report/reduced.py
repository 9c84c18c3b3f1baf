"""A reduced model as text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from dmlsplit.system.printable import printable

if TYPE_CHECKING:
    import onnx

    from dmlsplit.reducing.assignments import Comparison
    from dmlsplit.reducing.reduction import Reduction


def text(file: str, found: Reduction | None, machine: Comparison | None = None, nothing: str = "") -> str:
    """Returns the description of a reduced model: its class of fault, the remaining nodes, and what is known about its
    outputs. If `found` is None, the text says that nothing is wrong, in the words of `nothing`. If `machine` is given,
    lines about its differences from the prediction come first."""
    name = printable(file, None)
    lines = [] if machine is None else list(_of_machine(name, machine))
    lines += [f"{name}: {nothing or 'it has no known fault'}"] if found is None else list(_lines(name, found))
    return "".join(f"{line}\n" for line in lines)


def _of_machine(name: str, machine: Comparison) -> Iterator[str]:
    """Yields lines about the nodes that ran elsewhere on the machine than predicted."""
    beside = f", {_counted(machine.unpredicted, 'node')} not found by name" if machine.unpredicted else ""
    yield f"{name}: on the machine {_counted(machine.alike, 'node')} ran where predicted{beside}"
    for each in machine.differences:
        node = f"{printable(each.node)} ({printable(each.op)})"
        yield f"  {node}: {each.predicted} predicted, {printable(each.machine)} there"
    for count in machine.counts:
        where = f"{printable(count.op)} on {printable(count.provider)}"
        yield f"  {where}: {count.predicted} predicted, {count.machine} there"


def _lines(name: str, found: Reduction) -> Iterator[str]:
    size = f"{found.nodes} of {found.nodes_before} nodes, after {_counted(found.checks, 'check')}"
    yield f"{name}: {found.rule}: {size} ({found.runtime.judged_by})"
    if found.finding is None:
        yield "  the check reports that it is wrong; no rule explains why"
    else:
        place = f"{printable(found.finding.node)}: " if found.finding.node else ""
        yield f"  {place}{printable(found.finding.message, None)}"
    for node in found.model.graph.node:
        yield f"  {_node(node)}"
    for what, computed in (("ONNX", found.expected), ("DirectML", found.predicted)):
        if computed.why:
            yield f"  the result of {what} is not known: {printable(computed.why, None)}"
    differing = _differing(found)
    if differing:
        yield f"  DirectML and ONNX compute different values of {', '.join(map(printable, differing))}"
    if found.unclear:
        yield f"  the check could not say of {_counted(found.unclear, 'model')} whether they are wrong"
    if found.others:
        yield f"  also in the whole model: {', '.join(found.others)}"


def _node(node: onnx.NodeProto) -> str:
    inputs, outputs = (", ".join(map(printable, names)) for names in (node.input, node.output))
    return f"{outputs} = {printable(node.op_type)}({inputs})"


def _differing(found: Reduction) -> list[str]:
    """Returns the names of outputs whose predicted values on DirectML differ from ONNX's by more than a thousandth."""
    import numpy as np

    pairs = ((name, array, found.expected.arrays[name]) for name, array in found.predicted.arrays.items())
    return [name for name, array, right in pairs if not np.allclose(array, right, rtol=1e-3, atol=1e-3, equal_nan=True)]


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count != 1)}"
