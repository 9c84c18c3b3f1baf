"""Which tests are asked about a change, and in which order."""

from __future__ import annotations

import fnmatch
from pathlib import Path

C_TESTS = (
    "fold",
    "overlap",
    "verdict",
    "directml",
    "capture",
    "plan",
    "profile",
    "failures",
    "kernels-few",
    "slices-few",
    "execute",
    "threads",
    "slices",
    "kernels",
)
LONG_OF_C = {"slices", "kernels", "tests/test_execution.py tests/test_threads.py"}
PROOFS = "tests/proofs"
PYTHON_TESTS_OF_C = (
    "tests/test_capture.py",
    "tests/test_c_verdict.py",
    "tests/test_native.py tests/test_geometry.py tests/test_recorded_executions.py",
    "tests/test_execution.py tests/test_threads.py",
    PROOFS,
)
TESTS_OF = {
    "csrc/dms_verdict*": {"verdict", "directml", "failures", "tests/test_c_verdict.py", PROOFS},
    "csrc/dms_rules.*": {"verdict", "tests/test_c_verdict.py"},
    "csrc/dms_targets.inc": {"verdict", "tests/test_c_verdict.py", PROOFS},
    "csrc/dms_directml.c": {"directml", "failures", "tests/test_c_verdict.py"},
    "csrc/dms_capture.c": {"capture", "tests/test_capture.py"},
    "csrc/dms_members.*": {"capture", "directml", "tests/test_capture.py"},
}
"""What nothing else of the core calls, and its tests. All else is for all tests but the proofs, which verdicts have."""

RULES_FIRST = {
    "any_operator": ["tests/rules/test_any_operator.py"],
    "_any_view": ["tests/rules/test_any_operator.py"],
    "_operator_ends": ["tests/rules/test_any_operator.py"],
    "_windows": ["tests/rules/test_any_operator.py"],
    "_debug_layer": ["tests/test_reasons.py"],
    "_views": ["tests/rules/test_device_rules.py", "tests/test_binding.py", "tests/device"],
    "crash": ["tests/rules/test_crash.py", "tests/rules/test_operator.py", "tests/test_recorded_verdicts.py"],
    "binding": ["tests/rules/test_device_rules.py", "tests/test_binding.py", "tests/device"],
    "device": ["tests/rules/test_device_rules.py", "tests/device"],
    "graph": ["tests/graphs/test_rules.py", "tests/rules/test_graph_faults.py", "tests/graphs"],
    "graph_faults": ["tests/rules/test_graph_faults.py", "tests/graphs/test_rules.py", "tests/graphs"],
    "strides": ["tests/rules/test_strides.py", PROOFS],
    "total_size": ["tests/rules/test_total_size.py", PROOFS],
    "tensor": ["tests/rules/test_tensor.py", PROOFS],
    "operator": ["tests/rules/test_operator.py", PROOFS],
    "onnxruntime": [
        "tests/rules/test_graph_faults.py",
        "tests/onnxruntime/test_model_findings.py",
        "tests/onnxruntime/test_placements.py",
    ],
    "placement": ["tests/onnxruntime/test_placements.py"],
    "whole_model": ["tests/onnxruntime/test_model_findings.py"],
    "onnx": [
        "tests/rules/test_nodes.py tests/rules/test_pairs.py tests/rules/test_facts.py",
        "tests/formats/test_nodes.py",
        "tests/formats/test_onnx.py",
        "tests/test_open_sizes.py",
    ],
    "openvino": [
        "tests/rules/test_nodes.py tests/rules/test_pairs.py tests/rules/test_facts.py",
        "tests/formats/test_nodes.py",
        "tests/formats/test_openvino.py",
        "tests/test_open_sizes.py",
    ],
    "_concat": [
        "tests/rules/test_nodes.py tests/rules/test_pairs.py tests/rules/test_facts.py",
        "tests/formats/test_openvino_concat.py",
    ],
    "_facts": [
        "tests/rules/test_nodes.py tests/rules/test_pairs.py tests/rules/test_facts.py",
        "tests/formats/test_nodes.py",
    ],
}
"""A module of dmlsplit/rules, or its folder -> the tests of its rules. All others follow."""
RULES_THEN = [
    "tests/rules/test_registry.py tests/rules/test_values.py",
    "tests/rules/test_beside.py",
    "docs/generate.py",
    "tests/rules/test_nodes.py tests/formats/test_nodes.py tests/test_validation.py tests/test_feature_levels.py",
    "tests/rules/test_order.py tests/rules/test_crash.py tests/rules/test_operator.py tests/test_reasons.py",
    "tests/test_c_verdict.py tests/test_recorded_verdicts.py",
    "tests/formats/test_onnx.py tests/formats/test_openvino.py tests/formats/test_joins.py tests/test_open_sizes.py",
    "tests/formats/test_onnx_limits.py tests/formats/test_openvino_concat.py tests/formats/test_onnx_runtime.py",
    "tests/onnxruntime/test_model_findings.py tests/onnxruntime/test_placements.py tests/conformance",
    "tests/rules tests/graphs tests/device tests/test_binding.py",
]
QUICK_OF_RULES = RULES_THEN[:4]


def c_tests(path: str, tests: tuple[str, ...]) -> list[str]:
    """Those among `tests` that are asked about a file of csrc."""
    its = next((its for pattern, its in TESTS_OF.items() if fnmatch.fnmatch(path, pattern)), set(tests) - {PROOFS})
    return [test for test in tests if test in its]


def rules_tests(path: str, is_quick: bool) -> list[str]:
    """Those that are asked about a module of dmlsplit/rules: those of its rules first."""
    module = Path(path).relative_to("dmlsplit/rules")
    first = RULES_FIRST.get(module.parts[0] if len(module.parts) > 1 else module.stem, [])
    return list(dict.fromkeys([*first, *(QUICK_OF_RULES if is_quick else RULES_THEN)]))
