"""legalize of ONNX models that are written back."""

from __future__ import annotations

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

from tests.models import model, node, value  # noqa: E402

LENGTHS = onnx.numpy_helper.from_array(np.array([1, 3]), "l")
INPUTS, OUTPUTS = [value("x", [1, 4, 2, 2, 2])], [value("a", [1, 1, 2, 2, 2]), value("b", [1, 3, 2, 2, 2])]


def save(path, **fields):
    nodes = [node("Split", ["x", "l"], ["a", "b"], axis=1, name="split")]
    made = model(nodes, INPUTS, OUTPUTS, opset=13, initializers=[LENGTHS], ir_version=8)
    onnx.save(made, path, **fields)
    return made


def test_a_model_is_written(cli, tmp_path):
    save(tmp_path / "m.onnx")
    result = cli("legalize", "m.onnx", "--feature-level", "2_0", "-o", "fixed.onnx")
    assert result.status == 0
    assert result.out.splitlines() == [
        "m.onnx: 1 node changed for feature level 2_0",
        "  split: merge-dimensions: its tensors have 5 dimensions, but the target accepts 4",
        "fixed.onnx: written",
    ]
    onnx.checker.check_model(str(tmp_path / "fixed.onnx"), full_check=True)
    assert cli("check", "fixed.onnx", "--feature-level", "2_0").status == 0
    again = cli("legalize", "fixed.onnx", "--feature-level", "2_0", "-o", "again.onnx")
    assert again.out.splitlines()[0] == "fixed.onnx: nothing to legalize for feature level 2_0"
    assert (tmp_path / "again.onnx").read_bytes() == (tmp_path / "fixed.onnx").read_bytes()


@pytest.mark.parametrize("option", ["--shape=x:1,4,2,2,2", "--dim=N=2"])
def test_who_gives_sizes_hears_how_a_file_gets_them(cli, tmp_path, option):
    save(tmp_path / "m.onnx")
    status, _, err = cli("legalize", "m.onnx", "--onnxruntime", "1.24.4", "-o", "fixed.onnx", option)
    assert (status, (tmp_path / "fixed.onnx").exists()) == (2, False)
    assert "--free-dimension fixes sizes in the file" in err


def save_open_gate(path, data=b""):
    """A GLU with an open size: right, since it is in no fused graph; `data` are fields that onnx.proto lacks."""
    split = node("Split", ["x"], ["v", "g"], axis=1, name="split")
    gate = [node("Sigmoid", ["g"], ["s"]), node("Mul", ["v", "s"], ["y"])]
    made = model([split, *gate], [value("x", ["N", 4, "M"])], [value("y", ["N", 2, "M"])], opset=13, ir_version=8)
    path.write_bytes(made.SerializeToString() + data)
    return made


def test_free_dimensions_are_written_and_the_graph_that_they_make_is_mended(cli, tmp_path):
    save_open_gate(tmp_path / "m.onnx", b"\xfa\x7f\x04kept")
    sizes = ["--free-dimension", "N=3", "--free-dimension", "M=2"]
    assert cli("check", "m.onnx", "--onnxruntime", "1.24.4", *sizes).status == 1
    result = cli("legalize", "m.onnx", "--onnxruntime", "1.24.4", *sizes, "-o", "fixed.onnx")
    assert (result.status, result.out.splitlines()[:3]) == (
        0,
        [
            "m.onnx: the model and 1 node changed for onnxruntime 1.24.4",
            "  the model: fix-sizes: the size N is 3",
            "  the model: fix-sizes: the size M is 2",
        ],
    )
    written = onnx.load(tmp_path / "fixed.onnx")
    (x,), (y,) = written.graph.input, written.graph.output
    assert [dim.dim_value for dim in (*x.type.tensor_type.shape.dim, *y.type.tensor_type.shape.dim)] == [
        3,
        4,
        2,
        3,
        2,
        2,
    ]
    assert (tmp_path / "fixed.onnx").read_bytes().endswith(b"\xfa\x7f\x04kept")
    assert cli("check", "fixed.onnx", "--onnxruntime", "1.24.4", "--require-capture").status == 0
    onnx.checker.check_model(written, full_check=True)


def test_free_dimensions_are_written_into_the_graphs_of_nodes(cli, tmp_path):
    inner = onnx.helper.make_graph([node("Neg", ["x"], ["n"], name="neg")], "g", [], [value("n", ["N", 4])])
    branches = {"then_branch": inner, "else_branch": inner}
    inputs = [value("c", [], onnx.TensorProto.BOOL), value("x", ["N", 4])]
    made = model([node("If", ["c"], ["y"], **branches)], inputs, [value("y", ["N", 4])], opset=13, ir_version=8)
    onnx.save(made, tmp_path / "m.onnx")
    assert cli("legalize", "m.onnx", "--onnxruntime", "1.24.4", "--free-dimension", "N=3", "-o", "f.onnx").status == 0
    graph = onnx.load(tmp_path / "f.onnx").graph
    held = [graph, *(attribute.g for attribute in graph.node[0].attribute)]
    assert [each.output[0].type.tensor_type.shape.dim[0].dim_value for each in held] == [3, 3, 3]


