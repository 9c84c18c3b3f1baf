"""Rules of the emulated device: the programs that stand beside each of them."""

import pytest

import dmlsplit as dml
from dmlsplit.device.examples import Setup, programs
from dmlsplit.rules import RULES

DEVICE = [rule for rule in RULES.values() if rule.scope in ("binding", "device")]


def outcome(program):
    """What came of a program: the ids found, and in what way they came out."""
    found, how = [], "nothing"
    setup = Setup(found.append)
    device = setup.device
    try:
        program(setup)
    except dml.DirectMLError as error:
        found += error.report.diagnostics
        how = "no HRESULT" if error.hresult is None else error.hresult.name
    if found and how == "nothing":
        how = "a warning"
    removed = device.removed_reason
    if removed is not None:
        assert (how, removed.hresult, removed.ok) == ("nothing", dml.HResult.DXGI_ERROR_DEVICE_REMOVED, False)
        found += removed.diagnostics
        how = "removal"
    return found, how


@pytest.mark.parametrize("rule", DEVICE, ids=lambda rule: rule.id)
def test_the_examples_of_the_devices_rules(rule):
    """A violation is found alone, and comes out as the registry says; its twin is legal."""
    found, how = outcome(programs(rule).bad)
    if rule.id == "device/build-not-observed":
        assert [d.rule for d in found] == ["device/execution-flags-unknown", rule.id]
    else:
        assert [d.rule for d in found] == [rule.id]
        assert rule.outcome == {
            "removal": "the device is removed",
            "a warning": "accepted; reported as a warning",
            "no HRESULT": "the process crashes"
            if rule.basis == "observed"
            else "accepted; the emulation refuses the dispatch",
        }.get(how, how)
    assert {d.severity for d in found if d.rule == rule.id} == {rule.severity}
    assert all(d.message and d.reference == str(RULES[d.rule].sources[0]) for d in found)
    assert outcome(programs(rule).good) == ([], "nothing")
