"""The models that onnxruntime's documentation is written with."""

from __future__ import annotations

import numpy as np
import pytest

import landbridge.onnxruntime as ort
from landbridge.errors import LandbridgeError
from landbridge.onnxruntime import datasets


def test_their_first_program_runs() -> None:
    session = ort.InferenceSession(datasets.get_example("sigmoid.onnx"), providers=["CPUExecutionProvider"])
    (given,) = session.get_inputs()
    x = np.linspace(-3, 3, 60, dtype=np.float32).reshape(given.shape)
    (found,) = session.run(None, {given.name: x})
    np.testing.assert_allclose(found, 1 / (1 + np.exp(-x.astype(np.float64))), rtol=1e-6)


def test_an_example_that_is_not_there() -> None:
    with pytest.raises(FileNotFoundError, match=r"'no\.onnx'; there are: .*sigmoid\.onnx") as reported:
        datasets.get_example("no.onnx")
    assert isinstance(reported.value, LandbridgeError)


def test_without_their_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.path", [])
    with pytest.raises(FileNotFoundError, match="pip install onnxruntime"):
        datasets.get_example("sigmoid.onnx")
