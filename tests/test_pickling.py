"""Results that go from one process to another."""

import copy
import pickle

import pytest

from dmlsplit.descriptors.descs import BufferTensorDesc, TensorDesc
from dmlsplit.descriptors.diagnostics import Basis, Diagnostic, Severity
from dmlsplit.descriptors.enums import TensorDataType, TensorType
from dmlsplit.descriptors.location import Location
from dmlsplit.verdicts.model_placements import NodePlacement, Provider

BUFFER = BufferTensorDesc(TensorDataType.FLOAT32, (2, 3), strides=(4, 1), dimension_count=2)
AT = Location(("OutputTensors", 1, "Sizes"), "node")


@pytest.mark.parametrize(
    "value",
    [
        BUFFER,
        TensorDesc(TensorType.BUFFER, BUFFER),
        AT,
        Diagnostic("split/axis-sizes-sum", Severity.ERROR, Basis.OBSERVED, AT, "sums differ", "8", "7", ""),
        NodePlacement("split", "Split", Provider.DML, version=13, graph=0),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_written_slot_by_slot_is_read_again(value):
    for again in (pickle.loads(pickle.dumps(value)), copy.deepcopy(value)):
        assert type(again) is type(value)
        assert again == value
    assert value.__getstate__() == tuple(getattr(value, name) for name in value.__dataclass_fields__)
