"""An operator, by the rules in Python and by judge() in C: formulas of the faults that each finds.

Any tensor may have any faults of its own: which ones spoil it is as free as the values.
"""

from __future__ import annotations

import itertools
import math
from typing import Any, NamedTuple

import z3

from dmlsplit.descriptors.descs import JoinOperatorDesc, SplitOperatorDesc
from dmlsplit.descriptors.diagnostics import Severity
from dmlsplit.descriptors.enums import OperatorType
from dmlsplit.descriptors.location import Location
from dmlsplit.rules import CRASH_RULES, Aspect, OperatorView, TensorView
from dmlsplit.targets.target import Target
from dmlsplit.verdicts.validation import _operator_checks
from tests.proofs import tensors
from tests.proofs.lifted import Bits, Cell, Lift, Pointer, Program, Value
from tests.proofs.symbols import UINT32, Formula, Number, World, both, either, no
from tests.proofs.tensors import Faults, Found, Tensor

OF_TENSORS = (Aspect.DESC, Aspect.DATA_TYPE, Aspect.DIMENSION_COUNT, Aspect.SIZES, Aspect.ELEMENT_COUNT)
"""What rules of operators need of a tensor, of what its own rules may spoil."""
TOGETHER = {"split/axis-sizes-sum", "join/axis-sizes-sum"}
"""The rules that look at several parts at once; the others look at one after the other."""


class Case(NamedTuple):
    """What is the same in all values of a proof."""

    kind: OperatorType
    target: Target
    whole: int
    """The number of its dimensions."""
    parts: tuple[int, ...] | None
    """Theirs; None: the array is a null pointer, of a count of 1."""
    axis: int | None
    """None: any number above 4."""
    absent_whole: str = ""
    absent: tuple[str, ...] = ()
    """Of each part, the pointer that is null."""

    def __str__(self) -> str:
        words = [self.target.short_name, self.kind.name.lower(), f"{self.whole}:{self.parts} on {self.axis}"]
        return ", ".join(
            [*words, *[f"no {self.absent_whole} of the whole"] * bool(self.absent_whole), *filter(None, self.absent)]
        )


class Subject(NamedTuple):
    """Members without values, and what is wrong with the tensors by themselves."""

    axis: Any
    whole: Tensor
    parts: tuple[Tensor, ...]
    spoilt: tuple[dict[Aspect, Formula], ...]
    """Of the whole and of each part."""


def subject(world: World, case: Case) -> Subject:
    def tensor(prefix: str, rank: int, absent: str) -> Tensor:
        return Tensor(
            1,
            world.number(f"{prefix}DataType", 0, UINT32),
            0,
            rank,
            None if absent == "Sizes" else tuple([world.number(f"{prefix}Sizes[{i}]", 0, UINT32) for i in range(rank)]),
            None,
            0,
            0,
        )

    def spoilt(prefix: str, rank: int, absent: str) -> dict[Aspect, Formula]:
        found: dict[Aspect, Formula] = {aspect: z3.Bool(f"{prefix}{aspect.name}") for aspect in OF_TENSORS}
        if absent in ("tensor", "Desc"):
            found[Aspect.DESC] = True
        if absent == "Sizes":
            found[Aspect.SIZES] = no(found[Aspect.DESC])
        found[Aspect.DIMENSION_COUNT] = both(no(found[Aspect.DESC]), rank == 0)
        return found

    absent = case.absent or ("",) * len(case.parts or ())
    return Subject(
        case.axis if case.axis is not None else world.number("Axis", 5, UINT32),
        tensor("whole.", case.whole, case.absent_whole),
        tuple([tensor(f"{i}.", rank, absent[i]) for i, rank in enumerate(case.parts or ())]),
        (
            spoilt("whole.", case.whole, case.absent_whole),
            *[spoilt(f"{i}.", rank, absent[i]) for i, rank in enumerate(case.parts or ())],
        ),
    )


# ---- Python


def view_of(case: Case, subject: Subject) -> OperatorView:
    absent = case.absent or ("",) * len(subject.parts)
    whole = tensors.python_tensor(subject.whole, case.absent_whole)
    parts = None if case.parts is None else tuple(map(tensors.python_tensor, subject.parts, absent))
    count = 1 if parts is None else len(parts)
    put = object.__setattr__
    if case.kind is OperatorType.SPLIT:
        split = object.__new__(SplitOperatorDesc)
        values = {"input_tensor": whole, "output_tensors": parts, "axis": subject.axis, "output_count": count}
        for name, value in values.items():
            put(split, name, value)
        return OperatorView(split, case.target)
    join = object.__new__(JoinOperatorDesc)
    values = {"input_tensors": parts, "output_tensor": whole, "axis": subject.axis, "input_count": count}
    for name, value in values.items():
        put(join, name, value)
    return OperatorView(join, case.target)


