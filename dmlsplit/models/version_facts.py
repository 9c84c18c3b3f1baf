"""What the passes over a graph ask about the session's version of ONNX Runtime."""

from __future__ import annotations

from typing import Any, Final, Protocol

from dmlsplit.targets.runtime_traits import RuntimeTraits
from dmlsplit.targets.runtime_versions import Runtime

_FIRST_GELU: Final = 20
_FIRST_LAYER_NORM: Final = 17
_NEW_CONV: Final = 22
"""From this version of Conv on, old versions of ONNX Runtime do not change its weights."""
_FIRST_REMOVED_CAST: Final = 13
_NEW_CAST: Final = 21
"""From this version of Cast on, old versions of ONNX Runtime do not remove one that a Shape or a normalization
reads."""
_NEW_DROPOUT: Final = 22
"""From this version of Dropout on, old versions of ONNX Runtime do not remove one."""
_NEW_TRANSPOSE: Final = 21
"""From this version of Transpose on, old versions of ONNX Runtime do not fuse it with a Gemm."""
_PRODUCTS: Final = frozenset({"Gemm", "MatMul"})
_NEW_WHERE: Final = 16
"""From this version of Where on, old versions of ONNX Runtime do not fuse it with a Not that feeds it."""
_NEW_PAD: Final = 21
"""From this version of Pad on, old versions of ONNX Runtime do not fuse it with the Conv or pool that it feeds."""
_RESHAPED: Final = frozenset({"MatMul", "Transpose"})
"""The operators around which passes insert Reshapes, Squeezes and Unsqueezes."""
_NEW_RESHAPE: Final = 19
"""From this version of Reshape on, old versions of ONNX Runtime do not fuse its shape."""


