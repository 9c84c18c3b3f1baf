"""DirectML's debug layer says why it refuses: that reason is among ours, on the same tensor, with the same figures."""

import pytest

import dmlsplit as dml
from dmlsplit.descriptors.diagnostics import Severity
from dmlsplit.rules import RULES
from dmlsplit.rules._debug_layer import MESSAGES
from tests.oracle import operator, reason_to_leave_out, records
from tests.reasons import RELEASE, is_among, reasons


@pytest.fixture(scope="module")
def said():
    """(message, the record of the descriptor that it was said of)."""
    recorded = {
        name: {record["id"]: record for record in records(name)[1:]} for name in ("random", "boundary", "systematic")
    }
    return [
        (record["message"], recorded[record["set"]][record["id"]])
        for record in records("debug-messages")
        if record["message"] is not None
    ]


def test_every_reason_is_among_ours(said):
    missed, compared = [], 0
    for message, record in said:
        if reason_to_leave_out(record):
            continue
        compared += 1
        report = dml.validate(operator(record["desc"]), directml=RELEASE)
        if not is_among(message, report):
            missed.append((message, str(report)))
    assert missed == []
    assert compared > 0.99 * len(said) > 2000


def test_every_message_was_said_and_is_of_a_rule(said):
    assert set().union(*(reasons(message) for message, _ in said)) == set(MESSAGES)
    assert all(RULES[rule].severity is Severity.ERROR for rule in MESSAGES)


@pytest.mark.parametrize(
    "wrong",
    [
        "The TotalTensorSizeInBytes of '47' for tensor 'Output[0]' does not meet the minimum size required for this ",
        "The TotalTensorSizeInBytes of '46' for tensor 'Input' does not meet the minimum size required for this ",
    ],
)
def test_another_tensor_or_figure_is_another_reason(wrong):
    whole = dml.BufferTensorDesc(1, (1, 1, 6, 2), total_tensor_size_in_bytes=47)
    report = dml.validate(dml.SplitOperatorDesc.from_lengths(whole, 2, (6,)), directml=RELEASE)
    template = MESSAGES["tensor/total-size-too-small"][0]
    right = template.format(actual=47, tensor="Input", expected=48)
    assert is_among(right, report)
    assert not is_among(wrong + right.partition("required for this ")[2], report)
    assert not is_among(right.replace("48 bytes", "44 bytes"), report)


def copy(**members):
    whole = dml.BufferTensorDesc(1, (1, 1, 3, 1))
    return dml.SplitOperatorDesc(whole, [dml.BufferTensorDesc(1, (1, 1, 3, 1), **members)], 2)


def rules(desc, release="1.10.1"):
    return [d.rule for d in dml.validate(desc, directml=release).diagnostics]


def test_a_span_that_wraps_hides_no_total():
    wrapping = {"strides": (0, 0, 2**31, 0)}
    too_large = copy(**wrapping, total_tensor_size_in_bytes=2**35)
    assert rules(too_large) == ["tensor/output-span-wraps", "tensor/total-size-too-large"]
    assert rules(copy(**wrapping, total_tensor_size_in_bytes=12)) == ["tensor/output-span-wraps"]


def test_a_size_of_0_hides_no_mismatch():
    whole, part = dml.BufferTensorDesc(1, (1, 1, 3, 2)), dml.BufferTensorDesc(1, (1, 1, 3, 0))
    assert rules(dml.JoinOperatorDesc([part], whole, 2)) == ["tensor/size-zero", "join/size-mismatch"]
    assert rules(dml.JoinOperatorDesc([part], whole, 3)) == ["join/axis-sizes-sum", "tensor/size-zero"]


def test_no_dimensions_hide_no_axis():
    whole = dml.BufferTensorDesc(1, (), total_tensor_size_in_bytes=4)
    found = dml.validate(dml.SplitOperatorDesc(whole, [whole], 2), directml=RELEASE).diagnostics
    assert [(d.rule, d.expected) for d in found if d.path == "Axis"] == [("split/axis-out-of-range", "a dimension")]


def test_another_number_of_dimensions_hides_no_size_of_a_join():
    whole, part = dml.BufferTensorDesc(1, (3, 1, 1)), dml.BufferTensorDesc(1, (3, 16))
    assert rules(dml.JoinOperatorDesc([part], whole, 0)) == ["join/dimension-count-mismatch", "join/size-mismatch"]
