"""RoiAlign beside onnxruntime: regions inside, across and outside of images, of one size or open."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto, TensorProto, helper

import landbridge as lb
from tests.selection.installed import package

Array = np.ndarray[Any, Any]


def model(images: Any, count: Any, opset: int = 16, **attributes: object) -> ModelProto:
    """One RoiAlign of float32 ``images`` (its shape) and ``count`` regions, extents or names of dimensions."""
    inputs = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, images),
        helper.make_tensor_value_info("rois", TensorProto.FLOAT, [count, 4]),
        helper.make_tensor_value_info("batches", TensorProto.INT64, [count]),
    ]
    cells = attributes.get("output_height", 1), attributes.get("output_width", 1)
    node = helper.make_node("RoiAlign", ["x", "rois", "batches"], ["y"], **attributes)
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, [count, images[1], *cells])
    graph = helper.make_graph([node], "regions", inputs, [output])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def feeds(images: tuple[int, ...], count: int, seed: int = 0) -> dict[str, Array]:
    """Images, and regions of which some cross the border, lie outside or have no area."""
    rng = np.random.default_rng(seed)
    corners = rng.uniform(-6, 14, (count, 2))
    rois = np.concatenate([corners, corners + rng.uniform(-1, 12, (count, 2))], 1).astype(np.float32)
    rois[0, 2:] = rois[0, :2]
    x = rng.standard_normal(images).astype(np.float32)
    return {"x": x, "rois": rois, "batches": rng.integers(0, images[0], count)}


def expected(made: ModelProto, given: dict[str, Array]) -> Array:
    session = onnxruntime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
    (y,) = session.run(None, given)
    return np.asarray(y)


@pytest.mark.sample(3)
@pytest.mark.parametrize("target", ["llvm", "c", "opencl"])
@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize("coordinates", ["half_pixel", "output_half_pixel"])
@pytest.mark.parametrize(("samples", "rows", "columns"), [(1, 1, 1), (2, 7, 5), (3, 2, 4)])
def test_regions(samples: int, rows: int, columns: int, coordinates: str, mode: str, target: str) -> None:
    if target == "opencl":
        package("pyopencl", "test")
    shape = (2, 5, 9, 11)
    how = {"coordinate_transformation_mode": coordinates, "mode": mode, "spatial_scale": 0.75}
    made = model(shape, 13, sampling_ratio=samples, output_height=rows, output_width=columns, **how)
    given = feeds(shape, 13, samples)
    session = lb.Session(lb.compile(made, target), device="cpu" if target != "opencl" else target)
    (y,) = session(*given.values())
    with y.host_view("r") as found:
        # Coordinates are of float32 on both sides: a place of 14 is known to 1e-6, and pixels differ by up to 6.
        np.testing.assert_allclose(found, expected(made, given), rtol=0, atol=2e-5)


@pytest.mark.parametrize("opset", [10, 16])
def test_versions(opset: int) -> None:
    """Before opset 16 coordinates count from the corners of pixels."""
    made = model((1, 3, 8, 8), 4, opset, sampling_ratio=2, output_height=3, output_width=3)
    given = feeds((1, 3, 8, 8), 4)
    (y,) = lb.Session(lb.compile(made))(*given.values())
    np.testing.assert_allclose(np.asarray(y), expected(made, given), rtol=0, atol=2e-5)


def test_open_images_and_regions() -> None:
    """One program for images and regions of any number and size, none among them."""
    made = model(("N", "C", "H", "W"), "R", sampling_ratio=2, output_height=4, output_width=3)
    session = lb.Session(lb.compile(made))
    for shape, count in (((1, 3, 8, 8), 4), ((2, 17, 5, 21), 9), ((1, 1, 1, 1), 1)):
        given = feeds(shape, count)
        (y,) = session(*given.values())
        np.testing.assert_allclose(np.asarray(y), expected(made, given), rtol=0, atol=2e-5)


def test_float16() -> None:
    """Samples of float16 are computed in float32 and rounded once."""
    shape = (1, 4, 9, 9)
    given = feeds(shape, 6)
    exact = expected(model(shape, 6, sampling_ratio=2, output_height=3, output_width=3), given)
    narrow = model(shape, 6, sampling_ratio=2, output_height=3, output_width=3)
    for value in (*list(narrow.graph.input)[:2], narrow.graph.output[0]):
        value.type.tensor_type.elem_type = TensorProto.FLOAT16
    halves = {name: a.astype(np.float16) if a.dtype == np.float32 else a for name, a in given.items()}
    exact = expected(
        model(shape, 6, sampling_ratio=2, output_height=3, output_width=3),
        {name: a.astype(np.float32) if a.dtype == np.float16 else a for name, a in halves.items()},
    )
    (y,) = lb.Session(lb.compile(narrow))(*halves.values())
    np.testing.assert_allclose(np.asarray(y).astype(np.float32), exact, rtol=2.0**-11, atol=2e-5)


def test_an_image_that_is_not_there_reads_the_nearest() -> None:
    """Numbers of images are held to those that there are, and refused where the run is asked to check them."""
    shape = (2, 3, 8, 8)
    made = model(shape, 4, sampling_ratio=2, output_height=2, output_width=2)
    given = feeds(shape, 4)
    given["batches"] = np.array([0, 7, -3, 1])
    held = {**given, "batches": np.array([0, 1, 0, 1])}
    (y,) = lb.Session(lb.compile(made))(*given.values())
    np.testing.assert_allclose(np.asarray(y), expected(made, held), rtol=0, atol=2e-5)
    with pytest.raises(lb.IndexRangeError, match="batch_indices"):
        lb.Session(lb.compile(made, check_indices=True))(*given.values())


@pytest.mark.sample(3)
@pytest.mark.parametrize("target", ["llvm", "c"])
@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize("coordinates", ["half_pixel", "output_half_pixel"])
def test_samples_by_the_extent_of_regions(coordinates: str, mode: str, target: str) -> None:
    """Without sampling_ratio a cell has about as many samples as pixels."""
    how = {"coordinate_transformation_mode": coordinates, "mode": mode, "spatial_scale": 0.75}
    made = model((2, 5, 9, 11), 13, output_height=2, output_width=3, **how)
    given = feeds((2, 5, 9, 11), 13)
    given["rois"][1] = [-20, -30, 25, 40]  # many samples are outside
    (y,) = lb.Session(lb.compile(made, target))(*given.values())
    # A place of up to 40 is known to 4e-6, and pixels differ by up to 6.
    np.testing.assert_allclose(np.asarray(y), expected(made, given), rtol=0, atol=2e-5)


def test_samples_by_the_extent_of_open_images_and_regions() -> None:
    made = model(("N", "C", "H", "W"), "R", output_height=4, output_width=3)
    session = lb.Session(lb.compile(made))
    for shape, count in (((1, 3, 8, 8), 4), ((2, 17, 5, 21), 9), ((1, 1, 1, 1), 1)):
        given = feeds(shape, count)
        (y,) = session(*given.values())
        np.testing.assert_allclose(np.asarray(y), expected(made, given), rtol=0, atol=2e-5)


@pytest.mark.sample(2)
@pytest.mark.parametrize("corner", [1e9, 1e30, np.inf, np.nan])
def test_regions_far_larger_than_the_image(corner: float) -> None:
    """The work is that of the image, and cells whose samples lie outside of it are 0."""
    made = model((1, 2, 8, 8), 2, output_height=2, output_width=2)
    given = feeds((1, 2, 8, 8), 2)
    given["rois"] = np.array([[-corner, -corner, corner, corner], [corner, corner, 2 * corner, 2 * corner]], np.float32)
    (y,) = lb.Session(lb.compile(made))(*given.values())
    found = np.asarray(y)
    assert np.abs(found).max() < 1e-6  # the mean of an image among very many zeros


@pytest.mark.sample(2)
@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize("coordinates", ["half_pixel", "output_half_pixel"])
def test_adaptive_samples_of_reversed_and_empty_regions(mode: str, coordinates: str) -> None:
    """Where the region decides how many samples a cell has, one that ends before it begins has none: cells are 0."""
    made = model(
        (1, 2, 17, 13), 3, mode=mode, coordinate_transformation_mode=coordinates, output_height=3, output_width=5
    )
    given = feeds((1, 2, 17, 13), 3)
    given["rois"] = np.array([[9, 9, 3, 3], [2, 2, 2, 2], [0, 0, 5, 5]], np.float32)
    session = lb.Session(lb.compile(made), num_threads=1)
    found = np.array(session(*(given[name] for name in ("x", "rois", "batches")))[0])
    # The weights are of f32 in onnxruntime and rounded from f64 here: some ulp of coordinates up to 17.
    np.testing.assert_allclose(found, expected(made, given), rtol=1e-5, atol=1e-5)
