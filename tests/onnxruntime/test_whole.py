"""Where four versions of ONNX Runtime were seen to place the nodes of random models, beside what is predicted.

tests/data/onnxruntime/whole.jsonl.xz has the answers. One JSON object a line: `model`, the bytes in hexadecimal;
`answers`, each with `ort`, the versions that gave it; `session`, `error`; `nodes`, the provider of each node that was
left, D or C, without those that optimization made; `copies`, to the CPU and from it; `capture`.
"""

from __future__ import annotations

import json
import lzma
import re
from collections import Counter
from pathlib import Path

import onnx
import pytest

from dmlsplit.onnxruntime.onnx_session import OnnxSessions
from dmlsplit.targets.runtime_versions import find_runtime
from dmlsplit.targets.session_options import SessionOptions
from dmlsplit.verdicts.model_placements import Provider

DATA = Path(__file__).parents[1] / "data" / "onnxruntime" / "whole.jsonl.xz"
PROVIDERS = {"D": Provider.DML, "C": Provider.CPU}
INLINED = re.compile(r"^_inlfunc_[^_]+_|^_if_(then|else)_branch_")
"""What ONNX Runtime puts in front of the name of a node of a function or branch that it inlines."""

NAMED = re.compile(r"node:?\s?'([^']+)'")


@pytest.mark.slow
def test_recorded_placements():
    found: Counter[str] = Counter()
    wrong = []
    with lzma.open(DATA, "rt") as file:
        for number, line in enumerate(file):
            recorded = json.loads(line)
            sessions = OnnxSessions(onnx.ModelProto.FromString(bytes.fromhex(recorded["model"])), lambda *_: None)
            for answer in recorded["answers"]:
                for version in answer["ort"]:
                    wrong += [f"{number} in {version}: {each}" for each in _compared(sessions, version, answer, found)]
    assert wrong == []
    assert found["nodes"] > 14_000
    assert found["unknown"] <= 0.01 * found["nodes"]
    assert found["folded"] <= 0.002 * found["nodes"]
    assert found["session"] >= 0.99 * found["models"]
    assert found["named"] > 0
    assert found["failing"] == found["named"]
    assert found["capture"] >= 0.99 * found["models"]
    assert found["copies"] >= 0.99 * found["created"]


def _compared(sessions, version, answer, found):
    """Counts what agrees; yields the nodes that run elsewhere."""
    prediction = sessions.of(find_runtime(version), SessionOptions()).placement
    found["models"] += 1
    found["created"] += answer["session"]
    found["session"] += prediction.created is answer["session"]
    if failing := NAMED.search(answer.get("error", "")):
        found["named"] += 1
        found["failing"] += (prediction.failure or ("",))[0] == failing[1]
    said = {node.path.split("/")[-1]: node for node in prediction.nodes.values()}
    for name, letter in answer["nodes"].items():
        node = said.get(INLINED.sub("", name))
        if node is None or node.provider is Provider.BOTH:
            continue
        found["nodes"] += 1
        found["unknown"] += node.provider is Provider.UNKNOWN
        found["folded"] += node.provider is Provider.FOLDED
        if node.provider in PROVIDERS.values() and node.provider is not PROVIDERS[letter]:
            yield f"{name} is on {PROVIDERS[letter]}, predicted {node.provider}"
    found["copies"] += answer["session"] and prediction.copies == tuple(answer["copies"])
    found["capture"] += prediction.capture is answer["capture"]
