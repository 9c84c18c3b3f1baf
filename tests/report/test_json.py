from __future__ import annotations

import json

import pytest

import dmlsplit as dml
from dmlsplit.checking.results import Judged
from dmlsplit.report import json as report_json

X = dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, (1, 1, 6, 2))
REPORTS = [
    dml.validate(dml.SplitOperatorDesc.from_lengths(X, 2, lengths), feature_level="6_4")
    for lengths in ((2, 1, 3), (2, 1, 2), (6,))
]


@pytest.mark.parametrize("count", [0, 1, 3])
def test_document_and_lines(count):
    reports = REPORTS[:count]
    expected = [report.to_dict() for report in reports]
    results = list(map(Judged, reports))
    assert json.loads("".join(report_json.document(results))) == expected
    lines = "".join(report_json.lines(results)).splitlines()
    assert [json.loads(line) for line in lines] == expected


def test_lone_surrogates_survive():
    report = dml.Report((), "x", None, None, "a\udcff\x1b\u202e.json")
    text = report_json.answer(report)
    assert text.isascii()
    assert text.isprintable()
    assert json.loads(text)["file"] == report.file
