"""The table of placements: where versions of ONNX Runtime place a node of each operator, schema version and types.

Observed: each version was run on models of one node (tests/onnxruntime/record_operators.py writes the table). The
answer for a row that was not recorded is unknown; no other row replaces it.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterator, Mapping, Set
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import Any, Final, TypeAlias

import onnx

from dmlsplit.formats.onnx.protobuf import domain_of, text
from dmlsplit.models.schemas import body_version, schema_of, since
from dmlsplit.models.scope import LEARNING
from dmlsplit.onnxruntime.equations import is_computed_by_dml
from dmlsplit.onnxruntime.support_queries import QUERIED, is_supported
from dmlsplit.system.tables import read_table
from dmlsplit.targets.runtime_versions import Runtime, key_of

PLACE: Final = "onnxruntime/operators.json.xz"
NOT_ASKED: Final = "?"


class Cell(enum.StrEnum):
    """The answer of one version about one operator, as a letter of the table."""

    FUSED = "g"
    """On DirectML, in a fused graph if sizes are static; the CPU has no kernel."""
    FUSED_WITH_CPU = "G"
    DML = "d"
    """On DirectML, by a kernel outside any fused graph."""
    DML_WITH_CPU = "D"
    CPU = "C"
    EXPANDED = "x"
    """It has no kernel and is replaced with the other operators of its definition in ONNX; these run on both
    providers."""
    EXPANDED_WITH_COPIES = "z"
    """As EXPANDED, and tensors are copied between the providers."""
    EXPANDED_ON_DML = "X"
    EXPANDED_ON_CPU = "y"
    FOLDED = "o"
    """It becomes a constant, or is removed."""
    FAILS = "f"
    """There is a kernel, but session creation fails."""
    FAILS_WITH_CPU = "F"
    NO_KERNEL = "u"
    """Neither DirectML nor the CPU has a kernel: session creation fails."""
    INVALID = "-"
    """ONNX Runtime rejects the model as invalid."""


ON_DML: Final = frozenset({Cell.FUSED, Cell.FUSED_WITH_CPU, Cell.DML, Cell.DML_WITH_CPU})
FAILING: Final = frozenset({Cell.FAILS, Cell.FAILS_WITH_CPU, Cell.NO_KERNEL})
ON_BOTH: Final = frozenset({Cell.EXPANDED, Cell.EXPANDED_WITH_COPIES})
EXPANDED: Final = ON_BOTH | {Cell.EXPANDED_ON_DML, Cell.EXPANDED_ON_CPU}
"""Operators that are replaced with others; which ones depends on the model's opset."""
_WITHOUT_CPU: Final = EXPANDED | {Cell.FUSED, Cell.DML, Cell.FAILS, Cell.NO_KERNEL}
_OF_DIFFERENT_TYPES: Final = frozenset({"If"})
_ANY_BUT: Final = {("Resize", "extrapolation_value"): 0.0}
"""Maps an operator's attribute to its default if any other value counts as the one that was recorded."""
_NO_TENSOR: Final = "bfloat16"
"""The type that no DirectML tensor can have, and that the CPU's control flow accepts."""
CASTS: Final = ("float", "float16", "int32", "int64")
"""The types to which the tensors of a node without a kernel may be cast, the first one with a kernel first."""
_FUSED: Final = frozenset({Cell.FUSED, Cell.FUSED_WITH_CPU, Cell.EXPANDED_ON_DML})
_BY_EQUATION: Final = "Einsum"
"""The operator whose equation decides where it is placed."""
_CONTRIBUTED: Final = 1
"""The opset of com.microsoft."""


Types: TypeAlias = tuple[str | None, ...]
Attributes: TypeAlias = Mapping[str, object]


