"""docs/life-of-a-model.md: its modules are entered in the order of the page; and the way down to a finding is short."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "life-of-a-model.md").read_text("utf-8")

WALK = """
import importlib, json, pkgutil, sys
from pathlib import Path
import dmlsplit
from dmlsplit.cli import main
root = str(Path(dmlsplit.__file__).parents[1])
for module in pkgutil.walk_packages(dmlsplit.__path__, "dmlsplit."):  # importing is no step
    if not module.name.rpartition(".")[2].startswith("__") and "library" not in module.name:
        importlib.import_module(module.name)
entered = {}

def enter(frame, event, argument):
    file = frame.f_code.co_filename
    if event == "call" and file.startswith(root) and frame.f_code.co_name != "<module>":
        entered.setdefault(Path(file).relative_to(root).as_posix())

sys.setprofile(enter)
status = main(sys.argv[2:])
sys.setprofile(None)
Path(sys.argv[1]).write_text(json.dumps([status, list(entered)]))
"""


DESCENT = """
import json, sys
from pathlib import Path
import dmlsplit
from dmlsplit.cli import main
root = Path(dmlsplit.__file__).parent
deepest = {}

def enter(frame, event, argument):
    code = frame.f_code
    if event != "call" or code.co_name != "diagnostic" or Path(code.co_filename) != root / "rules" / "_model.py":
        return
    way = []
    while (frame := frame.f_back) is not None:
        file = Path(frame.f_code.co_filename)
        if file.is_relative_to(root) and not (way and way[-1] == file):
            way.append(file)
    names = [file.relative_to(root).as_posix() for file in reversed(way)]
    names = names[names.index(f"cli/{sys.argv[2]}.py"):]
    if "mending/advice.py" in names:
        return
    found = deepest.setdefault(str(len(set(names))), names)
    if len(found) < len(names):
        deepest[str(len(set(names)))] = names

sys.setprofile(enter)
for model in sorted(Path("models").iterdir()):
    written = ["-o", "written.onnx"] if sys.argv[2] == "legalize" else []
    main([sys.argv[2], str(model), "--onnxruntime", "1.24.4", *written])
sys.setprofile(None)
Path(sys.argv[1]).write_text(json.dumps(deepest))
"""
"""Notes the modules that are being executed, from the command's on, where a finding is made: by their number, the
longest way. A module counts as often as the way comes back to it. The models that advice is tried on are others."""

MODELS = {
    "a gated unit": (17, "(float[1,4] x) => (float[1,2] y) { a, b = Split<axis=1>(x) g = Sigmoid(b) y = Mul(a, g) }"),
    "an opset without kernels": (
        24,
        "(float[1,4] x) => (float[?,?] a, float[?,?] b) { a, b = Split<axis=1, num_outputs=2>(x) }",
    ),
    "unknown sizes": (17, "(float[n,?] x) => (float[?,?] y) { a, b = Split<axis=1>(x) r = Relu(a) y = Add(r, b) }"),
    "a part without elements": (
        17,
        "(float[1,4] x) => (float[?,?] a, float[?,?] b) <int64[2] l={4,0}> { a, b = Split<axis=1>(x, l) }",
    ),
    "a type that no descriptor has": (17, "(string[2] x) => (string[?] a, string[?] b) { a, b = Split(x) }"),
    "an invalid node": (17, "(float[1,4] x) => (float[?,?] a) { a = Split<axis=5>(x) }"),
}


def section(title):
    """The command of a section, and the modules that its steps begin with."""
    text = re.split(r"^## ", PAGE, flags=re.MULTILINE)
    (found,) = [part for part in text if part.startswith(f"{title}\n")]
    command = re.search(r"^`dmlsplit ([^`]*)`$", found, re.MULTILINE)[1]
    return command.split(), re.findall(r"^\d+\. `(dmlsplit/[^`]*)`", found, re.MULTILINE)


@pytest.mark.parametrize(("title", "status"), [("check", 1), ("legalize", 0)])
def test_the_modules_are_entered_in_the_order_of_the_page(tmp_path, title, status):
    pytest.importorskip("onnx")
    subprocess.run([sys.executable, ROOT / "examples" / "make_glu.py", "glu.onnx"], cwd=tmp_path, check=True)
    arguments, modules = section(title)
    subprocess.run([sys.executable, "-c", WALK, "walk.json", *arguments], cwd=tmp_path, check=True, capture_output=True)
    found, entered = json.loads((tmp_path / "walk.json").read_text())
    assert found == status
    assert [module for module in entered if module in modules] == modules


@pytest.mark.parametrize(("command", "stays", "modules"), [("check", 16, 10), ("legalize", 14, 13)])
def test_the_way_down_to_a_finding_is_short(tmp_path, command, stays, modules):
    onnx = pytest.importorskip("onnx")
    from tests.models import text

    (tmp_path / "models").mkdir()
    for name, (opset, body) in MODELS.items():
        onnx.save(text(body, opset), tmp_path / "models" / f"{name}.onnx")
    subprocess.run([sys.executable, "-c", DESCENT, "ways.json", command], cwd=tmp_path, check=True)
    ways = json.loads((tmp_path / "ways.json").read_text())
    assert max(map(int, ways)) > 6, "findings are made in modules below the command"
    for number, way in ways.items():
        assert int(number) <= modules, way
        assert len(way) <= stays, way


def test_every_module_and_package_is_there():
    named = set(re.findall(r"`(dmlsplit/[\w/.]*)`", PAGE))
    assert all((ROOT / name).exists() for name in named)
    packages = {f"dmlsplit/{path.parent.name}/" for path in (ROOT / "dmlsplit").glob("*/__init__.py")}
    assert packages == {name for name in named if name.endswith("/")}
