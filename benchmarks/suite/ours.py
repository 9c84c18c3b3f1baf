"""dmlsplit as a contestant."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

import dmlsplit as dml
from suite.builds import ISA_LEVELS
from suite.contest import Buffers, Job, Prepare, Unsupported
from suite.installed import core


class Ours:
    """Plans as the package makes them, or with a kernel or up to an instruction set, or without a kernel."""

    def __init__(self, kernel: str | None = None, isa: str | None = None, without: str | None = None) -> None:
        self.kernel = kernel
        self.isa = isa
        self.without = without

    @property
    def widest_isa(self) -> str:
        """The widest level that may be used."""
        if self.isa is not None:
            return self.isa
        features = core.cpu_features()
        return next((level for level in reversed(ISA_LEVELS) if level in features), "any")

    def plan(self, buffers: Buffers) -> Any:
        """Raises Unsupported where the kernel that was asked for refuses."""
        if self.kernel is not None:
            return self._plan(buffers, self.kernel)
        if self.isa is None:
            return self._plan(buffers, None)
        allowed = ISA_LEVELS[: ISA_LEVELS.index(self.isa) + 1]
        for kernel in core.kernels():
            if kernel.isa in allowed and kernel.available and kernel.name != self.without:
                try:
                    return self._plan(buffers, kernel.name)
                except Unsupported:
                    continue
        raise Unsupported(f"no kernel up to {self.isa}")

    def _plan(self, buffers: Buffers, kernel: str | None) -> Any:
        case = buffers.case
        try:
            return core.Plan(
                core.JOIN if case.join else core.SPLIT,
                buffers.whole.dtype.itemsize,
                buffers.whole.shape,
                buffers.whole.strides,
                case.axis,
                case.pieces,
                [stride for part in buffers.parts for stride in part.strides],
                kernel=kernel,
            )
        except dml.NativeError as error:
            raise Unsupported(str(error)) from error

    def bound(self, threads: int) -> Prepare:
        """A plan with its pointers resolved: what BoundOperator.dispatch calls."""

        def prepare(buffers: Buffers) -> Job:
            plan = self.plan(buffers)
            run, arguments = plan.bound_call(_pointer(buffers.whole), _vector(buffers.parts), threads)

            def dispatch() -> None:
                run(*arguments)

            return Job(dispatch)

        return prepare


def fresh(threads: int) -> Prepare:
    """dml.split and dml.join."""

    def prepare(buffers: Buffers) -> Job:
        case, whole, parts = buffers.case, buffers.whole, buffers.parts
        if case.join:
            return Job(lambda: dml.join(parts, case.axis), lambda result: [result])
        return Job(lambda: dml.split(whole, case.axis, case.pieces), lambda result: result)

    return prepare


def kernels_named(description: str) -> str:
    """The kernels of plan.describe(), each once, in its order."""
    return ", ".join(dict.fromkeys(re.findall(r"kernel (\w+)", description)))


def _pointer(array: np.ndarray) -> object:
    return core.address(array.__array_interface__["data"][0])


def _vector(parts: list[np.ndarray]) -> object:
    return core.pointers([_pointer(part) for part in parts])
