"""Whole programs: what the emulated device answers is what the builds answer, call by call."""

from __future__ import annotations

import pytest

import dmlsplit as dml
from dmlsplit.library.errors import HarnessError
from dmlsplit.library.process import Library
from tests.directml.conftest import COUNT, FRESH
from tests.directml.emulation import emulate
from tests.directml.programs import Bound, Program, Range, Step, program
from tests.oracle import operator, records

pytestmark = pytest.mark.directml

FIXED_SEED = 20241121
LEAST_HEALTHY = 0.3
"""Of the programs: a device that was always removed would agree for the wrong reason."""

FLOAT32 = dml.TensorDataType.FLOAT32
OWNED = dml.TensorFlags.OWNED_BY_DML


@pytest.fixture
def compiling(made):
    """The build, where it compiles."""
    if not dml.find_release(made.name).compiling_observed:
        pytest.skip("this build compiles no operator under wine")
    return made


def disagreement(programs: list[Program], answers: list[list[str] | None], release: str, **settings) -> str | None:
    """The shortest program of which library and device say different things, up to there."""
    wrong = []
    for steps, answer in zip(programs, answers, strict=True):
        emulated = emulate(steps, release, **settings)
        if emulated != answer:
            wrong.append((steps, answer or ["crash"], emulated or ["crash"]))
    if not wrong:
        return None
    steps, answer, emulated = min(wrong, key=lambda found: len(found[0]))
    lines = [f"{release}: {len(wrong)} of {len(programs)} programs disagree; library, device, step:"]
    answer, emulated = ([*a, *["-"] * (len(steps) - len(a))] for a in (answer, emulated))
    lines += [f"  {a} {e} {step.words}" for a, e, step in zip(answer, emulated, steps, strict=True)]
    return "\n".join(lines)


@pytest.mark.parametrize("seed", [FIXED_SEED, FRESH])
def test_random_programs(compiling, library, seed, compared):
    made = compiling
    programs = [program(seed, index, made.name) for index in range(COUNT)]
    answers = library.sessions([step.words for step in steps] for steps in programs)
    healthy = sum(answer is not None and "887A0005" not in answer for answer in answers) / COUNT
    compared(
        f"{made.name}: {COUNT} programs of seed {seed} (DMLSPLIT_DIRECTML_SEED={seed} repeats them), "
        f"{healthy:.0%} without removal"
    )
    found = disagreement(programs, answers, made.name)
    if found:
        pytest.fail(f"{found}\nrepeat with DMLSPLIT_DIRECTML_SEED={seed}", pytrace=False)
    assert COUNT < 1000 or healthy > LEAST_HEALTHY


def split(flags=0, alignment=0) -> dml.SplitOperatorDesc:
    whole = dml.BufferTensorDesc(FLOAT32, (1, 1, 6, 4), flags=flags, guaranteed_base_offset_alignment=alignment)
    return dml.SplitOperatorDesc.from_lengths(whole, 2, (2, 4))


def join(*inputs: tuple[int, int, int]) -> dml.JoinOperatorDesc:
    """Of inputs (flags, total, alignment)."""
    tensors = [
        dml.BufferTensorDesc(
            FLOAT32,
            (1, 1, 1, 1),
            flags=flags,
            total_tensor_size_in_bytes=total,
            guaranteed_base_offset_alignment=alignment,
        )
        for flags, total, alignment in inputs
    ]
    return dml.JoinOperatorDesc(tensors, dml.BufferTensorDesc(FLOAT32, (1, 1, len(inputs), 1)), 2)


def bound_split(*changed: Step) -> list[Step]:
    """buffer 0, operator 1, compiled 2, table 3; then `changed`, then a dispatch."""
    steps = [Step("buffer", (4096,)), Step("operator", (split(),)), Step("compile", (1, 0)), Step("table", (2, 4))]
    outputs = [Bound(1, Range(0, 256, 32)), Bound(1, Range(0, 512, 64))]
    steps += [Step("inputs", (3, [Bound(1, Range(0, 0, 96))])), Step("outputs", (3, outputs)), *changed]
    return [*steps, Step("dispatch", (2, 3))]


