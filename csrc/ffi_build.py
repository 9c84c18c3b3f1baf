"""Builds dmlsplit._ffi. cffi runs this file by its path from setup.py: it can import nothing of the package."""

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


ffi = FFI()
ffi.cdef(declarations(HEADER.read_text(encoding="utf-8")))
ffi.set_source(
    "dmlsplit._ffi",
    '#include "dmlsplit.h"',
    sources=listed("csrc/*.c", "csrc/*/*.c"),
    include_dirs=[str(ROOT / "include")],
    depends=listed("include/*.h", "csrc/*.h", "csrc/*.inc", "csrc/*/*.h", "csrc/*.py"),
)
