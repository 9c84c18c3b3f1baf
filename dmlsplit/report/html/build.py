"""Builds the page's content from judged operators; equal operators are computed and shown once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import accumulate, chain
from typing import Final

from dmlsplit.checking.columns import LEVELS, RELEASES, Columns, Compatibility, runtime_columns
from dmlsplit.checking.compatibility import compatibility
from dmlsplit.checking.results import Answer, Judged, NodeSummary, Note
from dmlsplit.descriptors.descs import BufferTensorDesc, JoinOperatorDesc, OperatorDesc, SplitOperatorDesc, TensorDesc
from dmlsplit.descriptors.diagnostics import Diagnostic, Report, Severity
from dmlsplit.descriptors.geometry import members_of
from dmlsplit.formats.json import dumps
from dmlsplit.graphs import GraphDesc
from dmlsplit.legalize import Legalization
from dmlsplit.onnxruntime.reports import RuntimeReport
from dmlsplit.report import placement, svg
from dmlsplit.report.html.view import Detail, File, Page, Rewritten, Row, TargetVerdict, TensorRow, Tensors
from dmlsplit.report.node_table import NodeCells
from dmlsplit.report.svg.subject import numbers_text, subject, type_text
from dmlsplit.report.text import diagnostic_parts, place, plain
from dmlsplit.rules import RULES
from dmlsplit.system.printable import printable
from dmlsplit.targets.target import RUNS, Target, Use

PREFIX: Final = "pic-"
"""The prefix of the ids of all pictures' patterns."""
NOTHING: Final = "-"
PICTURES_SHOWN: Final = 300
TENSORS_SHOWN: Final = 9
OPERATORS_SHOWN: Final = 3
"""The most operators of a rewriting that are shown."""
DIAGNOSTICS_SHOWN: Final = 50
RULES_SHOWN: Final = 3
"""The most rules shown for one refusal of an operator by a level or release."""
JSON_SHOWN: Final = 4000
"""The most characters shown of a rewritten operator's JSON; `dmlsplit legalize` prints longer ones."""
_NUMBERS_SHOWN: Final = 8


def page_columns(targets: Iterable[Target]) -> tuple[Columns, ...]:
    """Returns the groups of columns of a page's matrix: levels, releases and, if there are any among the targets,
    versions of ONNX Runtime."""
    runtimes = runtime_columns(targets)
    return (LEVELS, RELEASES, runtimes) if runtimes.columns else (LEVELS, RELEASES)


