"""SARIF: what is written is valid by the schema of version 2.1.0, whatever the files hold."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import dmlsplit as dml
from dmlsplit.checking.results import Note, NotRead
from dmlsplit.descriptors.location import Location
from dmlsplit.report import sarif
from dmlsplit.rules import RULES
from tests.report.html import pages
from tests.report.sarif_schema import faults


def written(items) -> dict:
    return json.loads("".join(sarif.document(items)))


def of_file(*rules, kind=Note, file="m.onnx", steps=(), **place):
    diagnostics = tuple([RULES[rule].diagnostic(Location(steps), "said", **place) for rule in rules])
    return kind(dml.Report(diagnostics, "feature level 4_1", None, None, file))


@pytest.mark.parametrize(
    "items",
    [
        [],
        pages.small(),
        [pages.judged(pages.SUM, name, file=file) for name in (None, pages.HOSTILE) for file in ("a b%ü:c.json", "-")],
        [pages.judged(pages.SUM, file=file) for file in ("/abs/x.json", "../up.json", None, "<b>\x1b[31m\u202e\udc80")],
        [of_file("input/no-split"), of_file("input/malformed", kind=NotRead, line=3), of_file(*RULES, steps=("x",))],
        [pages.judged(desc, level=level) for desc in (pages.GOOD, pages.INT64) for level in ("1_0", "6_4")],
    ],
    ids=["nothing", "all kinds", "names", "paths", "files", "several judges"],
)
def test_valid_by_the_schema(items):
    assert faults(written(items)) == []


def test_the_schema_refuses():
    """Else the test above would prove nothing."""
    log = written([of_file("input/malformed", kind=NotRead, line=3)])
    [result] = log["runs"][0]["results"]
    result["level"] = "fatal"
    result["locations"][0]["physicalLocation"]["region"]["startLine"] = 0
    del result["message"]
    found = " ".join(faults(log))
    assert all(word in found for word in ("fatal", "startLine", "message"))


LINK = "[click](https://example.com)"


@pytest.mark.parametrize("text", [LINK, f"x{LINK}y", rf"\{LINK}", r"[a\](b)", "![x](y)", "[[a](b)](c)"])
def test_a_name_makes_no_link(text):
    """Neither by the specification, where a backslash takes a bracket its meaning, nor for who looks for "](" only."""
    [result] = written([pages.judged(pages.SUM), of_file("input/malformed", steps=(text,))])["runs"][0]["results"][1:]
    message = result["message"]["text"]
    assert "](" not in message
    assert not re.search(r"(?<!\\)(\\\\)*[\[\]]", message)
    assert re.sub(r"\\(.)", r"\1", message) == f"{text}: said"
    assert result["locations"][0]["logicalLocations"][0]["fullyQualifiedName"] == text


def test_brackets_that_make_no_link_stay():
    steps = ("OutputTensors", 1, "Sizes", 2)
    [result] = written([of_file("input/malformed", steps=steps)])["runs"][0]["results"]
    assert result["message"]["text"] == "OutputTensors[1].Sizes[2]: said"


def test_no_rule_has_a_link_in_its_text():
    rules = written([])["runs"][0]["tool"]["driver"]["rules"]
    assert not [rule["id"] for rule in rules if "](" in rule["fullDescription"]["text"]]


NOT_INSTALLED = """
import importlib.metadata, sys

def version(name):
    raise importlib.metadata.PackageNotFoundError(name)

importlib.metadata.version = version
from dmlsplit.cli import main
sys.exit(main(sys.argv[1:]))
"""


def test_from_a_folder_of_sources(tmp_path):
    (tmp_path / "a.json").write_text("[]")
    done = subprocess.run(
        [sys.executable, "-c", NOT_INSTALLED, "check", "a.json", "--format", "sarif"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(dml.__file__).parents[1])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in done.stderr
    assert json.loads(done.stdout)["runs"][0]["tool"]["driver"]["semanticVersion"] == dml.__version__
