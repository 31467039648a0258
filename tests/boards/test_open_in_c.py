"""Real networks with open dimensions, exported for C and run on the board, give what onnxruntime gives here."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx
import pytest
from wheel_models import PP_OCR, RECOGNIZE, wheel_model

import landbridge as lb
from landbridge.executable.c_export import export_c
from landbridge.executable.instance import instance
from tests.boards.test_c_on_board import build, run
from tests.boards.test_models import MINI_LM, TARGET, Array, check_equal
from tests.whole_models.random_weights import with_random_weights
from tests.whole_models.real_input import line_of_text, picture_for_detector
from tests.whole_models.test_models import reference

pytestmark = pytest.mark.full


def check(
    model: onnx.ModelProto,
    shapes: Mapping[str, tuple[str | int, ...]],
    dims: Mapping[str, str],
    runs: list[dict[str, Array]],
    at: Path,
) -> None:
    """The library is made once, for each of ``runs``, which are inputs by name."""
    peer = reference(model.SerializeToString())
    executable = lb.compile(model, TARGET, shapes=dict(shapes), dims=dict(dims))
    export_c(executable, at, "model")
    for feeds in runs:
        sizes = {
            axis: extent
            for name, shape in shapes.items()
            for axis, extent in zip(shape, feeds[name].shape, strict=True)
            if isinstance(axis, str)
        }
        build(at, "-DSIZES=" + ", ".join(str(sizes[name]) for name in executable.dimensions))
        inputs = [np.ascontiguousarray(feeds[spec.name]) for spec in executable.main.inputs]
        for number, array in enumerate(inputs):
            array.tofile(at / f"in.{number}")
        outputs = instance(executable, sizes).main.outputs
        assert run(at, "cortex-a72", *(a.nbytes for a in inputs), *(spec.nbytes for spec in outputs)) == 0
        found = [np.fromfile(at / f"out.{n}", spec.dtype).reshape(spec.shape) for n, spec in enumerate(outputs)]
        check_equal(found, peer.run(None, feeds))


def test_lines_of_text_of_any_width(tmp_path: Path) -> None:
    model = onnx.load(wheel_model(PP_OCR, RECOGNIZE))
    lines = [{"x": line_of_text(48, width)} for width in (40, 320)]
    check(model, {"x": (1, 3, 48, "W")}, {"W": "32..640:8@320"}, lines, tmp_path)


def test_batches_of_photos(tmp_path: Path) -> None:
    x = picture_for_detector(224, 224)
    model = with_random_weights("squeezenet", {"data_0": x})
    for value in (*model.graph.input, *model.graph.output):  # the file says 1
        value.type.tensor_type.shape.dim[0].dim_param = "N"
    del model.graph.value_info[:]
    batches = [{"data_0": batch} for batch in (x, np.concatenate([x, x[..., ::-1], x[:, ::-1]]))]
    check(model, {"data_0": ("N", 3, 224, 224)}, {"N": "1..4@1"}, batches, tmp_path)


@pytest.mark.parametrize("layers", MINI_LM)
def test_sentences_of_any_length(layers: str, tmp_path: Path) -> None:
    model = onnx.load(wheel_model(*MINI_LM[layers]))
    runs = []
    for batch, words in ((1, 5), (3, 18)):
        ids = np.random.default_rng(words).integers(1000, 30000, (batch, words))
        mask = (np.arange(words) < np.arange(words, words - batch, -1)[:, None]).astype(np.int64)
        given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        runs.append({each.name: given[each.name] for each in model.graph.input})
    shapes: dict[str, tuple[str | int, ...]] = dict.fromkeys(runs[0], ("N", "T"))
    check(model, shapes, {"N": "1..8@1", "T": "1..128@12"}, runs, tmp_path)
