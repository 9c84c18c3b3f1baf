"""All limits on reading files, in one table: docs/limits.md prints it, and modules take their values from it."""

from __future__ import annotations

from collections import Counter
from enum import Enum, unique

from dmlsplit.system.errors import InputError


@unique
class Limit(Enum):
    """A limit: a reader accepts at most `most` of a `unit`; `bounds` describes what is limited, and the member's name
    the kind of file.

    `a_byte` is added to `most` for each byte of the file. A reader that finds more refuses the file with one error, or
    treats the value that it was reading as unknown.
    """

    __hash__ = object.__hash__  # Enum's own hash hashes the name in Python, which is slow

    def __init__(self, most: int, unit: str, bounds: str, a_byte: float = 0) -> None:
        self.most = most
        self.unit = unit
        self.bounds = bounds
        self.a_byte = a_byte

    def of(self, size: int) -> int:
        """Returns the limit for a file of `size` bytes."""
        return self.most + int(self.a_byte * size)

    CONFIG_FILE = 256 << 10, "bytes", "dmlsplit.toml, or a pyproject.toml that names dmlsplit"
    CONFIG_KEYS = 16, "keys", "keys in one another that dots join; a model's shapes in pyproject.toml have 5"
    CONFIG_PATTERN = 1024, "characters", "a pattern of file names; 16 of them may be opening brackets"
    EXCERPT_FILE = 16 << 20, "bytes", "a file whose lines are shown below its faults on a terminal"
    REPORT_NAME = 1000, "characters", "an operator's name in a report; the middle of a longer one is left out"
    FILES_BUFFER = 2**40, "bytes", "a resource; a quarter of the machine's memory, where that is less"
    JSON_TEXT = 128 << 20, "bytes", "a file, standard input, or a line of a .jsonl file, which may be longer as a whole"
    JSON_NODES = 4_000_000, "arrays and objects", "a text; a tensor has 4, brackets in strings and comments count, too"
    JSON_DEPTH = 128, "levels", "arrays and objects in one another; a DxDispatch model needs 9"
    NPY_HEADER = 10_000, "characters", "the header, which is numpy's own limit for files that it does not trust"
    STRUCT_TENSORS = 2**20, "tensors", "OutputCount or InputCount; a larger one is taken for garbage"
    STRUCT_DIMENSIONS = 64, "numbers", "an array of numbers: DimensionCount of sizes or strides"
    STRUCT_FUSED = 8, "operators", "operators fused into one another"
    ONNX_FILE = 2**31 - 1, "bytes", "the file without external data; protobuf reads no message of 2 GiB"
    ONNX_MESSAGES = 500_000, "messages", "graphs, nodes, attributes, tensors, values and functions of a file", 1 / 16
    ONNX_GRAPHS = 2**14, "graphs", "graphs in nodes"
    ONNX_NAME = 2**14, "characters", "a name"
    ONNX_RANK = 64, "dimensions", "a shape or tensor; numpy's own limit"
    ONNX_DEPTH = 128, "graphs", "graphs in one another, by nodes and by calls of functions with a Split"
    ONNX_PATH = 1024, "characters", "the path of a graph in others; the middle of a longer one is left out"
    ONNX_VALUE = 2**20, "bytes", "a tensor or attribute; the data of a larger one has no bearing on lengths"
    ONNX_ELEMENTS = 2**16, "elements", "a constant that lengths are computed of"
    ONNX_ALL_ELEMENTS = 2**22, "elements", "all constants that lengths are computed of"
    ONNX_FOLDED = 20_000, "nodes", "all nodes that are evaluated for lengths"
    ONNX_PARTS = 2**18, "parts", "all Splits and Concats, by inputs, outputs, lengths or num_outputs, the most of them"
    ONNX_FOLDING = 64, "nodes", "the way from a length back to the constants that it is computed of"
    ONNX_CALLS = 1000, "calls", "functions with a Split or Concat, also where another function calls them"
    ONNX_CALL_DEPTH = 32, "calls", "functions with a Split or Concat that call one another"
    ONNX_COPIED = 32 << 20, "bytes of memory", "functions with a Split or Concat at all their calls, as estimated", 16
    ONNX_EXPANDED = 64 << 20, "bytes of memory", "functions at the calls that shape inference follows, as estimated", 16
    ONNX_ROUNDS = 64, "inferences", "a model of opset 1, each of which gets one Split further"
    ONNX_TAKEN = 16, "inferences", "a model with branches that are always taken, each of which knows of further ones"
    ONNX_NAMES = (
        16 << 20,
        "characters",
        "the names that nodes of functions and branches get at all places, together",
        16,
    )
    ONNX_INFERENCE_TIME = 60, "seconds", "all shape inferences of a file"
    ONNX_INFERENCE_NAMES = (
        1 << 22,
        "names",
        "the names around each graph in a node, which onnx's inference copies for it",
        128,
    )
    ONNX_INFERENCE_MEMORY = 1 << 30, "bytes", "the process of shape inference, by what it is given", 32
    ONNX_INFERENCE_ANSWER = 32 << 20, "bytes", "the answer of shape inference, by what it is given", 8
    IR_FILE = 256 << 20, "bytes", "the XML"
    IR_DEPTH = 128, "levels", "elements in one another; a layer needs 6, each body around it 3 more"
    IR_LAYERS = 1_000_000, "layers", "a model, bodies included"
    IR_PORTS = 2_000_000, "ports", "a model, bodies included"
    IR_ATTRIBUTE = 2**20, "characters", "an attribute outside of rt_info, which is passed over"
    IR_NAME = 4096, "characters", "a layer's name, and the way to a body: the names of the layers around it"
    IR_NAMES = 1 << 25, "characters", "the ways to bodies, and the names of what splits take and put out, together"
    IR_DIM = 64, "characters", "a `<dim>`"
    IR_RANK = 64, "dimensions", "a shape; numpy's own limit"
    IR_ELEMENTS = 2**16, "elements", "a constant; an axis has one, split_lengths has one for each output"
    IR_VALUES = 1 << 22, "elements", "the constants of a model, each as often as it is looked at"
    IR_CHAIN = 64, "layers", "the way from a constant to where it is used"


class LimitError(InputError):
    """A file that exceeds a limit as a whole."""

    def __init__(self, limit: Limit, most: int) -> None:
        super().__init__(f"beyond the limit {limit.name}: {most} {limit.unit} for {limit.bounds}")


class Budget:
    """Counts a file of `size` bytes against its limits."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._spent: Counter[Limit] = Counter()

    def most(self, limit: Limit) -> int:
        """Returns the value of a limit for a file of this size."""
        return limit.of(self._size)

    def spend(self, limit: Limit, amount: int = 1) -> None:
        """Adds `amount` to the file's use of `limit`. Raises LimitError if the sum exceeds the limit."""
        spent = self._spent[limit] = self._spent[limit] + amount
        if spent > self.most(limit):
            raise LimitError(limit, self.most(limit))
