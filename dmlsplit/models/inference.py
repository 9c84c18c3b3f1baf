"""Runs onnx's shape inference in a separate process, because its C++ code crashes on hostile models."""

from __future__ import annotations

import atexit
import math
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

import onnx
from google.protobuf.message import DecodeError, EncodeError

from dmlsplit.formats.limits import Limit
from dmlsplit.formats.onnx.protobuf import DEFAULT_DOMAINS, all_nodes, domain_of, has_graphs, subgraphs
from dmlsplit.models import shadowing
from dmlsplit.models._worker import FAULTY, INFERRED, PROPAGATES, STRICT
from dmlsplit.models.functions import Functions
from dmlsplit.models.inference_parts import Part, joined, parts_of
from dmlsplit.models.schemas import schema_of
from dmlsplit.models.scope import opset_of

TIMEOUT: Final[float] = Limit.ONNX_INFERENCE_TIME.most
_TICK: Final = 0.1
"""The seconds between two checks whether a request is late."""
INERT: Final = ("ai.onnx.preview.training", "Gradient")
"""The domain and name of an operator for which onnx infers nothing, whatever its inputs and outputs are."""
_MISTAKEN: Final = {"STFT": onnx.helper.make_attribute("onesided", 1)}
"""Maps an operator to an attribute with its default, for which inference takes another one. ONNX Runtime gives nodes
their defaults before it infers. No other operator has one, by the models of tests/onnxruntime/whole_models.py."""
_FAULT: Final = r"\(op_type:([^,()]*)(?:, node name: ([\s\S]{0,4096}?))?\): \[(?:Type|Shape)InferenceError\] (.*)"
"""The form of onnx's text about one node. A name may have lines; the bound keeps the search linear."""
_FAULTS_INSIDE: Final = "Inference error(s): "
"""What begins the texts about nodes, after that about the node whose graph holds them."""
DIFFERENT: Final = "existing shape differ"
"""What is in onnx's texts about declared shapes that contradict the inferred ones."""
_NO_FAULTS: Final = (
    DIFFERENT,  # ONNX Runtime warns, and keeps what both have
    "is null",  # onnx lacks the type because it does not know the operator that makes the tensor
    "was null",
    "not a tensor",
    "external tensors",  # read from another file, or left out for their size
    "group for ConvTranspose",  # no version looks
    "group must be > 0 for ConvTranspose",
    "q_num_heads and kv_num_heads must be positive",  # no version looks
    "indices must be in",  # sizes that are computed of constants: no version looks, but the kernel that folds them
    # ONNX Runtime makes a Constant an initializer before, whatever the file declares
    "One and only one of the attributes",
    "Constant: Inferred elem type differs",
)
"""What is in onnx's texts, behind the operator, about nodes that ONNX Runtime may take."""
OF_WEIGHTS: Final = "spatial dimensions in the weight tensor"
"""What is in onnx's text about the weights of a Conv of another rank than its input."""
_NEW_FAULTS: Final = (
    OF_WEIGHTS,
    "tensor spatial rank does not match input tensor",
    "must only contain positive values",
    "must not contain negative values",
    *(
        f"ConvTranspose: Attribute {name} has incorrect size"
        for name in ("dilations", "kernel_shape", "output_padding", "output_shape", "strides")
    ),
)
"""What is in texts, behind the operator, about windows of convolutions and pools that only new versions check."""
_LATE: Final = f"did not end within {TIMEOUT:.0f} seconds"
_MOST_COPIED: Final = 1 << 18
"""The number of names that onnx may copy for graphs in nodes before a model is cut into parts: a few hundredths of a
second."""

KEPT_BYTES: Final = 16 << 20
"""The most bytes of requests and their answers that are kept for the next requests."""


class InferenceError(Exception):
    """Shape inference failed; the message says why."""


