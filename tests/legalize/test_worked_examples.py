"""The examples that the docstrings of legalize work out."""

import math

import dmlsplit as dml
from dmlsplit.legalize import _cut
from dmlsplit.legalize._build import BufferSlice
from dmlsplit.legalize._cut import Box, Cutter
from dmlsplit.legalize._loops import Loops
from dmlsplit.legalize._temporary import TemporaryPacking

SPLIT = dml.OperatorType.SPLIT


def test_a_cut_with_lead_in_steps(monkeypatch):
    monkeypatch.setattr(_cut, "UINT_MAX", 32)
    loops = Loops((44,), ((1,), (1,), (1,)), 0, (11, 33))
    operands = (BufferSlice("input", 0, 44), BufferSlice("output", 0, 12), BufferSlice("output", 1, 36))
    cutter = Cutter(SPLIT, 8, [8], use_temporary=True)
    box = Box(SPLIT, loops, operands)
    assert cutter.operators(box) == 2
    first, second = cutter.boxes(box)
    assert (first.loops.sizes, first.loops.lengths) == ((27,), (11, 16))
    assert [(x.buffer, x.buffer_index, x.offset) for x in first.operands] == [
        ("input", 0, 0),
        ("output", 0, 0),
        ("output", 1, 0),
    ]
    assert (second.loops.sizes, second.loops.lengths) == ((28,), (11, 17))
    assert [(x.buffer, x.buffer_index, x.offset) for x in second.operands] == [
        ("input", 0, 16),
        ("temporary", 0, 0),
        ("output", 1, 16),
    ]


def test_an_input_packed_by_two_copies():
    sizes = (2, 2, 2, 2)
    loops = Loops(sizes, ((50, 20, 7, 2), (8, 4, 2, 1)), 0, (2,))
    packing = TemporaryPacking(32, [1, 2, 3])
    after = list(packing.inputs_packed(Box(SPLIT, loops, (BufferSlice("input", 0, 400), BufferSlice("output", 0, 64)))))
    assert [box.loops.tensor(0)[1] for box in after] == [(20, 10, 7, 2), (8, 4, 2, 1)]
    first, second = (box.loops for box in packing.before)
    assert (first.sizes, first.strides) == ((2, 2, 10), ((50, 20, 1), (20, 10, 1)))
    assert (second.sizes, second.strides) == ((4, 2, 2), ((10, 7, 2), (4, 2, 1)))
    assert not packing.obstacles
    assert math.prod(after[-1].loops.sizes) == 16
