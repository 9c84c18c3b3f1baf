"""Models of one node: each operator of the default domain, ai.onnx.ml and com.microsoft, at each version, type and
variant.

tests/data/onnxruntime/operator_models.json has what the operators are given. An input is a shape, whose type is the
schema's, or a constant:

    [2, 3]                                         an input
    {"type": "int64", "shape": [2]}                an input of that type, or of that type parameter
    {"shape": [], "values": [0]}                   a constant of the schema's type, all elements alike
    {"usual": "int64", "shape": ..., "values": ...}    a constant of the schema's type, this one where it has none
    {"type": "int64", "shape": ..., "values": ...}     a constant of that type
    {"sequence": true}                             a sequence of the schema's type
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import cycle, product
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import defs, helper

import dmlsplit
from dmlsplit.onnxruntime.contributed_schemas import PLACE
from dmlsplit.onnxruntime.operators import EXPANDED, table

DATA = Path(__file__).parent.parent / "data/onnxruntime"
TYPES = {
    "float": 1, "uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "int32": 6, "int64": 7, "string": 8, "bool": 9,
    "float16": 10, "double": 11, "uint32": 12, "uint64": 13, "bfloat16": 16, "float8e4m3fn": 17, "float8e4m3fnuz": 18,
    "float8e5m2": 19, "float8e5m2fnuz": 20, "uint4": 21, "int4": 22, "float4e2m1": 23, "float8e8m0": 24, "uint2": 25,
    "int2": 26,
}  # fmt: skip
LEARNING = "ai.onnx.ml"
"""The domain of ONNX's operators of machine learning."""
LISTS = {"string": "strings", "int64": "int64s", "float": "floats"}
"""The ends of the names of attributes with elements of a type."""
PREFERRED = ("float", "int64", "int32", "uint8", "int8", "bool", "float16", "string")
FOUR_BITS = frozenset({"int4", "uint4"})
INTEGERS = FOUR_BITS | frozenset({"int64", "int32", "uint8", "int8", "uint16", "int16", "uint32", "uint64"})
OPSET_OF_CONTRIBUTED = 17
OLDEST_EXPANDED = 11
"""The first opset of models at which operators of com.microsoft are asked that others stand for."""
VARIED_AT = (21, None, 18, 17)
"""The opsets at which variants are asked; None: the newest."""
UNMADE = frozenset({("Upsample", 10), ("Scatter", 11)})
"""Versions that only say that the operator is no more."""
ONE_OUTPUT = frozenset({"LSTM", "GRU", "RNN", "BatchNormalization", "MaxPool", "Dropout", "LayerNormalization"})
OUTPUTS = {"GroupQueryAttention": 3}
OF_SEQUENCES = frozenset({"SequenceConstruct", "SequenceInsert", "SplitToSequence"})
"""Operators with tensors T and sequences S of one type."""
_NUMBERS = ("float", "int32", "int64")
_BYTES = ("int8", "uint8")
COMBINED: dict[str, dict[str, Sequence[str]]] = {
    "OneHot": {"T1": _NUMBERS, "T2": _NUMBERS, "T3": (*_NUMBERS, "bool", "double", "float16", "string", "uint8")},
    "LabelEncoder": dict.fromkeys(("T1", "T2"), (*_NUMBERS, "double", "int16", "string")),
    "QLinearConv": dict.fromkeys(("T1", "T2", "T3"), _BYTES),
    "QLinearMatMul": {"TS": ("float", "float16"), **dict.fromkeys(("T1", "T2", "T3"), _BYTES)},
    **dict.fromkeys(("ConvInteger", "MatMulInteger"), dict.fromkeys(("T1", "T2"), _BYTES)),
}
"""Operators whose kernels are of some combinations of types, which those of single types do not tell, with the types
of their parameters."""
HOLDING = frozenset({"If", "Loop"})
"""Operators with graphs inside, whose nodes have no kernels below opset 7."""
IR_VERSIONS = ((10, 4), (15, 7), (19, 8), (21, 9))
"""Of opsets below one."""


