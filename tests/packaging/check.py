"""Packaging checks: metadata, files in the sdist, abi3 tag, exported symbols; the wheel installed.

Run by .ci/run: `python tests/packaging/check.py`; `full` installs the sdist on every Python there is, and makes wheels
for other systems (wheels.py) without the images and machines that cibuildwheel takes for them. Needs the packages
`build` and `twine` and an index to install from.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

from wheels import check_wheels  # beside this file

ROOT = Path(__file__).parents[2]
SMOKE = """
import dmlsplit as dml, numpy as np
d = dml.SplitOperatorDesc.from_lengths(dml.BufferTensorDesc(1, (1, 1, 6, 2)), 2, (2, 1, 3))
assert dml.validate(d).ok
assert [p.size for p in dml.compile(d)(np.zeros((1, 1, 6, 2), "f4"))] == [4, 2, 6]
"""


def run(*command: object, **options: object) -> str:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, **options)  # type: ignore[call-overload]
    if done.returncode:
        raise AssertionError(f"{' '.join(map(str, command))} failed:\n{done.stdout}\n{done.stderr}")
    return str(done.stdout)


def tracked_files() -> set[str]:
    return set(run("git", "ls-files", cwd=ROOT).split("\n")) - {""}


def check_sdist(sdist: Path) -> Iterator[str]:
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    # What a packager needs to build and test; the project's own automation stays in the repository.
    wanted = {name for name in tracked_files() if not name.startswith(".")}
    missing = wanted - names
    assert not missing, f"the sdist lacks {sorted(missing)}"
    yield "the sdist holds every tracked file"


def check_wheel(wheel: Path) -> Iterator[str]:
    if not sysconfig.get_config_var("Py_GIL_DISABLED"):
        assert "-cp311-abi3-" in wheel.name, wheel.name
        yield "the wheel is tagged cp311-abi3"
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        extensions = [name for name in names if Path(name).name.startswith("_ffi.") and not name.endswith(".pyi")]
        assert len(extensions) == 1, extensions
        assert not [name for name in names if name.startswith(("tests/", "csrc/", "benchmarks/"))]
        assert "dmlsplit/py.typed" in names
        for name in ("head.html.j2", "page.html.j2", "mended.html.j2", "notebook.html.j2", "style.css", "script.js"):
            assert f"dmlsplit/report/html/{name}" in names, name
        yield "the wheel holds the package and nothing else"
        c = {name.removeprefix("dmlsplit/c/") for name in names if name.startswith("dmlsplit/c/")}
        sources = ("include/", "csrc/", "cmake/", "layer/")
        wanted = {name for name in tracked_files() if name.startswith(sources) and not name.endswith(".py")}
        wanted = {name for name in wanted if not name.startswith("csrc/python/")} | {"CMakeLists.txt", "LICENSE"}
        assert c == wanted, c ^ wanted
        yield "the wheel holds what C programs compile"
        with tempfile.TemporaryDirectory() as folder:
            extension = archive.extract(extensions[0], folder)
            if shutil.which("nm") and sys.platform.startswith("linux"):
                lines = run("nm", "-D", "--defined-only", extension).splitlines()
                exported = {line.split()[-1] for line in lines}
                assert exported == {"PyInit__ffi"}, exported
                yield "the extension exports PyInit__ffi only"


def check_metadata(*files: Path) -> Iterator[str]:
    run(sys.executable, "-m", "twine", "check", "--strict", *files)
    yield "twine finds nothing wrong with the metadata"


def interpreters() -> dict[str, str]:
    """Version -> program, of every supported Python that is installed: on the path, or by pyenv."""
    supported = [f"3.{minor}" for minor in range(11, 15)]
    candidates = [path for version in supported if (path := shutil.which(f"python{version}"))]
    if shutil.which("pyenv"):
        root = Path(run("pyenv", "root").strip())
        candidates += [
            str(root / "versions" / name / "bin" / "python") for name in run("pyenv", "versions", "--bare").split()
        ]
    found = {".".join(map(str, sys.version_info[:2])): sys.executable}
    for candidate in candidates:
        asked = subprocess.run([candidate, "-V"], capture_output=True, text=True)  # pyenv's shims may lead nowhere
        version = re.match(r"Python (3\.\d+)\.\d+$", asked.stdout.strip())
        if asked.returncode == 0 and version and version[1] in supported:
            found.setdefault(version[1], candidate)
    return dict(sorted(found.items()))


def check_install(package: Path, interpreter: str, folder: Path) -> None:
    """Installs a wheel or an sdist into an empty environment and uses it from outside the sources."""
    environment = folder / "environment"
    run(interpreter, "-m", "venv", "--clear", environment)
    python = environment / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    run(python, "-m", "pip", "install", "--quiet", package)
    run(python, "-I", "-c", SMOKE, cwd=folder)
    run(python, "-I", "-m", "dmlsplit", "run", ROOT / "examples" / "split.json", cwd=folder)
    run(python.with_name("dmlsplit"), "--version", cwd=folder)
    words = shlex.split(run(python.with_name("dmlsplit"), "config", "--cflags", "--sources", "--libs", cwd=folder))
    if shutil.which("cc"):
        run("cc", ROOT / "examples" / "c" / "split.c", *words, "-o", folder / "split", cwd=folder)
        assert run(folder / "split").startswith("part 0:")


def check_wheel_install(wheel: Path, folder: Path) -> Iterator[str]:
    check_install(wheel, sys.executable, folder)
    yield "the wheel from the sdist works in an empty environment, with its command line"


def check_sdist_installs(sdist: Path, folder: Path) -> Iterator[str]:
    for version, interpreter in interpreters().items():
        check_install(sdist, interpreter, folder)
        yield f"the sdist does on Python {version}"


def main() -> int:
    passed = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        # A copy, so that no build folder of a developer gets into the sdist.
        source = folder / "source"
        for file in tracked_files():
            (source / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / file, source / file)
        run(sys.executable, "-m", "build", "--outdir", folder / "dist", source)
        (sdist,) = (folder / "dist").glob("*.tar.gz")
        (wheel,) = (folder / "dist").glob("*.whl")
        try:
            checks = (
                check_metadata(sdist, wheel),
                check_sdist(sdist),
                check_wheel(wheel),
                check_wheel_install(wheel, folder),
                *(
                    (check_sdist_installs(sdist, folder), check_wheels(sdist, folder, check_install))
                    if "full" in sys.argv[1:]
                    else ()
                ),
            )
            for check in checks:
                for line in check:
                    passed += 1
                    print(f"ok: {line}")
        except AssertionError as error:
            print(error, file=sys.stderr)
            print(f"{passed} passed, 1 failed")
            return 1
    print(f"{passed} passed, 0 failed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
