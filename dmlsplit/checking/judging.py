"""validate: judges an operator or a graph of operators."""

from __future__ import annotations

from typing import TYPE_CHECKING, overload

from dmlsplit.descriptors.descs import JoinOperatorDesc, OperatorDesc, SplitOperatorDesc
from dmlsplit.descriptors.diagnostics import Report
from dmlsplit.targets.target import LevelLike, ReleaseLike, RuntimeLike, find_target
from dmlsplit.verdicts.validation import evaluate

if TYPE_CHECKING:
    from dmlsplit.graphs import GraphDesc, GraphReport


@overload
def validate(
    desc: OperatorDesc, *, feature_level: LevelLike = ..., directml: ReleaseLike = ..., onnxruntime: RuntimeLike = ...
) -> Report: ...
@overload
def validate(
    desc: GraphDesc, *, feature_level: LevelLike = ..., directml: ReleaseLike = ..., onnxruntime: RuntimeLike = ...
) -> GraphReport: ...
def validate(
    desc: OperatorDesc | GraphDesc,
    *,
    feature_level: LevelLike = None,
    directml: ReleaseLike = None,
    onnxruntime: RuntimeLike = None,
) -> Report:
    """Judges a descriptor, of an operator or of a graph, by a feature level or by a DirectML release (the newest known
    where nothing is given).

    By feature level: the documented tables and rules, and what every build observed refuses. By release: what that
    build answers, as `hresult` (None where the call ends the process). A version of ONNX Runtime stands for the release
    that it ships. The report holds every fault, in descriptor order; of a graph, a GraphReport also says of each graph
    output whether it will be right.

    Raises ValueError for an unknown level, release or version or for several at once, TypeError for what is no
    descriptor of a Split, a Join or a graph.
    """
    target = find_target(feature_level, directml, onnxruntime)
    if not isinstance(desc, (SplitOperatorDesc, JoinOperatorDesc)):
        from dmlsplit import graphs  # it is large, and most programs have operators only

        if isinstance(desc, graphs.GraphDesc):
            return graphs.evaluate_graph(desc, target)
    return evaluate(desc, target)