@dataclass(frozen=True)
class Key:
    """One node: the version is that of its schema; types are those of the schema's type parameters."""

    domain: str
    op: str
    version: int
    types: tuple[tuple[str, str], ...]
    variant: str = ""

    @property
    def text(self) -> str:
        return json.dumps([self.domain, self.op, self.version, self.types, self.variant])

    def to_json(self) -> dict[str, Any]:
        named = {"domain": self.domain, "op": self.op, "v": self.version, "p": dict(self.types)}
        return {**named, "var": self.variant}

    @classmethod
    def of_json(cls, row: Mapping[str, Any]) -> Key:
        return cls(row["domain"], row["op"], row["v"], tuple(sorted(row["p"].items())), row.get("var", ""))


@dataclass(frozen=True)
class Schema:
    """What is used of an operator's schema: types and options of inputs and outputs, the types of each parameter."""

    inputs: Sequence[tuple[str, str]]
    outputs: Sequence[tuple[str, str]]
    parameters: Mapping[str, Sequence[str]]
    attributes: frozenset[str]

    @property
    def used(self) -> list[str]:
        return [name for name, _ in (*self.inputs, *self.outputs)]


def element(text: str) -> str | None:
    """The element type of a type as schemas have it."""
    inner = text.strip().removeprefix("seq(")
    name = inner.removeprefix("tensor(").rstrip(")")
    return name if inner.startswith("tensor(") and name in TYPES else None


@cache
def schemas() -> dict[tuple[str, str, int], Schema]:
    """By domain, name and version; sorted. Those that onnx does not have are in the package, by version of ONNX
    Runtime: the newest that has the operator."""
    found = {}
    for each in defs.get_all_schemas_with_history():
        if each.domain in ("", LEARNING):
            allowed = {each.type_param_str: list(each.allowed_type_strs) for each in each.type_constraints}
            if each.domain:  # maps are no types of tensors
                allowed = {name: types for name, types in allowed.items() if any(map(element, types))}
            found[each.domain, each.name, each.since_version] = Schema(
                [(value.type_str, value.option.name) for value in each.inputs],
                [(value.type_str, value.option.name) for value in each.outputs],
                allowed,
                frozenset(each.attributes),
            )
    contributed = json.loads(lzma.decompress((Path(dmlsplit.__file__).parent / PLACE).read_bytes()))
    for operator, versions in contributed["operators"].items():
        domain, _, name = operator.rpartition(".")
        for version, cells in versions.items():
            (*_, newest) = [cell for cell in cells if cell is not None]
            row = contributed["rows"][newest]
            inputs, outputs = ([(text, option) for text, option, _ in row[side]] for side in ("inputs", "outputs"))
            found[domain, name, int(version)] = Schema(inputs, outputs, row["types"], frozenset(row["attributes"]))
    return dict(sorted(found.items()))


@cache
def of_onnx() -> frozenset[str]:
    """The operators of the default domain that onnx has."""
    return frozenset(each.name for each in defs.get_all_schemas_with_history() if each.domain == "")


@cache
def recorded() -> Any:
    return json.loads((DATA / "operator_models.json").read_text("utf-8"))


def given(domain: str, op: str, version: int) -> tuple[list[Any], dict[str, Any]] | None:
    """The inputs and attributes of a node; None where no model is made of the operator."""
    if (op, version) in UNMADE:
        return None
    rows = recorded()["nodes"].get(f"{domain}.{op}" if domain else op, ())
    if rows is None:
        return None
    known = [row for row in rows if row[0] <= version]
    if rows and not known:
        return None
    if known:
        return known[-1][1], known[-1][2]
    inputs = schemas()[domain, op, version].inputs
    return [[2, 3, 4, 5] for _, option in inputs if option != "Optional"], {}


def default_types(domain: str, op: str, version: int) -> dict[str, str]:
    """The usual type of each parameter."""
    found = {}
    for name, allowed in schemas()[domain, op, version].parameters.items():
        elements = {element(each) for each in allowed}
        usual = next((each for each in PREFERRED if each in elements), None)
        if op in ("QuantizeLinear", "QLinearConv", "QLinearMatMul", "DequantizeLinear") and "uint8" in elements:
            usual = "uint8"
        if usual:
            found[name] = usual
    return found | ({"T1": "int64", "T2": "int64"} if op == "OneHot" else {})


