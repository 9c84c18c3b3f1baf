"""The reason that a refusal gives holds of the descriptor, by models that know nothing of the search.

Plan: a reason has up to three clauses, one for each way (one operator; several, cut at multiples of 16 bytes; a
temporary buffer), each with one claim. CLAIMS is the table of claims, by their words; each is checked where it may
stand. What takes a list of all elements is asked of few elements only.
"""

import math
import re
from dataclasses import dataclass, replace

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

import dmlsplit as dml
from dmlsplit.descriptors.layout import ELEMENT_BITS, implied_size, packed_strides
from dmlsplit.legalize.search import rewritten
from dmlsplit.targets.target import Target
from tests.legalize.proof import tensors
from tests.legalize.search import byte_pairs, cut_everywhere, fewest_dimensions, in_elements, narrow_judge, sizes_of
from tests.strategies import faultless_operator

T = dml.TensorDataType
UINT_MAX = 2**32 - 1
NUMBER = r"(\d+)"

CLAIMS = {
    "indivisible": rf"pieces of (\w+) begin or end within {NUMBER} bits, the smallest unit that it copies",
    "dimensions": rf"{NUMBER} dimensions are left after folding, but it accepts {NUMBER}",
    "large": rf"(a size|a stride|the elements of a tensor|the elements of an input|the bytes of a tensor) would be "
    rf"{NUMBER} in elements of {NUMBER} bits, but it accepts {NUMBER}",
    "refused": r"an operator would be refused, because its ((?:In|Out)putTensors?)\S* .*",
    "many": rf"(several operators|tensors of several operators) would be more than {NUMBER}",
    "interleave": r"the elements of (\S+) interleave",
}
CUT, TOO, PACKED = (
    "cut at multiples of 16 bytes, of a part ",
    ", even with a temporary buffer",
    "a temporary buffer does not help, because ",
)


@dataclass
class Reason:
    """The claim of each way, (kind, values): the kind is the name of a row of CLAIMS."""

    one: tuple[str, tuple[str, ...]]
    cut: tuple[str, tuple[str, ...]] | None = None
    packed: tuple[str, tuple[str, ...]] | None = None


def claim(words):
    found = [(kind, match.groups()) for kind, pattern in CLAIMS.items() if (match := re.fullmatch(pattern, words))]
    assert len(found) == 1, words
    return found[0]


def reason_of(found, target):
    diagnostic = found.report.diagnostics[-1]
    assert diagnostic.rule == "legalize/no-rewriting"
    head = f"no rewriting for {target.name}: "
    assert diagnostic.message.startswith(head)
    # The words of a target may have a semicolon.
    one, *others = re.split(rf"; (?={CUT}|{PACKED}|several|tensors of)", diagnostic.message[len(head) :])
    reason = Reason(claim(one))
    for clause in others:
        if clause.startswith(PACKED):
            reason.packed = claim(clause.removeprefix(PACKED))
            assert reason.packed != reason.cut
        else:
            assert clause.startswith(CUT) != clause.startswith(("several", "tensors"))
            reason.cut = claim(clause.removeprefix(CUT).removesuffix(TOO))
            if clause.endswith(TOO):
                reason.packed = reason.cut
    return reason


def whole_and_parts(d):
    inputs, outputs = tensors(d)
    return (inputs[0], outputs) if isinstance(d, dml.SplitOperatorDesc) else (outputs[0], inputs)


def moving_types(d, target):
    """The widths in bits that the target moves, of which one is the descriptor's own or those nearest to it."""
    kind = dml.OperatorType.SPLIT if isinstance(d, dml.SplitOperatorDesc) else dml.OperatorType.JOIN
    own = whole_and_parts(d)[0].data_type
    taken = frozenset.intersection(*[row.data_types for row in target.support[kind]])
    return {ELEMENT_BITS[t] for t in taken if t == own or t in (T.UINT8, T.UINT16, T.UINT32, T.UINT64)}


def most_dimensions(d, target):
    kind = dml.OperatorType.SPLIT if isinstance(d, dml.SplitOperatorDesc) else dml.OperatorType.JOIN
    return max(frozenset.intersection(*[frozenset(row.dimension_counts) for row in target.support[kind]]))


def is_small(d):
    return ELEMENT_BITS[whole_and_parts(d)[0].data_type] >= 8 and math.prod(sizes_of(whole_and_parts(d)[0])) <= 64


def explicit_strides(d):
    """The same operator with strides in every tensor, as `cut_everywhere` reads them."""

    def tensor(desc):
        return replace(desc.desc, strides=desc.strides or packed_strides(sizes_of(desc)))

    inputs, outputs = ([tensor(x) for x in side] for side in tensors(d))
    if isinstance(d, dml.SplitOperatorDesc):
        return dml.SplitOperatorDesc(inputs[0], [x for x in outputs if 0 not in x.sizes], d.axis)
    return dml.JoinOperatorDesc([x for x in inputs if 0 not in x.sizes], outputs[0], d.axis)


