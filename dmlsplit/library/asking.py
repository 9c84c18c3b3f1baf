"""Asks a DirectML build whether it creates and compiles an operator, or compiles a graph, and why not."""

from __future__ import annotations

import signal
from collections.abc import Iterable, Sequence
from dataclasses import astuple, replace
from typing import Final, TypeAlias

from dmlsplit.descriptors.any_operator import AnyOperatorDesc, MemberError, widened
from dmlsplit.descriptors.descs import OperatorDesc, TensorDesc
from dmlsplit.descriptors.enums import FeatureLevel
from dmlsplit.graphs import GraphDesc
from dmlsplit.graphs.descriptors import GraphNode, described
from dmlsplit.library.catalogue import DIRECTML, LINUX, Build, debug_layer, directml_builds, find_build
from dmlsplit.library.errors import Unavailable
from dmlsplit.library.fetching import is_added, require_added
from dmlsplit.library.harness import harness
from dmlsplit.library.image import image
from dmlsplit.library.process import COMMAND_SECONDS, CRASH, SAID, TIMEOUT, opened
from dmlsplit.system.records import record
from dmlsplit.targets.releases import Release

Question: TypeAlias = AnyOperatorDesc | OperatorDesc | GraphDesc
DirectMLLike: TypeAlias = Build | Release | str | None

SCRATCH_BYTES: Final = 1 << 40
"""The size of the buffer for temporary and persistent resources; it has no memory behind it."""
LAYER_KNOWS: Final = FeatureLevel.FL_5_1
"""The highest level whose operators the debug layer (DirectML 1.9.0) knows."""
_OK: Final = "00000000"
_EXCEPTIONS: Final = {
    "C0000005": "an access violation",
    "C0000094": "a division by zero",
    "C00000FD": "a stack overflow",
    "C0000409": "__fastfail",
}


@record
class LibraryAnswer:
    """A build's answer about one descriptor.

    `hresult` is the result of `call`: the first call that failed, or else the last one that was asked for
    (CreateOperator, CompileOperator, CompileGraph or RecordDispatch). None if the process ended, or did not answer in
    time. `reason` is the debug layer's message about a refusal, or how the process ended; None if nothing is known.
    `compiled`, `temporary_bytes`, `persistent_bytes` and `dispatches` are None if compiling was not asked for or not
    reached. `node` is the index of the graph's node that is not created.
    """

    hresult: int | None
    ended_the_process: bool
    reason: str | None
    compiled: bool | None = None
    temporary_bytes: int | None = None
    persistent_bytes: int | None = None
    dispatches: int | None = None
    build: str = ""
    call: str = "CreateOperator"
    node: int | None = None

    @property
    def accepted(self) -> bool:
        """True if every call succeeded."""
        return self.hresult == 0

    def to_dict(self) -> dict[str, object]:
        """Returns the JSON form of the answer of CreateOperator, or of the call that failed, as a dict."""
        return {
            "build": self.build,
            "accepted": self.accepted,
            "hresult": None if self.hresult is None else f"0x{self.hresult:08X}",
            "call": self.call,
            "node": self.node,
            "ended_the_process": self.ended_the_process,
            "reason": self.reason,
        }


def build_of(directml: DirectMLLike = None) -> Build:
    """Returns the DirectML build with this name or release; for None the newest build on this machine that can be
    asked.

    Raises ValueError for an unknown name and for ONNX Runtime, NotAdded if the build was not fetched, Unavailable if it
    cannot be asked.
    """
    if isinstance(directml, Build):
        build = directml
    elif directml is not None:
        build = find_build(directml.name if isinstance(directml, Release) else directml)
    else:
        build = _newest()
    if build.kind != DIRECTML:
        raise ValueError(f"{build} is ONNX Runtime, which is asked about models")
    require_added(build)
    harness(build.platform)
    return build


def _newest() -> Build:
    """Returns the build with the highest feature level on this machine that can be run; at the same level a Linux build
    is preferred. Raises Unavailable if none can be run, NotAdded if none was fetched."""
    newest_first = [build for build in reversed(directml_builds()) if is_added(build)]
    reason: Unavailable | None = None
    for build in sorted(newest_first, key=lambda build: (-build.feature_level, build.platform is not LINUX)):
        try:
            harness(build.platform)
        except Unavailable as unavailable:  # wine or a compiler is missing
            reason = reason or unavailable
        else:
            return build
    if reason is not None:
        raise reason
    recommended = [build for build in directml_builds() if build.platform is LINUX][-1]
    require_added(recommended)
    return recommended


def ask(desc: Question, directml: DirectMLLike = None, *, compile: bool = False, explain: bool = True) -> LibraryAnswer:
    """Returns a DirectML build's answer to CreateOperator or, for a graph, to CompileGraph.

    `directml` names one of dmlsplit.library.builds(); by default the newest of these is asked. `compile`: also calls
    CompileOperator, and records a dispatch. `explain`: if the build refuses, the debug layer is asked for its reason,
    if it was added ("debug-layer").

    Raises NotAdded if the build was not fetched, Unavailable if it cannot be asked here, ValueError for a descriptor
    that no C struct can hold.
    """
    (answer,) = ask_all([desc], directml, compile=compile, explain=explain)
    return answer