def types_of(domain: str, op: str, version: int) -> Iterator[dict[str, str]]:
    """The types that are asked: each parameter varied by itself, the others as usual."""
    schema, usual = schemas()[domain, op, version], default_types(domain, op, version)
    inputs = [name for name, _ in schema.inputs]
    if not schema.parameters:
        yield {}
    for name, allowed in schema.parameters.items():
        if name not in schema.used or (name not in inputs and op in ("ArgMax", "Shape", "Size")):
            continue
        for text in allowed:
            each = element(text)
            if each is None:
                continue
            types = {**usual, name: each}
            if op in OF_SEQUENCES and name in ("S", "T"):
                types |= {"S": each, "T": each}
            first = inputs and name == inputs[0]
            if first and op not in ("Cast", "CastLike") and each in ("float16", "double", "bfloat16"):
                # Parameters that are FLOAT as well follow the first.
                for other, others in schema.parameters.items():
                    if other != name and text in others and usual.get(other) == "float":
                        types[other] = each
            yield {other: data_type for other, data_type in types.items() if other in schema.used}
    combined = {name: types for name, types in COMBINED.get(op, {}).items() if name in schema.parameters}
    for each in product(*combined.values()) if combined else ():
        types = {**usual, **dict(zip(combined, each, strict=True))}
        if all(text in map(element, schema.parameters[name]) for name, text in types.items()):
            yield {name: types[name] for name in types if name in schema.used}


def keys(newest: int) -> Iterator[Key]:
    """All that is asked of a version that loads models up to an opset."""
    seen = set()
    for key in (*_by_type(newest), *_varied(newest), *_expanded(newest)):
        if key not in seen:
            seen.add(key)
            yield key


def _key(name: tuple[str, str, int], types: Mapping[str, str], variant: str = "") -> Key:
    return Key(*name, tuple(sorted(types.items())), variant)


def _by_type(newest: int) -> Iterator[Key]:
    for name in schemas():
        if name[2] > newest or given(*name) is None:
            continue
        for types in types_of(*name):
            yield _key(name, types)
            if name[1] == "Shape":
                yield _key(name, types, "sym")


def _varied(newest: int) -> Iterator[Key]:
    """Variants: ranks, symbolic sizes, constants that are inputs, tensors without elements, attributes."""
    for opset in (newest if each is None else each for each in VARIED_AT):
        if opset > newest:
            continue
        common = [name for op in recorded()["common"] if (name := ("", op, _version(op, opset) or 0))[2]]
        for name in common:
            types = _used_types(name)
            yield _key(name, types, "empty")
            yield _key(name, types, "symfirst")
            yield from (_key(name, types, f"rank{r}") for r in range(1, 10) if ranked(name[1], r) is not None)
        for op in sorted(of_onnx()):
            name = ("", op, {"Upsample": 9, "Scatter": 9}.get(op) or _version(op, opset) or 0)
            if name not in schemas() or given(*name) is None:
                continue
            types = _used_types(name)
            if not types and schemas()[name].parameters:
                continue
            yield _key(name, types, "sym")
            if any(isinstance(each, dict) for each in _given(*name)[0]):
                yield _key(name, types, "dyn")
            for variant, attributes, _ in recorded()["variants"].get(op, ()):
                if set(attributes) <= schemas()[name].attributes:
                    yield _key(name, types, f"a:{variant}")


def _expanded(newest: int) -> Iterator[Key]:
    """Operators that others stand for, at the opsets between one version of them and the next: the others change."""
    for name, types, _ in expanded():
        domain, op, version = name
        first = OLDEST_EXPANDED if domain else version + 1
        later = [v for d, o, v in schemas() if (d, o) == (domain, op) and v > version and not domain]
        for opset in range(first, min([newest + 1, *later])):
            yield _key(name, types, f"opset{opset}")


def expanded() -> Iterator[tuple[tuple[str, str, int], dict[str, str], str]]:
    """The rows of the table with operators that others stand for: the operator, its types, and the answers."""
    for op, versions in table()["operators"].items():
        for version, row in versions.items():
            domain, _, name = op.rpartition(".")
            for place, cells in row.get("types", {}).items():
                if not EXPANDED.isdisjoint(cells):
                    types = zip(row["parameters"], place.split(","), strict=True)
                    yield (domain, name, int(version)), {parameter: each for parameter, each in types if each}, cells


def _given(domain: str, op: str, version: int) -> tuple[list[Any], dict[str, Any]]:
    found = given(domain, op, version)
    if found is None:
        raise ValueError(f"no model is made of {op} {version}")
    return found


def _version(op: str, opset: int) -> int | None:
    return max((v for domain, name, v in schemas() if (domain, name) == ("", op) and v <= opset), default=None)


