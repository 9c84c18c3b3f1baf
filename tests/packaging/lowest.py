"""The lower bounds of pyproject.toml: the package, and each extra, with the oldest versions that it says it takes.

    python tests/packaging/lowest.py                     everything, as `.ci/run full` does
    python tests/packaging/lowest.py onnx distributed    the tests of these extras; none: the package without extras

Needs an index to install from. The tests run outside of the checkout, on the installed package.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
TESTS = {
    "": ["test_validation.py", "test_execution.py", "test_arrays.py", "test_foreign.py", "test_foreign_liars.py",
         "test_integers.py", "cli/test_split.py", "cli/test_commands.py"],
    "openvino": ["formats/test_openvino.py"],
    "html": ["cli/test_check.py", "cli/test_check_html.py"],
    "onnx": ["formats/test_onnx.py", "formats/test_onnx_external.py", "cli/test_onnxruntime.py",
             "cli/test_model_files.py", "cli/test_mended_page.py", "cli/test_written_back.py",
             "formats/mending/test_cures.py", "formats/mending/test_bytes.py", "test_foreign.py"],
    "distributed": ["test_distributed.py"],
}  # fmt: skip
"""Extra -> the tests that need it, and those above it; those of "" need none."""
SLOW = {"distributed"}
"""Extras whose tests are all slow."""
FOR_TESTS = ("pytest", "hypothesis", "jsonschema", "pyyaml")


def bounds(requirements: list[str]) -> list[str]:
    """`name==version` of each `name>=version`."""
    return [re.sub(r">=", "==", word) for word in requirements if ">=" in word]


def run(*command: object, **options: object) -> None:
    subprocess.run([str(word) for word in command], check=True, **options)  # type: ignore[call-overload]


def main(stages: list[str]) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    assert TESTS.keys() - {""} == extras.keys() - {"test", "bench", "recipes", "docs"}
    tools = [word for word in extras["test"] if re.split("[>=]", word)[0] in FOR_TESTS]
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        run(sys.executable, "-m", "venv", work / "environment")
        python = work / "environment" / ("Scripts" if sys.platform == "win32" else "bin") / "python"
        copied = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
        for name in copied.decode().split("\0")[:-1]:
            if not name.startswith(("dmlsplit/", ".")):
                (work / "there" / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / name, work / "there" / name)
        lowest = bounds(project["dependencies"])
        for extra, tests in TESTS.items():
            lowest += bounds(extras[extra]) if extra else []
            if stages and (extra or "none") not in stages:
                continue
            run(python, "-m", "pip", "install", "--quiet", ROOT, *lowest, *tools)
            environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
            names = [f"tests/{name}" for name in tests]
            print(f"{extra or 'no extra'}: {' '.join(lowest)}", flush=True)
            chosen = ["-m", "slow"] if extra in SLOW else []
            command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *chosen, *names]
            run(*command, cwd=work / "there", env=environment)
    print(f"lower bounds hold: {' '.join(stages) or 'all'}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [extra or "none" for extra in TESTS]
    parser.add_argument("stages", nargs="*", metavar="EXTRA", help=", ".join(names))
    stages = parser.parse_args().stages
    if unknown := sorted(set(stages).difference(names)):  # "choices" refuses no word at all in some releases of Python
        parser.error(f"no such extra: {', '.join(unknown)}")
    main(stages)
