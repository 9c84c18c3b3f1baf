"""include/dmlsplit_capture.h: what a C or C++ program writes is read back, and judged by check."""

from __future__ import annotations

import ctypes
import json
import math
import os
import random
import re
import runpy
import shlex
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest

import dmlsplit as dml
from dmlsplit.formats import any_operator_json, cstruct
from dmlsplit.formats.graph_json import loads as load_graph
from dmlsplit.formats.json import OtherOperatorError, loads
from dmlsplit.system.errors import InputError
from tests.any_operators import accepted, any_of, drawn

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "tests" / "c" / "capture.c"
GRAPH_SOURCE = ROOT / "tests" / "c" / "capture_graph.c"
SOURCES = [ROOT / "csrc" / "dms_capture.c", ROOT / "csrc" / "dms_members.c"]
STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror"]
BUILDS = {
    "C99": ("CC", "cc", ["-std=c99", "-x", "c"]),
    "C++11": ("CXX", "c++", ["-std=c++11", "-x", "c++"]),
    "C99 after dmlsplit_directml.h": ("CC", "cc", ["-std=c99", "-x", "c", "-DCAPTURE_AFTER_DMLSPLIT"]),
}

UINT_MAX = 2**32 - 1
F32 = dml.TensorDataType.FLOAT32
WHOLE = dml.BufferTensorDesc(
    F32,
    (1, 1, 6, 2),
    strides=(12, 12, 2, 1),
    flags=dml.TensorFlags.OWNED_BY_DML,
    total_tensor_size_in_bytes=48,
    guaranteed_base_offset_alignment=256,
)
PLAIN = dml.BufferTensorDesc(F32, (1, 1, 6, 2), total_tensor_size_in_bytes=48)
PARTS = [
    dml.BufferTensorDesc(
        F32,
        (1, 1, 2, 2),
        strides=(UINT_MAX, 0, 16, 1),
        total_tensor_size_in_bytes=72,
        guaranteed_base_offset_alignment=16,
    ),
    dml.BufferTensorDesc(F32, (1, 1, 1, 2), total_tensor_size_in_bytes=8),
    dml.BufferTensorDesc(F32, (1, 1, 3, 2), total_tensor_size_in_bytes=24),
]
NO_DESC = dml.TensorDesc(dml.TensorType.BUFFER, None)
PARTS_WITHOUT_DESC = [PARTS[0], NO_DESC, PARTS[2]]
LSTM = 77
"""A DML_OPERATOR_TYPE."""
MOST = (UINT_MAX, 0, 2**31, *[0] * 61)
EXTREME = dml.TensorDesc(
    UINT_MAX,
    dml.BufferTensorDesc(
        UINT_MAX,
        MOST,
        strides=MOST,
        flags=UINT_MAX,
        total_tensor_size_in_bytes=2**64 - 1,
        guaranteed_base_offset_alignment=UINT_MAX,
    ),
)
BEYOND_DOUBLE = dml.BufferTensorDesc(
    dml.TensorDataType.INT64, MOST[:3], strides=MOST[:3], total_tensor_size_in_bytes=2**53 + 1
)


def split_of(sizes: tuple[int, ...] | None, count: int, strides: tuple[int, ...] | None = None) -> dml.OperatorDesc:
    """A split whose input has these sizes and strides, and a DimensionCount of its own."""
    whole = dml.BufferTensorDesc(F32, sizes, strides=strides, total_tensor_size_in_bytes=48, dimension_count=count)
    return dml.SplitOperatorDesc(whole, PARTS, 2)


