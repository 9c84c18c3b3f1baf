"""Asks DirectML builds which ranks and data types each operator takes, and writes the table that the package ships.

    python packaging/support.py [OPERATOR...] [BUILD...]

A BUILD is a name of `dmlsplit library list` that has been added; without names all are asked that are here, and about
all operators. Answers of other builds, and about other operators, stay in the table. The questions start from an
accepted descriptor of each operator (tests/data/operators/base.jsonl.xz) and change the data types and the ranks of its
tensors; what is accepted is written as a relation (dmlsplit.targets.relations) that holds for fresh combinations, too.
What the operators' pages say is taken over from documented_support.json.
"""

from __future__ import annotations

import copy
import itertools
import json
import lzma
import random
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias

from dmlsplit import library
from dmlsplit.descriptors.any_operator import DATA_TYPE, SCALARS
from dmlsplit.descriptors.schema import OperatorSchema, enumerators, find_operator, known_operator
from dmlsplit.formats import any_operator_json
from dmlsplit.library.catalogue import DIRECTML, Build, debug_layer
from dmlsplit.library.image import image
from dmlsplit.library.process import Library, opened
from dmlsplit.targets.operator_tables import FILE, OperatorTable
from dmlsplit.targets.relations import Relation
from dmlsplit.targets.releases import releases

ROOT: Final = Path(__file__).parents[1]
BASES: Final = ROOT / "tests" / "data" / "operators" / "base.jsonl.xz"
DOCUMENTED: Final = ROOT / "packaging" / "documented_support.json"
"""{operator: {feature level: {tensor: [ranks, data types]}}}, as the pages have it."""
TYPES: Final = tuple(range(1, 14))
NAMES: Final = {number: name for name, number in enumerators(DATA_TYPE).items()}
RANKS: Final = tuple(range(1, 9))
OK: Final = "00000000"
BEYOND: Final = (100, 2**32 - 1)
"""Values that no enum has."""
PIVOTS: Final = 4
MOST_OF_ONE_SIZE: Final = 4
"""Tensors of an operator, up to which it is asked whether all have to have the same sizes."""
TRIED: Final = 150

Combination: TypeAlias = tuple[int, ...]
Desc: TypeAlias = dict[str, Any]
Encode: TypeAlias = Callable[[Combination], Sequence[str]]

# Operators whose tensors have a batch and a channel before the dimensions that are added or taken away.
SPATIAL: Final = frozenset(
    {
        *("CONVOLUTION", "CONVOLUTION_INTEGER", "QUANTIZED_LINEAR_CONVOLUTION", "FOLD", "UNFOLD"),
        *("AVERAGE_POOLING", "AVERAGE_POOLING1", "LP_POOLING", "LP_POOLING1", "MAX_POOLING", "MAX_POOLING1"),
        *("MAX_POOLING2", "AVERAGE_POOLING_GRAD", "MAX_POOLING_GRAD", "QUANTIZED_LINEAR_AVERAGE_POOLING"),
        *("MAX_UNPOOLING", "UPSAMPLE_2D", "VALUE_SCALE_2D", "ROI_POOLING", "ROI_ALIGN", "ROI_ALIGN1", "ROI_ALIGN_GRAD"),
        *("BATCH_NORMALIZATION", "BATCH_NORMALIZATION_GRAD", "BATCH_NORMALIZATION_TRAINING"),
        *("BATCH_NORMALIZATION_TRAINING_GRAD", "MEAN_VARIANCE_NORMALIZATION", "MEAN_VARIANCE_NORMALIZATION1"),
        *("MEAN_VARIANCE_NORMALIZATION2", "LOCAL_RESPONSE_NORMALIZATION", "LOCAL_RESPONSE_NORMALIZATION_GRAD"),
        *("DEPTH_TO_SPACE", "DEPTH_TO_SPACE1", "SPACE_TO_DEPTH", "SPACE_TO_DEPTH1"),
    }
)

