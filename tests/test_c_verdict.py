"""The verdict in C is the registry's: on the recorded descriptors by every level and build, and on random ones."""

import ctypes
import importlib.util
import os
import random
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import dmlsplit as dml
from dmlsplit.descriptors.diagnostics import Severity
from dmlsplit.descriptors.enums import OperatorType
from dmlsplit.descriptors.geometry import members_of
from dmlsplit.descriptors.layout import OVERLAP_SEARCH_LIMIT
from dmlsplit.formats import cstruct
from dmlsplit.rules import RULES, DescriptorRule
from dmlsplit.system.errors import DescriptorError
from dmlsplit.targets.target import target_of
from dmlsplit.verdicts.validation import evaluate
from tests.directml.generator import descriptor
from tests.oracle import operator, reason_to_leave_out, records

ROOT = Path(__file__).parents[1]
RANDOM = int(os.environ.get("DMLSPLIT_VERDICTS") or 0)
"""Descriptors at random, each by two targets; .ci/run full asks for a million, which take five minutes of one core."""
SHARES = 16 if RANDOM else 1
BY = [*dml.FeatureLevel, *dml.releases()]
NO_STRUCT_SAYS = {"tensor/sizes-too-few", "tensor/strides-too-few", "split/output-count-exceeds-array"} | {
    "join/input-count-exceeds-array"
}
"""Rules of arrays that are shorter than said: a pointer has no length."""

pytestmark = pytest.mark.skipif(
    shutil.which("cc") is None or sys.platform != "linux", reason="needs cc and a shared library of ELF"
)


class Verdict(ctypes.Structure):
    _fields_ = (
        ("struct_size", ctypes.c_uint32),
        ("ok", ctypes.c_int32),
        ("crashes", ctypes.c_int32),
        ("hresult", ctypes.c_uint32),
        ("rule", ctypes.c_char_p),
        ("tensor", ctypes.c_char_p),
        ("member", ctypes.c_char_p),
        ("part", ctypes.c_uint64),
        ("index", ctypes.c_uint32),
    )


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    path = tmp_path_factory.mktemp("verdict") / "libverdict.so"
    names = ("dms_verdict*.c", "dms_overlap.c", "dms_text.c")
    sources = [source for name in names for source in (ROOT / "csrc").glob(name)]
    command = [
        "cc",
        "-std=c11",
        "-O2",
        "-DDMS_TESTING",
        "-shared",
        "-fPIC",
        "-I",
        ROOT / "include",
        "-o",
        path,
        *sources,
    ]
    subprocess.run(command, check=True, timeout=300)
    found = ctypes.CDLL(str(path))
    found.dmlsplit_verdict_path.restype = ctypes.c_size_t
    found.dmlsplit_find_release.restype = ctypes.c_uint32
    return found


EachFault = ctypes.CFUNCTYPE(None, ctypes.POINTER(Verdict))


def answers(library, desc, numbers):
    """What C says of a descriptor by each target: ok, HRESULT or None, rule and path of the first fault, and of all."""
    struct = cstruct.write(desc)
    judge = (
        library.dmlsplit_validate_split
        if members_of(desc).kind is OperatorType.SPLIT
        else library.dmlsplit_validate_join
    )
    verdict, text = Verdict(ctypes.sizeof(Verdict)), ctypes.create_string_buffer(100)
    faults = []

    def rule_and_path(verdict):
        library.dmlsplit_verdict_path(verdict, text, ctypes.c_size_t(100))
        return (verdict.contents.rule or b"").decode(), text.value.decode()

    note = EachFault(lambda fault: faults.append(rule_and_path(fault)))
    hook = ctypes.c_void_p.in_dll(library, "dms_each_fault")
    hook.value = ctypes.cast(note, ctypes.c_void_p).value
    for number in numbers:
        faults.clear()
        assert judge(ctypes.c_void_p(struct.address), ctypes.c_uint32(number), ctypes.byref(verdict)) == 0
        hresult = None if verdict.crashes else verdict.hresult
        yield bool(verdict.ok), hresult, rule_and_path(ctypes.pointer(verdict)), sorted(faults)


