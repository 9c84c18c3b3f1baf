"""The only module that imports the C extension: plans, and the core's version and profile.

This module can be imported without the extension; using it then raises NativeError.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from dmlsplit.system.errors import NativeError

try:
    from dmlsplit._ffi import ffi, lib

    IMPORT_ERROR: str | None = None
except ImportError as error:  # pragma: no cover - an installation without a compiler
    ffi = lib = None
    IMPORT_ERROR = str(error)

SPLIT: Final = 0
JOIN: Final = 1
DISPATCHER_RANK: Final = 8
"""The most dimensions that an ArrayDispatcher takes."""
HAS_GIL: Final = getattr(sys, "_is_gil_enabled", lambda: True)()
"""True if this interpreter has a GIL. Without one an ArrayDispatcher is not safe: the list of arrays may change while
it is read."""
MAX_RANK: Final = 64
"""DMLSPLIT_MAX_RANK, which is also numpy's limit."""
Layout: TypeAlias = tuple[tuple[int, ...], tuple[int, ...] | None]
"""Sizes in elements, and strides in bytes; None: packed."""


def require() -> None:
    """Raises NativeError if the C extension is missing."""
    if IMPORT_ERROR is not None:
        raise NativeError(f"the C extension of dmlsplit is missing ({IMPORT_ERROR}); reinstall with a C compiler")


class Range(NamedTuple):
    """Bytes touched, relative to a tensor's first element; `end` is exclusive."""

    begin: int
    end: int


class Plan:
    """A planned copy between one whole tensor and its parts along an axis; immutable, and safe to share between
    threads.

    Sizes and lengths count elements, strides are bytes (None: packed); `part_strides` holds rank strides for each part.
    `overlap_allowed` leaves out the search for elements of one written tensor that overlap.
    Raises NativeError if the core refuses the geometry.
    """

    __slots__ = ("_pointer", "direction", "part_count")

    def __init__(
        self,
        direction: int,
        element_size: int,
        sizes: Sequence[int],
        strides: Sequence[int] | None,
        axis: int,
        lengths: Sequence[int],
        part_strides: Sequence[int] | None,
        kernel: str | None = None,
        overlap_allowed: bool = False,
    ) -> None:
        require()
        # The variables keep the cdata objects alive during the call.
        c_sizes = ffi.new("uint64_t[]", sizes)
        c_strides = ffi.NULL if strides is None else ffi.new("int64_t[]", strides)
        c_lengths = ffi.new("uint64_t[]", lengths)
        c_part_strides = ffi.NULL if part_strides is None else ffi.new("int64_t[]", part_strides)
        c_kernel = ffi.NULL if kernel is None else ffi.new("char[]", kernel.encode())
        geometry = ffi.new(
            "dmlsplit_geometry *",
            {
                "struct_size": ffi.sizeof("dmlsplit_geometry"),
                "direction": direction,
                "element_size": element_size,
                "rank": len(sizes),
                "axis": axis,
                "flags": lib.DMLSPLIT_OVERLAP_ALLOWED if overlap_allowed else 0,
                "part_count": len(lengths),
                "sizes": c_sizes,
                "strides": c_strides,
                "lengths": c_lengths,
                "part_strides": c_part_strides,
            },
        )
        pointer = ffi.new("dmlsplit_plan **")
        fault = ffi.new("dmlsplit_fault *")
        status = lib.dms_plan_create(geometry, c_kernel, pointer, fault)
        if status != lib.DMLSPLIT_OK:
            raise _error(status, fault, "parts")
        self._pointer = ffi.gc(pointer[0], lib.dmlsplit_plan_destroy)
        self.direction = direction
        self.part_count = len(lengths)

    @classmethod
    def of(
        cls,
        direction: int,
        element_size: int,
        axis: int,
        whole: Layout,
        parts: Sequence[Layout],
        *,
        overlap_allowed: bool = False,
    ) -> Plan:
        """Returns the plan of a copy between arrays, each given as (sizes, strides in bytes or None if packed); parts
        must be all packed or all strided. `overlap_allowed`: elements of a written array are not checked for overlap.
        Raises NativeError if the core refuses it."""
        sizes, strides = whole
        lengths = [sizes[axis] for sizes, _ in parts]
        given = [stride for _, strides in parts if strides is not None for stride in strides]
        return cls(direction, element_size, sizes, strides, axis, lengths, given or None, None, overlap_allowed)

    @property
    def whole_range(self) -> Range:
        return _range(lib.dmlsplit_plan_whole_range, self._pointer)

    def part_range(self, part: int) -> Range:
        return _range(lib.dmlsplit_plan_part_range, self._pointer, part)

    def ranges_apart(self, whole: Any, parts: Any) -> bool:
        """Returns True if the byte ranges at these addresses are disjoint where a run needs them to be.

        False means that ranges intersect; the elements within them may still share no byte.
        """
        status = lib.dmlsplit_plan_check_ranges(self._pointer, whole, parts, ffi.NULL)
        if status == lib.DMLSPLIT_RANGES_INTERSECT:
            return False
        _check(status)
        return True

    def run(self, whole: Any, parts: Any, threads: int = 1) -> None:
        """Copies between the address `whole` and the vector of addresses `parts` (see pointers), on at most `threads`
        threads. The memory at the addresses is not checked."""
        function, arguments = self.bound_call(whole, parts, threads)
        _check(function(*arguments))

    def bound_call(self, whole: Any, parts: Any, threads: int) -> tuple[Any, tuple[Any, ...]]:
        """Returns the C function that runs the plan and the arguments to call it with, for callers that run the same
        addresses many times."""
        if self.direction == SPLIT:
            return lib.dmlsplit_split_threads, (self._pointer, whole, parts, threads)
        return lib.dmlsplit_join_threads, (self._pointer, parts, whole, threads)

    def slices(self, most: int) -> int:
        """Returns the number of slices, at most `most`, that the plan is worth cutting into for the caller's own
        threads."""
        return int(lib.dmlsplit_plan_slices(self._pointer, most))

    def run_slice(self, whole: Any, parts: Any, index: int, count: int) -> None:
        """Copies slice `index` of `count`; all slices together write what run() writes, and may run concurrently."""
        if self.direction == SPLIT:
            _check(lib.dmlsplit_split_slice(self._pointer, whole, parts, index, count))
        else:
            _check(lib.dmlsplit_join_slice(self._pointer, parts, whole, index, count))

    @property
    def bytes(self) -> int:
        """The number of bytes that a run copies."""
        return int(lib.dmlsplit_plan_bytes(self._pointer))

    def describe(self) -> str:
        """Returns text for people: the loops after folding, the chosen kernels, and why the kernels tried before were
        refused."""
        return _text(lib.dmlsplit_plan_describe, self._pointer)