class Inferred(NamedTuple):
    """A model with the types and shapes that onnx infers. `faults` is onnx's text about the nodes for which inference
    fails; "" if it fails for none, or if nobody asked."""

    model: onnx.ModelProto
    faults: str = ""


class Fault(NamedTuple):
    """A node for which inference fails: its operator, its name ("" if it has none), and onnx's message."""

    operator: str
    name: str
    message: str


def fault_of(faults: str, *, of_new: bool = False) -> Fault | None:
    """Returns the first fault in onnx's text for which ONNX Runtime does not load the model or, if `of_new`, for which
    only versions that check windows do not load it; None if there is none."""
    for found in re.finditer(_FAULT, faults.replace(_FAULTS_INSIDE, "\n")) if faults else ():
        operator, name, message = found.groups(default="")
        text = f"{operator}: {message}"
        is_new = any(each in text for each in _NEW_FAULTS)
        if message and is_new is of_new and not any(each in text for each in _NO_FAULTS):
            return Fault(operator, name, message.strip())
    return None


class _Answer(NamedTuple):
    """As Inferred, with the model in bytes."""

    model: bytes
    faults: bytes = b""


class Answers:
    """The answers to the last requests, up to a number of bytes: a model is first read, and then prepared for several
    versions of ONNX Runtime."""

    def __init__(self, most: int = KEPT_BYTES) -> None:
        self._most = most
        self._bytes = 0
        self._of: dict[bytes, _Answer] = {}

    def to(self, request: bytes) -> _Answer | None:
        """Returns the answer to a request; None if it was not kept."""
        return self._of.get(request)

    def keep(self, request: bytes, answer: _Answer) -> None:
        """Keeps the answer to a new request, unless it is too large, and forgets the oldest ones beyond the number of
        bytes."""
        size = _size(request, answer)
        if size > self._most:
            return
        self._of[request] = answer
        self._bytes += size
        while self._bytes > self._most:
            oldest = next(iter(self._of))
            self._bytes -= _size(oldest, self._of.pop(oldest))


def _size(request: bytes, answer: _Answer) -> int:
    return len(request) + sum(map(len, answer))