def expected(desc, by):
    report = evaluate(desc, target_of(by))
    faults = [(d.rule, str(d.location)) for d in report.diagnostics if d.severity is Severity.ERROR]
    return report.ok, report.hresult, faults[0] if faults else ("", ""), sorted(faults)


def numbers_of(library, targets):
    found = [
        by if isinstance(by, dml.FeatureLevel) else library.dmlsplit_find_release(by.name.encode()) for by in targets
    ]
    assert all(found)
    return found


def is_struct(desc):
    """Whether C is told the same: of an array that is longer than its count only the counted entries are written."""
    members = members_of(desc)
    tensors = [t.desc for t in (members.whole, *(members.array or ())) if t is not None and t.desc is not None]
    arrays = [(array, t.dimension_count) for t in tensors for array in (t.sizes, t.strides) if array is not None]
    try:
        cstruct.write(desc)
    except DescriptorError:  # an array that is shorter than its count, a null tensor in an array of structs
        return False
    return all(len(array) == count for array, count in arrays)


def disagreements(library, descs, targets):
    compared, found = 0, []
    numbers = numbers_of(library, targets)
    for desc in descs:
        if not is_struct(desc):
            continue
        said = list(answers(library, desc, numbers))
        compared += 1
        for by, answer in zip(targets, said, strict=True):
            if answer != expected(desc, by):
                found.append((str(by), answer, expected(desc, by), desc))
    return compared, found


def test_the_targets_are_the_packages():
    spec = importlib.util.spec_from_file_location("generate_targets", ROOT / "csrc" / "generate_targets.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.TARGETS.read_text("utf-8") == module.text(), "run: python csrc/generate_targets.py"


def test_both_searches_give_up_after_as_many_steps():
    text = (ROOT / "csrc" / "dms_verdict_layout.c").read_text("utf-8")
    assert re.findall(r"#define SEARCH_STEPS (\d+)", text) == [str(OVERLAP_SEARCH_LIMIT)]


@pytest.mark.parametrize("name", ["random", "boundary", "systematic"])
@pytest.mark.parametrize(
    "step",
    [
        160,
        pytest.param(4, marks=pytest.mark.slow),
        pytest.param(1, marks=[pytest.mark.slow, pytest.mark.thorough]),
    ],
    ids=["a sample", "every fourth", "all"],
)
def test_recorded_descriptors(library, name, step):
    _, *recorded = records(name)
    descs = [operator(record["desc"]) for record in recorded[::step] if not reason_to_leave_out(record)]
    compared, found = disagreements(library, descs, BY)
    assert found == []
    assert compared > len(descs) * 0.6


@pytest.mark.parametrize("share", range(SHARES))
def test_random_descriptors(library, share):
    """In shares, which pytest-xdist runs side by side; each has targets of its own for every hundred descriptors."""
    seed, rng = 20251122, random.Random(share)
    indices = range(share, RANDOM or 250, SHARES)
    compared = 0
    for start in range(0, len(indices), 100):
        descs = [descriptor(seed, index) for index in indices[start : start + 100]]
        judged, found = disagreements(library, descs, BY if not RANDOM else rng.sample(BY, 2))
        assert found == []
        compared += judged
    assert compared > len(indices) * 0.4


@pytest.mark.parametrize(
    "rule",
    [r for r in RULES.values() if isinstance(r, DescriptorRule) and r.id not in NO_STRUCT_SAYS],
    ids=lambda rule: rule.id,
)
def test_both_examples_of_every_rule(library, rule):
    if rule.severity is not Severity.ERROR:
        pytest.skip("no fault: C answers faults only")
    for desc in (rule.bad(), rule.good()):
        _, found = disagreements(library, [desc], BY)
        assert found == []
    target = [dml.find_release(rule.examples_for) if isinstance(rule.examples_for, str) else rule.examples_for]
    if is_struct(rule.bad()):
        assert rule.id in [first for _, _, (first, _), _ in answers(library, rule.bad(), numbers_of(library, target))]
