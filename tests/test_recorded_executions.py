"""Splits and joins that Microsoft's library executed: every byte of every buffer, before and after.

An input with OWNED_BY_DML was copied when the operator was initialised, and its buffer filled with 0xEE afterwards; the
direct path takes such an input like any other, so it is given the copy.
"""

import pytest

import dmlsplit as dml
from dmlsplit.native import reference
from tests.oracle import operator, records

SPLITS, JOINS = records("execution"), records("execution-join")


def owned(record):
    desc = record["desc"]
    tensors = [desc["InputTensor"]] if desc["op"] == "SPLIT" else desc["InputTensors"]
    return [tensor["Desc"]["Flags"] == 1 for tensor in tensors]


def run_compiled(desc, inputs, outputs):
    op = dml.compile(desc)
    memory = [memoryview(m.data)[m.offset : m.offset + size] for m, size in inputs + outputs]
    inputs, outputs = memory[: len(inputs)], memory[len(inputs) :]
    if isinstance(desc, dml.SplitOperatorDesc):
        op.dispatch(inputs[0], out=outputs)
    else:
        op.dispatch(inputs, out=outputs[0])


def run_reference(desc, inputs, outputs):
    inputs, outputs = [m for m, _ in inputs], [m for m, _ in outputs]
    if isinstance(desc, dml.SplitOperatorDesc):
        reference.split(desc, inputs[0], outputs)
    else:
        reference.join(desc, inputs, outputs[0])


@pytest.mark.parametrize("run", [run_compiled, run_reference])
@pytest.mark.parametrize("recorded", [SPLITS, JOINS], ids=["split", "join"])
def test_every_byte_agrees(run, recorded):
    assert len(recorded) in (600, 400)
    for record in recorded:
        desc = operator(record["desc"])
        assert dml.validate(desc).ok, record["id"]
        buffers = [bytearray.fromhex(text) for text in record["before"]]
        bindings = record.get("inputs") or [record["input"]]
        inputs = []
        for binding, is_owned in zip(bindings, owned(record), strict=True):
            source = buffers[binding["buf"]]
            if is_owned:
                buffers[binding["buf"]] = bytearray(b"\xee" * len(source))
            inputs.append((reference.Memory(source, binding["off"]), binding["size"]))
        outputs = [
            (reference.Memory(buffers[binding["buf"]], binding["off"]), binding["size"])
            for binding in record.get("outputs") or [record["output"]]
        ]
        run(desc, inputs, outputs)
        assert [buffer.hex() for buffer in buffers] == record["after"], record["id"]
