"""Finds the smallest model that is still wrong: functions are inlined, nodes removed, graphs in nodes opened."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, Protocol

import onnx
from google.protobuf.message import EncodeError

from dmlsplit.descriptors.dims import Shape
from dmlsplit.formats.limits import Budget
from dmlsplit.formats.onnx.protobuf import has_graphs, reads, refill
from dmlsplit.onnxruntime.inlining import inlined
from dmlsplit.reducing.cutting import Cut, constants_as_initializers, node_count, with_shapes
from dmlsplit.reducing.findings import Finding, Question, findings_of
from dmlsplit.reducing.inner import alone, inner_scopes, with_nodes, without_output
from dmlsplit.reducing.known import remove_unread
from dmlsplit.reducing.search import first_part, last_part, without_needless
from dmlsplit.system.errors import InputError
from dmlsplit.system.records import record

_ROUNDS: Final = 8
"""The most rounds of changes, each of which may make others possible."""
_FIRST_PART: Final = 8
"""The number of nodes around the one at fault that are tried first."""


class Check(Protocol):
    """Decides whether a model without weights is still wrong."""

    def __call__(self, model: onnx.ModelProto, shapes: Mapping[str, Shape], /) -> bool:
        """Returns True if the model is still wrong. `shapes` maps each input of the model that was a computed tensor of
        the original to its shape at the first Run, as far as known."""


@record
class SameClass:
    """A check of models: a call returns True if the model has a finding of the class `identity`."""

    question: Question
    identity: tuple[str, str]

    def __call__(self, model: onnx.ModelProto, shapes: Mapping[str, Shape], /) -> bool:
        return any(each.is_like(self.identity) for each in self.findings(model, shapes))

    def findings(self, model: onnx.ModelProto, shapes: Mapping[str, Shape]) -> Sequence[Finding]:
        """Returns the findings about a model; () if it cannot be judged. `shapes` maps inputs that were computed
        tensors of the original to their shapes at the first Run."""
        try:
            return findings_of(model, replace(self.question, inputs=with_shapes(self.question.inputs, shapes)))
        except InputError:
            return ()


class Reducer:
    """Makes a model smaller while a check says that it is wrong. `checks` counts the models that were checked."""

    def __init__(
        self, model: onnx.ModelProto, question: Question, check: Check, progress: Callable[[str], None]
    ) -> None:
        """Makes the Reducer of a model; `check` must reject the model. `progress` is called with a line of text for
        each step."""
        self.model = model
        self.shapes: dict[str, Shape] = {}
        """The shapes at the first Run of inputs that were values of the model before."""
        self.smallest = model
        """Of the models that were checked and are wrong, the one with the fewest nodes."""
        self._least = node_count(model)
        self.checks = 0
        self._question = question
        self._check = check
        self._progress = progress
        self._known: dict[bytes, bool] = {}

    def is_wrong(self, model: onnx.ModelProto | None) -> bool:
        """Returns the check's answer about a model, which is asked once for equal models; False for None."""
        if model is None:
            return False
        try:
            key = hashlib.sha256(model.SerializeToString(deterministic=True)).digest()
        except (EncodeError, ValueError):
            return False
        if key not in self._known:
            self.checks += 1
            self._known[key] = self._check(model, self.shapes)
            if self._known[key] and (count := node_count(model)) < self._least:
                self.smallest, self._least = model, count
        return self._known[key]

    def reduce(self, place: str | None) -> None:
        """Makes `self.model` as small as possible while the check says that it is wrong. `place` is the path of the
        node at fault, if that is known."""
        self._take(self._inlined())
        self._take(constants_as_initializers(self.model))
        for round_ in range(_ROUNDS):
            before = self.model
            self._remove_nodes(place if round_ == 0 else None)
            if self._open_graphs():
                self._remove_nodes(None)  # what follows needs a check for each node
            self._reduce_graphs()
            self._pass_by()
            self._hide_outputs()
            if self.model is before:
                break
        self._tidy()

    def _take(self, candidate: onnx.ModelProto | None) -> bool:
        """Replaces `self.model` by the candidate if the check says that it is still wrong, and returns True if so;
        False for None."""
        taken = self.is_wrong(candidate)
        if taken and candidate is not None:
            self.model = candidate
        return taken

    def _inlined(self) -> onnx.ModelProto | None:
        if not self.model.functions:
            return None
        try:
            return inlined(self.model, Budget(self.model.ByteSize()))[0]
        except InputError:
            return None

    def _cut(self) -> Cut:
        question = replace(self._question, inputs=with_shapes(self._question.inputs, self.shapes))
        return Cut(self.model, question)

    def _remove_nodes(self, place: str | None) -> None:
        cut = self._cut()
        count = len(cut.nodes)
        if not count:
            return

        def made(nodes: Sequence[int]) -> onnx.ModelProto | None:
            for shown in (False, True):
                candidate = cut.of_nodes(nodes, shown=shown)
                if candidate is not None:
                    self.shapes |= cut.run_shapes(candidate)
                if self.is_wrong(candidate):
                    return candidate
            return None

        def is_wrong(nodes: Sequence[int]) -> bool:
            return made(nodes) is not None

        nodes: Sequence[int] = range(count)
        if not is_wrong(nodes):
            return  # the model as a whole matters, so cutting cannot help
        start = None if place is None else cut.holding(place)
        if start is not None:
            nodes = first_part(cut.around(start), is_wrong, _FIRST_PART)
        else:
            nodes = first_part(nodes, is_wrong)
            nodes = last_part(nodes, is_wrong)
        self._progress(f"wrong with {len(nodes)} of {count} node{'s' * (count != 1)}, after {self.checks} checks")
        nodes = without_needless(nodes, is_wrong)
        smallest = made(nodes)
        assert smallest is not None
        if len(smallest.graph.node) > len(nodes):
            guessed = cut.of_nodes(nodes, guessed=True)
            smallest = guessed if guessed is not None and self.is_wrong(guessed) else smallest
        if len(smallest.graph.node) < count:
            self.model = smallest
            self._progress(f"{len(nodes)} node{'s' * (len(nodes) != 1)} left, after {self.checks} checks")

    def _open_graphs(self) -> bool:
        """Replaces the model by a graph inside one of its nodes, as long as that is still wrong; returns True if it was
        replaced."""
        before = self.model
        while any(has_graphs(node) for node in self.model.graph.node):
            if not any(self._take(alone(self.model, scope)) for scope in inner_scopes(self._cut().scope)):
                break
        return self.model is not before

    def _reduce_graphs(self) -> None:
        """Removes nodes from the graphs inside nodes, and outputs of Ifs, as long as the model is still wrong."""
        for number in range(sum(1 for _ in inner_scopes(self._cut().scope))):
            self._remove_inner(number)
        self._drop_outputs()

    def _remove_inner(self, number: int) -> None:
        """Removes nodes from graph `number` of those inside nodes, as long as the model is still wrong."""
        scope = next((each for i, each in enumerate(inner_scopes(self._cut().scope)) if i == number), None)
        if scope is None:
            return
        model, nodes = self.model, range(len(scope.graph.node))

        def made(kept: Sequence[int]) -> onnx.ModelProto | None:
            return with_nodes(model, scope, kept)

        if not nodes:
            return
        if self._take_smaller(made(())):
            return
        if self.is_wrong(made(nodes)):
            self._take_smaller(made(without_needless(nodes, lambda kept: self.is_wrong(made(kept)))))

    def _take_smaller(self, candidate: onnx.ModelProto | None) -> bool:
        if candidate is None or node_count(candidate) >= node_count(self.model):
            return False
        return self._take(candidate)

    def _drop_outputs(self) -> None:
        """Removes outputs of If nodes that nothing reads, as long as the model is still wrong."""

        def candidates() -> Iterator[onnx.ModelProto]:
            for place in range(len(self.model.graph.node)):
                yield from without_output(self.model, (), place)

        while any(self._take(candidate) for candidate in list(candidates())):
            pass

    def _pass_by(self) -> None:
        """Removes nodes whose readers can read one of the node's inputs, of the same type and shape, instead, as long
        as the model is still wrong."""
        place = 0
        while place < len(self.model.graph.node):
            scope = self._cut().scope
            node = self.model.graph.node[place]
            given = {value.name for value in self.model.graph.output}
            taken = False
            if node.output and node.output[0] and not given & set(node.output):
                wanted = scope.type_of(node.output[0])
                for name in filter(None, node.input):
                    if wanted[0] is not None and scope.type_of(name) == wanted:
                        taken = self._take(_without(self.model, place, name))
                        if taken:
                            break
            place += not taken

    def _hide_outputs(self) -> None:
        """Removes, one by one, outputs of the model that its nodes read, or whose node computes another tensor that is
        needed, while the model is still wrong; one output remains."""
        for name in [value.name for value in self.model.graph.output]:
            graph = self.model.graph
            needed = {each for node in graph.node for each in reads(node)} | {
                value.name for value in graph.output if value.name != name
            }
            beside = next((node.output for node in graph.node if name in node.output), ())
            if len(graph.output) < 2 or needed.isdisjoint(beside):
                continue
            made = onnx.ModelProto()
            made.CopyFrom(self.model)
            refill(made.graph.output, [value for value in graph.output if value.name != name])
            self._take(made)

    def _tidy(self) -> None:
        """Removes declarations of inner values, which inference finds again, if the model is still wrong."""
        if self.model.graph.value_info:
            made = onnx.ModelProto()
            made.CopyFrom(self.model)
            del made.graph.value_info[:]
            self._take(made)


def _without(model: onnx.ModelProto, place: int, instead: str) -> onnx.ModelProto:
    """Returns a copy of the model without node `place`; its readers read the value `instead` in place of its first
    output."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    name = made.graph.node[place].output[0]
    del made.graph.node[place]
    for node in made.graph.node:
        _read_instead(node, name, instead)
    refill(made.graph.value_info, [value for value in made.graph.value_info if value.name != name])
    remove_unread(made)
    return made


def _read_instead(node: onnx.NodeProto, name: str, instead: str) -> None:
    refill(node.input, [instead if each == name else each for each in node.input])
    for attribute in node.attribute:
        for graph in ([attribute.g] if attribute.HasField("g") else []) + list(attribute.graphs):
            for inner in graph.node:
                _read_instead(inner, name, instead)
