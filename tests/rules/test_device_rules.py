"""Rules of the emulated device: the programs that the registry has for each of them."""

import pytest

import dmlsplit as dml
from dmlsplit.rules import RULES
from dmlsplit.rules._programs import PROGRAM

DEVICE = [rule for rule in RULES.values() if rule.id.startswith(("binding/", "device/"))]


def outcome(steps):
    """What came of a program that ends with these steps: the ids found, and in what way they came out."""
    names = {}
    exec(PROGRAM, names)
    found, how = [], "nothing"
    names["device"]._state.on_warning = found.append
    try:
        exec(steps, names)
    except dml.DirectMLError as error:
        found += error.report.diagnostics
        how = "no HRESULT" if error.hresult is None else error.hresult.name
    if found and how == "nothing":
        how = "a warning"
    removed = names["device"].removed_reason
    if removed is not None:
        assert (how, removed.hresult, removed.ok) == ("nothing", dml.HResult.DXGI_ERROR_DEVICE_REMOVED, False)
        found += removed.diagnostics
        how = "removal"
    return found, how


@pytest.mark.parametrize("rule", DEVICE, ids=lambda rule: rule.id)
def test_the_examples_of_the_devices_rules(rule):
    """A violation is found alone, and comes out as the registry says; its twin is legal."""
    found, how = outcome(rule.bad_steps)
    if rule.id == "device/build-not-observed":
        assert [d.rule for d in found] == ["device/execution-flags-unknown", rule.id]
    else:
        assert [d.rule for d in found] == [rule.id]
        assert rule.outcome == {
            "removal": "the device is removed",
            "a warning": "accepted; a warning here",
            "no HRESULT": "the process ends" if rule.basis == "observed" else "accepted; the dispatch is refused here",
        }.get(how, how)
    assert {d.severity for d in found if d.rule == rule.id} == {rule.severity}
    assert all(d.message and d.reference == str(RULES[d.rule].sources[0]) for d in found)
    assert outcome(rule.good_steps) == ([], "nothing")
