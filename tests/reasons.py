"""DirectML's own reasons: what its debug layer says, compared with the diagnostics of a report."""

from __future__ import annotations

import re
from functools import cache

import dmlsplit as dml
from dmlsplit.rules._debug_layer import BUILD, MESSAGES

RELEASE = BUILD.removeprefix("DirectML ")
_FIELDS = {
    "tensor": r"(?:Input|Output)(?:\[\d+\])?",
    "other": r"(?:Input|Output)(?:\[\d+\])?",
    "sizes": r"\{[\d, ]*\}",
    "strides": r"\{[\d, ]*\}",
    "actual": r"-?\w+",
    "expected": r"\w+",
    "last": r"\d+",
    "product": r"\d+",
    "operator": r"DML_OPERATOR_\w+",
    "types": r"\{[\w, ]*\}",
    "dimension": r"\d+",
}


@cache
def _pattern(template: str) -> re.Pattern[str]:
    parts = re.split(r"\{(\w+)\}", template)
    text = "".join(f"(?P<{part}>{_FIELDS[part]})" if i % 2 else re.escape(part) for i, part in enumerate(parts))
    return re.compile(text)


def reasons(message: str) -> dict[str, dict[str, str]]:
    """The rules for which the debug layer says this, each with the tensor and the figures that it names."""
    found = {}
    for rule, templates in MESSAGES.items():
        for template in templates:
            match = _pattern(template).search(message)  # behind the name of the operator, which is garbled sometimes
            if match and match.end() == len(message):
                found[rule] = match.groupdict()
    return found


def is_among(message: str, report: dml.Report) -> bool:
    """Whether a diagnostic of the report gives the message's reason, on the same tensor, with the same figures."""
    said = reasons(message)
    return any(d.rule in said and _same(d, said[d.rule], report.operator or "") for d in report.diagnostics)


def _same(d: dml.Diagnostic, said: dict[str, str], operator: str) -> bool:
    if "other" in said:
        return _same_pair(d, said, operator)
    if "tensor" in said and d.path.split(".")[0] != _path(said["tensor"], operator):
        return False
    if "dimension" in said and not d.path.endswith(f".Sizes[{said['dimension']}]"):
        return False
    if "last" in said and str(d.expected) != ("a dimension" if int(said["last"]) >= 2**32 - 1 else f"0-{said['last']}"):
        return False
    if "product" in said and (not isinstance(d.actual, int) or d.actual % 2**32 != int(said["product"])):
        return False
    return all(str(getattr(d, name)) in _values(said[name]) for name in ("actual", "expected") if name in said)


def _same_pair(d: dml.Diagnostic, said: dict[str, str], operator: str) -> bool:
    """The layer compares neighbours, we compare each part with the whole: one of the two differs from it."""
    values = {
        _path(said[key], operator): _values(said[name]) for key, name in (("tensor", "actual"), ("other", "expected"))
    }
    path = d.path.split(".")[0]
    return path in values and str(d.actual) in values[path]


def _path(tensor: str, operator: str) -> str:
    """Input is InputTensor, Output[1] is OutputTensors[1]."""
    name, bracket, index = tensor.partition("[")
    return f"{name}Tensors[{index}" if bracket else f"{name}Tensor"


def _values(text: str) -> set[str]:
    """A figure in the forms that a diagnostic may have it."""
    forms = {text, text.removeprefix("DML_TENSOR_DATA_TYPE_")}
    if re.fullmatch(r"-?\d+", text):
        number = int(text) % 2**32
        forms |= {str(number)} | {t.name for t in dml.TensorDataType if t == number}
    return forms
