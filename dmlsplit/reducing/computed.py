"""Computes a reduced model for inputs of a seed: as ONNX defines it, and as DirectML does if its memory is modelled."""

from __future__ import annotations

import io
import math
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import onnx
from onnx import helper, numpy_helper

from dmlsplit.device.dispatches import Shaders, as_it_should_be, as_released
from dmlsplit.formats.onnx.tensors import Array, type_of
from dmlsplit.graphs.descriptors import GraphDesc, described
from dmlsplit.graphs.memory import compile_graph
from dmlsplit.graphs.program import NotCompiled, Unmodelled
from dmlsplit.graphs.traits import traits_of
from dmlsplit.native.binding import NUMPY_DTYPE
from dmlsplit.onnxruntime.fused_parts import session_graphs
from dmlsplit.onnxruntime.model_nodes import read_sessions
from dmlsplit.reducing.findings import Question
from dmlsplit.system.errors import InputError
from dmlsplit.system.printable import printable

MOST_BYTES: Final = 1 << 28
"""The most bytes of the inputs that are written."""
OPEN_SIZE: Final = 2
"""The size of a dimension whose size nothing determines."""
_SECONDS: Final = 60
_MEMORY: Final = 4 << 30
"""Limits for the process that computes."""


class Computed(NamedTuple):
    """Tensors by name, in order; or None, and the reason."""

    arrays: Mapping[str, Array]
    why: str = ""


def inputs_of(model: onnx.ModelProto, question: Question, seed: int) -> Computed:
    """Returns inputs for a model, random numbers with a seed for each. Their sizes are the model's own, or those given
    for the first Run, or OPEN_SIZE. If they cannot be made, the result says why."""
    constant = {tensor.name for tensor in model.graph.initializer}
    found: dict[str, Array] = {}
    total = 0
    for number, value in enumerate(value for value in model.graph.input if value.name not in constant):
        element, shape = type_of(value.type)
        given = question.inputs.shapes.get(value.name, shape)
        if value.type.WhichOneof("value") != "tensor_type" or given is None:
            return Computed({}, f"the input {printable(value.name)} is not a tensor of known rank")
        dims = {**question.inputs.free_dimensions, **question.inputs.dims}
        sizes = tuple([each if isinstance(each, int) else dims.get(each or "", OPEN_SIZE) for each in given])
        try:
            dtype = helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        except (KeyError, ValueError):
            return Computed({}, f"the input {printable(value.name)} has type {element}, which numpy does not have")
        total += math.prod(sizes) * dtype.itemsize
        if dtype.kind not in "biuf" or total > MOST_BYTES:
            return Computed({}, f"the inputs have type {element}, or are larger than {MOST_BYTES} bytes")
        drawn = np.random.default_rng(seed + number).standard_normal(sizes)
        found[value.name] = drawn.astype(dtype) if dtype.kind == "f" else (drawn > 0).astype(dtype)
    return Computed(found)


def by_onnx(model: onnx.ModelProto, inputs: Mapping[str, Array]) -> Computed:
    """Returns what onnx's reference evaluator computes from the inputs in a separate process, or the reason why it
    computes nothing."""
    data = model.SerializeToString()
    packed = io.BytesIO()
    places = {value.name: str(i) for i, value in enumerate(model.graph.input)}
    arrays: Any = {places[name]: array for name, array in inputs.items()}
    np.savez(packed, **arrays)
    request = len(data).to_bytes(8, "little") + data + packed.getvalue()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-P", str(Path(__file__).with_name("_evaluator.py")), str(_MEMORY)]
    try:
        done = subprocess.run(command, input=request, capture_output=True, timeout=_SECONDS, env=environment)
    except subprocess.TimeoutExpired:
        return Computed({}, f"onnx's reference evaluator did not end within {_SECONDS} seconds")
    if done.returncode != 0:
        said = done.stderr.decode("utf-8", "backslashreplace") or f"status {done.returncode}"
        return Computed({}, f"onnx's reference evaluator: {printable(said, 300)}")
    with np.load(io.BytesIO(done.stdout), allow_pickle=False) as found:
        return Computed({value.name: found[str(i)] for i, value in enumerate(model.graph.output)})


