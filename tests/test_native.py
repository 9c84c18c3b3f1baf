"""The boundary to the C core."""

import subprocess
import sys

import numpy as np
import pytest

import dmlsplit as dml
from dmlsplit.native import core
from dmlsplit.native.dispatchers import members_are_known


def test_versions_agree():
    assert core.version() == dml.__version__


def test_kernels():
    kernels = core.kernels()
    assert kernels[-1].name == "scalar"
    assert kernels[-1].available
    assert all(kernel.isa for kernel in kernels)


KERNEL_REFUSED = 15  # DMLSPLIT_KERNEL_REFUSED


def layouts():
    """Arrays of the shapes that kernels are made for, the axis, and the lengths to cut it into."""
    matrix = np.arange(64 * 192, dtype="f4").reshape(64, 192)
    yield matrix, 1, (64, 128)  # rows
    yield np.arange(4096 * 3, dtype="u1").reshape(4096, 3), 1, (1, 1, 1)  # channels
    yield np.arange(512 * 8, dtype="f8").reshape(512, 8), 1, (1, 2, 5)  # small mixed widths
    yield matrix, 1, (1,) * 192  # columns
    yield np.arange(96 * 160, dtype="f4").reshape(160, 96).T, 0, (32, 64)  # transposed
    yield np.arange(64 * 4096, dtype="u1").reshape(64, 4096), 0, (32, 32)  # long runs
    yield np.pad(matrix, ((0, 0), (0, 7)))[:, :192], 1, (192,)  # one part out of padded rows
    yield (np.arange(24000) % 251).astype("u1").reshape(3, 8000).T, 0, (4000, 4000)  # planes into pixels
    yield np.broadcast_to(matrix[:, :1], matrix.shape), 0, (32, 32)  # every element repeated
    yield matrix[:, ::-1], 0, (32, 32)  # backwards


@pytest.mark.parametrize("width", [1, 2, 4])
def test_pieces_of_one_row_for_all_are_filled(width):
    """Columns are for rows that differ: they took five times as long."""
    plan = core.Plan(core.SPLIT, 1, (1000, 4 * width), (0, 1), 1, (width,) * 4, None)
    assert "kernel runs" in plan.describe()


@pytest.mark.parametrize(("elements", "is_filled"), [(31, False), (32, True), (129, True)])
def test_short_lines_of_one_element_are_filled_where_nothing_turns_them(elements, is_filled):
    """From 128 bytes on. Elements 768 bytes apart are no matrix, whose lines of up to 512 bytes are turned."""
    plan = core.Plan(core.SPLIT, 4, (64, elements), (768, 0), 0, (32, 32), None)
    turned = core.Plan(core.SPLIT, 4, (64, elements), (4, 0), 0, (32, 32), None)
    assert ("kernel runs" in plan.describe()) is is_filled
    assert ("kernel runs" in turned.describe()) is (elements > 128)


@pytest.mark.parametrize("pixels", [300, 10000])
def test_tables_are_not_filled_for_few_pixels(pixels):
    plan = core.Plan(core.SPLIT, 1, (pixels, 7), (1, pixels), 0, (pixels,), None)
    if any(kernel.available and kernel.name == "planes_avx512vbmi" for kernel in core.kernels()):
        assert ("kernel planes_avx512vbmi" in plan.describe()) is (pixels > 1000)
    else:
        assert "kernel planes" not in plan.describe()  # others have no more than 4 elements a pixel


@pytest.mark.parametrize(
    ("direction", "parts", "by_shuffles"),
    [
        (core.SPLIT, 10, False),
        (core.SPLIT, 12, True),
        (core.SPLIT, 16, True),
        (core.JOIN, 12, False),
        (core.JOIN, 14, True),
    ],
)
@pytest.mark.parametrize(("height", "streamed_from"), [(4, 1 << 30), (4, 0), (8, 1 << 30)])
def test_many_parts_of_8_bytes_are_shuffled_where_permutes_are_slow(
    direction, parts, by_shuffles, height, streamed_from
):
    """Within the caches, by the profile of a CPU that prefers lower tiles."""
    if not any(kernel.available and kernel.name == "channels_avx512vbmi" for kernel in core.kernels()):
        pytest.skip("this CPU has no VBMI")
    try:
        core.set_profile(core.profile()._replace(cached_height=height, stream_copies=streamed_from, origin="settings"))
        text = core.Plan(direction, 8, (1000, parts), None, 1, (1,) * parts, None).describe()
    finally:
        core.set_profile(None)
    expected = "shuffle_avx2" if by_shuffles and height == 4 and streamed_from > 0 else "channels_avx512vbmi"
    assert f"kernel {expected}" in text


