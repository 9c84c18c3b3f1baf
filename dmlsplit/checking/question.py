"""The question that is asked about files and their entries."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from dmlsplit.targets.target import Target, find_target

if TYPE_CHECKING:
    from dmlsplit.checking.columns import Columns
    from dmlsplit.checking.front_ends import Given

FAILING: Final = ("error", "warning", "unknown")
"""What makes a check fail, if it is asked for: the values of --fail-on."""

Keep: TypeAlias = Callable[[str], bool]
"""Returns True for rule ids whose diagnostics are wanted."""


def keep_all(rule: str) -> bool:
    """True for every rule id."""
    return True


class Question(NamedTuple):
    """The question about every file: targets, facts given about models, wanted rules, whether to mention a rewriting of
    a refused operator, and further columns to ask about each node of a model; the builds of DirectML to ask."""

    targets: tuple[Target, ...] = (find_target(),)
    given: Given | None = None
    keep: Keep = keep_all
    name_fixes: bool = False
    columns: tuple[Columns, ...] = ()
    builds: Mapping[Target, str] = {}
    """Maps each target to the name of the build that is asked."""
    levels: bool = True
    """Whether the minimum level of nodes is needed; it takes as long as another target."""
