"""IRs that are wrong, short, huge or hostile: one clear error with its place, and never anything else."""

import os
import sys

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.formats.hostile_ir import BIN, XML, refused, write

pytest.importorskip("defusedxml")

from dmlsplit.formats import openvino
from dmlsplit.system.errors import InputError
from tests.formats.split_nodes import splits

REPLACED = {
    "no IR": (b"<net ", b"<html ", "the root element is <html>, not <net>"),
    "no version": (b' version="11"', b"", "<net> has no version"),
    "version": (b' version="11"', b' version="eleven"', "version is 'eleven', not an integer"),
    "huge version": (b' version="11"', b' version="' + b"9" * 400 + b'"', "not an integer"),
    "duplicate id": (
        b'<layer id="2"',
        b'<layer id="1"',
        r"layer 1 'split_lengths' \(Const\) has the id of layer 1 'axis'",
    ),
    "no id": (b'<layer id="2"', b"<layer", "<layer> has no id"),
    "negative id": (b'<layer id="2"', b'<layer id="-2"', "must not be negative"),
    "huge id": (b'<layer id="2"', b'<layer id="' + b"2" * 30 + b'"', "not an integer"),
    "no type": (b' type="Const"', b"", "layer 1 has no type"),
    "no name": (b' name="axis"', b"", "layer 1 has no name"),
    "no port id": (b'<port id="0" precision="FP32" names="data"', b"<port", "<port> has no id"),
    "two ports of one id": (b'<port id="4"', b'<port id="3"', r"layer 3 'split' \(VariadicSplit\): a second port 3"),
    "edge from nowhere": (b'from-layer="2"', b'from-layer="77"', "an edge leads from layer 77, which does not exist"),
    "edge to nowhere": (b'to-layer="3" to-port="2"', b'to-layer="3" to-port="9"', "to port 9 .* no such input"),
    "edge from no output": (b'from-port="4"', b'from-port="8"', "from port 8 .* no such output"),
    "two edges to one port": (b'to-layer="3" to-port="2"', b'to-layer="3" to-port="1"', "two edges lead to port 1"),
    "edge without end": (b' to-port="2"', b"", "<edge> has no to-port"),
    "edge to a word": (b'to-layer="3" to-port="2"', b'to-layer="split" to-port="2"', "not an integer"),
    "cycle": (b'from-layer="0" from-port="0" to-layer="3"', b'from-layer="3" from-port="3" to-layer="3"', "cycle"),
    "dim": (b"<dim>6</dim>", b"<dim>six</dim>", r"layer 0 'data' \(Parameter\): 'six' is not a size"),
    "dim below -1": (b"<dim>6</dim>", b"<dim>-2</dim>", "'-2' is not a size"),
    "huge dim": (b"<dim>6</dim>", b"<dim>9223372036854775808</dim>", "is not a size"),
    "huger dim": (b"<dim>6</dim>", b"<dim>" + b"9" * 5000 + b"</dim>", "a <dim> is longer than 64"),
    "element in a dim": (b"<dim>6</dim>", b"<dim>6<b>7</b>x</dim>", "'6x' is not a size"),
    "reversed interval": (b'shape="6,12,10,24"', b'shape="8..6,12,10,24"', "'8..6' is not a size"),
    "no shape": (b'shape="6,12,10,24"', b'shape="6,,10"', "'' is not a size"),
    "rank": (b'shape="6,12,10,24"', b'shape="' + b",".join([b"1"] * 65) + b'"', "65 dimensions; the limit is 64"),
    "dynamic constant": (b'shape="2" offset', b'shape="?" offset', "the shape of a constant is"),
    "constant without shape": (b'shape="2" offset', b"offset", "<data> has no shape"),
    "constant without type": (b'element_type="i64" shape="2"', b'shape="2"', "<data> has no element_type"),
    "offset": (b'offset="8"', b'offset="eight"', "offset is 'eight', not an integer"),
    "offset below 0": (b'offset="8"', b'offset="-8"', "bytes -8 to 8 .* has 24"),
    "offset beyond": (b'offset="8"', b'offset="16"', r"bytes 16 to 32 of 'm.bin', which has 24"),
    "offset far beyond": (b'offset="8"', b'offset="18446744073709551608"', "which has 24"),
    "size": (b'size="16"', b'size="8"', "size is 8, 2 elements of i64 need 16 bytes"),
    "huge size": (b'size="16"', b'size="99999999999999999999"', "need 16 bytes"),
    "huge shape": (b'shape="2" offset', b'shape="4611686018427387904" offset', "elements of i64 need"),
    "two datas": (b"</layer>", b"<data/><data/></layer>", "a second <data> in layer 0"),
    "two layers": (b"<layers>", b"<layers></layers><layers>", "a second <layers>"),
    "not closed": (b"</net>", b"", "not XML: no element found"),
    "text after": (b"</net>", b"</net>x", "not XML"),
    "no XML": (b"<?xml", b"<<?xml", "not XML"),
    "encoding": (b'"1.0"?>', b'"1.0" encoding="klingon"?>', "not XML"),
    "wide encoding": (b'"1.0"?>', b'"1.0" encoding="euc-jp"?>', "not XML"),
    "wrong encoding": (b'name="axis"', b'name="\xff\xfe"', "not XML"),
    "NUL": (b'name="axis"', b'name="\0"', "not XML"),
    "twice": (b'name="axis"', b'name="axis" name="axis"', "not XML: duplicate attribute"),
    "DTD": (b"<net ", b"<!DOCTYPE net>\n<net ", "declares a document type"),
    "entities": (
        b"<net ",
        b'<!DOCTYPE net [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]>\n<net ',
        "declares a document type",
    ),
    "external": (b"<net ", b'<!DOCTYPE net SYSTEM "file:///etc/passwd">\n<net ', "declares a document type"),
    "undeclared entity": (b'name="axis"', b'name="&secret;"', "not XML: undefined entity"),
}