FURTHER: Final[Mapping[str, Sequence[Mapping[str, Any]]]] = {
    **dict.fromkeys(
        ("GATHER_ND", "GATHER_ND1"),
        (
            {"InputTensor": [4], "IndicesTensor": [1], "OutputTensor": [1]}
            | {"InputDimensionCount": 1, "IndicesDimensionCount": 1},
            {"InputTensor": [3, 4], "IndicesTensor": [1, 2], "OutputTensor": [1, 1]}
            | {"InputDimensionCount": 2, "IndicesDimensionCount": 2},
        ),
    ),
    "SCATTER_ND": (
        {"InputTensor": [4], "IndicesTensor": [1], "UpdatesTensor": [1], "OutputTensor": [4]}
        | {"InputDimensionCount": 1, "IndicesDimensionCount": 1},
        {"InputTensor": [3, 4], "IndicesTensor": [1, 2], "UpdatesTensor": [1, 1], "OutputTensor": [3, 4]}
        | {"InputDimensionCount": 2, "IndicesDimensionCount": 2},
    ),
    "NONZERO_COORDINATES": (
        {"InputTensor": [4], "OutputCountTensor": [1], "OutputCoordinatesTensor": [4, 1]},
        {"InputTensor": [3, 4], "OutputCountTensor": [1, 1], "OutputCoordinatesTensor": [12, 2]},
    ),
    "MEAN_VARIANCE_NORMALIZATION1": (
        {"InputTensor": [4], "OutputTensor": [4], "ScaleTensor": [4], "BiasTensor": [4], "Axes": [0]},
        {"InputTensor": [3, 4], "OutputTensor": [3, 4], "ScaleTensor": [3, 4], "BiasTensor": [3, 4], "Axes": [1]},
    ),
    "LP_NORMALIZATION": ({"InputTensor": [4], "OutputTensor": [4], "Axis": 0},),
}
"""Descriptors of low ranks that do not follow from the base: sizes of tensors, and other members."""


@dataclass
class Operator:
    """An operator's base, as JSON: `variables` are its tensors, entries of arrays included, and its members of
    DML_TENSOR_DATA_TYPE."""

    schema: OperatorSchema
    base: Desc
    variables: list[str] = field(default_factory=list)
    tensors: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        for member in self.schema.members:
            value = self.base.get(member.name)
            if member.type == "tensor" and value is not None:
                self.tensors.append(member.name)
            elif member.type == "tensors":
                self.tensors += [f"{member.name}[{i}]" for i in range(len(value))]
        self.variables = [*self.tensors, *(m.name for m in self.schema.members if m.enum == DATA_TYPE)]

    @property
    def types(self) -> Combination:
        return tuple([self.type_of(name) for name in self.variables])

    def type_of(self, name: str) -> int:
        value = at(self.base, name)
        return enumerators(DATA_TYPE)[value["DataType"] if isinstance(value, dict) else value]

    def with_types(self, desc: Desc, types: Mapping[str, int]) -> Desc:
        """The descriptor with other data types; scalars become 0 or 1, which every type holds."""
        desc = copy.deepcopy(desc)
        for name, number in types.items():
            value = at(desc, name)
            if isinstance(value, dict):
                value["DataType"] = NAMES[number]
                continue
            desc[name] = NAMES[number]
            for member in self.schema.members:
                if member.type == "scalar":
                    kind = SCALARS.get(NAMES[number], "Q")
                    desc[member.name] = float(desc[member.name]) if kind in "fed" else int(desc[member.name])
        return desc

    def image(self, desc: Desc) -> str:
        return image(any_operator_json.loads(json.dumps({"Type": self.schema.c_name, "Desc": desc})))


def at(desc: Desc, name: str) -> Any:
    member, _, index = name.partition("[")
    return desc[member][int(index[:-1])] if index else desc[member]


