"""What a rule is, and what its check looks at."""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, TypeVar

from dmlsplit.descriptors import BufferTensorDesc, OperatorDesc, TensorDesc
from dmlsplit.diagnostics import Basis, Diagnostic, Severity, Value
from dmlsplit.enums import BindingType, FeatureLevel, HResult, OperatorType, TensorDataType
from dmlsplit.feature_levels import JOIN_PAGE, SPLIT_PAGE, TensorSupport
from dmlsplit.layout import ELEMENT_BITS
from dmlsplit.releases import Release, SizeArithmetic

if TYPE_CHECKING:
    from dmlsplit.rules._facts import NodeFacts

LEARN: Final = "https://learn.microsoft.com/windows"


class Source(NamedTuple):
    """Where a rule comes from: a page, or what was observed."""

    title: str
    url: str = ""

    def __str__(self) -> str:
        return self.url or self.title


SPLIT_DESC: Final = Source("DML_SPLIT_OPERATOR_DESC", SPLIT_PAGE)
JOIN_DESC: Final = Source("DML_JOIN_OPERATOR_DESC", JOIN_PAGE)
BUFFER_DESC: Final = Source("DML_BUFFER_TENSOR_DESC", f"{LEARN}/win32/api/directml/ns-directml-dml_buffer_tensor_desc")
TENSOR_DESC: Final = Source("DML_TENSOR_DESC", f"{LEARN}/win32/api/directml/ns-directml-dml_tensor_desc")
TENSOR_TYPE: Final = Source("DML_TENSOR_TYPE", f"{LEARN}/win32/api/directml/ne-directml-dml_tensor_type")
DATA_TYPE: Final = Source("DML_TENSOR_DATA_TYPE", f"{LEARN}/win32/api/directml/ne-directml-dml_tensor_data_type")
TENSOR_FLAGS: Final = Source("DML_TENSOR_FLAGS", f"{LEARN}/win32/api/directml/ne-directml-dml_tensor_flags")
CONSTANTS: Final = Source("DirectML constants", f"{LEARN}/ai/directml/directml-constants")
STRIDES_PAGE: Final = Source("Using strides to express padding and memory layout", f"{LEARN}/ai/directml/dml-strides")
HEADER: Final = Source("DirectML.h, annotations of the struct members")
OBSERVED: Final = Source("observed: CreateOperator of 14 DirectML builds, feature levels 2_1 to 6_4")
OBSERVED_DEVICE: Final = Source(
    "observed: 13 DirectML builds, feature levels 2_1 to 6_4, from device creation to a recorded dispatch"
)
BINDING: Final = Source("Binding in DirectML", f"{LEARN}/ai/directml/dml-binding")
BUFFER_BINDING: Final = Source("DML_BUFFER_BINDING", f"{LEARN}/win32/api/directml/ns-directml-dml_buffer_binding")
BIND_INPUTS: Final = Source(
    "IDMLBindingTable::BindInputs", f"{LEARN}/win32/api/directml/nf-directml-idmlbindingtable-bindinputs"
)
BIND_OUTPUTS: Final = Source(
    "IDMLBindingTable::BindOutputs", f"{LEARN}/win32/api/directml/nf-directml-idmlbindingtable-bindoutputs"
)
OURS: Final = Source("dmlsplit's own judgement")


class Member(enum.IntFlag):
    """Members of a descriptor that a check relies on or finds faulty."""

    NONE = 0
    DESC = 1
    DATA_TYPE = 2
    FLAGS = 4
    DIMENSION_COUNT = 8
    SIZES = 16
    ELEMENT_COUNT = 32
    STRIDES = 64
    LAYOUT = 128
    TOTAL = 256
    ALIGNMENT = 512
    ARRAY = 1024
    AXIS = 2048
    # Not faults, but nothing to look at: a check that reads one of these is skipped where it is absent.
    STRIDES_GIVEN = 4096
    OUTPUT = 8192
    # Set where a release crashes on the way to it: the fault is reported as that.
    UNREAD = 16384


DIMENSIONS: Final = Member.DESC | Member.DIMENSION_COUNT | Member.SIZES
EXTENT: Final = DIMENSIONS | Member.DATA_TYPE | Member.STRIDES


class Finding(NamedTuple):
    """What a check found: the member within the view's path, the fault, the limit, the value."""

    member: str
    message: str
    expected: Value = None
    actual: Value = None


