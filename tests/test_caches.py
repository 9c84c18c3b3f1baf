"""What a process keeps of all the files that it reads: a bounded number of answers, each of which depends on what is
asked alone."""

import functools
import importlib
import inspect
import os
import pickle
import pkgutil
import random

import pytest

import dmlsplit

OF_THE_PACKAGE = {
    "dmlsplit.formats.cstruct.operator_struct",
    "dmlsplit.library.harness.harness",
    "dmlsplit.rules._scope",
    "dmlsplit.targets.operator_support.recorded_values",
    "dmlsplit.targets.operator_tables._facts",
    "dmlsplit.targets.runtime_versions._traits_of",
    "dmlsplit.targets.runtime_versions.key_of",
    "dmlsplit.verdicts.validation._accepted",
}
"""Functions whose strings are names in the package's own tables."""


def unbounded():
    """The functions with a cache without a bound, by their names."""
    for module in pkgutil.walk_packages(dmlsplit.__path__, "dmlsplit."):
        if module.name.endswith("__main__") or "._" in module.name:
            continue
        for value in vars(importlib.import_module(module.name)).values():
            if isinstance(value, functools._lru_cache_wrapper) and value.cache_info().maxsize is None:
                yield f"{value.__module__}.{value.__qualname__}", value


def test_no_cache_grows_by_the_names_in_files():
    found = {name: inspect.signature(function).parameters.values() for name, function in unbounded()}
    by_name = {name for name, given in found.items() if any("str" in str(each.annotation) for each in given)}
    assert by_name == OF_THE_PACKAGE


TARGETS = (
    *({"onnxruntime": version} for version in ("1.20.1", "1.24.4", "1.30.0")),
    *({"onnxruntime": "1.24.4", "assume": ["no-float64"]}, {"directml": "1.5.1"}, {"feature_level": "3_0"}),
)


def answers(path, rng):
    """What is said of a model by each of TARGETS, asked in any order, and what it becomes for one."""
    said = {}
    for number in rng.sample(range(len(TARGETS)), len(TARGETS)):
        said[number] = [report.to_dict() for report in dmlsplit.check_files([path], **TARGETS[number])]
    try:
        written = dmlsplit.onnx.legalize(path, onnxruntime="1.24.4")
    except dmlsplit.DmlSplitError as error:
        return said, str(error)
    return said, written


def in_a_process_of_its_own(path):
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        with os.fdopen(writing, "wb") as stream:
            pickle.dump(answers(path, random.Random(0)), stream)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as stream:
        said = pickle.load(stream)
    os.waitpid(child, 0)
    return said


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
@pytest.mark.parametrize(
    "count",
    [pytest.param(8, marks=pytest.mark.slow), pytest.param(300, marks=[pytest.mark.slow, pytest.mark.thorough])],
)
def test_what_was_asked_before_does_not_matter(tmp_path, count):
    pytest.importorskip("onnx")
    from dmlsplit.targets.runtime_versions import find_runtime
    from tests.onnxruntime import generator, whole_models

    paths = []
    for i in range(count):
        made = whole_models.random_model(7, i, find_runtime("1.24.4")) if i % 2 else generator.sample(7, i).model
        paths.append(tmp_path / f"{i}.onnx")
        paths[-1].write_bytes(made.SerializeToString())
    alone = {path: in_a_process_of_its_own(path) for path in paths}
    rng = random.Random(count)
    for path in rng.sample(paths * 2, 2 * count):
        assert answers(path, rng) == alone[path]
