"""The verdict in C is the registry's: on the recorded descriptors by every level and build, and on random ones."""

import importlib.util
import os
import random
import re
import shutil
import sys
from pathlib import Path

import pytest

import dmlsplit as dml
from dmlsplit.descriptors.diagnostics import Severity
from dmlsplit.descriptors.layout import OVERLAP_SEARCH_LIMIT
from dmlsplit.rules import RULES, DescriptorRule
from tests.directml.generator import descriptor
from tests.oracle import operator, reason_to_leave_out, records
from tests.verdicts_in_c import answers, disagreements, is_struct, load, numbers_of

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


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return load(tmp_path_factory.mktemp("verdict"))


def test_the_targets_are_the_packages():
    spec = importlib.util.spec_from_file_location("generate_targets", ROOT / "csrc" / "generate_targets.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.TARGETS.read_text("utf-8") == module.text(), "run: python csrc/generate_targets.py"


def test_both_searches_give_up_after_as_many_steps():
    text = (ROOT / "csrc" / "dms_verdict_layout.c").read_text("utf-8")
    assert re.findall(r"#define SEARCH_STEPS (\d+)", text) == [str(OVERLAP_SEARCH_LIMIT)]


def test_summaries_of_rules(library):
    """Of each rule that a descriptor can break, as the registry has it; no other has one."""
    ids = [rule.id for rule in RULES.values() if isinstance(rule, DescriptorRule)]
    summaries = {id: library.dmlsplit_rule_summary(id.encode()) for id in ids}
    assert summaries == {id: RULES[id].summary.encode() for id in ids}
    assert library.dmlsplit_rule_summary(b"split/no-such-rule") is None
    assert library.dmlsplit_rule_summary(None) is None


@pytest.mark.parametrize("name", ["random", "boundary", "systematic"])
@pytest.mark.parametrize(
    "step",
    [
        160,
        pytest.param(1, marks=[pytest.mark.slow, pytest.mark.thorough]),
    ],
    ids=["a sample", "all"],
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
