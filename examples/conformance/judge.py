"""Judges a command by the files that `dmlsplit conformance export DIR` writes: python judge.py DIR VERSION COMMAND...

It needs nothing but Python. VERSION is a version of DirectML, or of ONNX Runtime for models. The command gets the
cases of each file that have a recorded answer of this version. `dmlsplit conformance run` does the same, with time
limits, samples and reports.
"""

import hashlib
import json
import subprocess
import sys
from pathlib import Path


def compared(recorded, given, path, differences, unknown):
    """Collects the differences, and the paths that are null or missing in the answer, which count as unknown."""
    if isinstance(recorded, dict) and isinstance(given, dict):
        for name, value in recorded.items():
            compared(value, given.get(name), f"{path}.{name}", differences, unknown)
    elif isinstance(recorded, list) and isinstance(given, list) and len(recorded) == len(given):
        for i, value in enumerate(recorded):
            compared(value, given[i], f"{path}[{i}]", differences, unknown)
    elif recorded is not None and given is None:
        unknown.append(path)
    elif recorded is not None and (type(recorded) is not type(given) or recorded != given):
        differences.append(f"{path} is {given!r}, {recorded!r} is recorded")


def judged(required, recorded, given):
    """The outcome and its reason. Members that are not required are compared only where the answer has them."""
    if "skip" in given:
        return "skipped", given["skip"]
    differences, unknown = [], []
    for member, value in recorded.items():
        compared(value, given.get(member), member, differences, unknown)
    if differences:
        return "failed", "; ".join(differences)
    lacking = [path for path in unknown if path.split(".")[0].split("[")[0] in required]
    return ("skipped", f"{lacking[0]} is not known") if lacking else ("passed", "")


def main(folder, version, *command):
    counts = {"passed": 0, "skipped": 0, "failed": 0}
    start = lambda: subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # noqa: E731
    process = start()
    for file in json.loads(Path(folder, "contents.json").read_text("utf-8"))["files"]:
        text = Path(folder, file["name"]).read_bytes()
        assert hashlib.sha256(text).hexdigest() == file["sha256"], f"{file['name']} is not the one of contents.json"
        for case in map(json.loads, text.splitlines()):
            answers = [answer["is"] for answer in case["answers"] if version in answer["by"]]
            if not answers:
                continue
            question = {"schema": 1, "id": case["id"], "target": f"{file['by']} {version}", **case["question"]}
            try:
                process.stdin.write(json.dumps(question).encode() + b"\n")
                process.stdin.flush()
                given = json.loads(process.stdout.readline())
                assert given["id"] == case["id"]
                found = [judged(file["required"], answer, given) for answer in answers]
            except (OSError, ValueError, KeyError, TypeError, AssertionError):
                process.kill()
                process = start()
                found = [("failed", "no answer")]
            outcome, reason = min(found, key=lambda each: list(counts).index(each[0]))
            counts[outcome] += 1
            if outcome == "failed":
                print(f"{case['id']}: {reason}")
    process.stdin.close()
    process.wait()
    print(", ".join(f"{count} {outcome}" for outcome, count in counts.items()))
    return counts["failed"] > 0


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__.splitlines()[0])
    sys.exit(main(*sys.argv[1:]))
