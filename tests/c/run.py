"""Builds and runs the C tests.

    python tests/c/run.py [plain] [asan] [tsan] [headers] [example] [fuzz] [valgrind]   without arguments the first five

    plain     test_*.c with the warnings as errors, optimised
    asan      the same under AddressSanitizer and UndefinedBehaviorSanitizer
    tsan      test_threads.c under ThreadSanitizer
    headers   each header alone as C99, C11 and C++11; those of DirectML's structs after a DirectML.h; capture.c, which
              calls all of dmlsplit_capture.h, under the sanitizers
    example   examples/c/split.c from the headers and csrc alone, with no flag but the include path
    fuzz      ../fuzz/fuzz_plan.c for $FUZZ_SECONDS (60), by libFuzzer where the compiler has it
    valgrind  test_*.c again, each under valgrind's memcheck: minutes

The compilers are $CC and $CXX, or cc and c++. Exit status 1 where anything failed.
"""

import os
import shlex
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
CC = shlex.split(os.environ.get("CC", "cc"))
CXX = shlex.split(os.environ.get("CXX", "c++"))
INCLUDE = ["-I", str(ROOT / "include")]
SOURCES = sorted(ROOT.glob("csrc/*.c")) + sorted(ROOT.glob("csrc/*/*.c"))
HEADERS = sorted(ROOT.glob("include/*.h"))
TESTS = sorted(HERE.glob("test_*.c"))

STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror"]
STRICT_C = [*STRICT, "-Wstrict-prototypes", "-Wmissing-prototypes"]
CORE_ONLY = ["-Wconversion"]
MODES = {
    "plain": ["-O2"],
    "tsan": ["-O1", "-g", "-fsanitize=thread"],
    "valgrind": ["-O1", "-g"],
    "asan": ["-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer"],
}
VALGRIND = ["valgrind", "--quiet", "--error-exitcode=99", "--leak-check=full"]
CAPTURED = (
    '{"Type": "DML_OPERATOR_SPLIT", "Desc": {"InputTensor": {"Type": "BUFFER", "Desc": {"DataType": "FLOAT32", '
    '"Flags": "NONE", "DimensionCount": 1, "Sizes": [3], "Strides": null, "TotalTensorSizeInBytes": 12, '
    '"GuaranteedBaseOffsetAlignment": 0}}, "OutputCount": 0, "OutputTensors": null, "Axis": 0}}\n'
)
EXAMPLE_OUTPUT = "part 0: 1 2 3 4\npart 1: 5 6\npart 2: 7 8 9 10 11 12\n"


class Failure(Exception):
    """A command that did not do what it should; the text says which and how."""


def run(command, expected_output=None):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=1800)
    said = done.stdout + done.stderr
    if done.returncode != 0:
        raise Failure(f"$ {shlex.join(map(str, command))}\nexit status {done.returncode}\n{said}")
    if expected_output is not None and done.stdout != expected_output:
        raise Failure(f"$ {shlex.join(map(str, command))}\nexpected:\n{expected_output}printed:\n{said}")
    return said


def compile_core(folder, flags):
    """Objects of the core; every test links the same ones."""

    def compile_one(source):
        target = folder / f"{source.stem}.o"
        run([*CC, "-std=c11", *STRICT_C, *CORE_ONLY, *flags, *INCLUDE, "-c", source, "-o", target])
        return target

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(compile_one, SOURCES))


def core_tests(mode, folder):
    """One case for each test program, and one for the core that they share."""
    # The counters of the test hooks are no atomics, and test_threads does without them.
    flags = MODES[mode] if mode == "tsan" else [*MODES[mode], "-DDMS_TESTING"]
    tests = [test for test in TESTS if mode != "tsan" or test.stem == "test_threads"]
    objects = []

    def core():
        objects.extend(compile_core(folder, flags))

    def program(test):
        binary = folder / test.stem
        run(
            [
                *CC,
                "-std=c11",
                *STRICT_C,
                *flags,
                *INCLUDE,
                "-I",
                ROOT / "csrc",
                test,
                *objects,
                "-pthread",
                "-o",
                binary,
            ]
        )
        return run([*VALGRIND, binary] if mode == "valgrind" else [binary])

    yield "core", core
    for test in tests:
        yield test.stem, lambda test=test: program(test)


def header_tests(_, folder):
    for header in HEADERS:
        for compiler, standard, language in ((CC, "c99", "c"), (CC, "c11", "c"), (CXX, "c++11", "c++")):
            command = [*compiler, f"-std={standard}", "-x", language, *STRICT, *INCLUDE, "-fsyntax-only", header]
            yield f"{header.name} as {standard}", lambda command=command: run(command)

    def after_directml():
        binary = folder / "directml_first"
        run(
            [
                *CXX,
                "-std=c++11",
                *STRICT,
                *INCLUDE,
                HERE / "directml_first.cpp",
                *compile_core(folder, ["-O1"]),
                "-o",
                binary,
            ]
        )
        run([binary], CAPTURED)

    def capture(compiler, options):
        binary = folder / "capture"
        run([*compiler, *options, *STRICT, *MODES["asan"], *INCLUDE, HERE / "capture.c", "-o", binary])
        run([binary, HERE / "capture.c"])

    yield "dmlsplit_directml.h and dmlsplit_capture.h after DirectML.h", after_directml
    for compiler, standard, language in ((CC, "c99", "c"), (CXX, "c++11", "c++")):
        options = [f"-std={standard}", "-x", language]
        yield f"dmlsplit_capture.h, sanitized, as {standard}", lambda c=compiler, o=options: capture(c, o)


def example_tests(_, folder):
    def example():
        binary = folder / "split"
        run([*CC, *INCLUDE, ROOT / "examples" / "c" / "split.c", *SOURCES, "-o", binary])
        run([binary], EXAMPLE_OUTPUT)

    yield "examples/c/split.c", example


def fuzz_tests(_, folder):
    """One case: as many inputs as the time allows."""
    seconds = os.environ.get("FUZZ_SECONDS", "60")
    target = [HERE.parent / "fuzz" / "fuzz_plan.c", *SOURCES, *INCLUDE, "-std=c11", "-pthread", *MODES["asan"]]

    def fuzz():
        binary = folder / "fuzz_plan"
        try:
            run([*CC, *target, "-fsanitize=fuzzer", "-o", binary])
        except Failure:
            run([*CC, *target, "-DSTANDALONE", "-o", binary])
            return run([binary, seconds])
        said = run([binary, f"-max_total_time={seconds}", "-max_len=300"])
        return said.splitlines()[-1] + "\n"

    yield "any geometry", fuzz


DEFAULT = {
    "plain": core_tests,
    "asan": core_tests,
    "tsan": core_tests,
    "headers": header_tests,
    "example": example_tests,
}
SUITES = {**DEFAULT, "fuzz": fuzz_tests, "valgrind": core_tests}


def main(names):
    unknown = [name for name in names if name not in SUITES]
    if unknown:
        print(f"no such suite: {', '.join(unknown)}; there are {', '.join(SUITES)}", file=sys.stderr)
        return 2
    passed = failed = 0
    for suite in names or DEFAULT:
        with tempfile.TemporaryDirectory() as folder:
            for case, test in SUITES[suite](suite, Path(folder)):
                try:
                    said = test()
                except (Failure, OSError, subprocess.TimeoutExpired) as failure:
                    failed += 1
                    print(f"FAILED {suite}: {case}\n{failure}")
                else:
                    passed += 1
                    print(f"ok     {suite}: {case}")
                    if said:
                        print(said, end="")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
