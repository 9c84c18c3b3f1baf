"""DirectML's Split and Join without Windows and without a GPU: validate, emulate, explain.

    import dmlsplit as dml

    x = dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, sizes=(1, 1, 6, 2))
    d = dml.SplitOperatorDesc.from_lengths(x, axis=2, lengths=(2, 1, 3))
    print(dml.validate(d, feature_level="3_0"))

Graphs, the emulated device, ONNX models and ONNX Runtime have modules of their own: dml.graphs, dml.device, dml.onnx,
dml.onnxruntime. Every name is imported on first use.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING

from dmlsplit.descriptors import notebook
from dmlsplit.system.lazy import lazy

if TYPE_CHECKING:
    from dmlsplit import device as device
    from dmlsplit import graphs as graphs
    from dmlsplit import library as library
    from dmlsplit import onnx as onnx
    from dmlsplit import onnxruntime as onnxruntime
    from dmlsplit._version import __version__ as __version__
    from dmlsplit.checking.files import check_files
    from dmlsplit.checking.judging import validate
    from dmlsplit.descriptors.any_operator import AnyOperatorDesc
    from dmlsplit.descriptors.descs import (
        BufferTensorDesc,
        JoinOperatorDesc,
        OperatorDesc,
        SplitOperatorDesc,
        TensorDesc,
    )
    from dmlsplit.descriptors.diagnostics import Basis as Basis
    from dmlsplit.descriptors.diagnostics import Diagnostic, Report, Severity, ValidationError
    from dmlsplit.descriptors.diagnostics import DirectMLError as DirectMLError
    from dmlsplit.descriptors.enums import BindingType as BindingType
    from dmlsplit.descriptors.enums import ExecutionFlags as ExecutionFlags
    from dmlsplit.descriptors.enums import FeatureLevel, OperatorType, TensorDataType, TensorFlags
    from dmlsplit.descriptors.enums import HResult as HResult
    from dmlsplit.descriptors.enums import TensorType as TensorType
    from dmlsplit.descriptors.layout import calc_buffer_tensor_size as calc_buffer_tensor_size
    from dmlsplit.descriptors.schema import OperatorSchema, find_operator, operators
    from dmlsplit.device import BindingDesc as BindingDesc
    from dmlsplit.device import BufferArrayBinding as BufferArrayBinding
    from dmlsplit.device import BufferBinding as BufferBinding
    from dmlsplit.device import Capabilities as Capabilities
    from dmlsplit.device import Device as Device
    from dmlsplit.formats.any_operator_json import dumps, loads
    from dmlsplit.graphs import GraphDesc as GraphDesc
    from dmlsplit.graphs import GraphReport as GraphReport
    from dmlsplit.graphs import InputGraphEdgeDesc as InputGraphEdgeDesc
    from dmlsplit.graphs import IntermediateGraphEdgeDesc as IntermediateGraphEdgeDesc
    from dmlsplit.graphs import OutputGraphEdgeDesc as OutputGraphEdgeDesc
    from dmlsplit.legalize import legalize
    from dmlsplit.legalize.result import Legalization as Legalization
    from dmlsplit.native.arrays import join, split
    from dmlsplit.native.buffer import Buffer as Buffer
    from dmlsplit.native.execution import BoundOperator as BoundOperator
    from dmlsplit.native.execution import CompiledOperator as CompiledOperator
    from dmlsplit.native.execution import compile
    from dmlsplit.system.errors import BindingError, DmlSplitError, InputError, NotLegalizedError
    from dmlsplit.system.errors import DescriptorError as DescriptorError
    from dmlsplit.system.errors import DirectMLWarning as DirectMLWarning
    from dmlsplit.system.errors import NativeError as NativeError
    from dmlsplit.targets.feature_levels import TensorSupport as TensorSupport
    from dmlsplit.targets.operator_support import tensor_support as tensor_support
    from dmlsplit.targets.release_names import find_release
    from dmlsplit.targets.releases import Release, releases
    from dmlsplit.targets.runtime_versions import Runtime, find_runtime, runtimes
    from dmlsplit.targets.session_options import SessionOptions
    from dmlsplit.targets.windows import Windows as Windows
    from dmlsplit.targets.windows import WindowsML as WindowsML
    from dmlsplit.targets.windows import windows_ml_versions, windows_versions
    from dmlsplit.verdicts.runtime_answers import RuntimeAnswer
    from dmlsplit.verdicts.validation import minimum_feature_level, supported_feature_levels, supported_releases

__all__ = [
    "AnyOperatorDesc",
    "BindingError",
    "BufferTensorDesc",
    "Diagnostic",
    "DmlSplitError",
    "FeatureLevel",
    "InputError",
    "JoinOperatorDesc",
    "NotLegalizedError",
    "OperatorDesc",
    "OperatorSchema",
    "OperatorType",
    "Release",
    "Report",
    "Runtime",
    "RuntimeAnswer",
    "SessionOptions",
    "Severity",
    "SplitOperatorDesc",
    "TensorDataType",
    "TensorDesc",
    "TensorFlags",
    "ValidationError",
    "check_files",
    "compile",
    "dumps",
    "find_operator",
    "find_release",
    "find_runtime",
    "join",
    "legalize",
    "loads",
    "minimum_feature_level",
    "operators",
    "releases",
    "runtimes",
    "split",
    "supported_feature_levels",
    "supported_releases",
    "validate",
    "windows_ml_versions",
    "windows_versions",
]

_NAMES = {
    "dmlsplit._version": "__version__",
    "dmlsplit.checking.files": "check_files",
    "dmlsplit.checking.judging": "validate",
    "dmlsplit.descriptors.any_operator": "AnyOperatorDesc",
    "dmlsplit.descriptors.descs": "BufferTensorDesc JoinOperatorDesc OperatorDesc SplitOperatorDesc TensorDesc",
    "dmlsplit.descriptors.diagnostics": "Basis Diagnostic DirectMLError Report Severity ValidationError",
    "dmlsplit.descriptors.enums": "BindingType ExecutionFlags FeatureLevel HResult OperatorType TensorDataType"
    " TensorFlags TensorType",
    "dmlsplit.descriptors.layout": "calc_buffer_tensor_size",
    "dmlsplit.descriptors.schema": "OperatorSchema find_operator operators",
    "dmlsplit.device": "BindingDesc BufferArrayBinding BufferBinding Capabilities Device",
    "dmlsplit.formats.any_operator_json": "dumps loads",
    "dmlsplit.graphs": "GraphDesc GraphReport InputGraphEdgeDesc IntermediateGraphEdgeDesc OutputGraphEdgeDesc",
    "dmlsplit.legalize": "legalize",
    "dmlsplit.legalize.result": "Legalization",
    "dmlsplit.native.arrays": "join split",
    "dmlsplit.native.buffer": "Buffer",
    "dmlsplit.native.execution": "BoundOperator CompiledOperator compile",
    "dmlsplit.system.errors": "BindingError DescriptorError DirectMLWarning DmlSplitError InputError NativeError"
    " NotLegalizedError",
    "dmlsplit.targets.feature_levels": "TensorSupport",
    "dmlsplit.targets.operator_support": "tensor_support",
    "dmlsplit.targets.release_names": "find_release",
    "dmlsplit.targets.releases": "Release releases",
    "dmlsplit.targets.runtime_versions": "Runtime find_runtime runtimes",
    "dmlsplit.targets.windows": "Windows WindowsML windows_ml_versions windows_versions",
    "dmlsplit.targets.session_options": "SessionOptions",
    "dmlsplit.verdicts.runtime_answers": "RuntimeAnswer",
    "dmlsplit.verdicts.validation": "minimum_feature_level supported_feature_levels supported_releases",
}
"""Maps each module to the names that the package takes from it; names that are not in __all__ belong to dml.graphs and
dml.device."""
_MODULES = ("device", "graphs", "library", "onnx", "onnxruntime")

__getattr__, __dir__ = lazy(__name__, _NAMES, _MODULES)


class _Package(ModuleType):
    """The type of this module: keeps `dmlsplit.legalize` the function after the subpackage of that name is imported."""

    def __setattr__(self, name: str, value: object) -> None:
        if name != "legalize" or not isinstance(value, ModuleType):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def _picture(desc: OperatorDesc) -> str:
    from dmlsplit.report import svg

    return svg.picture(desc)


def _table(report: Report) -> str | None:
    from dmlsplit.report import html

    return html.notebook(report)


notebook.picture, notebook.table = _picture, _table
