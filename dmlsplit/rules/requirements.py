"""Rules about what a project demands of a model in ONNX Runtime; options of `dmlsplit check` ask for them."""

from __future__ import annotations

from typing import Final

from dmlsplit.descriptors.diagnostics import Basis
from dmlsplit.rules._model import Notice
from dmlsplit.rules._sources import OURS

DML: Final = Notice(
    "require/dml",
    "A smaller fraction of the model's nodes is on DirectML than --require-dml demands.",
    "Nodes that are constants before the session runs, or are removed, do not count. If the session is not created, "
    "no node is on DirectML. The report on the model says which nodes are elsewhere, and why.",
    (OURS,),
    basis=Basis.OURS,
)
CAPTURE: Final = Notice(
    "require/capture",
    "The model is not certain to be captured as one graph, as --require-capture demands.",
    "ONNX Runtime captures a session if all its nodes are on DirectML, so that no tensor is copied between devices.",
    (OURS,),
    basis=Basis.OURS,
)
KNOWN: Final = Notice(
    "require/known",
    "It is not known whether the session is created, where each node runs, or whether a fused graph is right, and "
    "--fail-on unknown demands it.",
    "ONNX Runtime's treatment of an operator is not known to dmlsplit, or depends on facts that the model does not "
    "have, such as sizes; --shape, --dim and --free-dimension give them.",
    (OURS,),
    basis=Basis.OURS,
)