@dataclass(frozen=True, eq=False, repr=False)
class Operator:
    """An operator at one schema version, and the answers of one version of ONNX Runtime about it."""

    name: str
    version: int
    row: Mapping[str, Any]
    column: int
    """The index, in the rows, of the version of ONNX Runtime."""

    @property
    def versions(self) -> Collection[Operator]:
        """The schema versions of the operator that the table has for the same version of ONNX Runtime, including this
        one."""
        return _versions(self.name, self.column).values()

    @cached_property
    def usual(self) -> list[str]:
        """The usual type of each type parameter, which it has unless a row of the table says otherwise."""
        return str(self.row["usual"]).split(",") if self.row["parameters"] else []

    def types(self, inputs: Types, outputs: Types) -> Types:
        """Returns the element type of each type parameter of a node, in ONNX's lower-case words, for example "float".

        `inputs` and `outputs` have the type of each tensor, "" for an omitted one, None for an unknown one. A type
        parameter of omitted tensors only gets its usual type; if that combination was not recorded, but all recorded
        combinations with the other types have the same answer, the first of these is returned. The type of a parameter
        is None if the first of its tensors has an unknown type.
        """
        found: list[str | None] = [""] * len(self.row["parameters"])
        for tensors, places in ((inputs, self.row["inputs"]), (outputs, self.row["outputs"])):
            for i, each in enumerate(tensors):
                place = places[min(i, len(places) - 1)] if places else -1
                if place >= 0 and each != "" and not found[place]:
                    found[place] = each
        made = tuple([usual if each == "" else each for each, usual in zip(found, self.usual, strict=True)])
        if "" in found and made not in self._cells:
            rows = [row for row in self._cells if all(own in ("", e) for own, e in zip(found, row, strict=True))]
            return rows[0] if len({self._cells[row] for row in rows}) == 1 else made
        return made

    def all_types(self, inputs: Types, outputs: Types, captured: Types) -> list[Types]:
        """Returns a list of results of `types`: for most operators one, for all tensors of the node; for an If one for
        each tensor that it computes or that its branches read from outside, since each of them matters."""
        if self.name in _OF_DIFFERENT_TYPES:
            return [self.types(inputs, (each,)) for each in dict.fromkeys([*outputs, *captured])]
        return [self.types(inputs, outputs)]

    def ask(self, types: Types, opset: int | None = None) -> Cell | None:
        """Returns where a node of these types is placed in a model of an opset (by default that of the schema version);
        None if that is not known.

        For types that were not recorded together, each type parameter is considered separately. The node is on DirectML
        if every type was recorded there. It is not if one type, with usual types for the other parameters, was recorded
        on the CPU or without a kernel. Its replacement is on DirectML if that was recorded for each type, and on the
        CPU if that was recorded for one. The answer is None if a type was never recorded.
        """
        if types not in self._answers:
            self._answers[types] = self._cells.get(types) or self._concluded(types)
        cell = self._answers[types]
        if cell in EXPANDED and opset not in (None, self.version):
            rows: Mapping[str, Mapping[str, str]] = self.row.get("opsets", {})
            own = rows.get(",".join(map(str, types)))
            cells = [each.get(str(opset), "") for each in ([own] if own is not None else rows.values())]
            return _only({_known(each[self.column : self.column + 1]) for each in cells})
        # for BFLOAT16 the replacing operators have no kernels either
        if cell is Cell.NO_KERNEL and opset is not None and _NO_TENSOR not in types:
            return Cell.EXPANDED if _has_newer_body(self.name, self.version, opset) else cell
        return cell

    @cached_property
    def _answers(self) -> dict[Types, Cell | None]:
        return {}

    def _concluded(self, types: Types) -> Cell | None:
        """Returns the answer for types that were not recorded together, or that are partly None (unknown), if the
        recorded answers imply it; else None."""
        if (of_all := _only(set(self._cells.values()))) is Cell.NO_KERNEL or of_all in ON_BOTH:
            return of_all
        if None in types:
            rows = self._cells.items()
            found = {c for row, c in rows if all(e in (None, own) for e, own in zip(types, row, strict=True))}
            return found.pop() if len(found) == 1 else None
        usual = self.usual
        own = [i for i, each in enumerate(types) if each != usual[i]]
        alone = [self._cells.get((*usual[:i], types[i], *usual[i + 1 :])) for i in own]
        in_float = self._cells.get(tuple(["float" if each == "float16" else each for each in types]))
        if "float16" in {types[i] for i in self.row["inputs"]}:
            # an operator that the CPU computes only in FLOAT is cast if an input is FLOAT16
            if Cell.NO_KERNEL in alone:
                return in_float or Cell.NO_KERNEL
            if in_float is Cell.CPU and not any((i, "float16") in self._seen for i in own):
                return in_float
        if set(alone) == {Cell.EXPANDED_ON_DML}:
            return Cell.EXPANDED_ON_DML
        if EXPANDED.intersection(alone) == {Cell.EXPANDED_ON_CPU}:
            return Cell.EXPANDED_ON_CPU
        for cell in (Cell.NO_KERNEL, Cell.CPU):
            if cell in alone:
                return cell
        seen: list[frozenset[Cell]] = [self._seen.get((i, each), frozenset()) for i, each in enumerate(types)]
        if not all(seen):
            return Cell.CPU if self.name in _OF_DIFFERENT_TYPES and _NO_TENSOR in types else None
        if all(not cells.isdisjoint(ON_DML) for cells in seen):
            return min(cell for cells in seen for cell in cells if cell in ON_DML)
        if any(cells == {Cell.CPU} for cells in seen):
            return Cell.CPU
        return None

    @cached_property
    def _cells(self) -> dict[Types, Cell]:
        """Maps the types of the type parameters, as a tuple, to the answer recorded for them. Types that were not asked
        about, and types with which ONNX Runtime rejects the model, are omitted. What is folded, because its inputs are
        constants, is on the CPU if the operator with computed inputs is."""
        rows = self.row.get("types", {}).items()
        found = {tuple(types.split(",")) if types else (): cells[self.column] for types, cells in rows}
        known = {types: Cell(cell) for types, cell in found.items() if cell not in (NOT_ASKED, Cell.INVALID)}
        _, computed = self.row.get("variants", {}).get("dyn", ("", ""))
        if _known(computed[self.column : self.column + 1]) is not Cell.CPU:
            return known
        return {types: Cell.CPU if cell is Cell.FOLDED else cell for types, cell in known.items()}

    @cached_property
    def _seen(self) -> dict[tuple[int, str | None], frozenset[Cell]]:
        """Maps (index of a type parameter, type) to the set of answers with that type, for any other types."""
        found: dict[tuple[int, str | None], frozenset[Cell]] = {}
        for types, cell in self._cells.items():
            for place in enumerate(types):
                found[place] = found.get(place, frozenset()) | {cell}
        return found

    def without_kernel(self, types: Types) -> tuple[str, ...]:
        """Returns those of these types that DirectML has no kernel for: each one such that it has a kernel with another
        in its place; all known types if no single one is the reason."""
        known = list(dict.fromkeys(filter(None, types)))
        alone = [own for own in known if any(map(self._is_on_dml, self._with_casts(types, own)))]
        return tuple(alone or known)

    def _with_casts(self, types: Types, own: str) -> Iterator[Types]:
        return (tuple([other if each == own else each for each in types]) for other in CASTS if other != own)

    def _is_on_dml(self, types: Types) -> bool:
        cell = self.ask(types)
        return cell is not None and is_on_dml(cell)

    def takes(self, types: Types) -> bool:
        """True if each of these types of the type parameters was recorded, with any types of the others."""
        return all((i, each) in self._seen for i, each in enumerate(types))

    def refuses(self, types: Types) -> bool:
        """True if a model with a node of these types is invalid in this version, and valid in another."""
        cells = str(self.row.get("types", {}).get(",".join(each or "" for each in types), ""))
        return cells[self.column : self.column + 1] == Cell.INVALID and not set(cells) <= {Cell.INVALID, NOT_ASKED}

    def message(self, types: Types) -> str:
        """Returns ONNX Runtime's message for a node of these types that makes session creation fail; "" if none was
        recorded."""
        number = self.row.get("messages", {}).get(",".join(each or "" for each in types))
        return "" if number is None else str(table()["messages"][number])

    def of_variant(self, attributes: Attributes, outputs: int) -> Cell | None:
        """Returns where the node is placed because of its attributes or number of outputs, if it would otherwise be on
        DirectML; None if these make no difference."""
        for each in self.versions:
            for given, count, types, cells in each.row.get("attributes", {}).values():
                cell, base = cells[self.column], each.row["types"].get(types, "")[self.column : self.column + 1]
                if base not in ON_DML or cell in ON_DML or cell in (NOT_ASKED, Cell.INVALID, Cell.FOLDED):
                    continue
                alike = all(self._is_alike(attributes.get(name), name, value) for name, value in given.items())
                if (given or count) and alike and outputs >= count:
                    return Cell(cell)
        return None

    def _is_alike(self, value: object, name: str, recorded: object) -> bool:
        default = _ANY_BUT.get((self.name, name))
        return value == recorded if default is None else value not in (None, default)

    @cached_property
    def is_on_dml_at_all(self) -> bool:
        """True if the operator is on DirectML for at least one type."""
        return any(map(is_on_dml, self._cells.values()))

    def may_be_expanded(self, opset: int) -> bool:
        """True if the operator is replaced with others for at least one type in a model of an opset."""
        cells = set(self._cells.values())
        newer = Cell.NO_KERNEL in cells and _has_newer_body(self.name, self.version, opset)
        return newer or not EXPANDED.isdisjoint(cells)

    @cached_property
    def has_variants(self) -> bool:
        """True if the table also has answers for nodes of this operator with other attributes."""
        return any("attributes" in each.row for each in self.versions)

    @cached_property
    def most_rank(self) -> int | None:
        """The highest rank of tensors with static sizes for which session creation succeeds; None if no rank failed, or
        none was recorded.

        A version older than all recorded ones has the rank of the oldest: observed for all on DirectML.
        """
        rows = {each.version: each.row.get("variants", {}) for each in self.versions}
        asked = [version for version in sorted(rows) if any(each.startswith("rank") for each in rows[version])]
        ranks: dict[int, str] = {}
        for version in [version for version in asked if version <= self.version] or asked[:1]:
            cells = {variant: cells for variant, (_, cells) in rows[version].items() if variant.startswith("rank")}
            ranks |= {int(variant[4:]): each[self.column] for variant, each in cells.items()}
        failing = [rank for rank in sorted(ranks) if ranks[rank] in FAILING]
        return failing[0] - 1 if failing else None


