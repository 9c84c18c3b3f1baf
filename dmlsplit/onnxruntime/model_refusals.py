"""The reasons why ONNX Runtime refuses a model with a Split or Concat before nodes are placed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeAlias

from dmlsplit.onnxruntime.facts import FIRST_WITH_KERNEL, LengthsFrom, RuntimeFacts
from dmlsplit.onnxruntime.node_shapes import static_axis
from dmlsplit.rules.onnx.split_facts import DATA_TYPES, MAX_INPUTS
from dmlsplit.targets.runtime_versions import Runtime

Refusal: TypeAlias = tuple[str, str]
"""The rule, without the scope onnxruntime/, and its message."""


NO_LENGTHS: Final = "neither lengths nor num_outputs is given"
"""The rule of a Split without lengths; if the axis is unknown, the first Run fails with it."""


def refusals(facts: RuntimeFacts, runtime: Runtime) -> Iterator[Refusal]:
    """Yields the reasons, as (rule id, message), why `runtime` does not load a model with this Split or Concat, in the
    order in which ONNX Runtime finds them; nothing if it loads the model."""
    opset, newest = facts.opset, runtime.newest_opset
    if opset > newest:
        yield "onnxruntime/opset-too-new", f"opset {opset} is newer than {newest}, the newest that it supports"
    version, newest = facts.ir_version, runtime.newest_ir_version
    if version > newest:
        yield (
            "onnxruntime/ir-version-too-new",
            f"IR version {version} is newer than {newest}, the newest that it supports",
        )
    taken = DATA_TYPES[13 if opset >= 13 else 2]
    if facts.data_type.startswith("COMPLEX") or facts.data_type not in taken:
        yield "onnxruntime/type-not-loaded", f"{facts.data_type} is not accepted at opset {opset}"
    rank = facts.rank
    if rank is not None and not -rank <= facts.axis < rank:
        yield "onnxruntime/inference-fails", f"axis {facts.axis} is out of range for rank {rank}"
        return
    if facts.lengths_elsewhere and static_axis(facts) is not None:
        yield "onnxruntime/lengths-elsewhere", "the data of its lengths is in another file"
    for message in _of_split(facts) if facts.is_split else _of_concat(facts):
        yield "onnxruntime/inference-fails", message
    operator = "Split" if facts.is_split else "Concat"
    if opset < FIRST_WITH_KERNEL[operator]:
        yield "onnxruntime/no-kernel", f"{operator} 1 is not implemented"


def _of_split(facts: RuntimeFacts) -> Iterator[str]:
    if not facts.outputs:
        yield "there are no outputs"
        return
    version = max(version for version in MAX_INPUTS if version <= facts.opset)
    if facts.inputs > MAX_INPUTS[version]:
        yield f"there are {facts.inputs} inputs, but Split {version} allows at most {MAX_INPUTS[version]}"
        return
    size = static_axis(facts)
    if facts.gives_no_lengths and size is not None:
        yield NO_LENGTHS
    if facts.num_outputs is not None and facts.num_outputs < 1 and size is not None:
        yield f"num_outputs is {facts.num_outputs}, but must be at least 1"
    if facts.opset >= 18 and facts.both_given and size is not None:
        yield "both lengths and num_outputs are given"
    if facts.given in (LengthsFrom.ATTRIBUTE, LengthsFrom.CONSTANT) and facts.lengths is not None:
        if size is not None and len(facts.lengths) != facts.outputs:
            yield f"there are {len(facts.lengths)} lengths, but {facts.outputs} outputs"
        if size is not None and sum(facts.lengths) != size:
            yield f"the sum of the lengths is {sum(facts.lengths)}, but the axis has size {size} (in 32 bits)"
    if facts.given is LengthsFrom.EQUAL and size is not None and size % facts.outputs:
        yield f"{size} is not divisible into {facts.outputs} equal parts"


def _of_concat(facts: RuntimeFacts) -> Iterator[str]:
    if facts.outputs != 1 or facts.omitted:
        yield f"there are {facts.outputs} outputs instead of one with a name"
    if facts.opset >= FIRST_WITH_KERNEL["Concat"] and not facts.axis_given:
        yield "the attribute axis is missing"
    known = [shape for shape in facts.shapes if shape is not None]
    rank = facts.rank or 0
    if any(len(shape) != rank for shape in known):
        yield "the inputs' ranks differ"
        return
    for i in range(rank):
        if i != facts.axis_of(rank) and len({shape[i] for shape in known if isinstance(shape[i], int)}) > 1:
            yield f"the inputs' sizes differ in dimension {i}"
