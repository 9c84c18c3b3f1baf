"""What check says by tables, compared with a build that is asked the same."""

from __future__ import annotations

import copy
import json
import lzma
from pathlib import Path
from random import Random

import pytest

import dmlsplit as dml
from dmlsplit.descriptors.schema import enumerators
from dmlsplit.formats import any_operator_json
from dmlsplit.library import ask_all
from dmlsplit.library.fetching import is_added
from tests.library.conftest import LINUX_BUILDS, NEWEST, require

BASES = Path(__file__).parents[1] / "data" / "operators" / "base.jsonl.xz"
TYPES = [name for name in enumerators("DML_TENSOR_DATA_TYPE") if name != "UNKNOWN"]
QUESTIONS = 1_500


def questions(seed, level):
    """Bases with other data types of some tensors, more or fewer leading dimensions, absent tensors, other values."""
    chance = Random(seed)
    with lzma.open(BASES, "rt", encoding="utf-8") as lines:
        bases = [json.loads(line) for line in lines]
    known = [base for base in bases if dml.find_operator(base["Type"]).since <= level]
    for _ in range(QUESTIONS):
        question = copy.deepcopy(chance.choice(known))
        schema, desc = dml.find_operator(question["Type"]), question["Desc"]
        tensors = [member for member in schema.members if member.type == "tensor" and desc.get(member.name)]
        of_types = chance.random()
        changed = tensors if of_types < 0.4 else chance.sample(tensors, chance.randrange(min(3, len(tensors)) + 1))
        data_type = chance.choice(TYPES)
        for member in changed:
            desc[member.name]["DataType"] = data_type if of_types < 0.8 else chance.choice(TYPES)
        if chance.random() < 0.3:
            for member in chance.sample(tensors, chance.randrange(1, len(tensors) + 1)):
                sizes = desc[member.name]["Sizes"]
                desc[member.name]["Sizes"] = [1, *sizes] if chance.random() < 0.5 else sizes[1:] or sizes
        for member in schema.members:
            if member.optional and member.type == "tensor" and chance.random() < 0.1:
                desc[member.name] = None
            elif member.type == "enum" and member.enum != "DML_TENSOR_DATA_TYPE" and chance.random() < 0.2:
                desc[member.name] = chance.choice([*enumerators(member.enum), 100, 2**32 - 1])
            elif member.type == "bool" and chance.random() < 0.2:
                desc[member.name] = chance.choice([0, 1, 2])
        try:
            yield any_operator_json.loads(json.dumps(question))
        except dml.InputError:
            continue  # a scalar that the data type does not hold


@pytest.mark.parametrize("build", LINUX_BUILDS, ids=str)
def test_what_is_accepted_is_never_refused(build):
    """Fresh questions, others for each build."""
    if build is not NEWEST and not is_added(build):
        pytest.skip(f"dmlsplit library add {build} has not been run")
    require(build)
    asked = [desc for desc in questions(build.name, build.feature_level) if isinstance(desc, dml.AnyOperatorDesc)]
    accepted = 0
    for desc, answer in zip(asked, ask_all(asked, build, explain=False), strict=True):
        report = dml.validate(desc, directml=build.release)
        accepted += answer.accepted
        if answer.accepted:
            assert report.ok, any_operator_json.dumps(desc)
        elif report.hresult is not None:
            assert answer.hresult == report.hresult, any_operator_json.dumps(desc)
        if answer.ended_the_process:
            assert not report.ok, any_operator_json.dumps(desc)
    assert accepted > QUESTIONS / 10