def ask_all(
    descs: Iterable[Question], directml: DirectMLLike = None, *, compile: bool = False, explain: bool = True
) -> list[LibraryAnswer]:
    """Returns the answers to several descriptors, in order, from one process; the other arguments are those of
    `ask`."""
    return ask_prepared([prepared(desc, compile=compile) for desc in descs], build_of(directml), explain=explain)


def prepared(desc: Question, *, compile: bool = False) -> Prepared:
    """Returns the question in a form that can be put to several builds. `compile`: also compile the operator, and
    record a dispatch. Raises ValueError, with a path and a reason, for a descriptor that no C struct can hold."""
    return Prepared(desc, compile)


def ask_prepared(asked: Sequence[Prepared], build: Build, *, explain: bool = True) -> list[LibraryAnswer]:
    """Returns a build's answers to prepared questions, in order, from one process. `explain`: the debug layer is asked
    for the reasons of refusals, if it was added."""
    with opened(build) as library:
        replies = library.replies([each.command for each in asked])
        ended = [i for i, reply in enumerate(replies) if _is_no_answer(reply) and asked[i].compiles]
        creations = library.replies([asked[i].creation for i in ended])
    answers = [each.answer(reply, build.name) for each, reply in zip(asked, replies, strict=True)]
    for i, creation in zip(ended, creations, strict=True):
        if not _is_no_answer(creation):
            answers[i] = replace(answers[i], call=asked[i].compiling)
    if explain:
        _explain(asked, answers, build)
    return answers


def _is_no_answer(reply: str) -> bool:
    return reply == TIMEOUT or reply.startswith(CRASH)


def _explain(asked: Sequence[Prepared], answers: list[LibraryAnswer], build: Build) -> None:
    """Adds reasons, in place, to the answers that are refusals: that the operator is newer than the build's level, or
    otherwise the debug layer's message, if it knows the operators and refuses the same call."""
    refused = []
    for i, answer in enumerate(answers):
        if not answer.hresult:
            continue
        newer = [each for each in asked[i].schemas if each.since > build.feature_level]
        if newer and answer.call == "CreateOperator":
            said = f"{newer[0].c_name} requires feature level {newer[0].since}, but the build has {build.feature_level}"
            answers[i] = replace(answer, reason=said)
        # Builds of the layer's own level may have operators of the next level.
        of_its_level = build.feature_level >= debug_layer().feature_level
        if all(each.since <= LAYER_KNOWS for each in asked[i].schemas) and (of_its_level or not newer):
            refused.append(i)
    if not refused or not is_added(debug_layer()):
        return
    try:
        layer = opened(debug_layer(), {"debug-layer": 1})
    except Unavailable:  # wine is not installed
        return
    with layer:
        replies = layer.replies([asked[i].explanation for i in refused])
    for i, reply in zip(refused, replies, strict=True):
        results, _, message = reply.partition(SAID)
        if message and not _is_no_answer(reply):
            there = asked[i].answer(results, "")
            if there.hresult and (there.call, there.node) == (answers[i].call, answers[i].node):
                answers[i] = replace(answers[i], reason=message)


class Prepared:
    """One question as a command of the harness, and the meaning of its replies."""

    def __init__(self, desc: Question, compile: bool) -> None:
        self._is_graph = isinstance(desc, GraphDesc)
        nodes = [node_desc(node, i) for i, node in enumerate(desc.nodes)] if isinstance(desc, GraphDesc) else [desc]
        self.schemas = [widened(node)[0] for node in nodes]
        self.compiles = compile or self._is_graph
        self.compiling = "CompileGraph" if self._is_graph else "CompileOperator"
        if isinstance(desc, GraphDesc):
            self._steps = [*graph_steps(desc)[:-1], "dispatches"]
        else:
            self._steps = [*_operator_steps(desc), "dispatches"] if compile else [f"operator {image(desc)}"]

    @property
    def command(self) -> str:
        """The question as a command of the harness."""
        return self._words("session", "create")

    @property
    def creation(self) -> str:
        """The part of the question that only creates operators, as a command of the harness."""
        return f"session {' ; '.join(step for step in self._steps if step.startswith('operator'))}"

    @property
    def explanation(self) -> str:
        """The question as a command for the debug layer."""
        return self._words("messages", "explain")

    def _words(self, of_session: str, of_operator: str) -> str:
        if self.compiles:
            return f"{of_session} {' ; '.join(self._steps)}"
        return f"{of_operator}{self._steps[0].removeprefix('operator')}"

    def answer(self, reply: str, build: str) -> LibraryAnswer:
        """Returns the answer that a reply of the harness means; `build` is the name of the build that replied."""
        if reply == TIMEOUT:
            return LibraryAnswer(None, False, f"no answer within {COMMAND_SECONDS} seconds", build=build)
        if reply.startswith(CRASH):
            return LibraryAnswer(None, True, ended_by(reply.removeprefix(CRASH)), build=build)
        results = [(step.split(" ", 1)[0], word) for step, word in zip(self._steps, reply.split(" "), strict=True)]
        for i, word in enumerate([word for step, word in results if step == "operator"]):
            if word != _OK:
                return LibraryAnswer(int(word, 16), False, None, build=build, node=i if self._is_graph else None)
        if not self.compiles:
            return LibraryAnswer(0, False, None, build=build)
        words = dict(results)
        made = words["graph" if self._is_graph else "compile"]
        if made != _OK:
            return LibraryAnswer(int(made, 16), False, None, compiled=False, build=build, call=self.compiling)
        _, temporary, persistent = map(int, words["properties"].split(","))
        memory = LibraryAnswer(0, False, None, True, temporary, persistent, build=build, call=self.compiling)
        if words["run"] != _OK:
            return replace(memory, hresult=int(words["run"], 16), call="RecordDispatch")
        return replace(memory, dispatches=int(words["dispatches"]))


