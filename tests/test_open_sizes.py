"""The verdict for all sizes that a node leaves open: it holds where, and only where, that of the closed node does."""

import math
import random
from collections import Counter
from dataclasses import replace

import pytest

pytest.importorskip("onnx")

from dmlsplit.checking.files import judge_entry
from dmlsplit.checking.front_ends import entries_of
from dmlsplit.checking.open_sizes import answer_by
from dmlsplit.descriptors.conditions import DIMENSIONS, ELEMENTS, GREATEST_SIZE, LEAST_SIZE, THE_AXIS
from dmlsplit.formats.nodes import ModelNodes
from dmlsplit.rules.onnx import OnnxSplit
from dmlsplit.rules.openvino import OpenVinoSplit
from dmlsplit.targets.releases import releases
from dmlsplit.targets.target import Use, find_target
from tests.open_nodes import OPENVINO_TYPES, TYPES, assignment, node_of, open_facts

LEVELS = ("1_0", "2_0", "2_1", "3_0", "4_0", "5_0", "6_4")
TARGETS = [find_target(feature_level=level) for level in LEVELS] + [find_target(directml=r.name) for r in releases()]


def use_of(node, target):
    """What `check` says of a node."""
    (entry,) = entries_of("n", ModelNodes((node,)))
    return judge_entry(entry, target).node.use


def test_the_answer_is_that_of_the_closed_node(request):
    """2,000 nodes, of 100 assignments each, with --hypothesis-profile=thorough."""
    thorough = request.config.getoption("hypothesis_profile", default=None) == "thorough"
    seen = Counter()
    for seed in range(2000 if thorough else 60):
        rng = random.Random(seed)
        facts = open_facts(rng)
        node, target = node_of(facts), rng.choice(TARGETS)
        answer = answer_by(node, target)
        if answer is None:
            continue
        for _ in range(100):
            values = assignment(rng, facts)
            said = answer.use(values)
            seen[said] += 1
            if said is not Use.UNKNOWN:
                closed = use_of(node_of(facts.closed(values)), target)
                assert said is closed, (seed, target.name, facts, values, str(answer))
    assert all(seen[use] for use in (Use.AS_IT_IS, Use.REWRITTEN, Use.NOT_ASKED, Use.UNKNOWN)), seen


@pytest.mark.parametrize("seed", [*range(50), *(pytest.param(more, marks=pytest.mark.slow) for more in range(50, 200))])
def test_the_answer_for_an_open_rank_is_that_of_the_closed_node(seed):
    rng = random.Random(seed)
    facts = rng.choice([split, openvino_split])(rng)
    node, target = node_of(facts), rng.choice(TARGETS)
    answer = answer_by(node, target)
    if answer is None:
        assert not node.report.ok or node.element is None or node.element.data_type is None
        return
    for _ in range(30):
        shape = [rng.choice([0, 1, 2, 3, 4, 6, 6, 12, 300, 70000]) for _ in range(rng.randint(1, 10))]
        axis = facts.axis or 0
        if rng.random() < 0.5 and -len(shape) <= axis < len(shape):
            shape[axis] = 6
        said = answer.use(values_of(shape, axis))
        if said is not Use.UNKNOWN:
            assert said is use_of(node_of(facts.with_shapes((tuple(shape),))), target), (
                target.name,
                facts,
                shape,
                str(answer),
            )


def values_of(shape, axis):
    """The symbols of a tensor whose rank is open, for a shape."""
    return {
        THE_AXIS.name: shape[axis] if -len(shape) <= axis < len(shape) else 0,
        DIMENSIONS.name: len(shape),
        ELEMENTS.name: math.prod(shape),
        LEAST_SIZE.name: min(shape, default=1),
        GREATEST_SIZE.name: max(shape, default=1),
    }


def split(rng):
    version, axis = rng.choice([2, 11, 13, 18]), rng.randint(-4, 4)
    facts = OnnxSplit(version, 2, data_type=rng.choice(TYPES), axis=axis if version >= 11 else abs(axis))
    if rng.random() < 0.5:
        return replace(facts, num_outputs=2 if version == 18 else None)
    if version < 13:
        return replace(facts, split=(2, 4))
    return replace(facts, inputs=2, split_input=True, split_type="INT64", split_shape=(2,), split_values=(2, 4))


def openvino_split(rng):
    facts = OpenVinoSplit("Split", 2, None, rng.choice(OPENVINO_TYPES), rng.randint(-4, 4), "i64", (), num_splits=2)
    if rng.random() < 0.5:
        return facts
    return replace(
        facts, op="VariadicSplit", num_splits=None, split_lengths=rng.choice([(2, 4), (-1, 2)]),
        split_lengths_type="i64", split_lengths_shape=(2,),
    )  # fmt: skip


def test_an_open_rank_in_words():
    facts = OnnxSplit(18, 2, data_type="FLOAT", axis=-1, num_outputs=2)
    assert str(answer_by(node_of(facts), find_target(feature_level="2_0"))) == (
        "as it is (4 dimensions, sizes at least 1, the axis at least 2, at most 4,294,967,295 elements); rewritten "
        "with other numbers of dimensions; rewritten if a size is 0; not known for larger tensors: it depends on how "
        "they can be cut"
    )
    assert answer_by(node_of(facts), find_target(feature_level="3_0")).condition == (
        "1 or more dimensions, at most 8 dimensions, sizes at least 1, the axis at least 2, at most 4,294,967,295 "
        "elements"
    )
