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
    CONFIG_KEYS = 16, "keys", "nested keys joined by dots; a model's shapes in pyproject.toml have 5"
    CONFIG_PATTERN = 1024, "characters", "a pattern of file names; 16 of them may be opening brackets"
    EXCERPT_FILE = 16 << 20, "bytes", "a file whose lines are shown with its faults on a terminal"
    REPORT_NAME = 1000, "characters", "an operator's name in a report; the middle of a longer name is omitted"
    FILES_BUFFER = 2**40, "bytes", "a resource, or a quarter of the machine's memory if that is less"
    JSON_TEXT = (
        128 << 20,
        "bytes",
        "a file, standard input, or a line of a .jsonl file; a whole .jsonl file may be longer",
    )
    JSON_NODES = (
        4_000_000,
        "arrays and objects",
        "a text; a tensor has 4; brackets in strings and comments count as well",
    )
    JSON_COMMENTS = 1_000_000, "comments", "a text; // and /* in strings count as well"
    JSON_FAULTS = 50_000, "lines", "a .jsonl file's lines that cannot be read; what follows them is not read"
    JSON_DEPTH = 128, "levels", "nested arrays and objects; a DxDispatch model needs 9"
    NPY_HEADER = 10_000, "characters", "the header; numpy has the same limit for untrusted files"
    STRUCT_TENSORS = 2**20, "tensors", "OutputCount or InputCount; a larger one is considered garbage"
    STRUCT_DIMENSIONS = 64, "numbers", "an array of numbers, such as the DimensionCount sizes or strides"
    STRUCT_FUSED = 8, "operators", "nested fused operators"
    ONNX_FILE = 2**31 - 1, "bytes", "the file without external data; protobuf does not read messages of 2 GiB"
    ONNX_MESSAGES = 500_000, "messages", "graphs, nodes, attributes, tensors, values and functions of a file", 1 / 16
    ONNX_FIELDS = 4_000_000, "fields", "the texts, bytes and messages of a file, known or not; numbers are not counted"
    ONNX_GRAPHS = 2**14, "graphs", "the subgraphs of nodes"
    ONNX_NAME = 2**14, "characters", "a name"
    ONNX_RANK = 64, "dimensions", "a shape or tensor; numpy's own limit"
    ONNX_DEPTH = 128, "graphs", "nested graphs, through nodes and through calls of functions with a Split"
    ONNX_PATH = 1024, "characters", "the path of a nested graph; the middle of a longer path is omitted"
    ONNX_VALUE = 2**20, "bytes", "a tensor or attribute; the data of a larger one is not used for lengths"
    ONNX_ELEMENTS = 2**16, "elements", "a constant from which lengths are computed"
    ONNX_ALL_ELEMENTS = 2**22, "elements", "all constants from which lengths are computed"
    ONNX_FOLDED = 20_000, "nodes", "all nodes that are evaluated for lengths"
    ONNX_PARTS = (
        2**18,
        "parts",
        "all Splits and Concats; each counts its inputs, outputs, lengths or num_outputs, whichever is largest",
    )
    ONNX_FOLDING = 64, "nodes", "the path from a length back to the constants from which it is computed"
    ONNX_CALLS = 1000, "calls", "functions with a Split or Concat, including calls from other functions"
    ONNX_CALL_DEPTH = 32, "calls", "nested calls of functions with a Split or Concat"
    ONNX_COPIED = (
        32 << 20,
        "bytes of memory",
        "all copies of functions with a Split or Concat, one for each call, and of constants for graphs that read them "
        "(an estimate)",
        16,
    )
    ONNX_EXPANDED = (
        64 << 20,
        "bytes of memory",
        "the copies of functions that shape inference makes, one for each call (an estimate)",
        16,
    )
    ONNX_ROUNDS = 64, "inferences", "a model of opset 1; each inference gets past one more Split"
    ONNX_TAKEN = 16, "inferences", "a model with branches that are always taken; each inference may find more of them"
    ONNX_NAMES = (
        16 << 20,
        "characters",
        "all names of the copies of functions' and branches' nodes",
        16,
    )
    ONNX_INFERENCE_TIME = 60, "seconds", "all shape inferences of a file"
    ONNX_INFERENCE_NAMES = (
        1 << 22,
        "names",
        "the names that each subgraph of a node can see, which onnx's inference copies for it",
        128,
    )
    ONNX_INFERENCE_MEMORY = 1 << 30, "bytes", "the memory of the shape inference process (bytes of its request)", 32
    ONNX_INFERENCE_ANSWER = 32 << 20, "bytes", "the result of shape inference (bytes of its request)", 8
    IR_FILE = 256 << 20, "bytes", "the XML"
    IR_DEPTH = 128, "levels", "nested elements; a layer needs 6, and 3 more for each enclosing body"
    IR_TAGS = 5_000_000, "elements", "the XML, known or not; a layer has some 20"
    IR_LAYERS = 1_000_000, "layers", "a model, including bodies"
    IR_PORTS = 2_000_000, "ports", "a model, including bodies"
    IR_ATTRIBUTE = 2**20, "characters", "an attribute outside rt_info, which is skipped"
    IR_NAME = 4096, "characters", "a layer's name, and the path of a body: the names of the enclosing layers"
    IR_NAMES = 1 << 25, "characters", "the paths of bodies, and the names of splits' inputs and outputs, together"
    IR_DIM = 64, "characters", "a `<dim>`"
    IR_RANK = 64, "dimensions", "a shape; numpy's own limit"
    IR_ELEMENTS = 2**16, "elements", "a constant; an axis has one, split_lengths has one for each output"
    IR_VALUES = 1 << 22, "elements", "the constants of a model; each counts once for every use"
    IR_CHAIN = 64, "layers", "the path from a constant to its use"


class LimitError(InputError):
    """A file that exceeds a limit as a whole."""

    def __init__(self, limit: Limit, most: int) -> None:
        super().__init__(f"beyond the limit {limit.name}: {most} {limit.unit} for {limit.bounds}")


class Budget:
    """Counts a file of `size` bytes against its limits."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._spent: Counter[Limit] = Counter()

    def copy(self) -> Budget:
        """Returns an independent copy, with the same amounts spent."""
        made = Budget(self._size)
        made._spent = self._spent.copy()
        return made

    def most(self, limit: Limit) -> int:
        """Returns the value of a limit for a file of this size."""
        return limit.of(self._size)

    def spend(self, limit: Limit, amount: int = 1) -> None:
        """Adds `amount` to the file's use of `limit`. Raises LimitError if the sum exceeds the limit."""
        spent = self._spent[limit] = self._spent[limit] + amount
        if spent > self.most(limit):
            raise LimitError(limit, self.most(limit))
