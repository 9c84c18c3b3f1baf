"""Read by mypy, never run: the types of the main calls, and calls that a type checker refuses.

mypy reports an ignore that nothing needs, so that each ignored line is one that it refuses.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, assert_type

import numpy as np
import numpy.typing as npt

import dmlsplit as dml

Outputs = list[npt.NDArray[np.number]]
Output = npt.NDArray[np.number]


def a_split(desc: dml.SplitOperatorDesc, array: npt.NDArray[np.float32], out: list[npt.NDArray[np.float32]]) -> None:
    op = dml.compile(desc, num_threads="auto")
    assert_type(op, dml.CompiledOperator[dml.SplitOperatorDesc])
    assert_type(op.desc, dml.SplitOperatorDesc)
    assert_type(op(array), Outputs)
    assert_type(op.dispatch(array, out=out), None)
    assert_type(op.bind(array, out), dml.BoundOperator)
    op.dispatch(bytes(48), [bytearray(16), memoryview(bytearray(16)), dml.Buffer(16)])
    op.dispatch(array, out, num_threads=2)
    op([array])  # type: ignore[arg-type]
    op(None)  # type: ignore[arg-type]
    op.dispatch(array, array)  # type: ignore[arg-type]
    op.dispatch(array)  # type: ignore[call-arg]
    op.bind([array], out)  # type: ignore[arg-type]
    first, *_ = op(array)
    assert_type(first, Output)
    first + 1


def judged(desc: dml.OperatorDesc, graph: dml.GraphDesc) -> None:
    assert_type(dml.validate(desc, directml="1.15.4"), dml.Report)
    assert_type([report.ok for report in dml.check_files(["model.onnx"])], list[bool])
    assert_type(dml.validate(graph, directml="1.15.4"), dml.GraphReport)
    assert_type(dml.validate(graph).outputs, tuple[Literal["right", "wrong", "unknown"], ...])
    dml.validate("graph")  # type: ignore[call-overload]


def a_join(desc: dml.JoinOperatorDesc, arrays: Sequence[npt.NDArray[np.float32]], out: bytearray) -> None:
    op = dml.compile(desc)
    assert_type(op(arrays), Output)
    assert_type(op.dispatch(arrays, out=out), None)
    assert_type(op.bind(arrays, out), dml.BoundOperator)
    op(arrays[0])  # type: ignore[arg-type]
    op.dispatch(arrays, [out])  # type: ignore[arg-type]


def legalized(split: dml.SplitOperatorDesc, join: dml.JoinOperatorDesc, array: npt.NDArray[np.int64]) -> None:
    found = dml.legalize(split, feature_level="1_0")
    assert_type(found, dml.Legalization[dml.SplitOperatorDesc])
    assert_type(found.execute(array), Outputs)
    assert_type(found.dispatch(array, out=[array]), None)
    found.execute([array])  # type: ignore[arg-type]
    joined = dml.legalize(join)
    assert_type(joined.execute([array, array]), Output)
    assert_type(joined.dispatch([array, array], out=array), None)
    joined.execute(array)  # type: ignore[arg-type]


def of_either_kind(text: str, array: npt.NDArray[np.float32]) -> None:
    """The kind decides what is bound: it is asked of the descriptor."""
    desc = dml.loads(text)
    dml.compile(desc)  # type: ignore[type-var]
    if isinstance(desc, dml.AnyOperatorDesc):
        return
    any_kind: dml.CompiledOperator = dml.compile(desc)
    any_kind(array)  # type: ignore[misc]
    if isinstance(desc, dml.SplitOperatorDesc):
        assert_type(dml.compile(desc)(array), Outputs)
    else:
        assert_type(dml.compile(desc)([array]), Output)


def arrays(floats: npt.NDArray[np.float32], dates: npt.NDArray[np.datetime64]) -> None:
    assert_type(dml.split(floats, 0, (1, 2)), list[npt.NDArray[np.float32]])
    assert_type(dml.split(dates, axis=-1, sections=2), list[npt.NDArray[np.datetime64]])
    assert_type(dml.join([floats, floats], np.int64(0)), npt.NDArray[np.float32])
    dml.split(floats, 0)  # type: ignore[call-overload]
    dml.split(floats, 0, (1, 2), sections=2)  # type: ignore[call-overload]
    dml.split(floats, 0.5, (1, 2))  # type: ignore[call-overload]
    dml.join(floats, 0)  # type: ignore[arg-type]
