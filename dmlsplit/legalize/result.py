"""The result of a rewriting: operators, the bytes of the caller's buffers that they are bound to, and words."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Generic, overload

from dmlsplit.descriptors.call_types import DescT, DescT_co
from dmlsplit.descriptors.descs import JoinOperatorDesc, OperatorDesc, SplitOperatorDesc
from dmlsplit.descriptors.diagnostics import Report, ValidationError
from dmlsplit.legalize.regions import Region

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dmlsplit.descriptors.call_types import Array, Bindable
    from dmlsplit.legalize._run import Runner


@dataclass(frozen=True)
class Legalization(Generic[DescT_co]):
    """Operators that do the work of `desc` where it is to run; made by `legalize`.

    `operators`: to be dispatched one after another; none where nothing is left to do, or where `ok` is False.
    `bindings`: for each operator the Region of each of its tensors, inputs before outputs: what to bind in place of
    the original's buffers, which it never exceeds (an input may be what an operator before has written).
    `output_map`: for each operator and each of its outputs the original's output that it writes to; of a join's
    operators, for each of their inputs the original's input. -1 is any other buffer. `steps`: what was changed, in
    words; empty where the descriptor is taken as it is. `report`: of the target; where `ok` is False it says why
    there is no rewriting. `temporary_bytes`: size of the temporary buffer (index 0), 0 where there is none.
    """

    desc: DescT_co
    ok: bool
    report: Report
    operators: tuple[OperatorDesc, ...] = ()
    output_map: tuple[tuple[int, ...], ...] = ()
    bindings: tuple[tuple[Region, ...], ...] = ()
    steps: tuple[str, ...] = ()
    temporary_bytes: int = 0

    @staticmethod
    def refused(desc: DescT, report: Report) -> Legalization[DescT]:
        """The answer that there is no rewriting; `report` says why."""
        return Legalization(desc, False, report)

    @overload
    def execute(self: Legalization[SplitOperatorDesc], input: Bindable) -> list[Array]: ...
    @overload
    def execute(self: Legalization[JoinOperatorDesc], input: Sequence[Bindable]) -> Array: ...
    def execute(self, input: Bindable | Sequence[Bindable]) -> list[Array] | Array:
        """Runs the operators on an array (a split) or a list of arrays (a join) into fresh arrays.

        The outputs are the original's in data type, sizes and strides, those without elements included: a list for a
        split, an array for a join. ValidationError where `ok` is False, BindingError where an array does not fit.
        """
        out = self._runner.new_outputs()
        self._runner.dispatch(input, out)
        return out

    @overload
    def dispatch(self: Legalization[SplitOperatorDesc], input: Bindable, out: Sequence[Bindable]) -> None: ...
    @overload
    def dispatch(self: Legalization[JoinOperatorDesc], input: Sequence[Bindable], out: Bindable) -> None: ...
    def dispatch(self, input: object, out: object) -> None:
        """Runs the operators in the caller's buffers, which are those of the original descriptor.

        The rules for buffers are those of CompiledOperator.dispatch. An input array that is not laid out as the
        descriptor says is copied first. Bytes of outputs outside of the original's elements stay as they are.
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