def _used_types(name: tuple[str, str, int]) -> dict[str, str]:
    used = schemas()[name].used
    return {parameter: each for parameter, each in default_types(*name).items() if parameter in used}


# Ranks.

Sizes = list[int]
SAME = (
    "Relu Sigmoid Tanh Exp Sqrt Erf Identity Not Shape Size IsNaN Sign Softmax LogSoftmax Flatten LeakyRelu Gelu Round "
    "NonZero Dropout"
)
ZERO = {"shape": [], "values": [0]}


def _int64(*values: int) -> dict[str, Any]:
    return {"type": "int64", "shape": [len(values)], "values": list(values)}


def _numbers(data_type: str, *values: float) -> dict[str, Any]:
    return {"usual": data_type, "shape": [len(values)], "values": list(values)}


def _ones(*sizes: int) -> dict[str, Any]:
    return {"shape": list(sizes), "values": [1]}


def _image(rank: int) -> Sizes:
    return [1, 4] + [4] * (rank - 2)


RANKED: dict[str, Callable[[Sizes], tuple[list[Any], dict[str, Any]]]] = {
    **dict.fromkeys(SAME.split(), lambda x: ([x], {})),
    **dict.fromkeys(("Add", "Mul", "Div", "Sub", "Pow", "Max", "Equal", "And", "PRelu"), lambda x: ([x, x], {})),
    "Cast": lambda x: ([x], {"to": "?"}),
    "Mod": lambda x: ([x, x], {"fmod": "?"}),
    "Where": lambda x: ([x, x, x], {}),
    "Clip": lambda x: ([x, ZERO, _ones()], {}),
    "Concat": lambda x: ([x, x], {"axis": 0}),
    "Split": lambda x: ([[2, *x[1:]], _int64(1, 1)], {"axis": 0}),
    "Slice": lambda x: ([x, *(_numbers("int64", each) for each in (0, 1, 0))], {}),
    "Gather": lambda x: ([x, [2]], {"axis": 0}),
    "GatherElements": lambda x: ([x, x], {"axis": 0}),
    "ScatterElements": lambda x: ([x, x, x], {"axis": 0}),
    "GatherND": lambda x: ([x, [2, 1]], {}),
    "ScatterND": lambda x: ([x, [2, 1], [2, *x[1:]]], {}),
    "Reshape": lambda x: ([x, _int64(-1)], {}),
    "Transpose": lambda x: ([x], {"perm": list(range(len(x)))[::-1]}),
    "Squeeze": lambda x: ([[1, *x[1:]], _int64(0)], {}),
    "Unsqueeze": lambda x: ([x, _int64(0)], {}),
    "Expand": lambda x: ([[1, *x[1:]], _int64(2, *x[1:])], {}),
    "Tile": lambda x: ([x, _int64(2, *[1] * (len(x) - 1))], {}),
    "Pad": lambda x: ([x, _int64(*([0] * (len(x) - 1) + [1]) * 2)], {}),
    "LayerNormalization": lambda x: ([x, _ones(x[-1]), _ones(x[-1])], {}),
    **dict.fromkeys(("ReduceSum", "ReduceMean", "ReduceMax"), lambda x: ([x, _int64(0)], {})),
    "ArgMax": lambda x: ([x], {"axis": 0}),
    "TopK": lambda x: ([x, _int64(1)], {"axis": 0}),
    "CumSum": lambda x: ([x, {"usual": "int64", "shape": [], "values": [0]}], {}),
    "MatMul": lambda x: ([x, [*x[:-2], x[-1], 5]] if len(x) > 1 else [x, x], {}),
    "OneHot": lambda x: ([x, {"shape": [], "values": [4]}, [2]], {}),
    **dict.fromkeys(("QuantizeLinear", "DequantizeLinear"), lambda x: ([x, _ones(), ZERO], {})),
    "Conv": lambda x: ([_image(len(x)), _ones(3, 4, *[2] * (len(x) - 2))], {}),
    **dict.fromkeys(
        ("MaxPool", "AveragePool"), lambda x: ([_image(len(x))], {"kernel_shape": [2] * (len(x) - 2)})
    ),
    "GlobalAveragePool": lambda x: ([_image(len(x))], {}),
    "BatchNormalization": lambda x: ([_image(len(x)), *[_ones(4)] * 4], {}),
    "InstanceNormalization": lambda x: ([_image(len(x)), *[_ones(4)] * 2], {}),
    "Resize": lambda x: ([x, None, _numbers("float", 2.0, *[1.0] * (len(x) - 1))], {}),
    "Trilu": lambda x: ([x], {}),
    "MeanVarianceNormalization": lambda x: ([x], {"axes": [0, 1]}),
}  # fmt: skip
LEAST_RANK = {
    "Trilu": 2,
    "MeanVarianceNormalization": 2,
    **dict.fromkeys(("Conv", "MaxPool", "AveragePool", "GlobalAveragePool", "BatchNormalization"), 3),
    "InstanceNormalization": 3,
}