def ended_by(word: str) -> str:
    """Returns how a process ended, as text: by a signal (`word` is its number) or, on Windows, by an exception (its
    code in hexadecimal digits)."""
    if word.isdigit() and len(word) < 4:
        try:
            return f"the process ended by {signal.Signals(int(word)).name}"
        except ValueError:
            return f"the process ended by signal {word}"
    name = _EXCEPTIONS.get(word)
    return f"the process ended by {f'{name} (0x{word})' if name else f'exception 0x{word}'}"


def _operator_steps(desc: AnyOperatorDesc | OperatorDesc) -> list[str]:
    """Returns the harness's steps that create and compile an operator and record a dispatch on buffers as large as its
    tensors."""
    schema, members = widened(desc)
    sides: dict[str, list[TensorDesc | None]] = {"input": [], "output": [], "attribute": []}
    for member in schema.members:
        value = members[member.name]
        entries = value if isinstance(value, tuple) else (value,)
        sides[member.role] += [each if isinstance(each, TensorDesc) else None for each in entries]
    ends = _Ends(sides["input"], sides["output"])
    first = len(ends.buffers)
    return [
        *ends.buffers,
        f"operator {image(desc)}",
        f"compile {first} 0",
        f"properties {first + 1}",
        ends.run(first + 1),
    ]


class _Ends:
    """The bindings of a dispatch: a buffer for each input and output, in order, and one for temporary and persistent
    memory."""

    def __init__(self, inputs: Sequence[TensorDesc | None], outputs: Sequence[TensorDesc | None]) -> None:
        self._sides = (inputs, outputs)
        sizes = [_size(tensor) or 0 for side in self._sides for tensor in side]
        self.buffers = [f"buffer {size}" for size in (*sizes, SCRATCH_BYTES)]

    def run(self, dispatchable: int) -> str:
        """Returns the harness's step that records a dispatch of object number `dispatchable`. Inputs that DirectML owns
        and absent tensors are not bound."""
        words: list[str] = []
        number = 0
        for side in self._sides:
            words.append(str(len(side)))
            for tensor in side:
                size = _size(tensor)
                owned = side is self._sides[0] and tensor is not None and tensor.desc is not None and tensor.flags & 1
                words.append("none" if size is None or owned else f"{number} 0 {size}")
                number += 1
        return f"run {dispatchable} {' '.join(words)} {number}"


def _size(tensor: TensorDesc | None) -> int | None:
    return tensor.total_tensor_size_in_bytes if tensor is not None and tensor.desc is not None else None


def node_desc(node: GraphNode, index: int) -> AnyOperatorDesc | OperatorDesc:
    """Returns the node's descriptor, which must have all members of its struct. Raises MemberError, with the node's
    index, if only its tensors are known."""
    try:
        widened(node)
    except MemberError as error:
        raise MemberError(("Nodes", index, *error.path), error.said) from None
    return node


def graph_steps(desc: GraphDesc) -> list[str]:
    """Returns the harness's steps (harness/session.h) for a graph: buffers for its inputs and outputs, its operators,
    CompileGraph, a recorded dispatch.

    Buffers are numbered like the inputs and then the outputs; the last one is for temporary memory.
    """
    graph = described(desc)
    ends = _Ends(graph.inputs, graph.outputs)
    first, count = len(ends.buffers), len(desc.nodes)
    operators = [f"operator {image(node_desc(node, i))}" for i, node in enumerate(desc.nodes)]
    numbers = [(first + i,) for i in range(count)]
    edges = [
        [astuple(edge) for edge in side] for side in (desc.input_edges, desc.output_edges, desc.intermediate_edges)
    ]
    lists = " ".join([_list(each) for each in (numbers, *edges)])
    compiling = f"graph {len(desc.inputs)} {len(desc.outputs)} {lists} 0"
    return [*ends.buffers, *operators, compiling, f"properties {first + count}", ends.run(first + count), "recorded"]


def _list(entries: Sequence[tuple[int, ...]]) -> str:
    """Returns the number of entries and their numbers as text, in the form of harness/graph.h."""
    return " ".join(map(str, [len(entries), *(number for entry in entries for number in entry)]))
