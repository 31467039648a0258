"""Whole models: the light models of the onnx wheel against onnxruntime's unoptimised session."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest

from tests.frontend.models import imported
from tests.ir.interpreter import run_module
from tests.whole_models.light_models import input_name, light_model, picture


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", ["squeezenet", "shufflenet", "resnet50"])
def test_light_model(name: str) -> None:
    model, x = light_model(name), picture()
    feed = {input_name(model): x}
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    reference = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    (expected,) = reference.run(None, feed)
    largest = np.abs(expected).max()
    assert expected.std() > 0.01 * largest  # else the comparison would show little
    (result,) = run_module(imported(model), feed)
    np.testing.assert_allclose(result, expected, rtol=0, atol=1e-5 * largest)
