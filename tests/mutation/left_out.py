"""Which changes are not counted: what only decides how fast a copy is, by rules (SPEED); what no test can tell from the
original, change by change (EXPLAINED); and lines that only tests compile."""

from __future__ import annotations

import fnmatch
import itertools
import re

from places import Mutation  # beside this file

PREFETCH = re.compile(r"\bDMS_(PREFETCH|FETCH|CLAIM)(_\w+)?\(")
SPEED = (
    ("csrc/dms_costs.c", ".", "which of the kernels that can is taken"),
    ("csrc/dms_tuning.h", ".", "tuned numbers"),
    ("csrc/dms_measure.c", ".", "what the machine is measured by"),
    ("csrc/dms_threads.c", r"\byield\(\)|DMS_THREAD_YIELDS", "how often a caller yields before it sleeps"),
    ("csrc/dms_threads.c", r"DMS_THREAD_LEAST", "from how many bytes on threads share a run"),
    ("csrc/dms_kernels.inc", r"@\d+\)\)?$", "costs of kernels"),
    ("csrc/*", PREFETCH.pattern, "what is asked for early"),
    ("csrc/*", r"^\s*DMS_(ASSERT|COUNT_STEPS|COUNT_RUN)\(", "what only tests count, or check"),
    ("csrc/dms_kernel.h", r"\bahead\b|dms_ahead|dms_lines_ahead", "what is asked for early"),
    ("csrc/kernels/*", r"\bahead\b|dms_ahead|dms_lines_ahead", "what is asked for early"),
    ("csrc/kernels/stretch_template.h", r"\bpages = |\bis_source = ", "what is asked for early"),
    ("csrc/kernels/transpose.c", r"tile->(fetched|claimed) = ", "what is asked for early"),
    (
        "csrc/kernels/transpose.c",
        r"\b(together|low|crowded|many|stacked|high|power|share_sets)\b",
        "the shape of tiles that are stored through the caches",
    ),
    ("csrc/kernels/transpose.c", r"is_short = |@!?is_short", "how a streamed matrix with short rows is stored"),
    ("csrc/dms_transpose.h", r"DMS_STACK = @", "how many squares are transposed at once"),
    ("csrc/kernels/transpose_template.h", r"!\(masked @&&", "which squares are transposed directly, not by masks"),
    ("csrc/kernels/transpose_template.h", r"\bfew\b", "which squares are moved element by element"),
    ("csrc/kernels/rows_template.h", r"\bis_long\b|\bsize >= call\b", "which loop, or memcpy, copies a piece"),
    (
        "csrc/kernels/*",
        r"if \((streamed|regime == DMS_STREAMED)\)\n\s*stream\(",
        "whether a line is stored past the caches",
    ),
    ("csrc/kernels/rows_template.h", r"done = (@2|2 \* done @<=)", "how much of a fill is copied at once"),
    ("csrc/kernels/rows_template.h", r"size < DMS_SHORTEST_STREAM", "whether pieces are stored past the caches"),
    (
        "csrc/kernels/reverse_template.h",
        r"dms_is_streamed|\bfollow = ",
        "whether rows are stored past the caches",
    ),
    ("csrc/kernels/strided.c", r"DMS_STRIDED_BLOCK|\bshares = ", "the steps of a block"),
)
"""Files, what their statements have in common, and what such a statement decides: the time that a copy takes. A loop or
a condition is read with what it is for, so that one which only prefetches is listed by that; @ stands
where the change begins. Each of the ways that a statement of a kernel chooses from copies the same bytes."""

