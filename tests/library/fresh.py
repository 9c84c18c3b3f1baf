"""Fresh questions about any operator, put to builds of DirectML and to the tables, and how far the two agree.

    python -m tests.library.fresh [--questions N] [--seed S] [BUILD...]

A question is an accepted descriptor of an operator, changed in one or two of KINDS. Printed for each build and kind:
how many were accepted, how many of those dmlsplit calls unsafe, how many the tables refuse nevertheless (none, or a
table is wrong), how many were refused by both, how many were refused for a reason that the tables do not have
("passed"), and how many ended the process, foreseen or not.
"""

from __future__ import annotations

import argparse
import copy
import json
import lzma
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import dmlsplit as dml
from dmlsplit.descriptors.any_operator import DATA_TYPE
from dmlsplit.descriptors.diagnostics import Basis
from dmlsplit.descriptors.schema import Member, OperatorSchema, enumerators
from dmlsplit.library import Build, LibraryAnswer, ask_all
from dmlsplit.library.catalogue import find_build
from dmlsplit.library.image import image

BASES = Path(__file__).parents[1] / "data" / "operators" / "base.jsonl.xz"
TYPES = [name for name in enumerators(DATA_TYPE) if name != "UNKNOWN"]
UINT_MAX = 2**32 - 1
ENDS = {
    "uint": [0, 1, 2, 3, 7, 2**16, 2**31 - 1, 2**31, UINT_MAX],
    "int": [0, 1, -1, 2**31 - 1, -(2**31)],
    "float": [0, 1, -1, 1e-45, 3.4e38, -3.4e38, "nan", "inf", "-inf"],
}
"""The values of an attribute's ends, and next to them."""
ACTIVATIONS = [each for each in dml.operators() if each.name.startswith(("ACTIVATION_", "ELEMENT_WISE_CLIP"))]

FORESEEN = {
    *("operator/ends-the-process", "operator/indices-beyond-dimensions"),
    *("operator/array-null", "operator/count-exceeds-array", "tensor/strides-too-few", "tensor/sizes-too-few"),
}
"""The rules that say that the process may end."""

ARRAYS = ("uints", "ints", "floats")

Desc = dict[str, Any]


class Question(NamedTuple):
    """A changed descriptor; `kinds` are the names of the changes."""

    kinds: tuple[str, ...]
    desc: dml.AnyOperatorDesc


@cache
def bases() -> tuple[tuple[OperatorSchema, str], ...]:
    """An accepted descriptor of each operator but Split and Join, as JSON."""
    with lzma.open(BASES, "rt", encoding="utf-8") as lines:
        found = [(dml.find_operator(json.loads(line)["Type"]), line) for line in lines]
    return tuple([each for each in found if each[0].name not in ("SPLIT", "JOIN")])


@cache
def base_of(name: str) -> dml.AnyOperatorDesc:
    """The base of one operator."""
    desc = dml.loads(next(line for schema, line in bases() if schema.name == name))
    assert isinstance(desc, dml.AnyOperatorDesc)
    return desc


def questions(seed: object, level: dml.FeatureLevel, count: int) -> Iterator[Question]:
    """Questions about operators of a level, others for each seed."""
    chance = Random(str(seed))
    known = [each for each in bases() if each[0].since <= level]
    while count:
        schema, line = chance.choice(known)
        question = json.loads(line)
        kinds = chance.sample(list(KINDS), 1 if chance.random() < 0.7 else 2)
        changed = [KINDS[kind](chance, schema, question["Desc"]) for kind in kinds]
        if not all(changed):
            continue
        try:
            desc = dml.loads(json.dumps(question))
            image(desc)
        except ValueError:
            continue  # what no C struct holds: a scalar or a total size that is beyond its type
        assert isinstance(desc, dml.AnyOperatorDesc)
        count -= 1
        yield Question(tuple(kinds), desc)