def ranked(op: str, rank: int) -> tuple[list[Any], dict[str, Any]] | None:
    """The inputs and attributes of a node of a rank; None where no model is made."""
    if op not in RANKED or rank < LEAST_RANK.get(op, 0):
        return None
    return RANKED[op]({0: [], 1: [3], 2: [2, 3], 3: [2, 3, 4]}.get(rank, [2] * (rank - 3) + [3, 2, 4]))


# Models.


def constant(data_type: str, shape: Sequence[int], values: Sequence[Any], name: str) -> onnx.TensorProto:
    """A tensor; one value stands for all elements."""
    count = int(np.prod(shape)) if shape else 1
    elements = list(values) if len(values) == count else list(values) * count
    if data_type == "string":
        elements = [str(each).encode() for each in elements]
    else:
        cast = int if data_type in INTEGERS else bool if data_type == "bool" else float
        elements = [cast(each) for each in elements]
    made = helper.make_tensor(name, TYPES[data_type], shape, elements)
    if data_type in FOUR_BITS:  # DirectML's kernels read those of 4 bits only from raw data
        packed = bytes(made.int32_data)
        made.ClearField("int32_data")
        made.raw_data = packed
    return made


def body(name: str, data_type: str = "float") -> onnx.GraphProto:
    """The graphs in If, Loop and Scan; the type is that of an If's output, and of what the others carry."""
    value, node, number = helper.make_tensor_value_info, helper.make_node, TYPES[data_type]
    adds = data_type == "float"
    if name == "loop":
        carried = node("Add", ["s", "s"], ["so"]) if adds else node("Identity", ["s"], ["so"])
        inputs = [value("i", 7, []), value("k", 9, []), value("s", number, [3])]
        nodes = [carried, node("Identity", ["k"], ["ko"])]
        return helper.make_graph(nodes, "b", inputs, [value("ko", 9, []), value("so", number, [3])])
    if name == "scan":
        carried = node("Add", ["s", "x"], ["so"]) if adds else node("Identity", ["s"], ["so"])
        nodes = [carried, node("Identity", ["so" if adds else "x"], ["y"])]
        inputs = [value("s", number, [3]), value("x", number, [3])]
        return helper.make_graph(nodes, "b", inputs, [value("so", number, [3]), value("y", number, [3])])
    nodes, output = [node(name, ["cx"], [f"bo_{name}"])], value(f"bo_{name}", number, [2, 3])
    return helper.make_graph(nodes, f"g{name}", [], [output])


def built(key: Key) -> onnx.ModelProto:
    """The model of a key. ValueError, KeyError, TypeError where it cannot be made."""
    name = key.domain, key.op, key.version
    schema, types = schemas()[name], dict(key.types)
    inputs, attributes, outputs = _node(key)
    graph = onnx.GraphProto(name="g")
    given_names = []
    same = inputs[0] if inputs else None
    for i, each in enumerate(inputs):
        formal = schema.inputs[min(i, len(schema.inputs) - 1)][0]
        given_names.append("" if each is None else f"i{i}")
        if isinstance(each, list):
            add = graph.input.add
            data_type = element(formal) or types.get(formal, "float")
            sizes = _sizes(key.variant, each, each == same, i, not graph.input)
            add().CopyFrom(helper.make_tensor_value_info(f"i{i}", TYPES[data_type], sizes))
        elif each is not None:
            _add_described(graph, f"i{i}", each, formal, types)
    node = helper.make_node(key.op, given_names, [f"o{i}" for i in range(outputs)], name="n", domain=key.domain)
    for attribute, value in attributes.items():
        if not schema.attributes or attribute in schema.attributes:
            node.attribute.append(helper.make_attribute(attribute, value))
    graph.node.append(node)
    graph.output.extend([helper.make_value_info(output, onnx.TypeProto()) for output in node.output])
    _finish_inputs(graph, key.op, types)
    opset = OPSET_OF_CONTRIBUTED if key.domain else key.version
    if key.variant.startswith("opset"):
        opset = int(key.variant[5:])
    if not key.domain and (key.op not in of_onnx() or key.op in HOLDING):
        opset = max(7, opset)
    imports = [helper.make_opsetid("", opset)] + ([helper.make_opsetid(key.domain, key.version)] if key.domain else [])
    ir_version = next((version for below, version in IR_VERSIONS if opset < below), 10)
    model = onnx.ModelProto(ir_version=ir_version, graph=graph, opset_import=imports)
    _declare_outputs(model, key, schema)
    return model


