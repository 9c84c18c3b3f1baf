"""What rules say of nodes, descriptors and bindings that are one change beside an example, as was recorded: some
40,000, on both sides of what each rule bounds.

python -m tests.rules.test_beside          writes the record again, and says how it differs from the one before

A line for each kind of difference, with its number and the first place:

    + RULE           a diagnostic that an answer did not have; - RULE: one that it has no more; ~ RULE: another order
    + all EXAMPLE    the answers beside a new example; - all EXAMPLE: beside one that is no more
    + all others     answers beside examples that were there, to which a new example gives other values to vary
"""

import itertools
import json
import lzma
from collections import defaultdict
from difflib import SequenceMatcher
from functools import cache
from pathlib import Path
from zlib import crc32

import pytest

import dmlsplit as dml
from dmlsplit.descriptors.location import Location
from dmlsplit.rules import RULES, BindingSlot, BindingView, BufferRange, SlotKind, judge_node, valid_where
from dmlsplit.rules._model import findings_of
from dmlsplit.rules._windows import WINDOWS
from dmlsplit.rules.any_operator import AnyOperatorRule
from dmlsplit.rules.binding import BINDING_RULES
from tests.rules.any_operators import FAULTY, bases
from tests.rules.beside import nodes_beside, operators_beside, pool_of
from tests.rules.judging import JUDGING, NODES_JUDGING

RECORD = Path(__file__).parents[1] / "data" / "rules" / "beside.json.xz"
TARGETS = ({}, {"directml": "1.15.4"}, {"feature_level": "3_0"}, {"directml": "1.0.200610"})
RELEASES = ("tensorflow-directml-1.15.3.dev200619", "1.4.0", "1.8.0", "1.12.0", "1.15.4")
EVERY = 6
"""So many operators are one of them here, as most are judged by the same few rules."""
OF_NODES = ("axis_index", "rank", "lengths", "output_shapes", "output_shape", "whole", "parts", "least_rank", "count")
"""What follows from a node's facts."""


def said(diagnostics):
    return [[d.rule, d.path, str(d.severity), d.expected, d.actual, d.message] for d in diagnostics]


def of_nodes(framework):
    """What is judged of each node, the sizes for which it is right, and what its facts give."""
    rules = [rule for rule in NODES_JUDGING if type(rule.bad).__name__ == framework]
    pool, seen = pool_of([example for rule in rules for example in (rule.good, rule.bad)]), set()
    for rule in rules:
        for example in (rule.good, rule.bad):
            for name, node in nodes_beside(example, pool):
                if repr(node) not in seen:
                    seen.add(repr(node))
                    facts = [str(getattr(node, of, "")) for of in OF_NODES]
                    yield f"{rule.id} {name}", [said(judge_node(node, "n")), [*map(str, valid_where(node))], facts]


def of_descriptors(examples):
    """What is judged of each descriptor, by the target of its example; where that is None, by a release that depends on
    the descriptor alone, so that a new rule changes no other's answers."""
    seen = set()
    for label, desc, target in examples:
        for name, other in operators_beside(desc):
            if (repr(other), str(target)) not in seen:
                seen.add((repr(other), str(target)))
                release = RELEASES[crc32(repr(other).encode()) % len(RELEASES)]
                by = {"directml": release} if target is None else target
                report = dml.validate(other, **by)
                yield f"{label} {name}", [said(report.diagnostics), report.ok, report.hresult]


def of_rules(rules):
    return of_descriptors(
        (rule.id, example(), rule.target_of_examples) for rule in rules for example in (rule.good, rule.bad)
    )


def of_bases():
    made = bases()
    chosen = dict.fromkeys([*sorted(WINDOWS), *sorted(made)[::EVERY]])
    return of_descriptors((name, made[name], TARGETS[i % len(TARGETS)]) for i, name in enumerate(chosen))


def of_bindings():
    """Every kind of place, every type of binding, and ranges around what a tensor of 48 bytes needs."""
    of_tensor = {"size": 48, "alignment": 16}
    sizes = [
        (64, 0, 48),
        (64, 16, 48),
        (64, 16, 49),
        (64, 0, 47),
        (64, 8, 48),
        (64, 2**64 - 16, 48),
        (64, 32, 2**64 - 16),
    ]
    sizes += [(64, 2**64 - 64, 64), (64, 2**64 - 16, 96), (None, 0, 0), (None, 16, 0), (None, 0, 16)]
    bound = [(), *[(BufferRange(*size),) for size in sizes], (BufferRange(64, 0, 48), BufferRange(None, 0, 0))]
    for kind, misreads, type, is_null in itertools.product(SlotKind, (False, True), range(4), (False, True)):
        slot = BindingSlot("it", kind, **of_tensor, why="why", misreads_array=misreads)
        for entries, ranges in itertools.product(((), (slot._replace(kind=SlotKind.BUFFER),)), bound):
            if type != 1 or len(ranges) == 1 or is_null:
                view = BindingView(Location(), slot._replace(entries=entries), type, is_null, ranges)
                found = findings_of(BINDING_RULES, view)
                yield (
                    f"{kind.name} {misreads} {type} {is_null} {len(entries)}",
                    [
                        [rule.id, finding.steps, finding.expected, finding.actual]
                        for rule, all in found
                        for finding in all
                    ],
                )