@pytest.mark.parametrize("kernel", core.kernels(), ids=lambda k: k.name)
def test_a_kernel_can_be_forced(kernel):
    """Each one takes at least one of the layouts, and copies it as slices do."""
    if not kernel.available:
        pytest.skip(f"this CPU has no {kernel.isa}")
    taken = 0
    for array, axis, lengths in layouts():
        shape = [(n, *array.shape[1:]) if axis == 0 else (*array.shape[:-1], n) for n in lengths]
        outputs = [np.full(s, 99, array.dtype) for s in shape]
        try:
            plan = core.Plan(
                core.SPLIT, array.itemsize, array.shape, array.strides, axis, lengths, None, kernel=kernel.name
            )
        except dml.NativeError as error:
            if error.status != KERNEL_REFUSED:
                raise
            continue
        assert kernel.name in plan.describe()
        pointers = core.pointers([core.buffer(output, True) for output in outputs])
        plan.run(core.address(array.__array_interface__["data"][0]), pointers)
        ends = np.cumsum(lengths)[:-1]
        assert all((x == y).all() for x, y in zip(outputs, np.split(array, ends, axis), strict=True))
        taken += 1
    assert taken


class Asked(np.ndarray):
    """Says its dtype by Python code, which the interpreter gives up where an exception is set already."""

    asked = 0

    @property
    def dtype(self):
        Asked.asked += 1
        return FLOAT64


FLOAT64 = np.dtype("f8")


@pytest.mark.parametrize("kind", [list, tuple])
def test_a_dispatch_calls_into_python_without_an_exception_set(kind):
    plan = core.Plan(core.SPLIT, 8, (6,), None, 0, (2, 4), None)
    whole = np.arange(6.0).view(Asked)
    parts = [np.zeros(2).view(Asked), np.zeros(4).view(Asked)]
    dispatcher = core.ArrayDispatcher(plan, Asked, FLOAT64, [((n,), (8,)) for n in (6, 2, 4)])
    Asked.asked = 0
    assert dispatcher.run(whole, kind(parts))
    assert Asked.asked == 3
    assert [part.tolist() for part in parts] == [[0, 1], [2, 3, 4, 5]]
    for wrong in (kind(parts[:1]), kind([*parts, parts[0]]), kind([]), None):
        assert not dispatcher.run(whole, wrong)


def test_the_core_reads_members_of_arrays():
    assert members_are_known()


@pytest.mark.parametrize("is_known", [True, False])
def test_a_dispatch_takes_arrays_as_they_were_planned_only(is_known):
    plan = core.Plan(core.SPLIT, 8, (6, 3), (48, 16), 0, (2, 4), None)
    layouts = [((6, 3), (48, 16)), ((2, 3), (24, 8)), ((4, 3), (24, 8))]
    run = core.ArrayDispatcher(plan, np.ndarray, FLOAT64, layouts, is_known).run
    del plan
    whole = np.arange(36.0).reshape(6, 6)[:, ::2]
    whole.flags.writeable = False
    parts = [np.zeros((2, 3)), np.zeros((4, 3))]
    assert run(whole, parts)
    assert (np.concatenate(parts) == whole).all()
    read_only = np.zeros((2, 3))
    read_only.flags.writeable = False
    for wrong in (read_only, np.zeros((3, 2)), np.zeros((2, 6))[:, ::2], np.zeros((2, 3), "f4"), np.zeros(6), [0] * 6):
        assert not run(whole, [wrong, parts[1]])
        assert not np.any(wrong)
    assert not run(whole.copy(), parts)
    assert not run(whole, [parts[0], parts[0]])
    with pytest.raises(TypeError):
        run(whole)


def test_slices_write_what_a_run_writes():
    whole = np.arange(100_000, dtype="f4").reshape(1000, 100)
    parts = [np.zeros((1000, n), "f4") for n in (30, 70)]
    plan = core.Plan(core.SPLIT, 4, whole.shape, None, 1, (30, 70), None)
    pointers = core.pointers([core.address(part.ctypes.data) for part in parts])
    count = plan.slices(4)
    assert count == 4
    for i in range(count):
        plan.run_slice(core.address(whole.ctypes.data), pointers, i, count)
    assert (np.hstack(parts) == whole).all()
    with pytest.raises(dml.NativeError, match="slice index"):
        plan.run_slice(core.address(whole.ctypes.data), pointers, 4, 4)


def test_a_profile_in_words():
    arm = core.Profile(0, 0, *3 * [(1 << 64) - 1], "lines", "CPUID")
    assert str(arm) == "by CPUID: kernels store in one way only"
    assert str(arm._replace(stream_turns=8 << 20, claim=2 << 20, fetch="pages")) == (
        "by CPUID: transposes past the caches from 8192 KiB on, with cache lines prefetched for writing from 2048 KiB "
        "on; memory is prefetched by pages"
    )


def test_profile():
    core.set_profile(None)
    machine = core.profile()
    forced = core.Profile(1 << 20, 2 << 20, 1 << 20, 8192, claim=4096, fetch="pages")
    try:
        core.set_profile(forced)
        assert core.profile() == forced
        plan = core.Plan(core.SPLIT, 4, (2, 4096), None, 1, (4096,), None)
        assert "copies beyond the second-level cache" in plan.describe()
        assert "transposed larger than the caches" in plan.describe()
        assert "the page after the next" in plan.describe()
    finally:
        core.set_profile(None)
    assert core.profile() == machine


