"""CONTRIBUTING's recipes on a copy of the package: a release, a version of ONNX Runtime, an operator's row, a pass, a
rule, a format and a front end that do not exist."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import dmlsplit
from dmlsplit.targets.runtime_versions import NEWEST

PACKAGE = Path(dmlsplit.__file__).parent

RELEASE = """    _build("9.9.9", WINDOWS, _L.FL_6_4, _W_6_4, "made-up-directml 1.0"),
)
"""

RUNTIME = """    Runtime("9.9.8", (WHEEL,), "1.15.4", 26, 13, like="1.30.0"),
    Runtime("9.9.9", (WHEEL,), "9.9.9", 26, 13, observed=False),
)
"""

OPERATOR = """    _row("ReverseSequence", 106, kind=Kind.NOT_IN_PLACE, followed=True),
"""

PASS = """
from dmlsplit.models.graph import Graph


def made_up_fusion(graph: Graph) -> None:
    for node in graph.nodes:
        before = node.inputs[0].producer
        if node.op_type == "Exp" and before is not None and before.op_type == "Log" and before.only_reader is node:
            graph.read(node, before.inputs)
            node.op_type = "Abs"
            node.absorbed += (before.index,)
            graph.remove(before)
"""

RULE = """

@TensorRule(
    "tensor/made-up",
    "A tensor has 7 dimensions.",
    "Nobody asked for so many.",
    sources=(OURS,),
    severity=Severity.WARNING,
    basis=Basis.OURS,
    needs={Aspect.DESC},
    bad=lambda: eg.split((1,) * 5 + (6, 2), 5),
    good=lambda: eg.split(),
)
def made_up(t: TensorView) -> Findings:
    if t.desc.dimension_count == 7:
        yield Finding("DimensionCount", "is 7", "another number", 7)
"""

FORMAT = """
def chunks(results, targets, shown):
    for result in results:
        yield f"made up: {result.report.ok}\\n"
"""

FRONT_END_RULES = """
from dmlsplit.rules._facts import NodeFacts
from dmlsplit.rules._model import Finding
from dmlsplit.rules._nodes import NodeRule
from dmlsplit.rules._sources import OURS
from dmlsplit.system.records import record


@record
class Cut(NodeFacts):
    size: int = 3
    scope = "madeup"
    specification = "Made-up Cut 1"
    axis_index = 1
    lengths = (2, 4)

    def with_shapes(self, shapes):
        return Cut(shapes[0][0])


@NodeRule("madeup/even", "The size is even.", "It has to be odd.", sources=(OURS,), bad=Cut(4), good=Cut(3))
def even(cut):
    if cut.size % 2 == 0:
        yield Finding("size", "is even", "an odd one", cut.size)
"""

FRONT_END = """
from dmlsplit.descriptors.diagnostics import Report
from dmlsplit.descriptors.enums import TensorDataType
from dmlsplit.formats.element_types import ElementType
from dmlsplit.formats.nodes import ModelNodes, SplitNode
from dmlsplit.rules import judge_node
from dmlsplit.rules.made_up import Cut


def read_model(source, shapes, dims, /, *, allow_paths, require_known_names):
    size = int(open(source).read())
    node = SplitNode(
        name="cut",
        op="Cut",
        version=1,
        input_shape=(size, 6),
        data_type="f32",
        axis=1,
        lengths=(2, 4),
        output_shapes=((size, 2), (size, 4)),
        report=Report(judge_node(Cut(size), "cut"), Cut.specification, None, "Cut"),
        element=ElementType("float32", 4, TensorDataType.FLOAT32),
    )
    return ModelNodes((node,))
