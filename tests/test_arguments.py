"""Malformed arguments of the public calls: one error, which names the argument and the place in it."""

from __future__ import annotations

import os

import numpy as np
import pytest

import dmlsplit as dml
from tests import models

TEXT = "(float[N,6] x) => (float[N,3] a, float[N,3] b) { a, b = Split<axis=1>(x) }"
VERSION = "1.24.4"


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    made = tmp_path_factory.mktemp("models") / "m.onnx"
    made.write_bytes(models.text(TEXT, 17).SerializeToString())
    return made


def node_of(path):
    (node,) = dml.onnx.read(path)
    return node


SHAPES = {
    "check_files": ("shapes", lambda path, **given: list(dml.check_files([path], **given))),
    "read": ("shapes", dml.onnx.read),
    "session": ("shapes", lambda path, **given: dml.onnxruntime.session(path, VERSION, **given)),
    "on_onnxruntime": ("run_shapes", lambda path, **given: dml.onnxruntime.on_onnxruntime(path, VERSION, **given)),
    "explain": ("run_shapes", lambda path, **given: dml.onnxruntime.explain(path, "a", VERSION, **given)),
    "of a node": ("run_shapes", lambda path, **given: node_of(path).on_onnxruntime(VERSION, **given)),
    "reduce": ("run_shapes", lambda path, **given: dml.onnx.reduce(path, VERSION, **given)),
}
SIZES = {
    "check_files": ("dims", SHAPES["check_files"][1]),
    "check_files, overrides": ("free_dimensions", SHAPES["check_files"][1]),
    "read": ("dims", dml.onnx.read),
    "session": ("dims", SHAPES["session"][1]),
    "session, overrides": ("free_dimensions", SHAPES["session"][1]),
    "on_onnxruntime": ("free_dimensions", SHAPES["on_onnxruntime"][1]),
    "explain": ("run_dims", SHAPES["explain"][1]),
    "of a node": ("free_dimensions", SHAPES["of a node"][1]),
    "reduce": ("run_dims", SHAPES["reduce"][1]),
}
VALUES = {
    "read": ("values", dml.onnx.read),
    "on_onnxruntime": ("run_values", SHAPES["on_onnxruntime"][1]),
    "explain": ("run_values", SHAPES["explain"][1]),
    "of a node": ("run_values", SHAPES["of a node"][1]),
}


@pytest.mark.parametrize(("argument", "call"), (SHAPES | SIZES | VALUES).values(), ids=SHAPES | SIZES | VALUES)
@pytest.mark.parametrize(
    ("given", "message"),
    [
        (5, "a mapping of names is expected, not int"),
        ([("x", (1, 6))], "a mapping of names is expected, not list"),
        ({5: (1, 6)}, "a name is a string, not int: 5"),
        ({None: 1}, "a name is a string, not NoneType: None"),
        ({b"x": 1}, "a name is a string, not bytes: b'x'"),
    ],
    ids=str,
)
def test_facts_are_mappings_of_names(path, argument, call, given, message):
    with pytest.raises(TypeError) as caught:
        call(path, **{argument: given})
    assert str(caught.value) == f"{argument}: {message}"