class TypeImages:
    """Commands for combinations of data types, put together from words: a data type changes its own blocks only."""

    def __init__(self, operator: Operator, desc: Desc) -> None:
        self._operator, self._desc = operator, desc
        self._words = operator.image(desc).split(" ")
        self._changes: dict[tuple[int, int], dict[int, str]] = {}

    def __call__(self, types: Combination) -> Sequence[str]:
        words = list(self._words)
        for i, number in enumerate(types):
            for at, word in self._change(i, number).items():
                words[at] = word
        return [f"create {' '.join(words)}"]

    def _change(self, i: int, number: int) -> dict[int, str]:
        if (i, number) not in self._changes:
            operator = self._operator
            words = operator.image(operator.with_types(self._desc, {operator.variables[i]: number})).split(" ")
            assert len(words) == len(self._words)
            differ = {at: word for at, (word, was) in enumerate(zip(words, self._words, strict=True)) if word != was}
            self._changes[i, number] = differ
        return self._changes[i, number]


class RankImages:
    """Commands for combinations of ranks. Sizes get leading ones, or lose them; what goes with the rank follows."""

    def __init__(self, operator: Operator) -> None:
        self._operator = operator
        self._wholes: dict[int, Desc] = {}
        base = operator.base
        ranks = {len(at(base, name)["Sizes"]) for name in operator.tensors}
        for rank in RANKS:
            whole = at_rank(operator, rank) if len(ranks) == 1 else None
            if whole is not None:
                self._wholes[rank] = whole
        self._further = []
        for changes in FURTHER.get(operator.schema.name, ()):
            desc = base | {name: value for name, value in changes.items() if name not in operator.tensors}
            sizes = {name: base[name] | {"Sizes": changes[name]} for name in operator.tensors}
            self._further.append(desc | sizes)
        self._known: dict[Combination, Sequence[str]] = {}

    def __call__(self, ranks: Combination) -> Sequence[str]:
        if ranks not in self._known:
            self._known[ranks] = list(dict.fromkeys(f"create {self._operator.image(d)}" for d in self._descs(ranks)))
        return self._known[ranks]

    def _descs(self, ranks: Combination) -> Iterator[Desc]:
        starts = [self._wholes[rank] for rank in dict.fromkeys(ranks) if rank in self._wholes]
        keeps_channels = self._operator.schema.name in SPATIAL
        for start in [*starts, self._operator.base, *self._further]:
            for at_the_end in (False, True) if keeps_channels else (False,):
                desc = copy.deepcopy(start)
                for name, rank in zip(self._operator.tensors, ranks, strict=True):
                    tensor = at(desc, name)
                    sizes = tensor["Sizes"]
                    more = [1] * (rank - len(sizes))
                    front = more + sizes[max(0, len(sizes) - rank) :]
                    tensor["Sizes"] = sizes[:rank] + more if at_the_end else front
                fitted(self._operator.schema.name, desc)
                yield desc


def at_rank(operator: Operator, rank: int) -> Desc | None:
    """The base with all tensors of another rank; None where it cannot be made by adding or taking dimensions."""
    desc = copy.deepcopy(operator.base)
    tensors = [at(desc, name) for name in operator.tensors]
    old = len(tensors[0]["Sizes"])
    by, first = rank - old, 2 if operator.schema.name in SPATIAL else 0
    if by and rank < first + 1:
        return None

    def resized(values: list[Any], neutral: Any) -> list[Any]:
        return values[:first] + ([neutral] * by + values[first:] if by >= 0 else values[first - by :])

    for tensor in tensors:
        tensor["Sizes"] = resized(tensor["Sizes"], 1)
    for member in operator.schema.members:
        name, value = member.name, desc.get(member.name)
        if name == "Axis":
            desc[name] = value + by
        elif name == "Axes":
            desc[name] = [axis + by for axis in value if axis + by >= 0]
            if not desc[name]:
                return None
        elif member.type in ("uints", "ints", "floats") and value is not None:
            zero = any(word in name for word in ("Offset", "Padding")) and "Pixel" not in name
            neutral = 0 if zero else value[0] if "Pixel" in name else 1
            if name in ("Bias",):
                continue
            if len(value) == old:
                desc[name] = resized(value, neutral)
            else:
                desc[name] = [neutral] * by + value if by >= 0 else value[-by:]
            if not desc[name]:
                return None
        elif name in ("InputDimensionCount", "IndicesDimensionCount"):
            desc[name] = min(value, rank)
    return None if desc.get("Axis", 0) < 0 else desc


