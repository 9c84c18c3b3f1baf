"""The recorded descriptors of the real library, as dmlsplit's."""

from __future__ import annotations

import json
import lzma
from pathlib import Path
from typing import Any

import dmlsplit as dml

DATA = Path(__file__).parent / "data" / "oracle"


def records(name: str) -> list[dict[str, Any]]:
    with lzma.open(DATA / f"{name}.jsonl.xz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def tensor(record: dict[str, Any] | None) -> dml.TensorDesc | None:
    if record is None:
        return None
    members = record["Desc"]
    if members is None:
        return dml.TensorDesc(record["Type"], None)
    return dml.TensorDesc(
        record["Type"],
        dml.BufferTensorDesc(
            members["DataType"],
            members["Sizes"],
            strides=members["Strides"],
            flags=members["Flags"],
            total_tensor_size_in_bytes=members["TotalTensorSizeInBytes"],
            guaranteed_base_offset_alignment=members["GuaranteedBaseOffsetAlignment"],
            dimension_count=members["DimensionCount"],
        ),
    )


def tensors(records: list[dict[str, Any] | None] | None) -> list[dml.TensorDesc | None] | None:
    return None if records is None else [tensor(record) for record in records]


def operator(record: dict[str, Any]) -> dml.OperatorDesc:
    if record["op"] == "SPLIT":
        return dml.SplitOperatorDesc(
            tensor(record["InputTensor"]), tensors(record["OutputTensors"]), record["Axis"], record["OutputCount"]
        )
    return dml.JoinOperatorDesc(
        tensors(record["InputTensors"]), tensor(record["OutputTensor"]), record["Axis"], record["InputCount"]
    )
