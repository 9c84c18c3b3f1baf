"""Lines of captures and DxDispatch models, and changes to them: values, members, arrays, spellings, lines, bytes."""

from __future__ import annotations

import copy
import json
import lzma
import random
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Final

from dmlsplit.formats import graph_json
from dmlsplit.formats.jsontext import JsonText
from dmlsplit.graphs import EXAMPLES
from tests.fuzz.values import INTEGERS, LOCATIONS, long_name, strange_name

DATA = Path(__file__).resolve().parents[1] / "data"
CAPTURED: Final = DATA / "captures" / "calls.jsonl.xz"
"""What `dmlsplit layer` wrote of a program that makes Splits, Joins, other operators and graphs, and binds some."""
MODELS: Final = sorted((DATA / "dxdispatch").glob("*.json"))
"""With resources, dispatchables and commands."""
MAX_LINES: Final = 12
MAX_VALUES: Final = 20_000
MAX_CHARACTERS: Final = 4 << 20
"""Of all strings: a long name that is repeated a thousand times is no document, but the end of this process."""
_VALUES: Final = (
    *(None, True, False, "", "NONE", "FLOAT32", "INT64", "DML_TENSOR_DATA_TYPE_UINT8", "OWNED_BY_DML", "inf", "nan"),
    *("DML_OPERATOR_SPLIT", "DML_OPERATOR_JOIN", "DML_GRAPH", "DML_GRAPH_DESC", "DML_OPERATOR_GEMM", "SPLIT", "BUFFER"),
    *("CreateOperator", "CompileGraph", "0x80070057", 0.5, -0.0, 1e308, 5e-324, 1e30, [], {}, [[]], [None], {"": None}),
)
_TEXTS: Final = (
    *("NaN", "-Infinity", "1e999", "-0", "01", "1.0", "4.0e0", "9" * 30, "9" * 5000, "0x10", "'a'", '"\\ud800"'),
    *('"\\u0000"', '"\\u202e"', "[" * 300 + "]" * 300, '{"a":' * 300 + "1" + "}" * 300, "// a", "/* a */ 1", "/*", ","),
    *('{"a": 1, "a": 2}', "tru", '"', "\t", "\x00", "\u2028"),
)
"""Instead of a value: spellings that JSON has, or lacks."""


@cache
def _lines() -> tuple[str, ...]:
    """The recorded lines, an accepted descriptor of each operator, and graphs that are fused wrongly."""
    recorded = lzma.decompress(CAPTURED.read_bytes()).decode().splitlines()
    operators = lzma.decompress((DATA / "operators" / "base.jsonl.xz").read_bytes()).decode().splitlines()
    graphs = [graph_json.dumps(build(broken)) for build in EXAMPLES.values() for broken in (True, False)]
    return (*recorded, *recorded, *recorded, *operators, *graphs)


@cache
def _models() -> tuple[str, ...]:
    """DxDispatch models as strict JSON, without their comments."""
    return tuple([json.dumps(JsonText.of_file(str(path)).value) for path in MODELS])


class Mutator:
    """Changes the values of one document; all choices are `rng`'s."""

    def __init__(self, rng: random.Random, document: Any) -> None:
        self.rng = rng
        self.root = [document]

    def places(self) -> list[tuple[Any, Any]]:
        """Each object and array with a key or an index of it, from the document on."""
        found: list[tuple[Any, Any]] = []
        todo: list[Any] = [self.root]
        while todo:
            parent = todo.pop()
            for key in list(parent) if isinstance(parent, dict) else range(len(parent)):
                found.append((parent, key))
                if isinstance(parent[key], (dict, list)):
                    todo.append(parent[key])
        return found

    def place(self) -> tuple[Any, Any]:
        return self.rng.choice(self.places())

    def value(self) -> Any:
        rng = self.rng
        kind = rng.random()
        if kind < 0.4:
            return rng.choice(INTEGERS)
        if kind < 0.65:
            return copy.deepcopy(rng.choice(_VALUES))
        if kind < 0.9:
            parent, key = self.place()
            return copy.deepcopy(parent[key])
        return rng.choice((strange_name, long_name))(rng)

    def size(self) -> tuple[int, int]:
        """How many values the document has, and how many characters its strings and keys have."""
        places = self.places()
        texts = [text for parent, key in places for text in (parent[key], key) if isinstance(text, str)]
        return len(places), sum(map(len, texts))

    def may_grow(self, value: Any, times: int = 1) -> bool:
        own, added = self.size(), Mutator(self.rng, value).size()
        return all(
            now + times * more < most for now, more, most in zip(own, added, (MAX_VALUES, MAX_CHARACTERS), strict=True)
        )

    # Changes

    def set_value(self) -> None:
        parent, key = self.place()
        value = self.value()
        if self.may_grow(value):
            parent[key] = value

    def set_number(self) -> None:
        """A number becomes another one, near it or at a limit."""
        numbers = [(parent, key) for parent, key in self.places() if type(parent[key]) is int]
        if numbers:
            parent, key = self.rng.choice(numbers)
            parent[key] = self.rng.choice((*INTEGERS, parent[key] + 1, parent[key] - 1, parent[key] * 2))

    def delete(self) -> None:
        parent, key = self.place()
        if parent is not self.root:
            del parent[key]

    def rename(self) -> None:
        """A member gets another one's name, another spelling, or a strange name."""
        members = [(parent, key) for parent, key in self.places() if isinstance(parent, dict)]
        if members:
            parent, key = self.rng.choice(members)
            _, other = self.rng.choice(members)
            name = self.rng.choice((other, other, key.lower(), key[:1].lower() + key[1:], strange_name(self.rng)))
            parent[name] = parent.pop(key)

    def repeat(self) -> None:
        """A value stands several times in its array."""
        items = [(parent, key) for parent, key in self.places() if isinstance(parent, list)][1:]
        if items:
            parent, key = self.rng.choice(items)
            times = self.rng.choice((1, 1, 2, 64, 1000))
            if self.may_grow(parent[key], times):
                parent[key:key] = [copy.deepcopy(parent[key]) for _ in range(times)]

    def swap(self) -> None:
        """Two values change places."""
        (one, i), (other, j) = self.place(), self.place()
        first, second = copy.deepcopy(one[i]), copy.deepcopy(other[j])
        if self.may_grow([first, second]):
            one[i] = second
            if other is not self.root and j in (other if isinstance(other, dict) else range(len(other))):
                other[j] = first