def by_directml(
    model: onnx.ModelProto, question: Question, inputs: Mapping[str, Array], expected: Mapping[str, Array]
) -> Computed:
    """Returns what DirectML computes, if the model is one fused graph whose dispatches can be predicted, or else the
    reason why it is not known. Elements that no dispatch writes are NaN.

    `expected` is what ONNX computes. If emulating the graph's nodes one by one does not give the same, the graph does
    not represent the model, and nothing is predicted.
    """
    traits = traits_of(question.runtime.release)
    try:
        sessions, _ = read_sessions(model, question.inputs, require_known_names=False)
        runtime = replace(question.runtime, observed=True)  # it is assumed to build the graphs of an observed version
        session = sessions.of(runtime, question.options)
        created, graphs = session.placement.created, session.graphs
        parts = session_graphs(graphs[-1])
    except InputError as error:
        return Computed({}, error.message)
    if created is not True:
        return Computed(
            {}, "the session is not created" if created is False else "it is not known whether the session is created"
        )
    if len(graphs) != 1 or len(parts.parts) != 1 or len(parts.fused) != 1 or traits is None:
        return Computed({}, "it is not a single fused graph with known sizes")
    if not question.options.graph_fusion or parts.unwritten or parts.perhaps_unwritten:
        return Computed({}, "ONNX Runtime changes the graph before DirectML receives it")
    fused = parts.fused[0]
    if sorted(fused.outputs) != sorted(expected):
        return Computed({}, "some outputs are not computed by the fused graph")
    known = {tensor.name: tensor for tensor in model.graph.initializer}
    bound: list[Array] = []
    for name in fused.inputs:
        array = inputs.get(name) if name in inputs or name not in known else numpy_helper.to_array(known[name])
        if array is None or array.dtype not in (np.float32, np.float16):
            return Computed({}, f"the fused graph's input {printable(name)} is not known, or not emulated")
        bound.append(array)
    graph = described(fused.desc)
    try:
        right = _run(graph, as_it_should_be(graph), bound)
        found = _run(
            graph, as_released(graph, compile_graph(graph, traits, None, fused.rectified, fused.constant)), bound
        )
    except (Unmodelled, NotCompiled, ValueError, KeyError, TypeError) as reason:
        return Computed({}, str(reason) or "its dispatches are not modelled")
    for name, array in zip(fused.outputs, right, strict=True):
        if not _is_close(array, expected[name]):
            return Computed({}, f"its nodes, run one by one, do not compute {printable(name)} as ONNX does")
    outputs = dict(zip(fused.outputs, found, strict=True))
    return Computed({name: outputs[name].reshape(expected[name].shape) for name in expected})


def _is_close(array: Array, expected: Array) -> bool:
    """Returns True if a flat tensor has the type, the number of elements and, up to rounding, the elements of the
    expected one, whatever the shape of that. The absolute and relative tolerance is 1e-2 for float16, otherwise 1e-4;
    NaN equals NaN."""
    if array.dtype != expected.dtype or array.size != expected.size:
        return False
    room = 1e-2 if array.dtype == np.float16 else 1e-4
    return bool(np.allclose(array, expected.reshape(-1), rtol=room, atol=room, equal_nan=True))


def _run(graph: GraphDesc, shaders: Shaders, inputs: Sequence[Array]) -> list[Array]:
    """Returns the graph's outputs as the dispatches compute them, flattened; elements that none writes are NaN. Raises
    Unmodelled for an output without sizes."""
    bound = {f"input {i}": _memory(array) for i, array in enumerate(inputs)}
    outputs: list[Array] = []
    for i, tensor in enumerate(graph.outputs):
        desc = None if tensor is None else tensor.desc
        if desc is None or desc.sizes is None or desc.data_type not in NUMPY_DTYPE:
            raise Unmodelled("an output has no sizes")
        array = np.full(math.prod(desc.sizes), np.nan, NUMPY_DTYPE[desc.data_type])
        memory = bound[f"output {i}"] = _memory(array)
        outputs.append(memory[: array.nbytes].view(array.dtype))
    shaders.run(bound, np.zeros(max(shaders.temporary_size, 1), np.uint8))()
    return outputs


def _memory(array: Array) -> Array:
    """Returns a copy of an array's bytes, padded with zeros to a multiple of 4, as dispatches read them."""
    memory = np.zeros(-(-array.nbytes // 4) * 4, np.uint8)
    memory[: array.nbytes] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return memory
