"""Where the package opens files: each place is counted in a list, so that a new one is a decision."""

import ast
from collections import Counter
from pathlib import Path

import dmlsplit

PACKAGE = Path(dmlsplit.__file__).parent

OPENING = {
    *(
        "open",
        "fdopen",
        "FileIO",
        "open_code",
        "fromfile",
        "memmap",
        "open_memmap",
        "mmap",
        "NamedTemporaryFile",
        "mkstemp",
    ),
    *("read_bytes", "read_text", "write_bytes", "write_text", "tofile", "loadtxt", "genfromtxt", "CDLL", "LoadLibrary"),
    *("Popen", "check_output", "check_call", "call", "system"),
}
"""Functions that open a file or start a program, by whatever module."""
INPUTS = "open_input"
"""The package's own function for files that are read."""
READING_TENSORS = {"to_array", "ReferenceEvaluator", "load_external_data_for_model", "load_external_data_for_tensor"}
"""Functions of onnx that read the external data of a tensor, in the current folder unless they are told another."""

PLACES = {
    # Regular files that are read
    "system/input_files.py": 2,
    # What is written, before it gets its name
    "cli/_streams.py": 2,
    "native/file_split.py": 3,
    "mending/writing.py": 2,
    "reducing/writing.py": 1,
    # A check of the caller's, with the model that it looks at
    "reducing/commands.py": 2,
    "reducing/references.py": 3,
    "system/atomic_files.py": 2,
    # Files that are open already
    "formats/files.py": 2,
    "mending/source.py": 1,
    # Tensors that have no external data any more
    "models/folding.py": 1,
    "formats/onnx/tensors.py": 1,
    "reducing/computed.py": 1,
    "reducing/_evaluator.py": 1,
    # The package's own
    "models/inference.py": 1,
    "report/html/__init__.py": 1,
    "system/tables.py": 1,
    "library/catalogue.py": 1,
    # A build of DirectML that was fetched, its package, and the programs that ask it
    "library/fetching.py": 4,
    "library/harness.py": 1,
    "library/layer.py": 2,
    "library/pipes.py": 1,
    "library/sessions.py": 1,
    # The recordings, what is written of them, a command that is asked, and a model that is asked about
    "conformance/recorded.py": 1,
    "conformance/suite.py": 3,
    "conformance/peers.py": 1,
    "conformance/answering.py": 1,
}
READING = {
    # The files that the caller names
    "checking/configuration.py",
    "cli/doctor.py",
    "cli/split.py",
    "native/file_split.py",
    "formats/jsontext.py",
    "formats/onnx/loading.py",
    "mending/source.py",
    "formats/openvino/reader.py",
    "formats/operator_files.py",
    "cli/explain_log.py",
    "library/layer.py",
    "library/models.py",
    "conformance/recorded.py",
    "conformance/suite.py",
    "report/terminal.py",
    # What a model refers to, in its folder and in those that the caller allows: AllowedFolders.read for the tensors of
    # ONNX and OpenVINO, resources of DxDispatch; AllowedFolders.beside for external data that goes along
    "formats/files.py",
    "mending/writing.py",
}


def calls(tree):
    """Calls of the functions above."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if name in OPENING | READING_TENSORS:
                yield name


def test_every_place_that_opens_files_is_known():
    found = Counter()
    for path in PACKAGE.rglob("*.py"):
        found[path.relative_to(PACKAGE).as_posix()] += len(list(calls(ast.parse(path.read_text("utf-8")))))
    assert {module: number for module, number in found.items() if number} == PLACES


def test_inputs_are_read_where_it_is_known():
    found = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == INPUTS
    }
    assert found == READING


def test_the_scan_sees_calls_of_any_spelling():
    text = "open(x)\nio.open(x)\nwith path.open() as s: np.fromfile(s)\nf = lambda: onnx.to_array(t)\nclose(x)\n"
    assert sorted(calls(ast.parse(text))) == ["fromfile", "open", "open", "open", "to_array"]
