"""Where C and Python can be mutated, and how: small changes of meaning, each of which some test should catch."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator
from typing import Any, NamedTuple


class Mutation(NamedTuple):
    """`old`, at offset `begin` of a file, becomes `new`."""

    path: str
    operator: str
    line: int
    begin: int
    old: str
    new: str

    def __str__(self) -> str:
        def shown(text: str) -> str:
            text = " ".join(text.split())
            return text if len(text) <= 90 else text[:87] + "..."

        return f"{self.path}:{self.line}: {self.operator}: {shown(self.old)} -> {shown(self.new) or 'nothing'}"

    def apply(self, text: str) -> str:
        end = self.begin + len(self.old)
        if text[self.begin : end] != self.old:
            raise ValueError(f"{self.path}:{self.line} has changed")
        return text[: self.begin] + self.new + text[end:]


COMPARISON = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}

# ---- C ----

C_TOKENS = {
    "comparison": COMPARISON,
    "arithmetic": {
        "+": "-",
        "-": "+",
        "+=": "-=",
        "-=": "+=",
        "<<": ">>",
        ">>": "<<",
        "%": "/",
        "++": "--",
        "--": "++",
    },
    "logic": {"&&": "||", "||": "&&"},
}
C_TOKEN = re.compile(
    r"(?P<none>/\*.*?\*/|//[^\n]*|^[ \t]*\#(?:[^\n]*\\\n)*[^\n]*$|\s+)"
    r"|(?P<number>0[xX][0-9a-fA-F]+[uUlL]*|\d+[uUlL]*)"
    r"|(?P<word>[A-Za-z_]\w*)"
    r"|(?P<text>\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*')"
    r"|(?P<sign>->|\+\+|--|<<=|>>=|<=|>=|==|!=|&&|\|\||<<|>>|[-+*/%&|^]=|.)",
    re.DOTALL | re.MULTILINE,
)
ASSIGNMENTS = {"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>=", "++", "--"}
ROWS_OF = "DMS_KERNEL"
"""A macro whose arguments are a row of a table."""


class Token(NamedTuple):
    kind: str
    text: str
    begin: int


def c_mutations(path: str, source: str) -> Iterator[Mutation]:
    tokens = [
        Token(found.lastgroup or "", found[0], found.start())
        for found in C_TOKEN.finditer(source)
        if found.lastgroup != "none"
    ]

    def made(operator: str, begin: int, old: str, new: str) -> Mutation:
        return Mutation(path, operator, source.count("\n", 0, begin) + 1, begin, old, new)

    for before, token in zip([Token("", "", 0), *tokens], tokens, strict=False):
        is_operand = before.kind in ("number", "word") and before.text not in ("return", "case")
        is_binary = is_operand or before.text in (")", "]")
        for operator, changes in C_TOKENS.items():
            if token.kind == "sign" and token.text in changes and (is_binary or token.text not in "+-"):
                yield made(operator, token.begin, token.text, changes[token.text])
        if token.kind == "number":
            yield made("constant", token.begin, token.text, f"({token.text} + 1)")
        if token.text in ("true", "false"):
            yield made("constant", token.begin, token.text, "false" if token.text == "true" else "true")
        if token.text == "!":
            yield made("logic", token.begin, "!", "")
    yield from (made(*change) for change in _statements(source, tokens))
    yield from (made(*change) for change in _cells(source, tokens))


def _closing(tokens: list[Token], at: int) -> int:
    """The index of the bracket that closes the one at `at`."""
    depth = 0
    for i in range(at, len(tokens)):
        depth += (tokens[i].text in ("(", "[", "{")) - (tokens[i].text in (")", "]", "}"))
        if depth == 0:
            return i
    return len(tokens) - 1


def _statements(source: str, tokens: list[Token]) -> Iterator[tuple[str, int, str, str]]:
    """Statements without a block: dropped, or what they return changed."""
    starts = {i + 1 for i, token in enumerate(tokens) if token.text in (";", "{", "}", "else", "do")}
    for i, token in enumerate(tokens):
        if token.text in ("if", "for", "while", "switch") and i + 1 < len(tokens):
            starts.add(_closing(tokens, i + 1) + 1)
    for start in sorted(start for start in starts if start < len(tokens)):
        end = start
        while end < len(tokens) and tokens[end].text not in (";", "{", "}", ")"):
            end = _closing(tokens, end) + 1 if tokens[end].text in ("(", "[") else end + 1
        if end >= len(tokens) or tokens[end].text != ";" or end == start:
            continue
        first, inside = tokens[start], tokens[start:end]
        text = source[first.begin : tokens[end].begin]
        if first.text == "return" and len(inside) > 1:
            value = source[tokens[start + 1].begin : tokens[end].begin]
            if value not in ("0", "NULL", "false", "true", "DMLSPLIT_OK"):
                yield "return value", first.begin, text, "return 0"
            elif value == "DMLSPLIT_OK":
                yield "return value", first.begin, text, "return DMLSPLIT_OUT_OF_MEMORY"
        elif first.text in ("continue", "break", "return", "++", "--", "*") or _acts(inside):
            yield "statement dropped", first.begin, text, ""


def _acts(statement: list[Token]) -> bool:
    """Whether it is a call or an assignment, not a declaration."""
    if len(statement) < 2:
        return False
    first, second, *rest = statement
    if (
        first.kind != "word"
        or second.kind == "word"
        or first.text in ("const", "static", "typedef", "struct", "enum", "case", "goto")
    ):
        return False
    if second.text == "*" and rest and (rest[0].kind == "word" or rest[0].text == "*"):
        return False
    return second.text == "(" or any(token.text in ASSIGNMENTS for token in statement)


def _cells(source: str, tokens: list[Token]) -> Iterator[tuple[str, int, str, str]]:
    """Neighbours in a list of initializers, or of a table's row, change places."""
    for i, token in enumerate(tokens):
        before = tokens[i - 1].text if i else ""
        is_row = token.text == "(" and before == ROWS_OF
        if not is_row and (token.text != "{" or before not in ("=", "{", ",", ")", "")):
            continue
        end = _closing(tokens, i)
        if any(inner.text == ";" for inner in tokens[i:end]):
            continue
        cells, at = [], i + 1
        while at < end:
            last = at
            while last < end and tokens[last].text != ",":
                last = _closing(tokens, last) + 1 if tokens[last].text in ("(", "[", "{") else last + 1
            cells.append((tokens[at].begin, tokens[last - 1].begin + len(tokens[last - 1].text)))
            at = last + 1
        for (a, a_end), (b, b_end) in itertools.pairwise(cells):
            one, other = source[a:a_end], source[b:b_end]
            if one != other:
                yield "table's cell", a, source[a:b_end], other + source[a_end:b] + one


