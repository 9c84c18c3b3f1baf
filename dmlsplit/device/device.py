"""The emulated IDMLDevice: everything that a DirectML program calls for a Split or Join, with reasons for failures."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from dmlsplit.descriptors.descs import OperatorDesc, _uint
from dmlsplit.descriptors.diagnostics import Diagnostic, DirectMLError, Report
from dmlsplit.descriptors.enums import ExecutionFlags, FeatureLevel, HResult, TensorDataType
from dmlsplit.descriptors.location import Location
from dmlsplit.device.dispatch import prepared
from dmlsplit.device.dispatchables import (
    COMPILED,
    DISPATCHABLES,
    CompiledDispatchable,
    Dispatchable,
    DispatchableGraph,
    DispatchableOperator,
    Operator,
    OperatorInitializer,
)
from dmlsplit.device.state import State
from dmlsplit.device.table import BindingTable, required_object
from dmlsplit.rules import Notice
from dmlsplit.rules.binding import OTHER_TABLE
from dmlsplit.rules.device import (
    EXECUTION_FLAGS_UNKNOWN,
    INITIALIZED_TWICE,
    MINIMUM_LEVEL_TOO_HIGH,
    NO_LEVEL_SUPPORTED,
    NOT_INITIALIZED,
)
from dmlsplit.system.errors import DirectMLWarning
from dmlsplit.targets.releases import Release
from dmlsplit.targets.target import (
    NO_FLOAT64,
    NO_TYPED_UAV_LOADS,
    ReleaseLike,
    RuntimeLike,
    Target,
    find_target_release,
    lacking,
    target_of,
)
from dmlsplit.verdicts.validation import evaluate

if TYPE_CHECKING:
    from dmlsplit.graphs import GraphDesc


@dataclass(frozen=True, slots=True)
class Capabilities:
    """The capabilities of the Direct3D 12 device that change a verdict; D3D12_FEATURE_DATA_D3D12_OPTIONS.

    `double_precision`: DoublePrecisionFloatShaderOps, without which no build accepts FLOAT64. `typed_uav_loads`:
    TypedUAVLoadAdditionalFormats, without which builds up to DirectML 1.12.0 accept no 8-bit types. Both were tested
    with every build. 64-bit integers, native 16-bit operations, the shader model and wave operations make no
    difference.
    """

    double_precision: bool = True
    typed_uav_loads: bool = True

    def __post_init__(self) -> None:
        for name in ("double_precision", "typed_uav_loads"):
            if not isinstance(getattr(self, name), bool):
                raise TypeError(f"{name}: {getattr(self, name)!r} is neither True nor False")

    def lacking(self, release: Release) -> dict[int, str]:
        """Maps each data type that a build refuses on such a device to the capability that it needs."""
        assumed = [] if self.double_precision else [NO_FLOAT64]
        return lacking(assumed if self.typed_uav_loads else [*assumed, NO_TYPED_UAV_LOADS], release)


class Device:
    """A DirectML device of one release (the newest known if none is given), for Split and Join.

    `directml`: a DirectML version or the name of a package, as for `validate`; `onnxruntime`: a version, whose DirectML
    is used. `minimum_feature_level`: as passed to DMLCreateDevice1, a level or any other number; None means
    DMLCreateDevice. It does not restrict what the build accepts. `on_warning` is called with a Diagnostic for each
    dispatch that DirectML's documentation forbids, or whose outcome it leaves undefined; by default a Python warning
    (DirectMLWarning) is issued.

    The names are DirectML's, in snake case. Calls that return a failing HRESULT raise DirectMLError, which carries it
    and the reasons. Calls that return nothing remove the device if DirectML does: `removed_reason` then says why, every
    later call that returns an HRESULT fails with DXGI_ERROR_DEVICE_REMOVED, and every other call does nothing.
    Undefined behaviour of DirectML, including the end of the process, raises DirectMLError without an HRESULT.

    Recording executes: there are no command lists, and `record_dispatch` returns after the copy. As in DirectML,
    threads may share a device and the operators that it makes; a binding table is for one thread at a time.

    Raises DirectMLError (DXGI_ERROR_UNSUPPORTED) if the minimum level is above the build's maximum, ValueError for an
    unknown release or level. Source: observed, device creation to a recorded dispatch; docs/device.md.
    """

    def __init__(
        self,
        directml: ReleaseLike = None,
        minimum_feature_level: FeatureLevel | int | str | None = None,
        capabilities: Capabilities | None = None,
        *,
        onnxruntime: RuntimeLike = None,
        on_warning: Callable[[Diagnostic], object] | None = None,
    ) -> None:
        release = find_target_release(directml, onnxruntime)
        self.release = release
        self.capabilities = Capabilities() if capabilities is None else capabilities
        if not isinstance(self.capabilities, Capabilities):
            raise TypeError(f"capabilities: {type(capabilities).__name__} is not Capabilities")
        lacking = self.capabilities.lacking(release)
        self._target = Target(release, lacking) if lacking else target_of(release)
        if on_warning is not None and not callable(on_warning):
            raise TypeError(f"on_warning: {type(on_warning).__name__} cannot be called")
        self._state = State(release, self._target.name, _warn if on_warning is None else on_warning)
        self.minimum_feature_level = None if minimum_feature_level is None else _level(minimum_feature_level)
        level = self.minimum_feature_level or 0
        # DirectML compares them as signed numbers
        if (level if level < 2**31 else level - 2**32) > release.max_feature_level:
            name = _level_name(level)
            raise self._unsupported(MINIMUM_LEVEL_TOO_HIGH, "minimumFeatureLevel", f"is {name}, ", name)

    def _unsupported(self, rule: Notice, member: str, message: str, actual: str) -> DirectMLError:
        highest, code = self.release.max_feature_level, HResult.DXGI_ERROR_UNSUPPORTED
        message += f"the highest of {self._target.name} is {_level_name(highest)}"
        found = rule.diagnostic(Location.of(member), message, expected=str(highest), actual=actual)
        return DirectMLError(code, Report((found,), self._target.name, code, None))

    @property
    def removed_reason(self) -> Report | None:
        """Why the device was removed, with the HRESULT 0x887A0005; None if it was not removed."""
        return self._state.removed_reason

    def get_device_removed_reason(self) -> HResult:
        """Returns S_OK, or DXGI_ERROR_DEVICE_REMOVED if the device was removed."""
        return HResult.S_OK if self.removed_reason is None else HResult.DXGI_ERROR_DEVICE_REMOVED

    def check_feature_support_feature_levels(self, levels: Iterable[FeatureLevel | int | str]) -> FeatureLevel | int:
        """Returns the largest of the levels that is not above the build's maximum; numbers that are not levels are
        allowed.

        Raises DirectMLError: DXGI_ERROR_UNSUPPORTED if only 0 is not above the maximum, or none is;
        DXGI_ERROR_DEVICE_REMOVED if the device was removed.
        """
        if isinstance(levels, (str, bytes)) or not isinstance(levels, Iterable):
            raise TypeError(f"a sequence of feature levels is expected, not {type(levels).__name__}")
        asked = [_level(level) for level in levels]
        self._state.require()
        highest = self.release.max_feature_level
        best = max((level for level in asked if level <= highest), default=0)
        if best == 0:
            shown = ", ".join(map(_level_name, asked)) or "none is requested"
            message = f"none is supported: {shown}; "
            raise self._unsupported(NO_LEVEL_SUPPORTED, "RequestedFeatureLevels", message, shown)
        return FeatureLevel(best) if best in FeatureLevel.__members__.values() else best

    def check_feature_support_tensor_data_type(self, data_type: TensorDataType | int) -> bool:
        """Returns True if the build reports support for a data type, which Split and Join may still refuse; False for
        unknown types. Raises DirectMLError if the device was removed."""
        number = _uint(data_type, "DataType")
        self._state.require()
        return number in self.release.traits.data_types_reported and number not in self._target.lacking

    def create_operator(self, desc: OperatorDesc) -> Operator:
        """Returns the operator that CreateOperator creates. Raises DirectMLError if the build refuses the descriptor.

        An accepted descriptor gives an operator even if `report` calls it unsafe: a dispatch that would access memory
        outside a buffer is refused later; one whose output elements overlap runs with a warning.
        """
        report = evaluate(desc, self._target)
        self._state.require()
        if report.hresult != HResult.S_OK:
            raise DirectMLError(report.hresult, report)
        return Operator(self._state, desc, report)

    def compile_operator(
        self, operator: Operator, flags: ExecutionFlags | int = ExecutionFlags.NONE
    ) -> DispatchableOperator:
        """As CompileOperator: returns the compiled operator. Raises DirectMLError for flags above 7, or if the device
        was removed."""
        required_object(self._state, operator, Operator, "a compiled operator")
        return DispatchableOperator(operator, self._flags(flags, operator.report.operator))

    def _flags(self, flags: ExecutionFlags | int, name: str | None) -> ExecutionFlags:
        number = _uint(flags, "flags")
        self._state.require()
        if number > 7:
            message = f"is 0x{number:X}, the known bits are 0x7"
            found = EXECUTION_FLAGS_UNKNOWN.diagnostic(Location.of("flags"), message, expected="0x7", actual=number)
            self._state.fail(self.release.invalid_argument, found, name)
        return ExecutionFlags(number)

    def compile_graph(
        self,
        graph: GraphDesc,
        flags: ExecutionFlags | int = ExecutionFlags.NONE,
        *,
        results: Literal["release", "right"] = "release",
    ) -> DispatchableGraph:
        """As CompileGraph: returns the compiled graph. `results`: "release" computes what the release computes, right
        or wrong; "right" computes the right results.

        Raises DirectMLError for flags above 7, and if an operator or the graph is refused; without an HRESULT if the
        process would end, and if the outcome is unknown or not emulated, as the report says. Valid graphs that a
        release refuses, or crashes on, can be compiled with results="right". Supports the operators of
        dmlsplit.graphs.operators, in FLOAT32 and FLOAT16.
        """
        from dmlsplit.device.dispatches import compiled_graph  # most programs use no graph

        if results not in ("release", "right"):
            raise ValueError(f"results: {results!r} is neither 'release' nor 'right'")
        report, shaders = compiled_graph(graph, self._target, results)
        self._state.require()
        number = self._flags(flags, report.operator)
        if shaders is None:
            raise DirectMLError(report.hresult if report.compiles is False else None, report)
        return DispatchableGraph(self._state, graph, report, number, shaders)

    def create_operator_initializer(self, operators: Sequence[CompiledDispatchable]) -> OperatorInitializer:
        """Returns an initializer of any number of compiled operators and graphs, as CreateOperatorInitializer does.
        Raises TypeError or ValueError for objects of another kind or device."""
        if isinstance(operators, COMPILED) or not isinstance(operators, Iterable):
            raise TypeError(f"a sequence of compiled operators is expected, not {type(operators).__name__}")
        operators = tuple(operators)
        for operator in operators:
            required_object(self._state, operator, COMPILED, "an initializer")
        self._state.require()
        return OperatorInitializer(self._state, operators)

    def create_binding_table(self, dispatchable: Dispatchable, size_in_descriptors: int | None = None) -> BindingTable:
        """Returns a binding table, as CreateBindingTable does; None requests the number of descriptors that the
        dispatchable requires. Raises DirectMLError for fewer."""
        return BindingTable(self._state, dispatchable, size_in_descriptors)

    def record_dispatch(self, dispatchable: Dispatchable, table: BindingTable) -> None:
        """Executes a dispatch at once (RecordDispatch): the outputs have been written when it returns. Does nothing if
        the device is removed.

        Removes the device if something is not bound or the table is another dispatchable's. Raises DirectMLError
        without an HRESULT, and writes nothing, if the dispatch would read or write outside a buffer, or if something is
        not bound yet to an operator compiled with DESCRIPTORS_VOLATILE.
        """
        required_object(self._state, dispatchable, DISPATCHABLES, "a dispatch")
        required_object(self._state, table, BindingTable, "a dispatch")
        state = self._state
        if state.removed_reason is not None:
            return
        name = dispatchable.name
        if table.dispatchable is not dispatchable:
            message, wanted = "the table was created for another dispatchable, or reset to one", "its own table"
            state.remove([OTHER_TABLE.diagnostic(Location.of("bindings"), message, expected=wanted)], name)
            return
        unbound = table.unbound()
        if unbound:
            volatile = ExecutionFlags.DESCRIPTORS_VOLATILE
            if not isinstance(dispatchable, OperatorInitializer) and dispatchable.flags & volatile:
                state.refuse(unbound, name)  # the slot may be bound until the GPU executes; here that is at once
            state.remove(unbound, name)
            return
        if table.unsafe:
            state.refuse(table.unsafe, name)
        run = table.prepared
        if run is None:
            run, table.warnings = prepared(dispatchable, table)
            if run is None:
                state.refuse(table.warnings, name)
            table.prepared = run
        for diagnostic in [*_initialization(dispatchable), *table.warnings]:
            state.on_warning(diagnostic)
        run()
        if isinstance(dispatchable, OperatorInitializer):
            with state.lock:
                for operator in dispatchable.operators:
                    operator.initializations += 1


def _initialization(dispatchable: Dispatchable) -> list[Diagnostic]:
    """Returns warnings about operators that are initialized twice or never."""
    if not isinstance(dispatchable, OperatorInitializer):
        if dispatchable.initializations:
            return []
        message = "the operator was never initialized"
        return [NOT_INITIALIZED.diagnostic(Location.of("dispatchable"), message, expected=1, actual=0)]
    found = []
    here: Counter[int] = Counter()  # an initializer may contain an operator twice
    for i, operator in enumerate(dispatchable.operators):
        here[id(operator)] += 1
        times = operator.initializations + here[id(operator)]
        if times > 1:
            message = f"is initialized {times} times"
            found.append(INITIALIZED_TWICE.diagnostic(Location.of("operators", i), message, expected=1, actual=times))
    return found


def _level(value: FeatureLevel | int | str) -> int:
    """Returns the number of a level, or any other number that fits DML_FEATURE_LEVEL. Raises ValueError for other
    text."""
    if isinstance(value, str):
        hexadecimal = re.fullmatch(r"\s*0[xX]([0-9a-fA-F]{1,8})\s*", value)
        return int(hexadecimal[1], 16) if hexadecimal else int(FeatureLevel.parse(value))
    return _uint(value, "feature level")


def _level_name(level: int) -> str:
    return str(FeatureLevel(level)) if level in FeatureLevel.__members__.values() else f"0x{level:X}"


def _warn(diagnostic: Diagnostic) -> None:
    warnings.warn(str(diagnostic), DirectMLWarning, stacklevel=3)
