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


def header(name: str) -> dict[str, Any]:
    """The first of the records: what was asked, and the builds."""
    with lzma.open(DATA / f"{name}.jsonl.xz", "rt", encoding="utf-8") as lines:
        found: dict[str, Any] = json.loads(next(lines))
    return found


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


# name of the probe, or what its record has -> why no caller of CreateOperator with sound pointers can express it
LEFT_OUT = {
    "OutputCount 0xffffffff, array has 2": "whether so many can be copied depends on the memory",
    "NullOperatorDesc": "no operator descriptor at all",
    "NullPpv": "about the out pointer of the call, not about the descriptor",
    "OperatorType": "the type names another operator",
    "NULLDESC": "no operator descriptor at all",
    "too large": "a size that no UINT holds; the recording truncated it",
}


def _too_large(record: dict[str, Any]) -> bool:
    tensors = [record.get("InputTensor"), record.get("OutputTensor")]
    tensors += [*(record.get("InputTensors") or ()), *(record.get("OutputTensors") or ())]
    sizes = [s for t in tensors if t and t["Desc"] and t["Desc"]["Sizes"] for s in t["Desc"]["Sizes"]]
    return any(size >= 2**32 for size in sizes)


def reason_to_leave_out(record: dict[str, Any]) -> str | None:
    """Why no descriptor says what was asked; None where one does."""
    desc = record["desc"]
    if record.get("name") in LEFT_OUT:
        return LEFT_OUT[record["name"]]
    if desc["op"] not in ("SPLIT", "JOIN"):
        return LEFT_OUT[desc["op"]]
    for key in ("NullOperatorDesc", "NullPpv", "OperatorType"):
        if key in desc:
            return LEFT_OUT[key]
    return LEFT_OUT["too large"] if _too_large(desc) else None