def fitted(name: str, desc: Desc) -> None:
    """Sizes that follow from another tensor's rank."""
    if name == "NONZERO_COORDINATES":
        desc["OutputCoordinatesTensor"]["Sizes"][-1] = len(desc["InputTensor"]["Sizes"])


class Asked:
    """A build's answers to combinations, each asked once."""

    def __init__(self, build: Library, encode: Encode) -> None:
        self._build, self._encode = build, encode
        self._known: dict[Combination, bool] = {}

    def __call__(self, combinations: Iterable[Combination]) -> None:
        new = [each for each in dict.fromkeys(combinations) if each not in self._known]
        commands = [(each, command) for each in new for command in self._encode(each)]
        self._known.update(dict.fromkeys(new, False))
        for (each, _), answer in zip(commands, self._build.replies([c for _, c in commands]), strict=True):
            self._known[each] |= answer == OK

    def __getitem__(self, combination: Combination) -> bool:
        if combination not in self._known:
            self([combination])
        return self._known[combination]

    @property
    def answers(self) -> Mapping[Combination, bool]:
        return self._known

    @property
    def accepted(self) -> list[Combination]:
        return [each for each, ok in self._known.items() if ok]


def learned(
    names: Sequence[str], values: Sequence[int], base: Combination, asked: Asked, known: list[Relation]
) -> Relation:
    """The relation that a build's answers show: one of those known from other builds where it agrees with a first set
    of questions and with fresh ones, else a new one, which is then known."""
    count = len(names)
    pairs = [*itertools.combinations(range(count), 2), *((i,) for i in range(count))]
    asked([base, *((value,) * count for value in values)])
    asked(_put(base, group, value) for group in [*pairs, *_equal(base)] for value in values)
    for relation in known:
        if relation.agrees(names, asked.answers) and not _tried(relation, names, values, asked):
            return relation
    relation = _new(names, values, base, asked, pairs)
    known.append(relation)
    return relation


def _new(
    names: Sequence[str], values: Sequence[int], base: Combination, asked: Asked, pairs: Sequence[tuple[int, ...]]
) -> Relation:
    count = len(names)
    if count <= 3 and values is TYPES:
        asked(itertools.product(values, repeat=count))
        return Relation.of(names, asked.accepted)
    _vary(asked, base, _equal(base), values)
    done: list[Combination] = []
    while True:
        pivots = _pivots(asked.accepted, done)[: PIVOTS - len(done)]
        if not pivots:
            break
        for pivot in pivots:
            asked(_put(pivot, group, value) for group in pairs for value in values)
            done.append(pivot)
    for pivot in done:
        _vary(asked, pivot, Relation.of(names, asked.accepted).groups_of(names), values)
    for _ in range(3):
        if not _tried(Relation.of(names, asked.accepted), names, values, asked):
            break
    return Relation.of(names, asked.accepted)


def _equal(base: Combination) -> list[list[int]]:
    """The members that have one value in the base, grouped."""
    alike: dict[int, list[int]] = {}
    for i, value in enumerate(base):
        alike.setdefault(value, []).append(i)
    return list(alike.values())


def _pivots(accepted: Sequence[Combination], done: Sequence[Combination]) -> list[Combination]:
    """Accepted combinations that have values which those before them do not have."""
    seen = {(i, value) for each in done for i, value in enumerate(each)}
    found = []
    for each in accepted:
        new = set(enumerate(each)) - seen
        if new:
            found.append(each)
            seen |= new
    return sorted(found, key=lambda each: -len(set(each)))


def _put(pivot: Combination, group: Iterable[int], value: int) -> Combination:
    """The combination with one value for all members of a group."""
    each = list(pivot)
    for i in group:
        each[i] = value
    return tuple(each)


def _vary(asked: Asked, pivot: Combination, groups: Sequence[Sequence[int]], values: Sequence[int]) -> None:
    """Asks every pair of groups with every two values, the members of a group alike."""
    pairs = list(itertools.combinations(groups, 2)) or [(groups[0], groups[0])]
    asked(_put(_put(pivot, a, x), b, y) for a, b in pairs for x, y in itertools.product(values, repeat=2))