class ArrayDispatcher:
    """Runs a plan on ndarrays of exactly the expected layout; one call checks and copies.

    `layouts`: sizes and strides (bytes) of the whole, then of the parts, of at most DISPATCHER_RANK dimensions.
    `is_known`: members of the arrays are where array_fields reads them.
    `maker` makes an output of each tuple of `outputs`, its arguments; outputs None: no fresh ones are made.
    """

    __slots__ = ("fresh", "run")

    def __init__(
        self,
        plan: Plan,
        array_type: type,
        dtype: object,
        layouts: Sequence[tuple[tuple[int, ...], tuple[int, ...]]],
        is_known: bool = False,
        maker: Callable[..., object] | None = None,
        outputs: tuple[tuple[object, ...], ...] | None = None,
    ) -> None:
        numbers: dict[tuple[tuple[int, ...], tuple[int, ...]], int] = {}
        layout_of = ffi.new("uint32_t[]", [numbers.setdefault(layout, len(numbers)) for layout in layouts])
        c_layouts = ffi.new("dms_array_layout[]", [{"sizes": sizes, "strides": strides} for sizes, strides in numbers])
        name = sys.intern("dtype")
        spec = ffi.new("dms_array_spec *")
        spec.array_type, spec.dtype, spec.dtype_name = id(array_type), id(dtype), id(name)
        spec.rank, spec.part_count = len(layouts[0][0]), plan.part_count
        spec.split, spec.layouts, spec.layout_of = plan.direction == SPLIT, c_layouts, layout_of
        spec.is_known = is_known
        spec.plan = plan._pointer
        found: list[Callable[..., Any]] = []
        keep = address_of(spec), maker, outputs, spec, c_layouts, layout_of, array_type, dtype, name, plan
        if not lib.dms_add_dispatch(id(found), id(keep)):
            raise MemoryError
        self.run: Callable[..., bool] = found[0]
        """run(whole, parts, threads=1): False, and nothing is copied, where anything has to be looked at closely."""
        self.fresh: Callable[..., Any] | None = found[1] if outputs is not None else None
        """fresh(inputs, threads=1): the fresh outputs of a split, or of a join; None where `run` returns False."""


class ArrayFields(NamedTuple):
    """What the core reads of an ndarray of two dimensions."""

    data: int
    dtype: int
    flags: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]


