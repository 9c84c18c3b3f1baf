"""What the passes over a graph ask about the session's version of ONNX Runtime."""

from __future__ import annotations

from typing import Final

from dmlsplit.targets.runtime_traits import Quantized
from dmlsplit.targets.runtime_versions import Runtime

_FIRST_GELU: Final = 20
_FIRST_LAYER_NORM: Final = 17
_NEW_CONV: Final = 22
"""From this version of Conv on, old versions of ONNX Runtime do not change its weights."""
_FIRST_REMOVED_CAST: Final = 13
_NEW_CAST: Final = 21
"""From this version of Cast on, old versions of ONNX Runtime do not remove one that a Shape reads."""
_NEW_DROPOUT: Final = 22
"""From this version of Dropout on, old versions of ONNX Runtime do not remove one."""
_NEW_TRANSPOSE: Final = 21
"""From this version of Transpose on, old versions of ONNX Runtime do not fuse it with a Gemm."""
_PRODUCTS: Final = frozenset({"Gemm", "MatMul"})
_NEW_WHERE: Final = 16
"""From this version of Where on, old versions of ONNX Runtime do not fuse it with a Not that feeds it."""
_NEW_RESHAPE: Final = 19
"""From this version of Reshape on, old versions of ONNX Runtime do not fuse its shape."""


class VersionFacts:
    """The properties of a version that passes read, for a graph of one opset: those of `Facts` that follow from the
    version's RuntimeTraits, from the opset, and from the operators of the graph in the file.

    Versions for which the properties in the `asks` of all passes are equal share the resulting graph. Therefore, some
    are False if the graph has no node that the pass would change: versions that differ only in these share it as well.
    """

    runtime: Runtime
    opset: int
    """The opset of the default domain."""
    operators_in_file: frozenset[str]
    """The operators of the graph's nodes before all passes."""

    @property
    def quantized(self) -> Quantized:
        """How nodes between DequantizeLinears and QuantizeLinears are fused."""
        return self.runtime.traits.quantized

    @property
    def reshapes_products(self) -> bool:
        """True if a MatMul of more than two dimensions becomes a Gemm between two Reshapes; False without a MatMul."""
        return "MatMul" in self.operators_in_file and self.runtime.traits.reshapes_products

    @property
    def passed_by_transposes(self) -> frozenset[str]:
        """The operators of the graph over which only some versions move Transposes, this one among them."""
        return self.runtime.traits.passed_by_transposes & self.operators_in_file

    @property
    def keeps_attentions(self) -> bool:
        """True if MatMuls around an attention are not replaced by a Gemm between two Reshapes, even if
        `reshapes_products`."""
        return self.reshapes_products and self.runtime.traits.keeps_attentions

    @property
    def compares_all_numbers(self) -> bool:
        """True if equal nodes are merged whatever the type of their one-element tensor attribute; False without a
        ConstantOfShape, which has such an attribute."""
        return "ConstantOfShape" in self.operators_in_file and self.runtime.traits.compares_all_numbers

    @property
    def leaves_large_products(self) -> bool:
        """True if no MatMulIntegerToFloat is created with factors of more than 4 GB."""
        return self.runtime.traits.leaves_large_products

    @property
    def fuses_convs(self) -> bool:
        """True if scales and shifts that follow a Conv are fused into its weights; False without a Conv."""
        return "Conv" in self.operators_in_file and (self.opset < _NEW_CONV or self.runtime.traits.fuses_new_convs)

    @property
    def makes_gelus(self) -> bool:
        """True if nodes that compute a Gelu are replaced by one Gelu."""
        return self.opset >= _FIRST_GELU and self.runtime.traits.fuses_first

    @property
    def makes_layer_norms(self) -> bool:
        """True if nodes that compute a LayerNormalization are replaced by one, before nodes are placed."""
        return self.opset >= _FIRST_LAYER_NORM and self.runtime.traits.fuses_first

    @property
    def reads_half_epsilons(self) -> bool:
        """True if nodes are also replaced by a LayerNormalization if the epsilon is a constant of FLOAT16."""
        return self.runtime.traits.reads_half_epsilons

    @property
    def removes_dropouts(self) -> bool:
        """True if the graph has a Dropout, and the session's version of ONNX Runtime removes one that does nothing; old
        versions keep those of opset 22 and later."""
        return "Dropout" in self.operators_in_file and (
            self.opset < _NEW_DROPOUT or self.runtime.traits.removes_new_dropouts
        )

    @property
    def removes_casts(self) -> bool:
        """True if the graph has a Cast and a Shape, and the session's version of ONNX Runtime removes a Cast that only
        Shapes read; old versions keep those of opset 21 and later."""
        known = self.opset < _NEW_CAST or self.runtime.traits.removes_new_casts
        return {"Cast", "Shape"} <= self.operators_in_file and self.opset >= _FIRST_REMOVED_CAST and known

    @property
    def removes_clips(self) -> bool:
        """True if the graph has a QuantizeLinear, and the session's version of ONNX Runtime removes a Relu or Clip in
        front of it that changes nothing."""
        return "QuantizeLinear" in self.operators_in_file and self.runtime.traits.removes_clips

    @property
    def fuses_transposes(self) -> bool:
        """True if the graph has a Transpose and a Gemm, or a product that becomes one, and the session's version of
        ONNX Runtime fuses them; old versions do not from opset 21 on."""
        has_both = "Transpose" in self.operators_in_file and not _PRODUCTS.isdisjoint(self.operators_in_file)
        return has_both and (self.opset < _NEW_TRANSPOSE or self.runtime.traits.fuses_new_transposes)

    @property
    def fuses_wheres(self) -> bool:
        """True if the graph has a Where, and the session's version of ONNX Runtime fuses it with the Not in front of
        it; old versions do not from opset 16 on."""
        return "Where" in self.operators_in_file and (self.opset < _NEW_WHERE or self.runtime.traits.fuses_new_wheres)

    @property
    def fuses_reshapes(self) -> bool:
        """True if the shape that a Concat computes for a Reshape becomes a constant."""
        return self.opset < _NEW_RESHAPE or self.runtime.traits.fuses_new_reshapes

    @property
    def merges_reshapes(self) -> bool:
        """True if Reshapes in a row become one, which happens only where fuses_reshapes is true."""
        return self.fuses_reshapes and self.runtime.traits.merges_reshapes

    @property
    def keeps_allowzero(self) -> bool:
        """True if a Reshape with allowzero does not become part of the Reshape before it."""
        return self.runtime.traits.keeps_allowzero

    @property
    def merges_shapes(self) -> bool:
        """True if Shape nodes of tensors with equal sizes read one tensor."""
        return self.runtime.traits.merges_shapes

    @property
    def folds_known_sizes(self) -> bool:
        """True if a node is folded only if the sizes of its results are inferred."""
        return self.runtime.traits.folds_known_sizes
