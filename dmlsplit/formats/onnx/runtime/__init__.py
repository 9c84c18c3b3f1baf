"""What ONNX Runtime with its DirectML execution provider makes of the Splits and Concats of a model.

    for node in on_onnxruntime("model.onnx", "1.24.4", run_shapes={"images": (1, 3, 640, 640)}):
        print(node.path, node.answer.outcome, node.answer.at, node.answer.compile)

The model is followed as ONNX Runtime follows it: functions are inlined, what is constant is folded, each graph is cut
into what is fused and what is not. Sizes that the file leaves open stay open until the first Run.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import onnx
from google.protobuf.message import DecodeError, EncodeError

from dmlsplit.dims import Dim
from dmlsplit.errors import InputError
from dmlsplit.formats import json as operator_json
from dmlsplit.formats.files import AllowedFolders
from dmlsplit.formats.limits import Budget
from dmlsplit.formats.onnx import given, loading, tensors
from dmlsplit.formats.onnx.functions import check_references
from dmlsplit.formats.onnx.runtime.answers import NodeOnRuntime, answers
from dmlsplit.formats.onnx.runtime.inlining import inlined
from dmlsplit.formats.onnx.runtime.scopes import Model
from dmlsplit.runtimes import Options, Runtime, RuntimeAnswer, find_runtime
from dmlsplit.runtimes.facts import DEFAULTS

__all__ = ["NodeOnRuntime", "answer_json", "on_onnxruntime"]


def on_onnxruntime(
    source: str | os.PathLike[str] | bytes | onnx.ModelProto,
    version: str | Runtime,
    *,
    run_shapes: Mapping[str, Sequence[Dim]] | None = None,
    run_values: Mapping[str, Sequence[int]] | None = None,
    free_dimensions: Mapping[str, int] | None = None,
    options: Options = DEFAULTS,
    allow_paths: Iterable[str | os.PathLike[str]] = (),
) -> list[NodeOnRuntime]:
    """The answers of one version for every Split and Concat of a model, in order; those of functions at each call.

    `run_shapes` and `run_values` are the model's inputs at the first Run: shapes, and the elements of those that
    lengths come from. `free_dimensions` are ONNX Runtime's overrides of symbolic dimensions at session creation.

    Raises InputError for what is no model, or has no such tensors or dimensions; ValueError for an unknown version;
    OSError.
    """
    runtime = find_runtime(version)
    read_external: tensors.ReadExternal = tensors.no_external_data
    if isinstance(source, onnx.ModelProto):
        proto = source
    elif isinstance(source, bytes):
        proto = loading.parse(source)
    else:
        proto = loading.load(source)
        folder = os.path.dirname(os.path.abspath(source))
        read_external = tensors.external_reader(AllowedFolders(folder, allow_paths))
    try:
        proto = loading.without_weights(proto)
        check_references(proto)
        budget = Budget(proto.ByteSize())
        proto, written = inlined(proto, budget)
        given.fill_in(proto, {}, free_dimensions or {})
        model = Model(proto, written, read_external, budget, run_shapes or {}, run_values or {})
        return answers(model, runtime, options)
    except (RecursionError, DecodeError, EncodeError):  # protobuf has its own limit, of 100 messages in one another
        raise InputError("its graphs are nested too deeply") from None


def answer_json(answer: RuntimeAnswer) -> dict[str, Any]:
    """The value of the key "onnxruntime" in JSON."""
    call = answer.compile
    return {
        "version": answer.runtime.version,
        "outcome": str(answer.outcome),
        "at": answer.at,
        "operators": [json.loads(operator_json.dumps(desc)) for desc in answer.operators],
        "hresults": [f"0x{hresult:08X}" for hresult in answer.hresults],
        "compile": None if call is None else {"call": call.call, "flags": call.flags},
    }