# As tests/c/capture.c has them: the descriptor, what `dmlsplit check` says of it, and one of the rules that say so.
CASES: list[tuple[dml.OperatorDesc, str, str | None]] = [
    (dml.SplitOperatorDesc(WHOLE, PARTS, 2), "ok", None),
    (dml.SplitOperatorDesc(EXTREME, [EXTREME], UINT_MAX), "not ok", "tensor/type-not-buffer"),
    (dml.SplitOperatorDesc(None, PARTS, 2), "not ok", "tensor/null"),
    (dml.SplitOperatorDesc(NO_DESC, PARTS, 2), "not ok", "tensor/desc-null"),
    (dml.SplitOperatorDesc(PLAIN, None, 2, 3), "not ok", "split/outputs-null"),
    (dml.SplitOperatorDesc(PLAIN, PARTS_WITHOUT_DESC, 2), "not ok", "tensor/desc-null"),
    (split_of(None, 4), "not ok", "tensor/sizes-null"),
    (split_of((), 0, ()), "not ok", "tensor/dimension-count-out-of-range"),
    (split_of((), 65), "not ok", "tensor/dimension-count-out-of-range"),
    (split_of((), UINT_MAX, ()), "not ok", "tensor/dimension-count-out-of-range"),
    (
        dml.SplitOperatorDesc(dml.TensorDesc(dml.TensorType.INVALID, BEYOND_DOUBLE), PARTS, 2),
        "not ok",
        "tensor/type-not-buffer",
    ),
    (dml.SplitOperatorDesc(PLAIN, [], 2, 0), "not ok", "split/output-count-zero"),
    (dml.SplitOperatorDesc(PLAIN, [], 2, 2**20 + 1), "not ok", "split/output-count-exceeds-array"),
    (dml.SplitOperatorDesc(PLAIN, [], 2, UINT_MAX), "not ok", "split/output-count-exceeds-array"),
    (dml.SplitOperatorDesc(None, None, 0, 0), "not ok", "tensor/null"),
    (dml.JoinOperatorDesc(PARTS, PLAIN, 2), "ok", None),
    (dml.JoinOperatorDesc(None, None, 0, 2), "not ok", "join/inputs-null"),
    (dml.JoinOperatorDesc(PARTS_WITHOUT_DESC, NO_DESC, 2), "not ok", "tensor/desc-null"),
    (dml.JoinOperatorDesc([], PLAIN, 2, UINT_MAX), "not ok", "join/input-count-exceeds-array"),
]
OTHER_TYPES = [999, UINT_MAX]
MALFORMED = [
    '{"Type": "DML_OPERATOR_SPLIT", "Desc": null}',
    '{"Type": "DML_OPERATOR_JOIN", "Desc": null}',
    "null",
]
VERDICTS = [*[verdict for _, verdict, _ in CASES], *["not judged"] * len(OTHER_TYPES), *["not read"] * len(MALFORMED)]