def _tried(relation: Relation, names: Sequence[str], values: Sequence[int], asked: Asked) -> int:
    """Asks fresh combinations, half of them such as the relation has; how many it gets wrong."""
    source = random.Random(len(names))
    fresh = [relation.drawn(names, source) for _ in range(TRIED)] if not relation.is_empty else []
    for each in list(fresh):
        i = source.randrange(len(names))
        fresh.append((*each[:i], source.choice(values), *each[i + 1 :]))
    asked(fresh)
    return sum(asked[each] != relation.has(dict(zip(names, each, strict=True))) for each in fresh)


def conditions(operator: Operator) -> Iterator[tuple[str, str, Desc]]:
    """Settings of attributes that the data types may depend on: (member, value, descriptor)."""
    for member in operator.schema.members:
        if member.type == "enum" and member.enum != DATA_TYPE:
            for name in enumerators(member.enum):
                yield member.name, name, operator.base | {member.name: name}
        elif member.type == "scale-bias":
            yield member.name, "given", operator.base | {member.name: {"Scale": 2.0, "Bias": 1.0}}
        elif member.type == "operator":
            relu = {"Type": "DML_OPERATOR_ACTIVATION_RELU", "Desc": {}}
            yield member.name, "given", operator.base | {member.name: relu}


def fused(name: str) -> Desc:
    schema = find_operator(name)
    desc: Desc = {member.name: 0.5 for member in schema.members if member.type == "float"}
    if schema.member("Axes"):
        desc["Axes"] = [3]
    if name == "ELEMENT_WISE_CLIP":
        desc["Min"] = 0.0
    return {"Type": schema.c_name, "Desc": desc}


FUSABLE: Final = ("ELEMENT_WISE_CLIP",)


def activations() -> list[str]:
    from dmlsplit.descriptors.schema import operators

    return [each.name for each in operators() if each.name.startswith("ACTIVATION_") or each.name in FUSABLE]


Known: TypeAlias = dict[str, list[Relation]]
"""For each key of the table the relations that builds have shown."""


def facts(
    operator: Operator, build: Library, types: Mapping[str, TypeImages], ranks: RankImages, known: Known
) -> dict[str, Any]:
    """What one build says of one operator, as the table has it; nothing where it does not know the operator."""
    by_rank = Asked(build, ranks)
    base = tuple([len(at(operator.base, name)["Sizes"]) for name in operator.tensors])
    by_rank([base, *((rank,) * len(base) for rank in RANKS)])
    if not by_rank.accepted:
        return {}
    found: dict[str, Any] = {}
    for setting, encode in types.items():
        with_it = Asked(build, encode)
        relation = learned(operator.variables, TYPES, operator.types, with_it, known.setdefault("types", []))
        if not setting:
            found["types"] = relation.to_json()
        elif with_it.accepted and relation.to_json() != found["types"]:
            found[f"by {setting}"] = relation.to_json()
    found["ranks"] = learned(operator.tensors, RANKS, base, by_rank, known.setdefault("ranks", [])).to_json()
    if same_sizes(operator, build):
        found["sizes"] = "same"
    for member in operator.schema.members:
        taken = taken_values(operator, member.name, member.type, member.enum, build)
        if taken is not None:
            found[f"of {member.name}"] = taken
    return found


def same_sizes(operator: Operator, build: Library) -> bool:
    """Whether all tensors have to have the same sizes: other sizes of all are accepted, of some of them never."""
    names = operator.tensors
    base = at(operator.base, names[0])["Sizes"]
    if not 2 <= len(names) <= MOST_OF_ONE_SIZE or any(at(operator.base, name)["Sizes"] != base for name in names):
        return False
    larger = [[*base[:i], base[i] + by, *base[i + 1 :]] for by in (1, 4) for i in range(len(base) - 2, len(base))]
    some = [each for count in range(1, len(names)) for each in itertools.combinations(names, count)]
    others = [[*base[:i], size, *base[i + 1 :]] for i in range(len(base)) for size in {1, base[i] + 1} - {base[i]}]
    alike = [sized(operator, names, sizes) for sizes in larger]
    mixed = [sized(operator, which, sizes) for which in some for sizes in others]
    answers = [answer == OK for answer in build.replies([f"create {operator.image(desc)}" for desc in alike + mixed])]
    return all(answers[: len(alike)]) and not any(answers[len(alike) :])


