"""Col2Im as a kernel, beside onnxruntime's."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from onnx import ModelProto

import landbridge as lb
from tests.ops.one_node_peer import Array, found_and_wanted, model_of

#: Batch, channels, the shapes of image and blocks, strides, dilations, pads.
CASES = {
    "plain": (1, 2, [5, 5], [3, 3], [1, 1], [1, 1], [0, 0, 0, 0]),
    "padding": (2, 8, [12, 30], [3, 3], [1, 1], [1, 1], [1, 2, 1, 0]),
    "blocks side by side": (1, 3, [32, 16], [4, 8], [4, 8], [1, 1], [0, 0, 0, 0]),
    "gaps between blocks": (1, 2, [11, 13], [2, 2], [3, 4], [1, 1], [0, 1, 0, 1]),
    "strides": (2, 3, [7, 6], [3, 2], [2, 1], [1, 1], [0, 0, 0, 0]),
    "strides that divide no block": (1, 2, [9, 8], [3, 3], [2, 2], [1, 1], [1, 1, 1, 1]),
    "dilations": (1, 2, [9, 8], [3, 3], [1, 1], [2, 3], [0, 0, 0, 0]),
    "dilations and strides": (1, 2, [9, 8], [3, 3], [2, 3], [2, 2], [1, 2, 3, 1]),
    "pixels that no block covers": (1, 1, [9, 11], [2, 2], [3, 3], [1, 1], [0, 0, 0, 0]),
    "more padding than a stride": (1, 1, [9, 11], [5, 5], [2, 2], [1, 1], [4, 3, 4, 4]),
    "one axis": (1, 2, [12], [4], [3], [1], [5, 2]),
    "three axes": (1, 1, [4, 5, 6], [2, 3, 2], [1, 2, 2], [1, 1, 1], [1, 0, 1, 0, 1, 1]),
}


def _columns(image: Sequence[int], block: Sequence[int], s: Sequence[int], d: Sequence[int], p: Sequence[int]) -> int:
    rank = len(image)
    spans = [(b - 1) * d[i] + 1 for i, b in enumerate(block)]
    return int(np.prod([(e + p[i] + p[rank + i] - spans[i]) // s[i] + 1 for i, e in enumerate(image)]))


def _case(name: str) -> tuple[ModelProto, Array]:
    n, channels, image, block, strides, dilations, pads = CASES[name]
    shape = (n, channels * int(np.prod(block)), _columns(image, block, strides, dilations, pads))
    text = (
        f"(float[{','.join(map(str, shape))}] x) => (float[{n},{channels},{','.join(map(str, image))}] y) "
        f"{{ y = Col2Im<strides={strides}, dilations={dilations}, pads={pads}>(x, i, b) }}"
    )
    values = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    return model_of(text, 18, {"i": np.array(image), "b": np.array(block)}), values


@pytest.mark.sample(7)
@pytest.mark.parametrize("target", ["llvm", "c"])
@pytest.mark.parametrize("name", CASES)
def test_values_are_those_of_onnxruntime(name: str, target: str) -> None:
    model, x = _case(name)
    found, want = found_and_wanted(model, {"x": x}, target=target)
    np.testing.assert_allclose(found, want, rtol=1e-6, atol=1e-6)  # sums of up to 25 numbers in another order


def test_the_shape_of_the_image_may_be_an_input() -> None:
    text = """(float[1,18,L] x, int64[2] i) => (float[1,2,H,W] y) { y = Col2Im<pads=[1,1,1,1]>(x, i, b) }"""
    model = model_of(text, 18, {"b": np.array([3, 3])})
    session = lb.Session(lb.compile(model))
    for image in ([5, 7], [9, 4]):
        x = np.random.default_rng(0).standard_normal((1, 18, image[0] * image[1])).astype(np.float32)
        feeds = {"x": x, "i": np.array(image)}
        _, want = found_and_wanted(model, feeds)
        np.testing.assert_allclose(np.asarray(session(x, feeds["i"])[0]), want, rtol=1e-6, atol=1e-6)


def test_columns_that_are_not_those_of_the_image_are_refused() -> None:
    model = model_of(
        "(float[1,18,34] x) => (float[1,2,5,7] y) { y = Col2Im<pads=[1,1,1,1]>(x, i, b) }",
        18,
        {"i": np.array([5, 7]), "b": np.array([3, 3])},
    )
    with pytest.raises(lb.ShapeError, match="34 columns of 18 elements"):
        lb.compile(model)
