"""Rules about inputs, attributes, element type, axis and outputs of ONNX's Split."""

from __future__ import annotations

from dataclasses import replace

from dmlsplit.descriptors.diagnostics import Basis, Severity
from dmlsplit.rules._model import Finding, Findings
from dmlsplit.rules._nodes import Fact, NodeRule
from dmlsplit.rules._sources import OBSERVED_RUNTIMES, ONNX_IR, ONNX_SPLIT, ONNX_SPLIT_CHANGES, ONNX_SPLIT_SHAPES
from dmlsplit.rules.onnx.split_facts import ATTRIBUTES, DATA_TYPES, MAX_INPUTS, OnnxSplit

# The nodes that the rules' examples vary.
EQUAL = OnnxSplit(13, 2, data_type="FLOAT", input_shape=(4, 6), axis=1)
GIVEN = replace(EQUAL, inputs=2, split_input=True, split_values=(2, 4), split_type="INT64", split_shape=(2,))
COUNTED = replace(EQUAL, version=18, num_outputs=2)


@NodeRule(
    "onnx/opset-missing",
    "The model imports no opset that gives the version of the node.",
    "The version of Split follows from the single opset import of domain '' or 'ai.onnx'; without one, a model of an "
    "IR version below 3 has opset 1. A function has its own imports.",
    sources=(ONNX_IR,),
    spoils={Fact.FORM},
    bad=replace(EQUAL, version=0),
    good=EQUAL,
)
def opset_missing(n: OnnxSplit) -> Findings:
    if not n.version:
        yield Finding("", "the model imports no opset for the node, or several", "one opset import")


@NodeRule(
    "onnx/opset-unknown",
    "The model imports an opset that is newer than the installed onnx.",
    "Split is judged by its newest known version; a later opset may have changed it.",
    severity=Severity.NOTE,
    basis=Basis.OURS,
    sources=(ONNX_SPLIT_CHANGES,),
    bad=replace(COUNTED, opset=29, newest_opset=28),
    good=replace(COUNTED, opset=28, newest_opset=28),
)
def opset_unknown(n: OnnxSplit) -> Findings:
    if n.opset is not None and n.newest_opset is not None and n.opset > n.newest_opset:
        message = f"opset {n.opset} is newer than the installed onnx, which supports up to {n.newest_opset}"
        yield Finding("", f"{message}; judged as Split {n.version}", n.newest_opset, n.opset)


@NodeRule(
    "onnx/input-missing",
    "The node has no input tensor.",
    "The first input, the tensor to split, is required.",
    sources=(ONNX_SPLIT,),
    spoils={Fact.TYPE, Fact.SHAPE, Fact.AXIS},
    bad=OnnxSplit(13, 2, inputs=0, data_input=False),
    good=OnnxSplit(13, 2),
)
def input_missing(n: OnnxSplit) -> Findings:
    if not n.data_input:
        yield Finding("input", "is missing", "a tensor")


@NodeRule(
    "onnx/too-many-inputs",
    "The node has more inputs than its version of Split allows.",
    "Split 2 and 11 have one input, and an attribute for the lengths; Split 1, 13 and 18 have two inputs.",
    sources=(ONNX_SPLIT, ONNX_SPLIT_CHANGES),
    spoils={Fact.LENGTHS, Fact.COUNT},
    runtimes="OpenVINO ignores a second input at versions 2 and 11 and splits into equal parts",
    bad=replace(GIVEN, version=11),
    good=GIVEN,
)
def too_many_inputs(n: OnnxSplit) -> Findings:
    limit = MAX_INPUTS[n.version]
    message = f"there are {n.inputs} inputs; Split {n.version} allows at most {limit}"
    if n.inputs > limit:
        yield Finding("inputs", message, limit, n.inputs)


@NodeRule(
    "onnx/attribute-unknown",
    "The node has an attribute that its version of Split does not.",
    "`split` is an attribute of versions 1, 2 and 11 only, `num_outputs` of version 18.",
    sources=(ONNX_SPLIT, ONNX_SPLIT_CHANGES),
    spoils={Fact.LENGTHS, Fact.COUNT},
    runtimes="OpenVINO ignores the attribute, and so does onnx's shape inference unless strict mode is on",
    bad=replace(EQUAL, other_attributes=("num_outputs",)),
    good=COUNTED,
)
def attribute_unknown(n: OnnxSplit) -> Findings:
    known = ", ".join(ATTRIBUTES[n.version])
    for name in n.other_attributes:
        yield Finding(name, f"is not an attribute of Split {n.version}, which has {known}", known, name)


