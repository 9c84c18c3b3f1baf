"""No output replaces a file that a model refers to, whether it is read or not.

Varied: the format and the place where it names the file; the command and the option that writes; the name by which the
output reaches the file; the process that reads the model. The other side: the same outputs beside the file are written.
"""

import json
import os

import numpy as np
import onnx
import pytest

from dmlsplit.cli import main
from dmlsplit.system.atomic_files import inputs_noted, note_input, write_file
from tests.cli.conftest import BAD, GOOD
from tests.models import graph, ints, model, node, value

SPLIT = node("Split", ["x", "len"], ["a", "b"], axis=1, name="s")
INPUTS = [value("x", [4, 2])]
IR = """<net name="m" version="11"><layers>
<layer id="0" name="x" type="Parameter" version="opset1"><data shape="4,6" element_type="f32"/>
<output><port id="0" precision="FP32"><dim>4</dim><dim>6</dim></port></output></layer>
<layer id="1" name="axis" type="Const" version="opset1"><data element_type="i64" shape="" offset="0" size="8"/>
<output><port id="0" precision="I64"/></output></layer>
<layer id="2" name="s" type="Split" version="opset1"><data num_splits="2"/>
<input><port id="0"><dim>4</dim><dim>6</dim></port><port id="1"/></input>
<output><port id="2" precision="FP32"><dim>4</dim><dim>3</dim></port>
<port id="3" precision="FP32"><dim>4</dim><dim>3</dim></port></output></layer>
</layers><edges><edge from-layer="0" from-port="0" to-layer="2" to-port="0"/>
<edge from-layer="1" from-port="0" to-layer="2" to-port="1"/></edges></net>"""


def external(name, *dims):
    """An int64 tensor whose elements are in data.bin."""
    tensor = onnx.TensorProto(name=name, data_type=onnx.TensorProto.INT64, dims=dims)
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="data.bin")
    return tensor


def onnx_model(*nodes, weights=(), sparse=(), training=(), functions=()):
    made = model(
        [SPLIT, *nodes],
        [*INPUTS, value("c", [], 9)],
        initializers=[ints("len", 1, 1), *weights],
        functions=functions,
        domains=["d"],
    )
    made.graph.sparse_initializer.extend(sparse)
    made.training_info.extend(training)
    return made.SerializeToString()


def lengths_outside():
    return model([SPLIT], INPUTS, initializers=[external("len", 2)]).SerializeToString()


def in_a_function():
    body = [node("Constant", [], ["o"], value=external("t", 9))]
    return onnx_model(
        functions=[onnx.helper.make_function("d", "f", [], ["o"], body, [onnx.helper.make_opsetid("", 18)])]
    )


def with_graph(*tensors):
    """A node with a graph in an attribute."""
    ends = [graph([node("Constant", [], [name], value_float=1.0)], [], [name]) for name in "te"]
    ends[0].initializer.extend(tensors)
    return node("If", ["c"], ["o"], then_branch=ends[0], else_branch=ends[1])


def dxdispatch(dispatchables=None, **resource):
    return json.dumps(
        {"resources": {"x": resource}, "dispatchables": dispatchables or {"s": json.loads(GOOD)}, "commands": []}
    )