def check_one(d, target, reason):
    """No single operator does the work."""
    kind, values = reason.one
    own = whole_and_parts(d)[0].data_type
    if kind == "indivisible":
        assert values[0] == T(own).name
        bits = int(values[1])
        assert bits == min(moving_types(d, target))
        if is_small(d):
            assert any(in_elements(*part, bits // 8) is None for part in byte_pairs(d))
        assert reason.cut is reason.packed is None
    elif kind == "dimensions":
        left, most = map(int, values)
        assert most == most_dimensions(d, target) < left
        if is_small(d):
            ranks = [fewest_dimensions(d, bits // 8) for bits in moving_types(d, target)]
            assert left == min(rank for rank in ranks if rank is not None)
    elif kind == "large":
        check_large(d, *values, exact=True)
    else:
        assert kind == "refused"
        assert values[0].removesuffix("s") in ("InputTensor", "OutputTensor")


def check_large(d, what, number, bits, limit, exact=False):
    """A number beyond its bound that a tensor of the descriptor has, or, of a part of it, at least reaches."""
    number, bits, limit = int(number), int(bits), int(limit)
    whole, parts = whole_and_parts(d)
    own = ELEMENT_BITS[whole.data_type]
    elements = [math.prod(sizes_of(x)) for x in (whole, *parts)]
    if what == "the bytes of a tensor":
        assert limit == UINT_MAX * bits // 8
        known = [implied_size(x.data_type, sizes_of(x), x.strides) for x in (whole, *parts) if 0 not in sizes_of(x)]
    elif what == "a stride":
        assert limit == UINT_MAX
        known = [s * own // bits for x in (whole, *parts) for s in x.strides or packed_strides(sizes_of(x))]
    else:
        assert limit == (2**31 - 1 if what == "the elements of an input" else UINT_MAX)
        known = [n * own // bits for n in elements]
    assert limit < number <= max(known)
    if exact and what != "a size":  # sizes are folded
        assert number in known


def check_cut(d, target, reason):
    """No cut at multiples of 16 bytes leads to operators that the target takes."""
    kind, values = reason.cut
    if kind == "dimensions":
        left, most = map(int, values)
        assert most_dimensions(d, target) == most < left
        assert reason.one[0] == "dimensions"
        assert left <= int(reason.one[1][0])
        if is_small(d):
            pieces = list(cut_everywhere(explicit_strides(d)))
            ranks = [[fewest_dimensions(x, bits // 8) for x in pieces] for bits in moving_types(d, target)]
            assert most < min(max(own) for own in ranks if None not in own)
    elif kind == "large":
        check_large(d, *values)
    elif kind == "many":
        assert values[1] == {"several operators": "4096", "tensors of several operators": "262144"}[values[0]]
        assert finest_cut(d) > 4096 or values[0] != "several operators"
    else:
        assert kind == "refused"


def finest_cut(d):
    """At most so many operators there are, each with what it reads back."""
    whole, parts = whole_and_parts(d)
    own = ELEMENT_BITS[whole.data_type]
    count = 2
    for i, size in enumerate(sizes_of(whole)):
        rows = [x.strides or packed_strides(sizes_of(x)) for x in (whole, *parts)]
        grain = max(16 // math.gcd(16, row[i] * own // 8) for row in rows[: 1 if i == d.axis else None])
        count *= size if i == d.axis else -(-size // grain)
    return count


def check_packed(d, target, reason):
    """The copies through a temporary buffer meet an output that interleaves, or what one operator or several meet."""
    kind, values = reason.packed
    if kind == "interleave":
        outputs = tensors(d)[1]
        name = "OutputTensors[{}]" if isinstance(d, dml.SplitOperatorDesc) else "OutputTensor"
        (output,) = [x for i, x in enumerate(outputs) if name.format(i) == values[0]]
        span, nested = 0, True
        for stride, size in sorted(zip(output.strides, sizes_of(output), strict=False)):
            if size > 1:
                nested &= stride > span
                span += (size - 1) * stride
        assert not nested
    elif kind == "dimensions":
        assert int(values[1]) == most_dimensions(d, target) < int(values[0])
    else:
        assert kind in ("large", "many", "refused")


def check(d, target):
    """The kinds of the claims, each of them checked; None where there is no refusal."""
    found = rewritten(d, target)
    if found.ok or found.report.diagnostics[-1].rule != "legalize/no-rewriting":
        return None
    reason = reason_of(found, target)
    check_one(d, target, reason)
    if reason.cut is not None:
        check_cut(d, target, reason)
    if reason.packed is not None:
        check_packed(d, target, reason)
    return reason


def kinds(reason):
    return "taken or rewritten" if reason is None else [c and c[0] for c in (reason.one, reason.cut, reason.packed)]


@st.composite
def strided_operator(draw):
    """Dimensions that do not fold; steps that are multiples of 16 bytes or not; outputs whose elements interleave."""
    data_type = draw(st.sampled_from([T.FLOAT32, T.INT64, T.FLOAT16, T.INT8]))
    rank = draw(st.integers(2, 5))
    sizes = [draw(st.sampled_from([1, 2, 2, 3])) for _ in range(rank)]
    axis = draw(st.integers(0, rank - 1))
    lengths = draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    for i in range(rank):
        if i != axis and math.prod(sizes) // sizes[axis] * sum(lengths) > 24:
            sizes[i] = 1

    def tensor(length):
        own, apart = (*sizes[:axis], length, *sizes[axis + 1 :]), 128 // ELEMENT_BITS[data_type]
        strides, run = [0] * rank, 1
        order = draw(st.permutations(range(rank)))
        if draw(st.booleans()) and (own[order[0]], own[order[1]]) == (3, 2):
            strides[order[0]], strides[order[1]], run, order = 2, 3, 8, order[2:]
        for i in order:
            strides[i] = run
            run *= own[i]
            run = -(-run // apart) * apart + draw(st.sampled_from([0, apart, apart, 1]))
        return dml.BufferTensorDesc(data_type, own, strides=draw(st.just(strides) | st.none()))

    whole, parts = tensor(sum(lengths)), [tensor(length) for length in lengths]
    if draw(st.booleans()):
        return dml.SplitOperatorDesc(whole, parts, axis)
    return dml.JoinOperatorDesc(parts, whole, axis)


TYPES = st.sampled_from([(T.UINT32,), (T.UINT16, T.UINT32), (T.UINT8, T.UINT16), (T.UINT8, T.UINT32, T.UINT64)])


@pytest.mark.slow
@settings(max_examples=600, deadline=None)
@given(strided_operator(), st.integers(1, 3), TYPES)
def test_too_many_dimensions(d, most, data_types):
    event(str(kinds(check(d, narrow_judge(most, data_types)))))


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(faultless_operator(max_elements=24), st.sampled_from([dml.FeatureLevel.FL_1_0, dml.FeatureLevel.FL_2_1]))
def test_levels(d, level):
    event(str(kinds(check(d, Target(level)))))


@st.composite
def large_operator(draw):
    """Numbers about the bounds of sizes, strides, elements and bytes."""
    data_type = draw(st.sampled_from([T.FLOAT32, T.INT64, T.UINT8]))
    rank = draw(st.integers(1, 3))
    sizes = [draw(st.sampled_from([1, 3, 16, 2**10, 2**16, 2**20 + 1, 2**31 - 3, 2**32 - 1])) for _ in range(rank)]
    axis = draw(st.integers(0, rank - 1))
    first = draw(st.integers(0, sizes[axis] - 1))
    lengths = [first, sizes[axis] - first] if first else [sizes[axis]]

    def tensor(length):
        own = (*sizes[:axis], length, *sizes[axis + 1 :])
        strides = list(packed_strides(own))
        if draw(st.booleans()) and strides[0] <= 2**30:
            strides[0] = draw(st.sampled_from([strides[0] + 1, strides[0] + 16, 2**31, 2**32 - 1]))
        return dml.BufferTensorDesc(data_type, own, strides=strides if max(strides) <= UINT_MAX else None)

    whole, parts = tensor(sum(lengths)), [tensor(length) for length in lengths]
    if draw(st.booleans()):
        return dml.SplitOperatorDesc(whole, parts, axis)
    return dml.JoinOperatorDesc(parts, whole, axis)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(large_operator(), st.sampled_from(["1_0", "2_1", "3_0", "4_1", "6_4"]))
def test_large_numbers(d, level):
    event(str(kinds(check(d, Target(dml.FeatureLevel.parse(level))))))


def copy(output_strides, sizes=(2, 2, 2, 2, 2, 3)):
    whole = dml.BufferTensorDesc(T.FLOAT32, sizes)
    return dml.SplitOperatorDesc(whole, [dml.BufferTensorDesc(T.FLOAT32, sizes, strides=output_strides)], 0)


@pytest.mark.parametrize(
    ("strides", "left"),
    [
        ((404, 101, 37, 11, 3, 2), 5),  # dimension 0 steps 192 and 1,616 bytes
        ((405, 101, 37, 11, 3, 2), 6),  # 1,620 bytes
        ((808, 404, 37, 11, 3, 2), None),  # dimension 1 steps 96 and 1,616 bytes, too: four are left
    ],
)
def test_what_is_left_after_cutting(strides, left):
    """Level 1_0 takes four dimensions. Those that step by multiples of 16 bytes in both tensors are cut away."""
    target = Target(dml.FeatureLevel.FL_1_0)
    reason = check(copy(strides), target)
    if left is None:
        assert reason is None
        return
    assert reason.cut == ("dimensions", (str(left), "4"))
    assert reason.packed == ("interleave", ("OutputTensors[0]",))


def test_a_target_whose_copies_take_fewer_dimensions():
    """As older builds do: a copy, which is a split, of as many dimensions as a join may have is refused."""
    target = narrow_judge(3, (T.UINT32,))
    copies = narrow_judge(2, (T.UINT32,))
    target.support = {**target.support, dml.OperatorType.SPLIT: copies.support[dml.OperatorType.SPLIT]}
    part = dml.BufferTensorDesc(T.FLOAT32, (2, 2, 2, 2), strides=(151, 67, 25, 9))
    d = dml.JoinOperatorDesc([part, part], dml.BufferTensorDesc(T.FLOAT32, (2, 2, 2, 4)), 3)
    assert check(d, target).packed[0] == "refused"
