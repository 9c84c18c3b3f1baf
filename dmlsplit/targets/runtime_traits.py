"""How versions of ONNX Runtime with its DirectML execution provider differ in what they make of a model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from dmlsplit.system.records import entity


@entity
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
    moves_axes: bool = False
    """True if a quantization that moves past a node keeps its axis; False if it gets the default one."""
    keeps_constants: bool = False
    """True if a DequantizeLinear of a constant moves past no node."""
    behind_clips: bool = False
    """True if a Relu or Clip that changes nothing is allowed before the QuantizeLinear."""
    packs_half_bytes: bool = False
    """True if a MatMul with constant 4-bit weights in blocks becomes an operator that takes these weights."""
    packs_weights: bool = False
    """True if a MatMul with constant 8-bit weights becomes an operator that takes these weights."""
    widens_merged: bool = False
    """True if a scale or zero point that is created for two merged pairs has a dimension more than those of the model:
    a scalar becomes a vector of one element."""
    checks_biases: bool = False
    """True if the scale of a Conv's bias must be the product of the other scales, within one per cent."""


@entity
class RuntimeTraits:
    """Behaviour in which versions of ONNX Runtime differ."""

    constants_are_nodes: bool = False
    """True if small constants of a fused graph become nodes of their own."""
    uninferred: frozenset[str] = frozenset()
    """Operators whose outputs have no known sizes, or not all of them, before the model runs."""
    reads_overloads: bool = False
    """True if functions of the same name are distinguished by their overload."""
    keeps_sizes_of_others: bool = False
    """True if a Reshape keeps a size that is copied from another tensor, where both have the same number or symbol."""
    outer_lengths_are_known: bool = False
    """True if the kernel of a node is created with the session also if lengths that it reads on the CPU, as those of a
    Split, are a constant of an outer graph."""
    quantized: Quantized = Quantized(frozenset(), frozenset(), {})
    """How nodes between DequantizeLinears and QuantizeLinears are fused, from optimization level 2 on."""
    reshapes_products: bool = False
    """True if a MatMul of more than two dimensions and the Add that follows become a Gemm between two Reshapes."""
    keeps_attentions: bool = False
    """True if MatMulAddFusion leaves the products around an attention alone before Reshapes in a row become one."""
    fuses_attentions: bool = False
    """True if MatMulAddFusion fuses the products around an attention after Reshapes in a row have become one."""
    merges_reshapes: bool = False
    """True if a Reshape and the Reshapes, Squeezes and Unsqueezes that follow become one Reshape."""
    keeps_allowzero: bool = False
    """True if a Reshape with allowzero does not become part of the Reshape before it."""
    leaves_large_products: bool = False
    """True if a MatMulInteger of a DynamicQuantizeLinear is not fused when its factors take more than 4 GB. The process
    ends if the rank of a factor is unknown."""
    loses_constants_of_branches: bool = False
    """True if, outside fused graphs, a large constant of a branch that replaces its If is lost."""
    fuses_first: bool = False
    """True if ONNX's own Gelu (opset 20) and LayerNormalization (opset 17) replace the nodes that compute them before
    nodes are placed."""
    passed_by_transposes: frozenset[str] = frozenset()
    """The operators over which not every version moves Transposes, and this one does; Gelu is that of opset 20."""
    passes_splits: bool = False
    """True if Transposes are moved over a Reshape that splits dimensions."""
    normalizes_new_casts: bool = False
    """True if Casts of version 21 or newer become part of the LayerNormalization that replaces nodes around them."""
    checks_factors: bool = False
    """True if a factor becomes part of a MatMul only if it has no more dimensions than what it scales."""
    fuses_doubles: bool = False
    """True if factors become part of a MatMul of DOUBLE, and if the CPU has a kernel for the FusedMatMul that takes a
    Transpose of that type; False if session creation fails with it."""
    adds_vectors_later: bool = False
    """True if a LayerNormalization of a sum is also fused with a vector that is added to a product in front of it."""
    checks_scales: bool = False
    """True if a LayerNormalization is fused with the sum in front of it only if its scale and bias are vectors."""
    reads_half_epsilons: bool = False
    """True if a LayerNormalization that replaces other nodes also takes its epsilon from a constant of FLOAT16."""
    ifs_read_sequences: bool = False
    """True if an If is on DirectML even if its branches read a sequence from outside."""
    removes_clips: bool = False
    """True if a Relu or Clip in front of a QuantizeLinear is removed if it changes nothing."""
    merges_shapes: bool = False
    """True if Shapes of tensors with equal sizes are made to read one of these tensors."""
    compares_all_numbers: bool = False
    """True if equal nodes are merged whatever the type of a one-element tensor attribute; False if they are merged only
    if it is FLOAT, FLOAT16 or INT64, and stored in raw_data."""
    folds_halves: frozenset[str] = frozenset()
    """The operators for which the CPU has a kernel that takes FLOAT16, besides those that move elements."""
    folds_known_sizes: bool = False
    """True if a node with constant inputs is folded only if the sizes of its results are inferred, and if its kernel
    succeeds; False if session creation fails with the kernel."""
    fuses_new_reshapes: bool = False
    """True if the shape that a Concat computes for a Reshape of version 19 or newer becomes a constant."""
    fuses_new_convs: bool = False
    """True if scales and shifts that follow a Conv of version 22 are fused into its weights."""
    pads_any_window: bool = False
    """True if a Pad is also fused with an AveragePool, and with a window behind a Cast; False if only with a Conv or
    MaxPool."""
    pads_unpadded_windows: bool = False
    """True if a Pad is fused with a window that has no pads of its own."""
    fuses_new_pads: bool = False
    """True if a Pad of version 21 or newer is fused with the window that it feeds, and a Pad in front of a Cast of
    version 19 or newer."""
    computes_any_equation: bool = False
    """True if an Einsum of one or two inputs is on DirectML whatever its equation; False if DirectML must have another
    operator for it."""
    fuses_new_wheres: bool = False
    """True if a Not that feeds a Where of version 16 is fused with it."""
    fuses_new_transposes: bool = False
    """True if a Transpose of version 21 or newer is fused into the Gemm before or behind it."""
    loses_packed_weights: bool = False
    """True if session creation fails with a fused graph that has a product with packed weights."""
    quantizes_weights: bool = False
    """True if weights and biases of a Conv, ConvTranspose or Gemm between quantizations are quantized too."""
    quantizes_weights_behind_clips: bool = False
    """True if WeightBiasQuantization also quantizes weights and biases if a Relu or Clip is in front of the
    QuantizeLinear."""
    dequantizes_scalars: bool = False
    """True if a scalar that a Where reads beside a DequantizeLinear gets a DequantizeLinear."""
    dequantizes_before_quantized_alone: bool = False
    """True if WhereDummyDq adds a DequantizeLinear for a scalar only in front of a QuantizeLinear to the same type."""
    fuses_any_product: bool = False
    """True if a MatMul is fused with a BatchNormalization whatever the rank of its first factor; session creation fails
    if that is known and not 2. False if only a matrix is fused."""
    fuses_new_products: bool = False
    """True if a Reshape or Transpose of version 21 or newer may be between a MatMul and the BatchNormalization."""
    removes_new_dropouts: bool = False
    """True if a Dropout of version 22 is removed."""
    keeps_casts: bool = False
    """True if a Cast in front of a Cast is not removed if they are on different providers, or if it may change values
    that the other one casts to BOOL."""
    removes_new_casts: bool = False
    """True if a Cast of version 21 or newer is removed if only Shapes read it."""
    follows_axes: bool = False
    """True if the kernels of quantizations of opset 21 apply scales along the node's axis; False if they apply them
    along the last axis, whatever the node's axis is."""
    captures_no_cpu_alone: bool = False
    """True if a session cannot be captured when it has nodes and all of them are on the CPU."""
    maps_shared_inputs: bool = False
    """True if a session is created for a model with an input that only graphs in nodes read, of nodes on the CPU and on
    DirectML; False if the process ends."""

    reads_large_constants: bool = False
    """True if a constant of 128 bytes or more that is read is checked to have the data that its dimensions need."""
    checks_stored_tensors: bool = False
    """True if a model is not loaded with a constant in a file outside the model's folder, nor with a sparse one whose
    indices are beyond its dimensions."""
    transposes_empty_constants: bool = False
    """True if a Transpose may be moved to a constant without elements; False if the process ends for most."""
    follows_computed_sizes: bool = False
    """True if inference follows sizes that the nodes of a function compute from the shape of its input."""
    checks_ranks_of_weights: bool = False
    """True if a model is not loaded with a Conv whose weights have another rank than its input, or the process ends;
    False if only DirectML's kernel checks them."""
    checks_windows: bool = False
    """True if a model is not loaded with a convolution or pool whose attributes have values or numbers of values that
    make no sense, or whose weights have another rank than its input; False if only DirectML's kernel checks them."""
    activations_in_any_case: bool = False
    """True if a GRU, LSTM or RNN on DirectML takes the names of its activations in upper and lower case."""
    activates_by_hard_swish: bool = False
    """True if a FusedConv takes a HardSwish as its activation."""
    refuses_recursion: bool = False
    """True if a model is not loaded with a function that calls itself and is not called by the model's graph; False if
    the process ends when such a function is called."""
    gives_graphs_names: bool = False
    """True if the graph that a call hands to a function may read the tensors around the call; False if the model is not
    loaded then, unless only graphs inside it do."""


