"""The versions of ONNX Runtime with its DirectML execution provider, as data.

The formats that a version loads and the DirectML in it were observed on its published files: opsets and IR versions by
loading one model of each, the DirectML by the version that the file states. The versions from 1.18.0 on were asked
about models, seven of them at length (tests/data/onnxruntime), the others about a thousand each.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Final

from dmlsplit.descriptors.enums import FeatureLevel
from dmlsplit.system.printable import shortened
from dmlsplit.targets.release_names import find_release
from dmlsplit.targets.releases import Release

NODE: Final = "onnxruntime-node"
WHEEL: Final = "onnxruntime-directml"


@dataclass(frozen=True, slots=True, eq=False)
class Quantized:
    """How nodes between DequantizeLinears and QuantizeLinears are fused. Versions that behave alike share one
    object."""

    moved: frozenset[str]
    """Operators that also take and give quantized elements, if the scales are equal."""
    computed: frozenset[str]
    """Operators of nodes on DirectML that are replaced by an operator for quantized elements."""
    propagated: Mapping[str, int | None]
    """Operators that a DequantizeLinear moves past to their outputs, and a QuantizeLinear to their inputs, each with
    the newest version that allows it; None for any version."""
    to_several: bool = False
    """True if a DequantizeLinear moves past a node that several others read."""
    behind_clips: bool = False
    """True if a Relu or Clip that changes nothing is allowed before the QuantizeLinear."""
    packs_weights: bool = False
    """True if a MatMul with constant 8-bit weights becomes an operator that takes these weights."""
    checks_biases: bool = False
    """True if the scale of a Conv's bias must be the product of the other scales, within one per cent."""
    removes_clips: bool = False
    """True if a Relu or Clip before a QuantizeLinear is removed if it changes nothing."""


@dataclass(frozen=True, slots=True)
class RuntimeTraits:
    """Behaviour in which versions of ONNX Runtime differ."""

    constants_are_nodes: bool = False
    """True if small constants of a fused graph become nodes of their own."""
    uninferred: frozenset[str] = frozenset()
    """Operators whose outputs have no known sizes before the model runs."""
    reads_overloads: bool = False
    """True if functions of the same name are distinguished by their overload."""
    keeps_sizes_of_others: bool = False
    """True if a Reshape keeps a size that is copied from another tensor."""
    outer_lengths_are_known: bool = False
    """True if the kernel of a node is created with the session also if lengths that it reads on the CPU, as those of a
    Split, are a constant of an outer graph."""
    quantized: Quantized = Quantized(frozenset(), frozenset(), {})
    """How nodes between DequantizeLinears and QuantizeLinears are fused, from optimization level 2 on."""
    reshapes_products: bool = False
    """True if a MatMul of more than two dimensions and the Add that follows become a Gemm between two Reshapes."""
    keeps_attentions: bool = False
    """True if that is not done for the products around an attention."""
    leaves_large_products: bool = False
    """True if a MatMulInteger of a DynamicQuantizeLinear is not fused when its factors take more than 4 GB. The process
    ends if the rank of a factor is unknown."""
    loses_constants_of_branches: bool = False
    """True if, outside fused graphs, a large constant of a branch that replaces its If is lost."""
    fuses_first: bool = False
    """True if ONNX's own Gelu (opset 20) and LayerNormalization (opset 17) replace the nodes that compute them before
    nodes are placed."""
    reads_half_epsilons: bool = False
    """True if a LayerNormalization that replaces other nodes also takes its epsilon from a constant of FLOAT16."""
    ifs_read_sequences: bool = False
    """True if an If is on DirectML even if its branches read a sequence from outside."""
    merges_shapes: bool = False
    """True if Shapes of tensors with equal sizes are made to read one of these tensors."""
    compares_all_numbers: bool = False
    """True if equal nodes are merged whatever the type of a one-element tensor attribute; False if they are merged only
    if it is FLOAT, FLOAT16 or INT64, and stored in raw_data."""
    folds_known_sizes: bool = False
    """True if a node with constant inputs is folded only if the sizes of its results are inferred."""
    fuses_new_reshapes: bool = False
    """True if the shape that a Concat computes for a Reshape of version 19 or newer becomes a constant."""
    fuses_new_convs: bool = False
    """True if scales and shifts that follow a Conv of version 22 are fused into its weights."""
    fuses_new_wheres: bool = False
    """True if a Not that feeds a Where of version 16 is fused with it."""
    removes_new_dropouts: bool = False
    """True if a Dropout of version 22 is removed."""
    removes_new_casts: bool = False
    """True if a Cast of version 21 or newer is removed if only Shapes read it."""
    follows_axes: bool = False
    """True if the kernels of quantizations of opset 21 apply scales along the node's axis; False if they apply them
    along the last axis, whatever the node's axis is."""
    captures_no_cpu_alone: bool = False
    """True if a session cannot be captured when it has nodes and all of them are on the CPU."""


