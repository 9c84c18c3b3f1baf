"""The generator is as mean as it says, and what it makes is smaller after shrinking."""

from __future__ import annotations

import functools
import random
from dataclasses import replace

import dmlsplit as dml
from dmlsplit.descriptors.diagnostics import Severity
from dmlsplit.library.image import image
from dmlsplit.rules import RULES, DescriptorRule
from tests.directml.draft import LONGEST_ARRAY, Operator, part_tensors
from tests.directml.generator import BASES, CHANGES, descriptor, generate
from tests.directml.shrink import shrink

SAMPLE = 4000
JUDGES = (
    {"directml": "tensorflow-directml-1.15.3.dev200619"},
    {"directml": "1.8.0"},
    {"directml": "1.15.4"},
    {"feature_level": "2_0"},
)
"""They see different rules broken: those of a build that takes little, of one that wraps, of the newest, of a level."""


@functools.cache
def sample():
    return [descriptor(1, index) for index in range(SAMPLE)]


def parts_and_count(desc):
    return part_tensors(desc), desc.output_count if isinstance(desc, dml.SplitOperatorDesc) else desc.input_count


def test_a_seed_repeats_its_descriptors():
    assert [descriptor(5, i) for i in range(50)] == [descriptor(5, i) for i in range(50)]
    assert [descriptor(5, i) for i in range(50)] != [descriptor(6, i) for i in range(50)]


def test_every_base_and_change_is_used():
    rng = random.Random(1)
    used = {name for _ in range(SAMPLE) for name in generate(rng).note.split(", ")}
    assert used == {function.__name__ for function in (*BASES, *CHANGES)}


def test_joins_as_often_as_splits():
    joins = sum(isinstance(desc, dml.JoinOperatorDesc) for desc in sample())
    assert 0.4 < joins / SAMPLE < 0.6


def test_some_arrays_are_shorter_than_is_said_of_them():
    rules = {rule.id for rule in RULES.values() if isinstance(rule, DescriptorRule) and rule.undefined}
    found = [{d.rule for d in dml.validate(desc).diagnostics} & rules for desc in sample()]
    assert set().union(*found) == rules
    assert 0.05 < sum(map(bool, found)) / SAMPLE < 0.15


def test_every_other_descriptor_is_pointer_safe_and_all_can_be_sent():
    assert all(image(desc) for desc in sample())
    rng = random.Random(2)
    for desc in (generate(rng).build() for _ in range(SAMPLE)):
        parts, count = parts_and_count(desc)
        assert parts is None or count <= len(parts)
        whole = desc.input_tensor if isinstance(desc, dml.SplitOperatorDesc) else desc.output_tensor
        for tensor in (whole, *(parts or ())):
            buffer = tensor and tensor.desc
            if buffer is None:
                continue
            for numbers in (buffer.sizes, buffer.strides):
                if numbers is not None and len(numbers) < buffer.dimension_count:
                    assert isinstance(desc, dml.SplitOperatorDesc)
                    assert buffer.dimension_count > LONGEST_ARRAY
        assert image(desc)


def test_every_error_is_made():
    """Most of them alone too: a rule that only ever fires beside others could be wrong unseen."""
    found, alone = set(), set()
    for desc in sample():
        for judge in JUDGES:
            rules = {d.rule for d in dml.validate(desc, **judge).errors}
            found |= rules
            alone |= rules if len(rules) == 1 else set()
    checked = [rule for rule in RULES.values() if isinstance(rule, DescriptorRule)]
    errors = {rule.id for rule in checked if rule.severity is Severity.ERROR}
    assert errors <= found
    assert len(alone) > 0.7 * len(found)


def test_both_sides_of_the_arithmetic():
    """Each wrapping arithmetic among the releases is told from every other by several descriptors."""
    names = ["1.8.0", "1.12.0", "1.13.1", "1.15.4"]
    verdicts = [tuple(dml.validate(desc, directml=name).hresult for name in names) for desc in sample()]
    for i in range(len(names) - 1):
        assert sum(v[i] != v[i + 1] for v in verdicts) >= 5


def test_a_draft_builds_what_it_was_made_of():
    for desc in sample():
        assert Operator.of(desc).build() == desc


def test_shrinking_keeps_the_fault_and_drops_the_rest():
    def misaligned(descs):
        return ["tensor/alignment-not-power-of-two" in {d.rule for d in dml.validate(desc).errors} for desc in descs]

    faulty = next(desc for desc in sample() if misaligned([desc])[0] and len(part_tensors(desc) or ()) > 2)
    small = shrink(faulty, misaligned)
    assert misaligned([small]) == [True]
    tensors = Operator.of(small).tensors
    assert len(tensors) <= 2
    assert sorted(tensor.alignment for tensor in tensors)[-2:] in ([3], [0, 3])
    assert shrink(small, misaligned) == small


def test_shrinking_keeps_a_valid_operator_valid():
    """Parts and the whole have to become smaller together."""
    desc = dml.JoinOperatorDesc.from_lengths(dml.BufferTensorDesc(5, (3, 40, 7)), 1, (11, 9, 20))
    desc = replace(desc, output_tensor=dml.TensorDesc(1, dml.BufferTensorDesc(5, (3, 40, 7), strides=(280, 7, 1))))
    small = shrink(desc, lambda descs: [dml.validate(d).ok for d in descs])
    assert small == dml.JoinOperatorDesc.from_lengths(dml.BufferTensorDesc(1, (1,)), 0, (1,))
