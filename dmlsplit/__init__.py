"""DirectML's Split and Join without Windows and without a GPU: validate, emulate, explain.

    import dmlsplit as dml

    x = dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, sizes=(1, 1, 6, 2))
    d = dml.SplitOperatorDesc.from_lengths(x, axis=2, lengths=(2, 1, 3))
    print(dml.validate(d, feature_level="3_0"))

Descriptors and validation are plain Python. The rules, and all that needs numpy or the C extension, are imported at
first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from dmlsplit.descriptors.descs import BufferTensorDesc, JoinOperatorDesc, OperatorDesc, SplitOperatorDesc, TensorDesc
from dmlsplit.descriptors.diagnostics import Basis, Diagnostic, DirectMLError, Report, Severity, ValidationError
from dmlsplit.descriptors.enums import (
    BindingType,
    ExecutionFlags,
    FeatureLevel,
    HResult,
    OperatorType,
    TensorDataType,
    TensorFlags,
    TensorType,
)
from dmlsplit.descriptors.layout import calc_buffer_tensor_size
from dmlsplit.legalize import legalize
from dmlsplit.report import notebook
from dmlsplit.system.errors import (
    BindingError,
    DescriptorError,
    DirectMLWarning,
    DmlSplitError,
    InputError,
    NativeError,
    NotLegalizedError,
)
from dmlsplit.targets.feature_levels import TensorSupport, tensor_support
from dmlsplit.targets.release_names import find_release
from dmlsplit.targets.releases import Release, releases

if TYPE_CHECKING:
    from dmlsplit import library
    from dmlsplit._version import __version__ as __version__
    from dmlsplit.checking.files import check_files
    from dmlsplit.checking.judging import validate
    from dmlsplit.descriptors.any_operator import AnyOperatorDesc
    from dmlsplit.descriptors.schema import OperatorSchema, find_operator, operators
    from dmlsplit.device import BindingDesc, BufferArrayBinding, BufferBinding, Capabilities, Device
    from dmlsplit.formats.json import dumps, loads
    from dmlsplit.graphs import (
        GraphDesc,
        GraphReport,
        InputGraphEdgeDesc,
        IntermediateGraphEdgeDesc,
        NeighbourOperatorDesc,
        OutputGraphEdgeDesc,
    )
    from dmlsplit.legalize.result import Legalization
    from dmlsplit.native.arrays import join, split
    from dmlsplit.native.buffer import Buffer
    from dmlsplit.native.execution import BoundOperator, CompiledOperator, compile
    from dmlsplit.verdicts.validation import minimum_feature_level, supported_feature_levels, supported_releases

__all__ = [
    "AnyOperatorDesc",
    "Basis",
    "BindingDesc",
    "BindingError",
    "BindingType",
    "BoundOperator",
    "Buffer",
    "BufferArrayBinding",
    "BufferBinding",
    "BufferTensorDesc",
    "Capabilities",
    "CompiledOperator",
    "DescriptorError",
    "Device",
    "Diagnostic",
    "DirectMLError",
    "DirectMLWarning",
    "DmlSplitError",
    "ExecutionFlags",
    "FeatureLevel",
    "GraphDesc",
    "GraphReport",
    "HResult",
    "InputError",
    "InputGraphEdgeDesc",
    "IntermediateGraphEdgeDesc",
    "JoinOperatorDesc",
    "Legalization",
    "NativeError",
    "NeighbourOperatorDesc",
    "NotLegalizedError",
    "OperatorDesc",
    "OperatorSchema",
    "OperatorType",
    "OutputGraphEdgeDesc",
    "Release",
    "Report",
    "Severity",
    "SplitOperatorDesc",
    "TensorDataType",
    "TensorDesc",
    "TensorFlags",
    "TensorSupport",
    "TensorType",
    "ValidationError",
    "calc_buffer_tensor_size",
    "check_files",
    "compile",
    "dumps",
    "find_operator",
    "find_release",
    "join",
    "legalize",
    "library",
    "loads",
    "minimum_feature_level",
    "operators",
    "releases",
    "split",
    "supported_feature_levels",
    "supported_releases",
    "tensor_support",
    "validate",
]

notebook.install()

_LAZY = {
    name: module
    for module, names in {
        "dmlsplit": ("library",),
        "dmlsplit._version": ("__version__",),
        "dmlsplit.native.arrays": ("join", "split"),
        "dmlsplit.native.buffer": ("Buffer",),
        "dmlsplit.checking.files": ("check_files",),
        "dmlsplit.descriptors.any_operator": ("AnyOperatorDesc",),
        "dmlsplit.descriptors.schema": ("OperatorSchema", "find_operator", "operators"),
        "dmlsplit.device": ("BindingDesc", "BufferArrayBinding", "BufferBinding", "Capabilities", "Device"),
        "dmlsplit.native.execution": ("BoundOperator", "CompiledOperator", "compile"),
        "dmlsplit.formats.json": ("dumps", "loads"),
        "dmlsplit.graphs": (
            "GraphDesc",
            "GraphReport",
            "InputGraphEdgeDesc",
            "IntermediateGraphEdgeDesc",
            "NeighbourOperatorDesc",
            "OutputGraphEdgeDesc",
        ),
        "dmlsplit.checking.judging": ("validate",),
        "dmlsplit.legalize.result": ("Legalization",),
        "dmlsplit.verdicts.validation": ("minimum_feature_level", "supported_feature_levels", "supported_releases"),
    }.items()
    for name in names
}
"""Name -> module that defines it; imported when the name is first asked for."""


def __getattr__(name: str) -> object:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if _LAZY[name] == __name__:  # a package
        return importlib.import_module(f"{__name__}.{name}")
    value = getattr(importlib.import_module(_LAZY[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
