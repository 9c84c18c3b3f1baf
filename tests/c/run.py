"""Builds and runs the C tests.

    python tests/c/run.py [SUITE]...                    without arguments the first eight, which default stands for
    python tests/c/run.py --packages [SUITE]...         Debian's packages that the suites miss here, if any

    plain     test_*.c with the warnings as errors, optimised
    asan      the same under AddressSanitizer and UndefinedBehaviorSanitizer
    tsan      test_threads.c under ThreadSanitizer
    headers   each header alone as C99, C11 and C++11, and pointers.c; those of DirectML's structs after a DirectML.h;
              capture.c, which calls all of dmlsplit_capture.h, under the sanitizers; capture_graph.c, which is written
              for DirectML.h, without it, by gcc and clang from C99 to C++20
    cpp       test_hpp.cpp, which uses dmlsplit.hpp, as C++17 and C++20, under the sanitizers, without exceptions
    switches  test_execute.c with the instruction sets left out, by DMLSPLIT_NO_..., test_profile.c without measuring,
              test_kernels.c (and its bound of the stack) without optimisation; the core compiled for i386 without SSE,
              and as on macOS
    kernels   every kernel compiled at -O2, as the documentation says, is what -O3 makes of it, byte by byte; and all
              that streams copies on x86 fetches pages (gcc drops prefetches that it thinks have no effect)
    example   examples/c/*.c from the headers and csrc alone, with no flag but the include path
    fuzz      ../fuzz/fuzz_plan.c for $FUZZ_SECONDS (60), by libFuzzer where the compiler has it
    valgrind  test_*.c again, each under valgrind's memcheck, which knows instructions up to AVX2: minutes
    msan      test_kernels.c and test_execute.c by clang's MemorySanitizer, to which the inputs are undefined: that no
              branch and no address depends on them, in every kernel that this CPU has; it names those it loses sight of
    aarch64   test_*.c, capture.c and the example for 64-bit Arm, with NEON, under qemu; that neon.c has its stores past
              the caches and its prefetches
    s390x     the same for a big-endian machine
    mingw     the same for Windows, under wine, and capture_graph.c before and after windows.h
    zig       test_*.c and dmlsplit.hpp compiled for other systems by clang, of the package ziglang; test_*.c run where
              this system, wine or qemu can

The compilers are $CC and $CXX, or cc and c++; the suites from msan on have their own. Where a program is missing, its
Debian packages are named. As many cases run side by side as there are processors; they are said in order, each with
its time. A program that takes longer than $MOST_SECONDS (1200) is ended, and has failed. Exit status 1 where anything
failed, and where a test left out a kernel that could run.
"""

import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from building import (  # beside this file
    CC,
    CXX,
    HERE,
    INCLUDE,
    MODES,
    PTHREAD,
    ROOT,
    SOURCES,
    STRICT,
    TESTING,
    Failure,
    Mode,
    check_skipped,
    compile_core,
    compile_program,
    missing_parts,
    require_parts,
    run,
    run_built,
)

HEADERS = sorted(ROOT.glob("include/*.h"))
TESTS = sorted(HERE.glob("test_*.c"))
GRAPHS = HERE / "capture_graph.c"
CAPTURE = [ROOT / "csrc" / "dms_capture.c", ROOT / "csrc" / "dms_members.c"]
EXAMPLE = ROOT / "examples" / "c" / "split.c"
CAPTURED = (
    '{"Type": "DML_OPERATOR_SPLIT", "Desc": {"InputTensor": {"Type": "BUFFER", "Desc": {"DataType": "FLOAT32", '
    '"Flags": "NONE", "DimensionCount": 1, "Sizes": [3], "Strides": null, "TotalTensorSizeInBytes": 12, '
    '"GuaranteedBaseOffsetAlignment": 0}}, "OutputCount": 0, "OutputTensors": null, "Axis": 0}}\n'
)
EXAMPLE_OUTPUTS = {
    "split": "part 0: 1 2 3 4\npart 1: 5 6\npart 2: 7 8 9 10 11 12\n",
    "directml": "top:    0 1 2 3\nbottom: 4 5 6 7 8 9 10 11\n",
}


