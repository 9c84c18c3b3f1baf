"""Descriptors in C memory: the layout typed from the fact sheet, round trips, and what is refused."""

from __future__ import annotations

import ctypes
import gc
import re
from dataclasses import replace

import pytest
from hypothesis import given

import dmlsplit as dml
from dmlsplit.formats import cstruct
from tests.strategies import any_operator

# Spec facts 1.3: struct, sizeof, offsets.
LAYOUTS = [
    ("DML_TENSOR_DESC", 16, {"Type": 0, "Desc": 8}),
    (
        "DML_BUFFER_TENSOR_DESC",
        48,
        {
            "DataType": 0,
            "Flags": 4,
            "DimensionCount": 8,
            "Sizes": 16,
            "Strides": 24,
            "TotalTensorSizeInBytes": 32,
            "GuaranteedBaseOffsetAlignment": 40,
        },
    ),
    ("DML_OPERATOR_DESC", 16, {"Type": 0, "Desc": 8}),
    ("DML_SPLIT_OPERATOR_DESC", 32, {"InputTensor": 0, "OutputCount": 8, "OutputTensors": 16, "Axis": 24}),
    ("DML_JOIN_OPERATOR_DESC", 32, {"InputCount": 0, "InputTensors": 8, "OutputTensor": 16, "Axis": 24}),
]

X = dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, (1, 1, 6, 2), strides=(12, 12, 2, 1))
SPLIT = dml.SplitOperatorDesc.from_lengths(X, 2, (2, 1, 3))
JOIN = dml.JoinOperatorDesc.from_lengths(X, 2, (2, 1, 3))


@pytest.mark.parametrize(("name", "size", "offsets"), LAYOUTS, ids=[row[0] for row in LAYOUTS])
def test_layout(name, size, offsets):
    struct = getattr(cstruct, name, None) or cstruct.operator_struct(re.fullmatch(r"DML_(\w+)_OPERATOR_DESC", name)[1])
    assert ctypes.sizeof(struct) == size
    assert {field: getattr(struct, field).offset for field, *_ in struct._fields_} == offsets


def uint(address: int, offset: int) -> int:
    return int.from_bytes(ctypes.string_at(address + offset, 4), "little")


def pointer(address: int, offset: int) -> int:
    return int.from_bytes(ctypes.string_at(address + offset, 8), "little")


def test_bytes_of_a_split():
    """Read with nothing but offsets, as a C program would."""
    memory = cstruct.write(SPLIT)
    assert memory.type == dml.OperatorType.SPLIT
    assert uint(memory.operator_desc_address, 0) == 62
    desc = pointer(memory.operator_desc_address, 8)
    assert desc == memory.address
    assert (uint(desc, 8), uint(desc, 24)) == (3, 2)
    first, second = pointer(desc, 16), pointer(desc, 16) + 16  # by value, 16 bytes apart
    assert (uint(first, 0), uint(second, 0)) == (1, 1)
    buffer = pointer(second, 8)
    assert (uint(buffer, 0), uint(buffer, 4), uint(buffer, 8)) == (1, 0, 4)
    sizes = pointer(buffer, 16)
    assert [uint(sizes, 4 * i) for i in range(4)] == [1, 1, 1, 2]
    assert pointer(buffer, 24) == 0
    assert (pointer(buffer, 32), uint(buffer, 40)) == (8, 0)
    strides = pointer(pointer(pointer(desc, 0), 8), 24)
    assert [uint(strides, 4 * i) for i in range(4)] == [12, 12, 2, 1]


@pytest.mark.parametrize("desc", [SPLIT, JOIN], ids=["split", "join"])
def test_both_addresses_and_lifetime(desc):
    memory = cstruct.write(desc)
    gc.collect()
    assert cstruct.read(memory.operator_desc_address) == desc
    assert cstruct.read(memory.address, memory.type) == desc


def through_c(desc):
    memory = cstruct.write(desc)
    return cstruct.read(memory.operator_desc_address)


