"""Asks versions of ONNX Runtime where they place each operator, by models of one node, and writes the table of them.

    python -m tests.onnxruntime.record_operators ask 1.24.4 ANSWERS.jsonl     a line a node; goes on where it was ended
    python -m tests.onnxruntime.record_operators ask 1.24.4 ANSWERS.jsonl Conv Pad      only nodes of these operators
    python -m tests.onnxruntime.record_operators write ANSWERS.jsonl ...      adds them to the package's table

Nodes are asked many at a time, as parts of one model that do not touch; where such a model is refused, the one that is
named is taken out, or both halves are asked by themselves.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import onnx
from onnx import helper

from dmlsplit.library.fetching import checked_folder
from dmlsplit.library.models import PROVIDERS, find_version, providers
from dmlsplit.library.sessions import OnnxRuntime, Query
from dmlsplit.targets.runtime_versions import find_runtime
from tests.onnxruntime.operator_models import Key, built, keys

BATCH = 48
NO_KERNEL = re.compile(r"Could not find an implementation|Failed to find kernel|NOT_IMPLEMENTED")
NO_FUSION = {"ep.dml.disable_graph_fusion": "1"}
COUNTED = re.compile(r"placed on \[(\w+)\]\. Number of nodes: (\d+)")
NAMED = re.compile(r"\bk(\d+)/")


@dataclass(frozen=True)
class Asked:
    """A node to be asked about, with its model."""

    key: Key
    model: onnx.ModelProto


@dataclass
class Recorder:
    """One version, and its answers so far."""

    runtime: OnnxRuntime
    version: str
    answers: list[dict[str, Any]] = field(default_factory=list)

    def ask(self, model: onnx.ModelProto, directml: bool = True, **config: str) -> dict[str, Any]:
        query = Query(model.SerializeToString(), config=config, directml=directml)
        return self.runtime.ask(query, 60)

    def batch(self, asked: Sequence[Asked]) -> Iterator[dict[str, Any]]:
        """The answers about nodes whose models have one opset."""
        if len(asked) == 1:
            yield self.alone(asked[0])
            return
        if not asked:
            return
        model = merged([each.model for each in asked])
        placed = self.ask(model, **NO_FUSION)
        fused = self.ask(model) if placed.get("session") else placed
        if not fused.get("session"):
            error = fused.get("error", "")
            found = {int(number) for number in NAMED.findall(error)} if error else set()
            if len(found) == 1 and (culprit := found.pop()) < len(asked):
                yield self.alone(asked[culprit])
                yield from self.batch([each for i, each in enumerate(asked) if i != culprit])
            else:
                half = len(asked) // 2
                yield from self.batch(asked[:half])
                yield from self.batch(asked[half:])
            return
        where = providers(placed["placement"])
        graphs = {
            int(found[1])
            for event in fused["events"]
            if event["call"] == "CompileGraph"
            for node in event["nodes"]
            if (found := NAMED.match(node.get("name", "")))
        }
        on_cpu = self.with_cpu_kernel(asked)
        for i, each in enumerate(asked):
            at = where.get(f"k{i}/n")
            if at is None:  # it is folded, or others stand for it
                yield self.alone(each)
            else:
                yield self.row(each, at=at, cpu=i in on_cpu, graphs=int(i in graphs))

    def with_cpu_kernel(self, asked: Sequence[Asked]) -> set[int]:
        """The nodes that the CPU alone can run."""
        left = set(range(len(asked)))
        while left:
            order = sorted(left)
            answer = self.ask(merged([asked[i].model for i in order]), directml=False)
            if answer.get("session"):
                return left
            named = {order[int(n)] for n in NAMED.findall(answer.get("error", "")) if int(n) < len(order)}
            if len(named) != 1:
                return {i for i in left if self.ask(asked[i].model, directml=False).get("session")}
            left -= named
        return left

    def alone(self, each: Asked) -> dict[str, Any]:
        """The answer about a node, asked by itself."""
        cpu = self.ask(each.model, directml=False)
        answer = self.ask(each.model)
        cpu_error, error = error_of(cpu), error_of(answer)
        if error and cpu_error and not NO_KERNEL.search(cpu_error):
            return self.row(each, at="invalid", error=cpu_error)
        row = self.row(each, at="fails", cpu=not cpu_error)
        if error:
            row["error"] = error
            if not NO_KERNEL.search(error):
                unfused = self.ask(each.model, **NO_FUSION)
                row["unfused"] = error_of(unfused) or "created"
            return row
        compiled = [event["nodes"] for event in answer["events"] if event["call"] == "CompileGraph"]
        row["graphs"] = int(any(node.get("name") for nodes in compiled for node in nodes))
        if group_of(each.model)[-1]:
            counted = {PROVIDERS[m[1]] for text in answer["placement"] if (m := COUNTED.search(text))}
            listed = by_provider(answer["placement"])
            named = [at for at, names in listed.items() if each.key.op in names]
            at = named[0] if named else next(iter(counted)) if len(counted) == 1 else None
        else:
            placed = self.ask(merged([each.model]), **NO_FUSION).get("placement", [])
            at = providers(placed).get("k0/n")
            listed = {at: [op for op in names if op != "Identity"] for at, names in by_provider(placed).items()}
            listed = {at: names for at, names in listed.items() if names not in ([], ["Relu"])}
        row["at"] = at or ("expanded" if listed else "none")
        if row["at"] == "expanded":
            row["nodes"] = listed
        return row

    def row(self, each: Asked, **answer: Any) -> dict[str, Any]:
        return {**each.key.to_json(), "ort": self.version, **answer}


def error_of(record: dict[str, Any]) -> str | None:
    """Why there is no session, None where there is one."""
    if record.get("session"):
        return None
    if "crash" in record:
        return f"crash {record['crash']}"
    text = " ".join(record["error"].split())
    text = re.sub(r"[A-Z]:\\\S*?(\w+\.(?:cpp|cc|h))\W(\d+)\)?\S*", r"\1(\2)", text)
    return re.sub(r"\b0x[0-9A-F]{8,}\b|\b[0-9A-F]{16}\b", "ADDR", text)[:240]


def by_provider(log: Iterable[str]) -> dict[str, list[str]]:
    """The operators of each provider."""
    found: dict[str, list[str]] = {}
    at = ""
    for line in log:
        if placed := COUNTED.search(line):
            at = PROVIDERS.get(placed[1], placed[1])
        elif at and (node := re.match(r"\s+(\S+) \(.*\)\s*$", line)):
            found.setdefault(at, []).append(node[1])
    return found


def merged(models: Sequence[onnx.ModelProto]) -> onnx.ModelProto:
    """One model of several that do not touch, the names of each behind k0/, k1/ ...; a node more on each provider."""
    made = onnx.ModelProto()
    made.ir_version = models[0].ir_version
    made.opset_import.extend(models[0].opset_import)
    made.graph.name = "g"
    for i, model in enumerate(models):
        graph = onnx.GraphProto()
        graph.CopyFrom(model.graph)
        prefix = f"k{i}/"
        for value in (*graph.input, *graph.output, *graph.initializer):
            value.name = prefix + value.name
        for node in graph.node:
            node.name = prefix + node.name
            node.input[:] = [name and prefix + name for name in node.input]
            node.output[:] = [name and prefix + name for name in node.output]
        for field_name in ("node", "input", "output", "initializer"):
            getattr(made.graph, field_name).extend(getattr(graph, field_name))
    for name, op, data_type in (("on the CPU", "Identity", 8), ("on DirectML", "Relu", 1)):
        made.graph.node.append(helper.make_node(op, [f"{name}, input"], [f"{name}, output"], name=name))
        made.graph.input.append(helper.make_tensor_value_info(f"{name}, input", data_type, [1]))
        made.graph.output.append(helper.make_tensor_value_info(f"{name}, output", data_type, [1]))
    return made


def group_of(model: onnx.ModelProto) -> tuple[object, ...]:
    """What models have in common that can be asked as one."""
    opsets = sorted((each.domain, each.version) for each in model.opset_import)
    holds_graphs = any(a.type == onnx.AttributeProto.GRAPH for node in model.graph.node for a in node.attribute)
    old = any(version < 7 for domain, version in opsets if not domain)
    return (model.ir_version, *opsets, holds_graphs or old)


def ask(version: str, path: Path, operators: Sequence[str] = ()) -> None:
    """Adds the answers that are not in a file yet; about nodes of some operators, or of all."""
    runtime = find_runtime(version)
    done = {Key.of_json(row).text for row in read(path) if row["ort"] == version} if path.exists() else set()
    groups: dict[tuple[object, ...], list[list[Asked]]] = {}
    asked = [key for key in keys(runtime.newest_opset) if not operators or key.op in operators]
    wanted = [key for key in asked if key.text not in done]
    print(f"{len(wanted)} to ask, {len(done)} known", flush=True)
    with OnnxRuntime(checked_folder(find_version(version))) as asked_runtime, path.open("a", encoding="utf-8") as file:
        recorder = Recorder(asked_runtime, version)

        def record(rows: Iterable[dict[str, Any]]) -> None:
            for row in rows:
                file.write(json.dumps(row, separators=(",", ":")) + "\n")
            file.flush()

        for key in wanted:
            try:
                model = built(key)
                onnx.checker.check_model(model)
            except (onnx.checker.ValidationError, ValueError, TypeError, KeyError) as error:
                if "Field 'shape' of 'type' is required" not in str(error):
                    record([{**key.to_json(), "ort": version, "at": "invalid"}])
                    continue
            group = group_of(model)
            batch = fitting(groups.setdefault(group, []), key)
            batch.append(Asked(key, model))
            if len(batch) == (1 if group[-1] else BATCH):
                groups[group].remove(batch)
                record(recorder.batch(batch))
        for batch in (batch for batches in groups.values() for batch in batches):
            record(recorder.batch(batch))


def fitting(batches: list[list[Asked]], key: Key) -> list[Asked]:
    """The first of some batches without a node of this operator, or a new one: in old versions, where one node of an
    operator is placed may depend on the types of another."""
    for batch in batches:
        if all((each.key.domain, each.key.op) != (key.domain, key.op) for each in batch):
            return batch
    batches.append([])
    return batches[-1]


def read(path: Path) -> Iterator[dict[str, Any]]:
    """The answers of a file."""
    with path.open(encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)


def main(arguments: Sequence[str]) -> int:
    """Runs one of the commands above."""
    if len(arguments) > 2 and arguments[0] == "ask":
        ask(arguments[1], Path(arguments[2]), arguments[3:])
        return 0
    if len(arguments) > 1 and arguments[0] == "write":
        from tests.onnxruntime.operator_table import written

        print(Counter(written([row for name in arguments[1:] for row in read(Path(name))])))
        return 0
    print(__doc__)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
