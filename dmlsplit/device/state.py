"""The state that the objects of one device share: its build, whether it has been removed, and how it reports."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import NoReturn

from dmlsplit.descriptors.diagnostics import Diagnostic, DirectMLError, Report
from dmlsplit.descriptors.enums import HResult
from dmlsplit.descriptors.location import Location
from dmlsplit.rules.device import BUILD_NOT_OBSERVED
from dmlsplit.targets.releases import Release


class State:
    """Holds a device's state; `on_warning` is called with a Diagnostic for each misuse that DirectML does not
    report."""

    def __init__(self, release: Release, judged_by: str, on_warning: Callable[[Diagnostic], object]) -> None:
        self.release = release
        self.judged_by = judged_by
        self.on_warning = on_warning
        self.removed_reason: Report | None = None
        self.lock = threading.Lock()

    def report(self, diagnostics: Sequence[Diagnostic], hresult: int | None, operator: str | None) -> Report:
        """Returns a report about compiling or a later step; if the build's behaviour there was never recorded, it says
        so."""
        if not self.release.compiling_observed:
            rule = BUILD_NOT_OBSERVED
            diagnostics = [*diagnostics, rule.diagnostic(Location(), rule.explanation)]
        return Report(tuple(diagnostics), self.judged_by, hresult, operator)

    def fail(self, hresult: int, found: Diagnostic, operator: str | None) -> NoReturn:
        """Raises DirectMLError with this HRESULT and a report of one violation."""
        raise DirectMLError(hresult, self.report([found], hresult, operator))

    def refuse(self, diagnostics: Sequence[Diagnostic], operator: str | None) -> NoReturn:
        """Raises DirectMLError without an HRESULT, with a report of these diagnostics, because DirectML's own behaviour
        is undefined."""
        raise DirectMLError(None, self.report(diagnostics, None, operator))

    def remove(self, diagnostics: Sequence[Diagnostic], operator: str | None) -> None:
        """Removes the device; if it was removed before, the earlier reason stays."""
        with self.lock:
            if self.removed_reason is None:
                self.removed_reason = self.report(diagnostics, HResult.DXGI_ERROR_DEVICE_REMOVED, operator)

    def require(self) -> None:
        """Raises DirectMLError if the device was removed."""
        if self.removed_reason is not None:
            raise DirectMLError(HResult.DXGI_ERROR_DEVICE_REMOVED, self.removed_reason)