class Builder:
    """Collects operators into a Page; `runtimes` are the targets that are versions of ONNX Runtime."""

    def __init__(self, runtimes: Sequence[Target] = ()) -> None:
        self.page = Page(asked=page_columns(runtimes))
        self._files: dict[str | None, File] = {}
        self._known: dict[object, Detail] = {}
        self._pictures = 0
        self._used: set[str] = set()

    def note(self, note: Note) -> None:
        """Adds the lines of a note to its file."""
        notes = self._file(note.report.file).notes
        notes += ["".join(text for text, _ in parts) for parts in placement.lines(note.placements)]
        for session in note.placements:
            self._judge(session.runtime.judged_by)
        if note.placements or note.report.errors:
            self.page.severities.update(d.severity for d in note.report.diagnostics)
            notes += [plain(diagnostic_parts(d, None)) for d in note.report.diagnostics]
        else:
            notes += [d.message for d in note.report.diagnostics]

    def add(self, answers: Sequence[Answer]) -> None:
        """Adds one operator, with the answers of several targets about it, to the table of its file; operators that are
        equal share one detailed view."""
        reports = [answer.report for answer in answers]
        first = answers[0]
        descriptor, node = (first.descriptor, first.node) if isinstance(first, Judged) else (None, None)
        graph = first.graph if isinstance(first, Judged) else None
        file = self._file(first.report.file)
        for answer in answers:
            report = answer.report
            self.page.verdicts[answer.verdict] += 1
            self.page.severities.update(d.severity for d in report.diagnostics)
            self._judge(report.judged_by)
        diagnostics = _distinct([d for report in reports for d in report.diagnostics])
        # Equal except for their positions.
        key = (
            descriptor or graph,
            first.report.operator,
            node and node[1:],
            tuple(replace(d, line=None, column=None) for d in diagnostics),
            _graphs(first),
        )
        detail = self._known.get(key)
        if detail is None:
            detail = self._known[key] = self._detail(first, descriptor or graph, node, diagnostics)
            self.page.details.append(detail)
        row = self._row(answers, descriptor, node, detail, diagnostics)
        file.rows.append(row)
        file.of_nodes = max(file.of_nodes, first.of_nodes if isinstance(first, Judged) else 0)
        detail.occurrences.append(row)

    def _judge(self, name: str) -> None:
        if name not in self.page.judges:
            self.page.judges.append(name)

    def _file(self, name: str | None) -> File:
        file = self._files.get(name)
        if file is None:
            file = self._files[name] = File(printable(name or "operators", None))
            self.page.files.append(file)
        return file

    def finish(self) -> Page:
        """Returns the page of all added operators."""
        self.page.rules = [rule for id, rule in RULES.items() if id in self._used]
        taken = [d for d in self.page.details if any(cell.use in RUNS for cell in d.cells)]
        self.page.left_out = self.page.count - sum(len(d.occurrences) for d in taken)
        if taken:
            starts = [0, *accumulate(len(asked.columns) for asked in self.page.asked)]
            self.page.common = [
                _common(asked, [[cell.use for cell in d.cells[start : start + len(asked.columns)]] for d in taken])
                for asked, start in zip(self.page.asked, starts, strict=False)
            ]
        return self.page

    def _row(
        self,
        answers: Sequence[Answer],
        desc: OperatorDesc | None,
        node: NodeSummary | None,
        detail: Detail,
        diagnostics: Sequence[Diagnostic],
    ) -> Row:
        first = answers[0]
        report, name = first.report, first.name or ""
        whole = axis = lengths = level = NOTHING
        rank = len(LEVELS.columns)
        if desc is not None:
            seen = subject(desc, report)
            whole = " ".join(filter(None, [type_text(seen.whole), _numbers(seen.whole.desc)]))
            axis = str(desc.axis)
            lengths = _listed(["?" if n is None else str(n) for n in seen.lengths])
            by_level = detail.cells[:rank]
            rank = next((i for i, cell in enumerate(by_level) if cell.use is Use.AS_IT_IS), rank)
            level = LEVELS.columns[rank].label if rank < len(LEVELS.columns) else "none"
        if isinstance(first, Judged) and first.graph is not None:
            whole = f"{len(first.graph.inputs):,} inputs, {len(first.graph.nodes):,} nodes"
        if node is not None:
            # The framework's view, which may be incomplete for a descriptor, or count different elements.
            cells = NodeCells.of(node)
            name, whole, axis, lengths = cells.path, cells.whole, cells.axis, cells.lengths
            level = cells.level if desc is None else level
        severities = Counter(d.severity for d in diagnostics)
        return Row(
            report.index,
            printable(name, 120),
            place(report.file, first.position),
            detail.kind,
            whole,
            axis,
            lengths,
            [TargetVerdict(a.verdict, a.report.judged_by, _code(a.report)) for a in answers],
            level,
            rank,
            severities[Severity.ERROR],
            severities[Severity.WARNING],
            detail,
        )

    def _detail(
        self,
        answer: Answer,
        desc: OperatorDesc | GraphDesc | None,
        node: NodeSummary | None,
        diagnostics: Sequence[Diagnostic],
    ) -> Detail:
        report = answer.report
        self._used.update(d.rule for d in diagnostics)
        located = [
            (d, "" if d.line is None or d.column is None else place(report.file, (d.line, d.column)))
            for d in diagnostics[:DIAGNOSTICS_SHOWN]
        ]
        detail = Detail(
            len(self.page.details),
            node.operator if node is not None else _kind(report.operator),
            report.operator or "not an operator that is judged",
            located,
            len(diagnostics) - len(located),
        )
        columns = answer.columns if isinstance(answer, Judged) else ()
        if desc is not None and not columns:
            columns = tuple([compatibility(desc, asked) for asked in self.page.asked])
        for asked, found in zip(self.page.asked, columns if any(columns) else (), strict=False):
            # A version of ONNX Runtime may have an answer even if too little is known for levels and releases.
            unknown = [(label, Use.UNKNOWN, ("too little is known of the node",)) for label in asked.labels]
            detail.add(asked, [(each.column.label, each.use, _lines(each)) for each in found] or unknown)
        if not isinstance(desc, (SplitOperatorDesc, JoinOperatorDesc)):
            return detail
        detail.tensors = _tensors(desc)
        # A node's report is about the node; the picture marks members of its descriptor.
        answers = list(chain.from_iterable(columns))
        own = (a.report for a in answers if report.judged_by in a.column.speaks_for)
        detail.picture = self._picture(desc, next(own, report))
        chosen = _chosen(report, answers)
        if chosen is not None and chosen.legalization is not None:
            of_each = (_targets(chosen, found, asked) for asked, found in zip(self.page.asked, columns, strict=True))
            target = next(filter(None, of_each), "")
            detail.rewritten = self._rewritten(desc, chosen.legalization, target)
        return detail

    def _picture(self, desc: OperatorDesc, report: Report) -> str | None:
        self._pictures += 1
        return svg.fragment(desc, report, PREFIX) if self._pictures <= PICTURES_SHOWN else None

    def _rewritten(self, desc: OperatorDesc, legalization: Legalization, target: str) -> Rewritten:
        operators = []
        for operator in legalization.operators[:OPERATORS_SHOWN]:
            report = replace(legalization.report, diagnostics=())
            text = dumps(operator)
            operators.append(
                (
                    members_of(operator).kind.c_name,
                    _tensors(operator, desc),
                    self._picture(operator, report),
                    text if len(text) <= JSON_SHOWN else None,
                )
            )
        return Rewritten(target, legalization.steps, operators, len(legalization.operators) - len(operators))


