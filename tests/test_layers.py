"""A module imports only from the floors below its own, by whatever means, and no imports make a circle."""

import ast
import re
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import dmlsplit

PACKAGE = Path(dmlsplit.__file__).parent

# From the ground floor up: the modules of a package import from their own and from those above it in this list.
PACKAGES = [
    "_version",
    "_ffi",
    "system",
    "descriptors",
    "targets",
    "rules",
    "verdicts",
    "native",
    "graphs",
    "legalize",
    "device",
    "formats",
    "models",
    "onnxruntime",
    "mending",
    "reducing",
    "library",
    "conformance",
    "logs",
    "checking",
    "report",
    "cli",
    "__main__",
]
FACADES = {("__init__",), ("onnx",), ("open_sizes",), ("formats", "onnx", "__init__")}
"""They name lazily what other packages define, so that it has a short name."""


def parts_of(path):
    return path.relative_to(PACKAGE).with_suffix("").parts


@cache
def modules():
    return {parts_of(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def is_module(parts):
    """True for the name of a module or of a package."""
    return parts in modules() or (*parts, "__init__") in modules()


def imports(path, *, skip_typing=False, at_once=False):
    """The names below dmlsplit that a module imports, by statement or by a string that names a module.

    `skip_typing` leaves out what is imported for type checkers, `at_once` what is imported within functions.
    """
    tree = ast.parse(path.read_text("utf-8"))
    for node in ast.walk(tree):
        if skip_typing and isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            for child in ast.walk(node):
                child.skipped = True
        if at_once and isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            for child in ast.walk(node):
                child.skipped = True
        if getattr(node, "skipped", False):
            continue
        if isinstance(node, ast.ImportFrom) and node.module == "dmlsplit":
            yield from ((alias.name,) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("dmlsplit."):
            base = tuple(node.module.split(".")[1:])
            yield from ((*base, a.name) if is_module((*base, a.name)) else base for a in node.names)
        elif isinstance(node, ast.Import):
            yield from (tuple(a.name.split(".")[1:]) for a in node.names if a.name.startswith("dmlsplit."))
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            text = "".join(str(c.value) for c in ast.walk(node.args[0]) if isinstance(c, ast.Constant))
            if text.startswith("dmlsplit."):
                yield tuple(text.rstrip(".").split(".")[1:])
        elif isinstance(node, ast.Constant) and str(node.value).startswith("dmlsplit.") and not at_once:
            named = tuple(node.value.split(".")[1:])
            if is_module(named):
                yield named


def test_every_module_has_a_floor():
    assert {parts[0] for parts in set(modules()) - FACADES} == {*PACKAGES} - {"_ffi"}


def test_imports_go_down_only():
    wrong = []
    for parts, path in modules().items():
        if parts in FACADES:
            continue
        for imported in imports(path):
            if imported[0] not in PACKAGES or PACKAGES.index(imported[0]) > PACKAGES.index(parts[0]):
                wrong.append(f"{'/'.join(parts)} imports {'.'.join(imported)}")
    assert not wrong


def test_imports_by_string_are_seen(tmp_path):
    module = tmp_path / "module.py"
    module.write_text("import importlib\nimportlib.import_module(f'dmlsplit.report.{name}')\n")
    assert list(imports(module)) == [("report",)]
    module.write_text("TABLE = {'legalize': 'dmlsplit.mending', 'x': 'dmlsplit.h', 'y': 'dmlsplit.report.svg'}\n")
    assert list(imports(module)) == [("mending",), ("report", "svg")]


def circle(files, at_once=False):
    """The modules of a circle of imports, those for type checkers and within functions included; None where there is
    none. `files` by the modules' parts; a package's name is its __init__.

    `at_once`: of the imports that run as a module is imported, with the packages that they lie in.
    """
    known = {parts[:-1] if parts[-1] == "__init__" else parts for parts in files}
    graph = {}
    for parts, path in files.items():
        name = parts[:-1] if parts[-1] == "__init__" else parts
        found = set(imports(path, skip_typing=at_once, at_once=at_once))
        if at_once:
            found |= {each[:k] for each in found for k in range(1, len(each)) if each[:k] != name[:k]}
        graph[name] = found & known - {name}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return [".".join(parts) for parts in error.args[1]]
    return None


@pytest.mark.parametrize("at_once", [False, True])
def test_there_are_no_circles(at_once):
    """The facades are left out: they import, lazily, from packages above them."""
    assert circle({parts: path for parts, path in modules().items() if parts not in FACADES}, at_once) is None


def test_a_circle_through_a_function_and_a_facade_is_found(tmp_path):
    texts = {
        ("graphs", "__init__"): "from dmlsplit.graphs.memory import f\n",
        ("graphs", "memory"): "def f():\n    from dmlsplit import graphs\n",
    }
    files = {parts: tmp_path / f"{parts[-1]}.py" for parts in texts}
    for parts, text in texts.items():
        files[parts].write_text(text)
    assert circle(files) is not None


def test_a_circle_through_a_package_and_a_type_checkers_import_is_found(tmp_path):
    """`from dmlsplit.report import html` imports the package html, not a name of the package report."""
    texts = {
        ("report", "conformance"): "def page():\n    from dmlsplit.report import html\n",
        ("report", "html", "__init__"): "if TYPE_CHECKING:\n    from dmlsplit.report.conformance import text\n",
    }
    files = {parts: tmp_path / f"{parts[-1]}.py" for parts in texts}
    for parts, text in texts.items():
        files[parts].write_text(text)
    assert circle(files) is not None
    assert circle(files, at_once=True) is None


CORE = PACKAGE.parent / "csrc"
INCLUDED = re.compile(r'^#include "(?:\w+/)*(\w+)\.h"', re.MULTILINE)
DEFINED = re.compile(r"^(?!static|extern|typedef)[a-z][\w *(]*\b(dm\w+_\w+)(?=[(\[);]| =)", re.MULTILINE)
USED = re.compile(r"\b(dm\w+_\w+)\b")
"""Files of C, their functions and variables; what is within a function is indented."""


def circle_in_c(texts):
    """The files of a circle of C, None where there is none. `texts` by name; a source and its header are one file,
    which stands above what it includes and what defines the names that its functions have."""
    texts = {name: re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL) for name, text in texts.items()}
    homes = {each: name[:-2] for name, text in texts.items() if name.endswith(".c") for each in DEFINED.findall(text)}
    graph = {name[:-2]: set() for name in texts}
    for name, text in texts.items():
        inside = "\n".join(line for line in text.splitlines() if line.startswith(" "))
        needed = {*INCLUDED.findall(text), *(homes.get(each) for each in USED.findall(inside))}
        graph[name[:-2]] |= needed & graph.keys() - {name[:-2]}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return error.args[1]
    return None


@pytest.mark.skipif(not CORE.exists(), reason="the sources of the core are not there")
def test_there_are_no_circles_in_c():
    assert circle_in_c({path.name: path.read_text("utf-8") for path in CORE.rglob("*.[ch]")}) is None


@pytest.mark.parametrize("defined", ["void dms_b(int a,\n           int b)\n{\n}\n", "bool (*dms_b)(void);\n"])
def test_circles_in_c_are_found(defined):
    texts = {"a.h": "void dms_a(void);\nvoid dms_b(void);\n", "b.c": f'#include "a.h"\n{defined}'}
    assert circle_in_c(texts) is None
    assert circle_in_c(texts | {"a.c": "void dms_a(void)\n{\n    dms_a(); /* calls\n dms_b */\n}\n"}) is None
    assert circle_in_c(texts | {"a.c": "void dms_a(void)\n{\n    dms_b();\n}\n"}) is not None
    assert circle_in_c(texts | {"a.h": "static inline void f(void)\n{\n    dms_b();\n}\n"}) is not None


def test_only_native_touches_the_extension():
    users = {path.name for path in modules().values() if "dmlsplit._ffi" in path.read_text("utf-8")}
    assert users == {"core.py"}


TESTS = Path(__file__).parent


IMPORTS_A_TEST = re.compile(r"^\s*(?:from|import)\s[^#\n(]*(?:\([^)]*)?\btest_", re.MULTILINE)


def test_no_test_is_imported():
    """What several tests share has a module of its own: a test module would run twice, or not where it stands."""
    wrong = [path for path in TESTS.rglob("*.py") if IMPORTS_A_TEST.search(path.read_text("utf-8"))]
    assert not wrong


def test_imports_of_tests_are_seen():
    for line in (
        "from tests.cli.test_check import x",
        "    import tests.test_enums",
        "from tests import (\n    a,\n    test_enums,\n)",
    ):
        assert IMPORTS_A_TEST.search(f"x = 1\n{line}\n")
    assert not IMPORTS_A_TEST.search("from tests.strategies import any_operator  # not test_x\nimport_test_x = 1\n")


def test_one_module_makes_the_models_of_tests():
    """Others take tests/models.py, or parse a model that is recorded as text."""
    makers = re.compile(r"\b(make_model|parse_model)\(")
    users = {
        path.relative_to(TESTS).as_posix() for path in TESTS.rglob("*.py") if makers.search(path.read_text("utf-8"))
    }
    assert users - {Path(__file__).name} == {"models.py", "onnxruntime/test_handmade.py"}
