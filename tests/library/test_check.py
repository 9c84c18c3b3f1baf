"""check --ask: the verdict beside the library's own word."""

from __future__ import annotations

import json

import pytest

import dmlsplit as dml
from dmlsplit.cli import main
from dmlsplit.formats import any_operator_json, graph_json
from dmlsplit.library.catalogue import find_build
from tests.any_operators import accepted, any_of
from tests.library.conftest import require

T = dml.BufferTensorDesc(1, (1, 2, 3, 4))
RELU = dml.AnyOperatorDesc("ACTIVATION_RELU", {"InputTensor": T, "OutputTensor": T})
SPLIT = dml.SplitOperatorDesc.from_lengths(T, 1, (1, 1))
# Data types and ranks are right, so that tables find nothing; the axis' size is not 1 in the output.
REDUCE = dml.AnyOperatorDesc(
    "REDUCE", {"Function": "SUM", "InputTensor": T, "OutputTensor": dml.BufferTensorDesc(1, (1, 2, 3, 2)), "Axes": [3]}
)


@pytest.fixture
def check(newest, tmp_path, capsys):
    """A function: the exit status and the answers of check --ask about descriptors."""

    def run(*descs, target=("--directml", newest.name), options=()):
        lines = [graph_json.dumps(d) if isinstance(d, dml.GraphDesc) else any_operator_json.dumps(d) for d in descs]
        (tmp_path / "ops.jsonl").write_text("\n".join(lines))
        status = main(["check", str(tmp_path / "ops.jsonl"), "--ask", "--format", "jsonl", *target, *options])
        return status, [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    return run


def rules(answer):
    return [diagnostic["rule"] for diagnostic in answer["diagnostics"]]


def test_where_it_agrees(check, newest):
    status, answers = check(RELU, SPLIT)
    assert (status, [rules(answer) for answer in answers]) == (0, [[], []])
    assert answers[0]["library"] == {
        "build": newest.name,
        "accepted": True,
        "hresult": "0x00000000",
        "call": "CreateOperator",
        "node": None,
        "ended_the_process": False,
        "reason": None,
    }
    bad = dml.SplitOperatorDesc(T, SPLIT.output_tensors, 2)
    wide = dml.AnyOperatorDesc("ACTIVATION_RELU", {"InputTensor": T, "OutputTensor": dml.BufferTensorDesc(2, T.sizes)})
    status, answers = check(bad, wide)
    assert (status, [answer["ok"] for answer in answers]) == (1, [False, False])
    assert [answer["library"]["hresult"] for answer in answers] == ["0x80070057"] * 2
    assert not any(rule.startswith("library/") for answer in answers for rule in rules(answer))


def test_every_accepted_descriptor(check, newest):
    known = [desc for desc in accepted() if any_of(desc).operator.since <= newest.feature_level]
    status, answers = check(*known)
    assert (status, len(answers)) == (0, len(known))
    assert {answer["library"]["accepted"] for answer in answers} == {True}


def test_what_tables_do_not_say(check):
    status, (answer,) = check(REDUCE)
    assert (status, rules(answer), answer["ok"]) == (1, ["library/refuses"], False)
    assert answer["library"]["hresult"] == "0x80070057"
    assert answer["diagnostics"][0]["line"] == 1
    status, (answer,) = check(REDUCE, options=["--ignore", "library/"])
    assert (status, rules(answer)) == (0, [])


def test_what_cannot_be_asked(check):
    unknown = dml.AnyOperatorDesc.of_tensors(9999, [T], [T])
    edges = [dml.InputGraphEdgeDesc(0, 0, 0)], [dml.OutputGraphEdgeDesc(0, 0, 0)]
    _, (answer, known) = check(dml.GraphDesc([T], [T], [unknown], *edges), dml.GraphDesc([T], [T], [RELU], *edges))
    assert "library/not-asked" in rules(answer)
    assert "library" not in answer
    assert known["library"]["accepted"]


def test_a_question_that_ends_the_process_is_an_answer(check):
    (base,) = [desc for desc in accepted() if any_of(desc).operator.name == "DEPTH_TO_SPACE"]
    _, answers = check(dml.AnyOperatorDesc("DEPTH_TO_SPACE", {**base.members, "BlockSize": 2**31}), RELU)
    assert answers[0]["library"]["ended_the_process"]
    assert answers[1]["library"]["accepted"]


def test_builds_of_levels(check):
    require(find_build("tensorflow-directml-1.15.5"))
    status, (answer,) = check(RELU, target=("--feature-level", "4_1"))
    assert (status, answer["judged_by"]) == (0, "feature level 4_1")
    assert answer["library"]["build"].startswith("tensorflow-directml-1.15.5")
    assert check(RELU, target=("--feature-level", "4_0"))[0] == 2


def test_in_text(newest, tmp_path, capsys):
    (tmp_path / "op.json").write_text(any_operator_json.dumps(REDUCE))
    assert main(["check", str(tmp_path / "op.json"), "--directml", newest.name, "--ask"]) == 1
    assert f"{newest.name} refuses it" in capsys.readouterr().out
    assert main(["check", str(tmp_path / "op.json"), "--directml", newest.name]) == 0
    assert "library" not in capsys.readouterr().out