def array_fields(array: object) -> ArrayFields:
    """Returns the members of an ndarray of two dimensions, read at the offsets of numpy's ABI. With another ABI, the
    values are meaningless."""
    fields = lib.dms_describe_array(id(array))
    return ArrayFields(fields.data, fields.dtype, fields.flags, tuple(fields.sizes), tuple(fields.strides))


def address(number: int) -> Any:
    """Returns a C pointer (char *) to an address."""
    return ffi.cast("char *", number)


def buffer(source: object, writable: bool) -> Any:
    """Returns a C array of char over a contiguous buffer, which it keeps exported. Raises what ffi.from_buffer
    raises."""
    return ffi.from_buffer("char[]", source, writable)


def pointers(items: Sequence[Any]) -> Any:
    """Returns a C array of addresses. It keeps nothing alive: the caller must hold the memory."""
    return ffi.new("void *[]", items)


def bytes_at(number: int, size: int) -> bytes:
    """Returns a copy of `size` bytes at address `number`."""
    return bytes(ffi.buffer(ffi.cast("char *", number), size))


def address_of(pointer: Any) -> int:
    return int(ffi.cast("uintptr_t", pointer))


def version() -> str:
    require()
    return _str(lib.dmlsplit_version())


def cpu_features() -> tuple[str, ...]:
    """Returns the CPU features that kernels use and this machine has. Raises NativeError without the extension."""
    require()
    return tuple(_text(lib.dmlsplit_cpu_features).split())


NEVER: Final = 1 << 62
"""A number of bytes beyond any run."""


class Profile(NamedTuple):
    """The profile of new plans, in bytes that a run reads and writes: dmlsplit_profile of dmlsplit.h."""

    level2: int
    last_level: int
    stream_copies: int
    """Bytes from which copies use non-temporal stores."""
    stream_turns: int
    """Bytes from which transposes use non-temporal stores."""
    claim: int
    """Bytes from which stores, below the non-temporal bounds, are preceded by prefetchw."""
    fetch: str
    """How loads are prefetched: a name of FETCHES."""
    origin: str = "settings"
    """A name of ORIGINS."""
    call: int = 0
    """Bytes from which contiguous pieces are left to the C library; 0: the default."""
    ahead: int = 0
    """Bytes that lines are prefetched ahead; 0: the default."""
    streamed_height: int = 0
    """Squares of the height of transposes' tiles past the caches; 0: the default."""
    cached_height: int = 0
    """The same within the caches."""
    level1: int = 0
    level1_ways: int = 0
    measured: int = 0
    """Members that were measured, by bits of MEMBERS."""
    given: int = 0
    """Members that a variable or the file of DMLSPLIT_PROFILE gives."""
    claim_fills: int = 0
    """Bytes from which fills are preceded by prefetchw; 0: six times level2."""
    gathered: int = 0
    """Bytes of a row that transposes gather before they store them past the caches; 0: the default."""

    def origin_of(self, member: str) -> str:
        """Returns where a member's value comes from: "environment" (variable or file), "measured", "set" (set_profile),
        "CPUID" or "default"."""
        bit = 1 << MEMBERS.index(member)
        if self.given & bit:
            return "environment"
        if self.measured & bit:
            return "measured"
        if self.origin == "settings" and not self.given:
            return "set"
        return "CPUID" if member in MEMBERS[:4] or getattr(self, member) else "default"

    def lines(self) -> list[str]:
        """Returns a line of text for each cache, and for each member with its value and its origin; a member that is 0
        has the value that the core takes by itself."""
        caches = {"level1": self.level1, "level2": self.level2, "last_level": self.last_level}
        lines = [f"{name} {size} bytes (CPUID)" if size else f"{name} not known" for name, size in caches.items()]
        for member in MEMBERS:
            value = getattr(self, member)
            shown = "never" if isinstance(value, int) and value >= NEVER else value
            shown = DEFAULTS[member] if shown == 0 and member in DEFAULTS else shown
            lines.append(f"{member} {shown} ({self.origin_of(member)})")
        return lines

    def __str__(self) -> str:
        starts = {
            "copies past the caches": self.stream_copies,
            "transposes past the caches": self.stream_turns,
            "with cache lines prefetched for writing": self.claim,
        }
        known = ", ".join(f"{how} from {size >> 10} KiB on" for how, size in starts.items() if size < NEVER)
        how = f"{known}; memory is prefetched by {self.fetch}" if known else "kernels store in one way only"
        return f"by {self.origin}: {how}"