SPARSE = onnx.SparseTensorProto(values=external("v", 2), indices=ints("i", 0, 1), dims=[4])
MODELS = {
    "lengths": ("m.onnx", lengths_outside),
    "weights": ("m.onnx", lambda: onnx_model(weights=[external("w", 1000)])),
    "weights of no type": (
        "m.onnx",
        lambda: onnx_model(weights=[onnx.TensorProto(external_data=external("w").external_data)]),
    ),
    "a sparse tensor": ("m.onnx", lambda: onnx_model(sparse=[SPARSE])),
    "an attribute": ("m.onnx", lambda: onnx_model(node("Constant", [], ["o"], value=external("t", 9)))),
    "a subgraph": ("m.onnx", lambda: onnx_model(with_graph(external("w", 5)))),
    "a function": ("m.onnx", in_a_function),
    "training": (
        "m.onnx",
        lambda: onnx_model(training=[onnx.TrainingInfoProto(algorithm=graph([], [], [], [external("w", 3)]))]),
    ),
    "an IR": ("data.xml", lambda: IR),
    "a resource": (
        "m.json",
        lambda: dxdispatch(initialValues={"sourcePath": "data.bin"}, initialValuesDataType="INT8"),
    ),
    "an operator in a file": (
        "m.json",
        lambda: dxdispatch(
            {"s": json.loads(GOOD), "t": {"type": "hlsl", "sourcePath": "data.bin"}}, initialValues="deferred"
        ),
    ),
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A model's folder, with a file of data under several names; and another model."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "data.bin").write_bytes((1).to_bytes(8, "little") * 1000)
    os.link("m/data.bin", "hard.bin")
    (tmp_path / "soft.bin").symlink_to("hard.bin")
    (tmp_path / "here").symlink_to("m")
    (tmp_path / "good.json").write_text(GOOD)
    return tmp_path


def put(folder, named):
    file, content = MODELS[named]
    content = content()
    path = folder / "m" / file
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return os.path.join("m", file)


def files(folder):
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


WRITING = {
    "check -o": ["check", "MODEL", "-o", "OUT"],
    "check --format html": ["check", "MODEL", "--format", "html", "-o", "OUT"],
    "check --write-baseline": ["check", "MODEL", "--write-baseline", "OUT"],
    "check -o --write-baseline": ["check", "MODEL", "-o", "report.txt", "--write-baseline", "OUT"],
    "check --write-baseline -o": ["check", "MODEL", "--write-baseline", "known.json", "-o", "OUT"],
    "check --jobs": ["check", "good.json", "MODEL", "good.json", "--jobs", "2", "-o", "OUT"],
    "check --jobs --write-baseline": ["check", "good.json", "MODEL", "--jobs", "2", "--write-baseline", "OUT"],
    "draw": ["draw", "MODEL", "-o", "OUT"],
    "legalize": ["legalize", "MODEL", "--feature-level", "3_0", "-o", "OUT"],
}


EACH = pytest.mark.parametrize(
    ("writing", "named"),
    [
        # Processes take long, and one kind of file shows that they hand names on.
        pytest.param(writing, named, marks=[pytest.mark.slow] * ("--jobs" in writing and named != "weights"))
        for writing in WRITING
        for named in ("weights", "an IR", "a resource")
    ],
)


def refused(folder, args, capsys):
    """Runs a command that has to end with one error, and to leave everything as it was."""
    before = files(folder)
    status = main(args)
    err = capsys.readouterr().err
    assert (status, "would replace" in err.splitlines()[-1]) == (2, True), err
    assert files(folder) == before
    return err


@pytest.mark.parametrize("named", MODELS)
@pytest.mark.parametrize("writing", ["check -o", "check --write-baseline", "legalize"])
def test_every_place_that_names_a_file(folder, capsys, named, writing):
    found = put(folder, named)
    args = [{"MODEL": found, "OUT": "m/data.bin"}.get(arg, arg) for arg in WRITING[writing]]
    refused(folder, args, capsys)


@EACH
def test_every_option_that_writes(folder, capsys, named, writing):
    found = put(folder, named)
    err = refused(folder, [{"MODEL": found, "OUT": "m/data.bin"}.get(arg, arg) for arg in WRITING[writing]], capsys)
    if named != "an IR":  # that one is known before anything is read
        assert err == f"dmlsplit: m/data.bin: this would replace a file that {found} refers to\n"
    assert err.count("\n") == 1


@pytest.mark.parametrize("name", ["./m/data.bin", "here/data.bin", "hard.bin", "soft.bin", "m/../hard.bin"])
@pytest.mark.parametrize("named", ["weights", "an IR", "a resource"])
def test_every_name_of_the_file(folder, capsys, name, named):
    refused(folder, ["check", put(folder, named), "-o", name], capsys)


@EACH
def test_another_file_is_written(folder, capsys, named, writing):
    (folder / "m" / "other.bin").write_bytes(b"old")
    args = [{"MODEL": put(folder, named), "OUT": "m/other.bin"}.get(arg, arg) for arg in WRITING[writing]]
    assert main(args) == 0
    assert (folder / "m" / "other.bin").read_bytes() != b"old"


@pytest.mark.parametrize("named", [name for name, (file, _) in MODELS.items() if file == "m.onnx"])
def test_a_model_that_is_written_back(folder, capsys, named):
    found = put(folder, named)
    os.link("m/data.bin", "m/data.onnx")
    # a level, since no ONNX Runtime loads the model whose lengths are in another file
    refused(folder, ["legalize", found, "--feature-level", "6_4", "-o", "m/data.onnx"], capsys)


def test_a_file_that_is_not_there(folder, capsys):
    """What the model lacks is not made up of something else."""
    found = put(folder, "weights")
    os.unlink("m/data.bin")
    refused(folder, ["check", found, "-o", "m/data.bin"], capsys)


def test_a_model_that_is_wrong(folder, capsys):
    """A fault that ends the reading comes after its files are known."""
    found = put(folder, "weights")
    for args in (["--dim", "nobody=1"], ["--dim", "nobody=1", "--jobs", "2"]):
        err = refused(folder, ["check", found, *args, "good.json", "-o", "hard.bin"], capsys)
        assert err.splitlines()[-1] == f"dmlsplit: hard.bin: this would replace a file that {found} refers to"


def test_a_source_in_the_current_folder(folder, capsys):
    """DxDispatch looks there for what is not beside the model."""
    found = put(folder, "a resource")
    os.unlink("m/data.bin")
    os.rename("hard.bin", "data.bin")
    refused(folder, ["check", found, "-o", "data.bin"], capsys)


def test_standard_input(folder, capsys, monkeypatch):
    text = dxdispatch(initialValues={"sourcePath": "hard.bin"})
    with open("m.json", "w+") as stream:
        stream.write(text)
        stream.seek(0)
        monkeypatch.setattr("sys.stdin", stream)
        refused(folder, ["check", "-", "-o", "hard.bin"], capsys)


def test_pieces(folder, capsys):
    """A descriptor may come from a model."""
    content = onnx.load_from_string(onnx_model(weights=[external("w", 3)]))
    content.graph.initializer[-1].external_data[0].value = "x.1.bin"
    (folder / "d.onnx").write_bytes(content.SerializeToString())
    (folder / "x.bin").write_bytes(bytes(32))
    (folder / "x.1.bin").write_bytes(b"weights")
    refused(folder, ["split", "x.bin", "--descriptor", "d.onnx", "-o", ".", "--force"], capsys)


@pytest.mark.parametrize("target", ["x.npy", "m.json", "hard.npy"])
def test_what_a_run_reads(folder, capsys, target):
    np.save("x.npy", np.arange(12, dtype=np.float32))
    os.link("x.npy", "hard.npy")
    resources = {"x": {"initialValues": {"sourcePath": "x.npy"}}}
    commands = [{"type": "writeFile", "resource": "x", "targetPath": target}]
    (folder / "m.json").write_text(json.dumps({"resources": resources, "dispatchables": {}, "commands": commands}))
    refused(folder, ["run", "m.json"], capsys)


def test_outside_of_a_command_nothing_is_kept(folder):
    """A program may do with its files what it likes."""
    note_input("hard.bin", "mine")
    write_file("hard.bin", b"new")
    with inputs_noted() as outer:
        with inputs_noted() as inner:
            note_input("hard.bin", "mine")
        write_file("hard.bin", b"newer")
    assert (len(inner), len(outer)) == (1, 0)


def test_the_verdict_of_a_faulty_model_is_written(folder, capsys):
    """Nothing else than the output's name counts."""
    (folder / "bad.json").write_text(BAD)
    assert main(["check", "bad.json", put(folder, "weights"), "-o", "report.txt"]) == 1
    assert (folder / "report.txt").exists()