class _Run:
    """The rules of an operator one after the other, as _run_operator_rules runs them."""

    def __init__(self, world: World, operator: OperatorView, subject: Subject) -> None:
        self.world, self.operator = world, operator
        self.faults: Faults = {}
        self.spoilt: dict[Any, dict[Aspect, Formula]] = {None: {}}
        for view, spoilt in zip((operator.whole, *operator.parts), subject.spoilt, strict=True):
            self.spoilt[view.steps] = spoilt

    def lacks(self, view: TensorView | None, needs: Any) -> Formula:
        spoilt = self.spoilt[None if view is None else view.steps]
        return either(*(spoilt.get(aspect, False) for aspect in needs))

    def calls(self, rule: Any) -> Any:
        """The lists of parts that the rule may be handed, each with its condition."""
        parts = self.operator.parts
        if not rule.needs_of_parts:
            yield True, parts
        elif rule.id not in TOGETHER:
            for part in parts:
                yield no(self.lacks(part, rule.needs_of_parts)), [part]
        else:
            for chosen in itertools.product((True, False), repeat=len(parts)):
                if rule.needs_all_parts and not all(chosen):
                    continue
                conditions = [self.lacks(p, rule.needs_of_parts) for p in parts]
                yield (
                    both(*(no(c) if sound else c for c, sound in zip(conditions, chosen, strict=True))),
                    [part for part, sound in zip(parts, chosen, strict=True) if sound],
                )

    def run(self, rule: Any, check: Any) -> None:
        applies = both(no(self.lacks(None, rule.needs)), no(self.lacks(self.operator.whole, rule.needs_of_whole)))
        found: dict[Any, Formula] = {}
        for condition, parts in list(self.calls(rule)):
            given = both(applies, condition)
            if not self.world.possible(given):
                continue

            def each(parts: Any = parts) -> list[Any]:
                return [(f.steps, None if f.tensor is None else f.tensor.steps) for f in check(self.operator, parts)]

            for path, places in self.world.paths(each, given):
                for place in places:
                    found[place] = either(found.get(place, False), path)
        for (steps, tensor), formula in found.items():
            for aspect in rule.spoils:
                spoilt = self.spoilt[tensor]
                spoilt[aspect] = either(spoilt.get(aspect, False), formula)
            if rule.severity is Severity.ERROR:
                self.faults[rule.id, str(Location(steps))] = formula


def found_by_python(world: World, case: Case, subject: Subject) -> Faults:
    operator = view_of(case, subject)
    run = _Run(world, operator, subject)
    if case.target.release is not None:
        rule = CRASH_RULES[case.kind]
        run.run(rule, rule.check)
    for rule, check in _operator_checks(case.kind, True):
        run.run(rule, check)
    return run.faults


# ---- C


def element_count(lift: Lift, given: Any, guard: Formula) -> Value:
    """What dms_element_count is, as is proved of it: the product of the sizes where that has 32 bits."""
    at = lift.one(given[0], guard)
    desc = lift.one(at.array[at.index].alternatives, guard).members
    rank, sizes = (lift.one(desc[name].alternatives, guard) for name in ("DimensionCount", "Sizes"))
    count = math.prod([lift.one(cell.alternatives, guard) for cell in sizes.array[:rank]]) if rank else 1
    large = count.compared(UINT32, lambda a, b: a > b) if isinstance(count, Number) else count > UINT32
    each = [(large, tensors.UINT64), (no(large), count)]
    return Value([(condition, value) for condition, value in each if condition is not False], "unsigned long long")


def found_by_c(world: World, program: Program, case: Case, row: Any, subject: Subject) -> list[Found]:
    found: list[Found] = []
    members = program.enumerators
    wholes = (members["INPUT_TENSOR"], members["OUTPUT_TENSOR"])

    def judge_tensor(lift: Lift, given: Any, guard: Formula) -> Value:
        """What the tensor's own rules leave, whatever they find."""
        at = lift.one(given[1], guard)
        place = lift.one(at.array[at.index].alternatives, guard).members
        whole = lift.one(place["tensor"].alternatives, guard) in wholes
        part = None if whole else lift.one(place["part"].alternatives, guard)
        spoilt = subject.spoilt[0 if whole else 1 + part]
        own = Bits({members[aspect.name]: formula for aspect, formula in spoilt.items() if aspect in OF_TENSORS})
        for condition, value in given[3]:
            own = own | Bits.of(value).under(condition)
        return Value([(True, own)], "unsigned int")

    instead = {
        "dms_found": tensors.noting(program, found),
        "dms_judge_tensor": judge_tensor,
        "dms_element_count": element_count,
    }
    lift = Lift(world, program, instead)
    o = tensors.judged(program, tensors.Case(case.kind, case.target, True, None, False, None), row)
    op = o.members["op"].alternatives[0][1].members
    absent = case.absent or ("",) * len(subject.parts)
    parts = [tensors.c_tensor(program, t, a) for t, a in zip(subject.parts, absent, strict=True)]
    op["count"].alternatives = [(True, 1 if case.parts is None else len(parts))]
    op["axis"].alternatives = [(True, subject.axis)]
    if case.absent_whole != "tensor":
        whole = tensors.c_tensor(program, subject.whole, case.absent_whole)
        op["whole"].alternatives = tensors.pointer(program, whole).alternatives
    if case.parts is not None:
        cells = [Cell(("struct", "DML_TENSOR_DESC"), part) for part in parts]
        op["parts"].alternatives = [(True, Pointer(cells, 0))]
    lift.call("judge", [tensors.pointer(program, o)])
    return found


def place_of(found: Found) -> str:
    """The path of a fault."""
    entry = "" if found.part == tensors.UINT64 else f"[{found.part}]"
    return ".".join(filter(None, (found.tensor + entry, found.path)))
