"""One tensor, by the rules in Python and by dms_judge_tensor: formulas of the faults that each finds."""

from __future__ import annotations

from typing import Any, NamedTuple

from dmlsplit.descriptors.descs import BufferTensorDesc, TensorDesc
from dmlsplit.descriptors.diagnostics import Severity
from dmlsplit.descriptors.enums import OperatorType, TensorDataType
from dmlsplit.descriptors.location import Location
from dmlsplit.rules import Aspect, TensorView
from dmlsplit.targets.target import Target
from dmlsplit.verdicts.validation import _tensor_checks
from tests.proofs.lifted import Bits, Cell, Lift, Pointer, Program, Value
from tests.proofs.symbols import UINT32, Formula, Number, World, both, either, no

Faults = dict[tuple[str, str], Formula]
"""Rule and path within the tensor -> when it is found; in the order in which they are found."""
UINT64 = 2**64 - 1
ASPECTS = {
    aspect: aspect.name
    for aspect in (
        *(Aspect.DESC, Aspect.READABLE, Aspect.DATA_TYPE, Aspect.DIMENSION_COUNT, Aspect.SIZES, Aspect.POSITIVE),
        *(Aspect.ELEMENT_COUNT, Aspect.LAYOUT, Aspect.SPAN, Aspect.TOTAL, Aspect.ARRAY, Aspect.AXIS),
    )
}
"""Those that C has, by the same names."""


class Case(NamedTuple):
    """What is the same in all values of a proof."""

    kind: OperatorType
    target: Target
    is_whole: bool
    rank: int | None
    """None: any number of dimensions above the largest rank."""
    is_strided: bool
    data_type: int | None
    """None: any number above the known types."""
    absent: str = ""
    """tensor, Desc or Sizes: the pointer that is null."""
    unreadable: bool = False
    """A release has crashed there."""

    @property
    def is_output(self) -> bool:
        return self.is_whole == (self.kind is OperatorType.JOIN)

    def __str__(self) -> str:
        role = "output" if self.is_output else "input"
        words = [self.target.short_name, self.kind.name.lower(), role, f"rank {self.rank}", f"type {self.data_type}"]
        return ", ".join([*words, *["strided"] * self.is_strided, *[f"no {self.absent}"] * bool(self.absent)])


class Tensor(NamedTuple):
    """The members of a tensor, without values where any is meant."""

    type: Any
    data_type: Any
    flags: Any
    dimension_count: Any
    sizes: tuple[Any, ...] | None
    strides: tuple[Any, ...] | None
    total: Any
    alignment: Any


def tensor_of(world: World, case: Case, prefix: str = "") -> Tensor:
    def any_of(name: str, high: int = UINT32, low: int = 0) -> Number:
        return world.number(prefix + name, low, high)

    rank = case.rank
    entries = range(rank or 0)
    return Tensor(
        any_of("Type"),
        case.data_type if case.data_type is not None else any_of("DataType", low=len(TensorDataType)),
        any_of("Flags"),
        rank if rank is not None else any_of("DimensionCount", low=9),
        None if case.absent == "Sizes" else tuple([any_of(f"Sizes[{i}]") for i in entries]),
        tuple([any_of(f"Strides[{i}]") for i in entries]) if case.is_strided else None,
        any_of("TotalTensorSizeInBytes", UINT64),
        any_of("GuaranteedBaseOffsetAlignment"),
    )


def whole_number(value: Any) -> Any:
    """What `int` is to the rules while they are explored."""
    return value if isinstance(value, Number) else int(value)


def python_tensor(tensor: Tensor, absent: str) -> TensorDesc | None:
    """The descriptor, made without the checks that its members are integers."""
    if absent == "tensor":
        return None
    put = object.__setattr__
    desc = object.__new__(BufferTensorDesc)
    data_type = tensor.data_type
    put(desc, "data_type", TensorDataType(data_type) if isinstance(data_type, int) else data_type)
    put(desc, "flags", tensor.flags)
    put(desc, "dimension_count", tensor.dimension_count)
    put(desc, "sizes", tensor.sizes)
    put(desc, "strides", tensor.strides)
    put(desc, "total_tensor_size_in_bytes", tensor.total)
    put(desc, "guaranteed_base_offset_alignment", tensor.alignment)
    made = object.__new__(TensorDesc)
    put(made, "type", tensor.type)
    put(made, "desc", None if absent == "Desc" else desc)
    return made


class Overlap(NamedTuple):
    """What the search for elements that overlap answers: the same on both sides, whatever it is."""

    found: Formula
    undecided: Formula

    def asked(self, world: World, sizes: Any, strides: Any) -> bool | None:
        """elements_overlap's answer."""
        if strides is None:
            return False
        return True if world.decide(self.found) else None if world.decide(self.undecided) else False


