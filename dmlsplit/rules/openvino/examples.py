"""The specifications' own examples, of which the rules' examples are variations."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from dmlsplit.rules.openvino.facts import OpenVinoSplit

SPLIT: Final = OpenVinoSplit(
    "Split", 3, data_shape=(6, 12, 10, 24), data_type="f32", axis=1, axis_type="i64", axis_shape=(), num_splits=3
)
LENGTHS: Final = replace(
    SPLIT,
    op="VariadicSplit",
    axis=0,
    num_splits=None,
    split_lengths=(1, 2, 3),
    split_lengths_type="i64",
    split_lengths_shape=(3,),
)
REST: Final = replace(LENGTHS, outputs=2, split_lengths=(-1, 2), split_lengths_shape=(2,))
