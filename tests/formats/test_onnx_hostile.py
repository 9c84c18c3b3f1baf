"""ONNX files that are no models, and models that are made to break their reader."""

import contextlib

import pytest
from onnx import TensorProto

import dmlsplit as dml
from dmlsplit.formats import onnx as front_end
from dmlsplit.system.errors import DmlSplitError, InputError
from tests.formats.split_nodes import read_one, rules
from tests.models import EQUAL, graph, ints, model, node, value


class TestHostile:
    def test_more_outputs_than_num_outputs_do_not_end_the_process(self):
        nodes = [
            node("Relu", ["x"], ["y"]),
            node("Split", ["y"], ["a", "b", "c"], num_outputs=2, name="bad"),
            node("Relu", ["y"], ["z"]),
            node("Split", ["z"], ["d", "e"], num_outputs=2),
        ]
        bad, good = front_end.read(model(nodes, [value("x", [4])]))
        assert rules(bad) == {"onnx/outputs-exceed-num-outputs"}
        assert good.lengths == (2, 2)

    def test_an_if_without_branches_is_not_loaded(self):
        nodes = [node("Split", ["x"], ["a", "b"], axis=0), node("If", ["c"], ["y"])]
        broken = model(nodes, [value("x", [4, 8]), value("c", [], TensorProto.BOOL)], opset=17)
        broken.ir_version = 8
        with pytest.raises(InputError, match="If y lacks the attribute else_branch"):
            dml.onnxruntime.on_onnxruntime(broken, "1.19.2")

    def test_what_ends_the_inference_leaves_the_rest(self, monkeypatch):
        from dmlsplit.models import inference

        ended = []

        def end(process, request):
            ended.append(process)
            process.kill()
            process.wait()

        monkeypatch.setattr(inference._worker, "_ask", end)
        nodes = [node("Relu", ["x"], ["y"]), node("Split", ["y"], ["a", "b"], name="s"), EQUAL]
        first, second = front_end.read(model(nodes, [value("x", [2, 4])], opset=13))
        assert second.lengths == (2, 2)
        [unknown, _] = first.report.diagnostics
        assert "onnx's shape inference: ended its process" in unknown.message
        assert all(pipe.closed for process in ended for pipe in (process.stdin, process.stdout))
        monkeypatch.undo()
        assert front_end.read(model(nodes, [value("x", [2, 4])], opset=13))[0].lengths == (1, 1)

    def test_an_inference_that_hangs_is_ended(self, monkeypatch):
        from dmlsplit.models import inference

        monkeypatch.setattr(inference, "TIMEOUT", 0.2)
        monkeypatch.setattr(inference._worker, "answers", inference.Answers())
        monkeypatch.setattr(inference._worker, "_ask", lambda process, request: process.wait() and None)
        with pytest.raises(inference.InferenceError, match=r"did not end within|ended"):
            inference.Inference().infer_shapes(model([EQUAL], [value("x", [2, 4])]))

    def test_an_interrupted_inference_answers_no_other_model(self, monkeypatch):
        from dmlsplit.models import inference

        def interrupted(process, model):
            raise KeyboardInterrupt

        asked = model([EQUAL], [value("x", [2, 4])])
        inference.Inference().infer_shapes(asked)
        process = inference._worker._process
        monkeypatch.setattr(inference._worker, "answers", inference.Answers())
        monkeypatch.setattr(inference._worker, "_ask", interrupted)
        with pytest.raises(KeyboardInterrupt):
            inference.Inference().infer_shapes(asked)
        assert process.poll() is not None  # its answer would have been taken for that of the next model
        assert inference._worker._process is None

    @pytest.mark.parametrize("data", [b"", b"\0", b"not a model", b"\x08\x07", b"{}", b"\xff" * 100])
    def test_what_is_no_model(self, data, tmp_path):
        with pytest.raises(InputError, match="not an ONNX model"):
            front_end.read(data)
        (tmp_path / "m.onnx").write_bytes(data)
        with pytest.raises(InputError, match="not an ONNX model"):
            front_end.read(tmp_path / "m.onnx")

    def test_what_is_too_large(self, tmp_path):
        with (tmp_path / "m.onnx").open("wb") as stream:
            stream.truncate(2**31)
        with pytest.raises(InputError, match="save the model with external data"):
            front_end.read(tmp_path / "m.onnx")

    def test_names_that_are_no_utf_8(self):
        nodes = [node("Relu", ["x"], ["YY"]), node("Split", ["YY"], ["a", "b"], name="NN")]
        made = model(nodes, [value("x", ["DD", 4])], opset=13)
        data = made.SerializeToString()
        for name in (b"YY", b"NN", b"DD"):
            data = data.replace(name, b"\xff\x80")
        [split] = front_end.read(data)
        assert split.path == r"\xff\x80"
        assert split.input_shape == (r"\xff\x80", 4)

    def test_numbers_out_of_bounds(self):
        made = model([node("Split", ["x"], ["a", "b"], num_outputs=2**62, axis=-(2**63))], [value("x", [-4, 2**62])])
        [split] = front_end.read(made)
        assert not split.report.ok
        assert split.input_shape == (None, 2**62)
        [split] = front_end.read(model([node("Split", ["x"], ["a"], num_outputs=2**62)], [value("x", [2**62])]))
        assert split.lengths is None

    def test_constants_that_would_not_fit_into_memory(self):
        nodes = [node("ConstantOfShape", ["n"], ["l"]), node("Split", ["x", "l"], ["a", "b"])]
        split = read_one(nodes, [value("x", [4])], initializers=[ints("n", 2**40)])
        assert "node/shape-unknown" in rules(split)

    @pytest.mark.parametrize("op", ["Gemm", "Transpose", "Softmax", "LeakyRelu", "DepthToSpace", "Conv"])
    @pytest.mark.parametrize("wrong", [b"text", [b"a"], [0, 0], 2**62, None], ids=repr)
    def test_attributes_that_no_schema_has(self, op, wrong):
        """Of operators that are described: another type, a length, a number; None stands for a type of 0."""
        name = {"Gemm": "transA", "Transpose": "perm", "Softmax": "axis", "LeakyRelu": "alpha", "DepthToSpace": "mode"}
        odd = node(op, ["x", "x"][: 1 + (op in ("Gemm", "Conv"))], ["y"], **{name.get(op, "strides"): wrong or 1})
        if wrong is None:
            odd.attribute[0].ClearField("type")
        shape = [4, 4, 4, 4] if op in ("Conv", "DepthToSpace") else [4, 4]
        made = model([odd, node("Split", ["x"], ["a", "b"], axis=0)], [value("x", shape)], opset=13)
        made.graph.output.append(value("y", shape))
        made.ir_version = 8
        found = dml.onnxruntime.session(made, "1.24.4")
        assert found.created is False or "y" in found.nodes
        made.opset_import[0].version = 23
        with contextlib.suppress(DmlSplitError):
            front_end.legalize(made, onnxruntime="1.24.4")

    def test_a_constant_without_a_type_is_not_converted(self):
        constant = node("Constant", [], ["k"], value_ints=[2, 2])
        constant.attribute[0].ClearField("type")
        made = model([constant, node("Split", ["x", "k"], ["a", "b"])], [value("x", [4])], opset=2)
        with contextlib.suppress(DmlSplitError):
            front_end.legalize(made, onnxruntime="1.20.1")

    def test_constants_in_circles(self):
        nodes = [
            node("Identity", ["b"], ["a"]),
            node("Identity", ["a"], ["b"]),
            node("Split", ["x", "b"], ["c", "d"]),
        ]
        with pytest.raises(InputError, match="form a cycle"):
            read_one(nodes, [value("x", [4])])

    def test_an_attribute_with_a_graph_and_graphs(self):
        """The sizes of a Split 1 are fed back to each graph of an attribute, whichever field it is in."""
        short = graph([node("Split", ["x"], ["a", "b"], axis=0)], [])
        long = graph([node("Relu", ["x"], ["r"]), node("Split", ["r"], ["a", "b"], axis=0)], [])
        both = node("If", ["c"], ["y"], then_branch=short, else_branch=short)
        both.attribute[0].graphs.append(long)
        made = model([both], [value("x", [4]), value("c", [], TensorProto.BOOL)], ["y"], opset=1)
        assert [len(each.lengths) for each in dml.onnx.read(made.SerializeToString())] == [2, 2, 2]