def test_a_free_dimension_that_the_model_lacks(cli, tmp_path):
    save_open_gate(tmp_path / "m.onnx")
    result = cli("legalize", "m.onnx", "--onnxruntime", "1.24.4", "--free-dimension", "K=3", "-o", "f.onnx")
    assert (result.status, (tmp_path / "f.onnx").exists()) == (2, False)
    assert "there is no symbolic dimension 'K'" in result.err


@pytest.mark.parametrize("option", ["--dry-run", "--diff"])
def test_it_can_be_asked_without_writing(cli, tmp_path, option):
    save(tmp_path / "m.onnx")
    result = cli("legalize", "m.onnx", "--feature-level", "2_0", option)
    assert result.status == 0
    assert ("    - a, b = Split(x, l) axis=1" in result.out.splitlines()) == (option == "--diff")
    assert [path.name for path in tmp_path.iterdir()] == ["m.onnx"]


def test_a_runtime_is_asked_about_the_model_not_about_its_operators_alone(cli, tmp_path):
    """Alone, the Split of a GLU is accepted as it is; in its graph the product is computed wrongly."""
    split = node("Split", ["x"], ["v", "g"], axis=1, name="split")
    gate = [node("Sigmoid", ["g"], ["s"]), node("Mul", ["v", "s"], ["y"])]
    onnx.save(model([split, *gate], [value("x", [1, 4])], [value("y", [1, 2])], opset=13, ir_version=8), "m.onnx")
    for asked in (["--onnxruntime", "1.24.4"], ["--directml", "1.15.4"], []):
        result = cli("legalize", "m.onnx", *asked)
        assert (result.status, result.out) == cli("legalize", "m.onnx", *asked, "--dry-run")[:2]
        by = " ".join(asked).removeprefix("--") or "directml 1.15.4"
        assert result.out.startswith(f"m.onnx: 1 node changed for {by}\n")
    assert [path.name for path in tmp_path.iterdir()] == ["m.onnx"]
    alone = cli("legalize", "m.onnx", "--onnxruntime", "1.24.4", "--shape", "x:1,4")
    assert (alone.status, "accepted as it is" in alone.out) == (0, True)


def test_of_many_changes_alike_the_first_are_shown(cli, tmp_path):
    nodes = [node("Split", ["x", "l"], [f"a{i}", f"b{i}"], axis=1, name=f"split{i}") for i in range(12)]
    outputs = [value(f"{name}{i}", shape) for i in range(12) for name, shape in (("a", [1, 1, 2, 2, 2]), ("b", None))]
    onnx.save(model(nodes, INPUTS, outputs, opset=13, initializers=[LENGTHS], ir_version=8), tmp_path / "m.onnx")
    lines = cli("legalize", "m.onnx", "--feature-level", "2_0", "--dry-run").out.splitlines()
    assert (lines[0], len(lines)) == ("m.onnx: 12 nodes changed for feature level 2_0", 12)
    assert lines[-1] == "  2 more changed by merge-dimensions (--verbose shows all)"
    everything = cli("legalize", "m.onnx", "--feature-level", "2_0", "--dry-run", "--verbose").out.splitlines()
    assert everything[:11] == lines[:11]
    assert ["merge-dimensions" in line for line in everything[1:]] == [True] * 12
    assert cli("legalize", "m.onnx", "--feature-level", "2_0", "--diff").out.count("\n    - ") == 12


def test_a_dry_run_writes_nothing(cli, tmp_path):
    save(tmp_path / "m.onnx")
    assert cli("legalize", "m.onnx", "--feature-level", "2_0", "-o", "fixed.onnx", "--dry-run").status == 0
    assert not (tmp_path / "fixed.onnx").exists()


def test_what_cannot_be_mended_is_not_written(cli, tmp_path):
    nodes = [node("Split", ["x", "l"], ["a", "b"], axis=1, name="split")]
    types = [value(v.name, [d.dim_value for d in v.type.tensor_type.shape.dim], 7) for v in (*INPUTS, *OUTPUTS)]
    onnx.save(model(nodes, types[:1], types[1:], opset=13, initializers=[LENGTHS], ir_version=8), tmp_path / "m.onnx")
    result = cli("legalize", "m.onnx", "--feature-level", "2_0", "-o", "fixed.onnx")
    assert result.status == 1
    assert "  split: the target does not accept INT64; ONNX has no lossless cast" in result.out
    assert result.err == "dmlsplit: fixed.onnx: not written, since m.onnx cannot be legalized for feature level 2_0\n"
    assert not (tmp_path / "fixed.onnx").exists()


def test_the_input_is_not_replaced(cli, tmp_path):
    save(tmp_path / "m.onnx")
    data = (tmp_path / "m.onnx").read_bytes()
    assert cli("legalize", "m.onnx", "--feature-level", "2_0", "-o", "./m.onnx").status == 2
    assert (tmp_path / "m.onnx").read_bytes() == data