def core_tests(name, folder):
    """One case for each test program, and one for the core that they share."""
    mode = MODES[name]
    # The counters of the test hooks are no atomics, and test_threads does without them.
    flags = mode.flags if name == "tsan" else [*mode.flags, TESTING]
    only = {"tsan": {"test_threads"}, "msan": {"test_kernels", "test_execute"}}
    tests = [test for test in TESTS if test.stem in only.get(name, {test.stem})]

    def core():
        require_parts(mode)
        compile_core(flags, mode.compiler)

    def program(test):
        said = run_built(mode, compile_program(mode, flags, test, folder))
        check_skipped(mode, said)
        return said

    yield "core", core
    for test in tests:
        yield test.stem, lambda test=test: program(test)


def cross_tests(name, folder):
    """The core's tests, and that other machines write what this one does."""
    mode = MODES[name]

    def capture():
        here, there = folder / "here", folder / "there.exe"
        options = ["-std=c99", *STRICT, *INCLUDE, HERE / "capture.c", *CAPTURE]
        run([*CC, *options, "-o", here])
        run([*mode.compiler, *mode.flags, *options, "-o", there])
        run_built(mode, there, HERE / "capture.c", expected_output=run([here, HERE / "capture.c"]))

    def among_windows_headers():
        here, there = folder / "graphs", folder / "graphs.exe"
        run([*CC, "-std=c99", *STRICT, *INCLUDE, GRAPHS, *CAPTURE, "-o", here])
        expected = run([here, GRAPHS])
        for standard, language in (("c99", "c"), ("c11", "c"), ("c++11", "c++"), ("c++20", "c++")):
            for place in ([], ["-DCAPTURE_BEFORE_WINDOWS"], ["-DCAPTURE_AFTER_WINDOWS"]):
                options = [f"-std={standard}", "-x", language, *STRICT, *place, *INCLUDE]
                run([*mode.compiler, *mode.flags, *options, GRAPHS, *CAPTURE, "-o", there])
                run_built(mode, there, GRAPHS, expected_output=expected)

    def words_of_arm():
        listing = folder / "neon.s"
        run([*mode.compiler, "-std=c11", "-O2", *INCLUDE, "-S", ROOT / "csrc" / "kernels" / "neon.c", "-o", listing])
        missing = [
            word for word in ("stnp", "pldl1keep", "pldl2keep", "pstl1keep") if word not in listing.read_text().lower()
        ]
        if missing:
            raise Failure(f"neon.c has no {', '.join(missing)}")

    def example():
        binary = folder / "split.exe"
        run([*mode.compiler, *mode.flags, *INCLUDE, EXAMPLE, *SOURCES, "-o", binary])
        run_built(mode, binary, expected_output=EXAMPLE_OUTPUTS["split"])

    yield from core_tests(name, folder)
    yield "capture.c", capture
    if name == "aarch64":
        yield "neon.c streams, and prefetches what it reads and writes", words_of_arm
    if name == "mingw":
        yield "capture_graph.c before and after windows.h", among_windows_headers
    yield "examples/c/split.c", example


