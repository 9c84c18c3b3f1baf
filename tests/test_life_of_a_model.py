"""docs/life-of-a-model.md: its modules are entered in the order of the page."""

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


def test_every_module_and_package_is_there():
    named = set(re.findall(r"`(dmlsplit/[\w/.]*)`", PAGE))
    assert all((ROOT / name).exists() for name in named)
    packages = {f"dmlsplit/{path.parent.name}/" for path in (ROOT / "dmlsplit").glob("*/__init__.py")}
    assert packages == {name for name in named if name.endswith("/")}
