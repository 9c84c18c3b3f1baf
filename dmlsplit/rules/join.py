"""Rules of DML_JOIN_OPERATOR_DESC, in member order."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

from dmlsplit.descriptors import JoinOperatorDesc
from dmlsplit.diagnostics import Basis, Severity
from dmlsplit.enums import TensorDataType
from dmlsplit.feature_levels import tensor_support
from dmlsplit.rules import _examples as eg
from dmlsplit.rules import _parts
from dmlsplit.rules._model import (
    DIMENSIONS,
    HEADER,
    JOIN_DESC,
    OBSERVED,
    OURS,
    Finding,
    Findings,
    Member,
    OperatorView,
    Rule,
    number_range,
)

_ERROR, _DOCUMENTED = Severity.ERROR, Basis.DOCUMENTED

INPUT_ELEMENTS_MAX: Final = 2**31 - 1


def _input_element_count(o: OperatorView) -> Findings:
    found = []
    for part in o.parts:
        if part.failed & (DIMENSIONS | Member.ELEMENT_COUNT):
            continue
        count = math.prod(part.sizes)
        if count > INPUT_ELEMENTS_MAX:
            message = f"hold {count} elements, at most {INPUT_ELEMENTS_MAX} are taken for one input of a join"
            found.append(Finding(f"{part.path}.Sizes", message, INPUT_ELEMENTS_MAX, count))
    return found


def _dimension_count_differs(o: OperatorView) -> Findings:
    """A note where the documented table and the builds of the same level disagree about this number of dimensions."""
    count = o.whole.desc.dimension_count
    if o.whole.failed & (Member.DESC | Member.DIMENSION_COUNT):
        return None
    level = o.judge.feature_level
    documented = tensor_support(o.type, level)[-1].dimension_counts
    observed = o.judge.builds[o.type][-1].dimension_counts
    if (count in documented) == (count in observed):
        return None
    message = (
        f"is {count}: the page's table for feature level {level} takes {number_range(documented)}, "
        f"builds of that level take {number_range(observed)}"
    )
    return [Finding("OutputTensor.DimensionCount", message, number_range(documented), count)]


RULES: Final = (
    Rule(
        "join/dimension-count-differs",
        Severity.NOTE,
        Basis.OBSERVED,
        "The documented number of dimensions and that of the builds of the same feature level differ.",
        "The page of DML_JOIN_OPERATOR_DESC has 4 dimensions at 2_1 and 4 or 5 up to 4_0; the builds observed take 5 "
        "at 2_1 and 1 to 8 from 3_1 on, as the release notes of DirectML 1.5.0 say. By feature level the page decides.",
        (OBSERVED, JOIN_DESC),
        bad=lambda: eg.join((1, 1, 1, 6, 2), 3),
        good=lambda: eg.join(),
        release="tensorflow-directml-1.15.3.dev200619",
        operator_check=_dimension_count_differs,
    ),
    Rule(
        "join/input-count-zero",
        _ERROR,
        _DOCUMENTED,
        "InputCount is 0.",
        "A join has at least one input; a single one is copied.",
        (JOIN_DESC,),
        marks=Member.ARRAY,
        bad=lambda: JoinOperatorDesc([], eg.tensor(eg.WHOLE), 2),
        good=lambda: eg.join(lengths=(6,)),
        operator_check=_parts.count_zero,
    ),
    Rule(
        "join/inputs-null",
        _ERROR,
        _DOCUMENTED,
        "InputTensors is a null pointer.",
        "The member points to InputCount tensors, held by value. Every build observed reads through the null pointer "
        "and ends the process.",
        (HEADER, JOIN_DESC),
        Member.ARRAY,
        Member.ARRAY,
        lambda: JoinOperatorDesc(None, eg.tensor(eg.WHOLE), 2, input_count=1),
        lambda: eg.join(lengths=(6,)),
        operator_check=_parts.array_null,
    ),
    Rule(
        "join/input-count-exceeds-array",
        _ERROR,
        _DOCUMENTED,
        "InputCount is larger than the number of tensors in InputTensors.",
        "DirectML would read past the end of the array: undefined behaviour, not a promised error.",
        (HEADER, JOIN_DESC),
        Member.ARRAY,
        Member.ARRAY,
        lambda: replace(eg.join(), input_count=4),
        lambda: replace(eg.join(), input_count=3),
        undefined=True,
        operator_check=_parts.count_exceeds_array,
    ),
    Rule(
        "join/inputs-beyond-count",
        Severity.WARNING,
        Basis.OURS,
        "InputTensors has more tensors than InputCount says.",
        "DirectML does not look at the surplus, so that it is missing from the output.",
        (OURS, OBSERVED),
        Member.ARRAY,
        Member.NONE,
        lambda: replace(eg.join(lengths=(2, 1, 3, 4)), input_count=3),
        lambda: eg.join(),
        operator_check=_parts.array_exceeds_count,
    ),
    Rule(
        "join/input-element-count-too-large",
        _ERROR,
        Basis.OBSERVED,
        "An input of a join holds more than 2^31 - 1 elements.",
        "Only joins have this bound; the output, and the input of a split, may hold up to 2^32 - 1.",
        (OBSERVED,),
        Member.ARRAY,
        limit=True,
        bad=lambda: eg.join((1, 1, 1, 2**31), 3, (2**31,), TensorDataType.UINT8),
        good=lambda: eg.join((1, 1, 1, 2**31), 3, (2**31 - 1, 1), TensorDataType.UINT8),
        operator_check=_input_element_count,
    ),
    Rule(
        "join/axis-out-of-range",
        _ERROR,
        _DOCUMENTED,
        "Axis is not a dimension of the output.",
        "Axis counts from 0 to DimensionCount - 1 and is unsigned.",
        (JOIN_DESC,),
        marks=Member.AXIS,
        bad=lambda: replace(eg.join(lengths=(6,)), axis=4),
        good=lambda: replace(eg.join(lengths=(6,)), axis=3),
        operator_check=_parts.axis_out_of_range,
    ),
    Rule(
        "join/data-type-mismatch",
        _ERROR,
        _DOCUMENTED,
        "An input's DataType differs from the output's.",
        "A join converts nothing.",
        (JOIN_DESC,),
        bad=lambda: eg.with_part(eg.join(), 1, eg.tensor((1, 1, 1, 2), TensorDataType.INT32)),
        good=lambda: eg.with_part(eg.join(), 1, eg.tensor((1, 1, 1, 2))),
        operator_check=_parts.data_type_mismatch,
    ),
    Rule(
        "join/dimension-count-mismatch",
        _ERROR,
        _DOCUMENTED,
        "An input's DimensionCount differs from the output's.",
        "Leading dimensions of size 1 are not added by themselves.",
        (JOIN_DESC,),
        bad=lambda: eg.with_part(eg.join(), 1, eg.tensor((1, 1, 1, 1, 2))),
        good=lambda: eg.with_part(eg.join(), 1, eg.tensor((1, 1, 1, 2))),
        operator_check=_parts.dimension_count_mismatch,
    ),
    Rule(
        "join/size-mismatch",
        _ERROR,
        _DOCUMENTED,
        "An input's size differs from the output's in a dimension other than Axis.",
        "A size of 1 is not broadcast.",
        (JOIN_DESC,),
        Member.AXIS,
        bad=lambda: eg.with_part(eg.join(), 1, eg.tensor((1, 1, 1, 1))),
        good=lambda: eg.with_part(eg.join(), 1, eg.tensor((1, 1, 1, 2))),
        operator_check=_parts.size_mismatch,
    ),
    Rule(
        "join/axis-sizes-sum",
        _ERROR,
        _DOCUMENTED,
        "The inputs' sizes on Axis do not sum up to the output's.",
        "The inputs cover the output exactly; the sum does not wrap at 2^32.",
        (JOIN_DESC, OBSERVED),
        Member.AXIS | Member.ARRAY,
        bad=lambda: eg.join(lengths=(2, 1, 2)),
        good=lambda: eg.join(lengths=(2, 1, 3)),
        operator_check=_parts.axis_sizes_sum,
    ),
)