@pytest.mark.parametrize(("argument", "call"), SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize(
    "shape",
    [5, None, "16", b"ab", {1: 2}, {2, 6}, map(int, "26"), np.ones((2, 2), int)],
    ids=lambda shape: type(shape).__name__,
)
def test_a_shape_is_a_sequence(path, argument, call, shape):
    with pytest.raises(TypeError) as caught:
        call(path, **{argument: {"x": shape}})
    assert str(caught.value) == f"{argument}['x']: a sequence of sizes is expected, not {type(shape).__name__}"


@pytest.mark.parametrize(("argument", "call"), SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("size", [1.5, -1, 1 << 63, [1], b"1", float("nan")], ids=str)
def test_sizes_in_a_shape(path, argument, call, size):
    with pytest.raises(dml.InputError) as caught:
        call(path, **{argument: {"x": (6, size)}})
    assert str(caught.value) == f"shape of 'x', dimension 1: {size!r} is not a size"


@pytest.mark.parametrize(("argument", "call"), SIZES.values(), ids=SIZES)
@pytest.mark.parametrize("size", [1.0, -1, 1 << 63, [1], "1", None], ids=str)
def test_sizes_of_symbols(path, argument, call, size):
    with pytest.raises(dml.InputError) as caught:
        call(path, **{argument: {"N": size}})
    assert str(caught.value) == f"dimension 'N': {size!r} is not a size"


@pytest.mark.parametrize(("argument", "call"), VALUES.values(), ids=VALUES)
@pytest.mark.parametrize("values", ["ab", [None], [[1], [2, 3]], {1: 2}, [1 << 70], dml.Severity.NOTE], ids=str)
def test_values_are_numbers(path, argument, call, values):
    with pytest.raises(dml.InputError, match=r"^values of 'x': "):
        call(path, **{argument: {"x": values}})


def test_sizes_of_numpy_are_sizes(path):
    for shape in (np.array([2, 6]), [np.int64(2), np.int32(6)], (2, None), ["batch", 6]):
        assert dml.onnxruntime.session(path, VERSION, shapes={"x": shape}).created is True
    assert dml.onnxruntime.session(path, VERSION, dims={"N": np.int64(2)}).created is True


@pytest.mark.parametrize("call", [SHAPES["session"][1], SHAPES["on_onnxruntime"][1], SHAPES["explain"][1]])
def test_options(path, call):
    for options in (None, 5, {}):
        with pytest.raises(TypeError, match=f"^options: SessionOptions are expected, not {type(options).__name__}$"):
            call(path, options=options)


@pytest.mark.parametrize(
    "call",
    [
        dml.onnx.read,
        lambda source: dml.onnx.legalize(source, directml="1.8.0"),
        lambda source: dml.onnx.reduce(source, VERSION),
        lambda source: dml.onnxruntime.session(source, VERSION),
        lambda source: dml.onnxruntime.on_onnxruntime(source, VERSION),
        lambda source: dml.onnxruntime.explain(source, "a", VERSION),
    ],
)
def test_a_model_is_a_path_bytes_or_a_message(call):
    for source in (0, None, [], bytearray(b"x"), models.text(TEXT, 17).graph):
        with pytest.raises(TypeError) as caught:
            call(source)
        kind = type(source).__name__
        assert str(caught.value) == f"source: a path, bytes or an onnx.ModelProto is expected, not {kind}"


@pytest.mark.parametrize("argument", ["paths", "allow_paths"])
def test_paths(path, argument):
    def call(given):
        return dml.check_files(**({"paths": given} if argument == "paths" else {"paths": [path], argument: given}))

    for given, message in (
        (5, ": a sequence of paths is expected, not int"),
        (None, ": a sequence of paths is expected, not NoneType"),
        ([os.curdir, 5], "[1]: a path is expected, not int"),
        ("a", ": a sequence of paths is expected; ['a'] is one of a single path"),
    ):
        with pytest.raises(TypeError) as caught:
            call(given)
        assert str(caught.value) == argument + message


@pytest.mark.parametrize(
    "call",
    [dml.validate, dml.minimum_feature_level, dml.supported_feature_levels, dml.supported_releases, dml.legalize],
)
def test_an_operator_is_a_descriptor(call):
    for given, kind in ((["x"], "list"), ({}, "dict"), (5, "int"), (None, "NoneType")):
        with pytest.raises(TypeError) as caught:
            call(given)
        assert str(caught.value) == f"{kind} is not a SplitOperatorDesc or JoinOperatorDesc"


def test_other_arguments(path):
    for call, message in (
        (lambda: dml.check_files([path], assume="no-float64"), "assume: a sequence of properties is expected, not str"),
        (lambda: dml.check_files([path], assume=5), "assume: a sequence of properties is expected, not int"),
        (lambda: dml.check_files([path], executor=5), "executor: an Executor is expected, not int"),
        (lambda: dml.check_files([path], windows=5), "the name of a Windows is a string, not int"),
        (lambda: dml.check_files([path], windows_ml=b"2.1"), "a version of Windows ML is a string, not bytes"),
        (
            lambda: dml.onnxruntime.explain(path, b"a", VERSION),
            "node: a path, a name or an index is expected, not bytes",
        ),
        (lambda: dml.onnx.open_answer("a"), "node: a SplitNode or JoinNode is expected, not str"),
        (lambda: dml.find_operator([]), "the name of an operator is a string, its number an integer, not list"),
    ):
        with pytest.raises(TypeError) as caught:
            call()
        assert str(caught.value) == message
