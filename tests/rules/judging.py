"""What the tests of rules share: descriptors made by what a case varies, and the test that every case is held to."""

from dataclasses import dataclass, replace
from types import ModuleType

import pytest

import dmlsplit as dml
from dmlsplit.rules import RULES, DescriptorRule, NodeRule, judge_node

JUDGING = [rule for rule in RULES.values() if isinstance(rule, DescriptorRule)]
"""The rules that look at a descriptor."""
NODES_JUDGING = [rule for rule in RULES.values() if isinstance(rule, NodeRule)]
"""Those that look at a framework's node."""
UINT_MAX = 2**32 - 1
T = dml.TensorDataType


def ids(report):
    """The rules that fired."""
    return {diagnostic.rule for diagnostic in report.diagnostics}


def node_ids(facts):
    """The rules that fire on a node, but for what is said beside them of runtimes."""
    return {diagnostic.rule for diagnostic in judge_node(facts, "n")} - {"node/runtime-differs"}


def buf(sizes=(2, 3, 4, 5), data_type=T.FLOAT16, **members):
    return dml.BufferTensorDesc(data_type, sizes, **members)


def cut(x=None, axis=1, lengths=(1, 2), make=dml.SplitOperatorDesc):
    """A Split of `buf()`, or of another input."""
    return make.from_lengths(x or buf(), axis, lengths)


def glue(x=None, axis=1, lengths=(1, 2)):
    """The Join that undoes it."""
    return cut(x, axis, lengths, dml.JoinOperatorDesc)


def with_whole(d, tensor):
    """The same with another input of a Split, or output of a Join."""
    return replace(d, **{"input_tensor" if isinstance(d, dml.SplitOperatorDesc) else "output_tensor": tensor})


def with_part(d, index, tensor):
    name = "output_tensors" if isinstance(d, dml.SplitOperatorDesc) else "input_tensors"
    parts = list(getattr(d, name))
    parts[index] = tensor
    return replace(d, **{name: parts})


def with_count(d, count):
    return replace(d, **{"output_count" if isinstance(d, dml.SplitOperatorDesc) else "input_count": count})


def copied(sizes=(4, 6), data_type=T.UINT8, **members):
    """A Split into one output with the given members."""
    return dml.SplitOperatorDesc(buf(sizes, data_type), [buf(sizes, data_type, **members)], 0)


@dataclass(frozen=True)
class Case:
    """A descriptor with one fault, the legal one on the other side of the boundary, and who judges both."""

    faulty: dml.OperatorDesc
    legal: dml.OperatorDesc
    judge: dict[str, str]


def case(faulty, legal, **judge):
    """Judged by the newest level, or as the keywords of `validate` say."""
    return Case(faulty, legal, judge or {"feature_level": "6_4"})


def each(cases):
    """Runs a test for every case of a table: rule -> what is varied -> Case."""
    rows = [(rule, one, f"{rule}: {name}") for rule, named in cases.items() for name, one in named.items()]
    return pytest.mark.parametrize(("rule", "case"), [row[:2] for row in rows], ids=[row[2] for row in rows])


def check(rule, case):
    """The rule fires alone on the one side, with the code that it stands for, and nothing does on the other."""
    report = dml.validate(case.faulty, **case.judge)
    assert ids(report) == {rule}
    assert report.ok is (RULES[rule].severity is not dml.Severity.ERROR)
    refused = not report.ok and RULES[rule].basis is not dml.Basis.OURS
    code = dml.HResult.E_INVALIDARG if refused else dml.HResult.S_OK
    assert report.hresult == (None if rule.endswith("/crash") else code)
    twin = dml.validate(case.legal, **case.judge)
    assert ids(twin) == set(), "on the legal side"
    assert (twin.ok, twin.diagnostics, twin.hresult) == (True, (), dml.HResult.S_OK)


def rules_in(module: ModuleType):
    """The ids of the rules that a module of dmlsplit.rules defines; each of them has to have cases."""
    values = [value if isinstance(value, tuple) else (value,) for value in vars(module).values()]
    return {rule.id for group in values for rule in group if isinstance(rule, DescriptorRule)}
