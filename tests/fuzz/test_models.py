"""The fuzzer finds faults that are planted in the reader, says with which seed, and finds them there again."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("onnx")
pytest.importorskip("defusedxml")

from tests.fuzz import examination, models

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="it makes pipes and sets limits, as POSIX has them")

PLANT = """
import os, time
import dmlsplit.formats.openvino as front_end
from dmlsplit.system.errors import InputError
from tests.formats.split_nodes import splits

read = front_end.read_model

def read_model(path, *arguments, **options):
    found = read(path, *arguments, **options)
    if len(splits(found)) == 3:
        {fault}
    return found

front_end.read_model = read_model
"""

FAULTS = {
    "an exception": ("{}['x']", "KeyError: 'x'"),
    "recursion": ("read_model(path)", "RecursionError"),
    "memory": ("bytearray(1 << 30)", "MemoryError"),
    "a crash": ("os.abort()", r"the process ended \(signal 6\)"),
    "an end": ("os._exit(3)", r"the process ended \(status 3\)"),
    "no end": ("time.sleep(600)", "it was not done within 2 seconds"),
    "a file elsewhere": ("open('/etc/hosts').close()", "opened: /etc/hosts"),
    "a link": ("open(os.path.join(os.path.dirname(path), 'link.bin')).close()", "opened: .*link.bin"),
    "another folder": ("if os.path.exists('model.bin'): raise InputError('no')", "the current directory decides"),
    "a warning": ("import warnings; warnings.warn('careful')", "warned: careful"),
    "a file written": ("open(path + '.log', 'w').close()", "model.xml.log for writing"),
    "a program": ("os.system('true')", "os.system"),
    "a long line": ("raise InputError('n' * 3000)", "a line of 3[0-9]{3} characters"),
}
QUICK = ("an exception", "a crash", "a file elsewhere")
"""One that the reading process says, one that the other notices, one that the audit of events finds."""


def fuzz(tmp_path, *arguments, plant=None):
    command = [sys.executable, models.__file__, *arguments]
    if plant is not None:
        (tmp_path / "plant.py").write_text(PLANT.replace("{fault}", plant))
        command.append(f"--plant={tmp_path / 'plant.py'}")
    environment = {"TMPDIR": str(tmp_path), "PATH": "/usr/bin:/bin"}
    return subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300, check=False
    )


def failures(found):
    """Seed, reason and folder of each failure that was printed."""
    return re.findall(r"^seed ([0-9]+): (.*?)\n  kept in ([^\n]*)$", found.stdout, re.M | re.S)


@pytest.mark.parametrize(
    ("plant", "said"),
    [pytest.param(*FAULTS[name], id=name, marks=[] if name in QUICK else [pytest.mark.slow]) for name in FAULTS],
)
def test_a_planted_fault_is_found(tmp_path, plant, said):
    limit, count = (2, 33) if "sleep" in plant else (20, 45)
    given = ("--kind=xml", "--seed=100", f"--models={count}", "--jobs=1", f"--seconds={limit}")
    found = fuzz(tmp_path, *given, plant=plant)
    assert found.returncode == 1, found.stdout + found.stderr
    for _, reason, folder in failures(found):
        assert re.search(said, reason)
        assert re.search(said, (Path(folder) / "reason.txt").read_text())


@pytest.mark.slow
def test_a_seed_finds_it_again(tmp_path):
    plant = "{}['x']"
    found = fuzz(tmp_path, "--kind=xml", "--seed=100", "--models=45", "--jobs=2", plant=plant)
    for seed, _, folder in failures(found):
        [(again, reason, other)] = failures(fuzz(tmp_path, f"--seed={seed}", "--models=1", plant=plant))
        assert (again, "KeyError: 'x'" in reason) == (seed, True)
        for name in ("model.xml", "model.bin"):
            assert (Path(folder) / "model" / name).read_bytes() == (Path(other) / "model" / name).read_bytes()


def test_nothing_is_found_where_nothing_is_planted(tmp_path):
    for kind, count in (("xml", 60), ("json", 120)):
        found = fuzz(tmp_path, f"--kind={kind}", "--seed=100", f"--models={count}", "--jobs=2")
        assert found.returncode == 0, found.stdout
        read = sum(examination.kind_of(seed) == kind for seed in range(100, 100 + count))
        assert re.search(f"^{read} models in [0-9]+ seconds: no failures$", found.stdout, re.M)
        assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_models_are_valid_wrong_and_malformed(tmp_path):
    """Of each kind some are judged and some refused: a fuzzer whose models are all refused reads one line of each."""
    from dmlsplit.checking.files import check_files

    answers = {".onnx": [0, 0], ".xml": [0, 0], ".json": [0, 0], ".jsonl": [0, 0]}
    for seed in range(300):
        path = examination.build(seed, tmp_path / str(seed))
        reports = list(check_files([path]))
        malformed = any(d.rule == "input/malformed" for report in reports for d in report.diagnostics)
        answers[path.suffix][malformed] += 1
    assert min(count for pair in answers.values() for count in pair) >= 3
    assert answers[".onnx"][0] > 40
    assert answers[".xml"][0] > 20


def test_a_seed_makes_the_same_model(tmp_path):
    for seed in range(40):
        one, two = (examination.build(seed, tmp_path / name / str(seed)) for name in ("a", "b"))
        assert one.read_bytes() == two.read_bytes()
