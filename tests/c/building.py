"""Compilers, emulators, and how a C test program is built and run by them: what the suites of run.py share."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from threading import Lock
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
CC = shlex.split(os.environ.get("CC", "cc"))
CXX = shlex.split(os.environ.get("CXX", "c++"))
MOST_SECONDS = float(os.environ.get("MOST_SECONDS", "1200"))
INCLUDE = ["-I", str(ROOT / "include")]
SOURCES = sorted(ROOT.glob("csrc/*.c")) + sorted(ROOT.glob("csrc/*/*.c"))

STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wundef", "-Werror"]
STRICT_C = [*STRICT, "-Wstrict-prototypes", "-Wmissing-prototypes"]
CORE_ONLY = ["-Wconversion"]
PTHREAD = ["-pthread"]
TESTING = "-DDMS_TESTING"


class Mode(NamedTuple):
    """How test programs are built and run."""

    flags: list[str]
    compiler: list[str] = CC
    runner: list[str] = []
    packages: str = ""
    """Debian's, for the compiler and the runner."""


MODES = {
    "plain": Mode(["-O2"]),
    "asan": Mode(["-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer"]),
    "tsan": Mode(["-O1", "-g", "-fsanitize=thread"]),
    "valgrind": Mode(
        ["-O1", "-g", "-DWITH_MEMCHECK", "-DFEW_CASES"],
        runner=["valgrind", "--quiet", "--error-exitcode=99", "--leak-check=full"],
        packages="valgrind",
    ),
    # Clang has it, gcc does not. Without -O3 in the kernels: sanitizers make several times the code of it.
    "msan": Mode(
        ["-O1", "-g", "-fsanitize=memory", "-fno-sanitize-recover=all", "-DWITH_MSAN", "-DFEW_CASES"],
        compiler=["clang"],
        packages="clang libclang-rt-dev",
    ),
    "aarch64": Mode(
        ["-O2", "-static"],
        ["aarch64-linux-gnu-gcc"],
        ["qemu-aarch64"],
        "gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user",
    ),
    "s390x": Mode(
        ["-O2", "-static"],
        ["s390x-linux-gnu-gcc"],
        ["qemu-s390x"],
        "gcc-s390x-linux-gnu libc6-dev-s390x-cross qemu-user",
    ),
    # gcc for Windows aligns the stack to 16 bytes and yet moves wider vectors there as if they were aligned (its bug
    # 54412), unless the assembler puts that right. Debian's gcc does by itself.
    "mingw": Mode(
        ["-O2", "-static", "-Wa,-muse-unaligned-vector-move", "-D__USE_MINGW_ANSI_STDIO=1"],
        ["x86_64-w64-mingw32-gcc"],
        ["wine"],
        "g++-mingw-w64-x86-64-win32 wine",
    ),
}
CPU_FLAGS = {"ssse3": "ssse3", "avx2": "avx2", "avx512": "avx512bw", "avx512vbmi": "avx512_vbmi", "neon": "asimd"}
"""Of /proc/cpuinfo, for the instruction sets that kernels are made for."""


class Failure(Exception):
    """A command that did not do what it should; the text says which and how."""


def run(command, expected_output=None, variables=None):
    command = [str(word) for word in command]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=MOST_SECONDS, env={**os.environ, **(variables or {})}
    )
    said = done.stdout + done.stderr
    if done.returncode != 0:
        raise Failure(f"$ {shlex.join(command)}\nexit status {done.returncode}\n{said}")
    if expected_output is not None and done.stdout != expected_output:
        raise Failure(f"$ {shlex.join(command)}\nexpected:\n{expected_output}printed:\n{said}")
    return said


@cache
def build_folder():
    """Objects of the core, for all suites of this run; removed at its end."""
    return tempfile.TemporaryDirectory()


@cache
def compile_all(flags, compiler):
    folder = Path(tempfile.mkdtemp(dir=build_folder().name))

    def compile_one(source):
        target = folder / f"{source.stem}.o"
        run([*compiler, "-std=c11", *STRICT_C, *CORE_ONLY, *flags, *INCLUDE, "-c", source, "-o", target])
        return target

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(compile_one, SOURCES))


ONCE = Lock()
"""Held while something is made that all cases share, also those that run side by side."""


def compile_core(flags, compiler=CC):
    """Objects of the core; what is compiled alike is compiled once."""
    with ONCE:
        return compile_all(tuple(flags), tuple(compiler))


@cache
def wine_variables():
    sys.path.insert(0, str(ROOT))
    from dmlsplit.library import places, wine

    return wine.environment(places.cache_folder().absolute() / "wine")


def run_built(mode, binary, *arguments, expected_output=None):
    variables = None
    if mode.runner == ["wine"]:
        with ONCE:
            variables = wine_variables()
    return run([*mode.runner, binary, *arguments], expected_output, variables)


def missing_parts(mode):
    """The compiler, what it needs to build a program (Debian has headers and libraries in packages of their own), and
    the runner, as far as they are not there."""
    missing = [program for program in [*mode.compiler[:1], *mode.runner[:1]] if shutil.which(program) is None]
    if mode.compiler[0] not in missing and not can_build(mode):
        missing.append(f"headers or libraries for {shlex.join([*mode.compiler, *mode.flags])}")
    return missing


def can_build(mode):
    program = '#include <stdio.h>\nint main(void) { return puts("") < 0; }\n'
    with tempfile.TemporaryDirectory() as folder:
        command = [*mode.compiler, *mode.flags, "-x", "c", "-", "-o", f"{folder}/probe"]
        return subprocess.run(command, input=program, capture_output=True, text=True).returncode == 0


def require_parts(mode):
    missing = missing_parts(mode)
    if missing:
        raise Failure(f"not found: {', '.join(missing)}; on Debian: apt-get install {mode.packages or 'gcc'}")


def check_skipped(mode, said):
    """Nothing may pass because it never ran: test_kernels names kernels whose instructions it found missing, and
    test_threads says where children start no threads, which only emulators and sanitizers may be the reason of."""
    try:
        here = set(re.findall(r"\S+", Path("/proc/cpuinfo").read_text()))
    except OSError:
        here = set()
    for kernel, isa in re.findall(r"^SKIPPED kernel (\S+): this CPU lacks (\S+)", said, re.MULTILINE):
        runner = "".join(mode.runner[:1])
        lacking = CPU_FLAGS[isa] not in here or (runner == "valgrind" and isa.startswith("avx512"))
        if runner.startswith("qemu") or not lacking:
            raise Failure(f"the kernel {kernel} never ran, though there is {isa}")
    sanitized = any(flag.startswith("-fsanitize") for flag in mode.flags)
    if "no children of fork()" in said and not mode.runner and not sanitized:
        raise Failure("no child was forked, though children can start threads here")


def compile_program(mode, flags, test, folder):
    binary = folder / f"{test.stem}.exe"
    options = ["-std=c11", *STRICT_C, *flags, *INCLUDE, "-I", ROOT / "csrc"]
    run([*mode.compiler, *options, test, *compile_core(flags, mode.compiler), *PTHREAD, "-o", binary])
    return binary