@dataclass(frozen=True, slots=True)
class Runtime:
    """One version of ONNX Runtime, and the DirectML that it ships.

    `packages` are those that ship it with the DirectML execution provider: onnxruntime-directml (Python),
    onnxruntime-node (npm).
    """

    version: str
    packages: tuple[str, ...]
    directml: str
    """The version that the DirectML.dll in the package states."""
    newest_opset: int
    """The newest supported opset of the default domain; models with a newer one do not load."""
    newest_ir_version: int
    like: str = ""
    """The observed version whose answers are used for this one; "" if it was observed itself."""
    observed: bool = True
    """False if neither this version nor `like` was tested with models; nothing is predicted for it."""
    shipped_as: str = ""
    """The origin of its DirectML.dll, or the product that it is part of, if not its own package: see targets.windows.
    """
    no_session: str = ""
    """Why no session can be created, whatever the model; "" if sessions can be created."""

    def __hash__(self) -> int:
        return hash(self.version)  # part of the keys of caches that every node reads

    @property
    def judged_by(self) -> str:
        """The name of this version in reports; with a Windows' DirectML.dll, or as part of Windows ML, it includes the
        name of that."""
        name = f"onnxruntime {self.version}"
        if not self.shipped_as:
            return name
        return f"{name} {self.shipped_as}" if self.shipped_as.startswith("over ") else f"{self.shipped_as} ({name})"

    @property
    def needed_level(self) -> FeatureLevel:
        """The feature level that this version requires of its device: DMLCreateDevice1 fails if the DLL does not have
        it."""
        return FeatureLevel.FL_5_0 if self.key >= _FIRST_TO_NEED_5_0 else FeatureLevel.FL_2_0

    @property
    def release(self) -> Release:
        """The DirectML release that this version ships, which judges the packed descriptors."""
        return find_release(self.directml)

    @property
    def key(self) -> tuple[int, ...]:
        """A key that orders versions."""
        return key_of(self.version)

    @property
    def traits(self) -> RuntimeTraits:
        """The traits of this version."""
        return _traits_of(self.version)


_FIRST_TO_NEED_5_0: Final = (1, 14)
"""Source: microsoft/onnxruntime, pull request 14172."""


@cache
def key_of(version: str) -> tuple[int, ...]:
    """Returns a sort key for versions: (1, 24, 4) for "1.24.4"."""
    return tuple([int(part) for part in version.split(".")])


@cache
def _traits_of(version: str) -> RuntimeTraits:
    return next(traits for first, traits in reversed(_TRAITS) if key_of(first) <= key_of(version))


def _not_observed(version: str, directml: str, newest_opset: int, newest_ir_version: int) -> Runtime:
    """Returns a Runtime for a version up to 1.17.3, whose wheel has no onnxruntime.dll that could be run: its opset and
    IR version come from the documentation."""
    return Runtime(version, (WHEEL,), directml, newest_opset, newest_ir_version, observed=False)


_RUNTIMES: Final = (
    _not_observed("1.9.0", "1.5.1", 15, 8),
    _not_observed("1.10.0", "1.8.0", 15, 8),
    _not_observed("1.14.1", "1.10.1", 18, 8),
    _not_observed("1.15.0", "1.12.0", 19, 9),
    _not_observed("1.15.1", "1.12.0", 19, 9),
    _not_observed("1.16.0", "1.12.1", 19, 9),
    _not_observed("1.16.3", "1.12.1", 19, 9),
    _not_observed("1.17.0", "1.13.1", 20, 9),
    _not_observed("1.17.1", "1.13.1", 20, 9),
    _not_observed("1.17.3", "1.13.1", 20, 9),
    Runtime("1.18.0", (WHEEL, NODE), "1.14.1", 21, 10),
    Runtime("1.18.1", (WHEEL,), "1.14.1", 21, 10, like="1.18.0"),
    Runtime("1.19.0", (WHEEL,), "1.15.1", 21, 10),
    Runtime("1.19.2", (WHEEL,), "1.15.1", 21, 10),
    Runtime("1.20.0", (WHEEL,), "1.15.2", 21, 10),
    Runtime("1.20.1", (WHEEL, NODE), "1.15.2", 21, 10),
    Runtime("1.21.0", (WHEEL,), "1.15.4", 22, 10),
    Runtime("1.21.1", (WHEEL,), "1.15.4", 22, 10),
    Runtime("1.22.0", (WHEEL, NODE), "1.15.4", 22, 10),
    Runtime("1.23.0", (WHEEL,), "1.15.4", 23, 11),
    Runtime("1.23.2", (NODE,), "1.15.4", 23, 11),
    Runtime("1.24.1", (WHEEL,), "1.15.4", 25, 13),
    Runtime("1.24.2", (WHEEL,), "1.15.4", 25, 13),
    Runtime("1.24.3", (WHEEL,), "1.15.4", 25, 13),
    Runtime("1.24.4", (WHEEL,), "1.15.4", 25, 13),
    Runtime("1.30.0", (NODE,), "1.15.4", 26, 13),
)

NEWEST: Final = _RUNTIMES[-1]