def _only(cells: Set[Cell | None]) -> Cell | None:
    """Returns the cell, if `cells` has exactly one; EXPANDED if all are EXPANDED with or without copies; else None."""
    return next(iter(cells)) if len(cells) == 1 else Cell.EXPANDED if cells and cells <= ON_BOTH else None


def _known(cell: str) -> Cell | None:
    """Returns a letter of the table as a Cell; None if nothing was recorded ("" or NOT_ASKED), or if the recorded model
    was invalid."""
    return None if cell in ("", NOT_ASKED, Cell.INVALID) else Cell(cell)


@cache
def table() -> dict[str, Any]:
    """Returns the content of operators.json.xz."""
    return read_table(Path(__file__).parents[1] / PLACE)


@cache
def recorded_versions() -> tuple[str, ...]:
    """Returns the versions of ONNX Runtime whose answers the table has, the oldest first."""
    return tuple(table()["versions"])


@cache
def column_of(runtime: Runtime) -> int | None:
    """Returns the index, in `recorded_versions()`, of the version whose answers apply to a runtime: the newest one that
    is not newer than the runtime, else the oldest. None for a runtime whose behaviour was never recorded."""
    older = [i for i, version in enumerate(recorded_versions()) if key_of(version) <= runtime.key]
    return (older or [0])[-1] if runtime.observed else None


