"""Weights of models that a check reads, in files next to them: written once, however many models refer to them."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

import numpy as np
import onnx
from onnx import TensorProto

from dmlsplit.reducing.weights import (
    FURTHEST,
    Original,
    Seed,
    bytes_of,
    drawn_in_pieces,
    filled,
)
from dmlsplit.system.errors import InputError

_INLINE: Final = 1 << 16
"""The most bytes of a tensor that is stored in the model itself."""


class References:
    """The files of weights in a folder."""

    def __init__(self, folder: str, original: Original) -> None:
        self._folder = folder
        self._original = original
        self._pools: dict[tuple[float, float, int], tuple[str, int]] = {}
        """The file of random numbers of a range and type, and how many it has."""
        self._kept: dict[str, tuple[str, int]] = {}
        """The file and the offset of an original tensor, by its name."""

    def with_weights(self, model: onnx.ModelProto, seeds: Mapping[int, Seed]) -> onnx.ModelProto:
        """Returns the model with its weights, as `filled` does; large initializers refer to files in the folder, which
        are written if need be.

        Raises InputError if a tensor of the original cannot be read.
        """
        return filled(model, self._original, seeds, self._put)

    def _put(self, tensor: TensorProto, seed: Seed | None) -> bool:
        """Replaces the data of a large tensor, in place, by a reference to a file, and returns True; returns False for
        a small one, which is not changed. The numbers are those of `seed`, or the original's if it is None."""
        if bytes_of(tensor) <= _INLINE:
            return False
        _refer(tensor, *(self._kept_at(tensor) if seed is None else self._drawn_at(tensor, seed)))
        return True

    def _drawn_at(self, tensor: TensorProto, seed: Seed) -> tuple[str, int]:
        """Returns the file and the byte offset of a tensor's random numbers; one file holds all that are drawn from one
        range."""
        count = math.prod(tensor.dims) + FURTHEST
        key = seed.low, seed.high, tensor.data_type
        size = bytes_of(tensor) // max(math.prod(tensor.dims), 1)
        name, held = self._pools.get(key, (f"random-{len(self._pools)}.bin", 0))
        if held < count:
            with open(os.path.join(self._folder, name), "wb") as stream:
                for piece in drawn_in_pieces(seed, count, tensor.data_type):
                    stream.write(piece.tobytes())
            self._pools[key] = name, count
        return name, seed.skip * size

    def _kept_at(self, tensor: TensorProto) -> tuple[str, int]:
        """Returns the file and the byte offset of the original's numbers of a tensor. Raises InputError if they cannot
        be read."""
        name = tensor.name
        if name not in self._kept:
            file = f"weights-{len(self._kept)}.bin"
            data = self._original.tensor(tensor)
            raw = data.raw_data or _raw(data)
            with open(os.path.join(self._folder, file), "wb") as stream:
                stream.write(raw)
            self._kept[name] = file, 0
        return self._kept[name]


def _raw(tensor: TensorProto) -> bytes:
    """Returns the bytes of a tensor whose elements are in the field for their type. Raises InputError if it is
    malformed."""
    with suppress(Exception):  # onnx raises any of numpy's exceptions where data and dimensions disagree
        return np.ascontiguousarray(onnx.numpy_helper.to_array(tensor)).tobytes()
    raise InputError("a tensor of the original is malformed")


def _refer(tensor: TensorProto, file: str, offset: int) -> None:
    """Replaces a tensor's data, in place, by a reference to a file at a byte offset."""
    size = bytes_of(tensor)
    made = TensorProto(name=tensor.name, data_type=tensor.data_type, dims=tensor.dims)
    made.data_location = TensorProto.EXTERNAL
    for key, value in (("location", file), ("offset", offset), ("length", size)):
        made.external_data.add(key=key, value=str(value))
    tensor.CopyFrom(made)