@pytest.mark.parametrize(("old", "new", "message"), REPLACED.values(), ids=REPLACED)
def test_one_error_with_its_place(old, new, message, tmp_path):
    assert old in XML
    error = refused(write(tmp_path, XML.replace(old, new, 1)), message)
    assert error.line is not None


def test_the_root_element_is_net(tmp_path):
    refused(write(tmp_path, "<a/>"), "not an OpenVINO IR: the root element is <a>")


def test_empty_files(tmp_path):
    refused(write(tmp_path, b""), "empty")
    refused(write(tmp_path, b"  \n"), "not XML")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
def test_what_is_no_file(tmp_path):
    refused(tmp_path, "not a regular file|directory")
    os.mkfifo(tmp_path / "pipe.xml")
    refused(tmp_path / "pipe.xml", "not a regular file")
    refused(tmp_path / "none.xml", "No such file")


def test_utf16_is_read(tmp_path):
    text = XML.decode().replace('<?xml version="1.0"?>', '<?xml version="1.0" encoding="utf-16"?>')
    assert len(openvino.read(write(tmp_path, text.encode("utf-16")))) == 1


@pytest.mark.parametrize("type", ["undefined", "dynamic", ""])
def test_elements_that_are_not_read_are_called_as_the_file_calls_them(type, tmp_path):
    text = XML.replace(b'element_type="i64" shape="2"', f'element_type="{type}" shape="2"'.encode())
    (node,) = splits(openvino.read_model(write(tmp_path, text)))
    (said,) = [each.message for each in node.report.diagnostics if each.rule == "openvino/lengths-unknown"]
    assert f"elements of '{type}'" in said


def test_weights(tmp_path):
    refused(write(tmp_path, XML, None), r"layer 1 'axis' \(Const\): its data is in 'm.bin': No such file")
    refused(write(tmp_path, XML, BIN[:-1]), "bytes 8 to 24 of 'm.bin', which has 23")
    refused(write(tmp_path, XML, b""), "bytes 0 to 8 of 'm.bin', which has 0")
    os.unlink(tmp_path / "m.bin")
    os.mkdir(tmp_path / "m.bin")
    refused(tmp_path / "m.xml", "Is a directory")


@pytest.mark.skipif(sys.platform == "win32", reason="links take a privilege on Windows")
def test_weights_outside_of_the_folder(tmp_path):
    folder, other = tmp_path / "a", tmp_path / "b"
    folder.mkdir()
    other.mkdir()
    path = write(folder, XML, None)
    (other / "weights").write_bytes(BIN)
    (folder / "m.bin").symlink_to(other / "weights")
    refused(path, "'m.bin' is outside the model's folder; --allow-path DIR")
    assert len(openvino.read(path, allow_paths=[other])) == 1
    (folder / "m.bin").unlink()
    (folder / "m.bin").symlink_to(folder / "m.bin")
    refused(path, "'m.bin' leads to itself by symbolic links")


def test_weights_are_not_looked_for_in_the_current_folder(tmp_path, monkeypatch):
    (tmp_path / "model").mkdir()
    path = write(tmp_path / "model", XML, None)
    (tmp_path / "m.bin").write_bytes(BIN)
    monkeypatch.chdir(tmp_path)
    refused(path, "No such file")


def judged_or_refused(folder, xml, weights):
    """Whatever the text: nodes, each with a report and sizes, or an InputError of one line."""
    path = write(folder, xml, weights)
    found, error = [], None
    try:
        found = splits(openvino.read_model(path))
    except InputError as caught:
        error = caught
    assert error is None or (error.file == str(path) and "\n" not in str(error))
    for node in found:
        assert str(node.report)
        assert node.obstacle() is not None or node.descriptor() is not None


FUZZ = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], derandomize=True
)


@FUZZ
@given(st.data())
def test_changed_bytes(tmp_path, data):
    xml = bytearray(XML)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(xml) - 1))
        xml[at : at + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=2))
    judged_or_refused(tmp_path, bytes(xml), data.draw(st.sampled_from([BIN, BIN[:9], bytes(24), b"\xff" * 24])))


TOKENS = [
    b'"-1"',
    b'"0"',
    b'"3"',
    b'"99999999999"',
    b'""',
    b'"?"',
    b'"i8"',
    b'"Split"',
    b'"Const"',
    b'"ShapeOf"',
    b'"Reshape"',
]


@FUZZ
@given(st.data())
def test_changed_values(tmp_path, data):
    """Attribute values and sizes exchanged: mostly well-formed, mostly wrong."""
    parts = XML.split(b'"')
    for _ in range(data.draw(st.integers(1, 4))):
        at = 2 * data.draw(st.integers(0, (len(parts) - 2) // 2)) + 1
        parts[at] = data.draw(st.sampled_from(TOKENS + parts[1::2]))
    judged_or_refused(tmp_path, b'"'.join(parts), data.draw(st.binary(min_size=24, max_size=24)))


@FUZZ
@given(st.data())
def test_moved_lines(tmp_path, data):
    lines = XML.splitlines(keepends=True)
    for _ in range(data.draw(st.integers(1, 3))):
        a, b = data.draw(st.integers(0, len(lines) - 1)), data.draw(st.integers(0, len(lines) - 1))
        match data.draw(st.sampled_from(["swap", "drop", "repeat"])):
            case "swap":
                lines[a], lines[b] = lines[b], lines[a]
            case "drop" if len(lines) > 1:
                del lines[a]
            case _:
                lines.insert(b, lines[a])
    judged_or_refused(tmp_path, b"".join(lines), BIN)
