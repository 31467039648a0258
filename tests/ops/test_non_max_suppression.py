"""NonMaxSuppression as kernels, beside onnxruntime's: equal rows, ties and all."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto, numpy_helper, parser

import landbridge as lb

Array = np.ndarray[Any, Any]


def _model(shapes: str, attributes: str = "", **constants: Array) -> ModelProto:
    """One node; of its three limits those that are no ``constants`` are inputs, ``-`` is one that is left out."""
    names = [name for name in ("most", "overlap", "least") if constants.get(name) is not None]
    given = ", ".join(name if name in names else "" for name in ("most", "overlap", "least")).rstrip(", ")
    text = f"""<ir_version: 8, opset_import: ["" : 17]>
    g ({shapes}) => (int64[K,3] y) {{ y = NonMaxSuppression{attributes}(boxes, scores, {given}) }}"""
    model = parser.parse_model(text)
    for name in names:
        if f" {name}" not in shapes:
            model.graph.initializer.append(numpy_helper.from_array(constants[name], name))
    return model


def _boxes(rng: np.random.Generator, batch: int, count: int) -> Array:
    """Corners in any order: of boxes that overlap, touch, have no area, and are equal."""
    low, sides = rng.integers(0, 12, (batch, count, 2)), rng.integers(0, 5, (batch, count, 2))
    corners = np.concatenate([low, low + sides], -1).astype(np.float32)
    flipped = rng.random((batch, count)) < 0.3
    corners[flipped] = corners[flipped][:, [2, 3, 0, 1]]
    return corners


def _compare(model: ModelProto, feeds: dict[str, Array], **options: Any) -> Array:
    (want,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, feeds)
    program = lb.compile(model, **options)
    (found,) = lb.Session(program)(*(feeds[spec.name] for spec in program.main.inputs))
    np.testing.assert_array_equal(np.asarray(found), want)
    return np.asarray(found)


@pytest.mark.sample(6)
@pytest.mark.parametrize("target", ["llvm", "c"])
@pytest.mark.parametrize("by_center", [0, 1])
@pytest.mark.parametrize("least", [None, -1.0, 0.3, 2.0])
@pytest.mark.parametrize("most", [0, 1, 5, 1000])
def test_rows_equal_those_of_onnxruntime(most: int, least: float | None, by_center: int, target: str) -> None:
    rng = np.random.default_rng(7)
    model = _model(
        "float[2,60,4] boxes, float[2,3,60] scores",
        f"<center_point_box={by_center}>",
        most=np.array([most]),
        overlap=np.array([0.4], np.float32),
        least=np.array([least], np.float32) if least is not None else None,  # type: ignore[arg-type]
    )
    scores = rng.integers(-3, 6, (2, 3, 60)).astype(np.float32) / 5  # most of them equal others
    _compare(model, {"boxes": _boxes(rng, 2, 60), "scores": scores}, target=target)


@pytest.mark.parametrize("overlap", [0.0, 0.5, 1.0])
def test_limits_may_come_with_the_run(overlap: float) -> None:
    rng = np.random.default_rng(3)
    model = _model(
        "float[1,40,4] boxes, float[1,2,40] scores, int64[1] most, float overlap, float[1] least",
        most=np.array(0),
        overlap=np.array(0),
        least=np.array(0),
    )
    for most in (-2, 0, 3, 40, 10**12):
        feeds = {
            "boxes": _boxes(rng, 1, 40),
            "scores": rng.random((1, 2, 40), np.float32),
            "most": np.array([most]),
            "overlap": np.array(overlap, np.float32),
            "least": np.array([0.2], np.float32),
        }
        _compare(model, feeds)


def test_how_many_boxes_there_are_may_be_open() -> None:
    rng = np.random.default_rng(5)
    model = _model("float[B,N,4] boxes, float[B,C,N] scores", most=np.array([4]), overlap=np.array([0.5], np.float32))
    session = lb.Session(lb.compile(model))
    reference = onnxruntime.InferenceSession(model.SerializeToString())
    for batch, classes, count in ((1, 1, 1), (2, 3, 50), (1, 70, 8)):
        feeds = {"boxes": _boxes(rng, batch, count), "scores": rng.random((batch, classes, count), np.float32)}
        (found,) = session(feeds["boxes"], feeds["scores"])
        (want,) = reference.run(None, feeds)
        np.testing.assert_array_equal(np.asarray(found), want)


def test_a_score_that_is_no_number_comes_last() -> None:
    model = _model("float[1,4,4] boxes, float[1,1,4] scores", most=np.array([4]))
    boxes = np.array([[[i, i, i + 1, i + 1] for i in range(4)]], np.float32)
    scores = np.array([[[0.5, np.nan, -np.inf, np.inf]]], np.float32)
    (found,) = lb.Session(lb.compile(model))(boxes, scores)
    assert np.asarray(found)[:, 2].tolist() == [3, 0, 2, 1]


def test_classes_are_shared_by_threads() -> None:
    rng = np.random.default_rng(11)
    model = _model(
        "float[2,300,4] boxes, float[2,90,300] scores",
        most=np.array([50]),
        overlap=np.array([0.3], np.float32),
        least=np.array([0.5], np.float32),
    )
    feeds = {"boxes": _boxes(rng, 2, 300), "scores": rng.random((2, 90, 300), np.float32)}
    program = lb.compile(model)
    (one,) = lb.Session(program, num_threads=1)(feeds["boxes"], feeds["scores"])
    (two,) = lb.Session(program, num_threads=2)(feeds["boxes"], feeds["scores"])
    (want,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, feeds)
    np.testing.assert_array_equal(np.asarray(one), want)
    np.testing.assert_array_equal(np.asarray(two), want)


def test_no_access_is_outside_of_what_sanitized_kernels_test() -> None:
    rng = np.random.default_rng(2)
    model = _model("float[1,30,4] boxes, float[1,2,30] scores", most=np.array([30]), least=np.array([0.1], np.float32))
    _compare(model, {"boxes": _boxes(rng, 1, 30), "scores": rng.random((1, 2, 30), np.float32)}, sanitize=True)


def test_a_saved_program_runs_same(tmp_path: Any) -> None:
    rng = np.random.default_rng(2)
    model = _model("float[1,30,4] boxes, float[1,2,30] scores", most=np.array([30]), least=np.array([0.1], np.float32))
    feeds = {"boxes": _boxes(rng, 1, 30), "scores": rng.random((1, 2, 30), np.float32)}
    program = lb.compile(model)
    program.save(tmp_path / "nms.lbx")
    (found,) = lb.Session(lb.load(tmp_path / "nms.lbx"))(feeds["boxes"], feeds["scores"])
    np.testing.assert_array_equal(
        np.asarray(found), np.asarray(lb.Session(program)(feeds["boxes"], feeds["scores"])[0])
    )
