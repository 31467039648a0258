"""The light models of the onnx wheel, as they are, give their stored outputs within the suite's own tolerances."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import landbridge as lb
from tests.whole_models.light_models import input_name

FOLDER = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
#: Relative and absolute tolerances of onnx.backend.test.case.model.
TOLERANCES = dict.fromkeys(
    ["bvlc_alexnet", "inception_v1", "inception_v2", "resnet50", "shufflenet", "squeezenet", "vgg19", "zfnet512"],
    (1e-3, 1e-7),
) | {"densenet121": (2e-3, 1e-7)}


def test_every_light_model_is_here() -> None:
    assert {p.stem.removeprefix("light_") for p in FOLDER.glob("*.onnx")} == set(TOLERANCES)


@pytest.mark.parametrize(
    "name", [n if n == "squeezenet" else pytest.param(n, marks=pytest.mark.full) for n in TOLERANCES]
)
def test_stored_outputs(name: str) -> None:
    model = onnx.load(FOLDER / f"light_{name}.onnx")
    shape = next(v for v in model.graph.input if v.name == input_name(model)).type.tensor_type.shape
    extents = [d.dim_value or 1 for d in shape.dim]
    count = int(np.prod(extents))
    x = (np.arange(count).reshape(extents) / count).astype(np.float32)  # as the suite makes it
    stored = onnx.load_tensor(FOLDER / f"light_{name}_output_0.pb")
    (found,) = lb.Session(lb.compile(model), num_threads=2)(x)
    rtol, atol = TOLERANCES[name]
    np.testing.assert_allclose(np.asarray(found), numpy_helper.to_array(stored), rtol=rtol, atol=atol)
