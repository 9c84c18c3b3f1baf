"""IRs to be spoilt, and what is said of them."""

from pathlib import Path

import pytest

from dmlsplit.formats import openvino
from dmlsplit.system.errors import InputError

EXAMPLES = Path(__file__).parents[2] / "examples"
XML = (EXAMPLES / "openvino_variadic_split_rest.xml").read_bytes()
BIN = (EXAMPLES / "openvino_variadic_split_rest.bin").read_bytes()


def write(folder, xml, weights=BIN):
    path = folder / "m.xml"
    path.write_bytes(xml if isinstance(xml, bytes) else xml.encode())
    if weights is not None:
        path.with_suffix(".bin").write_bytes(weights)
    return path


def refused(path, message, **arguments):
    with pytest.raises(InputError, match=message) as caught:
        openvino.read(path, **arguments)
    assert caught.value.file == str(path)
    assert "\n" not in str(caught.value)
    return caught.value