_COMPARISONS: Final = frozenset({"GreaterOrEqual", "LessOrEqual"})
_QUANTIZED_1_18: Final = Quantized(
    frozenset({"ArgMax", "Gather", "MaxPool", "Reshape", "Resize", "Split", "Squeeze", "Transpose", "Unsqueeze"}),
    frozenset({"Add", "Concat", "Conv", "MatMul"}),
    {"MaxPool": 12, "Reshape": 19, "Squeeze": 13, "Transpose": None, "Unsqueeze": 13},
    removes_clips=True,
)
_QUANTIZED_1_19: Final = replace(
    _QUANTIZED_1_18,
    propagated={"MaxPool": 12, "Reshape": 21, "Slice": None, "Squeeze": 21, "Transpose": None, "Unsqueeze": 21},
    to_several=True,
    removes_clips=False,
)
_QUANTIZED_1_20: Final = replace(
    _QUANTIZED_1_19,
    moved=_QUANTIZED_1_18.moved | {"Expand", "Flatten", "GatherElements", "ReduceMax", "ReduceMin", "Slice", "Tile"},
)
_QUANTIZED_1_21: Final = replace(
    _QUANTIZED_1_20,
    moved=_QUANTIZED_1_20.moved - {"Resize"},
    computed=_QUANTIZED_1_20.computed | {"AveragePool", "GlobalAveragePool", "LeakyRelu", "Sigmoid", "Softmax"},
    behind_clips=True,
)
_QUANTIZED_1_24: Final = replace(_QUANTIZED_1_21, computed=_QUANTIZED_1_21.computed - {"LeakyRelu", "Softmax"})
_QUANTIZED_1_30: Final = replace(
    _QUANTIZED_1_24, propagated=dict.fromkeys(_QUANTIZED_1_24.propagated), packs_weights=True, checks_biases=True
)

_1_18: Final = RuntimeTraits(
    constants_are_nodes=True, uninferred=_COMPARISONS | {"Einsum"}, merges_shapes=True, quantized=_QUANTIZED_1_18
)
_1_19: Final = replace(_1_18, merges_shapes=False, quantized=_QUANTIZED_1_19)
_1_20: Final = replace(
    _1_19, uninferred=_COMPARISONS, fuses_first=True, ifs_read_sequences=True, quantized=_QUANTIZED_1_20
)
_1_21: Final = replace(
    _1_20,
    reshapes_products=True,
    keeps_attentions=True,
    leaves_large_products=True,
    quantized=_QUANTIZED_1_21,
)
_1_23: Final = replace(_1_21, keeps_attentions=False)
_1_24: Final = replace(_1_23, uninferred=frozenset(), quantized=_QUANTIZED_1_24)
_1_30: Final = replace(
    _1_24,
    reads_overloads=True,
    keeps_sizes_of_others=True,
    outer_lengths_are_known=True,
    compares_all_numbers=True,
    folds_known_sizes=True,
    fuses_new_reshapes=True,
    fuses_new_convs=True,
    fuses_new_wheres=True,
    removes_new_dropouts=True,
    removes_new_casts=True,
    reads_half_epsilons=True,
    captures_no_cpu_alone=True,
    follows_axes=True,
    quantized=_QUANTIZED_1_30,
)
_TRAITS: Final = (
    ("1.9.0", replace(_1_18, constants_are_nodes=False)),
    ("1.18.0", _1_18),
    ("1.19.0", _1_19),
    ("1.20.0", _1_20),
    ("1.21.0", _1_21),
    ("1.23.0", _1_23),
    ("1.24.1", replace(_1_24, loses_constants_of_branches=True)),
    ("1.30.0", _1_30),
)
"""Each entry has the traits from a version on, oldest first; observed from 1.18.0 on."""


def runtimes() -> tuple[Runtime, ...]:
    """Returns the known versions, the oldest first."""
    return _RUNTIMES


def find_runtime(version: str | Runtime) -> Runtime:
    """Returns the version named "1.24.4", "onnxruntime 1.24.4" or "onnxruntime-directml-1.24.4".

    Without a patch number ("1.24") returns the newest known patch. Raises ValueError, which lists the known versions,
    for any other name; TypeError for anything but a string.
    """
    if isinstance(version, Runtime):
        return version
    if not isinstance(version, str):
        raise TypeError(f"a version of ONNX Runtime is named by a string, not {type(version).__name__}")
    wanted = re.sub(r"^(onnxruntime|ort)([-_](directml|node))?[-@= ]*", "", version.strip().lower())
    of_minor = [runtime for runtime in _RUNTIMES if runtime.version.rpartition(".")[0] == wanted]
    named = [runtime for runtime in _RUNTIMES if runtime.version == wanted] or of_minor
    if named:
        return named[-1]
    known = ", ".join(runtime.version for runtime in _RUNTIMES)
    raise ValueError(f"unknown version of ONNX Runtime {shortened(version, 60)!r}; known: {known}")


def runtime_of_release(release: Release) -> Runtime | None:
    """Returns the newest ONNX Runtime that ships a DirectML release; None if no known one does, as for Linux."""
    if release.platform != "windows":
        return None
    shipping = [runtime for runtime in _RUNTIMES if runtime.directml == release.directml]
    return max(shipping, key=lambda runtime: runtime.key, default=None)
