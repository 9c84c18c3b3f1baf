"""What `dmlsplit check` takes for a directory of ONNX models and three versions of ONNX Runtime, with two jobs.

    python benchmarks/models.py [--models N] [--jobs N] [--seed N]

The models are small ones, of 3 to 12 nodes with Splits and Concats among them, a third of them with an open batch. The
target that dmlsplit set itself: 1,000 of them in less than 10 seconds (printed, never asserted: times are the
machine's). The CPU time is that of all processes, and does not grow with what else the machine does as much.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import onnx
from onnx import TensorProto, helper

VERSIONS = ("1.20.1", "1.24.4", "1.30.0")
TARGET = 10.0
"""Seconds, for 1,000 models."""


def model(rng: random.Random) -> onnx.ModelProto:
    """A model of a few elementwise operators, Splits and Concats."""
    nodes: list[onnx.NodeProto] = []
    live = [("x", 64)]
    for number in range(rng.randint(3, 12)):
        name, width = rng.choice(live[-4:])
        out = f"t{number}"
        kind = rng.choice(("Relu", "Tanh", "Split", "Split", "Concat"))
        if kind == "Split" and width % 2 == 0:
            nodes.append(helper.make_node("Split", [name], [out, f"{out}b"], axis=1, name=f"split{number}"))
            live += [(out, width // 2), (f"{out}b", width // 2)]
        elif kind == "Concat":
            other, more = rng.choice(live)
            nodes.append(helper.make_node("Concat", [name, other], [out], axis=1, name=f"concat{number}"))
            live.append((out, width + more))
        else:
            nodes.append(helper.make_node("Relu" if kind == "Split" else kind, [name], [out]))
            live.append((out, width))
    read = {name for node in nodes for name in node.input}
    batch = rng.choice((1, 2, "batch"))
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [batch, width, 8, 8]) for name, width in live]
    outputs = [value for value in values[1:] if value.name not in read]
    graph = helper.make_graph(nodes, "model", values[:1], outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--models", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)
    with tempfile.TemporaryDirectory() as folder:
        for number in range(arguments.models):
            Path(folder, f"{number:05}.onnx").write_bytes(model(rng).SerializeToString())
        command = [sys.executable, "-m", "dmlsplit", "check", f"{folder}/*.onnx", "--jobs", str(arguments.jobs)]
        command += [word for version in VERSIONS for word in ("--onnxruntime", version)]
        command += ["--format", "jsonl", "-o", f"{folder}/answers.jsonl"]
        before, began = os.times(), time.perf_counter()
        subprocess.run(command, check=False)
        passed, after = time.perf_counter() - began, os.times()
        answers = Path(folder, "answers.jsonl").read_text("utf-8").count("\n")
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    print(f"{arguments.models} models, {answers} answers of {len(VERSIONS)} versions, {arguments.jobs} jobs")
    print(f"{passed:.1f} s, {cpu:.1f} s of CPU; target for 1000 models: {TARGET:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