@NodeRule(
    "onnx/attribute-type",
    "An attribute does not have the type that the operator defines.",
    "`axis` and `num_outputs` are INT, `split` is INTS.",
    sources=(ONNX_SPLIT,),
    spoils={Fact.AXIS, Fact.LENGTHS, Fact.COUNT},
    bad=replace(EQUAL, axis=None, mistyped_attributes=("axis",)),
    good=EQUAL,
)
def attribute_type(n: OnnxSplit) -> Findings:
    for name in n.mistyped_attributes:
        type = "INTS" if name == "split" else "INT"
        yield Finding(name, f"is not {type}", type)


@NodeRule(
    "onnx/type-not-allowed",
    "This version of Split does not allow the element type.",
    "Version 1 accepts only floats. bfloat16 was added in 13. No version accepts 8-bit floats or types below 8 bits.",
    sources=(ONNX_SPLIT, ONNX_SPLIT_CHANGES),
    needs={Fact.FORM, Fact.TYPE},
    spoils={Fact.TYPE},
    runtimes="onnx's reference evaluator does not check types, and OpenVINO accepts every type that it supports itself",
    bad=replace(EQUAL, data_type="FLOAT8E4M3FN"),
    good=replace(EQUAL, data_type="BFLOAT16"),
)
def type_not_allowed(n: OnnxSplit) -> Findings:
    allowed = DATA_TYPES.get(n.version, ())
    if n.data_type is not None and n.data_type not in allowed:
        expected = ", ".join(allowed)
        yield Finding("input", f"is {n.data_type}; Split {n.version} allows {expected}", expected, n.data_type)


@NodeRule(
    "onnx/type-not-run",
    "The operator allows the element type, but no observed runtime accepts it.",
    "The node is valid; onnx's reference evaluator and dmlsplit run it.",
    severity=Severity.WARNING,
    basis=Basis.OBSERVED,
    sources=(OBSERVED_RUNTIMES,),
    needs={Fact.FORM, Fact.TYPE},
    bad=replace(EQUAL, data_type="COMPLEX128"),
    good=replace(EQUAL, data_type="DOUBLE"),
)
def type_not_run(n: OnnxSplit) -> Findings:
    if n.data_type in ("COMPLEX64", "COMPLEX128"):
        yield Finding("input", f"ONNX Runtime and OpenVINO do not accept {n.data_type}", actual=n.data_type)


@NodeRule(
    "onnx/rank-zero",
    "The input is a scalar.",
    "A scalar has no axis to split.",
    sources=(ONNX_SPLIT_SHAPES, ONNX_SPLIT),
    needs={Fact.FORM, Fact.SHAPE},
    spoils={Fact.SHAPE, Fact.AXIS},
    bad=replace(EQUAL, input_shape=(), axis=0),
    good=replace(EQUAL, input_shape=(6,), axis=0),
)
def rank_zero(n: OnnxSplit) -> Findings:
    if n.rank == 0:
        yield Finding("input", "is a scalar, which has no axis to split", "rank 1 or more", 0)


@NodeRule(
    "onnx/axis-out-of-range",
    "The axis is not a dimension of the input.",
    "The axis must be in -rank to rank - 1; the default is 0.",
    sources=(ONNX_SPLIT,),
    needs={Fact.FORM, Fact.SHAPE, Fact.AXIS},
    spoils={Fact.AXIS},
    bad=replace(EQUAL, axis=2),
    good=replace(EQUAL, axis=-2),
)
def axis_out_of_range(n: OnnxSplit) -> Findings:
    if n.rank is not None and n.axis_index is None:
        axis, limits = n.axis or 0, f"{-n.rank}..{n.rank - 1}"
        yield Finding("axis", f"is {axis}, must be in {limits} for an input of rank {n.rank}", limits, axis)