def header_tests(_, folder):
    for source in (*HEADERS, HERE / "pointers.c"):
        for compiler, standard, language in ((CC, "c99", "c"), (CC, "c11", "c"), (CXX, "c++11", "c++")):
            command = [*compiler, f"-std={standard}", "-x", language, *STRICT, *INCLUDE, "-fsyntax-only", source]
            yield f"{source.name} as {standard}", lambda command=command: run(command)

    def after_directml():
        binary = folder / "directml_first"
        run(
            [
                *CXX,
                "-std=c++11",
                *STRICT,
                *INCLUDE,
                HERE / "directml_first.cpp",
                *compile_core([*MODES["plain"].flags, TESTING]),
                "-o",
                binary,
            ]
        )
        run([binary], CAPTURED)

    def capture(compiler, options, standard):
        binary = folder / f"capture-{standard}"
        run([*compiler, *options, *STRICT, *MODES["asan"].flags, *INCLUDE, HERE / "capture.c", *CAPTURE, "-o", binary])
        run([binary, HERE / "capture.c"])

    def graphs(compilers, name):
        """The same lines by every compiler and standard; tests/test_capture.py reads them."""
        said = set()
        for compiler, language, standards in compilers:
            for standard in standards:
                binary = folder / f"capture_graph-{name}"
                command = [*compiler, f"-std={standard}", "-x", language, *STRICT, *INCLUDE]
                run([*command, GRAPHS, *CAPTURE, "-o", binary])
                said.add(run([binary, GRAPHS]))
        if len(said) != 1:
            raise Failure(f"{len(said)} different outputs")

    yield "dmlsplit_directml.h and dmlsplit_capture.h after DirectML.h", after_directml
    for compiler, standard, language in ((CC, "c99", "c"), (CXX, "c++11", "c++")):
        options = [f"-std={standard}", "-x", language]
        yield (
            f"dmlsplit_capture.h, sanitized, as {standard}",
            partial(capture, compiler, options, standard),
        )
    found = {"the compilers": (CC, CXX)}
    if shutil.which("clang") and shutil.which("clang++"):
        found["clang"] = (["clang"], ["clang++"])
    for name, (c, cpp) in found.items():
        compilers = [(c, "c", ("c99", "c11", "c17")), (cpp, "c++", ("c++11", "c++14", "c++17", "c++20"))]
        yield f"graphs without DirectML.h, by {name}", partial(graphs, compilers, name)


def cpp_tests(_, folder):
    def test(standard):
        objects = compile_core([*MODES["asan"].flags, TESTING])
        binary = folder / f"test_hpp-{standard}"
        options = [f"-std={standard}", "-fno-exceptions", *STRICT, *MODES["asan"].flags, *INCLUDE]
        for order in ([], ["-DHPP_FIRST"]):
            run([*CXX, *options, *order, HERE / "test_hpp.cpp", *objects, "-pthread", "-o", binary])
            run([binary])

    def as_cpp():
        """What each source of the core says that is compiled as C++: one error, and why."""
        for source in SOURCES:
            done = subprocess.run(
                [*CXX, "-x", "c++", *INCLUDE, "-c", source, "-o", folder / "none.o"], capture_output=True, text=True
            )
            errors = [line for line in done.stderr.splitlines() if re.search(r"\berror:", line)]
            assert not errors or ("#error" in done.stderr and len(errors) <= 2), done.stderr

    for standard in ("c++17", "c++20"):
        yield f"test_hpp.cpp as {standard}", lambda standard=standard: test(standard)
    yield "the core's sources as C++: one error", as_cpp


def switch_tests(_, folder):
    def test(name):
        mode = Mode(["-O1", TESTING, f"-DDMLSPLIT_NO_{name}"])
        run([compile_program(mode, mode.flags, HERE / "test_execute.c", new_folder(folder, name))])

    def unmeasured():
        mode = MODES["plain"]
        flags = [*mode.flags, TESTING, "-DDMLSPLIT_MEASURE=0"]
        run_built(mode, compile_program(mode, flags, HERE / "test_profile.c", folder))

    def bare_i386():
        """The system's headers may be those of 64 bits only: what they lack is empty."""
        (folder / "gnu").mkdir()
        (folder / "gnu" / "stubs-32.h").touch()
        command = [
            *CC,
            "-std=c11",
            "-m32",
            "-march=i686",
            "-O1",
            "-Werror=int-to-pointer-cast",
            *INCLUDE,
            "-isystem",
            folder,
        ]
        multiarch = ["-isystem", f"/usr/include/{platform.machine()}-linux-gnu"]
        for source in SOURCES:
            run([*command, *multiarch, "-c", source, "-o", folder / "bare.o"])

    def macos():
        source = folder / "isa.c"
        source.write_text('#include "dms_internal.h"\nint avx2 = DMS_AVX2, avx512 = DMS_AVX512;\n')
        command = [*CC, "-E", *INCLUDE, "-I", ROOT / "csrc", source]
        for flags, expected in ([], "avx2 = 1, avx512 = 1;"), (["-D__APPLE__"], "avx2 = 1, avx512 = 0;"):
            if expected not in run([*command, *flags]):
                raise Failure(f"{shlex.join(flags)}: not {expected}")

    for name in ("AVX512", "AVX2", "SSSE3", "NEON"):
        yield f"without {name}", lambda name=name: test(name)
    yield "without measuring", unmeasured

    def unoptimised():
        mode = MODES["plain"]._replace(flags=["-O0"])
        flags = [*mode.flags, TESTING, "-DFEW_CASES"]
        return run_built(mode, compile_program(mode, flags, HERE / "test_kernels.c", folder))

    yield "without optimisation", unoptimised
    if platform.machine() in ("x86_64", "AMD64"):
        yield "i386 without SSE", bare_i386
        yield "macOS without AVX512", macos


