"""Rules of DML_SPLIT_OPERATOR_DESC, in member order."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from dmlsplit.descriptors import SplitOperatorDesc
from dmlsplit.diagnostics import Basis, Severity
from dmlsplit.enums import TensorDataType
from dmlsplit.rules import _examples as eg
from dmlsplit.rules import _parts
from dmlsplit.rules._model import HEADER, OBSERVED, OURS, SPLIT_DESC, Member, Rule

_ERROR, _DOCUMENTED = Severity.ERROR, Basis.DOCUMENTED

RULES: Final = (
    Rule(
        "split/output-count-zero",
        _ERROR,
        _DOCUMENTED,
        "OutputCount is 0.",
        "A split has at least one output; a single one is a copy of the input.",
        (SPLIT_DESC,),
        marks=Member.ARRAY,
        bad=lambda: SplitOperatorDesc(eg.tensor(eg.WHOLE), [], 2),
        good=lambda: eg.split(lengths=(6,)),
        operator_check=_parts.count_zero,
    ),
    Rule(
        "split/outputs-null",
        _ERROR,
        _DOCUMENTED,
        "OutputTensors is a null pointer.",
        "The member points to OutputCount tensors, held by value.",
        (HEADER, SPLIT_DESC),
        Member.ARRAY,
        Member.ARRAY,
        lambda: SplitOperatorDesc(eg.tensor(eg.WHOLE), None, 2, output_count=1),
        lambda: eg.split(lengths=(6,)),
        operator_check=_parts.array_null,
    ),
    Rule(
        "split/output-count-exceeds-array",
        _ERROR,
        _DOCUMENTED,
        "OutputCount is larger than the number of tensors in OutputTensors.",
        "DirectML would read past the end of the array: undefined behaviour, not a promised error.",
        (HEADER, SPLIT_DESC),
        Member.ARRAY,
        Member.ARRAY,
        lambda: replace(eg.split(), output_count=4),
        lambda: replace(eg.split(), output_count=3),
        undefined=True,
        operator_check=_parts.count_exceeds_array,
    ),
    Rule(
        "split/outputs-beyond-count",
        Severity.WARNING,
        Basis.OURS,
        "OutputTensors has more tensors than OutputCount says.",
        "DirectML does not look at the surplus, and has no output to bind for it.",
        (OURS, OBSERVED),
        Member.ARRAY,
        Member.NONE,
        lambda: replace(eg.split(lengths=(2, 1, 3, 4)), output_count=3),
        lambda: eg.split(),
        operator_check=_parts.array_exceeds_count,
    ),
    Rule(
        "split/axis-out-of-range",
        _ERROR,
        _DOCUMENTED,
        "Axis is not a dimension of the input.",
        "Axis counts from 0 to DimensionCount - 1 and is unsigned: a negative axis of ONNX or numpy has to be resolved "
        "first.",
        (SPLIT_DESC,),
        marks=Member.AXIS,
        bad=lambda: replace(eg.split(lengths=(6,)), axis=4),
        good=lambda: replace(eg.split(lengths=(6,)), axis=3),
        operator_check=_parts.axis_out_of_range,
    ),
    Rule(
        "split/data-type-mismatch",
        _ERROR,
        _DOCUMENTED,
        "An output's DataType differs from the input's.",
        "A split converts nothing.",
        (SPLIT_DESC,),
        bad=lambda: eg.with_part(eg.split(), 1, eg.tensor((1, 1, 1, 2), TensorDataType.INT32)),
        good=lambda: eg.with_part(eg.split(), 1, eg.tensor((1, 1, 1, 2))),
        operator_check=_parts.data_type_mismatch,
    ),
    Rule(
        "split/dimension-count-mismatch",
        _ERROR,
        _DOCUMENTED,
        "An output's DimensionCount differs from the input's.",
        "Leading dimensions of size 1 are not added by themselves.",
        (SPLIT_DESC,),
        bad=lambda: eg.with_part(eg.split(), 1, eg.tensor((1, 1, 2))),
        good=lambda: eg.with_part(eg.split(), 1, eg.tensor((1, 1, 1, 2))),
        operator_check=_parts.dimension_count_mismatch,
    ),
    Rule(
        "split/size-mismatch",
        _ERROR,
        _DOCUMENTED,
        "An output's size differs from the input's in a dimension other than Axis.",
        "A size of 1 is not broadcast.",
        (SPLIT_DESC,),
        Member.AXIS,
        bad=lambda: eg.with_part(eg.split(), 1, eg.tensor((1, 1, 1, 1))),
        good=lambda: eg.with_part(eg.split(), 1, eg.tensor((1, 1, 1, 2))),
        operator_check=_parts.size_mismatch,
    ),
    Rule(
        "split/axis-sizes-sum",
        _ERROR,
        _DOCUMENTED,
        "The outputs' sizes on Axis do not sum up to the input's.",
        "The pieces cover the input exactly; the sum does not wrap at 2^32.",
        (SPLIT_DESC, OBSERVED),
        Member.AXIS | Member.ARRAY,
        bad=lambda: eg.split(lengths=(2, 1, 2)),
        good=lambda: eg.split(lengths=(2, 1, 3)),
        operator_check=_parts.axis_sizes_sum,
    ),
)
