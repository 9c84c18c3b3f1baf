"""Rules reported by rewriting a descriptor for a target; they have no check of their own."""

from __future__ import annotations

from typing import Final

from dmlsplit.descriptors.diagnostics import Basis
from dmlsplit.rules._model import Notice
from dmlsplit.rules._sources import OURS

NO_REWRITING: Final = Notice(
    "legalize/no-rewriting",
    "No operators that the target accepts move the same bits within the same buffers.",
    "`dmlsplit legalize` tries other data types, folded dimensions, sub-ranges of the buffers and a temporary "
    "buffer. The message says what rules all of them out.",
    (OURS,),
    basis=Basis.OURS,
)
