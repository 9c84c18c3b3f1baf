"""The debug layer of Microsoft's library says why it refuses: that reason is among ours, whatever else we say."""

from __future__ import annotations

import pytest

import dmlsplit as dml
from dmlsplit.library.catalogue import debug_layer
from dmlsplit.library.errors import Unavailable
from dmlsplit.rules._debug_layer import MESSAGES
from tests.directml.compare import fetched
from tests.directml.conftest import COUNT, FRESH
from tests.directml.generator import descriptor
from tests.reasons import RELEASE, is_among, reasons

pytestmark = pytest.mark.directml

FIXED_SEED = 20221223


@pytest.fixture(scope="module")
def asked(request):
    if request.config.getoption("markexpr") != "directml":
        pytest.skip("asked with -m directml only")
    try:
        library = fetched(debug_layer(), {"debug-layer": 1})
    except Unavailable as reason:
        pytest.skip(str(reason))
    with library:
        yield library


@pytest.mark.parametrize("seed", [FIXED_SEED, FRESH])
def test_the_reason_is_among_ours(asked, seed, compared):
    descs = [descriptor(seed, index) for index in range(COUNT)]
    missed, explained, rules = [], 0, set()
    for desc, (answer, message) in zip(descs, asked.explain(descs), strict=True):
        report = dml.validate(desc, directml=RELEASE)
        assert report.hresult == answer
        if not message:
            assert answer in (0, None)
            continue
        explained += 1
        rules |= set(reasons(message))
        if not is_among(message, report):
            missed.append(f"{message}\n  {report}\n  {dml.dumps(desc)}")
    compared(
        f"the debug layer: {explained} reasons of seed {seed} (DMLSPLIT_DIRECTML_SEED={seed} repeats them), "
        f"{len(missed)} missed; {len(rules)} of {len(MESSAGES)} rules"
    )
    assert not missed, f"{len(missed)} of {explained}; DMLSPLIT_DIRECTML_SEED={seed}:\n" + "\n".join(missed[:3])
    assert COUNT < 1000 or explained > COUNT // 4


def test_an_accepted_descriptor_needs_no_reason(asked):
    desc = dml.SplitOperatorDesc.from_lengths(dml.BufferTensorDesc(1, (1, 1, 6, 2)), 2, (2, 4))
    assert asked.explain([desc]) == [(0, "")]
