"""DirectML programs: made at random, and put into the harness's words.

A program is a list of steps; what a step makes gets the next number, from 0 (harness/session.h). A step's answer is the
word that the harness gives.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import dmlsplit as dml
from dmlsplit.descriptors.enums import UINT64_MAX, UINT_MAX
from dmlsplit.device import Dispatchable, DispatchableOperator
from dmlsplit.library.image import image
from dmlsplit.rules import BindingSlot, SlotKind


@dataclass(frozen=True)
class Range:
    """A DML_BUFFER_BINDING; `buffer` is the number of a step's buffer, None a null pointer."""

    buffer: int | None
    offset: int = 0
    size: int = 0

    @property
    def words(self) -> str:
        return f"{'-' if self.buffer is None else self.buffer} {self.offset} {self.size}"


@dataclass(frozen=True)
class Bound:
    """A DML_BINDING_DESC: `desc` None is a null pointer, a tuple an array."""

    type: int
    desc: Range | tuple[Range, ...] | None = None

    @property
    def words(self) -> str:
        if self.desc is None:
            return f"{self.type} -"
        if isinstance(self.desc, Range):
            return f"{self.type} buffer {self.desc.words}"
        return " ".join([f"{self.type} array {len(self.desc)}", *(entry.words for entry in self.desc)])


@dataclass(frozen=True)
class Step:
    """`arguments` are numbers, a descriptor or bindings, in the order of the harness's words."""

    name: str
    arguments: tuple[Any, ...]

    @property
    def words(self) -> str:
        return " ".join([self.name, *(_words(argument) for argument in self.arguments)])


def _words(argument: Any) -> str:
    if isinstance(argument, (list, tuple)):
        return " ".join([str(len(argument)), *map(_words, argument)])
    if isinstance(argument, Bound):
        return argument.words
    return str(argument) if isinstance(argument, int) else image(argument)


Program = Sequence[Step]


BUFFER_SIZES: Final = (1 << 16, 4096, 600, 0)
MOST_STEPS: Final = 60
"""The harness's answer to a program has a limited length."""


def program(seed: int, index: int, directml: str) -> list[Step]:
    """The program with that number of a seed's endless row, for a build."""
    return _Maker(random.Random(f"{seed}:{index}"), directml).make()