def there(schema: OperatorSchema, desc: Desc) -> list[Desc]:
    """The tensors that are there, entries of arrays included."""
    found: list[Desc] = []
    for member in schema.members:
        value = desc.get(member.name)
        if member.type in ("tensor", "tensors") and value:
            found += value if isinstance(value, list) else [value]
    return found


def some(chance: Random, tensors: list[Desc]) -> list[Desc]:
    return chance.sample(tensors, chance.randrange(1, len(tensors) + 1)) if tensors else []


def members(schema: OperatorSchema, *types: str) -> list[Member]:
    return [member for member in schema.members if member.type in types and member.enum != DATA_TYPE]


def data_types(chance: Random, schema: OperatorSchema, desc: Desc) -> bool:
    tensors = there(schema, desc)
    alike, one = chance.random(), chance.choice(TYPES)
    for tensor in tensors if alike < 0.4 else some(chance, tensors):
        tensor["DataType"] = one if alike < 0.8 else chance.choice(TYPES)
    for member in schema.members:
        if member.enum == DATA_TYPE and chance.random() < 0.5:
            desc[member.name] = one
    return bool(tensors)


def dimension_counts(chance: Random, schema: OperatorSchema, desc: Desc) -> bool:
    """Sizes of 1 are added, or sizes taken away, of some tensors or of all: in front, behind the channels, or at the
    end."""
    tensors = there(schema, desc)
    by, place = chance.choice([-2, -1, 1, 2, 4]), chance.choice([0, 0, 0, 2, 8])
    for tensor in tensors if chance.random() < 0.6 else some(chance, tensors):
        sizes = tensor["Sizes"]
        first = min(place, len(sizes) - max(0, -by))
        if first >= 0:
            tensor["Sizes"] = sizes[:first] + [1] * by + sizes[first + max(0, -by) :] or sizes
    return bool(tensors)


def one_size(chance: Random, schema: OperatorSchema, desc: Desc) -> bool:
    """Another size, in the same place of all tensors that have it there: most operators take that."""
    tensors = there(schema, desc)
    sizes = chance.choice(tensors)["Sizes"] if tensors else []
    if not sizes:
        return False
    place, new = chance.randrange(1, len(sizes) + 1), chance.choice([1, 2, 3, 5, 8, 64, 4095])
    old = sizes[-place]
    for tensor in tensors:
        if len(tensor["Sizes"]) >= place and tensor["Sizes"][-place] == old:
            tensor["Sizes"][-place] = new
    return True


def sizes(chance: Random, schema: OperatorSchema, desc: Desc) -> bool:
    tensors = some(chance, there(schema, desc))
    for tensor in tensors:
        i = chance.randrange(len(tensor["Sizes"]))
        tensor["Sizes"][i] = chance.choice([0, 1, 2, 3, 4, 9, 2**20, 2**31, UINT_MAX])
    return bool(tensors)


def strides(chance: Random, schema: OperatorSchema, desc: Desc) -> bool:
    """Packed, padded, broadcast, transposed or any."""
    tensors = some(chance, there(schema, desc))
    for tensor in tensors:
        packed, step = [], 1
        for size in reversed(tensor["Sizes"]):
            packed.insert(0, step)
            step *= size
        way = chance.randrange(5)
        if way == 1:
            packed = [2 * stride for stride in packed]
        elif way == 2:
            packed[chance.randrange(len(packed))] = 0
        elif way == 3:
            packed.reverse()
        elif way == 4:
            packed = [chance.choice([0, 1, 2, 5, 100, UINT_MAX]) for _ in packed]
        tensor["Strides"] = packed
    return bool(tensors)


def buffers(chance: Random, schema: OperatorSchema, desc: Desc) -> bool:
    """Total sizes, alignments and flags."""
    tensors = some(chance, there(schema, desc))
    for tensor in tensors:
        name, values = chance.choice(
            [
                ("TotalTensorSizeInBytes", [1, 4, 64, 4096, 2**32, 2**63]),
                ("GuaranteedBaseOffsetAlignment", [0, 1, 3, 4, 16, 17, 32, 2**31]),
                ("Flags", [0, 1, 2, 3]),
            ]
        )
        tensor[name] = chance.choice(values)
    return bool(tensors)


