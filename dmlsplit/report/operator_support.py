"""Formats the tensor support of operators: as a table, as JSON, and as WebNN's opSupportLimits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, Final, NamedTuple

from dmlsplit.descriptors.diagnostics import SCHEMA
from dmlsplit.descriptors.enums import FeatureLevel
from dmlsplit.descriptors.schema import OperatorSchema, find_operator
from dmlsplit.report.table import Table
from dmlsplit.targets.feature_levels import TensorSupport
from dmlsplit.targets.operator_support import By, rows_with, settings_of, tensor_support
from dmlsplit.targets.releases import Release

_BUILDS: Final = ": DirectML "
"""Within a source, before the builds."""


class Supported(NamedTuple):
    """The support of one target, or of several with the same tables."""

    schema: OperatorSchema
    targets: tuple[By, ...]
    tensors: tuple[TensorSupport, ...]
    settings: Mapping[str, tuple[TensorSupport, ...]]
    """Maps an attribute setting to the rows whose data types it narrows."""
    source: str
    """The page, or the builds that were asked, for all targets."""


def supported(schema: OperatorSchema, targets: Iterable[By]) -> list[Supported]:
    """Returns the tables of an operator's tensor support for the targets, in order; consecutive targets with the same
    content share one."""
    found = []
    for _, run in groupby([_of(schema, by) for by in targets], _same):
        alike = list(run)
        source = "; ".join(_sources(one.source for one in alike))
        targets_alike = tuple([by for one in alike for by in one.targets])
        found.append(alike[0]._replace(targets=targets_alike, source=source))
    return found


def _of(schema: OperatorSchema, by: By) -> Supported:
    rows = tensor_support(schema.number, by)
    return Supported(schema, (by,), rows, settings_of(schema, by), rows[0].source if rows else "")


def _sources(sources: Iterable[str]) -> Iterable[str]:
    """Yields the distinct sources, each with the builds that several of them name merged."""
    builds: dict[str, list[str]] = {}
    for source in sources:
        kind, _, names = source.partition(_BUILDS)
        builds.setdefault(kind, []).extend(names.split(", ") if names else ())
    for kind, found in builds.items():
        yield f"{kind}{_BUILDS}{', '.join(dict.fromkeys(found))}" if found else kind


def _same(table: Supported) -> object:
    """Returns a key that is equal for tables that differ only in the builds that they come from."""
    rows = [replace(row, source="") for row in table.tensors]
    basis = {row.source.partition(":")[0] for row in table.tensors}
    settings = {name: [(row.tensor, row.data_types) for row in rows] for name, rows in table.settings.items()}
    return rows, basis, settings, [isinstance(by, Release) for by in table.targets]


def name_of(by: By) -> str:
    return f"directml {by.label}" if isinstance(by, Release) else f"feature level {by}"


def as_json(tables: Sequence[Supported]) -> dict[str, Any]:
    """Returns the tables of one operator as a dict that json.dumps accepts."""
    schema = tables[0].schema
    return {
        "schema": SCHEMA,
        "operator": schema.c_name,
        "since": str(schema.since),
        "tables": [
            {
                "feature_levels": [str(by) for by in table.targets if isinstance(by, FeatureLevel)],
                "releases": [by.name for by in table.targets if isinstance(by, Release)],
                "source": table.source or None,
                "tensors": [_row_json(row) for row in table.tensors],
                "settings": {
                    name: {row.tensor: _types(row.data_types) for row in rows} for name, rows in table.settings.items()
                },
            }
            for table in tables
        ],
    }


def _row_json(row: TensorSupport) -> dict[str, Any]:
    return {
        "tensor": row.tensor,
        "kind": row.kind,
        "optional": row.optional,
        "dimension_counts": list(row.dimension_counts),
        "data_types": _types(row.data_types),
        "same_data_type_as": list(row.same_data_type_as),
        "same_dimension_count_as": list(row.same_dimension_count_as),
        "source": row.source,
    }


def _types(data_types: Iterable[Any]) -> list[str]:
    return [data_type.name for data_type in sorted(data_types)]


def as_tables(tables: Sequence[Supported]) -> list[Table]:
    """Returns the tables of one operator as Tables to print."""
    return [_table(table) for table in tables]


def _table(table: Supported) -> Table:
    name = f"{table.schema.c_name}, {_span(table.targets)}"
    if not table.tensors:
        return Table(name, ("Not there",), [], [f"introduced with feature level {table.schema.since}"])
    rows = [
        (
            row.tensor,
            "optional" if row.optional else "",
            ranks_text(row.dimension_counts),
            " ".join(_types(row.data_types)),
        )
        for row in table.tensors
    ]
    remarks = [f"{kind}: {' = '.join(group)}" for kind, group in _couplings(table.tensors)]
    for setting, with_it in table.settings.items():
        types = "; ".join(f"{row.tensor} {' '.join(_types(row.data_types))}" for row in with_it)
        remarks.append(f"With {setting.replace('=given', '')}: {types}")
    return Table(name, ("Tensor", "", "Dimensions", "Data types"), rows, [*remarks, table.source])


def _couplings(rows: Sequence[TensorSupport]) -> Iterable[tuple[str, tuple[str, ...]]]:
    for kind, member in (("Same data type", "same_data_type_as"), ("Same dimensions", "same_dimension_count_as")):
        groups = {tuple(sorted((row.tensor, *getattr(row, member)))) for row in rows if getattr(row, member)}
        yield from ((kind, group) for group in sorted(groups))


def _span(targets: Sequence[By]) -> str:
    names = [name_of(by) for by in (targets[0], targets[-1])]
    return names[0] if len(targets) == 1 else f"{names[0]} to {names[1].rpartition(' ')[2]}"


def ranks_text(numbers: Sequence[int]) -> str:
    """Returns ascending dimension counts as text: "1-8", "1, 2, 4" if not consecutive, "none" if there are none."""
    if len(numbers) > 1 and numbers[-1] - numbers[0] == len(numbers) - 1:
        return f"{numbers[0]}-{numbers[-1]}"
    return ", ".join(map(str, numbers)) or "none"


class Operation(NamedTuple):
    """An operation of WebNN: the DirectML operator that implements it, and the tensors for its operands."""

    operator: str
    operands: Mapping[str, str]


_ONE: Final = {"input": "InputTensor", "output": "OutputTensor"}
_OF_ONE: Final = {"a": "InputTensor", "output": "OutputTensor"}
_TWO: Final = {"a": "ATensor", "b": "BTensor", "output": "OutputTensor"}
_FILTERED: Final = {"input": "InputTensor", "filter": "FilterTensor", "bias": "BiasTensor", "output": "OutputTensor"}
_GATHERED: Final = {"input": "InputTensor", "indices": "IndicesTensor", "output": "OutputTensor"}
_SCATTERED: Final = {**_GATHERED, "updates": "UpdatesTensor"}
_QUANTIZED: Final = {**_ONE, "scale": "ScaleTensor", "zeroPoint": "ZeroPointTensor"}
_NORMALIZED: Final = {**_ONE, "scale": "ScaleTensor", "bias": "BiasTensor"}
_RECURRENT: Final = {
    "input": "InputTensor",
    "weight": "WeightTensor",
    "recurrentWeight": "RecurrenceTensor",
    "bias": "BiasTensor",
    "recurrentBias": "BiasTensor",
}
_STATE: Final = {"output0": "OutputSingleTensor"}
_STATES: Final = {"output0": "OutputSingleTensor", "output1": "OutputCellSingleTensor"}

WEBNN: Final[Mapping[str, Operation]] = {
    "argMax": Operation("ARGMAX", _ONE),
    "argMin": Operation("ARGMIN", _ONE),
    "batchNormalization": Operation(
        "BATCH_NORMALIZATION",
        {**_NORMALIZED, "mean": "MeanTensor", "variance": "VarianceTensor"},
    ),
    "cast": Operation("CAST", _ONE),
    "clamp": Operation("ELEMENT_WISE_CLIP1", _ONE),
    "conv2d": Operation(
        "CONVOLUTION",
        _FILTERED,
    ),
    "convTranspose2d": Operation(
        "CONVOLUTION",
        _FILTERED,
    ),
    "cumulativeSum": Operation("CUMULATIVE_SUMMATION", _ONE),
    "add": Operation("ELEMENT_WISE_ADD", _TWO),
    "sub": Operation("ELEMENT_WISE_SUBTRACT", _TWO),
    "mul": Operation("ELEMENT_WISE_MULTIPLY", _TWO),
    "div": Operation("ELEMENT_WISE_DIVIDE", _TWO),
    "max": Operation("ELEMENT_WISE_MAX", _TWO),
    "min": Operation("ELEMENT_WISE_MIN", _TWO),
    "pow": Operation("ELEMENT_WISE_POW", {"a": "InputTensor", "b": "ExponentTensor", "output": "OutputTensor"}),
    "equal": Operation("ELEMENT_WISE_LOGICAL_EQUALS", _TWO),
    "notEqual": Operation("ELEMENT_WISE_LOGICAL_EQUALS", _TWO),
    "greater": Operation("ELEMENT_WISE_LOGICAL_GREATER_THAN", _TWO),
    "greaterOrEqual": Operation("ELEMENT_WISE_LOGICAL_GREATER_THAN_OR_EQUAL", _TWO),
    "lesser": Operation("ELEMENT_WISE_LOGICAL_LESS_THAN", _TWO),
    "lesserOrEqual": Operation("ELEMENT_WISE_LOGICAL_LESS_THAN_OR_EQUAL", _TWO),
    "logicalAnd": Operation("ELEMENT_WISE_LOGICAL_AND", _TWO),
    "logicalOr": Operation("ELEMENT_WISE_LOGICAL_OR", _TWO),
    "logicalXor": Operation("ELEMENT_WISE_LOGICAL_XOR", _TWO),
    "logicalNot": Operation("ELEMENT_WISE_LOGICAL_NOT", _OF_ONE),
    "isNaN": Operation("ELEMENT_WISE_IS_NAN", _OF_ONE),
    "isInfinite": Operation("ELEMENT_WISE_IS_INFINITY", _OF_ONE),
    "abs": Operation("ELEMENT_WISE_ABS", _ONE),
    "ceil": Operation("ELEMENT_WISE_CEIL", _ONE),
    "cos": Operation("ELEMENT_WISE_COS", _ONE),
    "erf": Operation("ELEMENT_WISE_ERF", _ONE),
    "exp": Operation("ELEMENT_WISE_EXP", _ONE),
    "floor": Operation("ELEMENT_WISE_FLOOR", _ONE),
    "identity": Operation("ELEMENT_WISE_IDENTITY", _ONE),
    "log": Operation("ELEMENT_WISE_LOG", _ONE),
    "neg": Operation("ELEMENT_WISE_NEGATE", _ONE),
    "reciprocal": Operation("ELEMENT_WISE_RECIP", _ONE),
    "roundEven": Operation("ELEMENT_WISE_ROUND", _ONE),
    "sign": Operation("ELEMENT_WISE_SIGN", _ONE),
    "sin": Operation("ELEMENT_WISE_SIN", _ONE),
    "sqrt": Operation("ELEMENT_WISE_SQRT", _ONE),
    "tan": Operation("ELEMENT_WISE_TAN", _ONE),
    "dequantizeLinear": Operation(
        "ELEMENT_WISE_DEQUANTIZE_LINEAR",
        _QUANTIZED,
    ),
    "quantizeLinear": Operation(
        "ELEMENT_WISE_QUANTIZE_LINEAR",
        _QUANTIZED,
    ),
    "elu": Operation("ACTIVATION_ELU", _ONE),
    "expand": Operation("ELEMENT_WISE_IDENTITY", _ONE),
    "gather": Operation("GATHER", _GATHERED),
    "gatherElements": Operation("GATHER_ELEMENTS", _GATHERED),
    "gatherND": Operation("GATHER_ND1", _GATHERED),
    "gelu": Operation("ACTIVATION_GELU", _ONE),
    "gemm": Operation("GEMM", {"a": "ATensor", "b": "BTensor", "c": "CTensor", "output": "OutputTensor"}),
    "gru": Operation(
        "GRU",
        {**_RECURRENT, "initialHiddenState": "HiddenInitTensor", **_STATE, "output1": "OutputSequenceTensor"},
    ),
    "gruCell": Operation("GRU", {**_RECURRENT, "hiddenState": "HiddenInitTensor", "output": "OutputSingleTensor"}),
    "hardSigmoid": Operation("ACTIVATION_HARD_SIGMOID", _ONE),
    "hardSwish": Operation("ACTIVATION_HARD_SWISH", _ONE),
    "instanceNormalization": Operation(
        "MEAN_VARIANCE_NORMALIZATION1",
        _NORMALIZED,
    ),
    "layerNormalization": Operation(
        "MEAN_VARIANCE_NORMALIZATION1",
        _NORMALIZED,
    ),
    "leakyRelu": Operation("ACTIVATION_LEAKY_RELU", _ONE),
    "linear": Operation("ACTIVATION_LINEAR", _ONE),
    "lstm": Operation(
        "LSTM",
        {
            **_RECURRENT,
            "peepholeWeight": "PeepholeTensor",
            "initialHiddenState": "HiddenInitTensor",
            "initialCellState": "CellMemInitTensor",
            **_STATES,
            "output2": "OutputSequenceTensor",
        },
    ),
    "lstmCell": Operation(
        "LSTM",
        {
            **_RECURRENT,
            "peepholeWeight": "PeepholeTensor",
            "hiddenState": "HiddenInitTensor",
            "cellState": "CellMemInitTensor",
            **_STATES,
        },
    ),
    "matmul": Operation("GEMM", _TWO),
    "pad": Operation("PADDING1", _ONE),
    "averagePool2d": Operation("AVERAGE_POOLING", _ONE),
    "l2Pool2d": Operation("LP_POOLING", _ONE),
    "maxPool2d": Operation("MAX_POOLING2", _ONE),
    "prelu": Operation(
        "ACTIVATION_PARAMETERIZED_RELU", {"input": "InputTensor", "slope": "SlopeTensor", "output": "OutputTensor"}
    ),
    "relu": Operation("ACTIVATION_RELU", _ONE),
    "resample2d": Operation("RESAMPLE1", _ONE),
    "reshape": Operation("ELEMENT_WISE_IDENTITY", _ONE),
    "reverse": Operation("SLICE1", _ONE),
    "scatterElements": Operation(
        "SCATTER_ELEMENTS",
        _SCATTERED,
    ),
    "scatterND": Operation(
        "SCATTER_ND",
        _SCATTERED,
    ),
    "sigmoid": Operation("ACTIVATION_SIGMOID", _ONE),
    "slice": Operation("SLICE1", _ONE),
    "softmax": Operation("ACTIVATION_SOFTMAX1", _ONE),
    "softplus": Operation("ACTIVATION_SOFTPLUS", _ONE),
    "softsign": Operation("ACTIVATION_SOFTSIGN", _ONE),
    "split": Operation("SPLIT", {"input": "InputTensor", "outputs": "OutputTensors"}),
    "concat": Operation("JOIN", {"inputs": "InputTensors", "output": "OutputTensor"}),
    "tanh": Operation("ACTIVATION_TANH", _ONE),
    "tile": Operation("TILE", _ONE),
    "transpose": Operation("ELEMENT_WISE_IDENTITY", _ONE),
    "triangular": Operation("DIAGONAL_MATRIX1", _ONE),
    "where": Operation(
        "ELEMENT_WISE_IF",
        {
            "condition": "ConditionTensor",
            "trueValue": "ATensor",
            "falseValue": "BTensor",
            "output": "OutputTensor",
        },
    ),
    **{
        name: Operation("REDUCE", _ONE)
        for name in (
            *("reduceL1", "reduceL2", "reduceLogSum", "reduceLogSumExp", "reduceMax", "reduceMean"),
            *("reduceMin", "reduceProduct", "reduceSum", "reduceSumSquare"),
        )
    },
}
_FUNCTIONS: Final = {
    "reduceL1": "L1",
    "reduceL2": "L2",
    "reduceLogSum": "LOG_SUM",
    "reduceLogSumExp": "LOG_SUM_EXP",
    "reduceMax": "MAX",
    "reduceMean": "AVERAGE",
    "reduceMin": "MIN",
    "reduceProduct": "MULTIPLY",
    "reduceSum": "SUM",
    "reduceSumSquare": "SUM_SQUARE",
}
"""The DML_REDUCE_FUNCTION of each reduction."""
_WEBNN_TYPES: Final = ("float32", "float16", "int32", "uint32", "int64", "uint64", "int8", "uint8", "int4", "uint4")
"""The values of MLOperandDataType, in their order."""


_ENDS: Final = {"input": "InputTensor", "constant": "InputTensor", "output": "OutputTensor"}
"""The inputs and outputs of a graph, represented by the tensors of ELEMENT_WISE_IDENTITY."""


def op_support_limits(by: By, operator: str | None = None) -> dict[str, Any]:
    """Returns the limits of all operators and of a graph's ends, or of `operator` only, in the form and by the names of
    WebNN's MLOpSupportLimits: for each operand the data types and the range of ranks that DirectML accepts. Operations
    that the target does not have are left out, and so is maxTensorByteLength, which depends on the device."""
    found: dict[str, Any] = {}
    if operator is None:
        rows = _rows("ELEMENT_WISE_IDENTITY", by, None)
        found = {"preferredInputLayout": "nchw"} | {end: _limits(rows[tensor]) for end, tensor in _ENDS.items()}
    for name, operation in WEBNN.items():
        if operator not in (None, operation.operator):
            continue
        rows = _rows(operation.operator, by, _FUNCTIONS.get(name))
        limits = {operand: _limits(rows[tensor]) for operand, tensor in operation.operands.items() if tensor in rows}
        if limits:
            found[name] = limits
    return found


def _rows(operator: str, by: By, function: str | None) -> dict[str, TensorSupport]:
    if function is None:
        return {row.tensor: row for row in tensor_support(operator, by)}
    return {row.tensor: row for row in rows_with(find_operator(operator), by, f"Function={function}")}


def _limits(row: TensorSupport) -> dict[str, Any]:
    types = {data_type.name.lower() for data_type in row.data_types}
    return {
        "dataTypes": [name for name in _WEBNN_TYPES if name in types],
        "rankRange": {"min": min(row.dimension_counts, default=0), "max": max(row.dimension_counts, default=0)},
    }