@dataclass(frozen=True, slots=True, eq=False)
class Judge:
    """Whose verdict is asked for: a feature level's, or one release's.

    `builds` is the observed support that the documented one is compared with: the release's own, or that of the builds
    of the level.
    """

    name: str
    feature_level: FeatureLevel
    support: Mapping[OperatorType, tuple[TensorSupport, ...]]
    builds: Mapping[OperatorType, tuple[TensorSupport, ...]]
    release: Release | None = None
    arithmetic: SizeArithmetic = SizeArithmetic.EXACT
    total_counts_whole_elements: bool = False
    invalid_argument: int = HResult.E_INVALIDARG
    lacking: Mapping[int, str] = field(default_factory=dict)
    """Data types that the device's Direct3D capabilities take away, and what each one needs."""


class BufferRange(NamedTuple):
    """A DML_BUFFER_BINDING, all bytes; `buffer_size` None: the Buffer is a null pointer."""

    buffer_size: int | None
    offset: int
    size_in_bytes: int

    @property
    def is_empty(self) -> bool:
        return self.buffer_size is None and self.offset == 0 and self.size_in_bytes == 0

    @property
    def wrapped_end(self) -> int:
        """Where the range ends for a build, which computes it in 64 bits."""
        return (self.offset + self.size_in_bytes) % 2**64


class Wanted(enum.Enum):
    """What belongs to a place of a binding table."""

    BUFFER = "a buffer"
    ARRAY = "an array of buffers"
    NOTHING = "nothing"
    NO_CALL = "not even nothing"
    """Whatever is bound there, nothing included, removes the device."""


class Place(NamedTuple):
    """A place of a binding table, and what it needs."""

    tensor: str
    """In words: a tensor's path, "the persistent resource", ..."""
    wanted: Wanted
    size: int = 0
    """Bytes that a buffer has at least; `size_name` says what they are."""
    size_name: str = "TotalTensorSizeInBytes"
    alignment: int = 1
    """Bytes of which a buffer's offset is a multiple."""
    why: str = ""
    """Of NOTHING: why nothing belongs there."""
    entries: tuple[Place, ...] = ()
    """Of an array."""
    misreads_array: bool = False
    """A BUFFER_ARRAY of no entries passes for nothing here, and is then read as a DML_BUFFER_BINDING."""


class BindingView(NamedTuple):
    """One DML_BINDING_DESC under judgement, or an entry of an array."""

    path: str
    place: Place
    type: int
    is_null: bool
    """Desc is a null pointer."""
    ranges: tuple[BufferRange, ...]
    """One for BUFFER, those of the array for BUFFER_ARRAY."""

    @property
    def range(self) -> BufferRange | None:
        """The range where a buffer belongs and one is bound."""
        if self.place.wanted is not Wanted.BUFFER or self.type != BindingType.BUFFER or self.is_null:
            return None
        return None if self.ranges[0].buffer_size is None else self.ranges[0]


class TensorView:
    """One tensor of an operator under judgement, with what is derived from it."""

    __slots__ = ("bits", "desc", "failed", "is_output", "judge", "path", "sizes", "strides", "support", "tensor")

    def __init__(
        self, path: str, tensor: TensorDesc | None, is_output: bool, support: TensorSupport, judge: Judge
    ) -> None:
        self.path = path
        self.tensor = tensor
        self.is_output = is_output
        self.support = support
        self.judge = judge
        desc = tensor.desc if tensor is not None else None
        # A check that reads `desc` is skipped where it is null, so the stand-in is never looked at.
        self.desc: BufferTensorDesc = desc if desc is not None else _NO_DESC
        count = self.desc.dimension_count
        sizes, strides = self.desc.sizes or (), self.desc.strides
        self.sizes: tuple[int, ...] = sizes if len(sizes) <= count else sizes[:count]
        self.strides: tuple[int, ...] | None = strides if strides is None or len(strides) <= count else strides[:count]
        self.bits = ELEMENT_BITS.get(self.desc.data_type, 0)
        # Members that a check may not rely on; plain integers, since an IntFlag's operators are slow.
        self.failed = (0 if strides is not None else _NO_STRIDES) | (0 if is_output else _NO_OUTPUT)

    def implied_size(self, arithmetic: SizeArithmetic) -> int:
        """Bytes, rounded up to 4; needs EXTENT."""
        return arithmetic.implied_size(self.bits, self.sizes, self.strides)

    @property
    def exact_implied_size(self) -> int:
        return self.implied_size(SizeArithmetic.EXACT)


_NO_DESC = BufferTensorDesc(0, None)
_NO_STRIDES: Final = int(Member.STRIDES_GIVEN)
_NO_OUTPUT: Final = int(Member.OUTPUT)


class OperatorView:
    """A Split or Join under judgement: the whole tensor, its parts, the axis."""

    __slots__ = ("array", "array_name", "axis", "count", "count_name", "failed", "judge", "parts", "type", "whole")

    def __init__(
        self,
        type: OperatorType,
        whole: TensorView,
        parts: Sequence[TensorView],
        array: Sequence[TensorDesc | None] | None,
        count: int,
        axis: int,
        judge: Judge,
    ) -> None:
        self.type = type
        self.whole = whole
        self.parts = parts
        """The parts that the count covers."""
        self.array = array
        self.array_name, self.count_name = PART_MEMBERS[type]
        self.count = count
        self.axis = axis
        self.judge = judge
        self.failed = 0