@pytest.fixture(scope="module", params=list(BUILDS))
def lines(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What the program writes, built in each of the ways."""
    return written(request.param, SOURCE, tmp_path_factory.mktemp("capture") / "capture")


def written(build: str, source: Path, program: Path) -> list[str]:
    """The lines that a program writes."""
    variable, default, options = BUILDS[build]
    compiler = shlex.split(os.environ.get(variable, default))
    if shutil.which(compiler[0]) is None:
        pytest.skip(f"there is no compiler {compiler[0]} (${variable} names another)")
    sources = [str(source), *map(str, SOURCES)]
    command = [*compiler, *options, *STRICT, "-I", str(ROOT / "include"), *sources, "-o", str(program)]
    subprocess.run(command, check=True, timeout=300)
    done = subprocess.run([program, source], stdout=subprocess.PIPE, check=True, timeout=60)
    return done.stdout.decode("ascii").splitlines()


HALF, FULL = (dml.BufferTensorDesc(F32, (1, channels, 1, 16)) for channels in (4, 8))
EDGE = [dml.InputGraphEdgeDesc(0, 0, 0)]


def one(node: dml.SplitOperatorDesc | dml.AnyOperatorDesc) -> dml.GraphDesc:
    return dml.GraphDesc([None], [None], [node], EDGE, [dml.OutputGraphEdgeDesc(0, 0, 0)])


WINDOW = {
    "DimensionCount": 4,
    "InputWindowOffsets": (0, 4, 0, 0),
    "InputWindowSizes": (1, 4, 1, 16),
    "InputWindowStrides": (1, 1, 1, 1),
}
UNKNOWN = one(dml.AnyOperatorDesc.of_tensors(0, [None], [None]))
# As tests/c/capture_graph.c has them; None is malformed.
GRAPHS: list[dml.GraphDesc | None] = [
    dml.GraphDesc(
        [None],
        [None],
        [
            dml.SplitOperatorDesc(FULL, [HALF, HALF], 1),
            dml.AnyOperatorDesc.of_tensors("ACTIVATION_SIGMOID", [HALF], [HALF]),
            dml.AnyOperatorDesc.of_tensors("ELEMENT_WISE_MULTIPLY", [HALF, HALF], [HALF]),
        ],
        EDGE,
        [dml.OutputGraphEdgeDesc(2, 0, 0)],
        [dml.IntermediateGraphEdgeDesc(*edge) for edge in ((0, 1, 1, 0), (0, 0, 2, 0), (1, 0, 2, 1))],
    ),
    one(dml.AnyOperatorDesc.of_tensors("ACTIVATION_LINEAR", [FULL], [FULL], {"Alpha": 0.5, "Beta": -2})),
    one(dml.AnyOperatorDesc.of_tensors("ELEMENT_WISE_IDENTITY", [FULL], [FULL], {"ScaleBias": (2, 1)})),
    one(dml.AnyOperatorDesc.of_tensors("SLICE1", [FULL], [HALF], WINDOW)),
    one(dml.AnyOperatorDesc.of_tensors(999, [None], [None])),
    UNKNOWN,
    dml.GraphDesc([], [None], [dml.AnyOperatorDesc.of_tensors(0, [], [None])], [], UNKNOWN.output_edges),
    dml.GraphDesc([], [], [], [], []),
    None,
    None,
    None,
    UNKNOWN,
    *[None] * 4,
]
MISSING = ["Nodes", "InputEdges", "OutputEdges", "IntermediateEdges"]
"""The arrays that the last graphs lack, although their counts are not 0."""


@pytest.mark.parametrize("build", BUILDS)
def test_graphs_read_back(build, tmp_path):
    lines = written(build, GRAPH_SOURCE, tmp_path / "capture")
    assert len(lines) == len(GRAPHS)
    for line, desc in zip(lines, GRAPHS, strict=True):
        if desc is None:
            with pytest.raises(InputError):
                load_graph(line)
        else:
            assert load_graph(line) == desc
    answers = [json.loads(line) for line in check(lines, "--format", "jsonl").stdout.splitlines()]
    assert answers[0]["graph"] == {"compiles": True, "outputs": ["wrong"]}
    verdicts = [answer["graph"]["outputs"] if "graph" in answer else None for answer in answers]
    expected = [["right"], ["unknown"], ["right"], *[["unknown"]] * 3, [], *[None] * 3, ["unknown"], *[None] * 4]
    assert verdicts[1:] == expected
    for missing, line in zip(MISSING, lines[-len(MISSING) :], strict=True):
        assert [name for name, value in json.loads(line)["Desc"].items() if value is None] == [missing]


def test_generated_headers_are_those_of_the_schema():
    made = runpy.run_path(str(ROOT / "csrc" / "generate_operators.py"))
    assert (ROOT / "include" / "dmlsplit_operators.h").read_text("utf-8") == made["structs"]()
    assert (ROOT / "csrc" / "dms_members.inc").read_text("utf-8") == made["table"]()


COMPILERS = {
    name: [*command, *STRICT]
    for name, command in {
        "gcc, C": ["gcc", "-std=c99", "-xc"],
        "gcc, C++": ["g++", "-std=c++11", "-xc++"],
        "clang, C": ["clang", "-std=c17", "-xc"],
        "clang, C++": ["clang++", "-std=c++20", "-xc++"],
    }.items()
}
MINGW = {
    name: [*command, *STRICT]
    for name, command in {
        "mingw, C": ["x86_64-w64-mingw32-gcc", "-std=c99", "-xc"],
        "mingw, C++": ["x86_64-w64-mingw32-g++", "-std=c++11", "-xc++"],
    }.items()
}


def compiled(command: list[str], source: str, out: Path, *options: str) -> Path:
    if shutil.which(command[0]) is None:
        pytest.skip(f"there is no compiler {command[0]}")
    out.with_suffix(".c").write_text(source, "utf-8")
    sources = [] if "-c" in options else SOURCES
    line = [*command, *options, "-I", ROOT / "include", out.with_suffix(".c"), *sources, "-o", out]
    subprocess.run(line, check=True, timeout=300)
    return out


def places() -> list[tuple[str, str, int]]:
    """Each struct's size, and the offset of each of its members, as Python has them."""
    found = []
    for operator in dml.operators():
        layout = cstruct.operator_struct(operator.number)
        found.append((operator.struct, "", ctypes.sizeof(layout)))
        found += [(operator.struct, name, getattr(layout, name).offset) for name, *_ in layout._fields_]
    return found


@pytest.mark.parametrize("compiler", [*COMPILERS, *MINGW])
def test_every_struct_is_laid_out_as_python_has_it(compiler, tmp_path):
    """Compiled only: what is not so has a negative size."""
    checks = [
        f"(sizeof({struct}) == {number})" if not member else f"(offsetof({struct}, {member}) == {number})"
        for struct, member, number in places()
    ]
    lines = [f"typedef char check_{i}[{check} ? 1 : -1];" for i, check in enumerate(checks)]
    source = "\n".join(['#include "dmlsplit_capture.h"', *lines, ""])
    compiled({**COMPILERS, **MINGW}[compiler], source, tmp_path / "layout.o", "-c")


LIBRARY = """
#include "dmlsplit_capture.h"
#ifdef __cplusplus
extern "C"
#endif
int write_json(const char *path, const void *const *descs, size_t count);
int write_json(const char *path, const void *const *descs, size_t count)
{
    FILE *stream = fopen(path, "wb");
    int result = 0;
    for (size_t i = 0; stream != NULL && i < count; i++)
        result |= dmlsplit_write_json(stream, (const DML_OPERATOR_DESC *)descs[i]);
    return stream != NULL && fclose(stream) == 0 ? result : -1;
}
"""


@pytest.fixture(scope="module", params=COMPILERS)
def printed(request, tmp_path_factory):
    """A function that writes descriptors by the header, and returns the lines."""
    if sys.platform == "win32":
        pytest.skip("the compilers are those of other systems")
    folder = tmp_path_factory.mktemp("capture")
    library = compiled(COMPILERS[request.param], LIBRARY, folder / "capture.so", "-shared", "-fPIC")
    function = ctypes.CDLL(str(library)).write_json
    function.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t]

    def lines_of(descs):
        memory = [cstruct.write(desc) for desc in descs]
        addresses = (ctypes.c_void_p * len(memory))(*[each.operator_desc_address for each in memory])
        out = folder / "out.jsonl"
        assert function(str(out).encode(), addresses, len(memory)) == 0
        return out.read_text("ascii").splitlines()

    return lines_of


