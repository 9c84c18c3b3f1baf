"""Published models: the placement of every node is what ONNX Runtime's verbose log says of the model as it is."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import onnx
import pytest

from dmlsplit.library import ask_model
from dmlsplit.library.fetching import checked_folder
from dmlsplit.library.models import FOLDED, PROVIDERS
from dmlsplit.library.sessions import OnnxRuntime, Query
from tests.packaged import MODELS, model_of

LIGHT = sorted((Path(onnx.__file__).parent / "backend" / "test" / "data" / "light").glob("*.onnx"))
"""Of the model zoo, without weights: they come with onnx."""
ALL_NODES = re.compile(r"All nodes placed on \[(\w+)\]. Number of nodes: (\d+)")
PROVIDER = re.compile(r"placed on \[(\w+)\]. Number of nodes: (\d+)")
NODE = re.compile(r"  (\S+) \((.*)\)$")

pytestmark = pytest.mark.slow


def logged(onnxruntime, path):
    """The number of nodes on each provider, and where each named node is: from the log of a session without fusion."""
    with OnnxRuntime(checked_folder(onnxruntime)) as runtime:
        record = runtime.ask(Query(path, config={"ep.dml.disable_graph_fusion": "1"}))
    assert record["session"] is True
    counts, places, provider = Counter(), {}, ""
    for line in record["placement"]:
        placed, node = PROVIDER.search(line), NODE.match(line)
        if placed:
            provider = PROVIDERS[placed[1]]
            counts[provider] += int(placed[2])
        elif node and node[2]:
            places.setdefault(node[2], set()).add(provider)
    return counts, places


@pytest.fixture(params=[*MODELS, *LIGHT], ids=lambda model: model.stem if isinstance(model, Path) else model["package"])
def published(request, pytestconfig, tmp_path_factory):
    if isinstance(request.param, Path):
        return request.param
    return model_of(request.param, pytestconfig, tmp_path_factory)


def test_the_placement_of_every_node_is_that_of_the_log(onnxruntime, published):
    answer = ask_model(str(published), onnxruntime.version)
    counts, places = logged(onnxruntime, published)
    model = onnx.load(published, load_external_data=False)
    assert answer.created
    assert len(answer.nodes) >= len(model.graph.node)
    everywhere = Counter([*answer.nodes.values(), *answer.added.values()])
    del everywhere[FOLDED]
    assert everywhere == counts
    known = {**answer.nodes, **answer.added}
    # Nodes that the optimizer makes are named anew each time, and inner ones here by their path.
    of_model = {node.name for node in model.graph.node}
    assert {name: {known[name]} for name in places if name in of_model} == {
        name: place for name, place in places.items() if name in of_model
    }
    if len(counts) > 1:
        kept = {name for name in of_model if name and answer.nodes.get(name, FOLDED) != FOLDED}
        assert kept == places.keys() & of_model
    assert sum(each.count for each in answer.submitted) == sum(answer.operators.values())


def test_there_are_ten():
    assert len(LIGHT) + len(MODELS) >= 10