GROUPS = {
    **{name: lambda name=name: of_nodes(name) for name in {type(rule.bad).__name__: None for rule in NODES_JUDGING}},
    "tensors": lambda: of_rules([rule for rule in JUDGING if rule.scope == "tensor"]),
    "operators": lambda: of_rules([rule for rule in JUDGING if rule.scope != "tensor"]),
    "any operator": lambda: of_rules([rule for rule in RULES.values() if isinstance(rule, AnyOperatorRule)]),
    "faults of any operator": lambda: of_descriptors(
        (f"{i} {rule}", desc, target) for i, (desc, target, rule, _) in enumerate(FAULTY)
    ),
    "operators without a fault": of_bases,
    "two faults, by releases": lambda: of_descriptors((rule.id, rule.bad(), None) for rule in JUDGING),
    "bindings": of_bindings,
}


def judged(name):
    """By example and what is changed there: the answers, in order."""
    found = defaultdict(list)
    for key, answer in GROUPS[name]():
        found[key].append(answer)
    return json.loads(json.dumps(found))


@cache
def recorded():
    with lzma.open(RECORD, "rt", encoding="utf-8") as file:
        return json.load(file)


def differing(now, before):
    """Where two records differ: the key, the number among its answers, and the two answers, None for one that the other
    record has between equal ones."""
    for key in dict.fromkeys([*before, *now]):
        after, was = now.get(key, ()), before.get(key, ())
        if after == was:
            continue
        texts = [list(map(json.dumps, each)) for each in (was, after)]
        for tag, begin, end, new_begin, new_end in SequenceMatcher(None, *texts, autojunk=False).get_opcodes():
            if tag != "equal":
                pairs = itertools.zip_longest(after[new_begin:new_end], was[begin:end])
                yield from ((key, new_begin + i, *pair) for i, pair in enumerate(pairs))


def statements(answer):
    """The parts of an answer, in JSON: a diagnostic is one."""
    if isinstance(answer, list) and not (answer and isinstance(answer[0], str)):
        return [part for each in answer for part in statements(each)]
    return [json.dumps(answer)]


def changes(now, before):
    """A line for each kind of difference between two records, as the module documents them."""
    examples = [{key.split()[0] for key in record} for record in (now, before)]
    found = {}
    for key, i, *answers in differing(now, before):
        if None in answers:
            sign = "+ all" if answers[1] is None else "- all"
            example = key.split()[0]
            about = "others" if all(example in known for known in examples) else example
            found.setdefault((sign, about), []).append(f"{key} {i}")
            continue
        after, was = map(statements, answers)
        parts = [
            *[("-", each) for each in was if each not in after],
            *[("+", each) for each in after if each not in was],
        ]
        for sign, part in parts or [("~", after[0])]:
            found.setdefault((sign, part.split(",")[0].strip('["]')), []).append(f"{key} {i}: {part}")
    for (sign, about), places in found.items():
        yield f"{sign} {about}: {len(places)}, first {places[0]}"


@pytest.mark.parametrize("name", GROUPS)
def test_what_is_said_beside_examples(name):
    now = judged(name)
    assert sum(map(len, now.values())) > 500
    found = list(changes(now, recorded()[name]))
    if found:
        pytest.fail("\n".join([*found, "python -m tests.rules.test_beside writes the record"]), pytrace=False)


def test_differences_of_a_kind_are_one_line():
    old, new = ["a/b", "p", "error", "2", "1", "is 1"], ["c/d", "p", "warning", "3", "1", "is 1"]
    before = {"x y": [[[old], True, 0], [[], True, 0]], "z": [[[old, new], True, 0]]}
    now = {"x y": [[[old, new], True, 0], [[new], True, 0], [[], True, 0]], "z": [[[new, old], True, 0]], "e f": [[[]]]}
    assert list(changes(now, before)) == [
        f"+ c/d: 1, first x y 0: {json.dumps(new)}",
        "+ all others: 1, first x y 1",
        f"~ c/d: 1, first z 0: {json.dumps(new)}",
        "+ all e: 1, first e f 0",
    ]
    assert list(changes({"x": [[["a/b", "size"]]]}, {"x": [[]], "g": [[]]})) == [
        '+ a/b: 1, first x 0: ["a/b", "size"]',
        "- all g: 1, first g 0",
    ]


def test_answers_between_others_shift_none():
    """A new example's values are varied beside all examples, in the middle of theirs."""
    before = {"x y": [[["a/b", "p"]], [["c/d", "p"]], []]}
    now = {"x y": [[["a/b", "p"]], [["e/f", "p"]], [["c/d", "p"]], []]}
    assert list(changes(now, before)) == ["+ all others: 1, first x y 1"]


if __name__ == "__main__":
    record = {name: judged(name) for name in GROUPS}
    for name, now in record.items():
        for line in changes(now, recorded().get(name, {}) if RECORD.exists() else {}):
            print(f"{name}: {line}")
    with lzma.open(RECORD, "wt", encoding="utf-8", preset=9) as file:
        json.dump(record, file)
