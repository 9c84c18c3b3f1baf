"""Runs descriptors: compiled operators and their bindings."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Final, Generic, TypeAlias, overload

import numpy as np

from dmlsplit.descriptors.call_types import DescT, DescT_co
from dmlsplit.descriptors.descs import JoinOperatorDesc, SplitOperatorDesc
from dmlsplit.descriptors.diagnostics import Report
from dmlsplit.descriptors.geometry import Geometry
from dmlsplit.native import core
from dmlsplit.native.binding import BoundMemory, BoundTensor, bind, check_apart, new_output
from dmlsplit.native.dispatchers import array_dispatcher
from dmlsplit.native.fresh import FreshArrays
from dmlsplit.native.plans import plan_of
from dmlsplit.native.threads import NumThreads, thread_count
from dmlsplit.system.errors import BindingError, NativeError
from dmlsplit.targets.target import LevelLike, ReleaseLike, RuntimeLike, find_target
from dmlsplit.verdicts.validation import evaluate

if TYPE_CHECKING:
    from dmlsplit.descriptors.call_types import Array, Bindable

PLANS_PER_OPERATOR: Final = 16
"""The most plans that a compiled operator keeps for inputs whose strides are not the descriptor's."""
OVERLAP_UNDECIDED: Final = "tensor/output-overlap-undecided"


def compile(
    desc: DescT,
    *,
    feature_level: LevelLike = None,
    directml: ReleaseLike = None,
    onnxruntime: RuntimeLike = None,
    num_threads: NumThreads = None,
) -> CompiledOperator[DescT]:
    """Plans a descriptor for execution and returns the compiled operator. The target is named as in `validate`;
    the default is the newest release.

    `num_threads`: how many threads a dispatch uses; "auto" takes several only if it pays, None takes the environment
    variable DMLSPLIT_NUM_THREADS, else 1. Worker threads sleep between dispatches and are shared by all operators.

    Raises ValidationError, which carries the Report, if `validate` with the same arguments finds an error; NativeError
    if the core refuses it (a bounded search could not decide whether elements of an output overlap).
    """
    report = evaluate(desc, find_target(feature_level, directml, onnxruntime))
    report.raise_if_errors()
    refuse_undecided(report)
    return CompiledOperator(desc, report, num_threads)


def refuse_undecided(report: Report) -> None:
    """Raises NativeError if the report could not decide whether elements of an output overlap."""
    for diagnostic in report.diagnostics:
        if diagnostic.rule == OVERLAP_UNDECIDED:
            raise NativeError(f"{diagnostic.path}: {diagnostic.message}")