def presence(chance: Random, schema: OperatorSchema, desc: Desc) -> bool:
    """Tensors that are absent where there were some, mostly optional ones, and present where there was none."""
    tensors = there(schema, desc)
    changed = False
    for member in members(schema, "tensor"):
        if chance.random() < (0.5 if member.optional else 0.05):
            here = desc.get(member.name) is not None
            desc[member.name] = None if here else copy.deepcopy(chance.choice(tensors))
            changed = True
    return changed


def fused(chance: Random, schema: OperatorSchema, desc: Desc) -> bool:
    """Any activation, or another operator."""
    found = members(schema, "operator", "operators")
    for member in found:
        names = [chance.choice(ACTIVATIONS if chance.random() < 0.95 else list(dml.operators())) for _ in range(4)]
        count = len(desc.get(member.name) or ()) or 1
        each = [{"Type": of.c_name, "Desc": without_tensors(chance, of)} for of in names[:count]]
        desc[member.name] = each if member.type == "operators" else each[0]
    return bool(found)


def without_tensors(chance: Random, schema: OperatorSchema) -> Desc:
    line = next((line for each, line in bases() if each.number == schema.number), None)
    attributes = [member.name for member in schema.members if member.type not in ("tensor", "tensors")]
    base = json.loads(line)["Desc"] if line else {}
    found = {name: base[name] for name in attributes if name in base}
    for member in members(schema, "float"):
        if member.name in found and chance.random() < 0.3:
            found[member.name] = chance.choice(ENDS["float"])
    return found


def scale_biases(chance: Random, schema: OperatorSchema, desc: Desc) -> bool:
    found = members(schema, "scale-bias")
    for member in found:
        desc[member.name] = {"Scale": chance.choice([0, 2.5]), "Bias": chance.choice([-1, 0])}
    return bool(found)


def choices(chance: Random, schema: OperatorSchema, desc: Desc) -> bool:
    """Enums and BOOLs, and what is neither."""
    found = members(schema, "enum", "bool")
    for member in chance.sample(found, chance.randrange(1, len(found) + 1)) if found else ():
        values = [0, 1, 2] if member.type == "bool" else list(enumerators(member.enum).values())
        desc[member.name] = chance.choice([*values, 100, UINT_MAX])
    return bool(found)


def numbers(chance: Random, schema: OperatorSchema, desc: Desc) -> bool:
    """Attributes at the ends of their types."""
    counts = {member.count for member in schema.members}
    found = [member for member in members(schema, *ENDS) if member.name not in counts]
    if not found:
        return False
    member = chance.choice(found)
    desc[member.name] = chance.choice(ENDS[member.type])
    return True


def arrays(chance: Random, schema: OperatorSchema, desc: Desc) -> bool:
    """Entries at the ends of their types; one entry more or less, as the count says."""
    found = [member for member in members(schema, *ARRAYS) if desc.get(member.name)]
    if not found:
        return False
    member = chance.choice(found)
    values = desc[member.name]
    if chance.random() < 0.8:
        values[chance.randrange(len(values))] = chance.choice(ENDS[member.type[:-1]])
    else:
        by = chance.choice([-1, 1])
        for other in schema.members:
            if other.count == member.count and desc.get(other.name):
                desc[other.name] = desc[other.name][:by] if by < 0 else [*desc[other.name], desc[other.name][-1]]
        desc[member.count] = len(values) + by
    return True


KINDS: dict[str, Callable[[Random, OperatorSchema, Desc], bool]] = {
    "data types": data_types,
    "dimension counts": dimension_counts,
    "one size": one_size,
    "sizes": sizes,
    "strides": strides,
    "buffers": buffers,
    "presence": presence,
    "fused": fused,
    "scale and bias": scale_biases,
    "choices": choices,
    "numbers": numbers,
    "arrays": arrays,
}
"""The changes; each says whether the operator has what it changes."""