"""


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """A folder with the package, changed by the recipes' words."""
    folder = tmp_path_factory.mktemp("copy")
    shutil.copytree(PACKAGE, folder / "dmlsplit", ignore=shutil.ignore_patterns("__pycache__"))

    def changed(module, old, new):
        path = folder / "dmlsplit" / module
        before, found, after = path.read_text("utf-8").partition(old)
        assert found
        path.write_text(before + new + after, "utf-8")

    for module, rows in (("targets/releases.py", RELEASE), ("targets/runtime_versions.py", RUNTIME)):
        changed(module, "\n)\n\nNEWEST", f"\n{rows}\nNEWEST")
    changed("onnxruntime/operator_traits.py", '    _row("Round"', f'{OPERATOR}    _row("Round"')
    passes = "onnxruntime/passes/"
    (folder / "dmlsplit" / passes / "made_up_fusion.py").write_text(PASS, "utf-8")
    changed(
        f"{passes}__init__.py",
        "from dmlsplit.onnxruntime.passes.matmul",
        "from dmlsplit.onnxruntime.passes.made_up_fusion import made_up_fusion\n"
        "from dmlsplit.onnxruntime.passes.matmul",
    )
    changed(
        f"{passes}__init__.py",
        '    _pass(1, relu_clip_fusion, "Clip"),',
        '    _pass(1, relu_clip_fusion, "Clip"),\n    _pass(1, made_up_fusion),',
    )
    with open(folder / "dmlsplit" / "rules" / "tensor.py", "a", encoding="utf-8") as stream:
        stream.write(RULE)
    (folder / "dmlsplit" / "report" / "made_up.py").write_text(FORMAT, "utf-8")
    changed(
        "report/formats.py", '    "text": Format(', '    "madeup": Format("made_up", "chunks"),\n    "text": Format('
    )
    (folder / "dmlsplit" / "formats" / "made_up.py").write_text(FRONT_END, "utf-8")
    changed("checking/front_ends.py", '{".onnx": "onnx"', '{".cut": "made_up", ".onnx": "onnx"')
    (folder / "dmlsplit" / "rules" / "made_up.py").write_text(FRONT_END_RULES, "utf-8")
    changed("rules/__init__.py", '    "onnxruntime":', '    "madeup": ("made_up",),\n    "onnxruntime":')
    (folder / "a.cut").write_text("3")
    (folder / "even.cut").write_text("4")
    tensor = {"DataType": "FLOAT32", "Sizes": [1, 1, 1, 1, 1, 6, 2]}
    members = {"InputTensor": tensor, "OutputCount": 1, "OutputTensors": [tensor], "Axis": 5}
    (folder / "bad.json").write_text(json.dumps({"Type": "DML_OPERATOR_SPLIT", "Desc": members}))
    return folder


@pytest.fixture(scope="module")
def run(copy):
    environment = {**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}

    def run(*arguments, status=0):
        """What a command prints: on standard error, where it fails."""
        command = [sys.executable, "-m", "dmlsplit", *arguments]
        done = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True)
        assert (done.returncode, bool(done.stderr)) == (status, status == 2), done.stderr
        return done.stderr if status == 2 else done.stdout

    return run


@pytest.mark.slow
def test_a_release(run):
    assert "9.9.9" in run("levels", "--releases")
    assert "9.9.9" in json.loads(run("levels", "bad.json", "--releases", "--json"))[0]["releases"]
    assert "(directml 9.9.9, S_OK)" in run("check", "bad.json", "--directml", "9.9.9")
    assert "(directml 9.9.9, S_OK)" in run("check", "bad.json", "--directml", "made-up-directml-1.0")


@pytest.mark.slow
def test_a_version_of_onnx_runtime(run, copy):
    pytest.importorskip("onnx")
    from tests.models import EQUAL, model, value

    path = copy / "m.onnx"
    path.write_bytes(model([EQUAL], [value("x", [2, 6])], opset=13, ir_version=8).SerializeToString())
    known, new = (
        json.loads(run("check", "m.onnx", "--onnxruntime", version, "--format", "jsonl"))["onnxruntime"]
        for version in ("1.30.0", "9.9.8")
    )
    assert (known.pop("version"), new.pop("version")) == ("1.30.0", "9.9.8")
    assert known == new
    assert new["outcome"] == "DML"
    answer = json.loads(run("check", "m.onnx", "--onnxruntime", "9.9.9", "--format", "jsonl"))["onnxruntime"]
    assert (answer["version"], answer["outcome"]) == ("9.9.9", "unknown")
    assert "nothing to legalize" in run("legalize", "m.onnx", "--onnxruntime", "9.9.8")
    assert "9.9.8, 9.9.9" in run("check", "m.onnx", "--onnxruntime", "0.1", status=2)
    assert f"{NEWEST.version} (the default)" in " ".join(run("why", "--help").split())
    assert f"--onnxruntime {NEWEST.version} " in run("check", "m.onnx", "--feature-level", "6_4")


