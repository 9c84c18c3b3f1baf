"""The rules in Python and the verdict in C find the same faults at the same places, for all values of the members.

Both are taken as they are: Python's rules run on numbers without a value, each on every path that it may take; C's
functions are parsed from csrc and lifted. What one finds and the other does not is asked of z3, for each rule and
place. docs/proof.md says what is proved thereby, and what is not.
"""

import itertools
import types
from pathlib import Path

import pytest
import z3

import dmlsplit as dml
from dmlsplit.descriptors import layout
from dmlsplit.descriptors.descs import BufferTensorDesc, JoinOperatorDesc, SplitOperatorDesc, TensorDesc
from dmlsplit.descriptors.diagnostics import Basis
from dmlsplit.descriptors.enums import OperatorType, TensorDataType
from dmlsplit.descriptors.geometry import ROLES
from dmlsplit.descriptors.layout import ELEMENT_BITS
from dmlsplit.descriptors.location import Location
from dmlsplit.rules import (
    OPERATOR_RULES,
    RULES,
    Aspect,
    TensorView,
    _model,
    operator,
    strides,
    tensor,
    total_size,
)
from dmlsplit.targets.target import target_of
from dmlsplit.verdicts.validation import evaluate
from tests import verdicts_in_c
from tests.proofs import operators, tensors
from tests.proofs.lifted import Lift, Program, Undefined, Value, can_preprocess, preprocessed
from tests.proofs.symbols import UINT32, World, both, either, no

ROOT = Path(__file__).parents[2]
SOURCES = tuple(f"dms_verdict{part}.c" for part in ("", "_found", "_tensor", "_layout", "_target"))
BY = [*dml.FeatureLevel, *dml.releases()]
"""In the order of dms_targets.inc."""
SPLIT, JOIN = OperatorType.SPLIT, OperatorType.JOIN

pytestmark = pytest.mark.skipif(not can_preprocess(), reason="needs cc")


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("headers")
    return {name: preprocessed(ROOT / "csrc" / name, [ROOT / "include", ROOT / "csrc"], folder) for name in SOURCES}


@pytest.fixture(scope="module")
def program(texts):
    return Program(texts.values())


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return verdicts_in_c.load(tmp_path_factory.mktemp("verdict"))


@pytest.fixture(autouse=True)
def numbers_stay(monkeypatch):
    """int() in a rule leaves a number without a value as it is."""
    for module in (tensor, _model):
        monkeypatch.setattr(module, "int", tensors.whole_number, raising=False)


# ---- Comparing


def by_place(found, place):
    """Rule and place -> when C finds it, in the order of the calls."""
    faults = {}
    for one in found:
        key = one.rule, place(one)
        faults[key] = either(faults.get(key, False), one.guard)
        assert one.refused == (RULES[one.rule].basis is not Basis.OURS), one.rule
    return faults


def differences(world, in_c, in_python):
    """What one finds and the other does not, with values for which that is so."""
    found = []
    for key in {**in_c, **in_python}:
        c, python = in_c.get(key, False), in_python.get(key, False)
        differ = either(both(c, no(python)), both(python, no(c)))
        model = world.model(differ)
        if model is not None:
            found.append((key, world.witness(differ) or f"perhaps at {dict(model)}"))
    return found


def orders(world, in_c, in_python):
    """Pairs of faults at one place that C finds in another order than Python: the first is the one that is told."""
    keys = [key for key in in_c if key in in_python]
    at = {key: i for i, key in enumerate(in_python)}
    return [
        (one, other)
        for one, other in itertools.combinations(keys, 2)
        if one[1] == other[1] and at[one] > at[other] and world.possible(in_c[one], in_c[other])
    ]


