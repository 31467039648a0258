"""Real networks with open dimensions, exported for C and run on the board, give what onnxruntime gives here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
from wheel_models import PP_OCR, RECOGNIZE, wheel_model

import landbridge as lb
from landbridge.executable.c_export import export_c
from landbridge.executable.instance import instance
from tests.boards.test_c_on_board import build, run
from tests.boards.test_models import TARGET, Array, check_equal
from tests.whole_models.random_weights import with_random_weights
from tests.whole_models.real_input import line_of_text, picture_for_detector
from tests.whole_models.test_models import reference

pytestmark = pytest.mark.full


def check(
    model: onnx.ModelProto,
    shape: Sequence[str | int],
    dims: Mapping[str, str],
    open_: str,
    inputs: list[Array],
    at: Path,
) -> None:
    """The library is made once, for each of ``inputs``, which give the dimension ``open_`` one extent each."""
    peer = reference(model.SerializeToString())
    (name,) = (each.name for each in peer.get_inputs())
    executable = lb.compile(model, TARGET, shapes={name: tuple(shape)}, dims=dict(dims))
    export_c(executable, at, "model")
    for x in inputs:
        size = x.shape[list(shape).index(open_)]
        build(at, f"-DSIZES={size}")
        np.ascontiguousarray(x).tofile(at / "in.0")
        (spec,) = instance(executable, {open_: size}).main.outputs
        assert run(at, "cortex-a72", x.nbytes, spec.nbytes) == 0
        found = np.fromfile(at / "out.0", np.float32).reshape(spec.shape)
        check_equal([found], peer.run(None, {name: x}))


def test_lines_of_text_of_any_width(tmp_path: Path) -> None:
    model = onnx.load(wheel_model(PP_OCR, RECOGNIZE))
    lines = [line_of_text(48, width) for width in (40, 320)]
    check(model, (1, 3, 48, "W"), {"W": "32..640:8@320"}, "W", lines, tmp_path)


def test_batches_of_photos(tmp_path: Path) -> None:
    x = picture_for_detector(224, 224)
    model = with_random_weights("squeezenet", {"data_0": x})
    for value in (*model.graph.input, *model.graph.output):  # the file says 1
        value.type.tensor_type.shape.dim[0].dim_param = "N"
    del model.graph.value_info[:]
    batches = [x, np.concatenate([x, x[..., ::-1], x[:, ::-1]])]
    check(model, ("N", 3, 224, 224), {"N": "1..4@1"}, "N", batches, tmp_path)
