"""Rules of operators other than Split and Join."""

import json
import pickle

import pytest

import dmlsplit as dml
from dmlsplit.descriptors.any_operator import tensors_only
from dmlsplit.formats import any_operator_json
from dmlsplit.rules import RULES
from dmlsplit.rules.any_operator import AnyOperatorRule
from dmlsplit.verdicts.any_operator import TablesReport
from tests.rules.any_operators import FAULTY, T, bases, changed, fused, tensor_of, x
from tests.rules.judging import ids

ANY_RULES = [rule for rule in RULES.values() if isinstance(rule, AnyOperatorRule)]


@pytest.mark.parametrize("rule", ANY_RULES, ids=lambda rule: rule.id)
def test_the_registrys_own_examples(rule):
    bad = dml.validate(rule.bad(), **rule.target_of_examples)
    assert ids(bad) == {rule.id}
    assert bad.ok is (rule.severity is not dml.Severity.ERROR)
    assert not dml.validate(rule.good(), **rule.target_of_examples).diagnostics
    refused = not bad.ok and not rule.ends
    assert bad.hresult == (0x80070057 if refused else None)
    for diagnostic in bad.diagnostics:
        assert diagnostic.path
        assert diagnostic.message
        assert diagnostic.expected is not None
        assert diagnostic.reference == str(rule.sources[0])


@pytest.mark.parametrize("release", ["1.15.4", "1.10.1", "1.7.0", "1.0.200610"])
def test_no_base_is_refused_by_a_build_that_has_it(release):
    target = dml.find_release(release)
    for name, base in bases().items():
        schema = dml.find_operator(name)
        if schema.since <= target.max_feature_level:
            assert not dml.validate(base, directml=release).diagnostics, name


def test_every_base_is_ok_at_each_level_from_its_own_on():
    """Below 2_1, which the pages alone tell of, ELEMENT_WISE_IF takes FLOAT16 only."""
    for name, base in bases().items():
        schema = dml.find_operator(name)
        for level in dml.FeatureLevel:
            report = dml.validate(base, feature_level=level)
            if schema.since > level:
                assert ids(report) <= {"operator/not-in-target"}, (name, level)
                assert not report.ok
            elif not report.ok:
                assert (name, str(level)) == ("ELEMENT_WISE_IF", "2_0")
                assert {d.basis for d in report.diagnostics} == {dml.Basis.DOCUMENTED}
                assert "element_wise_if_operator_desc" in report.diagnostics[0].reference


def test_a_report_by_tables():
    report = dml.validate(bases()["GEMM"], directml="1.15.4")
    assert isinstance(report, TablesReport)
    assert (report.ok, report.hresult, report.basis_of_verdict) == (True, None, "tables")
    assert pickle.loads(pickle.dumps(report)) == report
    split = dml.validate(bases()["SPLIT"])
    assert (split.hresult, split.basis_of_verdict) == (0, "exact")


@pytest.mark.parametrize(("desc", "target", "rule", "path"), FAULTY)
def test_faults_and_their_places(desc, target, rule, path):
    report = dml.validate(desc, **target)
    found = [(d.rule, d.path) for d in report.diagnostics]
    assert any(id == f"operator/{rule}" and place.startswith(path) for id, place in found), found


@pytest.mark.parametrize(
    ("rule", "tensor", "path"),
    [
        ("size-zero", x(1, 0, 1, 2), "Sizes[1]"),
        ("total-size-too-small", x(1, 1, 2, 4, total_tensor_size_in_bytes=28), "TotalTensorSizeInBytes"),
        ("alignment-below-16", x(1, 1, 2, 4, guaranteed_base_offset_alignment=4), "GuaranteedBaseOffsetAlignment"),
        ("flags-unknown", x(1, 1, 2, 4, flags=2), "Flags"),
        ("output-owned-by-dml", x(1, 1, 2, 4, flags=1), "Flags"),
        ("output-stride-zero", x(1, 1, 2, 4, strides=(8, 8, 0, 1)), "Strides[2]"),
        ("sizes-null", x(sizes=None, dimension_count=4), "Sizes"),
    ],
)
def test_tensors_are_judged_as_those_of_a_split(rule, tensor, path):
    """Each by itself: what the builds refuse of any tensor, and say so where it is an output."""
    report = dml.validate(changed("GEMM", OutputTensor=tensor), directml="1.15.4")
    assert [(d.rule, d.path) for d in report.diagnostics] == [(f"tensor/{rule}", f"OutputTensor.{path}")]
    assert report.hresult == 0x80070057
    if rule.startswith("output"):
        assert dml.validate(changed("GEMM", CTensor=tensor)).ok


