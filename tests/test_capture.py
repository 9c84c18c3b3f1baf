"""include/dmlsplit_capture.h: what a C or C++ program writes is read back, and judged by check."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import dmlsplit as dml
from dmlsplit.formats import cstruct
from dmlsplit.formats.graph_json import loads as load_graph
from dmlsplit.formats.json import OtherOperatorError, loads
from dmlsplit.graphs.operators import OPERATORS
from dmlsplit.system.errors import InputError

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "tests" / "c" / "capture.c"
GRAPH_SOURCE = ROOT / "tests" / "c" / "capture_graph.c"
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
OTHER_TYPES = [60, UINT_MAX]
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
    command = [*compiler, *options, *STRICT, "-I", str(ROOT / "include"), str(source), "-o", str(program)]
    subprocess.run(command, check=True, timeout=300)
    done = subprocess.run([program, source], stdout=subprocess.PIPE, check=True, timeout=60)
    return done.stdout.decode("ascii").splitlines()


HALF, FULL = (dml.BufferTensorDesc(F32, (1, channels, 1, 16)) for channels in (4, 8))
EDGE = [dml.InputGraphEdgeDesc(0, 0, 0)]


def one(node: dml.SplitOperatorDesc | dml.NeighbourOperatorDesc) -> dml.GraphDesc:
    return dml.GraphDesc([None], [None], [node], EDGE, [dml.OutputGraphEdgeDesc(0, 0, 0)])


WINDOW = {
    "DimensionCount": 4,
    "InputWindowOffsets": (0, 4, 0, 0),
    "InputWindowSizes": (1, 4, 1, 16),
    "InputWindowStrides": (1, 1, 1, 1),
}
UNKNOWN = one(dml.NeighbourOperatorDesc(0, [None], [None]))
# As tests/c/capture_graph.c has them; None is malformed.
GRAPHS: list[dml.GraphDesc | None] = [
    dml.GraphDesc(
        [None],
        [None],
        [
            dml.SplitOperatorDesc(FULL, [HALF, HALF], 1),
            dml.NeighbourOperatorDesc("ACTIVATION_SIGMOID", [HALF], [HALF]),
            dml.NeighbourOperatorDesc("ELEMENT_WISE_MULTIPLY", [HALF, HALF], [HALF]),
        ],
        EDGE,
        [dml.OutputGraphEdgeDesc(2, 0, 0)],
        [dml.IntermediateGraphEdgeDesc(*edge) for edge in ((0, 1, 1, 0), (0, 0, 2, 0), (1, 0, 2, 1))],
    ),
    one(dml.NeighbourOperatorDesc("ACTIVATION_LINEAR", [FULL], [FULL], {"Alpha": 0.5, "Beta": -2})),
    one(dml.NeighbourOperatorDesc("ELEMENT_WISE_IDENTITY", [FULL], [FULL], {"ScaleBias": (2, 1)})),
    one(dml.NeighbourOperatorDesc("SLICE1", [FULL], [HALF], WINDOW)),
    one(dml.NeighbourOperatorDesc(53, [None], [None])),
    UNKNOWN,
    dml.GraphDesc([], [None], [dml.NeighbourOperatorDesc(0, [], [None])], [], UNKNOWN.output_edges),
    dml.GraphDesc([], [], [], [], []),
    None,
    None,
    None,
    UNKNOWN,
]


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
    expected = [["right"], ["unknown"], ["right"], *[["unknown"]] * 3, [], *[None] * 3, ["unknown"]]
    assert verdicts[1:] == expected


def test_the_header_knows_the_members_of_the_table():
    header = (ROOT / "include" / "dmlsplit_capture.h").read_text("utf-8")
    cases = re.findall(r"((?:    |)case [^\n]*)\n\s*return \"([^\"]*)\";", header)
    known = {
        int(number): members.split(" ") for labels, members in cases for number in re.findall(r"case (\d+):", labels)
    }
    rows = {row.number: row for row in OPERATORS if row.members}
    assert known.keys() == rows.keys()
    for number, words in known.items():
        assert tuple(words[1::2]) == rows[number].members[: len(words) // 2]
        assert [name for kind, name in zip(words[::2], words[1::2], strict=True) if kind == "T"] == [
            *rows[number].tensors
        ]


def test_the_header_declares_the_structs_and_numbers_of_the_table():
    """Where DirectML.h is not included."""
    header = (ROOT / "include" / "dmlsplit_capture.h").read_text("utf-8")
    structs = dict(
        re.findall(r"^typedef struct DML_(\w+)_OPERATOR_DESC \{\n(.*?)^\} DML_\1_OPERATOR_DESC;", header, re.M | re.S)
    )
    members = {name: tuple(re.findall(r"(\w+);", body)) for name, body in structs.items()}
    assert members == {row.name: row.members for row in OPERATORS if row.members}
    basic = (ROOT / "include" / "dmlsplit_directml.h").read_text("utf-8")
    numbers = {name: int(number) for name, number in re.findall(r"\bDML_OPERATOR_(\w+) = (\d+)", basic)}
    assert numbers == {"INVALID": 0, **{row.name: row.number for row in OPERATORS}}
    levels = {int(value, 16) for value in re.findall(r"\bDML_FEATURE_LEVEL_\w+ = (0x\w+)", basic)}
    assert levels == {int(level) for level in dml.FeatureLevel}
    for name, value in re.findall(r"\bDML_FEATURE_LEVEL_(\w+) = (0x\w+)", basic):
        assert dml.FeatureLevel(int(value, 16)).name.endswith(name)


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
    header = (ROOT / "include" / "dmlsplit_capture.h").read_text("utf-8")
    limits = dict(re.findall(r"^#define (DMLSPLIT_CAPTURE_MAX_\w+) (\d+)u", header, re.MULTILINE))
    assert int(limits["DMLSPLIT_CAPTURE_MAX_DIMENSIONS"]) == cstruct.MAX_DIMENSION_COUNT
    assert int(limits["DMLSPLIT_CAPTURE_MAX_TENSORS"]) == cstruct.MAX_TENSOR_COUNT