class _Maker:
    """Makes a program that would work, with changes here and there.

    It knows from an emulated device what each dispatchable wants; what comes of a change is for the builds to say.
    """

    def __init__(self, rng: random.Random, directml: str) -> None:
        self.rng = rng
        self.device = dml.Device(directml)
        self.change = rng.choice((0, 0.02, 0.05, 0.2))
        """How likely each single number is changed."""
        self.steps: list[Step] = []
        self.count = 0
        self.buffers: dict[int, int] = {}
        self.operators: list[tuple[int, Any]] = []
        self.dispatchables: list[tuple[int, Dispatchable]] = []
        self.tables: list[tuple[int, int, Dispatchable]] = []
        self.next_offset = 0

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def add(self, name: str, *arguments: Any) -> int:
        """The number of what the step makes."""
        self.steps.append(Step(name, arguments))
        if name in ("buffer", "operator", "compile", "initializer", "table"):
            self.count += 1
        return self.count - 1

    def make(self) -> list[Step]:
        for size in self.rng.sample(BUFFER_SIZES, self.rng.choice((1, 2, 3))) if self.chance(0.5) else BUFFER_SIZES[:1]:
            self.buffers[self.add("buffer", size)] = size
        for _ in range(self.rng.choice((1, 1, 2, 3))):
            self.compile()
        if self.dispatchables and self.chance(0.6):
            self.initialize()
        for _ in range(self.rng.choice((1, 1, 2, 4))):
            if self.dispatchables:
                self.execute(*self.rng.choice(self.dispatchables))
        if self.chance(0.3):
            self.query()
        return self.steps[:MOST_STEPS]

    def compile(self) -> None:
        if not self.operators or self.chance(0.7):
            desc = self.descriptor()
            try:
                made = self.device.create_operator(desc)
            except dml.DirectMLError:
                self.add("operator", desc)
                return
            self.operators.append((self.add("operator", desc), made))
        number, made = self.rng.choice(self.operators)
        flags = self.rng.choice((0, 0, 1, 2, 4, 7, *((8, 9, UINT_MAX) if self.chance(self.change) else ())))
        compiled = self.add("compile", number, flags)
        if flags <= 7:
            self.dispatchables.append((compiled, self.device.compile_operator(made, flags)))
            if self.chance(0.5):
                self.add("properties", compiled)

    def descriptor(self) -> dml.OperatorDesc:
        """Small, and taken by every build; owned inputs, alignments and larger totals among its tensors."""
        rng = self.rng
        lengths = [rng.choice((1, 1, 2, 3, 5)) for _ in range(rng.choice((1, 1, 2, 3, 6)))]
        axis, data_type = rng.choice((2, 3)), rng.choice(tuple(range(1, 9)))
        others = [rng.choice((1, 1, 2, 3)) for _ in range(4)]
        owned = rng.choice((0, 0, 0.5, 1))

        def tensor(length: int, is_input: bool) -> dml.BufferTensorDesc:
            sizes = [length if d == axis else size for d, size in enumerate(others)]
            packed = dml.calc_buffer_tensor_size(data_type, sizes)
            return dml.BufferTensorDesc(
                data_type,
                sizes,
                flags=int(is_input and self.chance(owned)) or (9 if self.chance(self.change / 10) else 0),
                total_tensor_size_in_bytes=packed + rng.choice((0, 0, 0, 1, 4, 100)),
                guaranteed_base_offset_alignment=rng.choice((0, 0, 0, 16, 32, 64, 128, 256, 512, 4096)),
            )

        if self.chance(0.4):
            parts = [tensor(length, False) for length in lengths]
            return dml.SplitOperatorDesc(tensor(sum(lengths), True), parts, axis)
        parts = [tensor(length, True) for length in lengths]
        return dml.JoinOperatorDesc(parts, tensor(sum(lengths), False), axis)

    def initialize(self) -> None:
        operators = [(n, d) for n, d in self.dispatchables if isinstance(d, DispatchableOperator)]
        chosen = self.rng.sample(operators, self.rng.randint(0 if self.chance(0.1) else 1, len(operators)))
        made = self.device.create_operator_initializer([op for _, op in chosen])
        number = self.add("initializer", [n for n, _ in chosen])
        self.dispatchables.append((number, made))
        if self.chance(0.5):
            self.add("properties", number)
        self.execute(number, made)

    def execute(self, number: int, dispatchable: Dispatchable) -> None:
        table = self.table(number, dispatchable)
        calls = [
            lambda: self.bind_all("inputs", table, dispatchable.input_slots),
            lambda: self.bind_all("outputs", table, dispatchable.output_slots),
            lambda: self.bind_one("persistent", table, dispatchable),
            lambda: self.bind_one("temporary", table, dispatchable),
        ]
        self.rng.shuffle(calls)
        for call in calls:
            if not self.chance(self.change):
                call()
        for _ in range(self.rng.choice((1, 1, 2))):
            other = self.rng.choice(self.dispatchables)[0] if self.chance(self.change) else number
            self.add("dispatch", other, table)

    def table(self, number: int, dispatchable: Dispatchable) -> int:
        size = dispatchable.binding_properties.required_descriptor_count
        if self.chance(self.change):
            size = max(0, self.rng.choice((0, size - 1, size + 1, UINT_MAX)))
        reusable = [table for table, _, _ in self.tables]
        if reusable and self.chance(0.4):
            table = self.rng.choice(reusable)
            self.add("reset", table, number, size)
            return table
        table = self.add("table", number, size)
        self.tables.append((table, number, dispatchable))
        return table

    def bind_all(self, name: str, table: int, slots: Sequence[BindingSlot]) -> None:
        if all(slot.kind is SlotKind.NOTHING for slot in slots) and self.chance(0.3):
            return
        if any(slot.kind is SlotKind.ARRAY for slot in slots) and self.chance(0.3) and not _owns(slots):
            return
        bindings = [self.binding(slot) for slot in slots]
        if self.chance(self.change):
            bindings = self.rng.choice(([], bindings[1:], bindings * 2, [*bindings, self.anything()]))
        self.add(name, table, bindings)

    def bind_one(self, name: str, table: int, dispatchable: Dispatchable) -> None:
        slot = dispatchable.persistent_slot if name == "persistent" else dispatchable.temporary_slot
        if slot.kind is SlotKind.NO_CALL and not self.chance(self.change):
            return
        if slot.kind is SlotKind.BUFFER or self.chance(0.2):
            self.add(name, table, self.binding(slot))

    def binding(self, slot: BindingSlot) -> Bound:
        if self.chance(self.change):
            return self.anything()
        if slot.kind is SlotKind.BUFFER:
            return Bound(1, self.range(slot))
        if slot.kind is SlotKind.ARRAY:
            entries = [
                self.range(entry) if entry.kind is SlotKind.BUFFER or self.chance(self.change) else Range(None)
                for entry in slot.entries
            ]
            if self.chance(self.change):
                entries = self.rng.choice((entries[1:] or entries, entries * 2, [*entries, Range(None)]))
            return Bound(2, tuple(entries))
        return self.rng.choice((Bound(0), Bound(0), Bound(0, Range(None)), Bound(1, Range(None))))

    def anything(self) -> Bound:
        """Any type with any Desc that it can be read as.

        Arrays have entries: without any they are read past their end in some slots, which has no verdict.
        """
        buffer = self.rng.choice(list(self.buffers))
        some = Range(buffer, self.rng.choice((0, 16, 256)), self.rng.choice((0, 4, 64, 4096)))
        return self.rng.choice(
            (
                Bound(0),
                Bound(0, some),
                Bound(1),
                Bound(1, some),
                Bound(1, Range(None)),
                Bound(1, Range(None, 16)),
                Bound(1, Range(None, 0, 16)),
                Bound(2),
                Bound(2, (Range(None),)),
                Bound(2, (some,)),
                Bound(3),
                Bound(UINT_MAX, some),
            )
        )

    def range(self, slot: BindingSlot) -> Range:
        """Mostly one that fits, on both sides of every boundary."""
        rng = self.rng
        alignment, size = max(16, slot.alignment), slot.size
        buffer = rng.choice(list(self.buffers)) if self.chance(self.change) else max(self.buffers, key=self.buffers.get)
        offset = -(-self.next_offset // alignment) * alignment
        self.next_offset = offset + size
        if self.next_offset > 50_000:
            offset = self.next_offset = 0
        extra = rng.choice((0, 0, 0, 1, 4, 100))
        bound = Range(buffer, offset, size + extra)
        if not self.chance(self.change):
            return bound
        end = self.buffers[buffer] - size
        return rng.choice(
            (
                Range(None, offset, size),
                Range(None),
                Range(buffer, offset, max(0, size - 1)),
                Range(buffer, offset, 0),
                Range(buffer, offset + alignment // 2, size),
                Range(buffer, offset + 8, size),
                Range(buffer, offset + alignment, size),
                Range(buffer, max(0, end // alignment * alignment), size),
                Range(buffer, max(0, end), size),
                Range(buffer, max(0, end // alignment * alignment + alignment), size),
                Range(buffer, 0, self.buffers[buffer]),
                Range(buffer, 0, self.buffers[buffer] + 1),
                Range(buffer, 2**64 - alignment, size),
                Range(buffer, 2**64 - alignment, self.buffers[buffer] + alignment),
                Range(buffer, offset, UINT64_MAX),
                Range(buffer, alignment, 2**64 - alignment),
                Range(buffer, 2**63, 2**63),
            )
        )

    def query(self) -> None:
        rng = self.rng
        known = [int(level) for level in dml.FeatureLevel]
        odd = (0, 1, 0xFFF, 0x1001, 0x2200, 0x5300, 0x6500, 0x7000, 2**31, UINT_MAX)
        self.add("levels", [rng.choice((*known, *odd)) for _ in range(rng.choice((0, 1, 1, 2, 5)))])
        self.add("type", rng.choice((*range(16), 100, UINT_MAX)))


def _owns(slots: Sequence[BindingSlot]) -> bool:
    return any(entry.kind is SlotKind.BUFFER for slot in slots for entry in slot.entries)
