"""C functions as formulas: their source, parsed and run for all values at once.

A variable holds a few alternatives, each with the condition under which it is the value; a branch is run where it can
be taken, under its condition. What C leaves undefined ends the run with an error: a pointer followed that may be null,
an index outside its array, a signed overflow, a division by 0. What this does not know of C does so, too.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pycparser import c_ast, c_parser

from tests.proofs.symbols import Formula, Number, World, both, either, no

HEADERS: Mapping[str, str] = {
    "stdint.h": "#define UINT32_MAX 4294967295U\n#define UINT64_MAX 18446744073709551615ULL\n"
    "#define INT32_MAX 2147483647\n#define INT64_MAX 9223372036854775807LL\n#define UINT64_C(n) n##ULL\n",
    "stdbool.h": "#define bool _Bool\n#define true 1\n#define false 0\n",
    "stddef.h": "#define NULL ((void *)0)\n#define offsetof(type, member) 0\n",
    "string.h": "",
    "stdarg.h": "",
    "stdlib.h": "",
}
"""The C library's, as far as the sources take something from it that is lifted."""
TYPEDEFS = "".join(
    f"typedef {base} {name}_t;"
    for name, base in {
        **{f"uint{n}": f"unsigned {base}" for n, base in ((8, "char"), (16, "short"), (32, "int"), (64, "long long"))},
        **{f"int{n}": f"signed {base}" for n, base in ((8, "char"), (16, "short"), (32, "int"), (64, "long long"))},
        "size": "unsigned long long",
        "uintptr": "unsigned long long",
    }.items()
)

POINTER, VOID = "pointer", "void"
RANGES: Mapping[str, tuple[int, int]] = {
    "_Bool": (0, 1),
    "unsigned char": (0, 2**8 - 1),
    "int": (-(2**31), 2**31 - 1),
    "unsigned int": (0, 2**32 - 1),
    "signed long long": (-(2**63), 2**63 - 1),
    "unsigned long long": (0, 2**64 - 1),
}
RANKS = list(RANGES)


class Undefined(Exception):
    """The C code may do what C leaves undefined."""


class NotLifted(Exception):
    """The C code has a form that is not lifted: the proof ends, and guesses nothing."""


class Bits:
    """A set of flags, each with the condition under which it is there."""

    def __init__(self, flags: Mapping[int, Formula]) -> None:
        self.flags = {bit: formula for bit, formula in flags.items() if formula is not False}

    @classmethod
    def of(cls, value: Any) -> Bits:
        return value if isinstance(value, Bits) else cls({1 << n: True for n in range(32) if value >> n & 1})

    def has(self, bit: int) -> Formula:
        return self.flags.get(bit, False)

    def __or__(self, other: Any) -> Bits:
        added = Bits.of(other)
        return Bits({bit: either(self.has(bit), added.has(bit)) for bit in {*self.flags, *added.flags}})

    def __and__(self, other: Any) -> Bits:
        kept = Bits.of(other)
        return Bits({bit: both(self.has(bit), kept.has(bit)) for bit in {*self.flags} & {*kept.flags}})

    def under(self, condition: Formula) -> Bits:
        return Bits({bit: both(condition, formula) for bit, formula in self.flags.items()})

    @property
    def any(self) -> Formula:
        return either(*self.flags.values())


class Struct(NamedTuple):
    name: str
    members: dict[str, Cell]


class Pointer(NamedTuple):
    """To an entry of an array, or to a variable, which is an array of one."""

    array: Sequence[Cell]
    index: int


Alternatives = list[tuple[Formula, Any]]
"""Values, each with its condition; under the guard of the place in the code just one is true. A value is an int, a
Number, Bits, a Struct, a Pointer, None for a null pointer, a str, or the formula of a comparison, which is 1 or 0."""


class Cell:
    """A variable of a C type."""

    def __init__(self, type: Any, value: Any = 0) -> None:
        self.type = type
        self.alternatives: Alternatives = [(True, value)]


class Value(NamedTuple):
    alternatives: Alternatives
    type: Any