class CompiledOperator(Generic[DescT_co]):
    """A planned split or join; immutable in effect, and free to be used by many threads at once.

    A split takes one buffer and gives a list of them, a join takes a list and gives one. A buffer is read in one of two
    ways:

    - An ndarray of the tensor's sizes and data type is the tensor. As an input it may have any strides; as an output it
      has the descriptor's. It needs no more bytes than its elements have.
    - Anything else that is bytes-like and contiguous is raw memory, in which the descriptor's strides say where each
      element lies: bytes, bytearray, memoryview, dml.Buffer, a 1-D uint8 array. It needs TotalTensorSizeInBytes.

    An ndarray that is neither is refused. So is a uint8 array of n bytes for a tensor of sizes (n,) and strides (0,),
    which could be n elements, or raw memory of which every element is the first: pass numpy.broadcast_to(element, n)
    for elements, a memoryview or a dml.Buffer for raw memory.
    """

    def __init__(self, desc: DescT_co, report: Report, num_threads: NumThreads = None) -> None:
        self.desc = desc
        self.report = report
        geometry = Geometry.of(desc)
        self._roles = geometry.roles
        # Read at every dispatch, which may take less than a microsecond.
        self._whole_is_input = self._roles.whole_side == "input"
        self._whole = BoundTensor(geometry.whole)
        self._parts = [BoundTensor(part) for part in geometry.parts]
        _, self._outputs = self._roles.sides([self._whole], self._parts)
        packed = [tensor.sizes for tensor in self._outputs if tensor.packed]
        self._fresh = FreshArrays(packed, self._whole.dtype)
        self._other_plan = lru_cache(PLANS_PER_OPERATOR)(partial(plan_of, geometry))
        self._own_strides = self._whole.strides, tuple(part.strides for part in self._parts)
        self.plan = plan_of(geometry, *self._own_strides)
        """The plan that the C core runs; `plan.describe()` explains it."""
        self.num_threads = thread_count(num_threads, self.plan.bytes)
        layouts = [(tensor.sizes, tensor.strides) for tensor in (self._whole, *self._parts)]
        fresh = self._fresh if len(packed) == len(self._outputs) else None
        self._dispatcher = array_dispatcher(self.plan, self._whole.dtype, layouts, fresh)

    @property
    def tensors(self) -> tuple[BoundTensor, Sequence[BoundTensor]]:
        """The layouts of the whole tensor and of the parts in raw memory."""
        return self._whole, self._parts

    def __reduce__(self) -> tuple[type[CompiledOperator[DescT_co]], tuple[DescT_co, Report, int]]:
        return type(self), (self.desc, self.report, self.num_threads)

    @overload
    def __call__(self: CompiledSplit, input: Bindable) -> list[Array]: ...
    @overload
    def __call__(self: CompiledJoin, input: Sequence[Bindable]) -> Array: ...
    def __call__(self, input: Bindable | Sequence[Bindable]) -> list[Array] | Array:
        """Returns the outputs for an input, as fresh arrays of the outputs' sizes and strides: a list for a split, an
        array for a join."""
        made: list[Array] | Array | None = None
        if self._dispatcher is not None and self._dispatcher.fresh is not None:
            made = self._dispatcher.fresh(input, self.num_threads)
        if made is None:
            made = self.new_outputs()
            whole, parts = (input, made) if self._whole_is_input else (made, input)
            self.dispatch_tensors(whole, parts)
        return made

    def new_outputs(self) -> list[Array] | Array:
        """Returns fresh arrays of the outputs' sizes and strides, with undefined contents: a list for a split, an array
        for a join."""
        packed = iter(self._fresh.make())
        made = [next(packed) if tensor.packed else new_output(tensor) for tensor in self._outputs]
        return made if self._outputs is self._parts else made[0]

    @overload
    def dispatch(
        self: CompiledSplit, input: Bindable, out: Sequence[Bindable], *, num_threads: NumThreads = None
    ) -> None: ...
    @overload
    def dispatch(
        self: CompiledJoin, input: Sequence[Bindable], out: Bindable, *, num_threads: NumThreads = None
    ) -> None: ...
    def dispatch(self, input: object, out: object, *, num_threads: NumThreads = None) -> None:
        """Executes the operator: reads `input` and writes `out`, the caller's buffers. Raises BindingError if one does
        not fit, before anything is written.

        `num_threads` None: as many as the operator was compiled for.
        """
        whole, parts = (input, out) if self._whole_is_input else (out, input)
        self.dispatch_tensors(whole, parts, num_threads)

    def dispatch_tensors(self, whole: object, parts: object, num_threads: NumThreads = None) -> None:
        """As `dispatch`, but takes the whole tensor and the parts, whichever of them are the inputs."""
        threads = self.num_threads if num_threads is None else thread_count(num_threads, self.plan.bytes)
        if self._dispatcher is None or not self._dispatcher.run(whole, parts, threads):
            self.bind_tensors(whole, parts, threads).dispatch()

    @overload
    def bind(
        self: CompiledSplit, input: Bindable, out: Sequence[Bindable], *, num_threads: NumThreads = None
    ) -> BoundOperator: ...
    @overload
    def bind(
        self: CompiledJoin, input: Sequence[Bindable], out: Bindable, *, num_threads: NumThreads = None
    ) -> BoundOperator: ...
    def bind(self, input: object, out: object, *, num_threads: NumThreads = None) -> BoundOperator:
        """Resolves these buffers once, and returns an operator bound to them for many dispatches. It keeps them alive.
        Raises BindingError if a buffer does not fit."""
        whole, parts = (input, out) if self._whole_is_input else (out, input)
        return self.bind_tensors(whole, parts, num_threads)

    def bind_tensors(self, whole: object, parts: object, num_threads: NumThreads = None) -> BoundOperator:
        """As `bind`, but takes the whole tensor and the parts, whichever of them are the inputs. Raises BindingError if
        a buffer does not fit."""
        threads = self.num_threads if num_threads is None else thread_count(num_threads, self.plan.bytes)
        bound_whole = bind(self._whole, whole)
        bound_parts = self._bind_parts(parts)
        strides = bound_whole.strides, tuple([part.strides for part in bound_parts])
        plan = self.plan if strides == self._own_strides else self._other_plan(*strides)
        vector = core.pointers([part.pointer for part in bound_parts])
        if not plan.ranges_apart(bound_whole.pointer, vector):
            check_apart([(self._whole, bound_whole), *zip(self._parts, bound_parts, strict=True)])
        return BoundOperator(plan, bound_whole, bound_parts, vector, threads)

    def _bind_parts(self, values: object) -> list[BoundMemory]:
        path = self._roles.parts
        if isinstance(values, (np.ndarray, bytes, bytearray, memoryview)) or not isinstance(values, Sequence):
            kind = type(values).__name__
            raise BindingError(f"{path}: a list or tuple of {len(self._parts)} buffers is expected, not {kind}")
        if len(values) != len(self._parts):
            raise BindingError(f"{path}: {len(values)} buffers were given, but the operator has {len(self._parts)}")
        return [bind(part, value) for part, value in zip(self._parts, values, strict=True)]


CompiledSplit: TypeAlias = CompiledOperator[SplitOperatorDesc]
CompiledJoin: TypeAlias = CompiledOperator[JoinOperatorDesc]


class BoundOperator:
    """A compiled operator with its buffers; `dispatch` runs it. Made by CompiledOperator.bind."""

    __slots__ = ("_arguments", "_run", "_vector", "bindings", "plan")

    def __init__(
        self, plan: core.Plan, whole: BoundMemory, parts: list[BoundMemory], vector: object, threads: int
    ) -> None:
        self.plan = plan
        self.bindings = whole, parts
        """Keeps the memory of the whole tensor and of the parts alive."""
        self._vector = vector
        self._run, self._arguments = plan.bound_call(whole.pointer, vector, threads)

    def dispatch(self) -> None:
        """Copies between the bound buffers once; releases the GIL meanwhile."""
        self._run(*self._arguments)