def test_every_operator_is_written_and_read_back(printed):
    """Accepted descriptors, and drawn ones: in C memory, by the header, as Python writes them."""
    rng = random.Random(7)
    rounded = [through_c(desc) for desc in accepted()]  # to FLOAT
    descs = [*rounded, *(drawn(operator, rng) for operator in dml.operators() for _ in range(8))]
    assert {desc.type for desc in map(any_of, descs)} == {operator.number for operator in dml.operators()}
    for desc, line in zip(descs, printed(descs), strict=True):
        assert through_c(desc) == desc
        assert any_operator_json.loads(line) == desc
        assert ordered(json.loads(line)) == ordered(any_operator_json.to_json(desc))


def through_c(desc):
    memory = cstruct.write(desc)
    return cstruct.read(memory.operator_desc_address)


def ordered(value):
    """A value in which the order of an object's keys counts."""
    if isinstance(value, dict):
        return [(key, ordered(each)) for key, each in value.items()]
    return [ordered(each) for each in value] if isinstance(value, list) else value


def test_numbers_that_json_lacks(printed):
    tensor = dml.BufferTensorDesc(1, (1, 1, 2, 2))
    numbers = [math.nan, math.inf, -math.inf, -0.0, 2.0**-149, 2.0**127, 0.1]
    descs = [
        dml.AnyOperatorDesc("ACTIVATION_ELU", {"InputTensor": tensor, "OutputTensor": tensor, "Alpha": number})
        for number in numbers
    ]
    halves = [-math.inf, math.inf, math.nan, -0.0, 2.0**-24, 2.0**-14 - 2.0**-24, -65504.0, 1.5, 1023.5, 1024.0, 2048.0]
    filled = {"OutputTensor": tensor, "ValueDataType": "FLOAT16"}
    descs += [dml.AnyOperatorDesc("FILL_VALUE_CONSTANT", {**filled, "Value": number}) for number in halves]
    read = [any_operator_json.loads(line).members for line in printed(descs)]
    found = [members["Alpha"] for members in read[: len(numbers)]] + [m["Value"] for m in read[len(numbers) :]]
    expected = [*(struct.unpack("f", struct.pack("f", number))[0] for number in numbers), *halves]
    assert [struct.pack("d", each) for each in found] == [struct.pack("d", each) for each in expected]


