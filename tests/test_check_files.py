"""check_files, as Python calls it."""

from pathlib import Path

import pytest

import dmlsplit as dml
from dmlsplit.formats.files import AllowedFolders
from tests import models


@pytest.mark.parametrize("single", ["/models", b"/models", Path("/models")], ids=["str", "bytes", "Path"])
@pytest.mark.parametrize("name", ["paths", "allow_paths"])
def test_a_single_path_is_no_sequence_of_letters(name, single):
    """Of "/models" the first one would allow every file of the machine."""
    with pytest.raises(TypeError, match=rf"{name}: a sequence of paths is expected; "):
        dml.check_files(**{"paths": ["m.onnx"], name: single})


@pytest.mark.parametrize("single", ["/models", Path("/models")], ids=["str", "Path"])
def test_nor_to_those_who_read_a_model_themselves(single):
    with pytest.raises(TypeError, match="allow_paths: a sequence of paths is expected; "):
        AllowedFolders("models", single)


def test_paths_as_bytes_name_files(tmp_path):
    """They are no contents, as the sources of other functions are."""
    path = tmp_path / "s.json"
    path.write_text("{}")
    (text,) = dml.check_files([str(path)])
    (encoded,) = dml.check_files([str(path).encode()])
    assert encoded == text
    (missing,) = dml.check_files([str(tmp_path / "none.json").encode()])
    assert [each.message for each in missing.diagnostics] == ["No such file or directory"]


def test_a_single_model_has_every_name_that_is_given(tmp_path):
    """Of several models each takes those that it has, as on the command line."""
    onnx = pytest.importorskip("onnx")
    made = models.text("(float[n,4] x) => (float[n,2] a, float[n,2] b) { a, b = Split<axis=1>(x) }")
    paths = [tmp_path / "a.onnx", tmp_path / "b.onnx"]
    for path in paths:
        onnx.save(made, path)
    (report,) = dml.check_files(paths[:1], dims={"typo": 3})
    assert [each.rule for each in report.diagnostics] == ["input/malformed"]
    assert "there is no symbolic dimension 'typo'" in report.diagnostics[0].message
    assert all(each.operator == "Split" for each in dml.check_files(paths, dims={"typo": 3}))