def sized(operator: Operator, names: Iterable[str], sizes: Sequence[int]) -> Desc:
    """The base with other sizes of these tensors."""
    desc = copy.deepcopy(operator.base)
    for name in names:
        at(desc, name)["Sizes"] = list(sizes)
    return desc


def taken_values(operator: Operator, name: str, kind: str, enum: str, build: Library) -> list[int] | None:
    """Which values of an enum, of a BOOL, or which fused activations a build takes beside the base's other members."""
    values: list[tuple[int, Any]]
    if kind == "enum" and enum != DATA_TYPE:
        values = [(number, number) for number in (*enumerators(enum).values(), *BEYOND)]
    elif kind == "bool":
        values = [(number, number) for number in (0, 1, 2)]
    elif kind in ("operator", "operators"):
        values = [(find_operator(each).number, fused(each)) for each in activations()]
    else:
        return None
    if kind == "operators":
        values = [(number, [each] * len(operator.base[name])) for number, each in values]
    answers = build.replies([f"create {operator.image(operator.base | {name: value})}" for _, value in values])
    return [number for (number, _), answer in zip(values, answers, strict=True) if answer == OK]


def asked_builds(names: Sequence[str]) -> list[Build]:
    here = [build for build in library.builds() if build.kind == DIRECTML and build != debug_layer()]
    return [build for build in here if not names or build.name in names]


def main(names: Sequence[str]) -> None:
    asked_about = [name for name in names if known_operator(name)]
    builds = {build.name: opened(build) for build in asked_builds([name for name in names if name not in asked_about])}
    old: dict[str, Any] = {"builds": [], "operators": {}}
    if FILE.exists():
        old = json.loads(lzma.decompress(FILE.read_bytes()))
    old["documented"] = json.loads(DOCUMENTED.read_text("utf-8"))
    columns = [name for name in (release.name for release in releases()) if name in builds or name in old["builds"]]
    rows: dict[str, Any] = {}
    with lzma.open(BASES, "rt", encoding="utf-8") as lines:
        bases = [json.loads(line) for line in lines]
    started = time.monotonic()
    for each in bases:
        operator = Operator(find_operator(each["Type"]), each["Desc"])
        name = operator.schema.name
        if name in ("SPLIT", "JOIN"):
            continue
        if asked_about and name not in asked_about:
            rows[name] = by_key([OperatorTable(old).form(name, old["builds"].index(column)) for column in columns])
            continue
        types = {"": TypeImages(operator, operator.base)}
        types |= {f"{member}={value}": TypeImages(operator, desc) for member, value, desc in conditions(operator)}
        ranks, known, found = RankImages(operator), Known(), []
        for column in columns:
            if column in builds:
                found.append(facts(operator, builds[column], types, ranks, known))
            else:
                found.append(OperatorTable(old).form(name, old["builds"].index(column)))
        rows[name] = by_key(found)
        print(f"{name}: {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
    for build in builds.values():
        build.close()
    content = {"builds": columns, "operators": rows, "documented": old["documented"]}
    text = json.dumps(content, separators=(",", ":"))
    FILE.write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))


def by_key(found: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """For each key the different answers, and for each column the number of its own."""
    rows: dict[str, Any] = {}
    for key in dict.fromkeys(key for column in found for key in column):
        forms: list[str] = []
        numbers: list[int | None] = []
        for column in found:
            if key not in column:
                numbers.append(None)
                continue
            text = json.dumps(column[key])
            if text not in forms:
                forms.append(text)
            numbers.append(forms.index(text))
        rows[key] = [[json.loads(form) for form in forms], numbers]
    return rows


if __name__ == "__main__":
    main(sys.argv[1:])
