"""What WebNN, TensorFlow, PyTorch and numpy state of a split, through dml.split; DirectML's documentation, through
descriptors."""

import numpy as np
import pytest

import dmlsplit as dml
from tests.conformance.corpus import EXCEPTIONS, dtype_of, expected_arrays, input_array, params, rows

FLAVOURS = (
    *("webnn_split", "tf_split", "torch_tensor_split", "torch_split_with_sizes"),
    *("numpy_split", "numpy_array_split"),
)
CASES = rows("cases", flavour=FLAVOURS)
DIRECTML = rows("cases", flavour="dml_split")
GIVEN = ("splits", "num_or_size_splits", "sections", "indices", "split")
UNEVEN = ("numpy_array_split", "torch_tensor_split")
"""Those whose sections may differ by one, the longer ones first."""
DATA_TYPES = {name.lower(): member for name, member in dml.TensorDataType.__members__.items()}


def pieces(row, size):
    """What a case asks for as dml.split is told it; `size` is the axis's."""
    [given] = [row[key] for key in GIVEN if row.get(key) is not None]
    if isinstance(given, int):
        if row["flavour"] in UNEVEN and given > 0:
            return {"lengths": [size // given + (i < size % given) for i in range(given)]}
        return {"sections": given}
    if row.get("indices") is not None or row["flavour"].startswith("numpy"):
        return {"lengths": [b - a for a, b in zip([0, *given], [*given, size], strict=True)]}
    if row["flavour"] == "tf_split" and -1 in given:
        rest = size - sum(n for n in given if n != -1)
        given = [rest if n == -1 else n for n in given]
    return {"lengths": given}


@pytest.mark.parametrize("row", params(CASES))
def test_split(row):
    shape, expect = row["shape"], row["expect"]
    if row["id"] in EXCEPTIONS:
        pytest.skip(EXCEPTIONS[row["id"]]["reason"])
    # numpy.dsplit, the only one without an axis, cuts axis 2.
    axis = 2 if row["axis_effective"] is None else row["axis_effective"]
    array = input_array(row)
    if array is None:
        array = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    how = pieces(row, shape[axis] if -len(shape) <= axis < len(shape) else 0)
    if not expect["ok"]:
        with pytest.raises(ValueError, match=r"^(axis|lengths) "):
            dml.split(array, axis, **how)
        return
    found = dml.split(array, axis, **how)
    assert "shapes" in expect or "lengths" in expect
    if "shapes" in expect:
        assert [list(piece.shape) for piece in found] == expect["shapes"]
    if "lengths" in expect:
        assert [piece.shape[axis] for piece in found] == expect["lengths"]
    assert np.array_equal(np.concatenate(found, axis), array)
    for piece, value in zip(found, expected_arrays(row) or found, strict=True):
        assert piece.tolist() == value.tolist()


@pytest.mark.parametrize("row", params(DIRECTML))
def test_directml(row):
    data_type = DATA_TYPES.get(row["dtype"])
    if data_type is None:
        # DirectML.h has no such type: no descriptor can name it.
        assert row["expect"]["error"] == "dtype_unsupported"
        with pytest.raises((TypeError, ValueError), match=row["dtype"]):
            dml.BufferTensorDesc.from_array(np.empty(row["shape"], dtype_of(row["dtype"])))
        return
    shapes = row["output_shapes"]
    kinds = row.get("output_dtypes") or [row["dtype"]] * len(shapes)
    outputs = [dml.BufferTensorDesc(DATA_TYPES[kind], shape) for kind, shape in zip(kinds, shapes, strict=True)]
    whole = dml.BufferTensorDesc(data_type, row["shape"])
    desc = dml.SplitOperatorDesc(whole, outputs, row["axis"], row.get("output_count"))
    report = dml.validate(desc, feature_level=row.get("feature_level") or "6_4")
    assert report.ok is row["expect"]["ok"], report
    values = expected_arrays(row)
    if values is not None:
        assert [piece.tolist() for piece in dml.compile(desc)(input_array(row))] == [v.tolist() for v in values]
