"""Which nodes that compute with sizes are left on the CPU. Source: GetCpuPreferredNodes of fallback_cpu_capability.cc;
asked of all versions."""

from __future__ import annotations

import pytest

from dmlsplit.onnxruntime.onnx_session import OnnxSessions
from dmlsplit.targets.runtime_versions import find_runtime
from dmlsplit.targets.session_options import SessionOptions
from tests import models
from tests.onnxruntime.placements import placed, where


@pytest.mark.parametrize(
    ("clip", "provider"), [("Clip(s, m)", "CPU"), ("Clip(s, , m)", "DML"), ("Clip(s, m, m)", "CPU")]
)
def test_a_node_that_omits_an_input_before_others_is_not_left_on_the_cpu(clip, provider):
    found = placed(f"(float[N,4] x) => (int64[2] y) <int64 m = {{7}}> {{ s = Shape(x) c = {clip} y = Mul(c, c) }}")
    assert where(found) == {"s": "DML", "c": provider, "y": provider}
    assert found.copies == ((0, 0) if provider == "CPU" else (0, 1))


RESIZED = """(float[1,1,N,M] x) => (float[?,?,?,?] y) {{
    s = Shape(x) r = Resize<mode="{}">(x, , , s) y = Relu(r)
}}"""


@pytest.mark.parametrize(
    ("mode", "opset", "version", "places"),
    [
        ("linear", 13, "1.18.0", {"s": "DML", "r": "DML", "y": "DML"}),
        ("cubic", 13, "1.18.0", {"s": "DML", "r": "CPU", "y": "DML"}),
        ("cubic", 18, "1.18.0", {"s": "DML", "r": "CPU", "y": "CPU"}),  # without a kernel of DirectML
        ("cubic", 18, "1.24.4", {"s": "DML", "r": "CPU", "y": "DML"}),
    ],
)
def test_what_directml_refuses_by_attributes_does_not_keep_its_readers_on_the_cpu(mode, opset, version, places):
    assert where(placed(RESIZED.format(mode), version, opset)) == places


def test_what_one_version_refuses_by_attributes_and_another_by_types():
    sessions = OnnxSessions(models.text(RESIZED.format("cubic"), 18), lambda *_: None)
    for version, provider in (("1.18.0", "CPU"), ("1.24.4", "DML"), ("1.18.0", "CPU")):
        assert where(sessions.of(find_runtime(version), SessionOptions()).placement)["y"] == provider
