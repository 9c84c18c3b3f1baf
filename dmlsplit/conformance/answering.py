"""Answers to the questions of the suite, by dmlsplit itself and by the real libraries.

Each kind of question is answered by its own function; NotAsked says why there is no answer.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
import tempfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final

from dmlsplit.conformance.suite import Case
from dmlsplit.descriptors.descs import OperatorDesc, SplitOperatorDesc
from dmlsplit.formats import graph_json
from dmlsplit.formats import json as operator_json
from dmlsplit.system.errors import BindingError, DmlSplitError, InputError
from dmlsplit.targets.target import Target, find_target

if TYPE_CHECKING:
    from dmlsplit.library.process import Library
    from dmlsplit.targets.runtime_versions import Runtime

_WORDS: Final = {"right": "right", "wrong": "wrong", "unknown": None}


class NotAsked(Exception):
    """Raised for a question that has no answer here; the message says why."""


Answers = Mapping[str, Callable[[Case, Target], Case]]


def answer(question: Case, answers: Answers) -> Case:
    """Returns the answer to a question, with the question's id; {"id": ..., "skip": reason} if there is none."""
    id = question.get("id")
    try:
        by, _, version = str(question.get("target")).partition(" ")
        kind = str(question.get("kind"))
        if kind not in answers:
            raise NotAsked(f"questions of kind {kind!r} are not answered")
        return {"id": id, **answers[kind](question, find_target(**{by: version}))}
    except (NotAsked, DmlSplitError, ValueError, TypeError, LookupError, AttributeError) as error:
        return {"id": id, "skip": str(error) or type(error).__name__}


def _code(code: int | None) -> Case:
    if code is None:
        raise NotAsked("it crashes the process")
    return {"accepted": code == 0, "hresult": f"0x{code:08x}"}


def _operator(question: Case) -> OperatorDesc:
    return operator_json.loads(json.dumps(question["operator"]))


class Emulated:
    """dmlsplit's own: rules for CreateOperator, its kernel for dispatches, its models of CompileGraph and sessions."""

    @property
    def answers(self) -> Answers:
        """Maps each kind of question to the function that answers it."""
        return {"operator": self.operator, "execution": self.execution, "graph": self.graph, "model": self.model}

    def operator(self, question: Case, target: Target) -> Case:
        from dmlsplit.verdicts.validation import evaluate

        return _code(evaluate(_operator(question), target).hresult)

    def execution(self, question: Case, target: Target) -> Case:
        refused = self.operator(question, target)
        if not refused["accepted"]:
            return refused
        desc = _operator(question)
        buffers = [bytearray.fromhex(text) for text in question["buffers"]]
        inputs, outputs = ([_bound(buffers, each) for each in question[side]] for side in ("inputs", "outputs"))
        self.dispatch(desc, inputs, outputs)
        return {"accepted": True, "buffers": [buffers[each["buffer"]].hex() for each in question["outputs"]]}

    def dispatch(self, desc: OperatorDesc, inputs: list[memoryview], outputs: list[memoryview]) -> None:
        """Executes an operator on raw memory: reads `inputs` and writes `outputs`."""
        from dmlsplit.native.execution import compile

        op: Any = compile(desc)
        if isinstance(desc, SplitOperatorDesc):
            op.dispatch(inputs[0], out=outputs)
        else:
            op.dispatch(inputs, out=outputs[0])

    def graph(self, question: Case, target: Target) -> Case:
        from dmlsplit.graphs import evaluate_graph

        report = evaluate_graph(graph_json.loads(json.dumps(question["graph"])), target)
        if not report.compiles:
            return {"accepted": report.compiles}
        outputs = [_WORDS[word] for word in report.outputs]
        right = False if "wrong" in outputs else None if None in outputs else True
        return {"accepted": True, "right": right, "outputs": outputs}

    def model(self, question: Case, target: Target) -> Case:
        from dmlsplit.onnxruntime.prediction import session
        from dmlsplit.verdicts.model_placements import Provider

        found = session(_model(question), _runtime(target))
        if not found.created:
            named = found.failure.node if found.created is False and found.failure is not None else ""
            return {"created": found.created, "failing_node": named or None}
        known = {Provider.DML: "DML", Provider.CPU: "CPU"}
        nodes = {node.path.split("/")[-1]: known.get(node.provider) for node in found.nodes.values()}
        copies = None if found.copies is None else list(found.copies)
        return {"created": True, "nodes": nodes, "copies": copies, "capture": found.capture}


def _bound(buffers: list[bytearray], binding: Case) -> memoryview:
    start = binding["offset"]
    found = memoryview(buffers[binding["buffer"]])[start : start + binding["size"]]
    if len(found) != binding["size"]:
        raise BindingError(f"buffer {binding['buffer']} is too short")
    return found


def _runtime(target: Target) -> Runtime:
    if target.runtime is None:
        raise NotAsked(f"{target.name} is not a version of ONNX Runtime")
    return target.runtime


def _model(question: Case) -> bytes:
    try:
        return base64.b64decode(question["model"], validate=True)
    except (binascii.Error, TypeError):
        raise InputError("the model is not base64") from None


class Real:
    """The real libraries on this machine: DirectML for operators and graphs, ONNX Runtime for models. They execute
    nothing. A context manager."""

    def __init__(self) -> None:
        self._open = ExitStack()
        self._builds: dict[str, Library] = {}

    def __enter__(self) -> Real:
        return self

    def __exit__(self, *failure: object) -> None:
        self._open.close()

    @property
    def answers(self) -> Answers:
        """Maps each kind of question to the function that answers it."""
        return {"operator": self.operator, "graph": self.graph, "model": self.model}

    def _asked(self, desc: Any, target: Target) -> Case:
        from dmlsplit.library.asking import build_of, prepared
        from dmlsplit.library.process import opened

        if target.release is None:
            raise NotAsked(f"{target.name} is not a release of DirectML")
        build = build_of(target.release.directml)
        if build.name not in self._builds:
            self._builds[build.name] = self._open.enter_context(opened(build))
        asked = prepared(desc)
        (reply,) = self._builds[build.name].replies([asked.command])
        return _code(asked.answer(reply, build.name).hresult)

    def operator(self, question: Case, target: Target) -> Case:
        return self._asked(_operator(question), target)

    def graph(self, question: Case, target: Target) -> Case:
        return {"accepted": self._asked(graph_json.loads(json.dumps(question["graph"])), target)["accepted"]}

    def model(self, question: Case, target: Target) -> Case:
        from dmlsplit.library.models import ask_model

        version = _runtime(target).version
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.onnx")
            with open(path, "wb") as stream:
                stream.write(_model(question))
            found = ask_model(path, version)
        known = {"DML": "DML", "CPU": "CPU"}
        return {"created": found.created, "nodes": {name: known.get(place) for name, place in found.nodes.items()}}