@pytest.mark.parametrize(
    ("given", "goes_with_it"), [(T.FLOAT32, "FLOAT32"), (T.INT32, "FLOAT32"), (T.FLOAT16, "FLOAT16"), (T.INT8, None)]
)
def test_types_that_are_taken_each_and_not_together(given, goes_with_it):
    for scale in (T.FLOAT16, T.FLOAT32):
        desc = changed(
            "ELEMENT_WISE_QUANTIZE_LINEAR",
            InputTensor=x(1, 2, 3, 4, data_type=given),
            ScaleTensor=x(1, 2, 3, 4, data_type=scale),
        )
        found = [(d.path, d.expected, d.actual) for d in dml.validate(desc).diagnostics if d.rule.endswith("mismatch")]
        fits = goes_with_it in (None, scale.name)
        assert found == ([] if fits else [("ScaleTensor.DataType", goes_with_it, scale.name)])


@pytest.mark.parametrize(
    ("desc", "levels"),
    [
        (changed("GATHER_ND", IndicesTensor=x(1, 1, 2, 4, data_type=T.UINT32)), ("", "2_1")),
        (
            changed(
                "MAX_POOLING_GRAD",
                InputTensor=x(1, 1, 2, 4, 4),
                InputGradientTensor=x(1, 1, 2, 2, 2),
                OutputGradientTensor=x(1, 1, 2, 4, 4),
            ),
            ("4_0", ""),
        ),
        (changed("PADDING", InputTensor=x(1, 2, 3, 4, 1), OutputTensor=x(1, 2, 5, 4, 1)), ("3_1", "4_1")),
        (changed("GEMM", FusedActivation=fused("ACTIVATION_PARAMETERIZED_RELU")), ("", "2_1")),
        (changed("MULTIHEAD_ATTENTION", HeadCount=0), ("6_2", "")),
    ],
    ids=lambda value: value.operator.name if isinstance(value, dml.AnyOperatorDesc) else "",
)
def test_the_levels_at_which_a_call_ends_the_process(desc, levels):
    """The first and the last, where there are any before or after them."""
    there = [level for level in dml.FeatureLevel if level >= desc.operator.since]
    ends = [level for level in there if "operator/ends-the-process" in ids(dml.validate(desc, feature_level=level))]
    first, last = (dml.FeatureLevel.parse(at) if at else there[end] for at, end in zip(levels, (0, -1), strict=True))
    assert ends == [level for level in there if first <= level <= last]


@pytest.mark.parametrize(
    "desc",
    [
        changed("GATHER_ND", IndicesTensor=x(1, 1, 2, 4, data_type=T.UINT32)),
        changed("GATHER", IndicesTensor=x(1, 1, 2, 2, data_type=T.UINT32)),
        changed("SCATTER_ND", IndicesTensor=x(1, 1, 2, 3, data_type=T.UINT32)),
    ],
    ids=lambda desc: desc.operator.name,
)
def test_what_does_not_end_the_process(desc):
    found = {d.rule for d in dml.validate(desc, directml="1.15.4").diagnostics}
    assert "operator/ends-the-process" not in found