class Frame:
    def __init__(self, variables: dict[str, Cell]) -> None:
        self.variables = variables
        self.returned: list[tuple[Formula, Value | None]] = []
        self.left: list[list[Formula]] = []
        """The conditions of the breaks of each loop around the place."""
        self.passed: list[list[Formula]] = []
        """Those of its continues."""


def preprocessed(source: Path, includes: Iterable[Path], folder: Path, *options: str) -> str:
    """The source as the compiler's preprocessor leaves it, with the headers above."""
    for name, text in HEADERS.items():
        (folder / name).write_text(text)
    command = ["cc", "-E", "-P", "-nostdinc", "-D__attribute__(x)=", *options]
    paths = [word for path in (folder, *includes) for word in ("-I", str(path))]
    return subprocess.run([*command, *paths, str(source)], check=True, capture_output=True, text=True).stdout


def can_preprocess() -> bool:
    return shutil.which("cc") is not None


class Program:
    """Parsed sources: their functions, structs and enumerators."""

    def __init__(self, texts: Iterable[str]) -> None:
        self.functions: dict[str, Any] = {}
        self.structs: dict[str, Any] = {}
        self.typedefs: dict[str, Any] = {}
        self.enumerators: dict[str, int] = {}
        self.tables: dict[str, Any] = {}
        for text in texts:
            for declared in c_parser.CParser().parse(TYPEDEFS + text).ext:
                if isinstance(declared, c_ast.FuncDef):
                    self.functions[declared.decl.name] = declared
                elif isinstance(declared, c_ast.Typedef):
                    self.typedefs[declared.name] = declared.type
                    self._note(declared.type)
                elif isinstance(declared, c_ast.Decl):
                    self._note(declared.type)
                    if isinstance(declared.init, c_ast.InitList):
                        self.tables[declared.name] = declared.init.exprs

    def _note(self, type: Any) -> None:
        while isinstance(type, (c_ast.TypeDecl, c_ast.PtrDecl, c_ast.ArrayDecl)):
            type = type.type
        if isinstance(type, c_ast.Struct) and type.decls:
            self.structs[type.name] = type
        if isinstance(type, c_ast.Enum) and type.values:
            following = 0
            for one in type.values.enumerators:
                following = following if one.value is None else self._constant(one.value)
                self.enumerators[one.name] = following
                following += 1

    def _constant(self, node: Any) -> int:
        if isinstance(node, c_ast.Constant):
            return number_of(node.value)[0]
        if isinstance(node, c_ast.ID):
            return self.enumerators[node.name]
        if isinstance(node, c_ast.BinaryOp) and node.op in ("<<", "|", "+", "*"):
            a, b = self._constant(node.left), self._constant(node.right)
            return {"<<": a << b, "|": a | b, "+": a + b, "*": a * b}[node.op]
        return -1  # of no enumerator that is lifted

    def type_of(self, type: Any) -> Any:
        """One of RANGES, POINTER, VOID, the name of a struct in a tuple, or an array's ("array", type)."""
        if isinstance(type, c_ast.PtrDecl):
            return POINTER
        if isinstance(type, c_ast.ArrayDecl):
            return "array", self.type_of(type.type)
        if isinstance(type, c_ast.Typename):
            return self.type_of(type.type)
        inner = type.type if isinstance(type, c_ast.TypeDecl) else type
        if isinstance(inner, c_ast.Enum):
            return "unsigned int"
        if isinstance(inner, c_ast.Struct):
            self._note(inner)
            return ("struct", inner.name)
        name = " ".join(inner.names)
        if name in self.typedefs:
            return self.type_of(self.typedefs[name])
        return {"signed int": "int", "void": VOID, "unsigned": "unsigned int"}.get(name, name)

    def make(self, name: str, **members: Any) -> Struct:
        """A struct; members that are not given are 0, or null."""
        made = {}
        for declared in self.structs[name].decls:
            type = self.type_of(declared.type)
            empty = self.make(type[1]) if isinstance(type, tuple) else None if type == POINTER else 0
            made[declared.name] = Cell(type, members.pop(declared.name, empty))
        assert not members
        return Struct(name, made)


