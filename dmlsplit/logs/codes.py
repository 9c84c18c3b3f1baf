"""Names of HRESULTs, and of the NTSTATUSes that end a process.

Sources: winerror.h, dxgi's and D3D12's error pages at learn.microsoft.com, corerror.h, ntstatus.h.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dmlsplit.descriptors.enums import HResult

NAMES: Final[Mapping[int, str]] = {
    **{int(code): code.name for code in HResult},
    0x80004001: "E_NOTIMPL",
    0x80004003: "E_POINTER",
    0x80004004: "E_ABORT",
    0x80004005: "E_FAIL",
    0x80040154: "REGDB_E_CLASSNOTREG",
    0x80070002: "ERROR_FILE_NOT_FOUND",
    0x80070003: "ERROR_PATH_NOT_FOUND",
    0x80070005: "E_ACCESSDENIED",
    0x80070006: "E_HANDLE",
    0x80070032: "ERROR_NOT_SUPPORTED",
    0x8007007E: "ERROR_MOD_NOT_FOUND",
    0x8007007F: "ERROR_PROC_NOT_FOUND",
    0x800700C1: "ERROR_BAD_EXE_FORMAT",
    0x80131500: "COR_E_EXCEPTION",
    0x887A0001: "DXGI_ERROR_INVALID_CALL",
    0x887A0002: "DXGI_ERROR_NOT_FOUND",
    0x887A0003: "DXGI_ERROR_MORE_DATA",
    0x887A0006: "DXGI_ERROR_DEVICE_HUNG",
    0x887A0007: "DXGI_ERROR_DEVICE_RESET",
    0x887A000A: "DXGI_ERROR_WAS_STILL_DRAWING",
    0x887A000B: "DXGI_ERROR_FRAME_STATISTICS_DISJOINT",
    0x887A0020: "DXGI_ERROR_DRIVER_INTERNAL_ERROR",
    0x887A0021: "DXGI_ERROR_NONEXCLUSIVE",
    0x887A0022: "DXGI_ERROR_NOT_CURRENTLY_AVAILABLE",
    0x887A0026: "DXGI_ERROR_ACCESS_LOST",
    0x887A0027: "DXGI_ERROR_WAIT_TIMEOUT",
    0x887A0028: "DXGI_ERROR_SESSION_DISCONNECTED",
    0x887A002B: "DXGI_ERROR_ACCESS_DENIED",
    0x887A002C: "DXGI_ERROR_NAME_ALREADY_EXISTS",
    0x887E0001: "D3D12_ERROR_ADAPTER_NOT_FOUND",
    0x887E0002: "D3D12_ERROR_DRIVER_VERSION_MISMATCH",
    0x887E0003: "D3D12_ERROR_INVALID_REDIST",
    0xC0000005: "STATUS_ACCESS_VIOLATION",
    0xC000001D: "STATUS_ILLEGAL_INSTRUCTION",
    0xC00000FD: "STATUS_STACK_OVERFLOW",
    0xC0000135: "STATUS_DLL_NOT_FOUND",
    0xC0000142: "STATUS_DLL_INIT_FAILED",
    0xC0000409: "STATUS_STACK_BUFFER_OVERRUN (__fastfail)",
}
"""Maps each code, unsigned, to its name."""
SENTENCES: Final[Mapping[str, int]] = {
    "The GPU device instance has been suspended": 0x887A0005,
    "The GPU will not respond to more commands, most likely because of an invalid command": 0x887A0006,
    "The GPU will not respond to more commands, most likely because some other application": 0x887A0007,
    "The driver encountered a problem and was put into the device removed state": 0x887A0020,
    "The specified device interface or feature level is not supported on this system": 0x887A0004,
    "The application made a call that is invalid": 0x887A0001,
    "Not enough memory resources are available to complete this operation": 0x8007000E,
    "The parameter is incorrect": 0x80070057,
    "No such interface supported": 0x80004002,
    "Catastrophic failure": 0x8000FFFF,
    "The specified module could not be found": 0x8007007E,
}
"""Maps Windows' message for a code to the code, for logs that contain the message but no number."""
FACILITIES: Final[Mapping[int, str]] = {
    0x007: "Windows",
    0x013: ".NET",
    0x87A: "DXGI",
    0x87B: "the DXGI device driver",
    0x87C: "Direct3D 11",
    0x87E: "Direct3D 12",
}
"""Maps bits 16 to 27 of an HRESULT to the component that defines the code."""


def named(code: int) -> str:
    """Returns the name of an HRESULT or NTSTATUS, or text that names its facility; "" if nothing is known."""
    if code in NAMES:
        return NAMES[code]
    facility = FACILITIES.get(code >> 16 & 0xFFF)
    if facility is None or code >> 28 != 8:
        return ""
    return f"error {code & 0xFFFF} of {facility}"
