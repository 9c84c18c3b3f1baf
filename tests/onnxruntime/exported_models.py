"""Random models of the blocks that networks consist of, as exporters of PyTorch, TensorFlow and others write them.

The random models of whole_models know every operator, but no neighbourhood that a pass of ONNX Runtime was written for;
here each block is such a neighbourhood, in some of the ways in which it is found in published models.
"""

from __future__ import annotations

import random
from typing import Final

import onnx
from onnx import shape_inference

from dmlsplit.targets.runtime_versions import Runtime
from tests import models
from tests.models import ir_version
from tests.onnxruntime.exported_images import image
from tests.onnxruntime.exported_sequences import sequence
from tests.onnxruntime.exporter import Exporter

OLDEST: Final = 11
NEWEST: Final = 23


def exported_model(seed: int, index: int, runtime: Runtime) -> onnx.ModelProto:
    """The same valid model for the same seed and index of one version."""
    rng = random.Random(f"exported/{seed}/{index}")
    while True:
        e = Exporter(rng, rng.randint(OLDEST, min(NEWEST, runtime.newest_opset)))
        rng.choice([sequence, image])(e)
        graph = e.graph
        model = models.model(
            graph.node, graph.input, graph.output, e.opset, graph.initializer, ir_version=ir_version(e.opset)
        )
        try:
            inferred = shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)
        except (shape_inference.InferenceError, ValueError):
            continue
        del model.graph.output[:]
        model.graph.output.extend(inferred.graph.output)
        if rng.random() < 0.3:
            model.graph.value_info.extend(inferred.graph.value_info)
        try:
            onnx.checker.check_model(model)
        except onnx.checker.ValidationError:  # of sizes that inference does not find
            continue
        return model
