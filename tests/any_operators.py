"""Descriptors of all operators: an accepted one of each, and drawn ones."""

from __future__ import annotations

import lzma
import random
import struct
from functools import cache
from pathlib import Path
from typing import Any

import dmlsplit as dml
from dmlsplit.descriptors.any_operator import SCALARS, narrowed, widened
from dmlsplit.descriptors.schema import Member, OperatorSchema, enumerators
from dmlsplit.formats import any_operator_json
from dmlsplit.formats.any_operator_json import AnyDesc

DATA = Path(__file__).parent / "data" / "operators" / "base.jsonl.xz"


@cache
def accepted() -> tuple[AnyDesc, ...]:
    """A descriptor of each operator that every build of its level accepts."""
    return tuple(map(any_operator_json.loads, lzma.decompress(DATA.read_bytes()).splitlines()))


def any_of(desc: AnyDesc) -> dml.AnyOperatorDesc:
    """The descriptor as an AnyOperatorDesc, a Split's or a Join's as well."""
    return desc if isinstance(desc, dml.AnyOperatorDesc) else dml.AnyOperatorDesc(*widened(desc))


def drawn(operator: OperatorSchema, rng: random.Random, *, fused: bool = False) -> AnyDesc:
    """A descriptor with any values in its members; arrays are as long as their counts say, or null."""
    counts = {member.count: rng.randrange(4) for member in operator.members if member.count}
    data_type = rng.choice([*SCALARS, 0, 12, 99])
    members = {
        member.name: counts[member.name]
        if member.name in counts
        else _value(member, counts.get(member.count, 0), data_type, rng, fused)
        for member in operator.members
    }
    desc = dml.AnyOperatorDesc(operator, members, fused=fused)
    return desc if fused else narrowed(desc)


def _value(member: Member, count: int, data_type: str | int, rng: random.Random, fused: bool) -> Any:
    if member.type == "tensor":
        return None if fused or rng.random() < 0.1 else _tensor(rng)
    if member.type == "enum":
        return data_type if member.enum == "DML_TENSOR_DATA_TYPE" else rng.randrange(len(enumerators(member.enum)) + 1)
    if member.type == "scalar":
        return _scalar(data_type, rng)
    numbers = {
        "uint": lambda: rng.choice([0, 1, rng.getrandbits(32), 2**32 - 1]),
        "bool": lambda: rng.choice([0, 1, 2**32 - 1]),
        "int": lambda: rng.choice([0, -1, -(2**31), 2**31 - 1]),
        "float": lambda: struct.unpack("f", struct.pack("f", rng.uniform(-9, 9) * 10.0 ** rng.randrange(-30, 30)))[0],
    }
    if member.type in numbers:
        return numbers[member.type]()
    if member.type == "size-2d":
        return numbers["uint"](), numbers["uint"]()
    if rng.random() < 0.2:
        return None
    if member.type == "scale-bias":
        return numbers["float"](), numbers["float"]()
    if member.type == "operator":
        return None if fused else _fused(rng)
    each = {
        "tensors": lambda: _tensor(rng),
        "operators": lambda: _fused(rng),
        "uints": numbers["uint"],
        "ints": numbers["int"],
        "floats": numbers["float"],
    }[member.type]
    return [each() for _ in range(count)]


def _fused(rng: random.Random) -> Any:
    name = rng.choice(["ACTIVATION_LINEAR", "ACTIVATION_RELU", "ELEMENT_WISE_CLIP", "GEMM"])
    return drawn(dml.find_operator(name), rng, fused=True)


def _scalar(data_type: str | int, rng: random.Random) -> float:
    format = SCALARS.get(data_type, "Q") if isinstance(data_type, str) else "Q"
    number = struct.unpack_from(f"<{format}", rng.randbytes(8))[0]
    return number if number == number else 0


def _tensor(rng: random.Random) -> dml.TensorDesc:
    sizes = [rng.choice([0, 1, 7, rng.getrandbits(32)]) for _ in range(rng.randrange(6))]
    desc = dml.BufferTensorDesc(
        rng.randrange(16),
        sizes,
        strides=rng.choice([None, [rng.getrandbits(32) for _ in sizes]]),
        flags=rng.randrange(3),
        total_tensor_size_in_bytes=rng.getrandbits(64),
        guaranteed_base_offset_alignment=rng.getrandbits(32),
    )
    return dml.TensorDesc(rng.choice([0, 1, 2]), rng.choice([desc, desc, desc, None]))