def _graphs(answer: Answer) -> object:
    """Returns a key that differs for nodes with equal descriptors whose graphs have different outcomes."""
    columns = answer.columns if isinstance(answer, Judged) else ()
    return tuple([(each.column.label, each.use, _lines(each)) for found in columns for each in found])


def _kind(operator: str | None) -> str:
    """Returns an operator's name for display: "Split" for "DML_OPERATOR_SPLIT", "Graph" for "DML_GRAPH"."""
    return (operator or NOTHING).removeprefix("DML_").removeprefix("OPERATOR_").capitalize()


def _common(asked: Columns, outcomes: Sequence[Sequence[Use]]) -> tuple[str, str, str]:
    by_label = list(zip(asked.labels, zip(*outcomes, strict=True), strict=True))

    def takers(*uses: Use) -> str:
        for said, others in (
            ("", ()),
            ("not known", (Use.UNKNOWN,)),
            ("in part on the CPU", (Use.UNKNOWN, Use.ON_CPU)),
        ):
            taking = [label for label, found in by_label if {*uses, *others}.issuperset(found)]
            if taking:
                return said or asked.spans(taking)
        return "none"

    return f"{asked.noun}s", takers(Use.AS_IT_IS), takers(*RUNS)


def _distinct(diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Returns the diagnostics in order, without duplicates."""
    return list(dict.fromkeys(diagnostics))


def _code(report: Report) -> str:
    if isinstance(report, RuntimeReport) and report.answer is not None:
        return str(report.answer.outcome)
    code = report.hresult
    return "" if code is None else "S_OK" if code == 0 else f"0x{code:08X}"


def _listed(texts: Sequence[str]) -> str:
    more = f", … {len(texts) - _NUMBERS_SHOWN:,} more" if len(texts) > _NUMBERS_SHOWN else ""
    return ", ".join(texts[:_NUMBERS_SHOWN]) + more if texts else "none"


def _numbers(desc: BufferTensorDesc | None) -> str:
    return "null" if desc is None else numbers_text(desc.sizes, _NUMBERS_SHOWN)


def _tensors(desc: OperatorDesc, original: OperatorDesc | None = None) -> Tensors:
    """Returns the table rows of an operator's first tensors, and the number of those left out. Cells that differ from
    the tensor of the same name in `original` are marked."""
    named = _named(desc)
    before = dict(_named(original)) if original is not None else {}
    rows = []
    for path, tensor in named[:TENSORS_SHOWN]:
        cells = _members(tensor)
        old = _members(before[path]) if path in before else cells
        changed = frozenset(i for i, (a, b) in enumerate(zip(cells, old, strict=True)) if a != b)
        rows.append(TensorRow(path, cells, changed))
    return Tensors(rows, len(named) - len(rows), str(desc.axis))


def _named(desc: OperatorDesc) -> list[tuple[str, TensorDesc | None]]:
    """Returns (path, tensor) pairs of all tensors in the descriptor, inputs first, including those beyond the count."""
    members = members_of(desc)
    roles = members.roles
    parts = [(f"{roles.parts}[{i}]", tensor) for i, tensor in enumerate(members.array or ())]
    return roles.in_order((roles.whole, members.whole), parts)


def _members(tensor: TensorDesc | None) -> tuple[str, ...]:
    desc = tensor.desc if tensor is not None else None
    if desc is None:
        return ("null", "", "", "")
    data_type = desc.data_type
    strides = "packed" if desc.strides is None else numbers_text(desc.strides, _NUMBERS_SHOWN)
    total = desc.total_tensor_size_in_bytes
    return (
        getattr(data_type, "name", str(int(data_type))),
        numbers_text(desc.sizes, _NUMBERS_SHOWN),
        strides,
        f"{total:,}" if total is not None else "above 2^64",
    )


def _lines(answer: Compatibility) -> tuple[str, ...]:
    """Returns the reasons for an answer as lines of text, shortened; at most RULES_SHOWN rules."""
    if answer.said and not answer.report.errors:
        return (answer.said,)
    errors = Counter(d.rule for d in answer.report.errors)
    firsts = {d.rule: d for d in reversed(answer.report.errors)}
    lines = []
    for rule, count in list(errors.items())[:RULES_SHOWN]:
        more = f", and {count - 1:,} more like it" if count > 1 else ""
        lines.append(f"{_sentence(firsts[rule])} [{rule}]{more}")
    if len(errors) > RULES_SHOWN:
        lines.append(f"… {len(errors) - RULES_SHOWN} more rules")
    if answer.legalization is None:
        notes = [d for d in answer.report.diagnostics if d.severity is not Severity.ERROR]
        lines += [f"{d.severity}: {_sentence(d)}" for d in notes[:RULES_SHOWN]]
    elif answer.legalization.ok:
        lines += [f"rewritten: {step}" for step in answer.legalization.steps]
    else:
        # The rewriting may be for another target; its name would be wrong for targets that share the reason.
        name = f" for {answer.legalization.report.judged_by}"
        reasons = [d.message for d in answer.legalization.report.errors if d.rule.startswith("legalize/")]
        lines += [reason.replace(name, "", 1) for reason in reasons]
    return tuple(printable(line, 400) for line in lines)


def _sentence(diagnostic: Diagnostic) -> str:
    return f"{diagnostic.path} {diagnostic.message}" if diagnostic.path else diagnostic.message


def _chosen(report: Report, found: Sequence[Compatibility]) -> Compatibility | None:
    """Returns the answer whose rewriting is shown: that of the report's own target, or else that of the first column
    with a rewriting; None if no column has one."""
    helped = [answer for answer in found if answer.use is Use.REWRITTEN]
    asked = [answer for answer in helped if report.judged_by in answer.column.speaks_for]
    return next(iter(asked + helped), None)


def _targets(chosen: Compatibility, found: Sequence[Compatibility], asked: Columns) -> str:
    """Returns, as text, the levels or releases whose rewriting equals that of `chosen`; "" if the column of `chosen` is
    not among them."""
    assert chosen.legalization is not None
    wanted = chosen.legalization.operators
    helped = [a for a in found if a.legalization is not None and a.legalization.ok]
    labels = [a.column.label for a in helped if a.legalization and a.legalization.operators == wanted]
    return asked.named(labels) if chosen.column.label in labels else ""