EXPLAINED = {
    (
        "csrc/dms_plan.c",
        "dms_require(dms_confirm_space(plan, g, &trace));",
        "dms_require(dms_confirm_space(plan, g, &trace))",
        "",
    ): ("it ends the process where a plan is wrong, and none is; tests/c/test_fold.c has what it refuses"),
    ("csrc/kernels/rows_template.h", "static const dms_loop once = {1, 0, 0};", "0", "(0 + 1)"): (
        "nothing follows the only step of a loop"
    ),
    ("csrc/kernels/transpose.c", "continue;", "continue", ""): "what is left is the loop's empty body",
    ("csrc/kernels/lines_template.h", "store(w->bytes, end < DMS_LINE ? line : waiting);", "<", "<="): (
        "of a line that is just full nothing waits"
    ),
    (
        "csrc/dms_fold.c",
        "return;                     /* a second one would have been merged with the first */",
        "return",
        "",
    ): "two contiguous dimensions would have been merged before",
    ("csrc/dms_overlap.c", "if (!nonzero && low < 0)", "0", "(0 + 1)"): "low is a whole number, and 0 becomes 0",
    (
        "csrc/kernels/transpose_template.h",
        "return s->columns % lane == 0 && !(masked && s->columns > FEW_LANES * lane);",
        "return s->columns % lane == 0 && !(masked && s->columns > FEW_LANES * lane)",
        "return 0",
    ): "a square that is not transposed directly is moved by masks or staged: the same bytes, later",
    ("csrc/kernels/channels_template.h", "enum { WIDEST = LANES == 1 ? 4 : 8 };", "8", "(8 + 1)"): (
        "elements of pixels have 1, 2, 4, 8 or 16 bytes"
    ),
    ("csrc/kernels/channels_template.h", "equal_tables *t = dms_allocate(1, sizeof *t);", "1", "(1 + 1)"): (
        "the second table is not read"
    ),
    (
        "csrc/kernels/channels_avx512vbmi.h",
        "return size <= before ? 0 : size - before < DMS_LINE ? size - before : DMS_LINE;",
        "<=",
        "<",
    ): "where both are equal, their difference is the 0 that would be returned",
    (
        "csrc/kernels/transpose.c",
        "matrices m = {&tile, from, to, {NULL, 0, 0}, {NULL, 0, 0}, around, around_count, 0, 0};",
        "0",
        "(0 + 1)",
    ): "each is set before it is read",
    (
        "csrc/kernels/rows_template.h",
        "for (; end - to >= VECTOR; end -= VECTOR, from -= VECTOR)",
        ">=",
        ">",
    ): "the vector that is left is the first one, which is stored behind the loop",
    (
        "csrc/dms_cpu.c",
        'dms_text_add(&text, "%s%s", text.length > 0 ? " " : "", isas[i].name);',
        "0",
        "(0 + 1)",
    ): "no name has one letter",
    ("csrc/dms_geometry.c", "*(span < 0 ? &below : &above) += dms_abs_i64(span);", "<", "<="): "a span of 0 adds 0",
    (
        "csrc/dms_slices.c",
        "return;                                         /* all is one box, which the loop would find */",
        "return",
        "",
    ): "the loop copies the same bytes again",
    (
        "dmlsplit/rules/total_size.py",
        "if implied > UINT64_MAX and (t.target.release is None or t.desc.total_tensor_size_in_bytes is None):",
        ">",
        ">=",
    ): "an implied size is a multiple of 4, which 2^64 - 1 is not",
    (
        "dmlsplit/rules/operator.py",
        "if part.sizes[:axis] == before and part.sizes[axis + 1 :] == after:",
        "+",
        "-",
    ): "of a part that is not passed over the loop that follows finds no size that differs, either",
    ("dmlsplit/rules/operator.py", "continue", "continue", "pass"): (
        "of a part that has the whole's sizes off the axis, the loop that follows finds none that differs"
    ),
    ("dmlsplit/rules/onnx/split_facts.py", "if self._uneven and (self.axis or 0) < 0:", "0", "(0 + 1)"): (
        "an axis that is not given is not negative, as 0 or as 1"
    ),
    ("dmlsplit/rules/_any_view.py", "found |= dict(zip(names, tensors, strict=True))", "True", "False"): (
        "they were found to be as many as each other on the line before"
    ),
}
"""File, line, what was there and what became of it -> why no test can tell the two apart."""

HEADER = re.compile(r"\s*(for|if|while|else)\b[^;]*(;[^;]*;[^;]*)?$")
"""A line that says how often, or whether, the statement below it is run."""


def statement_at(text: str, number: int) -> str:
    """The line of this number, without comments; of a loop or a condition up to the statement that it is for, or with a
    block that only prefetches."""
    lines: list[str] = []
    rest = iter(text.splitlines()[number - 1 :])
    for line in rest:
        lines.append(re.sub(r"/\*.*?\*/", "", line).rstrip())
        if lines[-1].endswith("{"):
            block = list(itertools.takewhile(lambda line: line.strip() != "}", rest))
            return "\n".join([*lines, *block] if all(map(PREFETCH.search, block)) else lines)
        if not HEADER.match(lines[-1]):
            break
    return "\n".join(lines)


def is_for_tests(text: str, number: int) -> bool:
    """Whether a line is compiled for tests only."""
    inside: list[bool] = []
    for line in text.splitlines()[:number]:
        if re.match(r"#\s*if", line):
            inside.append(re.match(r"#\s*ifdef DMS_TESTING", line) is not None)
        elif re.match(r"#\s*el", line):
            inside[-1] = False
        elif re.match(r"#\s*endif", line):
            inside.pop()
    return any(inside)


def speed_alone(mutation: Mutation, text: str) -> str | None:
    """What the changed statement decides, where SPEED lists it."""
    statement, column = statement_at(text, mutation.line), mutation.begin - text.rfind("\n", 0, mutation.begin) - 1
    changed = f"{statement[:column]}@{statement[column:]}"
    return next(
        (
            what
            for path, pattern, what in SPEED
            if fnmatch.fnmatch(mutation.path, path)
            and re.search(pattern, changed if "@" in pattern else statement, re.MULTILINE)
        ),
        None,
    )


def explanation(mutation: Mutation, text: str) -> str | None:
    """Why no test can tell a change from the original, where EXPLAINED says so."""
    line = text.splitlines()[mutation.line - 1].strip()
    return EXPLAINED.get((mutation.path, line, mutation.old, mutation.new))