def compare_tensor(program, case, row, monkeypatch):
    world = World()
    overlap = tensors.Overlap(z3.Bool("overlap"), z3.Bool("undecided"))
    given = tensors.tensor_of(world, case)
    found, spoilt_in_c = tensors.found_by_c(world, program, case, row, given, overlap)
    in_c = by_place(found, lambda one: one.path)
    roles = ROLES[case.kind]
    of_whole, of_parts = roles.sides(*case.target.support[case.kind])
    view = TensorView(
        (roles.whole,) if case.is_whole else (roles.parts, 0),
        tensors.python_tensor(given, case.absent),
        case.is_output,
        of_whole if case.is_whole else of_parts,
        case.target,
    )
    crash = operator_rule(case.kind, "crash")
    spoilt = dict.fromkeys(crash.spoils, True) if case.unreadable else {}
    with monkeypatch.context() as patched:
        patched.setattr(strides, "elements_overlap", lambda sizes, strides: overlap.asked(world, sizes, strides))
        in_python = tensors.found_by_python(world, view, spoilt)
    found = differences(world, in_c, in_python) + orders(world, in_c, in_python)
    bits = spoilt_in_c.alternatives[0][1]
    for aspect in operators.OF_TENSORS:
        c, python = bits.has(program.enumerators[aspect.name]), spoilt.get(aspect, False)
        if world.possible(either(both(c, no(python)), both(python, no(c)))):
            found.append(("spoilt", aspect))
    return world, in_python, found


def operator_rule(kind, name):
    return RULES[f"{kind.name.lower()}/{name}"]


def compare_operator(program, case, row):
    world = World(relates=False)
    subject = operators.subject(world, case)
    in_c = by_place(operators.found_by_c(world, program, case, row, subject), operators.place_of)
    in_python = operators.found_by_python(world, case, subject)
    return world, in_python, differences(world, in_c, in_python) + orders(world, in_c, in_python)


# ---- Tensors


def rows(*traits):
    """One target for each that differs in these, with its row of dms_targets.inc."""
    found = {}
    for number, by in enumerate(BY):
        target = target_of(by)
        found.setdefault(tuple(trait(target) for trait in traits), number)
    return list(found.values())


def support_of(kind):
    return lambda target: (target.support[kind][0].data_types, target.support[kind][0].dimension_counts)


ROWS = rows(
    lambda target: (target.arithmetic, target.total_counts_whole_elements, target.release is None),
    support_of(SPLIT),
    support_of(JOIN),
)
"""Of all targets that differ in what the rules of tensors depend on."""


def data_types(target):
    """One of each width that the target takes, one of each that it does not take, and numbers that are no type."""
    taken = target.support[SPLIT][0].data_types
    return [None, 0, *{(ELEMENT_BITS[t], t in taken): int(t) for t in TensorDataType if t}.values()]


def cases_of_tensors(number, kind, is_whole, ranks, types):
    target = target_of(BY[number])
    for rank, is_strided in itertools.product(ranks, (False, True)):
        for data_type in types or data_types(target):
            yield tensors.Case(kind, target, is_whole, rank, is_strided, data_type)
    release = target.release is not None
    for absent, unreadable in itertools.product(("tensor", "Desc", "Sizes", ""), (False, True)[: 1 + release]):
        if (absent != "tensor" or is_whole) and (absent or unreadable):
            yield tensors.Case(kind, target, is_whole, 2, False, 1, absent, unreadable)


def real(case, values):
    """The tensor with these values, in an operator with one other tensor."""

    def member(name):
        return values[name]

    made = None
    if case.absent != "tensor":
        rank = case.rank if case.rank is not None else 0
        made = TensorDesc(
            member("Type"),
            None
            if case.absent == "Desc"
            else BufferTensorDesc(
                case.data_type if case.data_type is not None else member("DataType"),
                None if case.absent == "Sizes" else [member(f"Sizes[{i}]") for i in range(rank)],
                strides=[member(f"Strides[{i}]") for i in range(rank)] if case.is_strided else None,
                flags=member("Flags"),
                total_tensor_size_in_bytes=member("TotalTensorSizeInBytes"),
                guaranteed_base_offset_alignment=member("GuaranteedBaseOffsetAlignment"),
                dimension_count=case.rank if case.rank is not None else member("DimensionCount"),
            ),
        )
    other = BufferTensorDesc(1, (1,) * max(1, min(case.rank or 1, 8)))
    whole, part = (made, other) if case.is_whole else (other, made)
    return SplitOperatorDesc(whole, [part], 0) if case.kind is SPLIT else JoinOperatorDesc([part], whole, 0)