@lru_cache(maxsize=4096)
def find_operator(domain: str, op_type: str, opset: int, runtime: Runtime) -> Operator | None:
    """Returns the operator, at the schema version in force in opset `opset`, with the answers that apply to `runtime`;
    None if the table lacks the operator or that version, or has no answers for the runtime.

    `opset` is that of the operator's own domain.
    """
    column = column_of(runtime)
    if column is None:
        return None
    known = _versions(f"{domain}.{op_type}" if domain else op_type, column)
    return known.get(max((version for version in known if version <= max(opset, 1)), default=0))


@lru_cache(maxsize=4096)
def reads_attributes(domain: str, op_type: str) -> bool:
    """True if nodes of an operator with different attributes may have different answers."""
    name = f"{domain}.{op_type}" if domain else op_type
    if name == _BY_EQUATION or name in QUERIED:
        return True
    rows = table()["operators"].get(name, {})
    return any("attributes" in row for row in rows.values())


@lru_cache(maxsize=4096)
def _versions(name: str, column: int) -> Mapping[int, Operator]:
    """Maps the schema versions of an operator to its rows, with the answers of one version of ONNX Runtime; {} for an
    unknown operator."""
    rows: Mapping[str, Any] = table()["operators"].get(name, {})
    return {int(version): Operator(name, int(version), row, column) for version, row in rows.items()}