@pytest.mark.slow
def test_an_operator(run, copy):
    """An operator of a part of five nodes is not known to be one of them, nor are the part's flags; with a row it
    is."""
    pytest.importorskip("onnx")
    from dmlsplit.onnxruntime import on_onnxruntime
    from tests.models import text

    body = """(float[2,6] x, int64[2] i) => (float[?,?] o, float[?,?] b)
    { a, b = Split<axis=1>(x) g = ReverseSequence<batch_axis=0, time_axis=1>(a, i) n = Neg(g) e = Abs(n) o = Exp(e) }"""
    (copy / "operator.onnx").write_bytes(text(body).SerializeToString())
    assert on_onnxruntime(copy / "operator.onnx", "1.24.4")[0].answer.compile.flags is None
    checked = run("check", "operator.onnx", "--onnxruntime", "1.24.4", "--format", "jsonl")
    answer = json.loads(checked)["onnxruntime"]
    assert (answer["outcome"], answer["compile"]) == ("DML", {"call": "CompileGraph", "flags": 4})


@pytest.mark.slow
def test_a_pass(run, copy):
    """A part of five nodes, of which the pass makes two one, is compiled with the flags of four."""
    pytest.importorskip("onnx")
    from dmlsplit.descriptors.enums import ExecutionFlags
    from dmlsplit.onnxruntime import on_onnxruntime
    from tests.models import text

    body = """(float[2,6] x) => (float[?,?] o, float[?,?] b)
    { a, b = Split<axis=1>(x) l = Log(a) e = Exp(l) n = Neg(e) o = Abs(n) }"""
    (copy / "pass.onnx").write_bytes(text(body).SerializeToString())
    steps = json.loads(run("explain", "pass.onnx", "l", "--onnxruntime", "1.24.4", "--format", "json"))["steps"]
    changes = {step["pass"]: step["fate"] for step in steps}
    assert changes.pop("made_up_fusion") == "fused"
    assert set(changes.values()) == {"unchanged"}
    checked = run("check", "pass.onnx", "--onnxruntime", "1.24.4", "--format", "jsonl")
    assert json.loads(checked)["onnxruntime"]["compile"] == {"call": "CompileGraph", "flags": 0}
    assert on_onnxruntime(copy / "pass.onnx", "1.24.4")[0].answer.compile.flags == ExecutionFlags.DESCRIPTORS_VOLATILE


@pytest.mark.slow
def test_a_rule(run):
    assert "tensor/made-up  warning  ours  A tensor has 7 dimensions.\n" in run("rule")
    assert "Nobody asked for so many." in run("rule", "tensor/made-up")
    assert "warning[tensor/made-up] 2 times at 1:1: is 7\n" in run("check", "bad.json")
    log = json.loads(run("check", "bad.json", "--format", "sarif"))
    assert "tensor/made-up" in [rule["id"] for rule in log["runs"][0]["tool"]["driver"]["rules"]]


@pytest.mark.slow
def test_a_format(run):
    assert "madeup" in run("check", "--help")
    assert run("check", "bad.json", "--format", "madeup") == "made up: True\n"


@pytest.mark.slow
def test_a_front_end(run):
    found = run("check", "a.cut", "--directml", "1.15.4")
    assert "Cut 1" in found
    assert "1 operator: 1 ok" in found
    assert "taken by" in run("levels", "a.cut")
    assert "FLOAT32" in run("legalize", "a.cut", "--feature-level", "2_1")
    assert "error[madeup/even] cut.size: is even" in run("check", "even.cut", status=1)
    assert "It has to be odd." in run("rule", "madeup/even")