# ---- Python ----

PYTHON_COMPARISON: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
}
PYTHON_ARITHMETIC: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "//"),
    ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "//"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"),
    ast.LShift: ("<<", ">>"),
}
WORDING = {"summary", "explanation", "cure", "releases", "message"}
"""Arguments that are text for people."""
EXAMPLES = {"bad", "good"}
"""Arguments that are a rule's examples: tests, of which another may be as good. So is what only they read."""
DEFAULT = "strict=False"
"""An argument that is what zip does without it."""
MAKES_EXAMPLES = "example"
"""The function that makes some of them."""


def python_mutations(path: str, source: str) -> Iterator[Mutation]:
    tree = ast.parse(source)
    return _PythonPlaces(path, source, _names_of_examples(tree)).walk(tree)


def _is_example(node: ast.AST) -> bool:
    if isinstance(node, ast.keyword):
        return node.arg in EXAMPLES
    return isinstance(node, ast.Call) and ast.unparse(node.func) == MAKES_EXAMPLES


def _names_of_examples(tree: ast.Module) -> set[str]:
    """Private names that nothing but examples reads."""
    read: dict[bool, set[str]] = {True: set(), False: set()}

    def look(node: ast.AST, is_example: bool) -> None:
        is_example = is_example or _is_example(node)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            read[is_example].add(node.id)
        for child in ast.iter_child_nodes(node):
            look(child, is_example)

    look(tree, False)
    return {name for name in read[True] - read[False] if name.startswith("_")}


