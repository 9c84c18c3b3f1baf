"""The ONNX Runtime of Windows ML: what it loads, what it brings, and that it does what its `like` does."""

from __future__ import annotations

import subprocess
import sys
import zipfile

import pytest

import dmlsplit as dml
from dmlsplit.library.sessions import OnnxRuntime, Query
from dmlsplit.targets.windows import WHEEL
from tests.models import model, node, value
from tests.onnxruntime.compare import compare, predicted
from tests.onnxruntime.generator import sample

SEED, COUNT = 78, 200
BUILDS = {version.onnxruntime: version for version in dml.windows_ml_versions()}


@pytest.fixture(scope="module", params=BUILDS)
def build(request, tmp_path_factory):
    """The newest Windows ML with a version of ONNX Runtime, and the folder of its libraries."""
    folder = tmp_path_factory.mktemp("windowsml")
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
    target = ["--platform", "win_amd64", "--python-version", "3.12", "--dest", str(folder)]
    try:
        subprocess.run([*pip, *target, f"{WHEEL}=={request.param}.*"], check=True, capture_output=True, timeout=300)
    except subprocess.SubprocessError as error:
        pytest.skip(f"{WHEEL} {request.param} cannot be fetched: {type(error).__name__}")
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
        for name in ("onnxruntime.dll", "DirectML.dll"):
            (folder / name).write_bytes(wheel.read(f"onnxruntime/capi/{name}"))
    return BUILDS[request.param], folder


def relu(opset, ir_version):
    made = model([node("Relu", ["x"], ["y"])], [value("x", [1, 4])], [value("y", [1, 4])], opset)
    made.ir_version = ir_version
    return Query(made.SerializeToString())


@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.onnxruntime
@pytest.mark.usefixtures("runtime")
def test_it_is_what_the_table_says(build):
    version, folder = build
    wanted = f"{version.directml}+".encode("utf-16le")
    assert wanted in (folder / "DirectML.dll").read_bytes()
    nodes = unknown = 0
    wrong = []
    with OnnxRuntime(folder) as runtime:
        newest, ir_version = version.newest_opset, version.newest_ir_version
        assert [runtime.ask(relu(opset, 8))["session"] for opset in (newest, newest + 1)] == [True, False]
        assert [runtime.ask(relu(21, ir))["session"] for ir in (ir_version, ir_version + 1)] == [True, False]
        for index in range(COUNT):
            asked = sample(SEED, index, 21)
            verdict = compare(runtime.ask(asked.query), predicted(asked, version.runtime))
            nodes += verdict.nodes
            unknown += verdict.unknown
            wrong += [(index, verdict.disagreements)] if verdict.disagreements else []
    assert wrong == []
    assert nodes > COUNT
    assert unknown <= 0.1 * nodes