def _node(key: Key) -> tuple[list[Any], dict[str, Any], int]:
    """The inputs, attributes and number of outputs of a key."""
    found = ranked(key.op, int(key.variant[4:])) if key.variant.startswith("rank") else None
    inputs, attributes = found or _given(key.domain, key.op, key.version)
    attributes = dict(attributes)
    outputs = [option for _, option in schemas()[key.domain, key.op, key.version].outputs]
    count = outputs.count("Single") or 1
    if "Variadic" in outputs:
        count = 2 if key.op in ("Split", "Scan") else 1
    count = 1 if key.op in ONE_OUTPUT else OUTPUTS.get(key.op, count)
    if key.variant.startswith("a:"):
        rows = recorded()["variants"][key.op]
        _, more, forced = next(row for row in rows if row[0] == key.variant[2:])
        attributes |= more
        count = forced or count
    if key.variant == "dyn":
        inputs = [_as_input(each) for each in inputs]
    return inputs, {name: _attribute(key, name, value) for name, value in _of_types(key, attributes).items()}, count


def _as_input(each: Any) -> Any:
    """A constant made an input."""
    if not isinstance(each, dict) or not each.get("values"):
        return each
    data_type = each.get("type") or each.get("usual")
    return {"type": data_type, "shape": each["shape"]} if data_type else each["shape"]