def tensor_in_c(tensor: dml.TensorDesc | None) -> dml.TensorDesc | None:
    """What C can hold of a tensor: arrays end where the count does."""
    if tensor is None or tensor.desc is None:
        return tensor
    desc, count = tensor.desc, tensor.desc.dimension_count
    sizes, strides = (None if values is None else values[:count] for values in (desc.sizes, desc.strides))
    return dml.TensorDesc(tensor.type, replace(desc, sizes=sizes, strides=strides))


def in_c(desc: dml.OperatorDesc) -> dml.OperatorDesc:
    if isinstance(desc, dml.SplitOperatorDesc):
        array = desc.output_tensors
        outputs = None if array is None else [tensor_in_c(t) for t in array[: desc.output_count]]
        return replace(desc, input_tensor=tensor_in_c(desc.input_tensor), output_tensors=outputs)
    array = desc.input_tensors
    inputs = None if array is None else [tensor_in_c(t) for t in array[: desc.input_count]]
    return replace(desc, output_tensor=tensor_in_c(desc.output_tensor), input_tensors=inputs)


def tensor_is_representable(tensor: dml.TensorDesc | None) -> bool:
    if tensor is None or tensor.desc is None:
        return True
    desc = tensor.desc
    lengths_fit = all(values is None or len(values) >= desc.dimension_count for values in (desc.sizes, desc.strides))
    return lengths_fit and desc.total_tensor_size_in_bytes is not None


def is_representable(desc: dml.OperatorDesc) -> bool:
    if isinstance(desc, dml.SplitOperatorDesc):
        whole, array, count = desc.input_tensor, desc.output_tensors, desc.output_count
    else:
        whole, array, count = desc.output_tensor, desc.input_tensors, desc.input_count
    if not tensor_is_representable(whole):
        return False
    if array is None:
        return True
    return len(array) >= count and all(t is not None and tensor_is_representable(t) for t in array[:count])


@given(any_operator())
def test_round_trip_or_refusal(desc):
    if is_representable(desc):
        assert through_c(desc) == in_c(desc)
    else:
        with pytest.raises(dml.DescriptorError, match=r"^(In|Out)put"):
            cstruct.write(desc)


def null(desc):
    return dml.TensorDesc(dml.TensorType.BUFFER, desc)


@pytest.mark.parametrize(
    "desc",
    [
        replace(SPLIT, input_tensor=None),
        replace(SPLIT, output_tensors=None, output_count=2**32 - 1),
        replace(SPLIT, input_tensor=null(None)),
        replace(SPLIT, input_tensor=replace(X, sizes=None, strides=None, dimension_count=4)),
        replace(SPLIT, input_tensor=dml.BufferTensorDesc(1, (), strides=())),
        replace(SPLIT, output_tensors=(), output_count=0),
        replace(JOIN, output_tensor=None),
        replace(JOIN, input_tensors=None),
    ],
    ids=["input", "outputs", "desc", "sizes", "empty-sizes", "empty-outputs", "join-output", "join-inputs"],
)
def test_null_and_empty_members_are_kept_apart(desc):
    assert through_c(desc) == desc


@pytest.mark.parametrize(
    ("desc", "message"),
    [
        (replace(SPLIT, output_count=4), "OutputTensors: 3 entries, but OutputCount is 4"),
        (replace(JOIN, input_count=2**32 - 1), "InputTensors: 3 entries, but InputCount is 4294967295"),
        (replace(SPLIT, output_tensors=[X, None], output_count=2), r"OutputTensors\[1\]: null cannot be written"),
        (
            replace(SPLIT, input_tensor=replace(X, sizes=(1, 1, 6))),
            "InputTensor.Sizes: 3 entries, but InputTensor.DimensionCount is 4",
        ),
        (
            replace(JOIN, output_tensor=replace(X, strides=(1,))),
            "OutputTensor.Strides: 1 entries, but OutputTensor.DimensionCount is 4",
        ),
        (
            replace(SPLIT, input_tensor=dml.BufferTensorDesc(1, (2**32 - 1,) * 3)),
            "InputTensor.TotalTensorSizeInBytes: the implied size does not fit",
        ),
        (
            replace(SPLIT, input_tensor=dml.BufferTensorDesc(1, (1,) * 65)),
            "InputTensor.DimensionCount: 65 is more than 64",
        ),
    ],
    ids=["count", "join-count", "null-entry", "sizes", "strides", "total", "dimensions"],
)
def test_write_refuses(desc, message):
    with pytest.raises(dml.DescriptorError, match=f"^{message}"):
        cstruct.write(desc)


