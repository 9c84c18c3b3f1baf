"""The result of a rewriting: operators, the byte ranges of the caller's buffers that they are bound to, and a
description."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Generic, overload

from dmlsplit.descriptors.call_types import DescT_co
from dmlsplit.descriptors.descs import JoinOperatorDesc, OperatorDesc, SplitOperatorDesc
from dmlsplit.descriptors.diagnostics import Report, ValidationError
from dmlsplit.legalize.regions import Region

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dmlsplit.descriptors.call_types import Array, Bindable
    from dmlsplit.legalize._run import Runner


@dataclass(frozen=True)
class Legalization(Generic[DescT_co]):
    """The operators that replace `desc` on the target; returned by `legalize`.

    `operators`: to be dispatched in order; empty if there is nothing to copy, or if `ok` is False. `bindings`: for each
    operator the Region of each tensor, inputs before outputs, within the original's buffers (an input may be the output
    of an earlier operator). `output_map`: for a split, the index of the original's output that each output of each
    operator writes; for a join, the index of the original's input that each input reads; -1 for any other buffer.
    `steps`: describes the changes; empty if the descriptor itself is accepted. `report`: the target's report; it gives
    the reasons if `ok` is False. `temporary_bytes`: size of the temporary buffer (index 0), 0 if there is none.
    """

    desc: DescT_co
    ok: bool
    report: Report
    operators: tuple[OperatorDesc, ...] = ()
    output_map: tuple[tuple[int, ...], ...] = ()
    bindings: tuple[tuple[Region, ...], ...] = ()
    steps: tuple[str, ...] = ()
    temporary_bytes: int = 0

    @overload
    def execute(self: Legalization[SplitOperatorDesc], input: Bindable) -> list[Array]: ...
    @overload
    def execute(self: Legalization[JoinOperatorDesc], input: Sequence[Bindable]) -> Array: ...
    def execute(self, input: Bindable | Sequence[Bindable]) -> list[Array] | Array:
        """Runs the operators on an array (a split) or a list of arrays (a join) and returns fresh arrays.

        The outputs have the original's data type, sizes and strides, and include outputs without elements: a list for a
        split, an array for a join. Raises ValidationError if `ok` is False, BindingError if an array does not fit.
        """
        out = self._runner.new_outputs()
        self._runner.dispatch(input, out)
        return out

    @overload
    def dispatch(self: Legalization[SplitOperatorDesc], input: Bindable, out: Sequence[Bindable]) -> None: ...
    @overload
    def dispatch(self: Legalization[JoinOperatorDesc], input: Sequence[Bindable], out: Bindable) -> None: ...
    def dispatch(self, input: object, out: object) -> None:
        """Runs the operators on the caller's buffers, which must fit the original descriptor. Raises ValidationError if
        `ok` is False, BindingError if a buffer does not fit.

        The rules for buffers are those of CompiledOperator.dispatch. An input array whose layout differs from the
        descriptor's is copied first. Output bytes outside the original's elements are not modified.
        """
        self._runner.dispatch(input, out)

    @cached_property
    def _runner(self) -> Runner:
        if not self.ok:
            raise ValidationError(self.report)
        from dmlsplit.legalize._run import Runner

        return Runner(self.desc, self.report, self.operators, self.bindings, self.temporary_bytes)

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in self.__dict__.items() if name != "_runner"}
