"""Asks ONNX Runtime about a model: whether a session is created, where each node runs, and what DirectML is given."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dmlsplit.library.catalogue import ONNXRUNTIME, Build, find_build
from dmlsplit.library.fetching import checked_folder
from dmlsplit.library.sessions import OnnxRuntime, Query
from dmlsplit.system.errors import DmlSplitError, InputError
from dmlsplit.system.input_files import open_input
from dmlsplit.system.printable import numbered, printable
from dmlsplit.system.records import record

if TYPE_CHECKING:
    import onnx

FOLDED: Final = "folded"
PROVIDERS: Final[Mapping[str, str]] = {"DmlExecutionProvider": "DML", "CPUExecutionProvider": "CPU"}
_NO_FUSION: Final = {"ep.dml.disable_graph_fusion": "1"}
_EXTERNAL: Final = "session.model_external_initializers_file_folder_path"
_PLACED: Final = re.compile(r"placed on \[(\w+)\]")
_NODE: Final = re.compile(r"  (?P<op>\S+) \((?P<name>.*)\)$")
_STRING: Final = 8
_BOOL: Final = 9
_ADDED: Final = {"dmlsplit: on DirectML": ("Not", _BOOL), "dmlsplit: on the CPU": ("Identity", _STRING)}
"""Nodes added to the copy of a model, each with its operator and element type: if all nodes are on one provider, ONNX
Runtime's log says "all nodes" without naming them. Both operators are at these places in every opset."""


@record
class CompiledGraph:
    """A graph passed to CompileGraph: its nodes by ONNX Runtime's names, and the HRESULT."""

    nodes: tuple[str, ...]
    inputs: int
    outputs: int
    hresult: int


@record
class SubmittedOperator:
    """An operator that DirectML was asked to create, `count` times, and the HRESULT.

    `operator` is the descriptor in JSON, as dmlsplit.formats.any_operator_json and `dmlsplit check` read it.
    """

    operator: Mapping[str, object]
    hresult: int
    count: int


@record
class ModelAnswer:
    """What a version of ONNX Runtime does with a model while it creates a session.

    `created`: True if there is a session; otherwise `failure` is ONNX Runtime's message. `nodes` maps the model's nodes
    by path, as the diagnostics of `check` name them, to DML, CPU, another
    provider, or "folded" if the session's graph no longer has the node because it was folded, fused into another, or
    removed; empty without a session. `added` are nodes that the optimizer created. `operators` counts, by name, the
    operators that DirectML was asked to create, `refused` the refused ones; `submitted` has their descriptors, each
    once. `graphs` are the compiled graphs.
    """

    version: str
    created: bool
    failure: str | None
    nodes: Mapping[str, str] = field(default_factory=dict)
    added: Mapping[str, str] = field(default_factory=dict)
    operators: Mapping[str, int] = field(default_factory=dict)
    refused: tuple[tuple[str, int], ...] = ()
    graphs: tuple[CompiledGraph, ...] = ()
    submitted: tuple[SubmittedOperator, ...] = ()

    def to_dict(self) -> dict[str, object]:
        """Returns the JSON form as a dict."""
        return {
            "onnxruntime": self.version,
            "created": self.created,
            "failure": self.failure,
            "nodes": dict(self.nodes),
            "added": dict(self.added),
            "operators": dict(self.operators),
            "refused": [{"operator": name, "hresult": f"0x{code:08X}"} for name, code in self.refused],
            "graphs": [
                {
                    "nodes": list(graph.nodes),
                    "inputs": graph.inputs,
                    "outputs": graph.outputs,
                    "hresult": f"0x{graph.hresult:08X}",
                }
                for graph in self.graphs
            ],
            "submitted": [
                {"operator": each.operator, "hresult": f"0x{each.hresult:08X}", "count": each.count}
                for each in self.submitted
            ],
        }


def ask_models(files: Iterable[str], version: str) -> Iterator[tuple[str, ModelAnswer | DmlSplitError]]:
    """Yields, for each file in order, its name and the answer of a version ("1.24.4") about the model in it; for an
    unreadable file the error takes the place of the answer.

    Raises ValueError for a version that cannot be asked, NotAdded if it was not fetched, Unavailable if it cannot be
    asked here.
    """
    build = find_version(version)
    with OnnxRuntime(checked_folder(build)) as runtime:
        for file in files:
            try:
                yield file, _asked(runtime, build, file)
            except InputError as error:
                yield file, error.in_file(file)
            except DmlSplitError as error:
                yield file, error
            except OSError as error:
                yield file, InputError(error.strerror or str(error), file=file)


def ask_model(file: str, version: str) -> ModelAnswer:
    """Returns the answer of a version about one model. Raises as ask_models does, and InputError if the file cannot be
    read."""
    ((_, answer),) = ask_models([file], version)
    if isinstance(answer, DmlSplitError):
        raise answer
    return answer