def confirm(library, case, world, in_python):
    """Runs both sides on values for each rule and place: which are not found then."""
    missing = []
    roles = ROLES[case.kind]
    prefix = roles.whole if case.is_whole else f"{roles.parts}[0]"
    for (rule, path), formula in in_python.items():
        if rule == "tensor/output-elements-overlap":  # the search's answer is not the solver's
            continue
        values = world.witness(formula)
        if values is None:
            missing.append((rule, path))
            continue
        desc = real(case, values)
        by = case.target.release or case.target.feature_level
        found = {(d.rule, str(d.location)) for d in evaluate(desc, case.target).diagnostics}
        assert (rule, f"{prefix}.{path}" if path else prefix) in found, (rule, path, values)
        _, disagreeing = verdicts_in_c.disagreements(library, [desc], [by])
        assert disagreeing == []
    return missing


@pytest.mark.parametrize("number", ROWS, ids=lambda number: target_of(BY[number]).short_name)
@pytest.mark.parametrize(
    ("ranks", "types"),
    [
        ((1, 2), (8,)),
        pytest.param((0, 1, 2, 3, None), None, marks=[pytest.mark.slow, pytest.mark.thorough]),
        pytest.param((4,), None, marks=[pytest.mark.slow, pytest.mark.thorough]),
    ],
    ids=["ranks 1 and 2 of one type", "ranks up to 3, and above 8", "rank 4"],
)
def test_of_one_tensor(program, library, monkeypatch, number, ranks, types):
    """In each role. Each fault is confirmed, at some values, by both sides themselves, of one data type."""
    row, compared = program.tables["targets"][number], 0
    for kind, is_whole in itertools.product((SPLIT, JOIN), (True, False)):
        for case in cases_of_tensors(number, kind, is_whole, ranks, types):
            again = case.is_output is (kind is JOIN)  # the other operator has a tensor of this role, too
            if again and not case.absent and (types or (case.is_strided and case.rank in (3, 4))):
                continue
            world, in_python, found = compare_tensor(program, case, row, monkeypatch)
            assert found == [], str(case)
            compared += len(in_python)
            if case.data_type == 8 and case.rank in (1, 2, 3):
                assert confirm(library, case, world, in_python) == [], str(case)
    assert compared > 100


def test_types_differ_by_width_and_support_alone(program):
    """So that one of each stands for all in the proofs."""
    lift = Lift(World(), program)
    for data_type in TensorDataType:
        bits = lift.call("dms_element_bits", [Value([(True, int(data_type))], "unsigned int")])
        assert bits.alternatives == [(True, ELEMENT_BITS.get(data_type, 0))]
    assert ELEMENT_BITS.keys() == set(TensorDataType) - {TensorDataType.UNKNOWN}


# ---- Operators

ROWS_OF = {
    kind: rows(
        lambda target, kind=kind: (
            target.release
            and (
                target.support[kind][0].dimension_counts,
                target.release.traits.split_walks_sizes_unchecked,
                target.release.traits.split_reads_input_first,
            )
        )
    )
    for kind in (SPLIT, JOIN)
}
"""Of levels one: only what a release does first depends on the target."""


def cases_of_operators(number, kind, whole, most, ranks):
    """Operators of up to so many parts, on each axis. One or two parts have any ranks; of more, one part differs from
    the others, whose rank is the whole's. Null pointers: of the whole and one part, or of two parts."""
    target = target_of(BY[number])
    arrays = [None, *itertools.chain.from_iterable(itertools.product(ranks, repeat=n) for n in range(min(most, 2) + 1))]
    for count, at, rank in itertools.product(range(3, most + 1), range(most), ranks):
        if at < count and (rank != whole or at == 0):
            arrays.append((*(whole,) * at, rank, *(whole,) * (count - at - 1)))
    for axis, parts in itertools.product((*range(whole + 1), None), arrays):
        count = len(parts or ())
        absent = [("",) * count]
        absent += [(*("",) * i, word, *("",) * (count - i - 1)) for i in range(count) for word in ("Desc", "Sizes")]
        if count == 2:
            absent += itertools.product(("Desc", "Sizes"), repeat=2)
        for without in absent:
            for absent_whole in ("", "tensor", "Desc", "Sizes") if count <= 1 or not any(without) else ("",):
                yield operators.Case(kind, target, whole, parts, axis, absent_whole, without)