@NodeRule(
    "onnx/axis-negative",
    "The axis is negative, which the text of this version does not define.",
    "Negative axes are documented from version 11 on. onnx's shape inference has always accepted them.",
    severity=Severity.WARNING,
    sources=(ONNX_SPLIT_CHANGES, ONNX_SPLIT_SHAPES),
    needs={Fact.FORM, Fact.AXIS},
    bad=replace(EQUAL, version=2, axis=-1),
    good=replace(EQUAL, version=11, axis=-1),
)
def axis_negative(n: OnnxSplit) -> Findings:
    if n.version < 11 and n.axis is not None and n.axis < 0:
        silent = f"the text of Split {n.version} does not define negative axes"
        yield Finding("axis", f"is {n.axis}: {silent}; it is counted from the end", "0 or more", n.axis)


@NodeRule(
    "onnx/axis-missing",
    "Split 1 has no axis.",
    "The text of version 1 gives no default; dmlsplit uses 0, the default from version 2 on.",
    severity=Severity.WARNING,
    sources=(ONNX_SPLIT_CHANGES,),
    needs={Fact.FORM, Fact.AXIS},
    bad=replace(EQUAL, version=1, axis=None),
    good=replace(EQUAL, version=2, axis=None),
)
def axis_missing(n: OnnxSplit) -> Findings:
    if n.version == 1 and n.axis is None:
        yield Finding("axis", "is missing, and Split 1 has no default; 0 is assumed", "an axis")


@NodeRule(
    "onnx/split-and-num-outputs",
    "Both `split` and `num_outputs` are given.",
    "From version 18 on, exactly one of them must be given.",
    sources=(ONNX_SPLIT,),
    needs={Fact.FORM, Fact.LENGTHS},
    spoils={Fact.LENGTHS, Fact.COUNT},
    runtimes="the reference evaluator uses split, OpenVINO uses num_outputs",
    bad=replace(GIVEN, version=18, num_outputs=2),
    good=replace(GIVEN, version=18),
)
def split_and_num_outputs(n: OnnxSplit) -> Findings:
    if n.num_outputs is not None and n.split_input:
        yield Finding(
            "num_outputs",
            f"is {n.num_outputs}, but the input split is given as well",
            "either of the two",
            n.num_outputs,
        )


@NodeRule(
    "onnx/split-or-num-outputs-missing",
    "Neither `split` nor `num_outputs` is given.",
    "From version 18 on, exactly one of them must be given; before, equal parts for all outputs were the default.",
    sources=(ONNX_SPLIT,),
    needs={Fact.FORM, Fact.LENGTHS},
    spoils={Fact.LENGTHS, Fact.COUNT},
    runtimes="the reference evaluator and OpenVINO split into equal parts",
    bad=replace(EQUAL, version=18),
    good=COUNTED,
)
def split_or_num_outputs_missing(n: OnnxSplit) -> Findings:
    if n.version >= 18 and n.num_outputs is None and not n.split_input:
        yield Finding("num_outputs", "is missing, and so is the input split", "either of the two")


@NodeRule(
    "onnx/num-outputs-below-one",
    "`num_outputs` is below 1.",
    "A split has at least one part.",
    sources=(ONNX_SPLIT_SHAPES,),
    needs={Fact.FORM, Fact.COUNT},
    spoils={Fact.LENGTHS, Fact.COUNT},
    runtimes="the reference evaluator treats 0 as missing",
    bad=replace(COUNTED, num_outputs=0),
    good=COUNTED,
)
def num_outputs_below_one(n: OnnxSplit) -> Findings:
    if n.num_outputs is not None and n.num_outputs < 1:
        yield Finding("num_outputs", f"is {n.num_outputs}, must be at least 1", "at least 1", n.num_outputs)


@NodeRule(
    "onnx/outputs-missing",
    "The node has no outputs.",
    "A Split lists at least one output, even if the output has no name.",
    sources=(ONNX_SPLIT,),
    spoils={Fact.COUNT, Fact.LENGTHS},
    bad=replace(EQUAL, outputs=0),
    good=replace(EQUAL, outputs=1),
)
def outputs_missing(n: OnnxSplit) -> Findings:
    if n.outputs == 0:
        yield Finding("outputs", "are none", "at least 1", 0)