def kernel_tests(_, folder):
    """gcc keeps arrays of vectors in registers at -O3 only: the sources have to ask for it."""

    def same(source):
        objects = {level: folder / f"{source.stem}{level}.o" for level in ("-O2", "-O3")}
        for level, target in objects.items():
            run([*CC, "-std=c11", level, *INCLUDE, "-c", source, "-o", target])
        if objects["-O2"].read_bytes() != objects["-O3"].read_bytes():
            raise Failure(f"{source}: -O2 and -O3 give different code")

    def fetches_pages(source):
        target = folder / f"{source.stem}.o"
        run([*CC, "-std=c11", "-O2", *INCLUDE, "-c", source, "-o", target])
        listing = run(["objdump", "--disassemble", "--no-show-raw-insn", target])
        code = dict(re.findall(r"<(\w+)[\w.]*>:\n(.*?)(?:\n\n|\Z)", listing, re.DOTALL))
        streaming = {name for name, text in code.items() if re.search(r"\sv?movnt", text)}
        # Transposed matrices fetch the rows of their next tile in another function than store some squares.
        # Parts that are joined keep several pages open.
        excepted = re.compile(r"transpose_(?!squares)|drain_|join_")
        without = {name for name in streaming if "prefetcht1" not in code[name] and not excepted.match(name)}
        if without or not streaming:
            raise Failure(f"{source}: {', '.join(sorted(without)) or 'nothing'} streams, and fetches no pages")

    for source in SOURCES:
        if source.parent.name == "kernels":
            yield source.name, lambda source=source: same(source)
    if platform.machine() in ("x86_64", "AMD64"):
        for name in ("ssse3", "avx2", "avx512", "avx512vbmi"):
            source = ROOT / "csrc" / "kernels" / f"{name}.c"
            yield f"{name}.c fetches pages", lambda source=source: fetches_pages(source)


def example_tests(_, folder):
    def example(name):
        binary = folder / name
        run([*CC, *INCLUDE, ROOT / "examples" / "c" / f"{name}.c", *SOURCES, "-o", binary])
        run([binary], EXAMPLE_OUTPUTS[name])

    for name in EXAMPLE_OUTPUTS:
        yield f"examples/c/{name}.c", lambda name=name: example(name)


def fuzz_tests(_, folder):
    """One case: as many inputs as the time allows, which begins when all is compiled."""
    seconds = os.environ.get("FUZZ_SECONDS", "60")
    source = HERE.parent / "fuzz" / "fuzz_plan.c"
    flags = [*MODES["asan"].flags, TESTING]

    def has_libfuzzer():
        probe = folder / "probe.c"
        probe.write_text("int LLVMFuzzerTestOneInput(const char *data) { return data == 0; }\n")
        try:
            run([*CC, probe, "-fsanitize=fuzzer", "-o", folder / "probe"])
        except Failure:
            return False
        return True

    def fuzz():
        binary = folder / "fuzz_plan"
        command = [*CC, "-std=c11", *flags, *INCLUDE, "-I", ROOT / "csrc", *PTHREAD, "-o", binary, source]
        if not has_libfuzzer():
            run([*command, "-DSTANDALONE", *compile_core(flags)])
            return run([binary, seconds])
        run([*command, "-fsanitize=fuzzer", *compile_core([*flags, "-fsanitize=fuzzer-no-link"])])
        said = run([binary, f"-max_total_time={seconds}", "-max_len=300"])
        return said.splitlines()[-1] + "\n"

    yield "any geometry", fuzz