@pytest.mark.parametrize(
    ("kind", "number"),
    [
        pytest.param(kind, number, id=f"{kind.name.lower()} {target_of(BY[number]).short_name}")
        for kind in (SPLIT, JOIN)
        for number in ROWS_OF[kind]
    ],
)
@pytest.mark.parametrize(
    ("whole", "ranks", "step"),
    [
        pytest.param(2, (1, 2), 15, id="some of rank 2"),
        *(
            pytest.param(rank, (1, 2, 3, 4), None, marks=[pytest.mark.slow, pytest.mark.thorough], id=f"rank {rank}")
            for rank in (1, 2, 3, 4)
        ),
    ],
)
def test_of_an_operator(program, kind, number, whole, ranks, step):
    """Of cases with null pointers every tenth at most."""
    row, compared = program.tables["targets"][number], 0
    for at, case in enumerate(cases_of_operators(number, kind, whole, 4, ranks)):
        if at % (step or 10) and (step or case.absent_whole or any(case.absent)):
            continue
        _, in_python, found = compare_operator(program, case, row)
        assert found == [], str(case)
        compared += len(in_python)
    assert compared > 30


@pytest.mark.parametrize("kind", [SPLIT, JOIN], ids=["split", "join"])
@pytest.mark.parametrize("axis", [0, 1])
def test_rules_of_parts_look_at_one_after_the_other(kind, axis):
    """What they find of two parts is what they find of each: the proofs hand them one."""
    seen = set()
    for rank in (1, 2):
        world = World()
        case = operators.Case(kind, target_of(BY[0]), 2, (2, rank), axis)
        view = operators.view_of(case, operators.subject(world, case))
        for rule in OPERATOR_RULES[kind]:
            if rule.needs_of_parts and rule.id not in operators.TOGETHER:
                at_once = found_in(world, view, rule, [view.parts])
                alone = found_in(world, view, rule, [[part] for part in view.parts])
                assert at_once.keys() == alone.keys()
                assert not any(world.possible(formula != at_once[place]) for place, formula in alone.items())
                seen |= {rule.id} if alone else set()
    assert len(seen) == (3 if kind is SPLIT else 4)


def found_in(world, view, rule, calls):
    """Place -> when the rule finds it, where it is handed each of these lists."""
    found = {}
    for parts in calls:
        for path, places in world.paths(lambda p=parts: [str(Location(f.steps)) for f in rule.check(view, p)]):
            for place in places:
                found[place] = either(found.get(place, False), path)
    return found


# ---- What the proofs rest on


def test_aspects_of_tensors_that_operators_need():
    needed = set().union(*(r.needs_of_whole | r.needs_of_parts for rules in OPERATOR_RULES.values() for r in rules))
    assert needed - {Aspect.COMPLETE} == set(operators.OF_TENSORS)


@pytest.mark.parametrize("rank", range(5))
def test_what_stands_for_the_number_of_elements(program, rank):
    """In the proofs of operators, where products are any numbers."""
    world = World()
    given = tensors.tensor_of(world, tensors.Case(SPLIT, target_of(BY[0]), False, rank, False, 1))
    desc = tensors.c_tensor(program, given, "").members["Desc"].alternatives[0][1].array[0].alternatives[0][1]
    lift = Lift(world, program)
    counted = lift.call("dms_element_count", [tensors.pointer(program, desc)])
    stands = operators.element_count(lift, [tensors.pointer(program, desc).alternatives], True)
    for (c, v), (d, w) in itertools.product(counted.alternatives, stands.alternatives):
        one, other = (w, v) if isinstance(v, int) else (v, w)
        differ = one != other if isinstance(one, int) else one.compared(other, lambda a, b: a != b)
        assert not world.possible(c, d, differ)