@pytest.mark.parametrize(
    "layout", [((64, 3000), 1, (1000, 2000)), ((3000, 4), 1, (1, 1, 1, 1)), ((8, 70, 50), 1, (70,))]
)
def test_a_plan_is_the_same_whenever_the_profile_is(layout):
    sizes, axis, lengths = layout
    profiles = [
        core.Profile(1 << 20, 1 << 25, stream, stream, claim=claim, fetch=fetch)
        for stream in (0, core.NEVER)
        for claim in (0, core.NEVER)
        for fetch in core.FETCHES
    ]
    described = {}
    try:
        for profile in profiles + profiles[::-1]:
            core.set_profile(profile)
            plan = core.Plan(core.SPLIT, 4, sizes, None, axis, lengths, None).describe()
            assert described.setdefault(profile, plan) == plan
    finally:
        core.set_profile(None)
    assert len(set(described.values())) == 4  # plain, claimed, streamed by lines and by pages


@pytest.mark.parametrize(("text", "taken"), [("8192", True), ("8 MB", False), ("-1", False), ("", False)])
@pytest.mark.parametrize("member", ["stream_copies", "stream_turns", "claim"])
def test_profile_from_the_environment(monkeypatch, member, text, taken):
    monkeypatch.setenv(f"DMLSPLIT_{member.upper()}", text)
    code = f"from dmlsplit.native import core; p = core.profile(); print(p.{member}, p.origin)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout.split() == ["8192", "settings"]) is taken


@pytest.mark.parametrize("fetch", core.FETCHES)
def test_fetches_from_the_environment(monkeypatch, fetch):
    monkeypatch.setenv("DMLSPLIT_FETCH", fetch)
    code = "from dmlsplit.native import core; p = core.profile(); print(p.fetch, p.origin)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [fetch, "settings"]


@pytest.mark.parametrize(("switch", "origin"), [(None, "measuring"), ("0", "CPUID")])
def test_a_large_plan_measures_the_machine_unless_that_is_switched_off(monkeypatch, switch, origin):
    for name in ("STREAM_COPIES", "STREAM_TURNS", "CLAIM", "FETCH", "MEASURE", "PROFILE"):
        monkeypatch.delenv(f"DMLSPLIT_{name}", raising=False)
    if switch is not None:
        monkeypatch.setenv("DMLSPLIT_MEASURE", switch)
    code = (
        "from dmlsplit.native import core\n"
        "core.Plan(core.SPLIT, 1, (3, 60 << 20), None, 0, (1, 2), None)\n"
        "assert core.profile().origin == 'CPUID'\n"
        "print(core.measured_profile().origin)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [origin]


def test_refusals_name_the_part():
    with pytest.raises(dml.NativeError, match=r"parts\[1\]") as caught:
        core.Plan(core.SPLIT, 4, [4], None, 0, [2, 2], [4, 0])
    assert caught.value.status
    with pytest.raises(dml.NativeError, match="kernel"):
        core.Plan(core.SPLIT, 4, [4], None, 0, [4], None, kernel="none such")


def test_ranges():
    plan = core.Plan(core.SPLIT, 4, [2, 3], [-12, 4], 1, [1, 2], None)
    assert plan.whole_range == (-12, 12)
    assert [plan.part_range(i) for i in range(2)] == [(0, 8), (0, 16)]
    with pytest.raises(dml.NativeError):
        plan.part_range(2)


def test_validation_works_without_the_extension():
    code = """
import sys
sys.modules["dmlsplit._ffi"] = None
import dmlsplit as dml
x = dml.BufferTensorDesc(1, (1, 1, 6, 2))
d = dml.SplitOperatorDesc.from_lengths(x, 2, (2, 1, 3))
assert dml.validate(d).ok
try:
    dml.compile(d)
except dml.NativeError as error:
    assert "extension" in str(error)
else:
    sys.exit("compiled without the extension")
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_import_stays_light():
    """Neither numpy nor the extension is loaded until something is executed; a verdict loads its own rules only."""
    code = """
import sys
import dmlsplit
heavy = {"numpy", "dmlsplit._ffi", "click", "rich", "onnx"} & set(sys.modules)
assert not heavy, heavy
assert {"split", "compile", "loads", "__version__"} <= set(dir(dmlsplit))
tensor = dmlsplit.BufferTensorDesc(dmlsplit.TensorDataType.FLOAT32, (1, 1, 2, 2))
assert dmlsplit.validate(dmlsplit.SplitOperatorDesc.from_lengths(tensor, 2, (1, 1))).ok
rules = {name for name in sys.modules if name.startswith("dmlsplit.rules.") and "._" not in name}
assert rules == {f"dmlsplit.rules.{name}" for name in ("crash", "operator", "strides", "tensor", "total_size")}, rules
assert "dmlsplit.graphs" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = dml.nothing
