"""Microsoft's library itself: the prediction of each release is what its build answers."""

from __future__ import annotations

from dataclasses import replace

import pytest

import dmlsplit as dml
from dmlsplit.library.catalogue import directml_builds
from dmlsplit.library.errors import HarnessError
from dmlsplit.library.image import image
from dmlsplit.library.process import Library
from tests import oracle, telling_apart
from tests.directml.compare import compare, representatives, shrunk
from tests.directml.conftest import COUNT, FRESH
from tests.directml.generator import descriptor
from tests.oracle import reason_to_leave_out

pytestmark = pytest.mark.directml

FIXED_SEED = 20240914
LEAST_ACCEPTED = 0.1
"""Of the generated descriptors: a build that refused nearly all of them would agree for the wrong reason."""

TENSOR = dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, (1, 1, 6, 2))
SPLIT = dml.SplitOperatorDesc.from_lengths(TENSOR, 2, (2, 1, 3))
NO_INPUT = replace(SPLIT, input_tensor=None)
CREATE = f"create {image(SPLIT)}"


def test_every_release_can_be_asked():
    assert {(made.name, made.platform.name) for made in directml_builds()} == {
        (r.name, r.platform) for r in dml.releases()
    }


@pytest.mark.parametrize("seed", [FIXED_SEED, FRESH])
def test_the_prediction_is_the_answer(made, library, seed, compared):
    descs = [descriptor(seed, index) for index in range(COUNT)]
    tally = compare(library, made.name, descs, f"seed {seed}, descriptor {{}}")
    accepted = tally.answers[0] / COUNT
    compared(
        f"{made.name}: {COUNT} descriptors of seed {seed} (DMLSPLIT_DIRECTML_SEED={seed} repeats them), "
        f"{accepted:.0%} accepted, {len(tally.disagreements)} disagreements"
    )
    if tally.disagreements:
        shown = [str(shrunk(library, found)) for found in representatives(tally.disagreements, 5)]
        heading = f"{len(tally.disagreements)} disagreements of {COUNT}; repeat with DMLSPLIT_DIRECTML_SEED={seed}"
        pytest.fail("\n".join([heading, *shown]), pytrace=False)
    assert COUNT < 1000 or accepted > LEAST_ACCEPTED


def test_what_tells_releases_apart_is_answered_so(made, library):
    release = next(release for release in dml.releases() if release.name == made.name)
    descs = telling_apart.read()
    assert list(library.judge(descs)) == [dml.validate(desc, directml=release).hresult for desc in descs]


@pytest.mark.parametrize("name", ["random", "boundary"])
def test_the_recorded_verdicts_reproduce(made, library, name):
    header, *recorded = oracle.records(name)
    column = header["builds"].index(made.name)
    sample = [record for record in recorded if not reason_to_leave_out(record)][:500]
    answers = library.judge(oracle.operator(record["desc"]) for record in sample)
    found = ["CRASH" if answer is None else f"0x{answer:08X}" for answer in answers]
    assert found == [record["verdicts"][column] for record in sample]


def test_a_crash_costs_one_answer(made, library):
    refused = dml.find_release(made.name).invalid_argument
    wrong = replace(SPLIT, axis=4)
    assert library.judge([SPLIT, NO_INPUT, wrong, NO_INPUT, NO_INPUT, SPLIT]) == [0, None, refused, None, None, 0]


def test_a_read_past_an_array_is_a_crash(library):
    """What the guard pages are for: the count says more than the array holds."""
    assert library.judge([replace(SPLIT, output_count=4)]) == [None]
    short = dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, (1, 1, 6), dimension_count=4)
    assert library.judge([replace(SPLIT, input_tensor=dml.TensorDesc(1, short))]) == [None]


def test_more_tensors_than_guarded_places(library):
    """Beyond them arrays are unguarded, and the verdict is the same."""
    lengths = (1,) * 20_000
    whole = dml.BufferTensorDesc(dml.TensorDataType.UINT8, (1, 1, len(lengths), 1))
    split = dml.SplitOperatorDesc.from_lengths(whole, 2, lengths)
    join = dml.JoinOperatorDesc.from_lengths(whole, 2, lengths)
    assert library.judge([split, join, SPLIT]) == [0, 0, 0]


def test_a_null_operator_descriptor(made, library):
    """DML_OPERATOR_DESC.Desc null, which dmlsplit cannot express."""
    refused = f"{dml.find_release(made.name).invalid_argument:08X}"
    assert library.answers([f"create 1 {number:02x}{'00' * 15} 0" for number in (62, 63)]) == [refused] * 2


def test_the_device_has_options(made, harness, shared_object):
    """Without typed UAV loads the builds up to level 6_1 refuse 8-bit types; all others take them."""
    desc = dml.SplitOperatorDesc.from_lengths(dml.BufferTensorDesc(dml.TensorDataType.UINT8, (1, 1, 6, 2)), 2, (2, 4))
    release = dml.find_release(made.name)
    refused = release.invalid_argument if release.max_feature_level <= dml.FeatureLevel.FL_6_1 else 0
    with Library(harness, shared_object, {"typed-uav-load": 0}) as less, Library(harness, shared_object) as full:
        assert (less.judge([desc]), full.judge([desc])) == ([refused], [0])


def test_too_high_a_minimum_feature_level(made, harness, shared_object):
    highest = int(dml.find_release(made.name).max_feature_level)
    with Library(harness, shared_object, {"minimum-feature-level": highest}) as asked:
        assert asked.judge([SPLIT]) == [0]
    too_high = Library(harness, shared_object, {"minimum-feature-level": highest + 1})
    with too_high as asked, pytest.raises(HarnessError, match="DMLCreateDevice1 returned 0x8"):
        asked.judge([SPLIT])


@pytest.mark.parametrize(
    "command",
    [
        "destroy 62",
        "create",
        "create 62 ",
        "create 1 -",
        f"{CREATE} 0",
        CREATE[:-2],
        "create 4294967296",
        "session",
        "session compile 0 0",
        "session buffer 16 ; dance 0",
        "session buffer 16 buffer 16",
        "session buffer 16 ;",
    ],
)
def test_a_malformed_command_is_no_verdict(harness, shared_object, command):
    with Library(harness, shared_object) as asked:
        with pytest.raises(HarnessError, match="command 2"):
            asked.answers([CREATE, command])
        assert asked.answers([CREATE]) == ["00000000"]


def test_an_unknown_option(harness, shared_object):
    with Library(harness, shared_object, {"colour": 1}) as asked, pytest.raises(HarnessError, match="unknown option"):
        asked.judge([SPLIT])
