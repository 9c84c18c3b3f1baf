"""ONNX models of one Split, from a row of the corpus."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tests.models import Sketch

_TYPES = {
    "float32": "FLOAT", "float64": "DOUBLE", "string": "STRING", "bfloat16": "BFLOAT16", "float4e2m1": "FLOAT4E2M1",
    "float8_e5m2": "FLOAT8E5M2", "float8_e4m3fn": "FLOAT8E4M3FN",
}  # fmt: skip


def data_type(name):
    return TensorProto.DataType.Value(_TYPES.get(name, name.upper()))


def build(row):
    """A model, and the values of the inputs that its lengths are."""
    declared = row.get("model_shape") or row["shape"]
    shape = [dim if isinstance(dim, (int, str)) else None for dim in declared]
    made = Sketch(data_type(row["dtype"]), row["opset"] or 13)
    made.input("x", *shape)
    outputs = [f"y{i}" for i in range(row["n_outputs"])]
    for i in row.get("omit_outputs", ()):
        outputs[i] = ""
    attributes = {name: row[name] for name in ("axis", "num_outputs") if row.get(name) is not None}
    names, values = ["x"], {}
    form, split = row.get("split_form"), row.get("split")
    if row.get("split_input_empty_name") or form == "empty":
        names.append("")
    elif split is not None and (form == "attribute" or (form is None and (row["opset"] or 13) < 13)):
        attributes["split"] = split
    elif split is not None:
        names.append("split")
        element = row.get("split_dtype") or "int64"
        array = np.array(split, element).reshape(row.get("split_shape") or (len(split),))
        if row.get("split_shape") == []:
            array = array.reshape(())
        if row.get("split_dynamic") or form == "dynamic":
            made.input("split", *array.shape, element=data_type(element))
            values["split"] = array
        elif form == "constant_node":
            made.node("Constant", [], ["split"], value=numpy_helper.from_array(array))
        else:
            made.initializer(array, "split")
    made.node("Split", names, outputs, **{k: v for k, v in attributes.items() if v != []})
    if attributes.get("split") == []:
        made.nodes[-1].attribute.append(helper.make_attribute("split", [], attr_type=7))
    made.outputs = [name for name in outputs if name]
    return made.model(onnx.IR_VERSION), values
