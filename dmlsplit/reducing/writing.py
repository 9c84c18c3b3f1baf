"""Writes the files of a reduction to a folder: all of them, or none."""

from __future__ import annotations

import errno
import json
import os
import re
from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np

from dmlsplit.formats.npy import header_bytes
from dmlsplit.formats.onnx.tensors import Array
from dmlsplit.reducing.reduction import Reduction
from dmlsplit.system.atomic_files import atomic_files
from dmlsplit.system.errors import naming

MODEL: Final = "model.onnx"
SUMMARY: Final = "why.json"
EXPLANATION: Final = "explain.json"
_OURS: Final = re.compile(r"(inputs|onnx|directml)\.[0-9]+\.npy|explain\.(json|txt)")
"""The files that not every reduction has."""


def write(found: Reduction, folder: str, explained: str) -> list[str]:
    """Writes to the folder the model, its inputs and outputs as .npy files, a summary that names them, and the
    explanation of the node at fault, as text (`explained`) and as JSON; returns the names of the files.

    All files are written, or none. The files of another reduction in the folder are replaced or removed if its summary
    is there; otherwise raises FileExistsError, which names one of them. Raises OSError if writing fails.
    """
    contents = dict(_contents(found, explained))
    with atomic_files() as files:
        with naming(folder):
            files.make_folder(folder)
            there = sorted(os.listdir(folder))
        old = [name for name in there if name in contents or _OURS.fullmatch(name)]
        if old and SUMMARY not in there:
            said = f"it exists already, and has no {SUMMARY}, so it is not the result of another reduction"
            raise FileExistsError(errno.EEXIST, said, os.path.join(folder, old[0]))
        for name in old:
            if name not in contents:
                files.discard(os.path.join(folder, name))
        for name, parts in contents.items():
            path = os.path.join(folder, name)
            with naming(path), open(files.create(path), "wb") as stream:
                for part in parts:
                    stream.write(part)
    return list(contents)


def _contents(found: Reduction, explained: str) -> Iterator[tuple[str, tuple[bytes, ...]]]:
    """Yields the name and the content, in pieces, of each file; the model comes last, so that all others are there once
    it is."""
    summary = found.to_dict()
    for kind, arrays in (
        ("inputs", found.inputs.arrays),
        ("onnx", found.expected.arrays),
        ("directml", found.predicted.arrays),
    ):
        names = {name: f"{kind}.{i}.npy" for i, name in enumerate(arrays)}
        summary[kind] = {**_why(summary[kind]), "files": names}
        for name, array in arrays.items():
            yield names[name], _npy(array)
    yield SUMMARY, (_json(summary),)
    if found.explanation is not None:
        yield EXPLANATION, (_json(found.explanation.to_dict()),)
        yield "explain.txt", (explained.encode("utf-8", "backslashreplace"),)
    yield MODEL, (found.model.SerializeToString(deterministic=True),)


def _why(kind: object) -> Mapping[str, object]:
    assert isinstance(kind, dict)
    return {"why": kind["why"]}


def _json(value: object) -> bytes:
    return (json.dumps(value, indent=2) + "\n").encode()


def _npy(array: Array) -> tuple[bytes, bytes]:
    return header_bytes(array.shape, False, array.dtype), np.ascontiguousarray(array).tobytes()