def _defined(node: ast.AST) -> list[str]:
    """The names that a statement defines."""
    if isinstance(node, ast.FunctionDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [target.id for target in targets if isinstance(target, ast.Name)]


class _PythonPlaces:
    """One method for each kind of node that can be changed."""

    def __init__(self, path: str, source: str, of_examples: set[str]) -> None:
        self.path, self.source, self.of_examples = path, source, of_examples
        self.lines = source.splitlines(keepends=True)
        self.begins = [0, *itertools.accumulate(map(len, self.lines))]

    def walk(self, node: ast.AST) -> Iterator[Mutation]:
        """Without annotations, base classes, text, examples, and what only type checkers read."""
        if _is_example(node) or self.of_examples.intersection(_defined(node)):
            return
        if isinstance(node, ast.JoinedStr) or (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"):
            return
        if isinstance(node, ast.Assign) and any(ast.unparse(target) == "__all__" for target in node.targets):
            return
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.annotation) == "TypeAlias":
            return
        yield from getattr(self, f"of_{type(node).__name__.lower()}", self.nothing)(node)
        for name, value in ast.iter_fields(node):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST) and name not in ("annotation", "returns", "bases"):
                    yield from self.walk(child)

    def span(self, node: Any) -> tuple[int, int]:
        """ast counts columns in bytes."""

        def offset(line: int, column: int) -> int:
            return self.begins[line - 1] + len(self.lines[line - 1].encode()[:column].decode())

        return offset(node.lineno, node.col_offset), offset(node.end_lineno, node.end_col_offset)

    def made(self, operator: str, begin: int, end: int, new: str) -> Mutation:
        line = self.source.count("\n", 0, begin) + 1
        return Mutation(self.path, operator, line, begin, self.source[begin:end], new)

    def between(self, operator: str, left: ast.AST, right: ast.AST, old: str, new: str) -> Iterator[Mutation]:
        """The sign between two operands; comments and brackets may be there, too."""
        begin, end = self.span(left)[1], self.span(right)[0]
        found = re.search(rf"(?<![\w<>=!*/]){re.escape(old)}(?![\w<>=*/])", self.source[begin:end])
        if found:
            yield self.made(operator, begin + found.start(), begin + found.end(), new)

    def nothing(self, node: ast.AST) -> Iterator[Mutation]:
        yield from ()

    def of_compare(self, node: ast.Compare) -> Iterator[Mutation]:
        for (a, b), sign in zip(itertools.pairwise([node.left, *node.comparators]), node.ops, strict=True):
            yield from self.between("comparison", a, b, *PYTHON_COMPARISON[type(sign)])

    def of_binop(self, node: ast.BinOp) -> Iterator[Mutation]:
        if type(node.op) in PYTHON_ARITHMETIC and not any(map(_is_text, (node.left, node.right))):
            yield from self.between("arithmetic", node.left, node.right, *PYTHON_ARITHMETIC[type(node.op)])

    def of_boolop(self, node: ast.BoolOp) -> Iterator[Mutation]:
        old, new = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        for a, b in itertools.pairwise(node.values):
            yield from self.between("logic", a, b, old, new)

    def of_unaryop(self, node: ast.UnaryOp) -> Iterator[Mutation]:
        if isinstance(node.op, ast.Not):
            yield self.made("logic", self.span(node)[0], self.span(node.operand)[0], "")

    def of_constant(self, node: ast.Constant) -> Iterator[Mutation]:
        if isinstance(node.value, bool):
            yield self.made("constant", *self.span(node), str(not node.value))
        elif isinstance(node.value, int):
            yield self.made("constant", *self.span(node), f"({ast.unparse(node)} + 1)")

    def of_return(self, node: ast.Return) -> Iterator[Mutation]:
        if node.value is not None and ast.unparse(node.value) != "None":
            yield self.made("return value", *self.span(node.value), "None")

    def of_expr(self, node: ast.Expr) -> Iterator[Mutation]:
        if isinstance(node.value, ast.Yield | ast.YieldFrom):  # it stays a generator
            yield self.made("statement dropped", *self.span(node), "yield from ()")
        elif not isinstance(node.value, ast.Constant):
            yield self.dropped(node)

    def dropped(self, node: ast.stmt) -> Mutation:
        return self.made("statement dropped", *self.span(node), "pass")

    def of_augassign(self, node: ast.AugAssign) -> Iterator[Mutation]:
        yield self.dropped(node)

    def of_continue(self, node: ast.Continue) -> Iterator[Mutation]:
        yield self.dropped(node)

    def of_break(self, node: ast.Break) -> Iterator[Mutation]:
        yield self.dropped(node)

    def of_list(self, node: ast.List | ast.Set | ast.Tuple) -> Iterator[Mutation]:
        """The first of two neighbours goes."""
        for a, b in itertools.pairwise(node.elts):
            if isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
                yield self.made("table's cell", self.span(a)[0], self.span(b)[0], "")

    of_set = of_tuple = of_list

    def of_dict(self, node: ast.Dict) -> Iterator[Mutation]:
        """Neighbours change places."""
        for a, b in itertools.pairwise(node.values):
            (begin, middle), (after, end) = self.span(a), self.span(b)
            one, other = self.source[begin:middle], self.source[after:end]
            if one != other:
                yield self.made("table's cell", begin, end, other + self.source[middle:after] + one)

    def of_call(self, node: ast.Call) -> Iterator[Mutation]:
        for keyword in node.keywords:
            if keyword.arg is not None and keyword.arg not in WORDING | EXAMPLES and ast.unparse(keyword) != DEFAULT:
                begin, end = self.span(keyword)
                after = re.match(r"\s*,\s*", self.source[end:])
                yield self.made("argument dropped", begin, end + len(after[0]) if after else end, "")


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))
