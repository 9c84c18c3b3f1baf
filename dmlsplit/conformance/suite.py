"""The recordings as cases: a question, and the answers of builds to it.

A case is a JSON object, a line of a file; docs/conformance.md has the form. `FILES` is the table of the files.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import count, islice
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

from dmlsplit.conformance import recorded
from dmlsplit.formats import graph_json
from dmlsplit.formats.json import to_json
from dmlsplit.formats.limits import Limit
from dmlsplit.system.atomic_files import atomic_files
from dmlsplit.system.errors import DmlSplitError, InputError, naming
from dmlsplit.system.input_files import open_input
from dmlsplit.system.printable import printable
from dmlsplit.targets.release_names import find_release

SCHEMA: Final = 1
"""The version of the format of the files and of the protocol."""
VERSION: Final = 1
"""The version of the cases; it changes if any of them does."""
CONTENTS: Final = "contents.json"
RUNNERS: Final = ("judge.py", "judge.cpp")
"""Programs that run the suite from the files, as examples for programs in other languages."""
_RUNNERS: Final = (Path(__file__).parent / "runners", Path(__file__).parents[2] / "examples" / "conformance")
"""Their folders in a wheel and in a checkout."""
MOST_BYTES: Final = 1 << 20
"""The longest line of a file, of a question and of an answer."""
MOST_FILE_BYTES: Final = 1 << 30
MOST_LEVELS: Final = Limit.JSON_DEPTH.most
"""The deepest nesting of arrays and objects in files and answers."""

Case = dict[str, Any]
_PROVIDERS: Final = {"D": "DML", "C": "CPU"}
_INLINED: Final = re.compile(r"^_inlfunc_[^_]+_|^_if_(then|else)_branch_")
"""The prefix that ONNX Runtime adds to the name of a node of a function or branch that it inlines."""
_FAILING: Final = re.compile(r"node:?\s?'([^']+)'")


class File(NamedTuple):
    """A file of cases of one kind. `required` are the members that an answer must have if the recorded one has them;
    others are compared if the answer has them. `read` yields every n-th case of the recordings."""

    name: str
    kind: str
    by: str
    required: tuple[str, ...]
    about: str
    read: Callable[[int], Iterator[Case]]


def _case(id: str, question: Case, answers: Iterable[tuple[str, Case]]) -> Case:
    """Returns a case: its id, the question, and the answers, given as (version, answer) pairs; equal answers are merged
    into one with a list of their versions."""
    groups: dict[str, list[str]] = {}
    for version, answer in answers:
        found = groups.setdefault(json.dumps(answer), [])
        if version not in found:
            found.append(version)
    return {
        "id": id,
        "question": question,
        "answers": [{"by": versions, "is": json.loads(answer)} for answer, versions in groups.items()],
    }


def _accepted(code: str) -> Case:
    return {"accepted": int(code, 16) == 0, "hresult": code}


def _verdicts(step: int) -> Iterator[Case]:
    for name in ("random", "boundary", "systematic"):
        records = recorded.lines(f"oracle/{name}", longest=MOST_BYTES)
        header = next(records)
        versions = [find_release(build).directml for build in header["builds"]]
        for record in islice(records, 0, None, step):
            if recorded.reason_to_leave_out(record) or "compile" in record["desc"]:
                continue  # a compiled one was asked with flags of CompileOperator
            question = {"kind": "operator", "operator": to_json(recorded.operator(record["desc"]))}
            answers = [
                (version, _accepted(verdict))
                for version, verdict in zip(versions, record["verdicts"], strict=True)
                if verdict.upper() != "CRASH"  # a crash gives no answer
            ]
            yield _case(f"verdicts/{name}/{record['id']}", question, answers)


def _executions(step: int) -> Iterator[Case]:
    for name, file in (("split", "execution"), ("join", "execution-join")):
        for record in islice(recorded.lines(f"oracle/{file}"), 0, None, step):
            inputs, outputs = (
                [{"buffer": each["buf"], "offset": each["off"], "size": each["size"]} for each in bound]
                for bound in (record.get("inputs") or [record["input"]], record.get("outputs") or [record["output"]])
            )
            question = {
                "kind": "execution",
                "operator": to_json(recorded.operator(record["desc"])),
                "buffers": record["before"],
                "inputs": inputs,
                "outputs": outputs,
            }
            after = {"accepted": True, "buffers": [record["after"][each["buffer"]] for each in outputs]}
            answers = [(find_release(build).directml, after) for build in record["builds"]]
            # With the code of the Linux build, if other builds of the version have another code.
            answers += [(find_release(build).directml, {"accepted": False}) for build in record["rejected"]]
            yield _case(f"executions/{name}/{record['id']}", question, answers)


def _graphs(step: int) -> Iterator[Case]:
    records = recorded.lines("graphs/executions")
    builds = next(records)
    for number, (_, spec, groups) in islice(enumerate(records), 0, None, step):
        question = {"kind": "graph", "graph": json.loads(graph_json.dumps(recorded.graph(spec)))}
        answers = [(builds[i]["directml"], _outputs(verdict)) for verdict, indices in groups for i in indices]
        yield _case(f"graphs/{number}", question, answers)


def _outputs(verdict: str | list[str]) -> Case:
    if isinstance(verdict, list):
        return {"accepted": True, "right": "wrong" not in verdict, "outputs": verdict}
    return {"accepted": True, "right": verdict == "right"} if verdict in ("right", "wrong") else {"accepted": False}


def _models(step: int) -> Iterator[Case]:
    for number, record in islice(enumerate(recorded.lines("onnxruntime/whole")), 0, None, step):
        model = base64.b64encode(bytes.fromhex(record["model"])).decode()
        answers = [(version, _session(answer)) for answer in record["answers"] for version in answer["ort"]]
        yield _case(f"models/{number}", {"kind": "model", "model": model}, answers)


def _session(answer: Case) -> Case:
    if not answer["session"]:
        failing = _FAILING.search(answer.get("error", ""))
        return {"created": False, **({"failing_node": failing[1]} if failing else {})}
    nodes = {_INLINED.sub("", name): _PROVIDERS[letter] for name, letter in answer["nodes"].items()}
    return {"created": True, "nodes": nodes, "copies": answer["copies"], "capture": answer["capture"]}


FILES: Final[Mapping[str, File]] = {
    file.name: file
    for file in (
        File("verdicts", "operator", "directml", ("accepted",), "CreateOperator of a Split or Join", _verdicts),
        File("executions", "execution", "directml", ("accepted", "buffers"), "a dispatch, byte by byte", _executions),
        File("graphs", "graph", "directml", ("accepted", "right"), "CompileGraph, and what comes out", _graphs),
        File("models", "model", "onnxruntime", ("created",), "a session of ONNX Runtime: where nodes run", _models),
    )
}
"""Maps names to files. `by` says what the versions in a file's answers are versions of."""


