"""The way in which a report is shown, as far as the caller has a choice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from dmlsplit.targets.target import Target


class Shown(NamedTuple):
    """`verbose`: each note and warning of its own. `only_problems`: without what is ok. `runtimes`: the versions of
    ONNX Runtime that a page has columns for."""

    verbose: bool = False
    only_problems: bool = False
    runtimes: tuple[Target, ...] = ()


AS_USUAL: Final = Shown()
