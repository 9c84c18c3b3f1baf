"""DxDispatch models: what they print and write, and what is refused, with its place."""

import json
import os
import signal
from pathlib import Path

import numpy as np
import pytest

from dmlsplit.formats.dxdispatch import read, run
from dmlsplit.system import atomic_files
from dmlsplit.system.errors import InputError
from tests.formats.models import dispatch, printed, split, values

ROOT = Path(__file__).parents[2]
MODELS = ROOT / "tests/data/dxdispatch"


@pytest.mark.parametrize(
    ("path", "output"),
    [
        (
            ROOT / "examples/split.json",
            """\
Resource 'Top': 1, 2, 3, 4
Resource 'Middle': 5, 6
Resource 'Bottom': 7, 8, 9, 10, 11, 12
Resource 'Left': 1, 3, 5, 7, 9, 11
Resource 'Right': 2, 4, 6, 8, 10, 12
""",
        ),
        (MODELS / "split_rank1.json", "Resource 'P': 1, 2\nResource 'Q': 3, 4\nResource 'R': 5, 6\n"),
        (MODELS / "split_float16.json", "Resource 'L': 0, 1, 6, 7\nResource 'R': 2, 3, 4, 5, 8, 9, 10, 11\n"),
        (MODELS / "join_offset.json", "Resource 'All': 1, 2, 3, -0.5, nan, 5, 6, 7, 8, 9\n"),
        (MODELS / "split_owned.json", "Resource 'A': 1, 2\nResource 'B': 3, 4\nResource 'Weights': 9, 8, 7, 6\n"),
    ],
    ids=lambda value: value.name if isinstance(value, Path) else "",
)
def test_models(path, output):
    model = read(path)
    for _ in range(2):  # running leaves the model as it was
        text, result = printed(model)
        assert text == output
        assert (result.reports, result.failures, result.exit_status) == ((), (), 0)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"dispatchables": {"g": {"type": "GEMM", "desc": {}}}, "commands": []}, "operators that dmlsplit runs"),
        ({"dispatchables": {"h": {"type": "hlsl", "sourcePath": "x"}}, "commands": []}, "'hlsl' is neither"),
        ({"dispatchables": {"s": {"type": "SPLIT"}}, "commands": []}, "Field 'InputTensor' is required."),
        ({"commands": [{"type": "wait"}]}, "'wait' is not dispatch, print or writeFile"),
        ({"commands": [{"type": "print"}]}, "Field 'resource' is required."),
        ({"commands": [{"type": "print", "resource": "XX"}]}, "no resource 'XX'"),
        ({"commands": [dispatch("t")]}, "no dispatchable 't'"),
        ({"commands": [{"type": "dispatch", "dispatchable": "s"}]}, "Field 'bindings' is required."),
        ({"commands": [dispatch(inputs="W")]}, "no resource 'W'"),
        ({"commands": [dispatch(inputs={"name": "W"})]}, "no resource 'W'"),
        ({"commands": [dispatch(inputs=7)]}, "the name of a resource or an object, not 7"),
        ({"commands": [dispatch(inputs={"name": "X", "elementOffset": -1})]}, "expected an unsigned integer"),
        ({"commands": [{"type": "writeFile", "resource": "X", "targetPath": "../x.npy"}]}, "outside the model's"),
        ({"commands": [{"type": "writeFile", "resource": "X", "targetPath": "x.png"}]}, "images"),
        ({"commands": [7]}, "expected an object, not 7"),
        ({"commands": {}}, "expected an array, not an object"),
        ({"resources": []}, "expected an object, not an array"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_faulty_models(write_model, parts, message):
    with pytest.raises(InputError) as caught:
        read(write_model(**parts))
    assert message in caught.value.message
    assert caught.value.line is not None


def test_missing_model(tmp_path):
    with pytest.raises(InputError, match=r"none\.json: No such file"):
        read(tmp_path / "none.json")


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"commands": [dispatch(outputs=["Y"])]}, "OutputTensors has 2 tensors, but 1 resources are bound to it"),
        ({"commands": [dispatch(outputs=[])]}, "OutputTensors has 2 tensors, but 0 resources"),
        ({"commands": [dispatch(inputs=["X", "X"])]}, "InputTensor has 1 tensors, but 2 resources"),
        ({"commands": [{**dispatch(), "bindings": {"InputTensor": "X"}}]}, "nothing is bound to OutputTensors"),
        (
            {"commands": [dispatch(inputs={"name": "X", "elementOffset": 1})]},
            "BindInputs[0].Offset, resource 'X': is 4, not a multiple of the 16 bytes",
        ),
        ({"commands": [dispatch(inputs={"name": "X", "elementOffset": 4})]}, "is 0, the TotalTensorSizeInBytes"),
        ({"commands": [dispatch(inputs={"name": "X", "elementOffset": 8})]}, "at offset 32 wrap at 2^64"),
        ({"commands": [dispatch(inputs={"name": "X", "elementOffset": 2**63})]}, "does not fit into 64 bits"),
        ({"commands": [dispatch(inputs="Y")]}, "resource 'Y': is 8, the TotalTensorSizeInBytes of InputTensor is 16"),
        ({"dispatchables": {"s": split(2, 2, Flags="OWNED_BY_DML")}}, "the dispatchable needs 'bindings' for it"),
        ({"dispatchables": {"s": {**split(2, 2), "bindings": {"InputTensor": "X"}}}}, "not OWNED_BY_DML"),
        (
            {"dispatchables": {"s": {**split(2, 2, Flags="OWNED_BY_DML"), "bindings": {"InputTensor": "X"}}}},
            "it is OWNED_BY_DML and is bound at initialization [binding/not-wanted]; "
            "the device is removed (0x887A0005)",
        ),
        ({"resources": {"X": {"initialValues": "deferred"}, "Y": values(2), "Z": values(2)}}, "'X' is deferred"),
        (
            {
                "resources": {
                    "X": {"initialValues": [{"type": "FLOAT64", "value": 1}] * 4},
                    "Y": values(2),
                    "Z": values(2),
                },
                "commands": [dispatch(inputs={"name": "X", "elementOffset": 2})],
            },
            "elementOffset needs elementSizeInBytes",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_faulty_bindings(write_model, parts, message):
    model = read(write_model(**parts))
    with pytest.raises(InputError) as caught:
        run(model, print)
    assert message in caught.value.message
    assert caught.value.line is not None


def test_offset_must_be_a_multiple_of_the_guaranteed_alignment(write_model):
    resources = {"X": values(40), "Y": values(2), "Z": values(2)}
    dispatchables = {"s": split(2, 2, GuaranteedBaseOffsetAlignment=64)}
    for offset, outcome in ((16, "Resource 'Z': 18, 19\n"), (4, None)):
        commands = [dispatch(inputs={"name": "X", "elementOffset": offset}), {"type": "print", "resource": "Z"}]
        model = read(write_model(resources, dispatchables, commands))
        if outcome:
            assert printed(model)[0] == outcome
        else:
            with pytest.raises(InputError, match="not a multiple of the 64 bytes"):
                run(model, print)


@pytest.mark.parametrize(
    ("outputs", "rules", "text"),
    [
        (["Y", "Y"], ["binding/outputs-overlap"], "Resource 'Y': 2, 3\n"),
        (["Y", "X"], ["binding/input-overlaps-output"], "Resource 'Y': 0, 1\n"),
        (["X", "X"], ["binding/outputs-overlap", "binding/input-overlaps-output"], "Resource 'Y': 90, 91\n"),
        (["Y", "Z"], [], "Resource 'Y': 0, 1\n"),
    ],
)
def test_what_the_builds_accept_is_warned_of(write_model, outputs, rules, text):
    path = write_model(commands=[dispatch(outputs=outputs), {"type": "print", "resource": "Y"}])
    shown, result = printed(read(path))
    assert (shown, result.exit_status) == (text, 0)
    assert [d.rule for d in result.warnings] == rules
    lines = path.read_text().splitlines()
    assert all(lines[d.line - 1][d.column - 1] == '"' for d in result.warnings)


def test_overlapping_elements_run_with_a_warning(write_model):
    dispatchables = {"s": split(4)}
    dispatchables["s"]["desc"]["OutputTensors"] = [{"DataType": "FLOAT32", "Sizes": [4, 3], "Strides": [2, 3]}]
    dispatchables["s"]["desc"]["InputTensor"]["Sizes"] = [4, 3]
    path = write_model({"X": values(12), "Y": values(13)}, dispatchables, [dispatch(outputs=["Y"])])
    _, result = printed(read(path))
    assert [d.rule for d in result.warnings] == ["device/write-order-not-promised"]
    assert result.exit_status == 0


def test_the_release_decides(write_model):
    path = write_model()
    with pytest.raises(ValueError, match="nearest"):
        run(read(path), print, directml="2.0.0")
    assert run(read(path), print, directml="1.8.0").reports == ()
    (report,) = run(read(path), print, directml="tensorflow-directml-1.15.3.dev200619").reports
    assert report.hresult == 0x80000003
    assert {d.rule for d in report.diagnostics} == {"tensor/dimension-count-not-supported"}


def test_outputs_side_by_side_in_one_resource(write_model):
    resources = {"X": values(8, 1), "All": {**values(8, 0), "sizeInBytes": 64}}
    outputs = ["All", {"name": "All", "elementOffset": 2, "elementSizeInBytes": 8}]
    commands = [dispatch(outputs=outputs), {"type": "print", "resource": "All"}]
    model = read(write_model(resources, {"s": split(4, 4)}, commands))
    assert printed(model)[0] == "Resource 'All': 1, 2, 3, 4, 5, 6, 7, 8\n"


def test_raw_memory_of_the_tensors_own_shape_is_still_raw(write_model):
    """Four UINT8 elements broadcast from one: the four bytes bound are memory, not the elements."""
    resources = {"X": values(4, 7, "UINT8"), "Y": values(4, 0, "UINT8")}
    desc = split(4)["desc"]
    desc["InputTensor"] = {"DataType": "UINT8", "Sizes": [4], "Strides": [0]}
    desc["OutputTensors"] = [{"DataType": "UINT8", "Sizes": [4]}]
    commands = [dispatch(outputs="Y"), {"type": "print", "resource": "Y"}]
    model = read(write_model(resources, {"s": {"type": "SPLIT", **desc}}, commands))
    assert printed(model)[0] == "Resource 'Y': 7, 7, 7, 7\n"


def test_invalid_descriptors_are_reported_with_their_place(write_model):
    bad, worse = split(2, 2), split(2, 2)
    bad["desc"]["Axis"] = 1
    worse["desc"]["InputTensor"]["TotalTensorSizeInBytes"] = 0
    worse["desc"]["OutputTensors"][1]["Sizes"] = [0]
    path = write_model(dispatchables={"bad": bad, "s": split(2, 2), "worse": worse})
    text, result = printed(read(path))
    assert (text, result.exit_status) == ("", 1)
    first, second = result.reports
    assert (first.file, first.index, first.ok) == (str(path), 0, False)
    lines = path.read_text().splitlines()
    for diagnostic in first.diagnostics + second.diagnostics:
        assert diagnostic.line is not None
    axis = next(diagnostic for diagnostic in first.diagnostics if diagnostic.path == "Axis")
    assert lines[axis.line - 1][axis.column - 1 :].startswith("1")
    assert second.index == 2
    assert "input/total-size-computed" in [diagnostic.rule for diagnostic in second.diagnostics]


def write_file(target, name="X", **members):
    return {"type": "writeFile", "resource": name, "targetPath": target, **members}


def test_write_file(write_model, tmp_path):
    commands = [
        dispatch(),
        write_file("out/deep/x.npy"),
        write_file("x2.npy", dimensions=[2, 2]),
        write_file("x.bin"),
        write_file("half.NPY", "H"),
    ]
    resources = {"X": values(4), "Y": values(2), "Z": values(2), "H": values(3, data_type="FLOAT16")}
    text, result = printed(read(write_model(resources, None, commands)))
    assert result.exit_status == 0
    assert text.splitlines()[0] == "Resource 'X' written to 'out/deep/x.npy'"
    np.testing.assert_array_equal(np.load(tmp_path / "out/deep/x.npy"), np.arange(4, dtype=np.float32))
    np.testing.assert_array_equal(np.load(tmp_path / "x2.npy"), np.arange(4, dtype=np.float32).reshape(2, 2))
    assert (tmp_path / "x.bin").read_bytes() == np.arange(4, dtype=np.float32).tobytes()
    # The whole buffer, rounded up to 4 bytes, as DxDispatch writes it
    np.testing.assert_array_equal(np.load(tmp_path / "half.NPY"), np.array([0, 1, 2, 0], np.float16))


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (write_file("taken"), "Is a directory"),
        (write_file("model.json/x.bin"), "Not a directory"),
        (write_file("x.npy", dimensions=[5]), "need 5 elements, but it has 4"),
        (write_file("x.npy", dimensions=[1] * 40), "40 dimensions"),
        (write_file("t.npy", "T"), "no initialValuesDataType"),
        (write_file("d.bin", "D"), "deferred"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
@pytest.mark.skipif(os.name == "nt", reason="messages of POSIX")
def test_failed_write_is_logged_and_the_run_goes_on(write_model, tmp_path, command, message):
    (tmp_path / "taken").mkdir()
    resources = {
        "X": values(4),
        "T": {"initialValues": [{"type": "INT32", "value": 1}]},
        "D": {"initialValues": "deferred"},
    }
    path = write_model(resources, {}, [command, {"type": "print", "resource": "X"}])
    lines, told = [], []
    result = run(read(path), lines.append, told.append)
    assert lines == ["Resource 'X': 0, 1, 2, 3\n"]
    assert result.exit_status == 2
    assert list(result.failures) == told
    assert message in told[0].message
    assert told[0].line is not None
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["model.json", "taken"]


def test_full_disk_leaves_the_old_file(write_model, tmp_path):
    limits = pytest.importorskip("resource", reason="file size limits are POSIX's")
    (tmp_path / "x.bin").write_bytes(b"old")
    model = read(write_model({"X": values(100_000)}, {}, [write_file("x.bin")]))
    old_limit, old_handler = limits.getrlimit(limits.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    limits.setrlimit(limits.RLIMIT_FSIZE, (4096, old_limit[1]))
    try:
        text, result = printed(model)
    finally:
        limits.setrlimit(limits.RLIMIT_FSIZE, old_limit)
        signal.signal(signal.SIGXFSZ, old_handler)
    assert (text, result.exit_status) == ("", 2)
    assert "File too large" in result.failures[0].message
    assert (tmp_path / "x.bin").read_bytes() == b"old"
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["model.json", "x.bin"]


def test_interrupted_write_leaves_nothing(tmp_path, monkeypatch):
    def interrupt(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        atomic_files.write_file(str(tmp_path / "x.bin"), b"new")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("target", ["model.json", "x.npy", "hard.npy", "soft.npy", "./x.npy", "sub/../x.npy"])
def test_an_input_is_not_replaced(write_model, tmp_path, target):
    (tmp_path / "sub").mkdir()
    np.save(tmp_path / "x.npy", np.arange(4, dtype=np.float32))
    os.link(tmp_path / "x.npy", tmp_path / "hard.npy")
    (tmp_path / "soft.npy").symlink_to("x.npy")
    path = write_model({"X": {"initialValues": {"sourcePath": "x.npy"}}}, {}, [write_file(target)])
    with pytest.raises(InputError, match="would replace an input file") as info:
        read(path)
    assert info.value.line is not None


def test_a_loop_of_links_is_not_replaced(write_model, tmp_path):
    (tmp_path / "loop").symlink_to("loop")
    path = write_model({"X": values(4)}, {}, [write_file("loop")])
    with pytest.raises(InputError, match="'loop' leads to itself by symbolic links"):
        read(path)


def test_files_outside_the_folder(write_model, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    np.save(outside / "x.npy", np.arange(4, dtype=np.float32))
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "link").symlink_to(outside)
    (inside / "x.npy").symlink_to(outside / "x.npy")
    for source in ("../outside/x.npy", "link/x.npy", "x.npy", str(outside / "x.npy"), "../inside/link/../x.npy"):
        resource = {"initialValues": {"sourcePath": source}}
        text = json.dumps({"resources": {"R": resource}, "dispatchables": {}, "commands": []})
        (inside / "m.json").write_text(text)
        with pytest.raises(InputError, match="outside the model's folder"):
            read(inside / "m.json")
        if "/../x" not in source:
            assert read(inside / "m.json", allow_paths=[outside]).resources["R"].size_in_bytes == 16
    for target in ("link/y.npy", "../y.npy", str(outside / "y.npy")):
        text = json.dumps({"resources": {"X": values(1)}, "dispatchables": {}, "commands": [write_file(target)]})
        (inside / "m.json").write_text(text)
        with pytest.raises(InputError, match="outside the model's folder"):
            read(inside / "m.json")
    # A folder whose name merely starts like an allowed one
    (tmp_path / "inside2").mkdir()
    (inside / "m.json").write_text(text.replace(str(outside), str(tmp_path / "inside2")))
    with pytest.raises(InputError, match="outside the model's folder"):
        read(inside / "m.json")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_is_not_read(write_model, tmp_path):
    os.mkfifo(tmp_path / "p.dat")
    path = write_model({"R": {"initialValuesDataType": "INT8", "initialValues": {"sourcePath": "p.dat"}}}, {}, [])
    with pytest.raises(InputError, match="not a regular file"):
        read(path)


def test_hostile_names_are_printed_harmlessly(write_model):
    name = "\x1b[31m\ud800\n'"
    model = read(write_model({name: values(1)}, {}, [{"type": "print", "resource": name}]))
    assert printed(model)[0] == "Resource '\\x1b[31m\\ud800\\n'': 0\n"


@pytest.mark.parametrize(
    ("resource", "message"),
    [
        ({"initialValues": [{"type": "INT32", "value": 1}]}, "has no initialValuesDataType"),
        ({"initialValues": "deferred"}, "is deferred"),
    ],
    ids=["typed-list", "deferred"],
)
def test_what_cannot_be_printed_ends_the_run(write_model, resource, message):
    path = write_model({"R": resource}, {}, [{"type": "print", "resource": "R"}])
    with pytest.raises(InputError, match=message):
        run(read(path), print)