CHANGES: Final[tuple[Callable[[Mutator], None], ...]] = (
    *(Mutator.set_number,) * 4,
    *(Mutator.set_value,) * 3,
    *(Mutator.delete,) * 2,
    Mutator.rename,
    Mutator.repeat,
    Mutator.swap,
)


def write(rng: random.Random, folder: Path) -> Path:
    """A changed capture, calls.jsonl, or a changed DxDispatch model, model.json, in a folder."""
    if rng.random() < 0.25:
        path = folder / "model.json"
        text = _changed(rng, json.dumps(_with_files(rng, json.loads(rng.choice(_models())))))
        path.write_bytes(_bytes_changed(rng, text.encode("utf-8", "surrogatepass")))
        return path
    lines = [rng.choice(_lines()) for _ in range(rng.choice((1, 1, 2, 4, MAX_LINES)))]
    lines = [_changed(rng, line) if rng.random() < 0.7 else line for line in lines]
    if rng.random() < 0.1:  # lines of two threads in one another
        lines.append("".join(part[: rng.randint(0, len(part))] for part in rng.choices(lines, k=2)))
    end = rng.choice(("\n", "\n", "\n", "\r\n", "\n\n", "\r", " \n"))
    text = end.join(lines) + rng.choice((end, ""))
    path = folder / "calls.jsonl"
    path.write_bytes(_bytes_changed(rng, text.encode("utf-8", "surrogatepass")))
    return path


def _with_files(rng: random.Random, model: Any) -> Any:
    """A DxDispatch model that may read a resource from a file, and write one to a file."""
    name = rng.choice(list(model["resources"]))
    if rng.random() < 0.4:
        values = model["resources"][name]
        values["initialValues"] = {"valueCount": rng.choice((1, 2, 64)), "sourcePath": rng.choice(LOCATIONS)}
        if rng.random() < 0.5:
            del values["initialValues"]["valueCount"]
    if rng.random() < 0.4:
        target = rng.choice((*LOCATIONS, "out/x.npy", "out/x.bin", "x.npy"))
        model["commands"].append({"type": "writeFile", "resource": name, "targetPath": target})
    return model


def _changed(rng: random.Random, text: str) -> str:
    """A document with some changes of its values, and of the spelling of one."""
    mutator = Mutator(rng, json.loads(text))
    for _ in range(rng.choice((0, 1, 1, 2, 3, 8))):
        rng.choice(CHANGES)(mutator)
    if rng.random() < 0.15:
        parent, key = mutator.place()
        parent[key] = mark = "the place of another spelling"
        return _dumped(rng, mutator.root[0]).replace(json.dumps(mark), rng.choice(_TEXTS), 1)
    return _dumped(rng, mutator.root[0])


def _dumped(rng: random.Random, document: Any) -> str:
    return json.dumps(document, ensure_ascii=rng.random() < 0.5, separators=rng.choice(((", ", ": "), (",", ":"))))


def _bytes_changed(rng: random.Random, data: bytes) -> bytes:
    kind = rng.random()
    changed = bytearray(data)
    if kind < 0.06:
        for _ in range(rng.randint(1, 3)):
            changed[rng.randrange(len(changed))] = rng.randrange(256)
    elif kind < 0.1:
        del changed[rng.randint(0, len(changed)) :]
    elif kind < 0.12:
        changed[:0] = rng.choice((b"\xef\xbb\xbf", b"\xff\xfe", b"\x00", b"\n", b"\x1f\x8b"))
    return bytes(changed)