def number_of(text: str) -> tuple[int, str]:
    """The value and the type of a constant."""
    digits = re.sub(r"[uUlL]+$", "", text)
    suffix = text[len(digits) :].lower()
    value = int(digits, 0)
    unsigned = "u" in suffix or (digits.startswith("0x") and value > 2**31 - 1)
    wide = "ll" in suffix or value > (2**32 - 1 if unsigned else 2**31 - 1)
    return value, ("unsigned " if unsigned else "signed " if wide else "") + ("long long" if wide else "int")


Instead = Callable[["Lift", list[Alternatives], Formula], Any]


class Lift:
    """Runs functions of a program. `instead`: what is called in place of functions of these names."""

    def __init__(self, world: World, program: Program, instead: Mapping[str, Instead] = {}) -> None:
        self.world, self.program, self.instead = world, program, instead

    # ---- values

    def kept(self, alternatives: Alternatives, guard: Formula) -> Alternatives:
        """Without those that are impossible here."""
        if len(alternatives) == 1:
            return alternatives
        kept = [(c, v) for c, v in alternatives if self.world.possible(guard, c)]
        if not kept:
            raise AssertionError("a place that is never reached")
        return [(True, kept[0][1])] if len(kept) == 1 else kept

    def one(self, alternatives: Alternatives, guard: Formula) -> Any:
        kept = self.kept(alternatives, guard)
        if len(kept) != 1:
            raise NotLifted(f"one of {[v for _, v in kept]}")
        return kept[0][1]

    def truth(self, alternatives: Alternatives) -> Formula:
        return either(*(both(c, self._is_true(v)) for c, v in alternatives))

    def _is_true(self, value: Any) -> Formula:
        if isinstance(value, Bits):
            return value.any
        if isinstance(value, Number):
            return value.compared(0, lambda a, b: a != b)
        if isinstance(value, (Pointer, str)):
            return True
        if value is None or isinstance(value, (int, bool)):
            return bool(value)
        return value

    def assign(self, cell: Cell, value: Value, guard: Formula, frame_guard: Formula = True) -> None:
        new = self.convert(value, cell.type, guard)
        if isinstance(cell.type, tuple) and cell.type[0] == "struct":
            new = [(c, Struct(v.name, {n: copy_of(m) for n, m in v.members.items()})) for c, v in new]
        cell.alternatives = merged(
            [(both(guard, c), v) for c, v in new] + [(both(no(guard), c), v) for c, v in cell.alternatives]
            if guard is not True
            else new
        )

    def convert(self, value: Value, type: Any, guard: Formula) -> Alternatives:
        if type == "_Bool":
            return [(True, self.truth(self.kept(value.alternatives, guard)))]
        if type not in RANGES:
            return [
                (c, None if type == POINTER and isinstance(v, int) and v == 0 else v) for c, v in value.alternatives
            ]
        return [(c, self._fitted(v, type, both(guard, c))) for c, v in value.alternatives]

    def _fitted(self, value: Any, type: str, guard: Formula) -> Any:
        """The value modulo what an unsigned type holds."""
        if not isinstance(value, (int, Number)) or isinstance(value, bool):
            return value
        low, high = RANGES[type]
        if isinstance(value, int):
            if not low <= value <= high and low < 0:
                raise Undefined(f"{value} in {type}")
            return value if low <= value <= high else value % (high + 1)
        least, most = value.bounds()
        if low <= least and most <= high:
            return value
        outside = either(
            value.compared(low, lambda a, b: a < b),
            value.compared(high, lambda a, b: a > b),
        )
        if not self.world.possible(guard, outside):
            return value
        if low < 0:
            raise Undefined(f"{value} in {type}")
        return value % (high + 1)

    # ---- expressions

    def value(self, node: Any, frame: Frame, guard: Formula) -> Value:
        return getattr(self, f"_of_{type(node).__name__}")(node, frame, guard)

    def _of_Constant(self, node: Any, frame: Frame, guard: Formula) -> Value:
        if node.type == "string":
            return Value([(True, node.value.replace('"', ""))], POINTER)
        value, type = number_of(node.value)
        return Value([(True, value)], type)

    def _of_ID(self, node: Any, frame: Frame, guard: Formula) -> Value:
        if node.name not in frame.variables:
            return Value([(True, self.program.enumerators[node.name])], "unsigned int")
        return self._read(self.cell(node, frame, guard), guard)

    def _read(self, cell: Cell, guard: Formula) -> Value:
        return Value(self.kept(cell.alternatives, guard), cell.type)

    def _of_StructRef(self, node: Any, frame: Frame, guard: Formula) -> Value:
        return self._read(self.cell(node, frame, guard), guard)

    _of_ArrayRef = _of_StructRef

    def cell(self, node: Any, frame: Frame, guard: Formula) -> Cell:
        """The variable that an expression names."""
        if isinstance(node, c_ast.ID):
            return frame.variables[node.name]
        if isinstance(node, c_ast.StructRef):
            if node.type == ".":
                holder = self.cell(node.name, frame, guard)
            else:
                holder = self._target(self.value(node.name, frame, guard), 0, guard)
            return self.one(holder.alternatives, guard).members[node.field.name]
        if isinstance(node, c_ast.ArrayRef):
            index = self.one(self.value(node.subscript, frame, guard).alternatives, guard)
            return self._target(self.value(node.name, frame, guard), index, guard)
        if isinstance(node, c_ast.UnaryOp) and node.op == "*":
            return self._target(self.value(node.expr, frame, guard), 0, guard)
        raise NotLifted(str(node))

    def _target(self, pointer: Value, index: int, guard: Formula) -> Cell:
        found = self.one(pointer.alternatives, guard)
        if found is None:
            raise Undefined("a null pointer is followed")
        at = found.index + index
        if not 0 <= at < len(found.array):
            raise Undefined(f"entry {at} of {len(found.array)}")
        return found.array[at]

    def _of_UnaryOp(self, node: Any, frame: Frame, guard: Formula) -> Value:
        if node.op == "&":
            inner = node.expr
            if isinstance(inner, c_ast.ArrayRef):
                found = self.one(self.value(inner.name, frame, guard).alternatives, guard)
                index = self.one(self.value(inner.subscript, frame, guard).alternatives, guard)
                if found is None or not 0 <= found.index + index < len(found.array):
                    raise Undefined("the address of an entry that is not there")
                return Value([(True, Pointer(found.array, found.index + index))], POINTER)
            return Value([(True, Pointer([self.cell(inner, frame, guard)], 0))], POINTER)
        if node.op == "*":
            return self._read(self.cell(node, frame, guard), guard)
        if node.op in ("++", "--", "p++", "p--"):
            cell = self.cell(node.expr, frame, guard)
            before = self._read(cell, guard)
            after = self._arithmetic(node.op[-1], before, Value([(True, 1)], "int"), guard)
            self.assign(cell, after, guard)
            return before if node.op.startswith("p") else self._read(cell, guard)
        if node.op == "sizeof":
            array = self.cell(node.expr, frame, guard)
            kind, entry = array.type
            assert (kind, entry) == ("array", "unsigned char")
            return Value([(True, len(self.one(array.alternatives, guard).array))], "unsigned long long")
        inner = self.value(node.expr, frame, guard)
        if node.op == "!":
            return Value([(True, no(self.truth(self.kept(inner.alternatives, guard))))], "int")
        if node.op == "-":
            return self._arithmetic("-", Value([(True, 0)], "int"), inner, guard)
        raise NotLifted(node.op)

    def _of_BinaryOp(self, node: Any, frame: Frame, guard: Formula) -> Value:
        left = self.value(node.left, frame, guard)
        if node.op in ("&&", "||"):
            truth = self.truth(left.alternatives)
            further = both(guard, truth if node.op == "&&" else no(truth))
            if not self.world.possible(further):
                return Value([(True, node.op == "||")], "int")
            right = self.truth(self.value(node.right, frame, further).alternatives)
            return Value([(True, both(truth, right) if node.op == "&&" else either(truth, right))], "int")
        right = self.value(node.right, frame, guard)
        if node.op in COMPARISONS:
            return Value([(True, self._compared(node.op, left, right, guard))], "int")
        return self._arithmetic(node.op, left, right, guard)

    def _compared(self, op: str, left: Value, right: Value, guard: Formula) -> Formula:
        if POINTER not in (left.type, right.type):
            type = common(left.type, right.type)
            left = Value(self.convert(Value(split(left.alternatives), left.type), type, guard), type)
            right = Value(self.convert(Value(split(right.alternatives), right.type), type, guard), type)
        return either(
            *(both(c, d, self._compare(op, v, w)) for c, v in left.alternatives for d, w in right.alternatives)
        )

    def _compare(self, op: str, a: Any, b: Any) -> Formula:
        compare = COMPARISONS[op]
        if isinstance(a, Bits) or isinstance(b, Bits):
            assert b == 0, "only whether there is a flag at all"
            return {"==": no(a.any), "!=": a.any}[op]
        if isinstance(a, Number):
            return a.compared(b, compare)
        if isinstance(b, Number):
            return b.compared(a, lambda x, y: compare(y, x))
        if isinstance(a, int) and isinstance(b, int):
            return bool(compare(a, b))
        nulls = [one is None or (isinstance(one, int) and one == 0) for one in (a, b)]
        assert any(nulls), "two pointers are compared"
        return all(nulls) == (op == "==")

    def _arithmetic(self, op: str, left: Value, right: Value, guard: Formula) -> Value:
        type = promoted(left.type) if op in ("<<", ">>") else common(left.type, right.type)
        found = []
        for c, v in split(left.alternatives):
            for d, w in split(right.alternatives):
                here = both(guard, c, d)
                if here is False or (
                    len(left.alternatives) + len(right.alternatives) > 2 and not self.world.possible(here)
                ):
                    continue
                a, b = self._fitted(v, type, here), w if op in ("<<", ">>") else self._fitted(w, type, here)
                found.append((both(c, d), self._fitted(self._computed(op, a, b, here), type, here)))
        return Value(merged(found), type)

    def _computed(self, op: str, a: Any, b: Any, guard: Formula) -> Any:
        if isinstance(a, Bits) or isinstance(b, Bits):
            return Bits.of(a) | b if op == "|" else Bits.of(a) & b
        if op in ("/", "%"):
            if isinstance(b, int) and b == 0:
                raise Undefined("a division by 0")
            if not isinstance(b, int) or b < 0 or (isinstance(a, int) and a < 0):
                raise NotLifted("a division by what is no constant")
            return a // b if op == "/" else a % b
        if op == "-":
            return a - b
        if op == "&" and isinstance(a, int) and isinstance(b, Number):
            a, b = b, a
        return OPERATIONS[op](a, b)

    def _of_Assignment(self, node: Any, frame: Frame, guard: Formula) -> Value:
        value = self.value(node.rvalue, frame, guard)
        cell = self.cell(node.lvalue, frame, guard)
        if node.op != "=":
            value = self._arithmetic(node.op[:-1], self._read(cell, guard), value, guard)
        self.assign(cell, value, guard)
        return value

    def _of_TernaryOp(self, node: Any, frame: Frame, guard: Formula) -> Value:
        truth = self.truth(self.value(node.cond, frame, guard).alternatives)
        found, types = [], []
        for condition, branch in ((truth, node.iftrue), (no(truth), node.iffalse)):
            if self.world.possible(guard, condition):
                value = self.value(branch, frame, both(guard, condition))
                found += [(both(condition, c), v) for c, v in value.alternatives]
                types.append(value.type)
        type = types[0] if len(types) == 1 or POINTER in types or isinstance(types[0], tuple) else common(*types)
        return Value(merged(found), type)

    def _of_Cast(self, node: Any, frame: Frame, guard: Formula) -> Value:
        type = self.program.type_of(node.to_type)
        value = self.value(node.expr, frame, guard)
        return Value(self.convert(value, type, guard), type)

    def _of_FuncCall(self, node: Any, frame: Frame, guard: Formula) -> Value:
        name = node.name.name
        given = [self.value(one, frame, guard) for one in (node.args.exprs if node.args else [])]
        return self.call(name, given, guard)

    def call(self, name: str, given: list[Value], guard: Formula = True) -> Value:
        function = self.program.functions.get(name)
        if name in self.instead:
            found = self.instead[name](self, [value.alternatives for value in given], guard)
            return found if isinstance(found, Value) else Value([(True, found)], "int")
        assert function is not None, name
        names = function.decl.type.args.params
        frame = Frame({})
        for parameter, value in zip(names, given, strict=True):
            cell = frame.variables[parameter.name] = Cell(self.program.type_of(parameter.type))
            cell.alternatives = self.kept(self.convert(value, cell.type, guard), guard)
        type = self.program.type_of(function.decl.type.type)
        rest = self.run(function.body, frame, guard)
        assert type == VOID or rest is False or not self.world.possible(rest), f"{name} ends without a value"
        found = []
        for condition, value in frame.returned:
            if value is not None and type != VOID:
                found += [(both(condition, c), v) for c, v in self.convert(value, type, condition)]
        return Value(merged(found) or [(True, 0)], type)

    # ---- statements: each returns the condition under which what follows it is run

    def run(self, node: Any, frame: Frame, guard: Formula) -> Formula:
        method = getattr(self, f"_run_{type(node).__name__}", None)
        if method is not None:
            return method(node, frame, guard)
        self.value(node, frame, guard)
        return guard

    def _run_Compound(self, node: Any, frame: Frame, guard: Formula) -> Formula:
        outer = dict(frame.variables)
        for item in node.block_items or []:
            if guard is False:
                break
            guard = self.run(item, frame, guard)
        frame.variables = outer
        return guard

    def _run_EmptyStatement(self, node: Any, frame: Frame, guard: Formula) -> Formula:
        return guard

    def _run_DeclList(self, node: Any, frame: Frame, guard: Formula) -> Formula:
        for declared in node.decls:
            self._run_Decl(declared, frame, guard)
        return guard

    def _run_Decl(self, node: Any, frame: Frame, guard: Formula) -> Formula:
        type = self.program.type_of(node.type)
        if isinstance(type, tuple) and type[0] == "array":
            if node.init is None:
                raise NotLifted("an array without values")
            entries = [
                Cell(type[1], self.one(self.value(e, frame, guard).alternatives, guard)) for e in node.init.exprs
            ]
            frame.variables[node.name] = Cell(type, Pointer(entries, 0))
        elif isinstance(type, tuple):
            made = self.program.make(type[1])
            for member, entry in zip(made.members.values(), node.init.exprs, strict=True):
                member.alternatives = self.convert(self.value(entry, frame, guard), member.type, guard)
            frame.variables[node.name] = Cell(type, made)
        else:
            cell = Cell(type, None if type == POINTER else 0)
            if node.init is not None:
                cell.alternatives = self.kept(self.convert(self.value(node.init, frame, guard), type, guard), guard)
            frame.variables[node.name] = cell
        return guard

    def _run_If(self, node: Any, frame: Frame, guard: Formula) -> Formula:
        truth = self.truth(self.value(node.cond, frame, guard).alternatives)
        ends, through = [], True
        for condition, branch in ((truth, node.iftrue), (no(truth), node.iffalse)):
            here = both(guard, condition)
            if not self.world.possible(here):
                continue
            end = here if branch is None else self.run(branch, frame, here)
            through = through and end is here
            ends.append(end)
        return guard if through else either(*ends)

    def _run_For(self, node: Any, frame: Frame, guard: Formula) -> Formula:
        outer = dict(frame.variables)
        if node.init is not None:
            self.run(node.init, frame, guard)
        ended = self._loop(node.cond, node.stmt, node.next, frame, guard)
        frame.variables = outer
        return ended

    def _run_While(self, node: Any, frame: Frame, guard: Formula) -> Formula:
        return self._loop(node.cond, node.stmt, None, frame, guard)

    def _loop(self, condition: Any, body: Any, following: Any, frame: Frame, guard: Formula) -> Formula:
        before, ends, plain = guard, [], True
        frame.left.append([])
        for _ in range(100):
            truth = self.truth(self.value(condition, frame, guard).alternatives)
            ends.append(both(guard, no(truth)))
            here = both(guard, truth)
            if not self.world.possible(here):
                break
            frame.passed.append([])
            end = self.run(body, frame, here)
            passed = frame.passed.pop()
            plain = plain and end is here and not passed
            guard = either(end, *passed)
            if not self.world.possible(guard):
                break
            if following is not None:
                self.value(following, frame, guard)
        else:
            raise NotLifted("a loop of more than 100 rounds")
        left = frame.left.pop()
        return before if plain and not left else either(*ends, *left)

    def _run_Break(self, node: Any, frame: Frame, guard: Formula) -> Formula:
        frame.left[-1].append(guard)
        return False

    def _run_Continue(self, node: Any, frame: Frame, guard: Formula) -> Formula:
        frame.passed[-1].append(guard)
        return False

    def _run_Return(self, node: Any, frame: Frame, guard: Formula) -> Formula:
        frame.returned.append((guard, None if node.expr is None else self.value(node.expr, frame, guard)))
        return False

    def _run_Switch(self, node: Any, frame: Frame, guard: Formula) -> Formula:
        """Of a constant, with a return in each case."""
        value = self.one(self.value(node.cond, frame, guard).alternatives, guard)
        for case in node.stmt.block_items:
            constant = isinstance(case, c_ast.Case) and self.one(
                self.value(case.expr, frame, guard).alternatives, guard
            )
            if isinstance(case, c_ast.Default) or constant == value:
                for statement in case.stmts:
                    guard = self.run(statement, frame, guard)
                assert guard is False
                return guard
        return guard