@pytest.mark.parametrize("rank", [1, 2, 3, pytest.param(4, marks=pytest.mark.slow)])
def test_nested_tensors_are_not_searched(program, monkeypatch, rank):
    """Where C finds a tensor nested, Python says at once that nothing overlaps. Elsewhere, where no rule before has
    found a fault, Python says so of strides that are nested in another order, and searches else; so does C."""
    world = World()
    case = tensors.Case(SPLIT, target_of(BY[0]), False, rank, True, 1)
    given = tensors.tensor_of(world, case)
    desc = tensors.pointer(
        program, tensors.c_tensor(program, given, "").members["Desc"].alternatives[0][1].array[0].alternatives[0][1]
    )
    monkeypatch.setattr(layout, "_difference_vector_exists", lambda *given: "searched")
    monkeypatch.setattr(layout, "math", types.SimpleNamespace(prod=layout.math.prod, gcd=lambda a, b: 0))
    count, extent = layout.math.prod(given.sizes), layout.extent(given.sizes, given.strides)
    legal = [world.term(size) >= 1 for size in given.sizes]
    legal += [world.term(count) <= UINT32, world.term(count) <= world.term(extent)]
    for i in range(rank):
        large = world.term(given.sizes[i]) > 1
        legal.append(z3.Implies(large, world.term(given.strides[i]) != 0))
        for j in range(i):
            apart = world.term(given.strides[i]) != world.term(given.strides[j])
            legal.append(z3.Implies(z3.And(large, world.term(given.sizes[j]) > 1), apart))
    lift = Lift(world, program)
    is_nested = lift.truth(lift.call("dms_is_nested", [desc], both(*legal)).alternatives)
    said = {True: set(), False: set()}
    for nesting, condition in ((True, is_nested), (False, no(is_nested))):
        if not world.possible(*legal, condition):
            continue
        for _, answer in world.paths(
            lambda: layout._overlap.__wrapped__(given.sizes, given.strides), *legal, condition
        ):
            said[nesting].add(answer)
    assert said == {True: {False}, False: {False, "searched"} if rank > 1 else set()}


def test_the_first_fault_is_the_first_in_descriptor_order(program):
    """dms_found keeps the fault whose place comes first; Python sorts by the same order."""
    world = World()
    names = [one.value.strip('"') for one in program.tables["member_names"]]
    numbers = {
        name: world.number(name, 0, high)
        for name, high in (("tensor", 20), ("member", 20), ("part", 2**64 - 1), ("index", UINT32))
    }
    old = {name: world.number(f"old {name}", *world.ranges[name]) for name in numbers}
    o = program.make("dms_judged", rule="found before", **old)
    words = [Value([(True, numbers[name])], type) for name, type in PLACE]
    before = Lift(world, program).truth(
        Lift(world, program).call("comes_before", [tensors.pointer(program, o), *words]).alternatives
    )
    (a, b), earlier = (key_of(world, numbers), key_of(world, old)), False
    for one, other in reversed(list(zip(a, b, strict=True))):
        earlier = either(one < other, both(one == other, earlier))
    assert not world.possible(before != earlier)
    # Places in that order, in the one and in the other.
    for kind, roles in ROLES.items():
        entries = [None, *range(8)]
        tensors_of = [(roles.whole, None), *((roles.parts, i) for i in range(4))]
        inside = list(names[names.index("Type") :])
        places = [
            (t, i, m, e)
            for t, i in tensors_of
            for m in ("", *inside)
            for e in (entries if m in ("Sizes", "Strides") else [None])
        ]
        places += [(roles.part_count, None, "", None), (roles.parts, None, "", None), ("Axis", None, "", None)]

        def in_c(place):
            tensor, part, member, entry = place
            return (
                names.index(tensor),
                -1 if part is None else part,
                names.index(member),
                -1 if entry is None else entry,
            )

        def in_python(place):
            tensor, part, member, entry = place
            steps = [
                tensor,
                *([] if part is None else [part]),
                *([member] if member else []),
                *([] if entry is None else [entry]),
            ]
            return Location(tuple(steps)).descriptor_order

        assert sorted(places, key=in_c) == sorted(places, key=in_python), kind


PLACE = (
    ("tensor", "unsigned int"),
    ("part", "unsigned long long"),
    ("member", "unsigned int"),
    ("index", "unsigned int"),
)


def key_of(world, numbers):
    """Member, entry of the array, member inside, entry of that; an array comes before its entries."""
    tensor, part, member, index = (world.term(numbers[name]) for name, _ in PLACE)
    whole, none = z3.If(part == 2**64 - 1, -1, part), z3.If(index == UINT32, -1, index)
    return tensor, whole, member, none


def test_integers_of_128_bits_are_not_used(texts, tmp_path):
    """So compilers that have none, MSVC among them, are given the lines that are lifted here."""
    assert not [path for path in (ROOT / "csrc").rglob("*.[ch]") if "int128" in path.read_text("utf-8").lower()]
    for name, text in texts.items():
        folders = [ROOT / "include", ROOT / "csrc"]
        assert preprocessed(ROOT / "csrc" / name, folders, tmp_path, "-U__SIZEOF_INT128__") == text


# ---- The proofs find what is wrong