PART_MEMBERS: Final[Mapping[OperatorType, tuple[str, str]]] = {
    OperatorType.SPLIT: ("OutputTensors", "OutputCount"),
    OperatorType.JOIN: ("InputTensors", "InputCount"),
}


View = TypeVar("View")
Findings: TypeAlias = Collection[Finding] | None
Check: TypeAlias = Callable[[View], Findings]

_ID = re.compile(r"(input|tensor|split|join|legalize|binding|device|node|onnx|openvino)/[a-z0-9]+(-[a-z0-9]+)*")


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule: identity, meaning, sources, check, and a pair of descriptors on the two sides of its boundary.

    `reads`: members whose faults make the check meaningless (it is skipped then); `marks`: members that count as
    faulty once the rule has found something; for a framework's node both are of `Fact`, and the pair is of facts. A
    rule of scope input/ or node/ has no check: the front ends report it. The scopes
    binding/ and device/ are the emulated device's; their examples are the last lines of programs (rules/_programs.py).
    """

    id: str
    severity: Severity
    basis: Basis
    summary: str
    explanation: str
    sources: tuple[Source, ...]
    reads: enum.IntFlag = Member.NONE
    marks: enum.IntFlag = Member.NONE
    bad: Callable[[], OperatorDesc] | None = None
    good: Callable[[], OperatorDesc] | None = None
    feature_level: str | None = None
    release: str | None = None
    """By whom `bad` and `good` are to be judged; the highest level where both are None."""
    limit: bool = False
    """Refused for what a level or build takes, not for a contradiction: another descriptor may do the same work."""
    undefined: bool = False
    """What a build does is undefined, since it reads past an array: a release has no HRESULT to predict."""
    bad_steps: str = ""
    good_steps: str = ""
    outcome: str = ""
    """Of the scopes binding/ and device/: what comes of a violation."""
    tensor_check: Check[TensorView] | None = field(default=None, repr=False)
    operator_check: Check[OperatorView] | None = field(default=None, repr=False)
    binding_check: Check[BindingView] | None = field(default=None, repr=False)
    node_check: Check[Any] | None = field(default=None, repr=False)
    runtimes: str = ""
    """What runtimes were seen to do where a framework's rule finds a fault; reported as node/runtime-differs."""
    bad_node: NodeFacts | None = None
    good_node: NodeFacts | None = None

    def __post_init__(self) -> None:
        if not _ID.fullmatch(self.id):
            raise ValueError(f"malformed rule id {self.id!r}")
        if not self.sources:
            raise ValueError(f"rule {self.id} has no source")

    @property
    def reference(self) -> str:
        return str(self.sources[0])

    @property
    def judge_of_examples(self) -> dict[str, str]:
        """Keyword of `validate` by which `bad` and `good` are told apart; by level where nothing else is stated."""
        if self.release is not None:
            return {"directml": self.release}
        return {"feature_level": self.feature_level or "6_4"}

    def diagnostic(
        self,
        path: str,
        message: str,
        *,
        expected: Value = None,
        actual: Value = None,
        line: int | None = None,
        column: int | None = None,
    ) -> Diagnostic:
        """A diagnostic of this rule."""
        return Diagnostic(
            self.id, self.severity, self.basis, path, message, expected, actual, self.reference, line, column
        )


def tensor_rules(rules: list[Rule]) -> Callable[..., Callable[[Check[TensorView]], Check[TensorView]]]:
    """A decorator that turns a check of tensors into a rule, documented and an error unless said otherwise."""

    def rule(
        id: str, summary: str, explanation: str, **fields: Any
    ) -> Callable[[Check[TensorView]], Check[TensorView]]:
        def add(check: Check[TensorView]) -> Check[TensorView]:
            settings = {"severity": Severity.ERROR, "basis": Basis.DOCUMENTED, **fields}
            rules.append(Rule(id, summary=summary, explanation=explanation, tensor_check=check, **settings))
            return check

        return add

    return rule


def type_name(data_type: int) -> str:
    """FLOAT32 for 1; the number itself where the enum has no name for it."""
    return data_type.name if isinstance(data_type, TensorDataType) else str(int(data_type))


def number_range(numbers: tuple[int, ...]) -> str:
    """1-8 for (1, ..., 8); every set of dimension counts is a range."""
    return str(numbers[0]) if len(numbers) == 1 else f"{numbers[0]}-{numbers[-1]}"
