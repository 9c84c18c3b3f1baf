"""Large and deep IRs: bounded in memory and in work."""

import contextlib
import re
import tracemalloc
from xml.sax import SAXParseException

import pytest

from tests.effort import calls
from tests.formats.hostile_ir import BIN, XML, refused, write
from tests.formats.ir import Graph, model

pytest.importorskip("defusedxml")

from defusedxml.expatreader import DefusedExpatParser

from dmlsplit.formats import openvino
from dmlsplit.formats.openvino import constants, document
from dmlsplit.system.errors import InputError


def test_large_weights_are_not_read_whole(tmp_path):
    path = write(tmp_path, XML.replace(b'offset="8"', b'offset="4294967296"'))
    with open(tmp_path / "m.bin", "r+b") as stream:
        stream.seek(1 << 32)
        stream.write(BIN[8:])
    (node,) = openvino.read(path)
    assert node.lengths == (4, 2)


def test_constants_are_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(constants, "MAX_ELEMENTS", 1)
    (node,) = openvino.read(write(tmp_path, XML))
    assert [d.rule for d in node.report.diagnostics] == ["openvino/lengths-unknown"]
    assert "2 elements; the limit is 1" in node.report.diagnostics[0].message


@pytest.mark.parametrize(
    ("limit", "value", "message"),
    [
        ("MAX_BYTES", 1000, "the limit for an IR's XML"),
        ("MAX_DEPTH", 5, "nested more than 5 levels"),
        ("MAX_TAGS", 30, "more than 30 elements"),
        ("MAX_LAYERS", 3, "more than 3 layers"),
        ("MAX_PORTS", 3, "more than 3 ports"),
        ("MAX_ATTRIBUTE", 8, "longer than 8 characters"),
        ("MAX_NAME", 3, "the name of layer 0 is longer than 3 characters"),
    ],
)
def test_limits(limit, value, message, tmp_path, monkeypatch):
    monkeypatch.setattr(document, limit, value)
    refused(write(tmp_path, XML), message)


def memory_of(folder, layers, edges="", weights=b""):
    """What is found in a model of these layers, or the message; and the memory in bytes that reading it takes."""
    path = write(folder, f'<net version="11"><layers>{layers}</layers><edges>{edges}</edges></net>', weights)
    tracemalloc.start()
    try:
        found = openvino.read(path)
    except InputError as error:
        found = error.message
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return found, peak


def ports(count):
    return "".join(f'<port id="{i}"/>' for i in range(count))


def inside(name, layers):
    return f'<layer id="0" name="{name}" type="Loop"><body><layers>{layers}</layers></body></layer>'


LONG = "n" * document.MAX_NAME


def test_names_of_a_megabyte(tmp_path):
    """Each port of the body, each body and each split would have one of its own."""
    for layers in (
        f'<layer id="0" name="a" type="X"><output>{ports(4000)}</output></layer>',
        "".join(f'<layer id="{i}" name="" type="If"><then_body/></layer>' for i in range(4000)),
        "".join(f'<layer id="{i}" name="" type="Split" version="opset1"/>' for i in range(4000)),
    ):
        found, peak = memory_of(tmp_path, inside("n" * 1_000_000, layers))
        assert found == f"the name of layer 0 is longer than {document.MAX_NAME} characters"
        assert peak < 50_000_000


def test_names_that_nobody_asks_for_are_not_put_together(tmp_path):
    way = "n" * (document.MAX_NAME - len("/body"))
    found, peak = memory_of(
        tmp_path, inside(way, f'<layer id="0" name="{LONG}" type="X"><output>{ports(20_000)}</output></layer>')
    )
    assert found == []
    assert peak < 50_000_000  # 20,000 names of 8,000 characters would take 160 MB


@pytest.mark.parametrize(
    ("layers", "message"),
    [
        (
            f'<layer id="0" name="{LONG}" type="Split" version="opset1"><output>{ports(20_000)}</output></layer>',
            "the names of the model's tensors exceed 33554432 characters with this one",
        ),
        (
            inside(
                LONG[:4000],
                "".join(f'<layer id="{i}" name="" type="If"><then_body/></layer>' for i in range(20_000)),
            ),
            "the names on the paths to bodies are longer than 33554432 characters together",
        ),
        (
            inside(LONG[:4000], inside(LONG[:100], "")),
            r"layer 0 'n+\.\.\.n+' \(Loop\): the names on the path to its body are longer than 4096 characters",
        ),
    ],
    ids=["outputs", "bodies", "depth"],
)
def test_names_are_bounded_together(layers, message, tmp_path):
    found, peak = memory_of(tmp_path, layers)
    assert isinstance(found, str)
    assert re.search(message, found)
    assert peak < 100_000_000