LARGE = 2**32 + 16
"""Bytes: what is computed in 32 bits would be 16."""


def bound_large(flags: int, *bindings: Step) -> list[Step]:
    """buffer 0 of 8 GiB that nobody touches, operator 1 with an input of LARGE bytes, compiled 2, table 3."""
    whole = dml.BufferTensorDesc(FLOAT32, (1, 1, LARGE // 4, 1), flags=flags)
    desc = dml.SplitOperatorDesc.from_lengths(whole, 2, (4, LARGE // 4 - 4))
    steps = [Step("buffer", (2**33,)), Step("operator", (desc,)), Step("compile", (1, 0)), Step("table", (2, 4))]
    return [*steps, Step("properties", (2,)), *bindings]


PROGRAMS: dict[str, list[Step]] = {
    **{
        f"{size} bytes from {offset} on where {LARGE} are needed": bound_large(
            0, Step("inputs", (3, [Bound(1, Range(0, offset, size))]))
        )
        for offset, size in ((0, LARGE), (0, LARGE - 4), (0, 16), (2**32 - 16, LARGE), (2**32, LARGE), (2**33, LARGE))
    },
    **{
        f"{size} bytes of persistent resource where {LARGE} are needed": bound_large(
            OWNED, Step("inputs", (3, [Bound(0)])), Step("persistent", (3, Bound(1, Range(0, 256, size))))
        )
        for size in (LARGE, LARGE - 4, 16)
    },
    "works": bound_split(),
    "output over input": bound_split(
        Step("outputs", (3, [Bound(1, Range(0, 0, 32)), Bound(1, Range(0, 512, 64))])),
    ),
    "one output over another": bound_split(
        Step("outputs", (3, [Bound(1, Range(0, 256, 32)), Bound(1, Range(0, 256, 64))])),
    ),
    "no inputs unbind": bound_split(Step("inputs", (3, []))),
    "offset wraps": bound_split(Step("inputs", (3, [Bound(1, Range(0, 2**64 - 16, 96))]))),
    "size wraps": bound_split(Step("inputs", (3, [Bound(1, Range(0, 16, 2**64 - 16))]))),
    "reset unbinds": bound_split(Step("reset", (3, 2, 4))),
    "a reset that fails leaves the table": bound_split(Step("reset", (3, 2, 3))),
    "everything after removal": [
        *bound_split(Step("inputs", (3, [Bound(0)]))),
        Step("operator", (dml.SplitOperatorDesc(None, None, 9),)),
        Step("compile", (1, 8)),
        Step("table", (2, 0)),
        Step("reset", (3, 2, 4)),
        Step("initializer", ([2],)),
        Step("levels", ([],)),
        Step("type", (99,)),
        Step("properties", (2,)),
    ],
    "persistent sizes": [
        step
        for i, desc in enumerate(
            (
                split(flags=OWNED),
                join((1, 5, 0), (1, 9, 0), (1, 13, 0)),
                join((1, 4, 512), (1, 4, 0)),
                *(join((1, 4, 0), (1, 4, alignment)) for alignment in (16, 32, 64, 128, 256, 512, 2**31)),
                join((1, 4, 0), (0, 4, 512), (1, 7, 64)),
            )
        )
        for step in (Step("operator", (desc,)), Step("compile", (2 * i, 0)), Step("properties", (2 * i + 1,)))
    ],
    "an initializer of nothing": [
        Step("initializer", ([],)),
        Step("properties", (0,)),
        Step("table", (0, 0)),
        Step("dispatch", (0, 1)),
        Step("inputs", (1, [Bound(0, Range(None))])),
    ],
    "NONE for an initializer's inputs": [
        Step("operator", (split(),)),
        Step("compile", (0, 0)),
        Step("initializer", ([1],)),
        Step("table", (2, 0)),
        Step("inputs", (3, [Bound(0)])),
    ],
}
QUERIES: dict[str, list[Step]] = {
    "levels": [
        Step("levels", (levels,))
        for levels in ([0x1000, 0x2000], [0x7000, 0x1000], [], [0], [0, 0x1000], [2**32 - 1], [0x1001], [0x5300])
    ],
    "types": [Step("type", (number,)) for number in (*range(16), 100, 2**32 - 1)],
}


def agreed(library: Library, steps: list[Step], release: str) -> list[str] | None:
    """What the library answers, and the emulated device, too."""
    (answer,) = library.sessions([[step.words for step in steps]])
    assert emulate(steps, release) == answer
    return answer


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(compiling, library, name):
    agreed(library, PROGRAMS[name], compiling.name)


@pytest.mark.parametrize("name", QUERIES)
def test_queries(made, library, name):
    agreed(library, QUERIES[name], made.name)


RECORDED = [record for record in records("bindings") if "table" in record]


@pytest.mark.parametrize("record", RECORDED, ids=lambda record: record["name"])
def test_the_recorded_bindings_reproduce(compiling, library, record):
    def bound(entry):
        if entry["Desc"] is None:
            return Bound(entry["Type"])
        members = entry["Desc"]
        place = Range(None if members["Buffer"] is None else 0, members["Offset"], members["SizeInBytes"])
        return Bound(entry["Type"], (place,) if entry["Type"] == dml.BindingType.BUFFER_ARRAY else place)

    size = record["properties"][0] if record["SizeInDescriptors"] is None else record["SizeInDescriptors"]
    steps = [Step("buffer", (1 << 20,)), Step("operator", (operator(record["desc"]),)), Step("compile", (1, 0))]
    steps += [Step("properties", (2,)), Step("table", (2, size))]
    refused = record["table"] != "00000000"
    table = f"{dml.find_release(compiling.name).invalid_argument:08X}" if refused else record["table"]
    expected = ["00000000"] * 3 + [",".join(map(str, record["properties"])), table]
    for side in ("inputs", "outputs"):
        if record[side] is not None:
            steps.append(Step(side, (3, [bound(entry) for entry in record[side]])))
            expected.append("skipped" if refused else record["removed"][side])
    assert agreed(library, steps, compiling.name) == expected


@pytest.mark.parametrize(
    ("options", "capabilities"),
    [
        ({"double-precision": 0}, dml.Capabilities(double_precision=False)),
        ({"typed-uav-load": 0}, dml.Capabilities(typed_uav_loads=False)),
        ({"double-precision": 0, "typed-uav-load": 0}, dml.Capabilities(False, False)),
    ],
    ids=["no double precision", "no typed loads", "neither"],
)
def test_capabilities(made, harness, shared_object, options, capabilities):
    types = range(1, 14)
    steps = [Step("type", (number,)) for number in types]
    for number in types:
        whole = dml.BufferTensorDesc(number, (1, 1, 6, 4))
        steps += [Step("operator", (make.from_lengths(whole, 2, (6,)),)) for make in DESCRIPTORS]
    with Library(harness, shared_object, options) as asked:
        (answer,) = asked.sessions([[step.words for step in steps]])
    assert emulate(steps, made.name, capabilities) == answer


DESCRIPTORS = (dml.SplitOperatorDesc, dml.JoinOperatorDesc)


@pytest.mark.parametrize("level", [0, 1, 0x1001, 2**31, 2**32 - 1, None, "above"])
def test_minimum_feature_levels(made, harness, shared_object, level):
    """Any number is taken that is, as a signed one, not above the maximum."""
    highest = int(dml.find_release(made.name).max_feature_level)
    level = {None: highest, "above": highest + 1}.get(level, level)
    steps = [Step("type", (1,))]
    with Library(harness, shared_object, {"minimum-feature-level": level}) as asked:
        try:
            dml.Device(made.name, level)
        except dml.DirectMLError as refused:
            with pytest.raises(HarnessError, match=f"DMLCreateDevice1 returned 0x{refused.hresult:08X}"):
                asked.sessions([[step.words for step in steps]])
        else:
            assert asked.sessions([[step.words for step in steps]]) == [["00000000,1"]]