@pytest.mark.parametrize(
    ("activation", "release", "hresult"),
    [
        ("ACTIVATION_SOFTMAX", "1.15.4", 0x80070057),
        ("ACTIVATION_SOFTMAX1", "1.7.0", 0x8000FFFF),
        ("ACTIVATION_SOFTMAX1", "1.9.1", 0x80070057),  # which has it, though its level has not
        ("ACTIVATION_RELU_GRAD", "1.15.4", 0x8000FFFF),
        ("ELEMENT_WISE_SQRT", "1.15.4", 0x8000FFFF),
        ("ACTIVATION_CELU", "tensorflow-directml-1.15.3.dev200911", 0x80000003),
        ("ACTIVATION_CELU", "tensorflow-directml-1.15.3.dev200619", 0x8000FFFF),
        ("ACTIVATION_PARAMETERIZED_RELU", "1.15.4", None),
    ],
)
def test_what_a_convolution_does_not_fuse(activation, release, hresult):
    """As the builds for Linux, asked about every activation, have it."""
    members = {"Alpha": 1.0} if activation == "ACTIVATION_CELU" else {}
    members |= {"Axes": [1]} if activation == "ACTIVATION_SOFTMAX1" else {}
    desc = changed("CONVOLUTION", FusedActivation=fused(activation, **members))
    assert dml.validate(desc, directml=release).hresult == hresult
    both = changed("CONVOLUTION", FusedActivation=fused(activation, **members), GroupCount=1, Direction=7)
    if hresult == 0x8000FFFF:  # the other fault is found before
        assert dml.validate(both, directml=release).hresult == dml.find_release(release).invalid_argument


def test_what_a_level_has_as_an_activation():
    desc = changed("CONVOLUTION", FusedActivation=fused("ACTIVATION_SOFTMAX1", Axes=[1]))
    for level, hresult in (("5_0", 0x8000FFFF), ("5_1", 0x80070057)):
        assert dml.validate(desc, feature_level=level).hresult == hresult


@pytest.mark.parametrize("sizes", [(0, 1, 4, 1), (1, 1, 4, 0)])
def test_a_build_divides_by_the_sizes_of_a_scale(sizes):
    report = dml.validate(changed("QUANTIZE", QuantizationTensors=[x(*sizes), x(1, 1, 4, 1)]))
    ends = [d.path for d in report.diagnostics if d.rule == "operator/ends-the-process"]
    assert ends == ["QuantizationTensors[0].Sizes"]


def test_what_ends_the_process_has_no_hresult():
    for release, hresult in (("1.15.4", None), ("1.10.1", 0x80070057)):
        report = dml.validate(changed("ELEMENT_WISE_QUANTIZE_LINEAR", InputTensor=None), directml=release)
        assert (report.ok, report.hresult) == (False, hresult)


@pytest.mark.parametrize(
    ("name", "members", "size"),
    [
        ("CONVOLUTION", {"Strides": (2, 2), "StartPadding": (1, 1), "EndPadding": (1, 1)}, 2),
        ("CONVOLUTION", {"Dilations": (2, 2), "StartPadding": (1, 1), "EndPadding": (1, 1)}, 2),
        ("CONVOLUTION", {"Strides": (3, 3)}, 1),
        ("AVERAGE_POOLING", {"Strides": (1, 1)}, 3),
        ("AVERAGE_POOLING", {"StartPadding": (1, 1)}, 2),
        ("LP_POOLING1", {"Dilations": (3, 3), "Strides": (1, 1)}, 1),
        ("AVERAGE_POOLING1", {"Strides": (3, 3)}, 1),
        ("LP_POOLING", {"Strides": (3, 3)}, 1),
        ("MAX_POOLING", {"Strides": (3, 3)}, 1),
        ("QUANTIZED_LINEAR_AVERAGE_POOLING", {"Strides": (3, 3)}, 1),
        ("CONVOLUTION_INTEGER", {"Strides": (3, 3)}, 1),
        ("QUANTIZED_LINEAR_CONVOLUTION", {"Strides": (3, 3)}, 1),
    ],
)
def test_window_sizes(name, members, size):
    """The formula gives this size, no other one."""
    channels = 3 if "CONVOLUTION" in name else 2
    of_type = tensor_of(bases()[name], "OutputTensor").data_type
    for other in (size - 1, size, size + 1):
        if other:
            output = x(1, channels, other, other, data_type=of_type)
            report = dml.validate(changed(name, OutputTensor=output, **members))
            assert ids(report) == (set() if other == size else {"operator/window-size"})


