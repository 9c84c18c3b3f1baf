"""Rules of the emulated device's calls, apart from what is bound; the device reports them itself."""

from __future__ import annotations

from typing import Final

from dmlsplit.diagnostics import Basis, Severity
from dmlsplit.rules._model import LEARN, OBSERVED_DEVICE, OURS, Rule, Source
from dmlsplit.rules.binding import WARNS

_CREATE_DEVICE = Source("DMLCreateDevice1", f"{LEARN}/win32/api/directml/nf-directml-dmlcreatedevice1")
_FEATURE_LEVELS = Source(
    "DML_FEATURE_QUERY_FEATURE_LEVELS", f"{LEARN}/win32/api/directml/ns-directml-dml_feature_query_feature_levels"
)
_EXECUTION_FLAGS = Source("DML_EXECUTION_FLAGS", f"{LEARN}/win32/api/directml/ne-directml-dml_execution_flags")
_INITIALIZER = Source(
    "IDMLDevice::CreateOperatorInitializer",
    f"{LEARN}/win32/api/directml/nf-directml-idmldevice-createoperatorinitializer",
)

MINIMUM_LEVEL_TOO_HIGH: Final = Rule(
    "device/minimum-feature-level-too-high",
    Severity.ERROR,
    Basis.DOCUMENTED,
    "The minimum feature level is above the highest one of the build.",
    "The numbers are compared as signed ones: any number up to the maximum is taken, whether it names a level or not. "
    "What the build accepts does not depend on it.",
    (_CREATE_DEVICE, OBSERVED_DEVICE),
    bad_steps='dml.Device(directml="1.8.0", minimum_feature_level="5_1")',
    good_steps='dml.Device(directml="1.8.0", minimum_feature_level="5_0")',
    outcome="DXGI_ERROR_UNSUPPORTED",
)
NO_LEVEL_SUPPORTED: Final = Rule(
    "device/no-feature-level-supported",
    Severity.ERROR,
    Basis.OBSERVED,
    "None of the requested feature levels is supported, or none is requested.",
    "The answer is the largest number asked for that is not above the build's maximum, whether it names a level or "
    "not; 0 counts for nothing.",
    (OBSERVED_DEVICE, _FEATURE_LEVELS),
    bad_steps="device.check_feature_support_feature_levels([0x7000])",
    good_steps="device.check_feature_support_feature_levels([0x7000, 0x1000])",
    outcome="DXGI_ERROR_UNSUPPORTED",
)
EXECUTION_FLAGS_UNKNOWN: Final = Rule(
    "device/execution-flags-unknown",
    Severity.ERROR,
    Basis.DOCUMENTED,
    "CompileOperator is called with a bit that is not in DML_EXECUTION_FLAGS.",
    "0 to 7 are taken. None of them changes what Split and Join do.",
    (_EXECUTION_FLAGS, OBSERVED_DEVICE),
    bad_steps="device.compile_operator(op.operator, 8)",
    good_steps="device.compile_operator(op.operator, 7)",
    outcome="E_INVALIDARG",
)
NOT_INITIALIZED: Final = Rule(
    "device/not-initialized",
    Severity.WARNING,
    Basis.DOCUMENTED,
    "An operator is dispatched that was never initialized.",
    "Every compiled operator is initialized exactly once, even if it owns nothing; the builds do not check it. The "
    "persistent resource of one with owned inputs then holds whatever it holds.",
    (_INITIALIZER, OBSERVED_DEVICE),
    bad_steps="op = compiled()\ntable.reset(op)\ntable.bind_inputs([dml.BufferBinding(x)])\n"
    "table.bind_outputs([dml.BufferBinding(a), dml.BufferBinding(b)])\ndevice.record_dispatch(op, table)",
    good_steps="op = initialized(compiled())\ntable.reset(op)\ntable.bind_inputs([dml.BufferBinding(x)])\n"
    "table.bind_outputs([dml.BufferBinding(a), dml.BufferBinding(b)])\ndevice.record_dispatch(op, table)",
    outcome=WARNS,
)
INITIALIZED_TWICE: Final = Rule(
    "device/initialized-twice",
    Severity.WARNING,
    Basis.DOCUMENTED,
    "An operator is initialized a second time.",
    "Every compiled operator is initialized exactly once; the builds do not check it.",
    (_INITIALIZER, OBSERVED_DEVICE),
    bad_steps="initialized(op)",
    good_steps="initialized(compiled())",
    outcome=WARNS,
)
ORDER_NOT_PROMISED: Final = Rule(
    "device/write-order-not-promised",
    Severity.WARNING,
    Basis.OBSERVED,
    "Elements of an output overlap, so that which of their values remains is not promised.",
    "DirectML creates and runs such an operator: see tensor/output-elements-overlap. On one thread the row-major last "
    "value was seen to win for Split, not always for Join; on several it is a race. Nothing else is touched.",
    (OBSERVED_DEVICE, OURS),
    bad_steps="whole = dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, (4, 3))\n"
    "part = dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, (4, 3), strides=(2, 3))\n"
    "op = device.compile_operator(device.create_operator(dml.SplitOperatorDesc(whole, [part], 0)))\n"
    "table.reset(initialized(op))\ntable.bind_inputs([dml.BufferBinding(x)])\n"
    "table.bind_outputs([dml.BufferBinding(dml.Buffer(64))])\ndevice.record_dispatch(op, table)",
    good_steps="whole = dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, (4, 3))\n"
    "part = dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, (4, 3), strides=(1, 4))\n"
    "op = device.compile_operator(device.create_operator(dml.SplitOperatorDesc(whole, [part], 0)))\n"
    "table.reset(initialized(op))\ntable.bind_inputs([dml.BufferBinding(x)])\n"
    "table.bind_outputs([dml.BufferBinding(dml.Buffer(64))])\ndevice.record_dispatch(op, table)",
    outcome=WARNS,
)
BUILD_NOT_OBSERVED: Final = Rule(
    "device/build-not-observed",
    Severity.NOTE,
    Basis.OURS,
    "What this build does from compilation on was not observed.",
    "It is taken to do what the 13 other builds do, which agree with each other.",
    (OURS,),
    bad_steps='device = dml.Device(directml="1.5.1")\ndevice.compile_operator(device.create_operator(op.desc), 8)',
    good_steps='device = dml.Device(directml="1.8.0")\ndevice.compile_operator(device.create_operator(op.desc), 7)',
    outcome="a note beside what is reported",
)

RULES: Final = (
    MINIMUM_LEVEL_TOO_HIGH,
    NO_LEVEL_SUPPORTED,
    EXECUTION_FLAGS_UNKNOWN,
    NOT_INITIALIZED,
    INITIALIZED_TWICE,
    ORDER_NOT_PROMISED,
    BUILD_NOT_OBSERVED,
)