@lru_cache(maxsize=4096)
def _has_newer_body(name: str, version: int, opset: int) -> bool:
    """True if an operator at a schema version, or an operator in its function body, has a body that was written for a
    newer opset than that version, up to `opset`; types are not considered."""
    schema = schema_of(name, opset)
    if schema is None or schema.since_version != version or not schema.has_function:
        return False
    body = body_version(schema, opset)
    if body is None or body > version or body not in schema.function_opset_versions:
        return (body or 0) > version
    function = onnx.FunctionProto.FromString(schema.get_function_with_opset_version(body))
    return any(_has_newer_body(node.op_type, since(node.op_type, opset) or 0, opset) for node in function.node)


@lru_cache(maxsize=4096)
def moves_any_type(op_type: str, opset: int) -> bool:
    """True if the CPU has a kernel of an operator of the default domain for strings: it then moves elements of any
    type."""
    rows: Mapping[str, Any] = table()["operators"].get(op_type, {})
    known = [int(version) for version in rows if int(version) <= max(opset, 1)]
    types = rows[str(max(known))].get("types", {}) if known else {}
    return any("string" in place.split(",") and Cell.CPU in cells for place, cells in types.items())


def operator_of(node: onnx.NodeProto, opset: int, runtime: Runtime, learning: int = 0) -> Operator | None:
    """Returns the table's row for a node in a model of an opset; None if there is none. `learning` is the opset of
    ai.onnx.ml, 0 if it is not known."""
    return operator_named(domain_of(node), text(node.op_type), opset, runtime, learning)


def operator_named(domain: str, op_type: str, opset: int, runtime: Runtime, learning: int = 0) -> Operator | None:
    """Returns the table's row for an operator of a domain ("" for the default one) as `operator_of` does for a node."""
    if domain == LEARNING:
        schema = schema_of(op_type, learning, domain)
        return None if schema is None or schema.deprecated else find_operator(domain, op_type, learning, runtime)
    return find_operator(domain, op_type, opset if domain == "" else _CONTRIBUTED, runtime)