def find_version(version: str) -> Build:
    """Returns the build of a version of ONNX Runtime, given as "1.24.4" or "onnxruntime-1.24.4". Raises ValueError if
    it is unknown."""
    name = version if version.startswith(ONNXRUNTIME) else f"{ONNXRUNTIME}-{version}"
    build = find_build(name)
    if build.kind != ONNXRUNTIME:
        raise ValueError(f"{version} is not a version of ONNX Runtime")
    return build


def _asked(runtime: OnnxRuntime, build: Build, file: str) -> ModelAnswer:
    with open_input(file) as stream:  # raises an error that names the fault
        stream.read(1)
    path = Path(file).resolve()
    named, names = _named(path)
    record = runtime.ask(Query(path))
    crash = record.get("crash")
    failure = f"the process ended: {crash}" if crash else record.get("error")
    nodes: Mapping[str, str] = {}
    made: Mapping[str, str] = {}
    if record.get("session"):
        folder = f"Z:{path.parent}".replace("/", "\\")
        placed = runtime.ask(Query(named, config={**_NO_FUSION, _EXTERNAL: folder}))
        if placed.get("session"):
            at = providers(placed["placement"])
            nodes = {name: at.get(name, FOLDED) for name in names}
            made = {name: provider for name, provider in at.items() if name not in nodes and name not in _ADDED}
    events = record.get("events", [])
    created = [event for event in events if event["call"] == "CreateOperator"]
    operators = Counter(_operator(event) for event in created)
    refused = tuple((_operator(event), int(event["hr"], 16)) for event in created if int(event["hr"], 16))
    graphs = tuple([_graph(event) for event in events if event["call"] == "CompileGraph"])
    return ModelAnswer(
        build.version,
        bool(record.get("session")),
        failure,
        nodes,
        made,
        dict(operators),
        refused,
        graphs,
        _submitted(created),
    )


def _submitted(created: Iterable[Mapping[str, Any]]) -> tuple[SubmittedOperator, ...]:
    """Returns each pair of descriptor and HRESULT once, with its count, in the order of the first calls."""
    counts = Counter((json.dumps(event["desc"]), int(event["hr"], 16)) for event in created)
    return tuple([SubmittedOperator(json.loads(text), hresult, count) for (text, hresult), count in counts.items()])


def _graph(event: Mapping[str, Any]) -> CompiledGraph:
    names = tuple([node.get("name", "") for node in event["nodes"]])
    return CompiledGraph(names, event["inputs"], event["outputs"], int(event["hr"], 16))


def _operator(event: Mapping[str, Any]) -> str:
    name = event["desc"]["Type"]
    return name if isinstance(name, str) else f"DML_OPERATOR_TYPE({name})"


def providers(log: Sequence[str]) -> dict[str, str]:
    """Maps the name of each node to its provider, by the lines of a session's log."""
    found: dict[str, str] = {}
    provider = ""
    for line in log:
        placed, node = _PLACED.search(line), _NODE.match(line)
        if placed:
            provider = PROVIDERS.get(placed[1], placed[1])
        elif node and provider:
            found[node["name"]] = provider
    return found


def _named(path: Path) -> tuple[bytes, list[str]]:
    """Returns the bytes of a copy of the model in which every node has a unique name and each provider has one more
    node, and the names of the original nodes."""
    model = _loaded(path)
    names: Counter[str] = Counter()
    _name_nodes(model.graph, "", names)
    graph = model.graph
    for added_name, (op_type, element_type) in _ADDED.items():
        node = graph.node.add()
        node.op_type, node.name = op_type, added_name
        node.input.append(f"{added_name}, input")
        node.output.append(f"{added_name}, output")
        for values, name in ((graph.input, node.input[0]), (graph.output, node.output[0])):
            value = values.add()
            value.name = name
            value.type.tensor_type.elem_type = element_type
            value.type.tensor_type.shape.dim.add().dim_value = 1
    return model.SerializeToString(), list(names)


def _loaded(path: Path) -> onnx.ModelProto:
    try:
        import onnx
    except ImportError:
        raise InputError("to ask about models needs onnx: pip install 'dmlsplit[onnx]'", file=str(path)) from None
    from google.protobuf.message import DecodeError

    try:
        return onnx.load(path, load_external_data=False)
    except (DecodeError, ValueError) as error:
        raise InputError(f"it is not an ONNX model: {error}", file=str(path)) from None


def _name_nodes(graph: onnx.GraphProto, label: str, names: Counter[str]) -> None:
    """Gives each node of a graph with this label, and of the graphs inside its nodes, a unique name in place, and adds
    the names to `names`: its path in the diagnostics of `check`, with a number if another node has the same."""
    from dmlsplit.formats.onnx.protobuf import graphs_of, own_name
    from dmlsplit.models.scope import label_of

    for node in graph.node:
        own = own_name(node)
        node.name = numbered(printable(f"{label}/{own}" if label else own), names)
        for attribute in node.attribute:
            inner = list(graphs_of(attribute))
            for number, each in enumerate(inner):
                place = f"{own}.{attribute.name}" + (f"[{number}]" if len(inner) > 1 else "")
                _name_nodes(each, label_of(label, place), names)
