"""Sources of rules: Microsoft's pages, its header, the frameworks' specifications, and observations."""

from __future__ import annotations

from typing import Final, NamedTuple

from dmlsplit.targets.feature_levels import JOIN_PAGE, SPLIT_PAGE
from dmlsplit.targets.releases import observed_levels


class Source(NamedTuple):
    """The source of a rule: a page, or an observation."""

    title: str
    url: str = ""

    def __str__(self) -> str:
        return self.url or self.title


def _page(title: str, path: str) -> Source:
    return Source(title, f"https://learn.microsoft.com/windows/{path}")


SPLIT_DESC: Final = Source("DML_SPLIT_OPERATOR_DESC", SPLIT_PAGE)
JOIN_DESC: Final = Source("DML_JOIN_OPERATOR_DESC", JOIN_PAGE)
BUFFER_DESC: Final = _page("DML_BUFFER_TENSOR_DESC", "win32/api/directml/ns-directml-dml_buffer_tensor_desc")
TENSOR_DESC: Final = _page("DML_TENSOR_DESC", "win32/api/directml/ns-directml-dml_tensor_desc")
TENSOR_TYPE: Final = _page("DML_TENSOR_TYPE", "win32/api/directml/ne-directml-dml_tensor_type")
DATA_TYPE: Final = _page("DML_TENSOR_DATA_TYPE", "win32/api/directml/ne-directml-dml_tensor_data_type")
TENSOR_FLAGS: Final = _page("DML_TENSOR_FLAGS", "win32/api/directml/ne-directml-dml_tensor_flags")
CONSTANTS: Final = _page("DirectML constants", "ai/directml/directml-constants")
STRIDES_PAGE: Final = _page("Using strides to express padding and memory layout", "ai/directml/dml-strides")
HEADER: Final = Source("DirectML.h, annotations of the struct members")
BINDING: Final = _page("Binding in DirectML", "ai/directml/dml-binding")
BUFFER_BINDING: Final = _page("DML_BUFFER_BINDING", "win32/api/directml/ns-directml-dml_buffer_binding")
BIND_INPUTS: Final = _page("IDMLBindingTable::BindInputs", "win32/api/directml/nf-directml-idmlbindingtable-bindinputs")
BIND_OUTPUTS: Final = _page(
    "IDMLBindingTable::BindOutputs", "win32/api/directml/nf-directml-idmlbindingtable-bindoutputs"
)
VERSION_HISTORY: Final = _page("DirectML version history", "ai/directml/dml-version-history")
CREATE_DEVICE: Final = _page("DMLCreateDevice1", "win32/api/directml/nf-directml-dmlcreatedevice1")
QUERY_LEVELS: Final = _page(
    "DML_FEATURE_QUERY_FEATURE_LEVELS", "win32/api/directml/ns-directml-dml_feature_query_feature_levels"
)
EXECUTION_FLAGS: Final = _page("DML_EXECUTION_FLAGS", "win32/api/directml/ne-directml-dml_execution_flags")
CREATE_INITIALIZER: Final = _page(
    "IDMLDevice::CreateOperatorInitializer", "win32/api/directml/nf-directml-idmldevice-createoperatorinitializer"
)
GRAPH_DESC: Final = _page("DML_GRAPH_DESC", "win32/api/directml/ns-directml-dml_graph_desc")
COMPILE_GRAPH: Final = _page("IDMLDevice1::CompileGraph", "win32/api/directml/nf-directml-idmldevice1-compilegraph")
_LEVELS_OBSERVED: Final = f"feature levels {observed_levels()[0]} to {observed_levels()[-1]}"
OBSERVED: Final = Source(f"observed: CreateOperator of every DirectML build asked, {_LEVELS_OBSERVED}")
OBSERVED_DEVICE: Final = Source(
    f"observed: every DirectML build that compiles where it was asked, {_LEVELS_OBSERVED}, from device creation to a "
    "recorded dispatch"
)
OURS: Final = Source("dmlsplit's own judgement")

_ONNX: Final = "https://github.com/onnx/onnx/blob/main"
_ONNX_SHAPES: Final = f"{_ONNX}/onnx/defs/tensor/defs.cc"
ONNX_IR: Final = Source("ONNX intermediate representation", f"{_ONNX}/docs/IR.md")
ONNX_SPLIT: Final = Source("ONNX operators: Split", "https://onnx.ai/onnx/operators/onnx__Split.html")
ONNX_SPLIT_CHANGES: Final = Source("ONNX changelog of operators", f"{_ONNX}/docs/Changelog.md#Split-1")
ONNX_SPLIT_SHAPES: Final = Source("ONNX shape inference of Split", _ONNX_SHAPES)
ONNX_CONCAT: Final = Source("ONNX operators: Concat", "https://onnx.ai/onnx/operators/onnx__Concat.html")
ONNX_CONCAT_CHANGES: Final = Source("ONNX changelog of operators", f"{_ONNX}/docs/Changelog.md#Concat-1")
ONNX_CONCAT_SHAPES: Final = Source("ONNX shape inference of Concat", _ONNX_SHAPES)
ONNX_BOTH_SHAPES: Final = Source("ONNX shape inference of Split and Concat", _ONNX_SHAPES)
OBSERVED_RUNTIMES: Final = Source("observed: onnx 1.23, ONNX Runtime 1.31 and OpenVINO 2026.4 on the CPU")

_OPENVINO: Final = (
    "https://docs.openvino.ai/2025/documentation/openvino-ir-format/operation-sets/operation-specs/movement"
)
OPENVINO_SPLIT: Final = Source("OpenVINO Split-1", f"{_OPENVINO}/split-1.html")
OPENVINO_VARIADIC_SPLIT: Final = Source("OpenVINO VariadicSplit-1", f"{_OPENVINO}/variadic-split-1.html")
OPENVINO_CONCAT: Final = Source("OpenVINO Concat-1", f"{_OPENVINO}/concat-1.html")
OPENVINO_ELEMENT_TYPE: Final = Source(
    "OpenVINO element types",
    "https://github.com/openvinotoolkit/openvino/blob/master/src/core/include/openvino/core/type/element_type.hpp",
)
OBSERVED_OPENVINO: Final = Source("observed: OpenVINO 2026.4 on the CPU")