def test_operators_that_point_to_themselves(printed):
    desc = dml.AnyOperatorDesc("GEMM", next(d for d in accepted() if any_of(d).type == 54).members)
    fused = dml.AnyOperatorDesc("GEMM", {**desc.members, "FusedActivation": desc})
    memory = cstruct.write(fused)
    layout = cstruct.operator_struct("GEMM")
    layout.from_address(memory.address).FusedActivation = memory.operator_desc_address
    with pytest.raises(dml.DescriptorError, match="more than 8 nested fused operators"):
        cstruct.read(memory.operator_desc_address)

    class Written:  # what lines_of takes in the place of a descriptor
        operator_desc_address = memory.operator_desc_address

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cstruct, "write", lambda _: Written)
        (line,) = printed([fused])
    assert line.count("DML_OPERATOR_GEMM") == 1 + cstruct.MAX_FUSED
    assert json.loads(line)["Type"] == "DML_OPERATOR_GEMM"


def test_operators_that_are_several_activations_of_themselves(printed):
    """Three activations that are the operator again, 8 deep, would be 9,841 operators."""
    desc = next(d for d in accepted() if any_of(d).type == LSTM)
    activations = {"ActivationDescCount": 3, "ActivationDescs": desc.members["ActivationDescs"][:1] * 3}
    memory = cstruct.write(dml.AnyOperatorDesc("LSTM", {**desc.members, **activations}))
    layout = cstruct.operator_struct("LSTM")
    written = layout.from_address(memory.address)
    entry = ctypes.string_at(memory.operator_desc_address, 2 * ctypes.sizeof(ctypes.c_void_p))
    assert written.ActivationDescCount == 3
    ctypes.memmove(written.ActivationDescs, entry * 3, len(entry) * 3)

    class Written:
        operator_desc_address = memory.operator_desc_address

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cstruct, "write", lambda _: Written)
        (line,) = printed([desc])
    assert line.count("DML_OPERATOR_LSTM") <= 1 + 4096
    assert json.loads(line)["Type"] == "DML_OPERATOR_LSTM"


def check(lines: list[str], *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "dmlsplit", "check", "-", "--feature-level", "6_4", *options]
    return subprocess.run(command, input="\n".join(lines), capture_output=True, text=True, timeout=120)


def test_every_line_reads_back(lines):
    assert [loads(line) for line in lines[: len(CASES)]] == [desc for desc, _, _ in CASES]
    assert len(lines) == len(VERDICTS)


def test_form_is_that_of_dumps(lines):
    """Members, their order and their names are those of dmlsplit's own writer."""
    assert lines[: len(CASES)] == [dml.dumps(desc) for desc, _, _ in CASES]


def test_other_operators_and_what_is_none(lines):
    rest = lines[len(CASES) :]
    assert rest == [*(f'{{"Type": {number}}}' for number in OTHER_TYPES), *MALFORMED]
    for line in rest:
        with pytest.raises(OtherOperatorError if line.startswith('{"Type": ') and "Desc" not in line else InputError):
            loads(line)


def test_check_gives_a_verdict_for_each_line(lines):
    done = check(lines)
    verdicts = re.findall(r"^<stdin>:(\d+):\d+: (ok|not ok|not judged|not read)\b", done.stdout, re.MULTILINE)
    assert verdicts == [(str(number), verdict) for number, verdict in enumerate(VERDICTS, 1)]
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_check_explains(lines):
    done = check(lines[: len(CASES)], "--format", "jsonl")
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    for answer, (_, verdict, rule) in zip(answers, CASES, strict=True):
        assert answer["ok"] is (verdict == "ok")
        rules = {diagnostic["rule"] for diagnostic in answer["diagnostics"]}
        assert not rules if rule is None else rule in rules
    assert done.returncode == 1


def test_limits_are_those_of_cstruct():
    header = (ROOT / "csrc" / "dms_members.h").read_text("utf-8")
    limits = {name: int(limit) for name, limit in re.findall(r"^#define DMS_MOST_(\w+) (\d+)u", header, re.MULTILINE)}
    assert limits["ENTRIES"] == cstruct.MAX_DIMENSION_COUNT
    assert limits["STRUCTS"] == cstruct.MAX_TENSOR_COUNT
    assert limits["FUSED"] == cstruct.MAX_FUSED