COMPARISONS: Mapping[str, Callable[[Any, Any], Any]] = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}
OPERATIONS: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": lambda a, b: a + b,
    "*": lambda a, b: a * b,
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "<<": lambda a, b: a << b,
    ">>": lambda a, b: a >> b,
}


def promoted(type: str) -> str:
    return type if RANKS.index(type) >= RANKS.index("int") else "int"


def common(left: str, right: str) -> str:
    """The type in which two are computed: the later in RANKS, which is C's rule for these."""
    return max(promoted(left), promoted(right), key=RANKS.index)


def split(alternatives: Alternatives) -> Alternatives:
    """With 1 and 0 in place of formulas."""
    found: Alternatives = []
    for condition, value in alternatives:
        if isinstance(value, bool):
            found.append((condition, int(value)))
        elif isinstance(value, (int, Number, Bits)):
            found.append((condition, value))
        else:
            found += [(both(condition, value), 1), (both(condition, no(value)), 0)]
    return found


def merged(alternatives: Alternatives) -> Alternatives:
    """Equal values as one; sets of flags as one set."""
    if any(isinstance(v, Bits) for _, v in alternatives):
        whole = Bits({})
        for condition, value in alternatives:
            whole = whole | Bits.of(value).under(condition)
        return [(True, whole)]
    found: dict[Any, tuple[Formula, Any]] = {}
    for condition, value in alternatives:
        key = (
            value.key
            if isinstance(value, Number)
            else value
            if isinstance(value, (int, str, type(None)))
            else id(value)
        )
        key = type(value).__name__, key
        found[key] = (either(found[key][0], condition), value) if key in found else (condition, value)
    kept = [(c, v) for c, v in found.values() if c is not False]
    return [(True, kept[0][1])] if len(kept) == 1 else kept


def copy_of(cell: Cell) -> Cell:
    copied = Cell(cell.type)
    copied.alternatives = cell.alternatives
    return copied