def test_the_input_is_not_replaced_by_way_of_a_folder_that_is_not_there(cli, tmp_path):
    save(tmp_path / "m.onnx")
    data = (tmp_path / "m.onnx").read_bytes()
    result = cli("legalize", "m.onnx", "--feature-level", "2_0", "-o", "none/../m.onnx")
    assert result.status == 2
    assert "would replace an input file" in result.err
    assert (tmp_path / "m.onnx").read_bytes() == data


@pytest.mark.parametrize("content", [b"", b"garbage", b"\x3a\x05"])
def test_what_is_no_model_is_named(cli, tmp_path, content):
    (tmp_path / "m.onnx").write_bytes(content)
    result = cli("legalize", "m.onnx", "-o", "fixed.onnx")
    assert result.status == 2
    assert result.err.startswith("dmlsplit: m.onnx: it is not an ONNX model: ")
    assert result.err.count("\n") == 1


@pytest.mark.parametrize("name", ["operator.json", "model.xml", "model", "-"])
def test_only_an_onnx_model_is_written_as_one(cli, tmp_path, name):
    result = cli("legalize", name, "-o", "fixed.onnx")
    assert result.status == 2
    assert "fixed.onnx: an ONNX model is written only if FILE is one" in result.err
    assert not (tmp_path / "fixed.onnx").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ("m.onnx", "-o", "fixed.onnx", "--dim", "N=2"),
        ("m.onnx", "-o", "fixed.json", "--dry-run"),
        ("m.onnx", "-o", "fixed.json", "--copy-data"),
    ],
)
def test_usage(cli, tmp_path, arguments):
    save(tmp_path / "m.onnx")
    result = cli("legalize", *arguments, "--feature-level", "2_0")
    assert result.status == 2
    assert [path.name for path in tmp_path.iterdir()] == ["m.onnx"]


@pytest.mark.parametrize("data", [b"", b"\x00\xff", b"not a model at all"])
def test_what_is_no_model(cli, tmp_path, data):
    (tmp_path / "m.onnx").write_bytes(data)
    result = cli("legalize", "m.onnx", "-o", "fixed.onnx")
    assert result.status == 2
    assert result.err.count("\n") == 1
    assert not (tmp_path / "fixed.onnx").exists()


class TestExternalData:
    @pytest.fixture(autouse=True)
    def _model(self, tmp_path):
        (tmp_path / "in").mkdir()
        save(tmp_path / "in/m.onnx", save_as_external_data=True, location="weights.bin", size_threshold=0)
        self.data = (tmp_path / "in/weights.bin").read_bytes()

    def test_it_stays_where_it_is(self, cli, tmp_path):
        assert cli("legalize", "in/m.onnx", "--feature-level", "2_0", "-o", "in/fixed.onnx").status == 0
        assert sorted(path.name for path in (tmp_path / "in").iterdir()) == ["fixed.onnx", "m.onnx", "weights.bin"]
        onnx.checker.check_model(str(tmp_path / "in/fixed.onnx"))

    def test_elsewhere_it_would_not_be_found(self, cli, tmp_path):
        result = cli("legalize", "in/m.onnx", "--feature-level", "2_0", "-o", "out/fixed.onnx")
        assert result.status == 2
        assert "weights.bin" in result.err
        assert "--copy-data" in result.err
        assert not (tmp_path / "out").exists()

    def test_it_is_copied_if_that_is_asked_for(self, cli, tmp_path):
        result = cli("legalize", "in/m.onnx", "--feature-level", "2_0", "-o", "out/fixed.onnx", "--copy-data")
        assert result.status == 0
        assert result.out.splitlines()[-2:] == ["out/weights.bin: written", "out/fixed.onnx: written"]
        assert (tmp_path / "out/weights.bin").read_bytes() == self.data
        onnx.load(str(tmp_path / "out/fixed.onnx"))

    def test_nothing_there_is_replaced_by_it(self, cli, tmp_path):
        (tmp_path / "out").mkdir()
        (tmp_path / "out/weights.bin").write_bytes(b"mine")
        result = cli("legalize", "in/m.onnx", "--feature-level", "2_0", "-o", "out/fixed.onnx", "--copy-data")
        assert result.status == 2
        assert [path.name for path in (tmp_path / "out").iterdir()] == ["weights.bin"]
        assert (tmp_path / "out/weights.bin").read_bytes() == b"mine"


def test_a_folder_is_refused_in_one_line(cli, tmp_path):
    for arguments in ([], ["-o", "fixed.onnx"], ["--dry-run"]):
        result = cli("legalize", ".", "--feature-level", "2_0", *arguments)
        assert (result.status, result.out) == (2, "")
        (line,) = result.err.splitlines()
        assert line.startswith("dmlsplit: '.' is a folder; one model is rewritten at a time")
