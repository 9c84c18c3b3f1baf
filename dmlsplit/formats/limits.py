"""Limits on reading files, all in one table: docs/limits.md prints it, and modules take their values from it."""

from __future__ import annotations

from enum import Enum, unique


@unique
class Limit(Enum):
    """The `most` of a `unit` that a reader takes, and what it `bounds`; the name says which files it is for.

    A reader that meets more refuses the file with one error, or takes the value that it was looking for as unknown.
    """

    def __init__(self, most: int, unit: str, bounds: str) -> None:
        self.most = most
        self.unit = unit
        self.bounds = bounds

    FILES_BUFFER = 2**40, "bytes", "a resource; a quarter of the machine's memory, where that is less"
    JSON_DEPTH = 128, "levels", "arrays and objects in one another; a DxDispatch model needs 9"
    NPY_HEADER = 10_000, "characters", "the header, which is numpy's own limit for files that it does not trust"
    STRUCT_TENSORS = 2**20, "tensors", "OutputCount or InputCount; a larger one is taken for garbage"
    STRUCT_DIMENSIONS = 64, "dimensions", "DimensionCount of sizes or strides"
    ONNX_FILE = 2**31 - 1, "bytes", "the file without external data; protobuf reads no message of 2 GiB"
    ONNX_VALUE = 2**20, "bytes", "a tensor or attribute; the data of a larger one has no bearing on lengths"
    ONNX_ELEMENTS = 2**16, "elements", "a constant that lengths are computed of"
    ONNX_FOLDING = 64, "nodes", "the way from a length back to the constants that it is computed of"
    ONNX_CALLS = 1000, "calls", "functions with a Split, those that functions call included"
    ONNX_CALL_DEPTH = 32, "calls", "functions with a Split that call one another"
    ONNX_EXPANDED = 100_000, "calls", "functions that shape inference is asked to follow"
    ONNX_ROUNDS = 64, "inferences", "a model of opset 1, each of which gets one Split further"
    ONNX_INFERENCE_TIME = 60, "seconds", "one shape inference"
    ONNX_INFERENCE_MEMORY = 8 << 30, "bytes", "the process of shape inference"
    IR_FILE = 256 << 20, "bytes", "the XML"
    IR_DEPTH = 128, "levels", "elements in one another; a layer needs 6, each body around it 3 more"
    IR_LAYERS = 1_000_000, "layers", "a model, bodies included"
    IR_PORTS = 2_000_000, "ports", "a model, bodies included"
    IR_ATTRIBUTE = 2**20, "characters", "an attribute outside of rt_info, which is passed over"
    IR_DIM = 64, "characters", "a `<dim>`"
    IR_RANK = 64, "dimensions", "a shape; numpy's own limit"
    IR_ELEMENTS = 2**16, "elements", "a constant; an axis has one, split_lengths has one for each output"
    IR_CHAIN = 64, "layers", "the way from a constant to where it is used"
