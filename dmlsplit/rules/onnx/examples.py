"""Nodes for the rules' examples: variations of these."""

from __future__ import annotations

from dataclasses import replace

from dmlsplit.rules.onnx.facts import OnnxSplit

EQUAL = OnnxSplit(13, 2, data_type="FLOAT", input_shape=(4, 6), axis=1)
GIVEN = OnnxSplit(
    *(13, 2),
    data_type="FLOAT",
    input_shape=(4, 6),
    axis=1,
    inputs=2,
    split_input=True,
    split_values=(2, 4),
    split_type="INT64",
    split_shape=(2,),
)
ATTRIBUTE = replace(EQUAL, version=11, split=(2, 4))
COUNTED = replace(EQUAL, version=18, num_outputs=2)