_COMPARISONS: Final = frozenset({"GreaterOrEqual", "LessOrEqual"})
_QUANTIZED_1_18: Final = Quantized(
    frozenset({"ArgMax", "Gather", "MaxPool", "Reshape", "Resize", "Split", "Squeeze", "Transpose", "Unsqueeze"}),
    frozenset({"Add", "Concat", "Conv", "MatMul"}),
    {"MaxPool": 12, "Reshape": 19, "Squeeze": 13, "Transpose": None, "Unsqueeze": 13},
)
_QUANTIZED_1_19: Final = replace(
    _QUANTIZED_1_18,
    propagated={"MaxPool": 12, "Reshape": 21, "Slice": None, "Squeeze": 21, "Transpose": None, "Unsqueeze": 21},
    to_several=True,
    packs_half_bytes=True,
    moves_axes=True,
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
_QUANTIZED_1_23: Final = replace(_QUANTIZED_1_21, widens_merged=True)
_QUANTIZED_1_24: Final = replace(_QUANTIZED_1_23, computed=_QUANTIZED_1_21.computed - {"LeakyRelu", "Softmax"})
_QUANTIZED_1_30: Final = replace(
    _QUANTIZED_1_24,
    propagated=dict.fromkeys(_QUANTIZED_1_24.propagated),
    packs_weights=True,
    keeps_constants=True,
    checks_biases=True,
    widens_merged=False,
)

_HALVES: Final = frozenset({"IsInf", "IsNaN", "Max", "Min", "Mod", "QuantizeLinear", "Round", "Shrink", "Sign"})

_1_18: Final = RuntimeTraits(
    folds_halves=_HALVES,
    constants_are_nodes=True,
    uninferred=_COMPARISONS | {"Einsum", "OneHot"},
    removes_clips=True,
    merges_shapes=True,
    fuses_any_product=True,
    quantized=_QUANTIZED_1_18,
)
_1_19: Final = replace(
    _1_18,
    removes_clips=False,
    merges_shapes=False,
    loses_packed_weights=True,
    folds_halves=_HALVES | {"Clip"},
    pads_any_window=True,
    computes_any_equation=True,
    checks_ranks_of_weights=True,
    quantized=_QUANTIZED_1_19,
)
_1_20: Final = replace(
    _1_19,
    uninferred=_COMPARISONS | {"OneHot"},
    folds_halves=_1_19.folds_halves | {"LayerNormalization"},
    fuses_first=True,
    pads_unpadded_windows=True,
    ifs_read_sequences=True,
    quantized=_QUANTIZED_1_20,
)
_1_21: Final = replace(
    _1_20,
    uninferred=_COMPARISONS,
    fuses_any_product=False,
    quantizes_weights=True,
    loses_packed_weights=False,
    reshapes_products=True,
    keeps_attentions=True,
    merges_reshapes=True,
    leaves_large_products=True,
    activations_in_any_case=True,
    quantized=_QUANTIZED_1_21,
)
_1_23: Final = replace(
    _1_21,
    fuses_attentions=True,
    checks_factors=True,
    quantizes_weights_behind_clips=True,
    passed_by_transposes=frozenset({"Gelu"}),
    maps_shared_inputs=True,
    reads_large_constants=True,
    quantized=_QUANTIZED_1_23,
)
_1_24: Final = replace(
    _1_23,
    uninferred=frozenset(),
    checks_scales=True,
    dequantizes_scalars=True,
    checks_stored_tensors=True,
    follows_computed_sizes=True,
    transposes_empty_constants=True,
    quantized=_QUANTIZED_1_24,
)
_1_30: Final = replace(
    _1_24,
    reads_overloads=True,
    keeps_sizes_of_others=True,
    outer_lengths_are_known=True,
    compares_all_numbers=True,
    folds_known_sizes=True,
    fuses_new_reshapes=True,
    keeps_allowzero=True,
    fuses_new_convs=True,
    fuses_new_pads=True,
    fuses_new_wheres=True,
    fuses_new_transposes=True,
    fuses_new_products=True,
    removes_new_dropouts=True,
    keeps_casts=True,
    removes_new_casts=True,
    reads_half_epsilons=True,
    normalizes_new_casts=True,
    adds_vectors_later=True,
    fuses_doubles=True,
    dequantizes_before_quantized_alone=True,
    passed_by_transposes=_1_24.passed_by_transposes | {"Elu", "Gather"},
    passes_splits=True,
    captures_no_cpu_alone=True,
    follows_axes=True,
    gives_graphs_names=True,
    refuses_recursion=True,
    activates_by_hard_swish=True,
    checks_windows=True,
    quantized=_QUANTIZED_1_30,
)
_TRAITS: Final = (
    ((1, 9, 0), replace(_1_18, constants_are_nodes=False)),
    ((1, 18, 0), _1_18),
    ((1, 19, 0), _1_19),
    ((1, 20, 0), _1_20),
    ((1, 21, 0), _1_21),
    ((1, 23, 0), _1_23),
    ((1, 24, 1), replace(_1_24, loses_constants_of_branches=True)),
    ((1, 30, 0), _1_30),
)
"""Each entry has the traits from a version on, oldest first; observed from 1.18.0 on."""


def traits_of(key: tuple[int, ...]) -> RuntimeTraits:
    """Returns the traits of the version whose numbers are `key`: (1, 24, 4) for 1.24.4."""
    return next(traits for first, traits in reversed(_TRAITS) if first <= key)
