"""Where rules come from: Microsoft's pages, its header, and what was observed."""

from __future__ import annotations

from typing import Final, NamedTuple

from dmlsplit.feature_levels import JOIN_PAGE, SPLIT_PAGE
from dmlsplit.releases import observed_levels

LEARN: Final = "https://learn.microsoft.com/windows"


class Source(NamedTuple):
    """Where a rule comes from: a page, or what was observed."""

    title: str
    url: str = ""

    def __str__(self) -> str:
        return self.url or self.title


def _page(title: str, path: str) -> Source:
    return Source(title, f"{LEARN}/{path}")


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
_LEVELS_OBSERVED: Final = f"feature levels {observed_levels()[0]} to {observed_levels()[-1]}"
OBSERVED: Final = Source(f"observed: CreateOperator of every DirectML build asked, {_LEVELS_OBSERVED}")
OBSERVED_DEVICE: Final = Source(
    f"observed: every DirectML build that compiles where it was asked, {_LEVELS_OBSERVED}, from device creation to a "
    "recorded dispatch"
)
OURS: Final = Source("dmlsplit's own judgement")
