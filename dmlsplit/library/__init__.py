"""Asks the real libraries: DirectML about any operator or graph, ONNX Runtime about a model.

    import dmlsplit as dml

    dml.library.add("torch-directml-0.2.5.dev240914")
    print(dml.library.ask(dml.AnyOperatorDesc("CAST", {"InputTensor": x, "OutputTensor": y})))

DirectML judges descriptors on the CPU. A small program, whose sources come with the package, loads a build with an
emulated Direct3D 12 device, without a GPU: builds for Linux natively, builds for Windows under wine. Nothing is fetched
without being asked for, and the package contains nothing of Microsoft's.
"""

from __future__ import annotations

from pathlib import Path

from dmlsplit.library import fetching
from dmlsplit.library.asking import LibraryAnswer, ask, ask_all
from dmlsplit.library.catalogue import Build, find_build, known_builds
from dmlsplit.library.errors import BuildError, HarnessError, NotAdded, Unavailable
from dmlsplit.library.models import CompiledGraph, ModelAnswer, SubmittedOperator, ask_model

__all__ = [
    "Build",
    "BuildError",
    "CompiledGraph",
    "HarnessError",
    "LibraryAnswer",
    "ModelAnswer",
    "NotAdded",
    "SubmittedOperator",
    "Unavailable",
    "add",
    "ask",
    "ask_all",
    "ask_model",
    "builds",
    "known_builds",
    "remove",
]


def builds() -> tuple[Build, ...]:
    """Returns the builds on this machine; `known_builds()` returns all that can be added."""
    return tuple([build for build in known_builds() if fetching.is_added(build)])


def add(version: str) -> Path:
    """Returns the folder of a build's libraries and licences; fetches them with pip or npm if they are missing.

    `version` is a DirectML release ("1.15.4", "torch-directml-0.2.5.dev240914"), a version of ONNX Runtime
    ("onnxruntime-1.24.4"), or "debug-layer", which says why DirectML refuses an operator. By calling this function you
    accept the licence terms of the package. Raises ValueError for an unknown version, Unavailable if it cannot be
    fetched, BuildError if the SHA-256 of a file is not the recorded one.
    """
    return fetching.add(find_build(version))


def remove(version: str) -> bool:
    """Deletes a build from this machine, and returns True if it was there. Raises ValueError for an unknown version."""
    return fetching.remove(find_build(version))
