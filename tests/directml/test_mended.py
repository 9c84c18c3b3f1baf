"""Models written back for a release: the library compiles the graphs that they become, and binds what is right."""

from __future__ import annotations

import onnx
import pytest

import dmlsplit as dml
from dmlsplit import find_release
from dmlsplit.formats import onnx as front_end
from dmlsplit.graphs.operators import BY_NUMBER
from dmlsplit.models.functions import JUDGED
from dmlsplit.onnxruntime import SessionOptions
from dmlsplit.system.errors import NotLegalizedError
from dmlsplit.targets.target import find_target
from tests.directml.compare_graphs import compare, is_observed, shrunk
from tests.directml.conftest import FRESH_SEED
from tests.formats.mending import generator
from tests.formats.mending.wrong import WRONG
from tests.formats.onnx_graphs.recorded import parts_of, session_model

pytestmark = pytest.mark.directml

MODELS = 200
MOST_UNKNOWN = 0.1


@pytest.fixture
def release(made):
    """The release of the build, where it was observed compiling graphs, and a runtime has such graphs."""
    if not is_observed(made):
        pytest.skip("graph compilation was not observed with this build")
    if find_target(directml=made.name).graph_runtime is None:
        pytest.skip("no ONNX Runtime ships it")
    return find_release(made.name)


def graphs_of(data, release):
    """The graphs around Splits and Concats that a model becomes."""
    runtime = find_target(directml=release.name).graph_runtime
    assert runtime is not None
    parts = parts_of(session_model(onnx.load_from_string(data)), runtime, SessionOptions())
    around = [graph for part in parts for graph in part.fused if not set(JUDGED).isdisjoint(graph.ops)]
    descs = [graph.desc for graph in around if graph.desc is not None]
    return [desc for desc in descs if all(map(can_be_made, desc.nodes)) and is_of_floats(desc)]


def is_of_floats(desc):
    """Whether the harness reads its views."""
    types = {tensor.data_type for tensor in (*desc.inputs, *desc.outputs)}
    return types <= {dml.TensorDataType.FLOAT32, dml.TensorDataType.FLOAT16}


def can_be_made(node):
    """Whether the harness knows the operator's members."""
    return not isinstance(node, dml.AnyOperatorDesc) or node.type in BY_NUMBER


def outputs(desc, release):
    return set(dml.validate(desc, directml=release).outputs)


def agree(library, made, descs):
    tally = compare(library, made, descs)
    if tally.disagreements:
        pytest.fail(str(shrunk(library, made, tally.disagreements[0])), pytrace=False)
    return tally


def test_wrong_graphs_become_right(made, library, release):
    before, after = [], []
    for model, _ in WRONG.values():
        written = front_end.legalize(model, directml=release.name)
        if written.changes:
            before += graphs_of(model.SerializeToString(), release)
            after += graphs_of(written.model, release)
    assert after
    agree(library, made, before)
    tally = agree(library, made, after)
    assert set(tally.outcomes) == {"00000000"}
    assert all(outputs(desc, release) == {"right"} for desc in after)


def test_random_models(made, library, release, compared):
    changed, refused, descs = 0, 0, []
    for seed in range(FRESH_SEED, FRESH_SEED + MODELS):
        model, _ = generator.model(seed)
        try:
            written = front_end.legalize(model, directml=release.name)
        except NotLegalizedError:
            refused += 1
            continue
        changed += bool(written.changes)
        descs += graphs_of(written.model, release)
    said = [outputs(desc, release) for desc in descs]
    assert not any("wrong" in each for each in said)
    known = [desc for desc, each in zip(descs, said, strict=True) if each == {"right"}]
    tally = agree(library, made, known)
    assert set(tally.outcomes) <= {"00000000"}
    assert len(known) >= (1 - MOST_UNKNOWN) * len(descs)
    compared(
        f"{made.name}: {MODELS} models of seed {FRESH_SEED} written back, {changed} changed, {refused} refused; "
        f"{len(known)} of {len(descs)} graphs known to be right: {tally.outcomes}"
    )
