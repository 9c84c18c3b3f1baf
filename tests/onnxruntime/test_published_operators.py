"""All operators of the models that packages ship: derived, beside those that four versions compiled for them."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from dmlsplit.formats import any_operator_json
from dmlsplit.onnxruntime.described import operators_in
from dmlsplit.onnxruntime.onnx_session import OnnxSessions
from dmlsplit.targets.runtime_versions import find_runtime
from dmlsplit.targets.session_options import SessionOptions
from tests.onnxruntime.kernels import OTHERS, as_json, without_flags
from tests.onnxruntime.published_operators import PUBLISHED, judged_model, recorded
from tests.packaged import model_of

LARGEST_SHARE = 0.05
"""Of what was compiled, that is not derived."""


@pytest.mark.slow
def test_the_operators_of_published_models(pytestconfig, tmp_path_factory):
    versions, answers = recorded()
    found = {version: Counter() for version in versions}
    wrong, reasons = [], Counter()
    for published, of_versions in zip(PUBLISHED, answers, strict=True):
        path = model_of(published.row, pytestconfig, tmp_path_factory)
        sessions = OnnxSessions(judged_model(path, published.sizes), lambda *_: None)
        for version, operators in zip(versions, of_versions, strict=True):
            if operators is None:
                continue
            expected = {_key(operator): count for operator, count in operators if operator["Type"] not in OTHERS}
            derived, left = _derived(sessions, version)
            reasons += left
            wrong += [(published.package, version, each) for each in derived if each not in expected]
            found[version]["equal"] += sum(count for each, count in derived.items() if each in expected)
            found[version]["compiled"] += sum(expected.values())
            found[version]["not derived"] += sum(n for each, n in expected.items() if each not in derived)
    assert wrong == []
    for counts in found.values():
        assert counts["compiled"] > 4000
        assert counts["equal"] > 4000
        assert counts["not derived"] <= LARGEST_SHARE * counts["compiled"], reasons.most_common(5)


def _derived(sessions, version):
    """The derived operators with how often, and why others are not derived."""
    found, left = Counter(), Counter()
    for graph in sessions.of(find_runtime(version), SessionOptions()).graphs:
        for each in operators_in(graph):
            found.update(json.dumps(as_json(desc), sort_keys=True) for desc in each.operators)
            left[each.why] += bool(each.why)
    return found, left


def _key(operator):
    read = any_operator_json.loads(json.dumps(operator))
    return json.dumps(without_flags(json.loads(any_operator_json.dumps(read))), sort_keys=True)
