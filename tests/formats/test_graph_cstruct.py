"""Graphs in C memory: the layout of DirectML.h, round trips, and what is refused."""

from __future__ import annotations

import ctypes
from dataclasses import replace

import pytest

import dmlsplit as dml
from dmlsplit import graphs
from dmlsplit.formats import graph_cstruct as cstruct
from dmlsplit.rules.graph import GRAPH_RULES

GLU = graphs.EXAMPLES["graph/fused-wrongly"](False)
ADDRESSES = [0x1000 * (i + 1) for i in range(len(GLU.nodes))]
OPERATORS = dict(zip(ADDRESSES, GLU.nodes, strict=True))

LAYOUTS = {
    "DML_GRAPH_NODE_DESC": (16, {"Type": 0, "Desc": 8}),
    "DML_OPERATOR_GRAPH_NODE_DESC": (16, {"Operator": 0, "Name": 8}),
    "DML_GRAPH_EDGE_DESC": (16, {"Type": 0, "Desc": 8}),
    "DML_INPUT_GRAPH_EDGE_DESC": (24, {"GraphInputIndex": 0, "ToNodeIndex": 4, "ToNodeInputIndex": 8, "Name": 16}),
    "DML_OUTPUT_GRAPH_EDGE_DESC": (
        24,
        {"FromNodeIndex": 0, "FromNodeOutputIndex": 4, "GraphOutputIndex": 8, "Name": 16},
    ),
    "DML_INTERMEDIATE_GRAPH_EDGE_DESC": (
        24,
        {"FromNodeIndex": 0, "FromNodeOutputIndex": 4, "ToNodeIndex": 8, "ToNodeInputIndex": 12, "Name": 16},
    ),
    "DML_GRAPH_DESC": (
        72,
        {
            "InputCount": 0,
            "OutputCount": 4,
            "NodeCount": 8,
            "Nodes": 16,
            "InputEdgeCount": 24,
            "InputEdges": 32,
            "OutputEdgeCount": 40,
            "OutputEdges": 48,
            "IntermediateEdgeCount": 56,
            "IntermediateEdges": 64,
        },
    ),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_layout(name):
    struct = getattr(cstruct, name)
    size, offsets = LAYOUTS[name]
    assert ctypes.sizeof(struct) == size
    assert {field: getattr(struct, field).offset for field, _ in struct._fields_} == offsets


@pytest.mark.parametrize("rule", graphs.EXAMPLES)
@pytest.mark.parametrize("cured", [False, True])
def test_a_graph_comes_back_without_its_ends(rule, cured):
    desc = graphs.EXAMPLES[rule](cured)
    addresses = [8 * (i + 1) for i in range(len(desc.nodes))]
    memory = cstruct.write(desc, addresses)
    read = cstruct.read(memory.address, dict(zip(addresses, desc.nodes, strict=True)))
    ends = {"inputs": (None,) * len(desc.inputs), "outputs": (None,) * len(desc.outputs)}
    assert read == replace(desc, **ends)


@pytest.mark.parametrize("rule", [rule for rule in GRAPH_RULES.values() if rule.sound], ids=lambda rule: rule.id)
def test_it_is_judged_as_with_its_ends(rule):
    desc = graphs.EXAMPLES[rule.id](False)
    addresses = [8 * (i + 1) for i in range(len(desc.nodes))]
    memory = cstruct.write(desc, addresses)
    read = cstruct.read(memory.address, dict(zip(addresses, desc.nodes, strict=True)))
    assert dml.validate(read, directml=rule.examples_for) == dml.validate(desc, directml=rule.examples_for)


def test_an_operator_that_is_not_said_is_unknown():
    memory = cstruct.write(GLU, ADDRESSES)
    report = dml.validate(cstruct.read(memory.address, {ADDRESSES[0]: GLU.nodes[0]}))
    assert {d.rule for d in report.diagnostics} == {"graph/unknown"}
    assert (report.ok, report.outputs) == (True, ("unknown",))


def struct_of(memory: cstruct.CGraph) -> cstruct.DML_GRAPH_DESC:
    return cstruct.DML_GRAPH_DESC.from_address(memory.address)


def test_a_constant_is_unknown():
    memory = cstruct.write(GLU, ADDRESSES)
    cstruct.DML_GRAPH_NODE_DESC.from_address(struct_of(memory).Nodes).Type = 2
    assert cstruct.read(memory.address, OPERATORS).nodes[0].type == cstruct.NO_OPERATOR


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda struct: setattr(struct, "Nodes", 0), "^Nodes: the address is null$"),
        (lambda struct: setattr(struct, "InputEdges", 3), "^InputEdges: the address 0x3 is not a multiple of 8$"),
        (lambda struct: setattr(struct, "NodeCount", 2**32 - 1), "^NodeCount: 4294967295 is more than"),
        (lambda struct: setattr(struct, "InputCount", 2**31), "^InputCount: 2147483648 is more than"),
        (
            lambda struct: setattr(struct, "InputEdges", struct.OutputEdges),
            r"^InputEdges\[0\]\.Type: 2 is not 1$",
        ),
    ],
)
def test_what_is_no_graph_names_its_member(change, message):
    memory = cstruct.write(GLU, ADDRESSES)
    change(struct_of(memory))
    with pytest.raises(dml.DescriptorError, match=message):
        cstruct.read(memory.address, OPERATORS)


def test_a_null_address():
    with pytest.raises(dml.DescriptorError, match="DML_GRAPH_DESC: the address is null"):
        cstruct.read(0, {})


def test_an_index_far_out_costs_nothing():
    far = replace(GLU, input_edges=(graphs.InputGraphEdgeDesc(0, 0, 2**32 - 1),))
    memory = cstruct.write(far, ADDRESSES)
    assert len(cstruct.read(memory.address, {}).nodes[0].inputs) < 100


def test_every_node_has_an_address():
    with pytest.raises(ValueError, match="operators: 0 addresses are given for 3 nodes"):
        cstruct.write(GLU, [])