class _Worker:
    """One process, started when first needed, and restarted after it has ended."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.answers = Answers()
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = 0
        self._end = math.inf
        """The time, by the monotonic clock, by which the process must answer."""

    def infer(self, request: bytes, seconds: float) -> _Answer:
        """Returns the answer to a request; _worker.py has the forms of both. Raises InferenceError if inference fails
        or takes more than `seconds`. One thread at a time: see `lock`."""
        process = self._running()
        self._end = end = time.monotonic() + seconds
        try:
            answer = self._ask(process, request)
        except BaseException:  # after an interrupt the next request must not get this answer
            self.close()
            raise
        finally:
            self._end = math.inf
        if answer is None:
            code = self.close()
            if time.monotonic() >= end:
                raise InferenceError(_LATE)
            raise InferenceError(f"ended its process ({'signal' if code < 0 else 'status'} {abs(code)})")
        kind, rest = answer[:1], answer[1:]
        if kind == FAULTY and len(rest) >= 8:
            end_of_text = 8 + int.from_bytes(rest[:8], "little")
            return _Answer(rest[end_of_text:], rest[8:end_of_text])
        if kind == INFERRED:
            return _Answer(rest)
        raise InferenceError(rest.decode("utf-8", "backslashreplace"))

    def _ask(self, process: subprocess.Popen[bytes], request: bytes) -> bytes | None:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(len(request).to_bytes(8, "little"))
            process.stdin.write(request)
            process.stdin.flush()
            head = process.stdout.read(8)
            size = int.from_bytes(head, "little")
            if size > Limit.ONNX_INFERENCE_ANSWER.of(len(request)):
                raise InferenceError(
                    f"returns {size} bytes for a request of {len(request)}, which is more than allowed"
                )
            answer = process.stdout.read(size) if len(head) == 8 else b""
        except OSError:
            return None
        return answer if len(head) == 8 and len(answer) == size else None

    def _running(self) -> subprocess.Popen[bytes]:
        # After a fork the pipe belongs to the parent.
        if self._process is None or self._owner != os.getpid() or self._process.poll() is not None:
            self.close()
            if not sys.executable:
                raise InferenceError("has no Python interpreter")
            environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
            environment["OPENBLAS_NUM_THREADS"] = "1"  # each thread reserves address space, and the process has little
            memory = Limit.ONNX_INFERENCE_MEMORY
            worker = Path(__file__).with_name("_worker.py")
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-S", str(worker), str(memory.most), str(memory.a_byte)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=environment,
            )
            self._owner = os.getpid()
            try:
                threading.Thread(target=self._watch, args=(self._process,), daemon=True).start()
            except RuntimeError:
                self.close()  # nothing else would end the process
                raise
        return self._process

    def _watch(self, process: subprocess.Popen[bytes]) -> None:
        """Kills the process when the time of a request is up; runs in a thread until the process ends. Polling every
        _TICK seconds costs less than one thread for each request."""
        while process.poll() is None:
            if time.monotonic() >= self._end:
                process.kill()
            time.sleep(_TICK)

    def close(self) -> int:
        """Ends the process and returns its exit status; returns 0 if there is none, or if it belongs to the parent of a
        fork."""
        process, self._process = self._process, None
        if process is None or self._owner != os.getpid():
            return 0
        process.kill()
        code = process.wait()
        with suppress(OSError):  # the unread rest of a request
            assert process.stdin is not None
            process.stdin.close()
        assert process.stdout is not None
        process.stdout.close()
        return code


_worker = _Worker()
atexit.register(_worker.close)


def make_harmless(model: onnx.ModelProto, functions: Functions, own: Iterable[onnx.NodeProto] | None = None) -> None:
    """Changes, in place, what makes onnx crash, give wrong results or hide errors: a Split with more outputs than
    num_outputs, and a node whose operator onnx does not know, become nodes that infer nothing; an attribute whose
    default inference mistakes is written out; domains without an opset import get one. `own` are the nodes of the model
    itself, including those inside nodes, if the caller has them.

    One unknown operator in a model is enough for onnx not to tell where inference fails.
    """
    everywhere: dict[str, None] = {}
    called = {(domain_of(function), function.name) for function in model.functions}
    bodies = [(function, all_nodes(function.node)) for function in model.functions]
    for importing, nodes in [*bodies, (model, all_nodes(model.graph.node) if own is None else own)]:
        domains: dict[str, None] = {}
        opset = opset_of(importing)
        is_known = cache(lambda op_type, domain, opset=opset: _is_known(op_type, domain, opset))
        for node in nodes:
            if functions.key_of(node) is None:
                if not is_known(node.op_type, node.domain) and (domain_of(node), node.op_type) not in called:
                    node.domain, node.op_type = INERT
                elif node.op_type == "Split" and node.attribute:
                    numbers = [attribute.i for attribute in node.attribute[:] if attribute.name == "num_outputs"]
                    if any(number < len(node.output) for number in numbers):
                        node.domain, node.op_type = INERT
                elif node.op_type in _MISTAKEN and domain_of(node) == "":
                    default = _MISTAKEN[node.op_type]
                    if all(attribute.name != default.name for attribute in node.attribute[:]):
                        node.attribute.append(default)
            domains[node.domain] = None
        everywhere |= domains
        imported = {*DEFAULT_DOMAINS, *(entry.domain for entry in importing.opset_import)}
        for domain in everywhere if importing is model else domains:
            if domain not in imported:
                importing.opset_import.add(domain=domain, version=1)


def _is_known(op_type: str, domain: str, opset: int) -> bool:
    """True if onnx has an operator; `opset` is that of the default domain, 0 if it is not imported."""
    if domain in DEFAULT_DOMAINS:
        return schema_of(op_type, opset) is not None if opset else bool(onnx.defs.has(op_type, ""))
    return bool(onnx.defs.has(op_type, domain))


def _names_copied(graph: onnx.GraphProto, around: int = 0) -> int:
    """Returns the number of names that onnx copies for the graphs in a graph's nodes: for each of these graphs, all
    names known before its node. `around` is the number of names in outer graphs."""
    known = around + len(graph.input) + len(graph.output) + len(graph.value_info) + len(graph.initializer)
    copied = 0
    for node in graph.node:
        for inner in subgraphs(node) if node.attribute else ():
            copied += known + _names_copied(inner, known)
        known += len(node.output)
    return copied


class Inference:
    """The inferences of one file, which share a time limit."""

    def __init__(self) -> None:
        self._seconds = TIMEOUT

    def infer_shapes(self, model: onnx.ModelProto, *, data_propagation: bool = True) -> onnx.ModelProto:
        """Returns the model with the types and shapes that onnx infers. Raises InferenceError if it fails or the time
        of the file is used up.

        If `data_propagation`, sizes that the model computes are also tracked.
        """
        return self.inferred(model, data_propagation=data_propagation, strict=False).model

    def inferred(self, model: onnx.ModelProto, *, data_propagation: bool = True, strict: bool = True) -> Inferred:
        """Returns the model that `infer_shapes` returns and, if `strict`, onnx's text about the nodes for which
        inference fails (`faults`, "" if it fails for none); the text takes as long again if there are any. Raises
        InferenceError as `infer_shapes`."""
        copied, asked = 0, model
        names: Mapping[str, str] = {}
        if any(map(has_graphs, model.graph.node)):
            copied = _names_copied(model.graph)
            if copied > (most := Limit.ONNX_INFERENCE_NAMES.of(model.ByteSize())):
                raise InferenceError(f"would copy more than {most} names for the subgraphs of nodes")
            asked, names = shadowing.without(model)
        way = bytes([data_propagation * PROPAGATES + strict * STRICT])
        inferred = onnx.ModelProto()
        try:
            request = way + asked.SerializeToString()
            with _worker.lock:
                answer = _worker.answers.to(request)
                if answer is None:
                    parts = parts_of(asked) if copied > _MOST_COPIED and not asked.functions else []
                    answer = self._in_parts(asked, parts, way) if len(parts) > 1 else self._ask(request)
                    _worker.answers.keep(request, answer)
            inferred.ParseFromString(answer.model)
        except (DecodeError, EncodeError):
            raise InferenceError("receives or returns bytes that are not a model") from None
        if len(inferred.graph.node) != len(model.graph.node):
            raise InferenceError("returns a different graph")
        shadowing.put_back(inferred.graph, names)
        return Inferred(inferred, answer.faults.decode("utf-8", "backslashreplace"))

    def _in_parts(self, model: onnx.ModelProto, parts: Sequence[Part], way: bytes) -> _Answer:
        """Returns the worker's answer for a model, assembled from those for its parts; `way` is the first byte of
        requests. Raises InferenceError."""
        answers = [self._ask(way + part.model.SerializeToString()) for part in parts]
        inferred = [onnx.ModelProto.FromString(answer.model).graph for answer in answers]
        if any(len(each.node) != len(part.indices) for part, each in zip(parts, inferred, strict=True)):
            raise InferenceError("returns a different graph")
        faults = b"\n".join(answer.faults for answer in answers if answer.faults)
        return _Answer(joined(model, parts, inferred).SerializeToString(), faults)

    def _ask(self, request: bytes) -> _Answer:
        """Returns the worker's answer, and subtracts its time from the file's. Raises InferenceError if it fails or no
        time is left. The caller holds the worker's lock."""
        if self._seconds <= 0:
            raise InferenceError(_LATE)
        began = time.monotonic()
        try:
            return _worker.infer(request, self._seconds)
        finally:
            self._seconds -= time.monotonic() - began
