"""A module imports only from the floors above its own; DESIGN's order, with `errors` and `layout` made floors."""

import ast
from pathlib import Path

import dmlsplit

PACKAGE = Path(dmlsplit.__file__).parent

# From the top down. A name stands for the module or for everything in the package of that name.
FLOORS = [
    ["_version", "enums"],
    ["errors"],
    ["layout", "location"],
    ["descriptors", "diagnostics"],
    ["feature_levels"],
    ["releases"],
    ["target"],
    ["rules"],
    ["validation", "reference"],
    ["_native"],
    ["_fresh", "_threads", "buffer"],
    ["arrays", "_binding", "file_split"],
    ["execution"],
    ["legalize", "device"],
    ["formats"],
    ["report"],
    ["checking"],
    ["cli"],
    ["__init__", "__main__"],
]
FLOOR_OF = {name: i for i, names in enumerate(FLOORS) for name in names}
# `errors` names Report in an annotation, the package's facade for lazy names: both only for type checkers.
TYPING_ONLY = {"errors", "__init__"}


def imports(tree, skip_typing):
    for node in ast.walk(tree):
        if skip_typing and isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            for child in ast.walk(node):
                child.skipped = True
        if getattr(node, "skipped", False):
            continue
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "dmlsplit":
            if node.module == "dmlsplit":
                yield from (alias.name for alias in node.names)
            else:
                yield node.module.split(".")[1]
        elif isinstance(node, ast.Import):
            yield from (a.name.split(".")[1] for a in node.names if a.name.startswith("dmlsplit."))


def modules():
    for path in sorted(PACKAGE.rglob("*.py")):
        relative = path.relative_to(PACKAGE)
        yield (relative.parts[0] if len(relative.parts) > 1 else relative.stem), path


def test_every_module_has_a_floor():
    assert {name for name, _ in modules()} <= set(FLOOR_OF)


def test_imports_go_up_only():
    wrong = []
    for name, path in modules():
        tree = ast.parse(path.read_text("utf-8"))
        for imported in imports(tree, skip_typing=name in TYPING_ONLY):
            same_package = imported == name and path.parent != PACKAGE
            if not same_package and FLOOR_OF.get(imported, -1) >= FLOOR_OF[name]:
                wrong.append(f"{path.relative_to(PACKAGE)} imports {imported}")
    assert not wrong


def test_only_native_touches_the_extension():
    users = {path.name for _, path in modules() if "dmlsplit._ffi" in path.read_text("utf-8")}
    assert users == {"_native.py"}


def test_modules_stay_short():
    long = {str(path): n for _, path in modules() if (n := len(path.read_text("utf-8").splitlines())) > 400}
    assert not long