def lines(name: str, step: int = 1) -> Iterator[str]:
    """Yields the lines of a file: every `step`-th case, without lines longer than MOST_BYTES."""
    for case in FILES[name].read(step):
        line = json.dumps(case, separators=(",", ":"))
        if len(line) <= MOST_BYTES:
            yield line


def contents(counted: Mapping[str, tuple[int, str]]) -> Case:
    """Returns the table of contents; `counted` maps the name of each file to its number of cases and its SHA-256."""
    return {
        "suite": "dmlsplit conformance",
        "schema": SCHEMA,
        "version": VERSION,
        "files": [
            {
                "name": f"{file.name}.jsonl",
                "kind": file.kind,
                "by": file.by,
                "required": list(file.required),
                "about": file.about,
                "cases": counted[file.name][0],
                "sha256": counted[file.name][1],
            }
            for file in FILES.values()
        ],
    }


def counted(name: str, write: Callable[[bytes], object] = len) -> tuple[int, str]:
    """Returns the number of cases in a file and its SHA-256 in hexadecimal; calls `write` with each line."""
    digest, count = hashlib.sha256(), 0
    for line in lines(name):
        data = f"{line}\n".encode()
        digest.update(data)
        write(data)
        count += 1
    return count, digest.hexdigest()


def _runner(name: str) -> bytes:
    """Returns the source of a runner. Raises DmlSplitError if this installation has none."""
    for place in _RUNNERS:
        with suppress(FileNotFoundError), open_input(str(place / name)) as stream:
            return stream.read()
    raise DmlSplitError(f"this installation has no {name}; the wheel and the checkout have it")


