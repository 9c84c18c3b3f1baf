"""Every cure was right in the executions that are named for it, with every DirectML that it is for."""

from __future__ import annotations

import pytest

from dmlsplit.onnxruntime.cures import CURES, cures_of
from dmlsplit.rules.graph_faults import FaultKind
from tests.formats.onnx_graphs.recorded import executions, lines

CLASSES = {
    FaultKind.GATE: "A",
    FaultKind.PRODUCT: "A2",
    FaultKind.REPEATED: "B",
    FaultKind.OVERWRITTEN: "C",
    FaultKind.REFUSED: "D",
}
FIRST_WITH_CONSTANTS = "1.13.1"
RECORDED = {
    (FaultKind.GATE, "two-slices"): ("slices",),
    (FaultKind.GATE, "one-slice"): ("slice_a", "slice_b"),
    (FaultKind.GATE, "reshape-part"): ("reshape_a", "reshape_b"),
    (FaultKind.GATE, "max-part"): ("max_a", "max_b"),
    (FaultKind.GATE, "clip-sigmoid"): ("hardclip", "clip_s"),
    (FaultKind.GATE, "sigmoid-output"): ("sig_out",),
    (FaultKind.GATE, "tanh-form"): ("tanhform",),
    (FaultKind.PRODUCT, "reshape-factor"): ("reshape_p",),
    (FaultKind.PRODUCT, "max-factor"): ("max_p", "max_x"),
    (FaultKind.PRODUCT, "clip-sigmoid"): ("clip_s",),
    (FaultKind.PRODUCT, "regroup"): ("Mul(y, Mul(x, Sigmoid(x)))",),
    (FaultKind.PRODUCT, "factor-output"): ("p_out",),
    (FaultKind.REPEATED, "max-branch"): ("Max(v,v)",),
    (FaultKind.REPEATED, "tile"): ("Tile",),
    (FaultKind.OVERWRITTEN, "operator-first"): ("unfuse_each",),
    (FaultKind.OVERWRITTEN, "max-input"): ("max_j",),
    (FaultKind.OVERWRITTEN, "concat-output"): ("j_out",),
    (FaultKind.OVERWRITTEN, "second-reader"): ("j_used",),
    (FaultKind.OVERWRITTEN, "cut-and-join"): ("catpad",),
    (FaultKind.OVERWRITTEN, "rename"): ("rename",),
    (FaultKind.REFUSED, "operator-first"): ("dead_split", "dead_relu"),
    (FaultKind.REFUSED, "gather"): ("gather",),
    (FaultKind.REFUSED, "negative-pad"): ("padneg",),
    (FaultKind.REFUSED, "max-part"): ("max",),
    (FaultKind.REFUSED, "split-first"): ("split_first", "slice_first"),
    (FaultKind.REFUSED, "part-output"): ("v_out", "a_out", "other_out"),
    (FaultKind.REFUSED, "slice"): ("slice",),
}
"""The names of the executions that show each cure."""


def key(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]


@pytest.mark.parametrize(
    "cure", [cure for cure in CURES if cure.fault in CLASSES], ids=lambda cure: f"{cure.fault}-{cure.name}"
)
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
    names = [cure.name for cure in cures_of(FaultKind.REFUSED, "1.12.1")]
    assert "slice" in names
    assert "slice" not in [cure.name for cure in cures_of(FaultKind.REFUSED, "1.13.1")]
    assert "slice" not in [cure.name for cure in cures_of(FaultKind.REFUSED)]
    with pytest.raises(ValueError, match="unknown DirectML release"):
        cures_of(FaultKind.GATE, "9.9")


def test_every_fault_that_has_cures_has_one_that_changes_no_bit_and_adds_no_output():
    for fault in CLASSES:
        assert any(cure.bit_exact and not cure.adds_output for cure in cures_of(fault))
