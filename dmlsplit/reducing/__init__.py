"""Finds the smallest part of a model that is still refused, or still computed wrong, and the class of the fault.

    found = reduce("model.onnx", "1.24.4")
    found.rule, found.nodes, onnx.save(found.model, "small.onnx")

`findings` says what is wrong with a model, `search` which of its nodes are needed for that, `cutting` and `inner` make
models of them, `reduction` goes through all kinds of changes. `weights` gives the result its numbers, `computed` its
inputs and outputs, `writing` makes files of it all.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from dmlsplit.descriptors.dims import Dim
from dmlsplit.system.errors import InputError
from dmlsplit.targets.runtime_versions import Runtime, find_runtime
from dmlsplit.targets.session_options import DEFAULTS, SessionOptions, check_options

if TYPE_CHECKING:
    import onnx

    from dmlsplit.reducing.reduction import Reduction


def reduce(
    source: str | os.PathLike[str] | bytes | onnx.ModelProto,
    version: str | Runtime,
    *,
    rule: str | None = None,
    check: Sequence[str] | Callable[[onnx.ModelProto], bool] | None = None,
    timeout: float = 300,
    seed: int = 0,
    run_shapes: Mapping[str, Sequence[Dim]] | None = None,
    run_dims: Mapping[str, int] | None = None,
    free_dimensions: Mapping[str, int] | None = None,
    options: SessionOptions = DEFAULTS,
    allow_paths: Iterable[str | os.PathLike[str]] = (),
    progress: Callable[[str], None] = lambda line: None,
    ended: Callable[[Reduction], None] = lambda so_far: None,
) -> Reduction:
    """Returns the smallest part of a model that one version of ONNX Runtime still refuses, or still computes wrong.

    The fault is a finding of this package: the most serious one, or one of `rule`. With `check` the caller decides.
    `check` is the words of a command that gets the path of a model (in place of {}, or as its last argument) and ends
    within `timeout` seconds with status 1 if the model is still wrong, 0 if it is right, anything else if it cannot
    tell; or a function that takes a model and returns True if it is still wrong. Large weights of the result are
    replaced by random numbers of `seed`, if it is still wrong with them. If KeyboardInterrupt or the like ends the
    reduction, `ended` is called with the smallest model so far. The other arguments are those of `explain`.

    Raises InputError if the source is not a model, or if nothing is wrong with it; ValueError for an unknown version or
    rule; OSError if the file cannot be read.
    """
    try:
        import onnx  # noqa: F401
    except ModuleNotFoundError:
        raise InputError("ONNX models need the package onnx: pip install 'dmlsplit[onnx]'") from None
    from dmlsplit.formats.arguments import check_source, inputs_of
    from dmlsplit.reducing.findings import Question
    from dmlsplit.reducing.reduction import reduced

    inputs = inputs_of(run_shapes, run_dims, None, free_dimensions, "run_")
    check_source(source)
    check_options(options)
    question = Question(find_runtime(version), options, inputs)
    return reduced(source, question, rule, check, timeout, seed, allow_paths, progress, ended)
