"""Every cure was right in the executions that are named for it, with every DirectML that it is for."""

from __future__ import annotations

import pytest

from dmlsplit.onnxruntime.cures import CURES, Fault, cures_of
from tests.formats.onnx_graphs.recorded import executions, lines

CLASSES = {
    Fault.GATE: "A",
    Fault.PRODUCT: "A2",
    Fault.REPEATED: "B",
    Fault.OVERWRITTEN: "C",
    Fault.REFUSED: "D",
}
FIRST_WITH_CONSTANTS = "1.13.1"
RECORDED = {
    (Fault.GATE, "two-slices"): ("slices",),
    (Fault.GATE, "one-slice"): ("slice_a", "slice_b"),
    (Fault.GATE, "reshape-part"): ("reshape_a", "reshape_b"),
    (Fault.GATE, "max-part"): ("max_a", "max_b"),
    (Fault.GATE, "clip-sigmoid"): ("hardclip", "clip_s"),
    (Fault.GATE, "sigmoid-output"): ("sig_out",),
    (Fault.GATE, "tanh-form"): ("tanhform",),
    (Fault.PRODUCT, "reshape-factor"): ("reshape_p",),
    (Fault.PRODUCT, "max-factor"): ("max_p", "max_x"),
    (Fault.PRODUCT, "clip-sigmoid"): ("clip_s",),
    (Fault.PRODUCT, "regroup"): ("Mul(y, Mul(x, Sigmoid(x)))",),
    (Fault.PRODUCT, "factor-output"): ("p_out",),
    (Fault.REPEATED, "max-branch"): ("Max(v,v)",),
    (Fault.REPEATED, "tile"): ("Tile",),
    (Fault.OVERWRITTEN, "operator-first"): ("unfuse_each",),
    (Fault.OVERWRITTEN, "max-input"): ("max_j",),
    (Fault.OVERWRITTEN, "concat-output"): ("j_out",),
    (Fault.OVERWRITTEN, "second-reader"): ("j_used",),
    (Fault.OVERWRITTEN, "cut-and-join"): ("catpad",),
    (Fault.OVERWRITTEN, "rename"): ("rename",),
    (Fault.REFUSED, "operator-first"): ("dead_split", "dead_relu"),
    (Fault.REFUSED, "gather"): ("gather",),
    (Fault.REFUSED, "negative-pad"): ("padneg",),
    (Fault.REFUSED, "max-part"): ("max",),
    (Fault.REFUSED, "split-first"): ("split_first", "slice_first"),
    (Fault.REFUSED, "part-output"): ("v_out", "a_out", "other_out"),
    (Fault.REFUSED, "slice"): ("slice",),
}
"""The names of the executions that show each cure."""


def key(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]


@pytest.mark.parametrize("cure", CURES, ids=lambda cure: f"{cure.fault}-{cure.name}")
def test_a_cure_was_right_wherever_it_was_executed(cure):
    names = set(RECORDED[cure.fault, cure.name])
    found = [
        (line, execution)
        for line in lines()
        if line["class"] == CLASSES[cure.fault] and (line.get("cure") in names or line["model"] in names)
        for execution in executions(line)
        if execution.fused and cure in cures_of(cure.fault, execution.directml)
    ]
    assert 99 in {execution.level for _, execution in found}
    for line, execution in found:
        # Constants are nodes of their own for DirectML that does not take such nodes: that pair does not come together.
        refused = any("CONSTANT" in graph for graph in execution.operators or ())
        if not (refused and key(execution.directml) < key(FIRST_WITH_CONSTANTS)):
            assert execution.verdict == "right", (line["model"], execution)


def test_cures_by_release():
    names = [cure.name for cure in cures_of(Fault.REFUSED, "1.12.1")]
    assert "slice" in names
    assert "slice" not in [cure.name for cure in cures_of(Fault.REFUSED, "1.13.1")]
    assert "slice" not in [cure.name for cure in cures_of(Fault.REFUSED)]
    with pytest.raises(ValueError, match="unknown DirectML release"):
        cures_of(Fault.GATE, "9.9")


def test_every_fault_that_has_cures_has_one_that_changes_no_bit_and_adds_no_output():
    for fault in CLASSES:
        assert any(cure.bit_exact and not cure.adds_output for cure in cures_of(fault))