def asked(
    node: onnx.NodeProto,
    inputs: Types,
    outputs: Types,
    opset: int,
    runtime: Runtime,
    captured: Types = (),
    learning: int = 0,
) -> Cell | None:
    """Returns where a node is placed in a session of a runtime, by its operator, types and attributes; None if it is
    not known.

    `inputs` and `outputs` are the types of its tensors in the form of Operator.types, `captured` those of the tensors
    that graphs inside it read from outside; `opset` is the model's, `learning` that of ai.onnx.ml, 0 if unknown.
    """
    operator = operator_of(node, opset, runtime, learning)
    if operator is None:
        return None
    cell = _of_types(operator, inputs, outputs, captured, opset)
    return _of_attributes(operator, node, runtime) or cell if cell in ON_DML else cell


def is_refused(node: onnx.NodeProto, inputs: Types, outputs: Types, opset: int, runtime: Runtime) -> bool:
    """True if DirectML has a kernel for the types of a node, but refuses the node because of its attributes or its
    number of outputs. The parameters are those of `asked`."""
    if not reads_attributes(domain_of(node), node.op_type):
        return False
    operator = operator_of(node, opset, runtime)
    if operator is None or _of_types(operator, inputs, outputs, (), opset) not in ON_DML:
        return False
    return _of_attributes(operator, node, runtime) is not None


def _of_attributes(operator: Operator, node: onnx.NodeProto, runtime: Runtime) -> Cell | None:
    """Returns where a node that would otherwise be on DirectML is placed because of its attributes or its number of
    outputs; None if these make no difference."""
    if operator.name == _BY_EQUATION:
        equation = next((text(each.s) for each in node.attribute if each.name == "equation"), "")
        return None if is_computed_by_dml(equation, runtime.traits.computes_any_equation) else Cell.CPU
    if operator.name in QUERIED and not is_supported(operator.name, node):
        return Cell.CPU
    if operator.has_variants:
        attributes = {text(each.name): _value(each) for each in node.attribute}
        return operator.of_variant(attributes, sum(map(bool, node.output)))
    return None


@lru_cache(maxsize=1 << 14)
def _of_types(operator: Operator, inputs: Types, outputs: Types, captured: Types, opset: int) -> Cell | None:
    """Returns where a node of an operator is placed by its types; None if it is not known. Cached: the nodes of a model
    have few different types."""
    cells = {operator.ask(types, opset) for types in operator.all_types(inputs, outputs, captured)}
    return Cell.CPU if Cell.CPU in cells else None if None in cells else next(iter(cells), None)


def _value(attribute: onnx.AttributeProto) -> object:
    """Returns an attribute's number, text or list of numbers; None for any other kind."""
    kind = attribute.type
    if kind == onnx.AttributeProto.STRING:
        return attribute.s.decode("utf-8", "replace")
    numbers = {onnx.AttributeProto.INT: attribute.i, onnx.AttributeProto.FLOAT: attribute.f}
    return numbers.get(kind, list(attribute.ints) if kind == onnx.AttributeProto.INTS else None)


def is_known(domain: str, op_type: str) -> bool:
    """True if the table contains an operator."""
    return (f"{domain}.{op_type}" if domain else op_type) in table()["operators"]


def operators() -> Collection[str]:
    """Returns the names in the table; a domain other than the default one is a prefix: "com.microsoft.Gelu"."""
    return tuple(table()["operators"])


def is_on_dml(cell: Cell) -> bool:
    """True if DirectML has a kernel, including one that fails session creation."""
    return cell in ON_DML or cell in (Cell.FAILS, Cell.FAILS_WITH_CPU, Cell.EXPANDED_ON_DML)


def is_on_cpu_too(cell: Cell) -> bool:
    """Returns False if the CPU has no kernel; True for any other cell, including FOLDED and INVALID, which do not say
    so."""
    return cell not in _WITHOUT_CPU


def is_fused(cell: Cell) -> bool:
    """True if a node with this answer can be in a fused graph."""
    return cell in _FUSED