def export(folder: str) -> Case:
    """Writes all files, the runners and the table of contents into a folder, which is created; returns the table.

    Files of these names are replaced, all or none. Raises OSError if writing fails.
    """
    found = {}
    with atomic_files() as files, naming(folder):
        files.make_folder(folder)
        for name in FILES:
            with open(files.create(os.path.join(folder, f"{name}.jsonl")), "wb") as stream:
                found[name] = counted(name, stream.write)
        for name in RUNNERS:
            with open(files.create(os.path.join(folder, name)), "wb") as stream:
                stream.write(_runner(name))
        table = contents(found)
        with open(files.create(os.path.join(folder, CONTENTS)), "wb") as stream:
            stream.write(f"{json.dumps(table, indent=1)}\n".encode())
    return table


class Suite:
    """The cases of this installation, or those of a folder that `export` wrote."""

    def __init__(self, folder: str | None = None) -> None:
        self._folder = folder
        if folder is not None:
            self._table = _table(folder)

    def cases(self, name: str, step: int = 1) -> Iterator[Case]:
        """Yields every `step`-th case of a file. Raises InputError if the folder's file differs from its table of
        contents."""
        if self._folder is None:
            return map(json.loads, lines(name, step))
        return islice(self._read(name), 0, None, step)

    def _read(self, name: str) -> Iterator[Case]:
        path = os.path.join(self._folder or "", f"{name}.jsonl")
        with _opened(path) as stream:
            if os.fstat(stream.fileno()).st_size > MOST_FILE_BYTES:
                raise InputError(f"it is larger than {MOST_FILE_BYTES:,} bytes", file=path)
            digest = hashlib.sha256()
            while piece := stream.read(MOST_BYTES):
                digest.update(piece)
            if digest.hexdigest() != self._table.get(f"{name}.jsonl"):
                raise InputError(f"its SHA-256 does not match {CONTENTS}", file=path)
            stream.seek(0)
            for number in count(1):
                line = stream.readline(MOST_BYTES + 2)  # including the newline and one byte more than allowed
                if not line:
                    return
                yield _read_case(line, path, number)


def read_json(text: bytes) -> Any:
    """Returns the value of a JSON text. Raises ValueError if it is malformed, or nested more than MOST_LEVELS deep."""
    try:
        value = json.loads(text)
    except RecursionError:
        raise ValueError from None
    if text.count(b"[") + text.count(b"{") > MOST_LEVELS:
        level, depth = [value], 0
        while level := [each for each in level if isinstance(each, (dict, list))]:
            level = [inner for each in level for inner in (each.values() if isinstance(each, dict) else each)]
            depth += 1
            if depth > MOST_LEVELS:
                raise ValueError
    return value


def _opened(path: str) -> BinaryIO:
    """Returns a regular file opened for reading. Raises InputError for any other kind of file, OSError if it cannot be
    opened."""
    with naming(path):
        return open_input(path)


def _table(folder: str) -> dict[str, str]:
    """Maps the names of the files in a folder's table of contents to their SHA-256. Raises InputError if it is
    malformed or of another schema, OSError if it cannot be read."""
    path = os.path.join(folder, CONTENTS)
    with _opened(path) as stream:
        text = stream.read(MOST_BYTES)
    try:
        table = read_json(text)
        if table["schema"] != SCHEMA:
            schema = printable(repr(table["schema"]))
            raise InputError(f"schema {schema} is not known; this version reads {SCHEMA}", file=path)
        return {str(file["name"]): str(file["sha256"]) for file in table["files"]}
    except (ValueError, TypeError, KeyError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError("it is not a table of contents", file=path) from None


def _read_case(line: bytes, path: str, number: int) -> Case:
    if len(line) > MOST_BYTES + 1:
        raise InputError(f"the line is longer than {MOST_BYTES:,} bytes", file=path, line=number)
    try:
        case: Case = read_json(line)
        parts = case["id"], case["question"]["kind"], [(each["by"], each["is"]) for each in case["answers"]]
        if isinstance(parts[0], str) and all(isinstance(by, list) and isinstance(is_, dict) for by, is_ in parts[2]):
            return case
    except (ValueError, TypeError, KeyError):
        pass
    raise InputError("it is not a case", file=path, line=number)
