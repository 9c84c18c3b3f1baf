"""ONNX Runtime's graph optimization, to the extent that it changes a Split or Concat or the nodes around it.

Each pass changes a dmlsplit.models.graph.Graph. Its module is named after ONNX Runtime's source file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import Final, NamedTuple, TypeAlias

from dmlsplit.models.graph import Graph
from dmlsplit.onnxruntime.passes.bias_gelu_fusion import bias_gelu_fusion
from dmlsplit.onnxruntime.passes.common_subexpression_elimination import (
    common_subexpression_elimination,
    constant_sharing,
    first_subexpression_elimination,
)
from dmlsplit.onnxruntime.passes.constant_folding import (
    constant_folding,
    constant_nodes,
    folding_behind_branches,
)
from dmlsplit.onnxruntime.passes.conv_fusion import conv_fusion
from dmlsplit.onnxruntime.passes.div_mul_fusion import div_mul_fusion
from dmlsplit.onnxruntime.passes.dml_operator_fusion import dml_operator_fusion
from dmlsplit.onnxruntime.passes.double_qdq_pairs_remover import double_qdq_pairs_remover
from dmlsplit.onnxruntime.passes.ensure_unique_dq_for_node_unit import ensure_unique_dq_for_node_unit
from dmlsplit.onnxruntime.passes.fast_gelu_fusion import fast_gelu_fusion
from dmlsplit.onnxruntime.passes.function_expansion import function_expansion
from dmlsplit.onnxruntime.passes.gelu_fusion import contributed_gelu_fusion, gelu_fusion
from dmlsplit.onnxruntime.passes.gemm_sum_fusion import gemm_sum_fusion
from dmlsplit.onnxruntime.passes.gemm_transpose_fusion import gemm_transpose_fusion
from dmlsplit.onnxruntime.passes.identity_elimination import (
    eliminate_identities,
    identities_of_branches,
)
from dmlsplit.onnxruntime.passes.layer_norm_fusion import later_layer_norm_fusion, layer_norm_fusion
from dmlsplit.onnxruntime.passes.matmul_activation_fusion import later_matmul_fusion, matmul_activation_fusion
from dmlsplit.onnxruntime.passes.matmul_add_fusion import later_matmul_add_fusion, matmul_add_fusion
from dmlsplit.onnxruntime.passes.matmul_bn_fusion import matmul_bn_fusion
from dmlsplit.onnxruntime.passes.matmul_integer_to_float import matmul_integer_to_float
from dmlsplit.onnxruntime.passes.matmul_scale_fusion import matmul_scale_fusion
from dmlsplit.onnxruntime.passes.matmul_transpose_fusion import matmul_transpose_fusion
from dmlsplit.onnxruntime.passes.not_where_fusion import later_not_where_fusion, not_where_fusion
from dmlsplit.onnxruntime.passes.pad_fusion import later_pad_fusion, pad_fusion
from dmlsplit.onnxruntime.passes.qdq_propagation import qdq_propagation
from dmlsplit.onnxruntime.passes.qdq_selector_action_transformer import qdq_selector_action_transformer
from dmlsplit.onnxruntime.passes.quick_gelu_fusion import quick_gelu_fusion
from dmlsplit.onnxruntime.passes.relu_clip_fusion import relu_clip_fusion
from dmlsplit.onnxruntime.passes.reshape_fusion import contiguous_reshapes, reshape_fusion
from dmlsplit.onnxruntime.passes.rule_based_graph_transformer import (
    noops_of_branches,
    remove_first_noops,
    remove_noops,
)
from dmlsplit.onnxruntime.passes.shape_input_merge import shape_input_merge, shapes_of_branches
from dmlsplit.onnxruntime.passes.skip_layer_norm_fusion import skip_layer_norm_fusion
from dmlsplit.onnxruntime.passes.transpose_optimizer import transpose_optimizer
from dmlsplit.onnxruntime.passes.weight_bias_quantization import weight_bias_quantization
from dmlsplit.onnxruntime.passes.where_dummy_dq import where_dummy_dq


class Pass(NamedTuple):
    """A change of a graph, and the lowest optimization level that makes it."""

    level: int
    change: Callable[[Graph], None]
    needs: frozenset[str] = frozenset()
    """The pass changes no graph that has none of these operators before the first pass of the list; if empty, it may
    change any graph."""
    asks: frozenset[str] = frozenset()
    """The properties of Facts for the ONNX Runtime version that the pass reads: versions that differ in them do not
    share a graph that the pass may change."""


def _pass(level: int, change: Callable[[Graph], None], needs: str = "", asks: str = "") -> Pass:
    return Pass(level, change, frozenset(needs.split()), frozenset(asks.split()))


_NOOPS: Final = "removes_dropouts removes_casts removes_clips"
_PADS: Final = "fuses_pads pads_any_window pads_unpadded_windows fuses_new_pads"

MOVES: Final = _pass(1, transpose_optimizer, "Transpose", "passed_by_transposes passes_splits compares_all_numbers")
BEFORE_PLACEMENT: Final = (
    _pass(0, constant_nodes, "Constant"),
    _pass(1, eliminate_identities, "Identity"),
    _pass(1, remove_first_noops, asks=_NOOPS),
    _pass(1, not_where_fusion, "Where", "fuses_wheres"),
    _pass(1, pad_fusion, "Pad", _PADS),
    _pass(1, shape_input_merge, "Shape", "merges_shapes"),
    _pass(1, constant_sharing),
    _pass(1, first_subexpression_elimination, asks="compares_all_numbers"),
    _pass(1, constant_folding, asks="folds_halves"),
    _pass(1, identities_of_branches, "Identity"),
    _pass(1, noops_of_branches, asks=_NOOPS),
    _pass(1, later_not_where_fusion, "Where", "fuses_wheres"),
    _pass(1, later_pad_fusion, "Pad", _PADS),
    _pass(1, shapes_of_branches, "Shape", "merges_shapes"),
    _pass(1, folding_behind_branches, asks="folds_halves"),
    _pass(1, common_subexpression_elimination, asks="compares_all_numbers"),
    _pass(1, reshape_fusion, "Reshape", "fuses_reshapes keeps_sizes_of_others"),
    _pass(1, gelu_fusion, "Erf", "makes_gelus"),
    _pass(1, layer_norm_fusion, "ReduceMean", "makes_layer_norms reads_half_epsilons normalizes_casts"),
    MOVES,
)
"""The passes that run before nodes are placed and determine their sizes, in order."""
PASSES: Final = (
    _pass(0, ensure_unique_dq_for_node_unit, "DequantizeLinear"),
    _pass(1, remove_noops, asks=_NOOPS),
    _pass(1, div_mul_fusion, "Div"),
    _pass(1, gemm_sum_fusion, "Gemm"),
    _pass(1, matmul_bn_fusion, "BatchNormalization", "fuses_any_product fuses_new_products"),
    _pass(1, matmul_add_fusion, "MatMul", "reshapes_products keeps_attentions"),
    _pass(1, contiguous_reshapes, "MatMul Reshape", "merges_reshapes keeps_allowzero"),
    _pass(1, gemm_transpose_fusion, "Transpose", "fuses_transposes"),
    _pass(1, conv_fusion, "Conv", "fuses_convs"),
    _pass(1, relu_clip_fusion, "Clip"),
    _pass(0, function_expansion, "CastLike HardSwish"),
    _pass(1, double_qdq_pairs_remover, "DequantizeLinear"),
    _pass(1, qdq_propagation, "DequantizeLinear QuantizeLinear", "quantized"),
    _pass(1, weight_bias_quantization, "DequantizeLinear", "quantizes_weights quantizes_weights_behind_clips"),
    _pass(1, where_dummy_dq, "DequantizeLinear", "dequantizes_scalars dequantizes_before_quantized_alone"),
    _pass(2, qdq_selector_action_transformer, "DequantizeLinear QuantizeLinear", "quantized"),
    _pass(2, matmul_integer_to_float, "MatMulInteger", "leaves_large_products"),
    _pass(2, quick_gelu_fusion, "Sigmoid"),
    _pass(2, fast_gelu_fusion, "Tanh"),
    _pass(2, contributed_gelu_fusion, "Erf", "makes_gelus"),
    _pass(2, later_layer_norm_fusion, "ReduceMean", "makes_layer_norms reads_half_epsilons normalizes_casts"),
    _pass(2, bias_gelu_fusion, "Erf Tanh"),
    _pass(2, later_matmul_add_fusion, "MatMul", "fuses_attentions"),
    _pass(2, skip_layer_norm_fusion, "LayerNormalization ReduceMean", "checks_scales adds_vectors_later"),
    _pass(2, matmul_transpose_fusion, "Transpose", "fuses_doubles"),
    _pass(2, matmul_scale_fusion, "MatMul", "checks_factors fuses_doubles"),
    _pass(2, matmul_activation_fusion, "Softmax", "checks_factors fuses_doubles"),
    _pass(2, later_matmul_fusion, "Transpose", "checks_factors fuses_doubles"),
    _pass(2, dml_operator_fusion),
)
"""The passes that replace or fuse nodes. ONNX Runtime repeats those of level 2 until nothing changes; this order makes
one round sufficient."""


Watch: TypeAlias = Callable[[Pass | None, Graph, bool], None]
"""Called with None before the first pass of a list, and after each pass with the pass, and True if the level includes
it."""
_WATCH: Final[ContextVar[Watch | None]] = ContextVar("watch", default=None)


@lru_cache(maxsize=1024)
def that_may_change(operators: frozenset[str], passes: tuple[Pass, ...], level: int) -> Sequence[Pass]:
    """Returns the passes that optimization level `level` runs and that may change a graph of these operators. Cached:
    the graphs in a model's nodes have few different operators."""
    return tuple(
        [each for each in passes if level >= each.level and not (each.needs and each.needs.isdisjoint(operators))]
    )


def run(passes: tuple[Pass, ...], graph: Graph, level: int) -> None:
    """Runs the passes of an optimization level on a graph, in place."""
    watch = _WATCH.get()
    made = that_may_change(graph.operators, passes, level)
    if watch is None:
        for each in made:
            each.change(graph)
        return
    watch(None, graph, False)
    for each in passes:
        if each in made:
            each.change(graph)
        watch(each, graph, level >= each.level)


def show(made: Pass, graph: Graph) -> None:
    """Shows a pass that was made on a graph, outside of `run`, to what watches the passes."""
    if (watch := _WATCH.get()) is not None:
        watch(made, graph, True)


@contextmanager
def watched(watch: Watch) -> Iterator[None]:
    """Context manager: `watch` is called around every pass that runs in the block."""
    token = _WATCH.set(watch)
    try:
        yield
    finally:
        _WATCH.reset(token)