def test_write_refuses_very_many_tensors():
    many = (dml.TensorDesc(dml.TensorType.BUFFER, X),) * (2**20 + 1)
    with pytest.raises(dml.DescriptorError, match=r"^OutputCount: 1048577 is more than 1048576"):
        cstruct.write(dml.SplitOperatorDesc(X, many, 2))


def test_write_refuses_what_is_no_descriptor():
    with pytest.raises(TypeError, match="int is not a descriptor of an operator"):
        cstruct.write(7)


def poke(address: int, offset: int, value: int, size: int) -> None:
    ctypes.memmove(address + offset, value.to_bytes(size, "little"), size)


def input_tensor(memory: cstruct.CStruct) -> int:
    return pointer(memory.address, 0)


def input_buffer(memory: cstruct.CStruct) -> int:
    return pointer(input_tensor(memory), 8)


# What a broken C program may have left: which struct, offset, value, size of the member; then the message.
BROKEN = {
    "split desc null": (lambda m: m.operator_desc_address, 8, 0, 8, "Desc: the address is null"),
    "split desc misaligned": (lambda m: m.operator_desc_address, 8, 0x1004, 8, "Desc: the address 0x1004 is not"),
    "another operator": (lambda m: m.operator_desc_address, 0, 999, 4, "Type: 999 is not an operator"),
    "input misaligned": (lambda m: m.address, 0, 0x1001, 8, "InputTensor: the address 0x1001 is not a multiple of 8"),
    "outputs misaligned": (lambda m: m.address, 16, 0x1002, 8, "OutputTensors: the address 0x1002 is not"),
    "output count": (lambda m: m.address, 8, 2**32 - 1, 4, "OutputCount: 4294967295 is more than 1048576"),
    "buffer misaligned": (input_tensor, 8, 0x1004, 8, "InputTensor.Desc: the address 0x1004 is not"),
    "sizes misaligned": (input_buffer, 16, 0x1002, 8, "InputTensor.Sizes: the address 0x1002 is not a multiple of 4"),
    "strides misaligned": (input_buffer, 24, 0x1003, 8, "InputTensor.Strides: the address 0x1003 is not"),
    "dimension count": (input_buffer, 8, 65, 4, "InputTensor.DimensionCount: 65 is more than 64"),
}


@pytest.mark.parametrize("case", BROKEN.values(), ids=BROKEN)
def test_read_refuses(case):
    where, offset, value, size, message = case
    memory = cstruct.write(SPLIT)
    poke(where(memory), offset, value, size)
    with pytest.raises(dml.DescriptorError, match=f"^{message}"):
        cstruct.read(memory.operator_desc_address)


@pytest.mark.parametrize(
    ("address", "type", "message"),
    [
        (0, None, "DML_OPERATOR_DESC: the address is null"),
        (0, dml.OperatorType.SPLIT, "DML_SPLIT_OPERATOR_DESC: the address is null"),
        (0x1001, dml.OperatorType.JOIN, "DML_JOIN_OPERATOR_DESC: the address 0x1001 is not a multiple of 8"),
        (1 << 64, None, "DML_OPERATOR_DESC: 0x10000000000000000 is not a 64-bit address"),
        (-8, None, "DML_OPERATOR_DESC: -0x8 is not a 64-bit address"),
        (8, dml.OperatorType.INVALID, "Type: 0 is not an operator"),
    ],
    ids=["null", "null split", "misaligned join", "too large", "negative", "no operator"],
)
def test_read_refuses_the_address(address, type, message):
    with pytest.raises(dml.DescriptorError, match=f"^{message}"):
        cstruct.read(address, type)