def test_lists_of_names_stay_text(tmp_path):
    """A million names of two characters, each an object, would take 60 MB more."""
    names = "ab," * (document.MAX_ATTRIBUTE // 3)
    listed = "".join(f'<port id="{i}" names="{names}"/>' for i in range(3))
    found, peak = memory_of(tmp_path, f'<layer id="0" name="a" type="X"><output>{listed}</output></layer>')
    assert found == []
    assert peak < 50_000_000


def test_attributes_that_nobody_looks_at_are_not_kept(tmp_path):
    attributes = " ".join(f'a{i}=""' for i in range(100))
    layers = "".join(f'<layer id="{i}" name="" type="X"><data {attributes}/></layer>' for i in range(4000))
    found, peak = memory_of(tmp_path, layers)
    assert found == []
    assert peak < 40_000_000  # 400,000 attributes would take as much


def test_constants_are_bounded_together(tmp_path, monkeypatch):
    """Every split that looks at a constant of 65,536 elements has numbers of its own."""
    monkeypatch.setattr(constants, "MAX_VALUES", 5)
    graph = Graph()
    x, axis, lengths = graph.parameter((6,)), graph.const(0), graph.const([2, 4])
    for i in range(3):
        graph.split(x, axis, lengths, [None, None], name=f"s{i}")
    first, second, third = openvino.read(graph.write(tmp_path))
    assert first.lengths == (2, 4)
    for node in (second, third):
        assert "openvino/lengths-unknown" in {d.rule for d in node.report.diagnostics}
    assert "after 5 elements of constants" in second.report.diagnostics[0].message


def test_too_little_memory_is_no_fault_of_the_text(tmp_path, monkeypatch):
    def feed(parser, data):
        raise SAXParseException("out of memory", None, parser)

    monkeypatch.setattr(DefusedExpatParser, "feed", feed)
    with pytest.raises(MemoryError):
        openvino.read(write(tmp_path, XML))


@pytest.mark.parametrize("tag", ["a", "layer", "body"])
def test_deep_nesting(tag, tmp_path):
    refused(write(tmp_path, b'<net version="11">' + f"<{tag}>".encode() * 200_000), "nested more than 128 levels deep")


def test_bodies_in_bodies(tmp_path):
    inside = "<layers></layers>"
    for i in range(60):
        inside = f'<layers><layer id="0" name="l{i}" type="Loop"><body>{inside}</body></layer></layers>'
    refused(write(tmp_path, f'<net version="11">{inside}</net>'), "nested more than 128 levels deep")


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        b'<net version="11"><layers a="' + b"x" * (8 << 20) + b'"/></net>',
        b'<net version="11"><rt_info a="' + b"x" * (8 << 20) + b'"/></net>',
        b'<net version="11"><!--' + b"x" * (8 << 20) + b"--></net>",
        b'<net version="11">' + b"<layers/>" * 2 + b"x" * (8 << 20),
        b'<net version="11"><layers>' + b"".join(b'<layer id="%d" name="" type=""/>' % i for i in range(100_000)),
    ],
    ids=["attribute", "annotation", "comment", "text", "layers"],
)
def test_long_texts_are_little_work(text, tmp_path):
    path = write(tmp_path, text)

    def read():
        with contextlib.suppress(InputError):
            assert openvino.read(path) == []

    assert calls(read) < 10_000 + len(text)


def test_a_long_chain_of_layers(tmp_path):
    graph = Graph()
    x, axis = graph.parameter((6,)), graph.const(0)
    for _ in range(5000):
        x = graph.layer("ReLU", (x,), [(None, "f32")])[0]
        axis = graph.layer("Convert", (axis,), [((), "i64")], destination_type="i64")[0]
    graph.split(x, axis, 2, [None, None])
    (node,) = openvino.read(graph.write(tmp_path))
    assert node.input_shape == (6,)
    assert [d.rule for d in node.report.diagnostics] == ["openvino/axis-unknown"]


def test_many_splits_of_one_input(tmp_path):
    graph = Graph()
    x, axis = graph.parameter((6,)), graph.const(0)
    for i in range(2000):
        graph.split(x, axis, 2, [None, None], name=f"s{i}")
    assert len(openvino.read(graph.write(tmp_path))) == 2000


def test_a_huge_num_splits_takes_no_memory(tmp_path):
    (node,) = openvino.read(model(parts=10**18, outputs=[None]).write(tmp_path))
    assert "openvino/num-splits-too-large" in {d.rule for d in node.report.diagnostics}
