"""Builds dmlsplit._ffi. cffi runs this file by its path from setup.py: it can import nothing of the package."""

import sysconfig
from pathlib import Path

from cffi import FFI

HERE = Path(__file__).parent  # relative to setup.py, as setuptools wants its sources
ROOT = HERE.parent
HEADER = ROOT / "include" / "dmlsplit.h"


def declarations(header: str) -> str:
    """The header's text between its markers, which is plain C but for the export macro."""
    _, _, rest = header.partition("/* cffi: begin */")
    text, end, _ = rest.partition("/* cffi: end */")
    if not end:
        raise ValueError(f"{HEADER}: the cffi markers are missing")
    return text.replace("DMLSPLIT_API ", "")


def listed(*patterns: str) -> list[str]:
    return sorted(str(path) for pattern in patterns for path in ROOT.glob(pattern))


# The buffer protocol is in the limited API from 3.11 on. Free-threaded Python has no limited API.
LIMITED_API = [] if sysconfig.get_config_var("Py_GIL_DISABLED") else [("Py_LIMITED_API", "0x030B0000")]

ffi = FFI()
ffi.cdef(declarations(HEADER.read_text(encoding="utf-8")))
ffi.cdef((HERE / "python" / "dispatch.cdef").read_text(encoding="utf-8"))
ffi.set_source(
    "dmlsplit._ffi",
    '#include "dmlsplit.h"\n#include "dispatch.h"',
    sources=listed("csrc/*.c", "csrc/*/*.c"),
    include_dirs=[str(ROOT / "include"), str(HERE / "python")],
    depends=listed("include/*.h", "csrc/*.h", "csrc/*.inc", "csrc/*/*.h", "csrc/*/*.cdef", "csrc/*.py"),
    define_macros=LIMITED_API,
)
