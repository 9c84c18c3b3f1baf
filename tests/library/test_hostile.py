"""Operators of every kind, changed at random as a careless or a hostile hand would: one clear error, or an answer."""

from __future__ import annotations

import copy
import json
import lzma
import random

import pytest

import dmlsplit as dml
from dmlsplit.descriptors.any_operator import DATA_TYPE
from dmlsplit.library import ask_all
from dmlsplit.library.image import image
from tests.any_operators import DATA, accepted, any_of

BASES = [json.loads(line) for line in lzma.decompress(DATA.read_bytes()).splitlines()]
TENSOR = {"DataType": "FLOAT32", "Sizes": [1]}
VALUES = [
    *(None, True, 0, -1, 2**31, 2**32, 2**64, -(2**70), 1.5, 1e308, float("nan"), float("inf")),
    *("", "x", "NONE", "FLOAT32", "nan", "\0", "\x1b[31m", "\N{MATHEMATICAL FRAKTUR CAPITAL U}", "a" * 5000),
    *([], [[]], [None], [-1], [2**32], ["x"], [1.5], [1] * 3000, [{"Type": "ACTIVATION_RELU"}], [{"Type": "RELU"}]),
    *({}, {"Type": "BUFFER"}, {"Type": "BUFFER", "Desc": None}, {"Type": "GEMM"}, {"DataType": "FLOAT32"}),
    *({**TENSOR, "Sizes": sizes} for sizes in ([], None, [1] * 9, [2**32 - 1] * 8, [2**32], "1")),
    *({**TENSOR, "Strides": [1, 2]}, {**TENSOR, "DimensionCount": 4}, {**TENSOR, "DataType": 99}, TENSOR),
    *({"Scale": 1}, {"Scale": "x", "Bias": 0}, {"Scale": 1, "Bias": 2, "C": 3}, {"Width": 1, "Height": -1}),
    {"Type": "ACTIVATION_RELU", "Desc": {"InputTensor": TENSOR}},
]
NAMES = ["Foo", "Flags", "Desc", "Type", "Alpha", "InputTensor", "members", "__class__", "", "x" * 3000, "\x1b[2J"]


def places(value, path=()):
    """The paths to all values inside."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inside in items:
        yield (*path, key)
        yield from places(inside, (*path, key))


def changed(base, chance):
    """A value, or its name, is taken away, put in another's place, or added."""
    value = copy.deepcopy(base)
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        found = list(places(value))
        if not found:
            break
        path = chance.choice(found)
        parent = value
        for step in path[:-1]:
            parent = parent[step]
        key, new, way = path[-1], copy.deepcopy(chance.choice(VALUES)), chance.randrange(5)
        if way == 0:
            del parent[key]
        elif way == 1 and isinstance(parent, dict):
            parent[chance.choice([key.lower(), key + "s", key[1:], key.swapcase(), key + "\n", *NAMES])] = parent.pop(
                key
            )
        elif way == 2 and isinstance(parent, dict):
            parent[chance.choice(NAMES)] = new
        elif way == 2:
            parent.insert(key, new)
        else:
            parent[key] = new
    return json.dumps(value)


def is_one_line(message):
    return message.isprintable() and 0 < len(message) < 600


def read(count, seed):
    """The descriptors that are read; of all others the error is one line with its place."""
    chance, found, errors = random.Random(seed), [], []
    for text in [changed(base, chance) for base in BASES for _ in range(count)]:
        try:
            found.append(dml.loads(text))
        except dml.InputError as error:
            errors.append(error)
    assert all(is_one_line(str(error)) and (error.line, error.column) >= (1, 1) for error in errors)
    return found


def test_every_text_is_read_or_refused_by_its_place():
    found = read(6, 1)
    assert len(found) > len(BASES) / 3
    for desc in found:
        for target in ({}, {"feature_level": "2_1"}, {"directml": "1.8.0"}):
            report = dml.validate(desc, **target)
            assert all(d.location.steps for d in report.diagnostics), dml.dumps(desc)
            assert json.dumps(report.to_dict())
        assert dml.dumps(dml.loads(dml.dumps(desc))) == dml.dumps(desc)


def test_what_is_read_is_asked_without_a_crash(newest):
    """Where the library ends its process, its report says that it may."""
    asked, errors = [], []
    for desc in read(6, 2):
        try:
            image(desc)
        except ValueError as error:  # no C struct holds it
            errors.append(str(error))
        else:
            asked.append(desc)
    assert all(map(is_one_line, errors))
    answers = ask_all([*asked, accepted()[0]], newest, explain=False)
    assert answers[-1].accepted  # those before it cost it nothing
    for desc, answer in zip(asked, answers, strict=False):
        report = dml.validate(desc, directml=newest.release)
        if answer.ended_the_process:
            assert report.diagnostics, dml.dumps(desc)
            assert report.hresult is None
            assert answer.reason
            assert answer.call == "CreateOperator"
        elif report.hresult is not None:
            assert answer.hresult == report.hresult or not report.ok


TENSOR_DESC = dml.BufferTensorDesc(1, (1, 2, 3, 4))
PYTHON_VALUES = [
    *(None, True, 0, -1, 2**32, 10**400, 1.5, float("nan"), "x", "FLOAT32", b"x", "\0", 1j, object(), type, len),
    *([], [1], (1, 2), {}, {1: 2}, {1}, range(3), [[1]], [None], [TENSOR_DESC], TENSOR_DESC),
    dml.SplitOperatorDesc(None, None, 0),
    dml.AnyOperatorDesc("ACTIVATION_RELU", {}, fused=True),
]


@pytest.mark.parametrize("desc", accepted(), ids=lambda desc: any_of(desc).operator.name)
def test_members_of_any_kind(desc):
    """A descriptor is made, and is hashed and judged as any other; or the error names the member."""
    whole = any_of(desc)
    chance = random.Random(whole.operator.number)
    errors = []
    for _ in range(30):
        members = dict(whole.members)
        name = chance.choice(list(members))
        way = chance.randrange(3)
        if way == 0:
            del members[name]
        elif way == 1:
            members[chance.choice([name.lower(), name + "s", 3, None, ("a",), *NAMES])] = members.pop(name)
        else:
            members[name] = chance.choice(PYTHON_VALUES)
        try:
            made = dml.AnyOperatorDesc(whole.operator, members)
        except dml.DescriptorError as error:
            # Another name is unknown; scalars are of another type with another MinMaxDataType.
            elsewhere = way == 1 or (way == 2 and whole.operator.member(name).enum == DATA_TYPE)
            errors.append((str(error), "" if elsewhere else name))
        else:
            assert isinstance(hash(made), int)
            dml.validate(made)
    assert all(is_one_line(said) and said.startswith(name) for said, name in errors)