@NodeRule(
    "onnx/outputs-exceed-num-outputs",
    "The node lists more outputs than `num_outputs`.",
    "No parts are left for the other outputs.",
    sources=(ONNX_SPLIT,),
    needs={Fact.FORM, Fact.COUNT},
    spoils={Fact.COUNT},
    runtimes="onnx's shape inference crashes the process, and so does ONNX Runtime, which contains it",
    bad=replace(COUNTED, outputs=3),
    good=COUNTED,
)
def outputs_exceed_num_outputs(n: OnnxSplit) -> Findings:
    if n.num_outputs is not None and n.outputs > n.num_outputs:
        message = f"are {n.outputs}, but num_outputs is {n.num_outputs}"
        yield Finding("outputs", message, n.num_outputs, n.outputs)


@NodeRule(
    "onnx/outputs-fewer-than-num-outputs",
    "The node lists fewer outputs than `num_outputs`.",
    "onnx's shape inference, its reference evaluator and OpenVINO use the first of num_outputs parts. ONNX Runtime "
    "divides by the number of listed outputs on the CPU, and therefore computes other values; its kernel for DirectML "
    "refuses the node.",
    severity=Severity.WARNING,
    basis=Basis.OBSERVED,
    sources=(OBSERVED_RUNTIMES, ONNX_SPLIT_SHAPES),
    needs={Fact.FORM, Fact.COUNT},
    bad=replace(COUNTED, num_outputs=3),
    good=COUNTED,
)
def outputs_fewer_than_num_outputs(n: OnnxSplit) -> Findings:
    if n.num_outputs is not None and n.outputs < n.num_outputs:
        message = f"are {n.outputs}, but num_outputs is {n.num_outputs}: ONNX Runtime makes {n.outputs} parts"
        message = f"{message}, others use the first {n.outputs} of {n.num_outputs}"
        yield Finding("outputs", message, n.num_outputs, n.outputs)


@NodeRule(
    "onnx/output-omitted",
    "An output has no name.",
    "The specification says how to omit optional inputs and outputs, but not outputs among a variable number. "
    "dmlsplit assumes that the part is computed and not used. ONNX Runtime's CPU execution provider crashes. With "
    "its DirectML execution provider CreateOperator refuses the operator, and session creation or Run fails.",
    severity=Severity.WARNING,
    basis=Basis.OBSERVED,
    sources=(OBSERVED_RUNTIMES, ONNX_IR),
    needs={Fact.FORM, Fact.COUNT},
    bad=replace(EQUAL, omitted=(1,)),
    good=EQUAL,
)
def output_omitted(n: OnnxSplit) -> Findings:
    for i in n.omitted:
        message = "has no name: the part is not used; ONNX Runtime crashes on the CPU, and DirectML refuses it"
        yield Finding(("outputs", i), message, "a name", "")


@NodeRule(
    "onnx/output-repeated",
    "Two outputs have the same name.",
    "Graphs are in static single assignment form: each name is written once. onnx.checker refuses the model.",
    sources=(ONNX_IR,),
    needs={Fact.FORM, Fact.COUNT},
    bad=replace(EQUAL, repeated=(1,)),
    good=EQUAL,
)
def output_repeated(n: OnnxSplit) -> Findings:
    for i in n.repeated:
        yield Finding(("outputs", i), "has the same name as an earlier output", "a name of its own")


@NodeRule(
    "onnx/split-name-empty",
    "The optional second input is omitted with an empty name.",
    "An empty name is a legal way to omit the input. ONNX Runtime refuses it together with num_outputs.",
    severity=Severity.WARNING,
    basis=Basis.OBSERVED,
    sources=(OBSERVED_RUNTIMES, ONNX_IR),
    needs={Fact.FORM, Fact.COUNT},
    bad=replace(COUNTED, inputs=2),
    good=COUNTED,
)
def split_name_empty(n: OnnxSplit) -> Findings:
    message = "has an empty name, which omits the input; ONNX Runtime refuses this together with num_outputs"
    if n.num_outputs is not None and n.inputs >= 2 and not n.split_input:
        yield Finding("inputs[1]", message)
