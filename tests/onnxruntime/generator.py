"""Random models: one Split or Concat in words, and graphs of several with whatever stands around them in models."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from onnx import TensorProto, helper

from tests.models import Sketch, ints, node
from tests.onnxruntime.models import NO_RUN, RunInput, Sample, described

TYPES = (
    *("FLOAT", "FLOAT16", "DOUBLE", "BOOL", "STRING", "BFLOAT16"),
    *("INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64"),
)
LARGE = (2**31 - 1, 2**31, 2**31 + 6, 2**32 - 2, 2**32 + 8)


def sample(seed: int, index: int, newest_opset: int = 21) -> Sample:
    """The sample of an index: the same for the same arguments."""
    rnd = random.Random(f"{seed} {index}")
    kind = rnd.choices((_split_in_words, _concat_in_words, _graph), (4, 2, 4))[0]
    return kind(rnd, f"{seed}-{index}", rnd.randint(13, newest_opset) if kind is _graph else newest_opset)


# One node in words.


def _split_in_words(rnd: random.Random, name: str, newest_opset: int) -> Sample:
    opset, data_type = rnd.randint(2, newest_opset), rnd.choice(TYPES)
    count, rank = rnd.choice((1, 2, 2, 2, 3, 4, 5, 8)), rnd.choice((1, 2, 3, 4, 4, 5, 6, 7, 8, 9))
    shape = [rnd.choice((1, 1, 2, 3, 5, 8)) for _ in range(rank)]
    axis = rnd.randrange(rank)
    shape[axis] = rnd.choice((count, 2 * count, 3 * count, count + 1, 7, 12, max(count - 1, 1)))
    large = rnd.random() < 0.08 and data_type != "STRING"
    if large:
        rank, count, opset = min(rank, 4), 2, max(opset, 2)
        shape, axis = [1] * rank, rnd.randrange(rank)
        shape[axis] = rnd.choice((65_534, 65_536, *LARGE)) if rank > 1 else rnd.choice(LARGE)
        if rank > 1 and shape[axis] < 2**17:
            shape[(axis + 1) % rank] = rnd.choice((65_535, 65_537))
    elif rnd.random() < 0.06:
        shape[rnd.randrange(rank)] = 0
    ways = ["auto"] * 4 + ["num"] * (3 * (opset >= 18)) + ["constnode", "dyn"] * (opset >= 13)
    if opset < 18 and shape[axis] % count == 0:
        ways += ["omit"] * 2
    how = rnd.choice(ways)
    size = shape[axis]
    if how in ("omit", "num"):
        chunk = -(-size // count)
        lengths = [chunk] * (count - 1) + [size - chunk * (count - 1)]
    else:
        lengths = _lengths(rnd, size, count)
    what: dict[str, object] = {"type": data_type, "axis": axis - rank if rnd.random() < 0.3 else axis, "lens": lengths}
    what |= {"how": how, "n": count, "opset": opset, "ctx": "alone", "shape": list(shape)}
    if not large and rnd.random() < 0.25:
        for i in rnd.sample(range(rank), rnd.randint(1, rank)):
            what["shape"][i] = f"D{i}"  # type: ignore[index]
    opened = what["shape"] != shape
    if data_type in ("FLOAT", "FLOAT16") and not large and opset >= 7 and rnd.random() < 0.5:
        what["ctx"] = rnd.choice(("between", "between", "unused"))
        what["used"] = rnd.randrange(count)
    if min(lengths) < 0 and not opened and what["ctx"] == "alone" and rnd.random() < 0.5:
        what["declared"] = "clipped"
    if (opened or how == "dyn" or rnd.random() < 0.15) and not large and data_type not in NO_RUN:
        what["run"] = [shape]
    return described(name, what)


def _lengths(rnd: random.Random, total: int, count: int) -> list[int]:
    """Lengths with a sum; empty ones now and then, and where there is no other way."""
    if total < count or rnd.random() < 0.25:
        cuts = sorted(rnd.randint(0, total) for _ in range(count - 1))
    else:
        cuts = sorted(rnd.sample(range(1, total), count - 1))
    return [end - start for start, end in zip([0, *cuts], [*cuts, total], strict=True)]


def _concat_in_words(rnd: random.Random, name: str, newest_opset: int) -> Sample:
    opset, data_type = rnd.randint(2, newest_opset), rnd.choice(TYPES)
    rank, count = rnd.choice((1, 2, 3, 4, 4, 5, 6, 7, 8, 9)), rnd.choice((1, 2, 2, 3, 4, 6))
    axis, base = rnd.randrange(rank), [rnd.choice((1, 2, 3, 5)) for _ in range(rank)]
    large = rnd.random() < 0.08 and rank > 1
    if large:
        base = [1] * rank
        base[(axis + 1) % rank] = rnd.choice((1, 46_341, 65_535, 65_536))
    elif rnd.random() < 0.04:
        base[rnd.randrange(rank)] = 0
    sizes = (1, 32_767, 65_535, 2**31 - 2, 2**31) if large else (1, 2, 3, 7, rnd.choice((0, 1)))
    shapes = [[*base[:axis], rnd.choice(sizes), *base[axis + 1 :]] for _ in range(count)]
    what: dict[str, object] = {"type": data_type, "shapes": shapes, "opset": opset, "ctx": "alone", "dyn": False}
    what["axis"] = axis - rank if opset >= 11 and rnd.random() < 0.3 else axis
    if not large and rank > 1 and rnd.random() < 0.25:
        opened = [i for i in range(rank) if i != axis and rnd.random() < 0.8]
        what["sym"] = [[f"D{i}" if i in opened else size for i, size in enumerate(shape)] for shape in shapes]
        what["dyn"] = bool(opened)
    if data_type in ("FLOAT", "FLOAT16") and not large and opset >= 7 and rnd.random() < 0.4:
        what["ctx"] = "between"
    if (what["dyn"] or rnd.random() < 0.15) and not large and data_type not in NO_RUN:
        what["run"] = shapes
    return described(name, what)


# Graphs.


@dataclass
class _Value:
    name: str
    shape: tuple[int, ...]
    """The real one."""


@dataclass
class _Growing:
    """A graph that grows step by step."""

    rnd: random.Random
    sketch: Sketch
    run: list[RunInput] = field(default_factory=list)
    values: list[_Value] = field(default_factory=list)
    read: set[str] = field(default_factory=set)
    names: int = 0
    inner: bool = False

    def new(self, stem: str) -> str:
        self.names += 1
        return f"{stem}{self.names}"

    def pick(self) -> _Value:
        value = self.rnd.choice(self.values[-6:])
        self.read.add(value.name)
        return value

    def add(self, op: str, read: list[str], count: int = 1, **attributes: object) -> list[str]:
        made = [self.new(op[0].lower()) for _ in range(count)]
        self.sketch.node(op, read, made, name=self.new(op), **attributes)
        return made


def _graph(rnd: random.Random, name: str, opset: int) -> Sample:
    data_type = rnd.choice((TensorProto.FLOAT, TensorProto.FLOAT, TensorProto.FLOAT, TensorProto.FLOAT16))
    made = _Growing(rnd, Sketch(data_type, opset))
    opened = rnd.random() < 0.3
    rank = rnd.choice((1, 2, 2, 3, 3, 4, 5))
    base = [rnd.choice((1, 2, 3, 4)) for _ in range(rank)]
    axis = rnd.randrange(rank)
    base[axis] = rnd.choice((4, 6, 8, 12))
    for _ in range(rnd.randint(1, 3)):
        x = made.new("x")
        declared: list[int | str] = list(base)
        if opened:
            for i in range(rank):
                if i != axis and rnd.random() < 0.7:
                    declared[i] = f"D{i}"
        made.sketch.input(x, *declared)
        made.run.append(RunInput(x, data_type, tuple(base)))
        made.values.append(_Value(x, tuple(base)))
    for _ in range(rnd.randint(1, 6)):
        rnd.choices(STEPS, WEIGHTS)[0](made)
    outputs = [value for value in made.values if value.name not in made.read] or [made.values[-1]]
    if rnd.random() < 0.2:
        outputs.append(rnd.choice(made.values))
    inputs = {value.name for value in made.sketch.inputs}
    unique = list({value.name: value for value in outputs if value.name not in inputs}.values())
    if not unique:
        unique = [_Value(made.add("Relu", [made.values[0].name])[0], made.values[0].shape)]
    declares = not opened and rnd.random() < 0.5
    for value in unique:
        made.sketch.output(value.name, value.shape if declares else None)
    found = Sample(name, made.sketch.model())
    if opened or any(entry.values is not None for entry in made.run) or rnd.random() < 0.2:
        found.run = made.run
        found.outputs = [value.name for value in unique]
    if rnd.random() < 0.1:
        found.config = {"ep.dml.disable_graph_fusion": "1"}
    return found


def _unary(made: _Growing) -> None:
    value = made.pick()
    op = made.rnd.choice(("Relu", "Relu", "Sigmoid", "Tanh", "Identity", "LeakyRelu"))
    (out,) = made.add(op, [value.name])
    made.values.append(_Value(out, value.shape))


def _binary(made: _Growing) -> None:
    value = made.pick()
    same = [other for other in made.values if other.shape == value.shape]
    other = made.rnd.choice(same)
    made.read.add(other.name)
    (out,) = made.add(made.rnd.choice(("Add", "Mul", "Sub")), [value.name, other.name])
    made.values.append(_Value(out, value.shape))


def _split_step(made: _Growing) -> None:
    rnd, value = made.rnd, made.pick()
    axes = [i for i, size in enumerate(value.shape) if size >= 2] or [0]
    axis = rnd.choice(axes)
    size = value.shape[axis]
    count = rnd.choice([n for n in (1, 2, 2, 3, 4) if n <= max(size, 1)])
    even = size % count == 0
    ways: list[Callable[[], tuple[list[str], list[int], dict[str, object]]]] = [
        lambda: _constant_lengths(made, size, count),
        lambda: _constant_node(made, size, count),
        lambda: _computed_lengths(made, size, count),
        lambda: _default_lengths(made, size, count),
    ]
    if even and made.sketch.opset < 18:
        ways += [lambda: ([], [size // count] * count, {})] * 2
    if made.sketch.opset >= 18 and -(-size // count) * (count - 1) < size:
        chunk = -(-size // count)
        ways += [lambda: ([], [chunk] * (count - 1) + [size - chunk * (count - 1)], {"num_outputs": count})] * 2
    # At later opsets the sizes are computed on the device, whose memory is none here.
    if even and made.sketch.opset <= 20:
        ways.append(lambda: _lengths_of_shape(made, value, axis, count))
    read, lengths, attributes = rnd.choice(ways)()
    names = made.add("Split", [value.name, *read], count, axis=_signed(rnd, axis, len(value.shape)), **attributes)
    for part, length in zip(names, lengths, strict=True):
        made.values.append(_Value(part, (*value.shape[:axis], length, *value.shape[axis + 1 :])))


def _signed(rnd: random.Random, axis: int, rank: int) -> int:
    return axis - rank if rnd.random() < 0.3 else axis


def _constant_lengths(made: _Growing, size: int, count: int) -> tuple[list[str], list[int], dict[str, object]]:
    lengths = _lengths(made.rnd, size, count) if made.rnd.random() < 0.1 else _full_lengths(made.rnd, size, count)
    name = made.new("lengths")
    made.sketch.integers(*lengths, name=name)
    return [name], lengths, {}


def _full_lengths(rnd: random.Random, size: int, count: int) -> list[int]:
    cuts = sorted(rnd.sample(range(1, size), count - 1)) if size >= count else []
    if size < count:
        return _lengths(rnd, size, count)
    return [end - start for start, end in zip([0, *cuts], [*cuts, size], strict=True)]


def _constant_node(made: _Growing, size: int, count: int) -> tuple[list[str], list[int], dict[str, object]]:
    lengths = _full_lengths(made.rnd, size, count)
    (name,) = made.add("Constant", [], value=ints("", *lengths))
    return [name], lengths, {}


def _computed_lengths(made: _Growing, size: int, count: int) -> tuple[list[str], list[int], dict[str, object]]:
    """Lengths that are an input of the model; inside of a branch an initializer of it."""
    if made.inner:
        return _constant_lengths(made, size, count)
    lengths = _full_lengths(made.rnd, size, count)
    name = made.new("lengths")
    made.sketch.input(name, count, element=TensorProto.INT64)
    made.run.append(RunInput(name, TensorProto.INT64, (count,), tuple(lengths)))
    return [name], lengths, {}


def _default_lengths(made: _Growing, size: int, count: int) -> tuple[list[str], list[int], dict[str, object]]:
    """Lengths that are an initializer and an input of the model as well: a default."""
    if made.inner:
        return _constant_lengths(made, size, count)
    read, lengths, attributes = _constant_lengths(made, size, count)
    made.sketch.input(read[0], count, element=TensorProto.INT64)
    return read, lengths, attributes


def _lengths_of_shape(
    made: _Growing, value: _Value, axis: int, count: int
) -> tuple[list[str], list[int], dict[str, object]]:
    """Equal lengths computed from the shape of the input: Shape, Gather, Div, Concat."""
    index, divisor = made.new("index"), made.new("divisor")
    made.sketch.integers(axis, name=index)
    made.sketch.integers(count, name=divisor)
    (shape,) = made.add("Shape", [value.name])
    (size,) = made.add("Gather", [shape, index])
    (part,) = made.add("Div", [size, divisor])
    (lengths,) = made.add("Concat", [part] * count, axis=0)
    return [lengths], [value.shape[axis] // count] * count, {}


def _concat_step(made: _Growing) -> None:
    rnd, value = made.rnd, made.pick()
    axis = rnd.randrange(len(value.shape))
    fitting = [
        other
        for other in made.values
        if len(other.shape) == len(value.shape)
        and all(a == b for i, (a, b) in enumerate(zip(other.shape, value.shape, strict=True)) if i != axis)
    ]
    chosen = [value, *rnd.choices(fitting, k=rnd.choice((0, 1, 1, 1, 2, 3)))]
    made.read.update(other.name for other in chosen)
    names, total = [other.name for other in chosen], sum(other.shape[axis] for other in chosen)
    if rnd.random() < 0.15:
        name = made.new("weights")
        shape = (*value.shape[:axis], 2, *value.shape[axis + 1 :])
        dtype = helper.tensor_dtype_to_np_dtype(made.sketch.element)
        made.sketch.initializer(np.zeros(shape, dtype), name)
        names.insert(rnd.randint(0, len(names)), name)
        total += 2
    (out,) = made.add("Concat", names, axis=_signed(rnd, axis, len(value.shape)))
    made.values.append(_Value(out, (*value.shape[:axis], total, *value.shape[axis + 1 :])))


def _branch(made: _Growing) -> None:
    """An If whose branches split what the outer graph computes."""
    value = made.pick()
    axis = max(range(len(value.shape)), key=lambda i: value.shape[i])
    if value.shape[axis] < 2 or made.inner:
        return
    condition = made.new("condition")
    made.sketch.input(condition, element=TensorProto.BOOL)
    made.run.append(RunInput(condition, TensorProto.BOOL, ()))
    outer = made.new("lengths")
    lengths = _full_lengths(made.rnd, value.shape[axis], 2)
    if made.rnd.random() < 0.5:
        made.sketch.integers(*lengths, name=outer)
    graphs = []
    for branch in ("then", "else"):
        sketch = Sketch(made.sketch.element, made.sketch.opset)
        inner = _Growing(made.rnd, sketch, names=made.names, inner=True)
        name = value.name
        if made.rnd.random() < 0.5:
            (name,) = inner.add("Relu", [name])
        if not any(tensor.name == outer for tensor in made.sketch.initializers):
            own = inner.new("lengths")
            sketch.integers(*lengths, name=own)
        else:
            own = outer
        first, _ = inner.add("Split", [name, own], 2, axis=axis)
        (last,) = inner.add("Relu", [first])
        made.names = inner.names
        shape = (*value.shape[:axis], lengths[0], *value.shape[axis + 1 :])
        sketch.output(last, shape if made.rnd.random() < 0.5 else None)
        graphs.append(sketch.graph(branch))
    (out,) = made.add("If", [condition], then_branch=graphs[0], else_branch=graphs[1])
    made.values.append(_Value(out, (*value.shape[:axis], lengths[0], *value.shape[axis + 1 :])))


def _call(made: _Growing) -> None:
    """A call of a local function that splits in two and joins the other way round."""
    value = made.pick()
    axis = max(range(len(value.shape)), key=lambda i: value.shape[i])
    if value.shape[axis] % 2 or made.inner:
        return
    if not made.sketch.functions:
        attributes = {"num_outputs": 2} if made.sketch.opset >= 18 else {}
        body = [
            node("Split", ["whole"], ["a", "b"], name="cut", axis=axis, **attributes),
            node("Concat", ["b", "a"], ["swapped"], name="join", axis=axis),
        ]
        imports = [helper.make_opsetid("", made.sketch.opset)]
        made.sketch.functions.append(helper.make_function("own", "Swap", ["whole"], ["swapped"], body, imports))
        made.sketch.functions[0].doc_string = str(axis)
    if axis != int(made.sketch.functions[0].doc_string):
        return
    out = made.new("swapped")
    made.sketch.node("Swap", [value.name], [out], name=made.new("Swap"), domain="own")
    made.values.append(_Value(out, value.shape))


STEPS = (_unary, _binary, _split_step, _concat_step, _branch, _call)
WEIGHTS = (3, 2, 5, 4, 0.5, 0.7)
