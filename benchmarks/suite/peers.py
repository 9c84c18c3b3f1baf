"""The peers: other ways to do a split or a join on a CPU, each a small adapter, each where it is installed.

Outputs are preallocated and warm unless the name says fresh. A peer that lacks a data type gets another one of the same
size: a split moves bytes.
"""

from __future__ import annotations

import importlib
import os
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from suite import c_peers
from suite.contest import IMAGE_TYPES, Buffers, Job, Prepare, Unsupported, same_size

# numpy


def numpy(threads: int) -> Prepare:
    """np.copyto, an output at a time; for a join the same the other way round."""

    def prepare(buffers: Buffers) -> Job:
        pairs = buffers.pairs()

        def run() -> None:
            for source, target in pairs:
                np.copyto(target, source)

        return Job(run)

    return prepare


def numpy_fresh(threads: int) -> Prepare:
    def prepare(buffers: Buffers) -> Job:
        whole, parts, axis = buffers.whole, buffers.parts, buffers.case.axis
        if buffers.case.join:
            return Job(lambda: np.concatenate(parts, axis), lambda result: [result])
        ends = np.cumsum(buffers.case.pieces)[:-1].tolist()
        return Job(lambda: [view.copy() for view in np.split(whole, ends, axis)], lambda result: result)

    return prepare


# torch

_TORCH_TYPES: Final = {1: "u1", 2: "i2", 4: "f4", 8: "i8"}


def _torch(threads: int, fresh: bool) -> Prepare:
    torch: Any = importlib.import_module("torch")
    torch.set_num_threads(threads)

    def tensor(array: np.ndarray) -> Any:
        if any(stride < 0 for stride in array.strides):
            raise Unsupported("no negative strides")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a broadcast array is read-only, which torch cannot express
            return torch.from_numpy(same_size(array, _TORCH_TYPES))

    def prepare(buffers: Buffers) -> Job:
        whole, parts = tensor(buffers.whole), [tensor(part) for part in buffers.parts]
        axis, pieces = buffers.case.axis, list(buffers.case.pieces)
        if buffers.case.join:
            if fresh:
                return Job(lambda: torch.cat(parts, axis), lambda result: [result.numpy()])
            return Job(lambda: torch.cat(parts, axis, out=whole))
        copy = torch.split_with_sizes_copy
        if fresh:
            return Job(lambda: copy(whole, pieces, axis), lambda result: [part.numpy() for part in result])
        return Job(lambda: copy(whole, pieces, axis, out=parts))

    return prepare


def torch_out(threads: int) -> Prepare:
    """split_with_sizes_copy(out=) and cat(out=)."""
    return _torch(threads, fresh=False)


def torch_fresh(threads: int) -> Prepare:
    return _torch(threads, fresh=True)


# ONNX Runtime

_ORT_TYPES: Final = {1: "u1", 2: "f2", 4: "f4", 8: "i8"}


def onnxruntime(threads: int) -> Prepare:
    """Split and Concat of opset 18 with bound inputs and outputs."""
    ort: Any = importlib.import_module("onnxruntime")
    onnx: Any = importlib.import_module("onnx")
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 4

    def model(buffers: Buffers, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray]) -> bytes:
        helper = onnx.helper
        element = helper.np_dtype_to_tensor_dtype(inputs[0].dtype)
        ins, outs = [f"i{i}" for i in range(len(inputs))], [f"o{i}" for i in range(len(outputs))]
        constants = []
        if buffers.case.join:
            node = helper.make_node("Concat", ins, outs, axis=buffers.case.axis)
        else:
            lengths = np.array(buffers.case.pieces, np.int64)
            constants = [onnx.numpy_helper.from_array(lengths, "lengths")]
            node = helper.make_node("Split", [*ins, "lengths"], outs, axis=buffers.case.axis)
        values = [
            [helper.make_tensor_value_info(n, element, array.shape) for n, array in zip(names, arrays, strict=True)]
            for names, arrays in ((ins, inputs), (outs, outputs))
        ]
        graph = helper.make_graph([node], "split", *values, constants)
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
        return bytes(made.SerializeToString())

    def prepare(buffers: Buffers) -> Job:
        buffers.packed()
        inputs = [same_size(array, _ORT_TYPES) for array in buffers.inputs]
        outputs = [same_size(array, _ORT_TYPES) for array in buffers.outputs]
        session = ort.InferenceSession(model(buffers, inputs, outputs), options, providers=["CPUExecutionProvider"])
        binding = session.io_binding()
        for prefix, arrays, bind in (("i", inputs, binding.bind_input), ("o", outputs, binding.bind_output)):
            for i, array in enumerate(arrays):
                bind(f"{prefix}{i}", "cpu", 0, array.dtype.type, array.shape, array.ctypes.data)
        return Job(lambda: session.run_with_iobinding(binding))

    return prepare


# OpenVINO

_OPENVINO_TYPES: Final = {1: ("u1", 1), 2: ("u1", 2), 4: ("f4", 1), 8: ("f4", 2)}
"""By element size: what OpenVINO takes in its place, and how many of it. Its own types of 2 and 8 bytes are several
times slower on a CPU, and the widest ones go through 32 bits, which loses data."""


def _openvino_array(array: np.ndarray) -> np.ndarray:
    name, count = _OPENVINO_TYPES[array.dtype.itemsize]
    return (
        array.view("u1").view(name).reshape(*array.shape, count)
        if count > 1
        else same_size(array, {array.itemsize: name})
    )