FETCHES: Final = ("lines", "pages")
ORIGINS: Final = ("CPUID", "measuring", "settings")
MEMBERS: Final = (
    "stream_copies",
    "stream_turns",
    "claim",
    "fetch",
    "call",
    "ahead",
    "streamed_height",
    "cached_height",
    "claim_fills",
    "gathered",
)
"""Names of dmlsplit_member, in the order of their bits."""
DEFAULTS: Final = {
    "call": 8192,
    "ahead": 16384,
    "streamed_height": 3,
    "cached_height": 8,
    "claim_fills": "from six times level2 on",
    "gathered": 64,
}
"""What 0 stands for: dms_tuning.h."""
PROFILE_VARIABLE: Final = "DMLSPLIT_PROFILE"


def _new_profile() -> Any:
    return ffi.new("dmlsplit_profile *", {"struct_size": ffi.sizeof("dmlsplit_profile")})


def _profile_of(found: Any) -> Profile:
    fields = {name: getattr(found, name) for name in Profile._fields}
    return Profile(**fields)._replace(fetch=FETCHES[found.fetch], origin=ORIGINS[found.origin])


def _c_profile(given: Profile) -> Any:
    names = {"fetch": FETCHES.index(given.fetch), "origin": ORIGINS.index(given.origin)}
    fields = {"struct_size": ffi.sizeof("dmlsplit_profile"), **given._asdict(), **names}
    return ffi.new("dmlsplit_profile *", fields)


def profile() -> Profile:
    require()
    found = _new_profile()
    _check(lib.dmlsplit_get_profile(found))
    return _profile_of(found)


def measured_profile() -> Profile:
    """Returns the profile of the core, after making a plan that is large enough to measure the machine (60 ms the first
    time)."""
    Plan(SPLIT, 1, (16, 1 << 25), None, 0, (8, 8), None)
    return profile()


def measure_profile() -> Profile:
    """Returns the profile that a careful measurement gives, which takes seconds; the core's own profile is not
    changed."""
    require()
    found = _new_profile()
    _check(lib.dmlsplit_measure_profile(found))
    return _profile_of(found)


def format_profile(given: Profile) -> str:
    """Returns a profile as the text of a file that DMLSPLIT_PROFILE can name."""
    require()
    return _text(lib.dmlsplit_format_profile, _c_profile(given))


def parse_profile(text: str) -> Profile:
    """Parses text in the form that `format_profile` returns; members missing from the text have this machine's values.
    Raises ValueError, which names the line, if it is malformed."""
    found, line = _c_profile(profile()), ffi.new("uint32_t *")
    if "\0" in text or lib.dmlsplit_parse_profile(text.encode(), found, line) != lib.DMLSPLIT_OK:
        raise ValueError(f"line {line[0]} is neither a member of a profile with a value nor a comment")
    return _profile_of(found)


def set_profile(new: Profile | None) -> None:
    """Sets the core's profile; None restores the one derived from the machine and the environment."""
    require()
    if new is None:
        _check(lib.dmlsplit_set_profile(ffi.NULL))
        return
    _check(lib.dmlsplit_set_profile(_c_profile(new)))


class Kernel(NamedTuple):
    name: str
    isa: str
    available: bool


def kernels() -> tuple[Kernel, ...]:
    """Returns the kernels compiled in: those that copy all parts at once before those that copy part by part, each the
    cheapest first."""
    require()
    return tuple(
        Kernel(
            _str(lib.dmlsplit_kernel_name(i)), _str(lib.dmlsplit_kernel_isa(i)), bool(lib.dmlsplit_kernel_available(i))
        )
        for i in range(lib.dmlsplit_kernel_count())
    )


def _str(pointer: Any) -> str:
    return str(ffi.string(pointer).decode())


def _text(function: Any, *arguments: Any) -> str:
    length = function(*arguments, ffi.NULL, 0)
    text = ffi.new("char[]", length + 1)
    function(*arguments, text, length + 1)
    return _str(text)


def _range(function: Any, *arguments: Any) -> Range:
    begin, end = ffi.new("int64_t *"), ffi.new("int64_t *")
    _check(function(*arguments, begin, end))
    return Range(begin[0], end[0])


def _error(status: int, fault: Any = None, parts: str = "") -> NativeError:
    message = _str(lib.dmlsplit_status_string(status))
    if fault is not None and fault.part != lib.DMLSPLIT_WHOLE:
        message += f" ({parts}[{fault.part}])"
    return NativeError(message, int(status))


def _check(status: int) -> None:
    if status != lib.DMLSPLIT_OK:
        raise _error(status)