class Compared(NamedTuple):
    """A question, the build's answer and the tables' report."""

    question: Question
    answer: LibraryAnswer
    report: dml.Report

    @property
    def outcome(self) -> str:
        """One of OUTCOMES. An error of dmlsplit's own, of what a build takes and should not, is no refusal."""
        refused = any(d.basis is not Basis.OURS for d in self.report.errors)
        if self.answer.ended_the_process:
            foreseen = any(d.rule in FORESEEN for d in self.report.diagnostics)
            return "foreseen end" if foreseen else "unforeseen end"
        if self.answer.accepted:
            return "wrongly refused" if refused else "accepted" if self.report.ok else "unsafe"
        return "refused" if refused else "passed"

    @property
    def is_of_types_and_ranks(self) -> bool:
        """Whether nothing but data types and ranks decides: where ranks change, no attribute goes with them, and all
        tensors of the base have the same sizes."""
        kinds, schema = self.question.kinds, self.question.desc.operator
        if kinds != ("dimension counts",):
            return kinds == ("data types",)
        of_ranks = any("Axis" in m.name or "Dimension" in m.name or m.type in ARRAYS for m in schema.members)
        base = base_of(schema.name)
        return not of_ranks and len({each.desc and each.desc.sizes for each in base.inputs + base.outputs if each}) == 1


def compared(build: Build, seed: object, count: int) -> list[Compared]:
    """The questions of a seed, asked of a build and of its tables."""
    asked = list(questions(seed, build.feature_level, count))
    answers = ask_all([question.desc for question in asked], build, explain=False)
    reports = [dml.validate(question.desc, directml=build.release) for question in asked]
    return [Compared(*each) for each in zip(asked, answers, reports, strict=True)]


def counted(found: list[Compared]) -> dict[str, Counter[str]]:
    """The outcomes by kind; questions of two kinds stand together."""
    table: dict[str, Counter[str]] = {}
    for each in found:
        kind = each.question.kinds[0] if len(each.question.kinds) == 1 else "two kinds"
        table.setdefault(kind, Counter())[each.outcome] += 1
    return table


def share(outcomes: Counter[str]) -> float:
    """The share of right verdicts."""
    return 1 - (outcomes["wrongly refused"] + outcomes["passed"]) / outcomes.total()


OUTCOMES = ("accepted", "unsafe", "wrongly refused", "refused", "passed", "foreseen end", "unforeseen end")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("builds", nargs="*", default=["torch-directml-0.2.5.dev240914"])
    parser.add_argument("--questions", type=int, default=2_000)
    parser.add_argument("--seed", default="0")
    parser.add_argument("--show", type=int, default=3, help="descriptors to show of each wrong outcome")
    arguments = parser.parse_args()
    for name in arguments.builds:
        build = find_build(name)
        found = compared(build, (arguments.seed, build.name), arguments.questions)
        print(f"{build}: {len(found)} questions")
        table = counted(found)
        print(f"  {'':18}" + "".join(f"{word:>16}" for word in OUTCOMES))
        for kind in [*KINDS, "two kinds"]:
            if kind in table:
                print(f"  {kind:18}" + "".join(f"{table[kind][word]:16,}" for word in OUTCOMES))
        plain = Counter(each.outcome for each in found if each.is_of_types_and_ranks)
        print(f"  {share(plain):.2%} right of {plain.total():,} that data types and ranks alone decide")
        for word in ("wrongly refused", "unforeseen end"):
            wrong = [each for each in found if each.outcome == word]
            for each in wrong[: arguments.show]:
                rules = sorted({d.rule for d in each.report.errors})
                print(f"  {word}: {each.question.kinds} {rules} {dml.dumps(each.question.desc)}")


if __name__ == "__main__":
    main()
