"""ONNX Runtime over the DirectML.dll of a Windows: what is predicted of models is what the DLL's version does there."""

from __future__ import annotations

import shutil

import onnx
import pytest

import dmlsplit as dml
from dmlsplit.library.catalogue import WINDOWS, directml_builds, find_build
from dmlsplit.library.fetching import add
from dmlsplit.library.sessions import OnnxRuntime
from dmlsplit.targets.windows import find_windows, over_windows
from tests.onnxruntime.compare import compare, predicted
from tests.onnxruntime.generator import sample
from tests.onnxruntime.models import DEFAULT

SEED, COUNT = 30, 150


@pytest.mark.slow
@pytest.mark.onnxruntime
@pytest.mark.parametrize("name", ["11-22H2", "11-24H2"])
def test_the_prediction_is_what_the_version_does_over_the_dll(name, runtime, tmp_path):
    """The DLL of the package with the same version lies beside the onnxruntime.dll of another version."""
    windows = find_windows(name)
    runtime_over = over_windows(dml.find_runtime(DEFAULT), windows)
    shipped = next(
        build for build in directml_builds() if build.platform is WINDOWS and build.release == windows.release
    )
    shutil.copy(add(find_build(f"onnxruntime-{DEFAULT}")) / "onnxruntime.dll", tmp_path)
    shutil.copy(add(shipped) / "DirectML.dll", tmp_path)
    nodes = unknown = 0
    wrong = []
    with OnnxRuntime(tmp_path) as mixed:
        for index in range(COUNT):
            asked = sample(SEED, index, 21)
            verdict = compare(mixed.ask(asked.query), predicted(asked, runtime_over))
            nodes += verdict.nodes
            unknown += verdict.unknown
            if verdict.disagreements:
                path = tmp_path / "model.onnx"
                onnx.save(asked.model, path)
                reports = list(dml.check_files([path], onnxruntime=runtime_over))
                # Constants are nodes of graphs there, which builds of older levels refuse: a finding about the graph.
                if not any(each.rule == "graph/constant-node" for report in reports for each in report.diagnostics):
                    wrong.append((index, verdict.disagreements))
    assert wrong == []
    assert nodes > COUNT
    assert unknown <= 0.1 * nodes