def found_by_python(world: World, view: TensorView, spoilt: dict[Aspect, Formula]) -> Faults:
    """The rules one after the other, as _run_on_tensor runs them; `spoilt` becomes what they leave."""
    faults: Faults = {}
    for rule, check in _tensor_checks(view.is_output, view.is_strided, True):
        applies = both(*(no(spoilt.get(aspect, False)) for aspect in rule.needs))
        if not world.possible(applies):
            continue
        found: Faults = {}

        def run(check: Any = check) -> list[str]:
            return [str(Location(finding.steps)) for finding in check(view)]

        for path, places in world.paths(run, applies):
            for place in places:
                found[rule.id, place] = either(found.get((rule.id, place), False), path)
        for aspect in rule.spoils if found else ():
            spoilt[aspect] = either(spoilt.get(aspect, False), *found.values())
        if rule.severity is Severity.ERROR:
            faults.update(found)
    return faults


# ---- C


def judged(program: Program, case: Case, row: Any) -> Any:
    """A dms_judged, whose target is a row of dms_targets.inc."""
    target = program.make("dms_target")
    for (name, cell), entry in zip(target.members.items(), row.exprs, strict=True):
        cell.alternatives = [(True, constant(program, name, entry))]
    split = case.kind is OperatorType.SPLIT
    op = program.make("dms_operator", split=int(split))
    counts = target.members["split_counts" if split else "join_counts"].alternatives[0][1]
    return program.make("dms_judged", op=op, by=Pointer([Cell(("struct", "dms_target"), target)], 0), counts=counts)


def constant(program: Program, name: str, entry: Any) -> Any:
    text = getattr(entry, "value", None)
    if text is None:
        text = getattr(entry, "name", None)
        return None if text is None else program.enumerators[text]  # a cast: (void *)0
    if name in ("name", "directml"):
        return text
    return int(text.rstrip("uUlL"), 0)


def pointer(program: Program, struct: Any) -> Value:
    return Value([(True, Pointer([Cell(("struct", struct.name), struct)], 0))], "pointer")


def array(entries: Any) -> Pointer | None:
    return None if entries is None else Pointer([Cell("unsigned int", entry) for entry in entries], 0)


def c_tensor(program: Program, tensor: Tensor, absent: str) -> Any:
    desc = program.make(
        "DML_BUFFER_TENSOR_DESC",
        DataType=tensor.data_type,
        Flags=tensor.flags,
        DimensionCount=tensor.dimension_count,
        Sizes=array(tensor.sizes),
        Strides=array(tensor.strides),
        TotalTensorSizeInBytes=tensor.total,
        GuaranteedBaseOffsetAlignment=tensor.alignment,
    )
    to_desc = None if absent == "Desc" else Pointer([Cell(("struct", "DML_BUFFER_TENSOR_DESC"), desc)], 0)
    return program.make("DML_TENSOR_DESC", Type=tensor.type, Desc=to_desc)


class Found(NamedTuple):
    """A call of dms_found."""

    guard: Formula
    rule: str
    refused: bool
    tensor: str
    part: int
    path: str


def noting(program: Program, found: list[Found]) -> Any:
    """In place of dms_found: notes each call."""
    names = [one.value.strip('"') for one in program.tables["member_names"]]

    def dms_found(lift: Lift, given: Any, guard: Formula) -> int:
        rule, refused, tensor, part, inside, index = (lift.one(value, guard) for value in given[1:])
        entry = "" if index == UINT32 else f"[{index}]"
        found.append(Found(guard, rule, bool(refused), names[tensor], part, names[inside] + entry))
        return 0

    return dms_found


def found_by_c(world: World, program: Program, case: Case, row: Any, tensor: Tensor, overlap: Overlap) -> Any:
    """The calls of dms_found, what is spoilt then, and whether the tensor was nested."""
    found: list[Found] = []
    nested: list[Formula] = []

    def is_nested(lift: Lift, given: Any, guard: Formula) -> Any:
        answer = Lift(world, program).call("dms_is_nested", [Value(given[0], "pointer")], guard)
        nested.append(both(guard, lift.truth(answer.alternatives)))
        world.assume(no(both(nested[-1], either(overlap.found, overlap.undecided))))
        return Value([(True, lift.truth(answer.alternatives))], "_Bool")

    instead = {
        "dms_found": noting(program, found),
        "dms_is_nested": is_nested,
        "dms_elements_overlap": lambda lift, given, guard: Value([(True, overlap.found)], "_Bool"),
    }
    lift = Lift(world, program, instead)
    o = judged(program, case, row)
    members = program.enumerators
    whole, parts = (
        ("INPUT_TENSOR", "OUTPUT_TENSORS") if case.kind is OperatorType.SPLIT else ("OUTPUT_TENSOR", "INPUT_TENSORS")
    )
    at = program.make(
        "dms_slot",
        tensor=members[whole if case.is_whole else parts],
        part=UINT64 if case.is_whole else 0,
        is_output=int(case.is_output),
    )
    given = c_tensor(program, tensor, case.absent)
    spoilt = Bits.of(members["DESC"] | members["READABLE"] if case.unreadable else 0)
    left = lift.call(
        "dms_judge_tensor",
        [
            pointer(program, o),
            pointer(program, at),
            Value([(True, None)], "pointer") if case.absent == "tensor" else pointer(program, given),
            Value([(True, spoilt)], "unsigned int"),
        ],
    )
    return found, left