class VersionFacts(Protocol):
    """What a version does with a graph: its traits, and the properties that follow from them, from the opset and from
    the operators of the graph in the file.

    Versions for which everything in the `asks` of all passes is equal share the resulting graph. Therefore, a property
    is False where no node of the graph shows the trait: versions that differ only in it share the graph as well.
    """

    runtime: Runtime
    opset: int
    """The opset of the default domain."""
    operators_in_file: frozenset[str]
    """The operators of the graph's nodes before all passes."""
    reshapes_in_file: int
    """The number of the graph's Reshapes, Squeezes and Unsqueezes before all passes."""
    has_equal_shapes: bool
    """True if Shapes of the graph can be merged: the pass sets it, for versions that do not merge them too."""

    @property
    def traits(self) -> RuntimeTraits:
        """The traits of the version."""
        return self.runtime.traits

    def asked(self, name: str) -> Any:
        """Returns the property with this name or, if there is none, the trait."""
        return getattr(self if name in _PROPERTIES else self.traits, name)

    @property
    def reshapes_products(self) -> bool:
        """True if a MatMul of more than two dimensions becomes a Gemm between two Reshapes; False without a MatMul."""
        return "MatMul" in self.operators_in_file and self.traits.reshapes_products

    @property
    def passed_by_transposes(self) -> frozenset[str]:
        """The operators of the graph over which only some versions move Transposes, this one among them."""
        return self.traits.passed_by_transposes & self.operators_in_file

    @property
    def passes_splits(self) -> bool:
        """True if Transposes are moved over Reshapes that split dimensions; False without a Reshape."""
        return "Reshape" in self.operators_in_file and self.traits.passes_splits

    @property
    def keeps_attentions(self) -> bool:
        """True if MatMuls around an attention are not replaced by a Gemm between two Reshapes before Reshapes in a row
        become one, even if `reshapes_products`."""
        return self.reshapes_products and self.traits.keeps_attentions

    @property
    def fuses_attentions(self) -> bool:
        """True if these MatMuls are replaced after that."""
        return self.reshapes_products and self.traits.fuses_attentions

    @property
    def compares_all_numbers(self) -> bool:
        """True if equal nodes are merged whatever the type of their one-element tensor attribute; False without a
        ConstantOfShape, which has such an attribute."""
        return "ConstantOfShape" in self.operators_in_file and self.traits.compares_all_numbers

    @property
    def fuses_convs(self) -> bool:
        """True if scales and shifts that follow a Conv are fused into its weights; False without a Conv."""
        return "Conv" in self.operators_in_file and (self.opset < _NEW_CONV or self.traits.fuses_new_convs)

    @property
    def makes_gelus(self) -> bool:
        """True if nodes that compute a Gelu are replaced by one Gelu."""
        return self.opset >= _FIRST_GELU and self.traits.fuses_first

    @property
    def makes_layer_norms(self) -> bool:
        """True if nodes that compute a LayerNormalization are replaced by one, before nodes are placed."""
        return self.opset >= _FIRST_LAYER_NORM and self.traits.fuses_first

    @property
    def normalizes_casts(self) -> bool:
        """True if Casts among nodes that compute a LayerNormalization become part of it; False without both."""
        known = self.opset < _NEW_CAST or self.traits.normalizes_new_casts
        return {"Cast", "ReduceMean"} <= self.operators_in_file and known

    @property
    def folds_halves(self) -> frozenset[str]:
        """The operators of the graph for which the CPU has a kernel that takes FLOAT16, besides those that move
        elements."""
        return self.traits.folds_halves & self.operators_in_file

    @property
    def fuses_doubles(self) -> bool:
        """True if factors and Transposes become part of a MatMul of DOUBLE on the CPU; False without a MatMul."""
        return "MatMul" in self.operators_in_file and self.traits.fuses_doubles

    @property
    def checks_factors(self) -> bool:
        """True if a factor of a product must not have more dimensions than what it scales; False without a MatMul."""
        return "MatMul" in self.operators_in_file and self.traits.checks_factors

    @property
    def quantizes_weights(self) -> bool:
        """True if weights and biases between quantizations are quantized; False without DequantizeLinears."""
        return "DequantizeLinear" in self.operators_in_file and self.traits.quantizes_weights

    @property
    def dequantizes_scalars(self) -> bool:
        """True if a scalar that a Where reads beside a DequantizeLinear gets one; False without both."""
        return {"DequantizeLinear", "Where"} <= self.operators_in_file and self.traits.dequantizes_scalars

    @property
    def removes_dropouts(self) -> bool:
        """True if the graph has a Dropout, and the session's version of ONNX Runtime removes one that does nothing; old
        versions keep those of opset 22 and later."""
        return "Dropout" in self.operators_in_file and (self.opset < _NEW_DROPOUT or self.traits.removes_new_dropouts)

    @property
    def removes_casts(self) -> bool:
        """True if the graph has a Cast and a Shape, and the session's version of ONNX Runtime removes a Cast that only
        Shapes read; old versions keep those of opset 21 and later."""
        known = self.opset < _NEW_CAST or self.traits.removes_new_casts
        return {"Cast", "Shape"} <= self.operators_in_file and self.opset >= _FIRST_REMOVED_CAST and known

    @property
    def removes_clips(self) -> bool:
        """True if the graph has a QuantizeLinear, and the session's version of ONNX Runtime removes a Relu or Clip in
        front of it that changes nothing."""
        return "QuantizeLinear" in self.operators_in_file and self.traits.removes_clips

    @property
    def merges_shapes(self) -> bool:
        """True if Shapes of tensors with equal sizes are made to read one of these tensors; False without such
        Shapes."""
        return self.has_equal_shapes and self.traits.merges_shapes

    @property
    def fuses_transposes(self) -> bool:
        """True if the graph has a Transpose and a Gemm, or a product that becomes one, and the session's version of
        ONNX Runtime fuses them; old versions do not from opset 21 on."""
        has_both = "Transpose" in self.operators_in_file and not _PRODUCTS.isdisjoint(self.operators_in_file)
        return has_both and (self.opset < _NEW_TRANSPOSE or self.traits.fuses_new_transposes)

    @property
    def has_normalized_product(self) -> bool:
        """True if the graph has a MatMul and a BatchNormalization, which may be fused."""
        return {"BatchNormalization", "MatMul"} <= self.operators_in_file

    @property
    def fuses_any_product(self) -> bool:
        """True if a MatMul is fused with a BatchNormalization whatever the rank of its first factor; False without
        both."""
        return self.has_normalized_product and self.traits.fuses_any_product

    @property
    def fuses_new_products(self) -> bool:
        """True if a Reshape or Transpose of version 21 or newer may be between the two; False without both."""
        return self.has_normalized_product and self.traits.fuses_new_products

    @property
    def fuses_wheres(self) -> bool:
        """True if the graph has a Where, and the session's version of ONNX Runtime fuses it with the Not in front of
        it; old versions do not from opset 16 on."""
        return "Where" in self.operators_in_file and (self.opset < _NEW_WHERE or self.traits.fuses_new_wheres)

    @property
    def fuses_pads(self) -> bool:
        """True if the graph has a Pad, and the session's version of ONNX Runtime fuses it with the Conv or pool that it
        feeds; old versions do not from opset 21 on."""
        return "Pad" in self.operators_in_file and (self.opset < _NEW_PAD or self.traits.fuses_new_pads)

    @property
    def fuses_reshapes(self) -> bool:
        """True if the shape that a Concat computes for a Reshape becomes a constant."""
        return self.opset < _NEW_RESHAPE or self.traits.fuses_new_reshapes

    @property
    def merges_reshapes(self) -> bool:
        """True if Reshapes in a row become one, which happens only where fuses_reshapes is true; False for a graph that
        has only one, and no operator around which passes insert others."""
        has_several = self.reshapes_in_file > 1 or not _RESHAPED.isdisjoint(self.operators_in_file)
        return has_several and self.fuses_reshapes and self.traits.merges_reshapes

    @property
    def keeps_allowzero(self) -> bool:
        """True if a Reshape with allowzero does not become part of the Reshape before it."""
        return self.merges_reshapes and self.traits.keeps_allowzero


_PROPERTIES: Final = vars(VersionFacts).keys()