@pytest.mark.parametrize("name", ["CONVOLUTION", "MAX_POOLING", "AVERAGE_POOLING_GRAD"])
def test_a_window_of_more_dimensions_than_there_are_is_not_laid_out(name):
    """The count is the file's: nothing of its length is made."""
    assert ids(dml.validate(changed(name, DimensionCount=2**32 - 1))) == {"operator/count-exceeds-array"}


def test_transposed_convolutions():
    """Backward, the output is what would be convolved to the input."""
    for height, warned in ((9, False), (10, True), (8, True)):
        desc = changed(
            "CONVOLUTION",
            Direction="BACKWARD",
            FilterTensor=x(2, 3, 3, 3),
            Strides=(2, 2),
            OutputTensor=x(1, 3, height, 9),
        )
        assert ids(dml.validate(desc)) == ({"operator/window-size"} if warned else set())


def test_files_have_places(tmp_path):
    path = tmp_path / "gemm.json"
    written = json.loads(any_operator_json.dumps(changed("GEMM", BTensor=x(1, 1, 3, 4, data_type=T.FLOAT16))))
    path.write_text(json.dumps(written, indent=1))
    (report,) = dml.check_files([path])
    (diagnostic,) = report.diagnostics
    line = path.read_text().splitlines()[diagnostic.line - 1]
    assert '"FLOAT16"' in line
    assert (report.ok, report.hresult, report.operator) == (False, 0x80070057, "DML_OPERATOR_GEMM")


def test_malformed_operators_are_not_read(tmp_path):
    path = tmp_path / "gemm.json"
    path.write_text('{"Type": "DML_OPERATOR_GEMM", "Desc": {"TransA": "TRANSPOSED"}}')
    (report,) = dml.check_files([path])
    assert ids(report) == {"input/malformed"}
    assert "did you mean TRANSPOSE?" in report.diagnostics[0].message


def test_a_graph_has_the_faults_of_its_nodes():
    cast = dml.AnyOperatorDesc("ACTIVATION_SIGMOID", {"InputTensor": x(4, data_type=T.INT32), "OutputTensor": x(4)})
    graph = dml.GraphDesc(
        [x(4, data_type=T.INT32)],
        [x(4)],
        [cast],
        [dml.InputGraphEdgeDesc(0, 0, 0)],
        [dml.OutputGraphEdgeDesc(0, 0, 0)],
    )
    report = dml.validate(graph)
    assert {(d.rule, d.path) for d in report.diagnostics} == {
        ("operator/data-type-not-supported", "Nodes[0].InputTensor.DataType")
    }
    assert report.compiles is False


OF_TENSORS = (
    "operator/not-in-target",
    "operator/data-type-not-supported",
    "operator/data-type-mismatch",
    "operator/dimension-count-not-supported",
    "operator/dimension-count-mismatch",
    "operator/sizes-differ",
)


@pytest.mark.parametrize("rule", OF_TENSORS)
def test_tensors_are_judged_without_the_other_members(rule):
    """An operator of which only the tensors are known, as in a graph that says no more."""
    desc, target = RULES[rule].bad(), RULES[rule].target_of_examples
    sides = ([desc.members[m.name] for m in desc.operator.members if m.role == role] for role in ("input", "output"))
    alone = dml.AnyOperatorDesc(
        tensors_only(desc.type), dict(zip(("Inputs", "Outputs"), map(tuple, sides), strict=True))
    )
    assert not alone.operator.whole
    assert rule in ids(dml.validate(alone, **target))
