"""A Split or Concat while rewritings change it, and the nodes that replace it.

A Split reads the whole and writes the parts; a Concat reads the parts and writes the whole. A rewriting that surrounds
a node inserts one operator in front of its inputs and the inverse behind its outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import onnx
from onnx import AttributeProto, helper

from dmlsplit.descriptors.dims import Dim, Shape
from dmlsplit.formats.joins import JoinNode
from dmlsplit.formats.onnx.protobuf import Names, add_document, first_output, refill, text
from dmlsplit.mending.constants import constant_nodes
from dmlsplit.mending.sites import Site
from dmlsplit.mending.words import CannotMend, invalid
from dmlsplit.onnxruntime.facts import LENGTHS_ARE_INPUT


@dataclass(slots=True)
class NamedTensor:
    """A tensor's name, and its shape if that is known."""

    name: str
    shape: Shape | None


Around: TypeAlias = Callable[[NamedTensor, str], Iterable[onnx.NodeProto]]


@dataclass
class Form:
    """One node. `whole` and `parts` are its tensors, `axis` counts from 0; `explicit` is True if its lengths are
    written out.

    `before` and `after` are the nodes around it, `taken` the names in use.
    """

    op: str
    opset: int
    proto: onnx.NodeProto
    data_type: str | None
    axis: int | None
    whole: NamedTensor
    parts: list[NamedTensor]
    lengths: Sequence[Dim] | None
    taken: Names
    explicit: bool = False
    before: list[onnx.NodeProto] = field(default_factory=list)
    after: list[onnx.NodeProto] = field(default_factory=list)
    _integers: dict[tuple[int, ...], str] = field(default_factory=dict)
    _constants: list[onnx.NodeProto] = field(default_factory=list)

    @classmethod
    def of(cls, sites: Sequence[Site], taken: Names) -> Form:
        """Returns the Form of a node with the facts that hold at all its calls (`sites`). Raises CannotMend if it is
        not valid, or if the calls differ in the element type or the axis."""
        for site in sites:
            if not site.node.report.ok:
                raise CannotMend(invalid(site.node))
        forms = [_form(site, taken) for site in sites]
        form = forms[0]
        for other in forms[1:]:
            if (other.data_type, other.axis) != (form.data_type, form.axis):
                raise CannotMend("calls of its function differ in the element type or the axis")
            pairs = zip((form.whole, *form.parts), (other.whole, *other.parts), strict=True)
            for tensor, twin in pairs:
                tensor.shape = _common(tensor.shape, twin.shape)
            form.lengths = _common(form.lengths, other.lengths)
        return form

    @property
    def is_split(self) -> bool:
        return self.op == "Split"

    @property
    def read(self) -> list[NamedTensor]:
        return [self.whole] if self.is_split else self.parts

    @property
    def written(self) -> list[NamedTensor]:
        return self.parts if self.is_split else [self.whole]

    @property
    def rank(self) -> int | None:
        return next((len(t.shape) for t in (self.whole, *self.parts) if t.shape is not None), None)

    def fresh(self, word: str) -> str:
        """Returns an unused name made from the node's output, or from its operator if the output has no name, and
        `word`; adds it to `taken`. It is the same each time the model is written."""
        output = first_output(self.proto) or text(self.proto.op_type)
        return self.taken.fresh(f"{output}/{word}")

    def node(self, op: str, inputs: Iterable[str], outputs: Iterable[str], **attributes: Any) -> onnx.NodeProto:
        """Returns a new node, named after its first output; the Form is not changed."""
        names = list(outputs)
        return helper.make_node(op, list(inputs), names, name=names[0], **attributes)

    def integers(self, values: Sequence[int]) -> str:
        """Returns the name of a constant of these integers; the nodes that make it are added in front of the node at
        the first call."""
        key = tuple(values)
        if key not in self._integers:
            name = self._integers[key] = self.fresh("sizes")
            self._constants += constant_nodes(name, np.array(key, np.int64), self.opset, self.taken)
        return self._integers[key]

    def surround(self, word: str, there: Around, back: Around) -> None:
        """Adds nodes in front of all inputs (`there`) and behind all outputs (`back`), and renames the Form's tensors.
        Both functions return the nodes that lead from a tensor to a name."""
        for tensor in self.read:
            name = self.fresh(word)
            self.before += there(tensor, name)
            tensor.name = name
        for tensor in self.written:
            name, given = self.fresh(word), tensor.name
            self.after[:0] = back(NamedTensor(name, tensor.shape), given)
            tensor.name = name

    def nodes(self, original: onnx.NodeProto, document: str) -> list[onnx.NodeProto]:
        """Returns all nodes that replace `original`, in order, each with `document` in its doc_string."""
        core = self._core(original)  # adds constants
        found = [*self._constants, *self.before, *core, *self.after]
        for node in found:
            add_document(node, document)
        return found

    def _core(self, original: onnx.NodeProto) -> list[onnx.NodeProto]:
        if not self.parts:
            return []
        if len(self.parts) == 1 and len(self.parts) < self._given_parts:
            (read,), (written,) = self.read, self.written
            if not written.name:
                return []
            return [self.node("Identity", [read.name], [written.name])]
        core = deepcopy(original)
        refill(core.input, [tensor.name for tensor in self.read])
        refill(core.output, [tensor.name for tensor in self.written])
        if self.axis is not None:
            _set(core, helper.make_attribute("axis", self.axis))
        if self.is_split:
            self._put_lengths(core)
        return [core]

    @property
    def _given_parts(self) -> int:
        return len(self.proto.output if self.is_split else self.proto.input)

    def _put_lengths(self, core: onnx.NodeProto) -> None:
        if not self.explicit:
            core.input.extend(self.proto.input[1:])
            return
        if self.lengths is None or not all(isinstance(length, int) for length in self.lengths):
            raise CannotMend("its lengths are not known")
        lengths = [length for length in self.lengths if isinstance(length, int)]
        _drop(core, ("split", "num_outputs"))
        if self.opset < LENGTHS_ARE_INPUT:
            _set(core, helper.make_attribute("split", lengths))
        else:
            core.input.append(self.integers(lengths))


