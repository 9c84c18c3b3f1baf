"""The operator descriptors that ONNX Runtime's DirectML kernels of Split and Concat submit.

Sizes get leading 1s up to rank 4, and the axis moves accordingly; strides are packed. A size is taken modulo 2^32,
since descriptors hold it as a UINT. Source: DmlOperatorSplit.cpp, DmlOperatorConcat.cpp and TensorDesc.cpp of ONNX
Runtime; observed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dmlsplit.descriptors.descs import BufferTensorDesc, JoinOperatorDesc, OperatorDesc, SplitOperatorDesc, TensorDesc
from dmlsplit.descriptors.enums import TensorDataType, TensorFlags, TensorType
from dmlsplit.onnxruntime.facts import DIRECTML_TYPES, MIN_RANK, RuntimeFacts, Sizes


def operator_of(facts: RuntimeFacts, sizes: Sequence[Sizes], lengths: Sizes) -> OperatorDesc:
    """Returns the descriptor that a kernel submits: a SPLIT of the first of `sizes` into `lengths`, or a JOIN of
    tensors of all of `sizes`."""
    rank = len(sizes[0])
    axis = facts.axis_of(rank)
    padded = axis + max(MIN_RANK - rank, 0)
    tensors = [_tensor(facts, shape) for shape in sizes]
    if facts.is_split:
        parts = [
            TensorDesc(TensorType.INVALID, None)
            if i in facts.omitted
            else _tensor(facts, (*sizes[0][:axis], length, *sizes[0][axis + 1 :]))
            for i, length in enumerate(lengths)
        ]
        return SplitOperatorDesc(tensors[0], parts, padded)
    total = sum(shape[axis] for shape in sizes)
    whole = _tensor(facts, (*sizes[0][:axis], total, *sizes[0][axis + 1 :]))
    return JoinOperatorDesc(tensors, whole, padded)


def owned_by_directml(desc: OperatorDesc, owned: Sequence[bool]) -> OperatorDesc:
    """Returns the descriptor with the flag OWNED_BY_DML on the inputs that DirectML owns; `owned` has one flag for each
    input."""
    flags = [TensorFlags.OWNED_BY_DML if own else TensorFlags.NONE for own in owned]
    if isinstance(desc, SplitOperatorDesc):
        return replace(desc, input_tensor=_flagged(desc.input_tensor, flags[0]))
    assert desc.input_tensors is not None
    inputs = [_flagged(tensor, flag) for tensor, flag in zip(desc.input_tensors, flags, strict=True)]
    return replace(desc, input_tensors=tuple(inputs))


def _tensor(facts: RuntimeFacts, sizes: Sizes) -> TensorDesc:
    padded = (*(1,) * (MIN_RANK - len(sizes)), *sizes)
    data_type = TensorDataType[DIRECTML_TYPES.get(facts.data_type, facts.data_type)]
    return TensorDesc(TensorType.BUFFER, BufferTensorDesc(data_type, [size % 2**32 for size in padded]))


def _flagged(tensor: TensorDesc | None, flags: TensorFlags) -> TensorDesc:
    assert tensor is not None
    assert tensor.desc is not None
    return TensorDesc(tensor.type, replace(tensor.desc, flags=flags))
