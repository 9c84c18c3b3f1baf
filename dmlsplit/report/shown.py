"""The way in which a report is shown, as far as the caller has a choice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from dmlsplit.targets.target import Target


@dataclass(frozen=True, slots=True)
class Shown:
    """`verbose`: each note and warning of its own. `only_problems`: without what is ok. `runtimes`: the versions of
    ONNX Runtime that a page has columns for."""

    verbose: bool = False
    only_problems: bool = False
    runtimes: tuple[Target, ...] = ()


AS_USUAL: Final = Shown()
