"""validate: judges an operator or a graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, overload

from dmlsplit.descriptors.descs import JoinOperatorDesc, OperatorDesc, SplitOperatorDesc
from dmlsplit.descriptors.diagnostics import Report
from dmlsplit.targets.target import LevelLike, ReleaseLike, RuntimeLike, Target, find_target
from dmlsplit.verdicts.validation import evaluate

if TYPE_CHECKING:
    from dmlsplit.descriptors.any_operator import AnyOperatorDesc
    from dmlsplit.graphs import GraphDesc, GraphReport
    from dmlsplit.targets.windows import WindowsLike, WindowsMLLike


@overload
def validate(
    desc: OperatorDesc | AnyOperatorDesc,
    *,
    feature_level: LevelLike = ...,
    directml: ReleaseLike = ...,
    onnxruntime: RuntimeLike = ...,
    windows: WindowsLike = ...,
    windows_ml: WindowsMLLike = ...,
) -> Report: ...
@overload
def validate(
    desc: GraphDesc,
    *,
    feature_level: LevelLike = ...,
    directml: ReleaseLike = ...,
    onnxruntime: RuntimeLike = ...,
    windows: WindowsLike = ...,
    windows_ml: WindowsMLLike = ...,
) -> GraphReport: ...
def validate(
    desc: OperatorDesc | AnyOperatorDesc | GraphDesc,
    *,
    feature_level: LevelLike = None,
    directml: ReleaseLike = None,
    onnxruntime: RuntimeLike = None,
    windows: WindowsLike = None,
    windows_ml: WindowsMLLike = None,
) -> Report:
    """Judges the descriptor of an operator or a graph by a feature level or a DirectML release (by default the newest
    known), and returns the report.

    A feature level is judged by the documented tables and rules, and refuses what every observed build refuses. For a
    release, `hresult` is that build's answer (None if the call ends the process). A version of ONNX Runtime is judged
    as the release that it ships, a Windows ("10-22H2") as the DirectML.dll in its System32, a Windows ML ("2.1.71") as
    the DirectML that it ships. Operators other than Split and Join are judged by recorded tables (`basis_of_verdict` is
    "tables"): `ok` then means that nothing recorded refuses them. The report has every fault, in descriptor order; a
    graph's GraphReport also has the correctness of each graph output.

    Raises ValueError for an unknown level, release or version or for several at once, TypeError for anything but a
    descriptor of an operator or a graph.
    """
    target = find_target(feature_level, directml, onnxruntime, windows=windows, windows_ml=windows_ml)
    if isinstance(desc, (SplitOperatorDesc, JoinOperatorDesc)):
        return evaluate(desc, target)
    from dmlsplit.descriptors.any_operator import AnyOperatorDesc, narrowed

    return judged(narrowed(desc) if isinstance(desc, AnyOperatorDesc) else desc, target)


def judged(desc: OperatorDesc | AnyOperatorDesc | GraphDesc, target: Target) -> Report:
    """Returns the report of one target on the descriptor of an operator or a graph; a Split or Join that is given as an
    AnyOperatorDesc is judged by tables only. Raises TypeError for anything else."""
    if not isinstance(desc, (SplitOperatorDesc, JoinOperatorDesc)):
        from dmlsplit import graphs  # importing it is slow, and most programs use only Splits and Joins

        if isinstance(desc, graphs.GraphDesc):
            return graphs.evaluate_graph(desc, target)
        from dmlsplit.descriptors.any_operator import AnyOperatorDesc

        if isinstance(desc, AnyOperatorDesc):
            from dmlsplit.verdicts.any_operator import evaluate_any

            return evaluate_any(desc, target)
    return evaluate(desc, target)
