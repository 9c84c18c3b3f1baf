"""Proof of a legalisation: by verdict, by the bytes it may touch, and by the reference's result on the original."""

from __future__ import annotations

import random

import dmlsplit as dml
from dmlsplit.descriptors.layout import ELEMENT_BITS
from dmlsplit.legalize import Legalization
from dmlsplit.native import reference

SENTINEL = 0xA5


def tensors(d):
    """The tensors that a descriptor's count covers: inputs, outputs."""
    if isinstance(d, dml.SplitOperatorDesc):
        return [d.input_tensor], list(d.output_tensors[: d.output_count])
    return list(d.input_tensors[: d.input_count]), [d.output_tensor]


def rounded(size):
    return (size + 3) // 4 * 4


def prove(d, **target) -> Legalization:
    """Legalises a descriptor without faults and holds the result against everything that it promises."""
    found = dml.legalize(d, **target)
    if dml.validate(d, **target).ok:
        assert found.operators == (d,)
        assert not found.steps
    if not found.ok:
        assert found.report.diagnostics[-1].rule == "legalize/no-rewriting"
        return found
    check_regions(found, **target)
    if ELEMENT_BITS[tensors(d)[0][0].data_type] >= 8:
        check_bytes(found)
    return found


def check_regions(found, **target):
    inputs, outputs = tensors(found.desc)
    totals = {
        "input": [rounded(tensor.total_tensor_size_in_bytes) for tensor in inputs],
        "output": [rounded(tensor.total_tensor_size_in_bytes) for tensor in outputs],
        "temporary": [found.temporary_bytes],
    }
    promises = {
        "input": [tensor.guaranteed_base_offset_alignment for tensor in inputs],
        "output": [tensor.guaranteed_base_offset_alignment for tensor in outputs],
        "temporary": [256],
    }
    assert len(found.operators) == len(found.bindings) == len(found.output_map)
    for operator, regions, parts in zip(found.operators, found.bindings, found.output_map, strict=True):
        assert dml.validate(operator, **target).ok
        ins, outs = tensors(operator)
        assert len(regions) == len(ins) + len(outs)
        for tensor, region in zip([*ins, *outs], regions, strict=True):
            total = tensor.total_tensor_size_in_bytes
            assert total <= region.size
            assert region.offset + region.size <= totals[region.buffer][region.index]
            alignment = max(16, promises[region.buffer][region.index])
            if tensor.guaranteed_base_offset_alignment > 16:
                assert alignment % tensor.guaranteed_base_offset_alignment == 0
                assert region.offset % tensor.guaranteed_base_offset_alignment == 0
            assert region.offset % 16 == 0
        is_split = isinstance(found.desc, dml.SplitOperatorDesc)
        named, kind = (regions[len(ins) :], "output") if is_split else (regions[: len(ins)], "input")
        assert parts == tuple(region.index if region.buffer == kind else -1 for region in named)


def check_bytes(found):
    """Caller's buffers with sentinels in every gap: the outputs are those of the reference, byte for byte."""
    d = found.desc
    inputs, outputs = tensors(d)
    rng = random.Random(1)
    sources = [bytearray(rng.randbytes(tensor.total_tensor_size_in_bytes)) for tensor in inputs]
    made = [bytearray([SENTINEL]) * tensor.total_tensor_size_in_bytes for tensor in outputs]
    expected = [bytearray(buffer) for buffer in made]
    if isinstance(d, dml.SplitOperatorDesc):
        reference.split(d, reference.Memory(sources[0]), [reference.Memory(buffer) for buffer in expected])
        found.dispatch(sources[0], made)
    else:
        reference.join(d, [reference.Memory(buffer) for buffer in sources], reference.Memory(expected[0]))
        found.dispatch(sources, made[0])
    assert made == expected
