"""The recorded executions, through the device of every build that ran them."""

from __future__ import annotations

import numpy as np
import pytest

import dmlsplit as dml
from tests.device.conftest import Program
from tests.oracle import operator, records

EXECUTIONS = {name: records(name) for name in ("execution", "execution-join")}
RAN = [
    r for r in dml.releases() if any(r.name in record["builds"] for found in EXECUTIONS.values() for record in found)
]


@pytest.mark.parametrize("release", RAN, ids=lambda release: release.name)
@pytest.mark.parametrize("name", EXECUTIONS)
@pytest.mark.parametrize("step", [5, pytest.param(1, marks=pytest.mark.slow)], ids=["every fifth", "all"])
def test_recorded_executions(name, release, step):
    """Every byte of every buffer as the build left it, and what it refused."""
    ran = 0
    for record in EXECUTIONS[name][::step]:
        if release.name in record["builds"]:
            ran += 1
            replay(record, release)
        elif release.name in record["rejected"]:
            with pytest.raises(dml.DirectMLError) as refused:
                Program(release.name).compile(operator(record["desc"]))
            assert refused.value.hresult == int(record["rejected"][release.name], 16), record["id"]
    assert ran > 100 // step


def replay(record, release) -> None:
    """Owned inputs are overwritten after initialization, as they were when it was recorded."""
    program = Program(release.name)
    op = program.compile(operator(record["desc"]))
    buffers = []
    for text in record["before"]:
        buffers.append(dml.Buffer(len(text) // 2))
        buffers[-1].array[:] = np.frombuffer(bytes.fromhex(text), np.uint8)

    def bound(binding):
        return dml.BufferBinding(buffers[binding["buf"]], binding["off"], binding["size"])

    inputs = [bound(binding) for binding in record.get("inputs") or [record["input"]]]
    outputs = [bound(binding) for binding in record.get("outputs") or [record["output"]]]
    owned = [at is not None for at in op.persistent_offsets]
    persistent = program.initialize(op, [b if own else None for b, own in zip(inputs, owned, strict=True)])
    multiple = 4 if release.max_feature_level >= dml.FeatureLevel.FL_6_2 else 1  # the record has the exact size
    assert op.binding_properties.persistent_resource_size == -(-(record["persistent"] or 0) // multiple) * multiple
    for binding, own in zip(inputs, owned, strict=True):
        if own:
            binding.buffer.array[:] = 0xEE
    inputs = [None if own else b for b, own in zip(inputs, owned, strict=True)]
    program.device.record_dispatch(op, program.table(op, inputs, outputs, persistent))
    assert program.device.removed_reason is None, record["id"]
    assert [bytes(buffer.array).hex() for buffer in buffers] == record["after"], record["id"]
    assert program.warnings == [], record["id"]