def openvino(threads: int) -> Prepare:
    """VariadicSplit-1 and Concat-1 with set_input_tensor and set_output_tensor."""
    ov: Any = importlib.import_module("openvino")
    ops: Any = importlib.import_module("openvino.opset13")
    core = ov.Core()
    config = {"INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": "1", "PERFORMANCE_HINT": "LATENCY"}

    def prepare(buffers: Buffers) -> Job:
        buffers.packed()
        if buffers.case.bytes > 1 << 29:
            raise Unsupported("left out above 512 MB: it needs copies of its own")
        inputs = [_openvino_array(array) for array in buffers.inputs]
        outputs = [_openvino_array(array) for array in buffers.outputs]
        parameters = [ops.parameter(array.shape, array.dtype.type) for array in inputs]
        if buffers.case.join:
            results = [ops.concat(parameters, buffers.case.axis)]
        else:
            lengths = np.array(buffers.case.pieces, np.int64)
            results = ops.variadic_split(parameters[0], np.int64(buffers.case.axis), lengths).outputs()
        request = core.compile_model(ov.Model(results, parameters), "CPU", config).create_infer_request()
        for i, array in enumerate(inputs):
            request.set_input_tensor(i, ov.Tensor(array, shared_memory=True))
        for i, array in enumerate(outputs):
            request.set_output_tensor(i, ov.Tensor(array, shared_memory=True))
        return Job(lambda: request.infer(share_outputs=True))  # else it copies the outputs once more

    return prepare


# OpenCV


_CHANNELS: Final = range(2, 129)


def opencv_split(threads: int) -> Prepare:
    """cv2.split and cv2.merge into given planes."""
    cv2: Any = importlib.import_module("cv2")
    cv2.setNumThreads(threads)

    def prepare(buffers: Buffers) -> Job:
        image, planes = buffers.channels(_CHANNELS)
        if buffers.case.join:
            return Job(lambda: cv2.merge(planes, image))
        return Job(lambda: cv2.split(image, planes))

    return prepare


def opencv_mix(threads: int) -> Prepare:
    """cv2.mixChannels."""
    cv2: Any = importlib.import_module("cv2")
    cv2.setNumThreads(threads)

    def prepare(buffers: Buffers) -> Job:
        image, planes = buffers.channels(_CHANNELS)
        pairs = [i for i in range(len(planes)) for _ in range(2)]
        sources, targets = (planes, [image]) if buffers.case.join else ([image], planes)
        return Job(lambda: cv2.mixChannels(sources, targets, pairs))

    return prepare


def opencv_transpose(threads: int) -> Prepare:
    """cv2.transpose, an output at a time."""
    cv2: Any = importlib.import_module("cv2")
    cv2.setNumThreads(threads)

    def prepare(buffers: Buffers) -> Job:
        pairs = [(same_size(a, IMAGE_TYPES), same_size(b, IMAGE_TYPES)) for a, b in buffers.turned()]

        def run() -> None:
            for source, target in pairs:
                cv2.transpose(source, target)

        return Job(run)

    return prepare


# jax


def jax_fresh(threads: int) -> Prepare:
    """A compiled jnp.split or jnp.concatenate, which allocates its outputs."""
    flags = f"--xla_cpu_multi_thread_eigen={'true' if threads > 1 else 'false'} intra_op_parallelism_threads={threads}"
    os.environ.setdefault("XLA_FLAGS", flags)
    jax: Any = importlib.import_module("jax")
    jnp: Any = importlib.import_module("jax.numpy")
    jax.config.update("jax_enable_x64", True)
    types = {1: "u1", 2: "u2", 4: "u4", 8: "u8"}

    def prepare(buffers: Buffers) -> Job:
        buffers.packed()
        axis = buffers.case.axis
        if len(buffers.parts) > 64 or buffers.case.bytes > 1 << 29:
            raise Unsupported("left out above 64 parts (compiles for minutes) and above 512 MB")
        inputs = [jnp.asarray(same_size(array, types)) for array in buffers.inputs]
        if buffers.case.join:
            join = jax.jit(lambda *parts: jnp.concatenate(parts, axis))
            return Job(lambda: join(*inputs).block_until_ready(), lambda result: [np.asarray(result)])
        ends = np.cumsum(buffers.case.pieces)[:-1].tolist()
        split = jax.jit(lambda whole: jnp.split(whole, ends, axis))
        return Job(
            lambda: jax.block_until_ready(split(inputs[0])), lambda result: [np.asarray(part) for part in result]
        )

    return prepare


PEERS: Final[dict[str, Callable[[int], Prepare]]] = {
    "numpy": numpy,
    "numpy fresh": numpy_fresh,
    "torch": torch_out,
    "torch fresh": torch_fresh,
    "onnxruntime": onnxruntime,
    "openvino": openvino,
    "cv2 split": opencv_split,
    "cv2 mix": opencv_mix,
    "cv2 transpose": opencv_transpose,
    "mkl": c_peers.mkl,
    "ipp": c_peers.ipp,
    "onednn": c_peers.onednn,
    "libyuv": c_peers.libyuv,
    "jax fresh": jax_fresh,
}
"""By name: takes the number of threads, imports the package (ImportError where it is missing), gives the adapter."""

_FROM_PACKAGES: Final = "numpy torch onnxruntime onnx openvino opencv-python-headless jax mkl ipp onednn-cpu-gomp"
PACKAGES: Final = tuple(_FROM_PACKAGES.split())