WINE = ["wine"]
QEMU_ARM = ["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu"]
ZIG_TARGETS = {
    "x86-windows-gnu": WINE,
    "x86_64-windows-gnu": WINE,
    "aarch64-windows-gnu": [],
    "aarch64-macos": [],
    "x86_64-linux-gnu.2.17": ["qemu-x86_64"],
    "x86_64-linux-musl": ["qemu-x86_64"],
    "aarch64-linux-gnu.2.17": QEMU_ARM,
    "aarch64-linux-musl": QEMU_ARM,
}
"""And what may run their programs on another machine."""


def zig_tests(_, folder):
    zig = [sys.executable, "-m", "ziglang"]

    def runs(mode, folder):
        """Whether this machine can run such programs, itself or by what stands for it."""
        if mode.runner and shutil.which(mode.runner[0]) is None:
            return False
        probe = folder / "probe.c"
        probe.write_text("int main(void) { return 0; }\n")
        run([*mode.compiler, *mode.flags, probe, "-o", folder / "probe.exe"])
        try:
            run_built(mode, folder / "probe.exe")
        except (Failure, OSError):
            return False
        return True

    def target(name):
        programs = folder / name
        programs.mkdir()
        machine, system, *_ = name.split("-")
        native = (machine, system) == (platform.machine(), sys.platform)
        mode = Mode(["-target", name, "-O2", "-fno-sanitize=all"], [*zig, "cc"], [] if native else ZIG_TARGETS[name])
        flags = [*mode.flags, TESTING]
        binaries = [compile_program(mode, flags, test, programs) for test in TESTS]
        command = [*zig, "c++", "-std=c++17", *STRICT, *mode.flags, *INCLUDE, "-c", HERE / "test_hpp.cpp"]
        run([*command, "-o", programs / "test_hpp.o"])
        if not (native or mode.runner) or not runs(mode, programs):
            return f"       {len(binaries)} programs linked; nothing here runs them\n"
        for binary in binaries:
            check_skipped(mode, run_built(mode, binary))
        return f"       {len(binaries)} programs run{' by ' + mode.runner[0] if mode.runner else ''}\n"

    for name in ZIG_TARGETS:
        yield name, lambda name=name: target(name)


DEFAULT = {
    "plain": core_tests,
    "asan": core_tests,
    "tsan": core_tests,
    "headers": header_tests,
    "cpp": cpp_tests,
    "switches": switch_tests,
    "kernels": kernel_tests,
    "example": example_tests,
}
SUITES = {
    **DEFAULT,
    "fuzz": fuzz_tests,
    "valgrind": core_tests,
    "msan": core_tests,
    "aarch64": cross_tests,
    "s390x": cross_tests,
    "mingw": cross_tests,
    "zig": zig_tests,
}


def main(names):
    only_packages = names[:1] == ["--packages"]
    names = [n for name in names[only_packages:] for n in (DEFAULT if name == "default" else [name])]
    unknown = [name for name in names if name not in SUITES]
    if unknown:
        print(f"no such suite: {', '.join(unknown)}; there are default, {', '.join(SUITES)}", file=sys.stderr)
        return 2
    if only_packages:
        packages = [MODES[name].packages for name in names if name in MODES and missing_parts(MODES[name])]
        print(" ".join(packages))
        return 0
    passed = failed = 0
    with ThreadPoolExecutor(os.cpu_count()) as pool, tempfile.TemporaryDirectory() as root:
        running = [
            (suite, case, pool.submit(timed, test))
            for number, suite in enumerate(names or DEFAULT)
            for case, test in SUITES[suite](suite, new_folder(root, f"{number}-{suite}"))
        ]
        for suite, case, result in running:
            try:
                said, seconds = finished(result, pool)
            except (Failure, OSError, subprocess.TimeoutExpired) as failure:
                failed += 1
                print(f"FAILED {suite}: {case}\n{failure}", flush=True)
            else:
                passed += 1
                print(f"ok     {suite}: {case}, {seconds:.0f} s", flush=True)
                if said:
                    print(said, end="", flush=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


def new_folder(root, name):
    folder = Path(root) / name
    folder.mkdir()
    return folder


def finished(result, pool):
    """A case's result; an interrupt begins no other case."""
    try:
        return result.result()
    except KeyboardInterrupt:
        pool.shutdown(cancel_futures=True)
        raise


def timed(test):
    """What a case said, and in how many seconds."""
    began = time.monotonic()
    said = test()
    return said, time.monotonic() - began


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