def _of_types(key: Key, attributes: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes with those that follow from the types."""
    types, made = dict(key.types), dict(attributes)
    main = types.get(schemas()[key.domain, key.op, key.version].inputs[0][0]) if made.get("fmod") == "?" else None
    if made.get("fmod") == "?":
        del made["fmod"]
        made |= {"fmod": 1} if main in ("float", "float16", "double", "bfloat16") else {}
    if key.op in ("RandomNormal", "RandomUniform"):
        made["dtype"] = TYPES[types.get("T", "float")]
    if key.op in ("RandomNormalLike", "RandomUniformLike"):
        made["dtype"] = TYPES[types.get("T2", "float")]
    if key.op == "EyeLike":
        made["dtype"] = TYPES[types["T2"]]
    if key.domain == LEARNING:
        made |= _learned(key, types)
    if key.op == "ConstantOfShape":
        made["value"] = constant(types.get("T2", "float"), [1], [1], "v")
    return made


def _learned(key: Key, types: Mapping[str, str]) -> dict[str, Any]:
    """The attributes of an operator of ai.onnx.ml whose names or types follow from the types of tensors."""
    elements = {"string": ["a", "b"], "int64": [0, 1], "float": [0.0, 1.0]}
    main, label = types.get("T", types.get("T1", "float")), types.get("T2", "int64")
    if key.op in ("LinearClassifier", "SVMClassifier", "TreeEnsembleClassifier", "ZipMap"):
        integers = "int64s" if key.op in ("TreeEnsembleClassifier", "ZipMap") else "ints"
        return {f"classlabels_{'strings' if label == 'string' else integers}": elements[label]}
    if key.op == "OneHotEncoder":
        main = "string" if main == "string" else "int64"
        return {f"cats_{LISTS[main]}": elements[main]}
    if key.op == "Imputer":
        return {"imputed_value_int64s": [1]} if main == "int64" else {"imputed_value_floats": [1.0]}
    if key.op == "LabelEncoder" and key.version > 1:
        made: dict[str, Any] = {}
        for side, data_type in (("keys", main), ("values", label)):
            if data_type in LISTS:
                made[f"{side}_{LISTS[data_type]}"] = elements[data_type]
            else:
                made[f"{side}_tensor"] = constant(data_type, [2], [0, 1], "t")
                if side == "values":
                    made["default_tensor"] = constant(data_type, [1], [0], "t")
        return made
    if key.op == "TreeEnsemble":
        tensors = (("nodes_splits", main, [0]), ("nodes_modes", "uint8", [0]), ("leaf_weights", main, [0, 1]))
        return {name: constant(data_type, [len(values)], values, name) for name, data_type, values in tensors}
    return {}


def _attribute(key: Key, name: str, value: Any) -> Any:
    if value == "?":
        to = dict(key.types).get("T2", "float")
        return TYPES[to] if key.version >= 6 else to.upper()
    if isinstance(value, dict):
        carried = dict(key.types).get("V", "float")
        return body(value["graph"] if carried == "float" or key.op != "If" else "Identity", carried)
    return value


def _sizes(variant: str, sizes: Sizes, like_first: bool, index: int, is_first: bool) -> list[int | str]:
    if variant == "empty" and sizes and (is_first or like_first):
        return [0, *sizes[1:]]
    if variant == "sym":
        return [f"d{j}" if like_first else f"d{index}_{j}" for j in range(len(sizes))]
    if variant == "symfirst" and sizes:
        return ["N", *sizes[1:]]
    return [*sizes]


def _add_described(
    graph: onnx.GraphProto, name: str, each: Mapping[str, Any], formal: str, types: Mapping[str, str]
) -> None:
    """Adds an input or a constant that is not of the schema's type alone."""
    of_schema = element(formal) or types.get(formal, "float")
    if each.get("sequence"):
        graph.input.add().CopyFrom(helper.make_tensor_sequence_value_info(name, TYPES[of_schema], None))
        return
    if "type" in each:
        data_type = types.get(each["type"], each["type"])
        data_type = data_type if data_type in TYPES else "float"
    elif "usual" in each:
        data_type = each["usual"] if element(formal) else types.get(formal, each["usual"])
    else:
        data_type = of_schema
    if "values" in each:
        graph.initializer.append(constant(data_type, each["shape"], each["values"], name))
    else:
        graph.input.add().CopyFrom(helper.make_tensor_value_info(name, TYPES[data_type], each["shape"]))


def _finish_inputs(graph: onnx.GraphProto, op: str, types: Mapping[str, str]) -> None:
    """Conditions and counts, whose type schemas do not tell."""
    if op == "If":
        graph.input[0].CopyFrom(helper.make_tensor_value_info("i0", 9, []))
        graph.input.add().CopyFrom(helper.make_tensor_value_info("cx", TYPES[types["V"]], [2, 3]))
    if op == "Loop":
        graph.input[0].CopyFrom(helper.make_tensor_value_info("i0", 7, []))
        graph.input[1].CopyFrom(helper.make_tensor_value_info("i1", 9, []))


def _declare_outputs(model: onnx.ModelProto, key: Key, schema: Schema) -> None:
    """Gives outputs the types that inference finds, else those of the schema."""
    types, outputs = dict(key.types), model.graph.output
    if key.op == "ZipMap":
        maps = helper.make_map_type_proto(TYPES["int64"], helper.make_tensor_type_proto(TYPES["float"], None))
        outputs[0].type.CopyFrom(helper.make_sequence_type_proto(maps))
        return
    if key.domain or key.op == "Affine":
        for output, (text, _) in zip(outputs, schema.outputs, strict=False):
            if data_type := element(text) or types.get(text):
                output.type.tensor_type.elem_type = TYPES[data_type]
    if not key.domain and key.op in of_onnx():
        try:
            inferred = onnx.shape_inference.infer_shapes(model, strict_mode=True)
        except (onnx.shape_inference.InferenceError, ValueError):
            inferred = model
        found = {value.name: value for value in inferred.graph.output}
        for output in outputs:
            if found[output.name].type.WhichOneof("value"):
                output.CopyFrom(found[output.name])
    for output, (text, _) in zip(outputs, cycle(schema.outputs), strict=False):
        allowed = schema.parameters.get(text, ())
        if any(each.startswith("seq(") for each in allowed) and not any(each.startswith("tensor(") for each in allowed):
            output.CopyFrom(helper.make_tensor_sequence_value_info(output.name, TYPES[types[text]], None))
            continue
        if key.op in ("SequenceAt", "ConcatFromSequence"):
            output.type.tensor_type.elem_type = TYPES[types["S"]]
        if not output.type.WhichOneof("value") and (data_type := element(text) or types.get(text)):
            output.type.tensor_type.elem_type = TYPES[data_type]
