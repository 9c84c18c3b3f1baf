"""DxDispatch models in files of their own."""

import json

import pytest

from dmlsplit.formats.dxdispatch import read
from tests.formats.models import dispatch, printed, split, values


@pytest.fixture
def write_model(tmp_path):
    def write(resources=None, dispatchables=None, commands=None, text=None):
        model = {
            "resources": {"X": values(4), "Y": values(2, 90), "Z": values(2, 90)} if resources is None else resources,
            "dispatchables": {"s": split(2, 2)} if dispatchables is None else dispatchables,
            "commands": [dispatch()] if commands is None else commands,
        }
        path = tmp_path / "model.json"
        path.write_text(json.dumps(model, indent=1) if text is None else text)
        return path

    return write


@pytest.fixture
def show(write_model):
    """What printing one resource shows."""

    def show(**resource):
        path = write_model({"R": resource}, {}, [{"type": "print", "resource": "R"}])
        text, _ = printed(read(path))
        return text.removeprefix("Resource 'R': ").removesuffix("\n")

    return show
