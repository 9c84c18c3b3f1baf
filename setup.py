"""The extension's build, the version and the README of package indexes; everything else is in pyproject.toml."""

import os
import re
import runpy
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from setuptools import setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py

UNIX_FLAGS = ["-std=c11", "-O2", "-g0", "-fvisibility=hidden", "-Wall", "-Wextra", "-Wshadow", "-Wstrict-prototypes"]
MSVC_FLAGS = ["/std:c11", "/O2", "/W3"]


def stated(file, pattern):
    return re.search(pattern, (Path(__file__).parent / file).read_text(encoding="utf-8"))[1]


VERSION = stated("dmlsplit/_version.py", r'__version__: Final = "([^"]+)"')
NUMBERS = [
    stated("include/dmlsplit.h", rf"#define DMLSPLIT_VERSION_{name} (\d+)") for name in ("MAJOR", "MINOR", "PATCH")
]
if ".".join(NUMBERS) != VERSION:
    raise SystemExit("dmlsplit/_version.py and include/dmlsplit.h state different versions")


class BuildExt(build_ext):
    """Chooses flags when the compiler is known, which Extension() does not."""

    def build_extensions(self):
        msvc = self.compiler.compiler_type == "msvc"
        flags = list(MSVC_FLAGS if msvc else UNIX_FLAGS)
        if os.environ.get("DMLSPLIT_WERROR") == "1":
            flags.append("/WX" if msvc else "-Werror")
        for extension in self.extensions:
            extension.extra_compile_args = flags + extension.extra_compile_args
        if msvc:
            self.compiler.initialize()  # compile() would, in every thread
        self.compiler.compile = in_parallel(self.compiler.compile)
        super().build_extensions()


class BuildPy(build_py):
    """The wheel brings what C and C++ programs compile (see `dmlsplit config`), and recordings."""

    RECORDINGS = (
        *(f"oracle/{name}" for name in ("random", "boundary", "systematic", "execution", "execution-join")),
        "graphs/executions",
        "onnxruntime/whole",
    )
    """What `dmlsplit conformance` makes its cases of."""
    PATTERNS = ("CMakeLists.txt", "LICENSE", "include/*", "cmake/*", "csrc/*.[chi]*", "csrc/kernels/*", "layer/*")

    def run(self):
        super().run()
        if self.editable_mode:
            return  # the checkout itself is looked into
        root = Path(__file__).parent
        package = Path(self.build_lib) / "dmlsplit"
        for source in (path for pattern in self.PATTERNS for path in root.glob(pattern) if path.is_file()):
            self.copy_to(source, package / "c" / source.relative_to(root))
        for name in self.RECORDINGS:
            self.copy_to(
                root / f"tests/data/{name}.jsonl.xz", package / "conformance" / "recorded" / f"{name}.jsonl.xz"
            )
        for source in (root / "examples" / "conformance").iterdir():
            self.copy_to(source, package / "conformance" / "runners" / source.name)
        if os.environ.get("DMLSPLIT_PREBUILT") == "1" and sysconfig.get_platform() == "linux-x86_64":
            self.build_harness(root)

    def copy_to(self, source, target):
        self.mkpath(str(target.parent))
        self.copy_file(str(source), str(target))

    def build_harness(self, root):
        """The programs that ask DirectML: in wheels for Linux on x86-64, so that their users need no C++ compiler."""
        sys.path.insert(0, str(root))  # in an isolated build the package's sources are not on the path
        from dmlsplit.library.harness import TOOLCHAINS, compile_programs

        for name, tools in TOOLCHAINS.items():
            folder = Path(self.build_lib) / "dmlsplit" / "library" / "prebuilt" / name
            self.mkpath(str(folder))
            compile_programs(tools, root, folder, seconds=3600)  # zig makes its libraries first
            for path in folder.iterdir():
                if path.name not in tools.programs:  # zig writes import libraries beside DLLs
                    path.unlink()
        from dmlsplit.library.layer import compile_layers

        folder = Path(self.build_lib) / "dmlsplit" / "library" / "prebuilt" / "layer"
        self.mkpath(str(folder))
        compile_layers(root, folder)


def in_parallel(compile):
    """The same for many sources, which setuptools compiles one after the other."""

    def compile_all(sources, *args, **kwargs):
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            objects = pool.map(lambda source: compile([source], *args, **kwargs), sources)
            return [name for names in objects for name in names]

    return compile_all


README = runpy.run_path(str(Path(__file__).parent / "packaging" / "readme.py"))["on_index"](
    (Path(__file__).parent / "README.md").read_text(encoding="utf-8")
)
# cffi builds for the limited API by itself; only the wheel's tag has to be told. Free-threaded Python has no such API.
free_threaded = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))

setup(
    version=VERSION,
    long_description=README,
    long_description_content_type="text/markdown",
    cffi_modules=["csrc/ffi_build.py:ffi"],
    cmdclass={"build_ext": BuildExt, "build_py": BuildPy},
    options={} if free_threaded else {"bdist_wheel": {"py_limited_api": "cp311"}},
)
