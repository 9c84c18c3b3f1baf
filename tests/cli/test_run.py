"""dmlsplit run."""

from __future__ import annotations

import json

import pytest

import dmlsplit as dml
from tests.cli.conftest import BAD, GOOD, MALFORMED, OTHER


def model(operator: str, *commands: dict[str, object], **resources: object) -> str:
    values = {"initialValuesDataType": "FLOAT32", "initialValues": {"valueCount": 12, "valueStart": 1, "valueDelta": 1}}
    zeros = {"initialValuesDataType": "FLOAT32", "initialValues": {"valueCount": 6, "value": 0}}
    names = ("Out0", "Out1", "Out2")
    dispatch = {
        "type": "dispatch",
        "dispatchable": "cut",
        "bindings": {"InputTensor": "In", "OutputTensors": list(names)},
    }
    return json.dumps(
        {
            "resources": {"In": values, **dict.fromkeys(names, zeros), **resources},
            "dispatchables": {"cut": json.loads(operator)},
            "commands": [dispatch, *commands],
        }
    )


PRINT = {"type": "print", "resource": "Out1"}


class TestRun:
    def test_prints(self, cli, tmp_path):
        (tmp_path / "model.json").write_text(model(GOOD, PRINT))
        assert cli("run", "model.json") == (0, "Resource 'Out1': 5, 6, 0, 0, 0, 0\n", "")

    def test_faulty_descriptor(self, cli, tmp_path):
        (tmp_path / "model.json").write_text(model(BAD, PRINT))
        status, out, err = cli("run", "model.json")
        assert (status, out) == (1, "")
        assert err.startswith("dmlsplit: model.json:1:")
        assert "error[split/axis-sizes-sum] OutputTensors: have sizes" in err

    @pytest.mark.parametrize("text", [MALFORMED, "[]", model(OTHER)], ids=["truncated", "no object", "other operator"])
    def test_malformed(self, cli, tmp_path, text):
        (tmp_path / "model.json").write_text(text)
        status, out, err = cli("run", "model.json")
        assert (status, out) == (2, "")
        assert err.startswith("dmlsplit: model.json:1:")
        assert err.count("\n") == 1

    def test_on_the_device_of_a_release(self, cli, tmp_path):
        rows = dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, (6, 2))
        two_dimensions = dml.dumps(dml.SplitOperatorDesc.from_lengths(rows, 0, (2, 1, 3)))
        (tmp_path / "model.json").write_text(model(two_dimensions, PRINT))
        assert cli("run", "model.json", "--directml", "1.5.1") == (0, "Resource 'Out1': 5, 6, 0, 0, 0, 0\n", "")
        status, out, err = cli("run", "model.json", "--directml", "tensorflow-directml-1.15.3.dev200619")
        assert (status, out) == (1, "")
        assert "error[tensor/dimension-count-not-supported] InputTensor.DimensionCount: is 2" in err
        status, out, err = cli("run", "model.json", "--directml", "1.14.0")
        assert (status, out) == (2, "")
        assert "the nearest are '1.13.1' and '1.14.1'" in err

    def test_what_is_forbidden_but_accepted_is_a_warning(self, cli, tmp_path):
        overlapping = json.loads(model(GOOD, PRINT))
        (command,) = (c for c in overlapping["commands"] if c["type"] == "dispatch")
        outputs = command["bindings"]["OutputTensors"]
        command["bindings"]["OutputTensors"] = [outputs[0]] * len(outputs)
        (tmp_path / "model.json").write_text(json.dumps(overlapping))
        status, _, err = cli("run", "model.json")
        assert status == 0
        assert "warning[binding/outputs-overlap] BindOutputs[1]" in err

    def test_missing(self, cli):
        assert cli("run", "nowhere.json") == (2, "", "dmlsplit: nowhere.json: No such file or directory\n")

    def test_failed_write_is_reported_and_the_rest_goes_on(self, cli, tmp_path):
        (tmp_path / "out").mkdir()
        write = {"type": "writeFile", "resource": "Out1", "targetPath": "out"}
        (tmp_path / "model.json").write_text(model(GOOD, write, PRINT))
        status, out, err = cli("run", "model.json")
        assert (status, out) == (2, "Resource 'Out1': 5, 6, 0, 0, 0, 0\n")
        assert "failed to write resource 'Out1' to 'out'" in err
        assert err.count("\n") == 1

    def test_allow_path(self, cli, tmp_path):
        (tmp_path / "folder").mkdir()
        (tmp_path / "folder" / "model.json").write_text(
            model(GOOD, {"type": "writeFile", "resource": "Out1", "targetPath": "../out.dat"})
        )
        refused = cli("run", "folder/model.json")
        assert (refused.status, refused.out) == (2, "")
        assert "--allow-path DIR" in refused.err
        assert not (tmp_path / "out.dat").exists()
        assert cli("run", "folder/model.json", "--allow-path", ".").status == 0
        assert (tmp_path / "out.dat").stat().st_size == 24

    def test_allow_path_nowhere(self, cli, tmp_path):
        (tmp_path / "model.json").write_text(model(GOOD))
        status, _, err = cli("run", "model.json", "--allow-path", "nowhere")
        assert status == 2
        assert err.count("\n") == 1