WRONG_IN_C = [
    ("if (t->Sizes[d] == 0) { dms", "if (t->Sizes[d] <= 1) { dms"),
    ("if (count > 4294967295U) { dms", "if (count > 4294967294U) { dms"),
    ("count > extent", "count >= extent"),
    ("t->Strides[d] == 0 && t->Sizes[d] > 1", "t->Strides[d] == 0"),
    ("t->Sizes[e] > 1 && t->Strides[e] == t->Strides[d]", "t->Strides[e] == t->Strides[d]"),
    ("total < counted", "total <= counted"),
    ("total < exact", "total <= exact"),
    ("t->TotalTensorSizeInBytes > limit", "t->TotalTensorSizeInBytes >= limit"),
    ("alignment < 16", "alignment <= 16"),
    ("alignment & (alignment - 1)", "alignment & (alignment - 2)"),
    ("low_bits(extent * bits, 35)", "low_bits(extent * bits, 34)"),
    ("67 - log2_of", "66 - log2_of"),
    ("64 - log2_of", "65 - log2_of"),
    ("extent % in_word != 0", "extent % in_word > 1"),
    (
        "(uint64_t)(t->Sizes[d] - 1) * t->Strides[d];\n    return last",
        "(t->Sizes[d] - 1) * t->Strides[d];\n    return last",
    ),
    ("spoilt |= DATA_TYPE", "spoilt |= TOTAL"),
    ("product > 2147483647", "product > 2147483646"),
    ("total > 4294967295U", "total >= 4294967295U"),
    ("t->Sizes[d] != whole->Sizes[d]", "t->Sizes[d] > whole->Sizes[d]"),
    ("d != o->op.axis && part", "part"),
    ("part->DataType != whole->DataType", "part->DataType > whole->DataType"),
    ("all ? sum !=", "all ? sum <"),
    ("o->op.axis >= whole->DimensionCount) { of", "o->op.axis > whole->DimensionCount) { of"),
]


FEW = (1, 8, 10, 21)
"""Of these, and one of Python's, in every run."""


def slowly(mutants, few):
    return [
        one if i in few else pytest.param(*one, marks=[pytest.mark.slow, pytest.mark.thorough])
        for i, one in enumerate(mutants)
    ]


@pytest.mark.parametrize(("right", "wrong"), slowly(WRONG_IN_C, FEW))
def test_what_is_wrong_in_c_is_found(texts, monkeypatch, right, wrong):
    text = {name: spaced(text) for name, text in texts.items()}
    [name] = [name for name, source in text.items() if spaced(right) in source]
    mutant = Program({**text, name: text[name].replace(spaced(right), spaced(wrong))}.values())
    try:
        found = any(proofs_of(mutant, monkeypatch))
    except Undefined:
        found = True
    assert found


def spaced(text):
    return " ".join(text.split())


def proofs_of(program, monkeypatch):
    """What differs in a few cases, one after the other."""
    table = program.tables["targets"]
    for kind, number in itertools.product((SPLIT, JOIN), (0, len(dml.FeatureLevel))):
        for axis, absent in (*itertools.product((1, None), (("", ""), ("", "Desc"))), (2, ("", ""))):
            case = operators.Case(kind, target_of(BY[number]), 2, (2, 2), axis, "", absent)
            yield compare_operator(program, case, table[number])[2]
    of_each_arithmetic = {target_of(by).arithmetic: number for number, by in enumerate(BY)}
    for number in of_each_arithmetic.values():
        for data_type in (2, None):
            case = tensors.Case(SPLIT, target_of(BY[number]), False, 2, True, data_type)
            yield compare_tensor(program, case, table[number], monkeypatch)[2]


def test_a_few_cases_of_what_is_right(program, monkeypatch):
    assert not any(proofs_of(program, monkeypatch))


@pytest.mark.parametrize(
    ("module", "name", "wrong"),
    slowly(
        [
            (tensor, "UINT_MAX", UINT32 - 1),
            (total_size, "MINIMUM_BUFFER_TENSOR_ALIGNMENT", 17),
            (total_size, "UINT_MAX", UINT32 + 1),
            (operator, "INPUT_ELEMENTS_MAX", 2**31),
        ],
        (3,),
    ),
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_what_is_wrong_in_python_is_found(program, monkeypatch, module, name, wrong):
    monkeypatch.setattr(module, name, wrong)
    assert any(proofs_of(program, monkeypatch))
