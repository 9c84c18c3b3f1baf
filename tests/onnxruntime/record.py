"""What ONNX Runtime submits to DirectML for a model, as a DxDispatch model that a bug report can carry.

    python -m tests.onnxruntime.record MODEL.onnx [--onnxruntime 1.24.4] [--shape NAME:1,3,640,640 ...] [-o FILE.json]

Recorded are the Splits and Joins that the version makes for the model, each once, in order. With --shape the model is
run as well, with zeros: what is made at the first Run is in the file, too. Operators of other types are named with the
number of CreateOperator calls: a node of a fused graph is created once by itself and once for its graph.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import onnx

from dmlsplit.descriptors.descs import OperatorDesc
from dmlsplit.descriptors.geometry import members_of
from dmlsplit.formats import json as operator_json
from dmlsplit.formats.onnx.tensors import type_of
from dmlsplit.library.catalogue import onnxruntime_builds
from dmlsplit.library.errors import Unavailable
from dmlsplit.library.fetching import add
from dmlsplit.library.sessions import OnnxRuntime
from tests.onnxruntime.compare import operator_of
from tests.onnxruntime.models import DEFAULT, RunInput, Sample


def document(record: dict[str, Any], version: str) -> dict[str, Any]:
    """A DxDispatch model with the operators of a record, each dispatched once; its buffers are zeros.

    What was refused is in the file as well: DxDispatch shows the same HRESULT.
    """
    found: dict[OperatorDesc, None] = {}
    for event in record["events"]:
        if event["call"] == "CreateOperator":
            operator = operator_of(event["desc"])
            if operator is not None:
                found.setdefault(operator)
    resources: dict[str, Any] = {}
    dispatchables: dict[str, Any] = {}
    commands = []
    for number, operator in enumerate(found):
        name = f"operator{number}"
        dispatchables[name] = json.loads(operator_json.dumps(operator))
        bindings = _bindings(operator, name, resources)
        if bindings is not None:
            commands.append({"type": "dispatch", "dispatchable": name, "bindings": bindings})
    return {
        "$comment": f"recorded from onnxruntime {version}: {summary(record)}",
        "resources": resources,
        "dispatchables": dispatchables,
        "commands": commands,
    }


def summary(record: dict[str, Any]) -> str:
    """One line: what the session came to, how it was compiled, how many operators of other types there were."""
    events = record["events"]
    compiled = Counter(f"{e['call']} flags {e['flags']} {e['hr']}" for e in events if e["call"].startswith("Compile"))
    others = Counter(
        event["desc"]["Type"]
        for event in events
        if event["call"] == "CreateOperator" and operator_of(event["desc"]) is None
    )
    words = ["session created" if record.get("session") else f"session fails: {record.get('error', '')}"]
    if "ran" in record:
        words.append("ran" if record["ran"] else f"run fails: {record.get('error', '')}")
    words += [f"{text} ({count})" for text, count in compiled.items()]
    words += [f"{name}: {count}" for name, count in sorted(others.items())]
    return "; ".join(" ".join(word.split()) for word in words)


def _bindings(operator: OperatorDesc, name: str, resources: dict[str, Any]) -> dict[str, Any] | None:
    """A buffer for each tensor; None where a tensor has no descriptor to make one of."""
    members = members_of(operator)
    descs = [None if tensor is None else tensor.desc for tensor in (members.whole, *members.parts)]
    if None in descs:
        return None
    roles = members.roles
    bindings: dict[str, Any] = {}
    for member, tensors in roles.sides((roles.whole, descs[:1]), (roles.parts, descs[1:])):
        names = []
        for number, tensor in enumerate(tensors):
            assert tensor is not None
            names.append(f"{name}.{member}{number if member.endswith('s') else ''}")
            resources[names[-1]] = {
                "initialValuesDataType": "UINT8",
                "initialValues": {"valueCount": tensor.total_tensor_size_in_bytes, "value": 0},
            }
        bindings[member] = names if member.endswith("s") else names[0]
    return bindings


def sample_of(path: Path, shapes: dict[str, tuple[int, ...]]) -> Sample:
    """The model of a file, to be run with shapes where there are any; inputs of static shapes need none."""
    model = onnx.load(path)
    sample = Sample(path.name, model)
    if shapes:
        given = {tensor.name for tensor in model.graph.initializer}
        sample.run = []
        for value in model.graph.input:
            if value.name in given:
                continue
            shape = shapes.get(value.name, type_of(value.type)[1])
            if shape is None or not all(isinstance(dim, int) for dim in shape):
                raise SystemExit(f"the shape of {value.name} is open: pass --shape {value.name}:...")
            sample.run.append(RunInput(value.name, value.type.tensor_type.elem_type, tuple(map(int, shape))))
        sample.outputs = [value.name for value in model.graph.output]
    return sample


def _shape(text: str) -> tuple[str, tuple[int, ...]]:
    name, _, sizes = text.rpartition(":")
    try:
        return name, tuple(int(size) for size in sizes.split(",") if size)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text} is not NAME:SIZE,SIZE,...") from None


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.onnxruntime.record", description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("--onnxruntime", default=DEFAULT, choices=[made.version for made in onnxruntime_builds()])
    parser.add_argument("--shape", type=_shape, action="append", default=[], metavar="NAME:SIZES")
    parser.add_argument("-o", "--output", type=Path, help="standard output where it is left out")
    arguments = parser.parse_args()
    made = next(made for made in onnxruntime_builds() if made.version == arguments.onnxruntime)
    try:
        with OnnxRuntime(add(made)) as runtime:
            record = runtime.ask(sample_of(arguments.model, dict(arguments.shape)).query)
    except Unavailable as reason:
        print(f"cannot record: {reason}", file=sys.stderr)
        return 1
    text = json.dumps(document(record, made.version), indent=2)
    if arguments.output is None:
        print(text)
    else:
        arguments.output.write_text(f"{text}\n", "utf-8")
    print(summary(record), file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