def _form(site: Site, taken: Names) -> Form:
    node, proto = site.node, site.proto
    opset = site.scope.origin.opset
    if isinstance(node, JoinNode):
        parts = [NamedTensor(text(name), shape) for name, shape in zip(proto.input, node.input_shapes, strict=True)]
        whole = NamedTensor(text(proto.output[0]), node.output_shape)
    else:
        names = [text(name) for name in proto.output]
        parts = [NamedTensor(name, shape) for name, shape in zip(names, node.output_shapes, strict=False)]
        missing = max(len(node.lengths or ()) - len(names), 0)
        parts += [NamedTensor(name, None) for name in (*names[len(parts) :], *("",) * missing)]
        whole = NamedTensor(text(proto.input[0]), node.input_shape)
    return Form(node.op, opset, proto, node.data_type, node.axis, whole, parts, node.lengths, taken)


def _common(a: Sequence[Dim] | None, b: Sequence[Dim] | None) -> tuple[Dim, ...] | None:
    """Returns a shape with the sizes in which two shapes agree, None for the others; None if their ranks differ or one
    is unknown. Equal symbols of different calls do not agree."""
    if a is None or b is None or len(a) != len(b):
        return None
    return tuple([x if x == y and isinstance(x, int) else None for x, y in zip(a, b, strict=True)])


def _drop(node: onnx.NodeProto, names: Iterable[str]) -> None:
    refill(node.attribute, [attribute for attribute in node.attribute if text(attribute.name) not in names])


def _set(node: onnx.NodeProto, attribute: AttributeProto) -> None:
    _drop(node, [attribute.name])
    node.attribute.append(attribute)
