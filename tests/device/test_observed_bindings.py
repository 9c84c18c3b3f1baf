"""What builds answered, call by call, to 38 bindings and 7 sizes that wrap: every build's device says the same.

They did not differ in the bindings, but for the code of an invalid argument, and live tests ask all of them again
(tests/directml); a size that wraps is judged otherwise by each.
"""

from __future__ import annotations

import pytest

import dmlsplit as dml
from tests.oracle import operator, records

RECORDS = records("bindings")
BOUND = [record for record in RECORDS if "table" in record]
WRAPPING = [record for record in RECORDS if "create" in record]


def binding(record) -> dml.BindingDesc:
    if record["Desc"] is None:
        return dml.BindingDesc(record["Type"])
    members = record["Desc"]
    buffer = None if members["Buffer"] is None else dml.Buffer(members["Buffer"])
    bound = dml.BufferBinding(buffer, members["Offset"], members["SizeInBytes"])
    is_array = record["Type"] == dml.BindingType.BUFFER_ARRAY
    return dml.BindingDesc(record["Type"], dml.BufferArrayBinding([bound]) if is_array else bound)


@pytest.mark.parametrize("record", BOUND, ids=lambda record: record["name"])
def test_bindings(record):
    for release in dml.releases():
        bound_as_recorded(release, record)


def bound_as_recorded(release: dml.Release, record) -> None:
    device = dml.Device(release)
    op = device.compile_operator(device.create_operator(operator(record["desc"])))
    assert list(op.binding_properties) == record["properties"]
    if record["table"] != "00000000":
        with pytest.raises(dml.DirectMLError, match="table-too-small") as refused:
            device.create_binding_table(op, record["SizeInDescriptors"])
        assert record["table"] == "80070057"
        assert refused.value.hresult == release.invalid_argument
        return
    table = device.create_binding_table(op, record["SizeInDescriptors"])
    for side, bind in (("inputs", table.bind_inputs), ("outputs", table.bind_outputs)):
        if record[side] is not None:
            bind([binding(entry) for entry in record[side]])
            assert f"{device.get_device_removed_reason():08X}" == record["removed"][side]
    reason = device.removed_reason
    assert reason is None or (reason.hresult == 0x887A0005 and reason.errors)


@pytest.mark.parametrize("record", WRAPPING, ids=lambda record: record["name"])
def test_sizes_that_wrap(record):
    for build, expected in record["create"].items():
        device = dml.Device(build)
        try:
            hresult = device.create_operator(operator(record["desc"])).report.hresult
        except dml.DirectMLError as error:
            hresult = error.hresult
        assert f"0x{hresult:08x}" == expected


def test_the_record_is_whole():
    assert (len(BOUND), len(WRAPPING)) == (38, 7)
    assert {record["removed"]["inputs"] for record in BOUND} == {None, "00000000", "887A0005"}
