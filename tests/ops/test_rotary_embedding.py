"""RotaryEmbedding against float64 numpy: both layouts, part of a head, positions by table and step by step."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, helper

import landbridge as lb
from landbridge.dtypes import numpy_dtype

Array = np.ndarray[Any, Any]
BATCH, HEADS, STEPS, SIZE, POSITIONS = 2, 3, 5, 20, 9


def model(feeds: dict[str, Array], shape: Any, **attributes: object) -> ModelProto:
    kinds = {name: helper.np_dtype_to_tensor_dtype(a.dtype) for name, a in feeds.items()}
    inputs = [helper.make_tensor_value_info(n, kinds[n], shape if n == "x" else a.shape) for n, a in feeds.items()]
    node = helper.make_node("RotaryEmbedding", list(feeds), ["y"], **attributes)
    outputs = [helper.make_tensor_value_info("y", kinds["x"], shape)]
    graph = helper.make_graph([node], "rotary", inputs, outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10)


def rotated(x: Array, cosines: Array, sines: Array, interleaved: bool) -> Array:
    """``x`` [B, H, S, D] in float64, by angles [B, S, half]."""
    x, cosines, sines = x.astype(np.float64), cosines.astype(np.float64)[:, None], sines.astype(np.float64)[:, None]
    half, y = cosines.shape[-1], x.copy()
    parts = (slice(0, 2 * half, 2), slice(1, 2 * half, 2)) if interleaved else (slice(half), slice(half, 2 * half))
    first, second = x[..., parts[0]], x[..., parts[1]]
    y[..., parts[0]], y[..., parts[1]] = first * cosines - second * sines, first * sines + second * cosines
    return y


@pytest.mark.sample(6)
@pytest.mark.parametrize("target", ["llvm", "c"])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("half", [3, 8, 10])
@pytest.mark.parametrize(
    ("rank", "interleaved", "by_position"), [(4, 0, True), (4, 1, True), (3, 0, True), (4, 0, False), (3, 1, False)]
)
def test_pairs(rank: int, interleaved: int, by_position: bool, half: int, dtype: str, target: str) -> None:
    rng = np.random.default_rng(half)
    rows = (POSITIONS,) if by_position else (BATCH, STEPS)
    x = rng.uniform(-2, 2, (BATCH, HEADS, STEPS, SIZE)).astype(numpy_dtype(dtype))
    cosines, sines = (rng.uniform(-1, 1, (*rows, half)).astype(numpy_dtype(dtype)) for _ in range(2))
    feeds = {"x": x, "cos": cosines, "sin": sines}
    angles = [cosines, sines]
    if by_position:
        feeds["positions"] = rng.integers(0, POSITIONS, (BATCH, STEPS))
        angles = [table[feeds["positions"]] for table in angles]
    expected = rotated(x, *angles, bool(interleaved))
    attributes = {"interleaved": interleaved, "rotary_embedding_dim": 0 if 2 * half == SIZE else 2 * half}
    if rank == 3:
        feeds["x"], expected = (np.ascontiguousarray(a.swapaxes(1, 2)).reshape(BATCH, STEPS, -1) for a in (x, expected))
        attributes["num_heads"] = HEADS
    (y,) = lb.Session(lb.compile(model(feeds, feeds["x"].shape, **attributes), target))(*feeds.values())
    found = np.asarray(y).astype(np.float64)
    # Two products of at most 2 and their sum in float32, then one rounding to the dtype: half a place of at most 4.
    places = {"float32": 24, "float16": 11, "bfloat16": 8}[dtype]
    assert np.abs(found - expected).max() <= 4 * 2.0**-places + 12 * 2.0**-24


def test_open_batch_and_steps() -> None:
    rng = np.random.default_rng(0)
    tables = [rng.uniform(-1, 1, (POSITIONS, 4)).astype(np.float32) for _ in range(2)]
    session = None
    for batch, steps in ((1, 1), (2, 7), (3, 4)):
        x = rng.standard_normal((batch, 2, steps, 8)).astype(np.float32)
        positions = rng.integers(0, POSITIONS, (batch, steps))
        feeds = {"x": x, "cos": tables[0], "sin": tables[1], "positions": positions}
        made = model(feeds, ("B", 2, "S", 8))
        for axis, name in enumerate("BS"):
            made.graph.input[3].type.tensor_type.shape.dim[axis].dim_param = name
        session = session or lb.Session(lb.compile(made))
        (y,) = session(*feeds.values())
        np.testing.assert_allclose(np.asarray(y), rotated(x, *(t[positions] for t in tables), False), atol=2e-6)


def test_positions_out_of_range() -> None:
    """They read the nearest row; a program that checks indices refuses them."""
    x, table = np.ones((1, 1, 2, 8), np.float32), np.arange(12, dtype=np.float32).reshape(3, 4)
    feeds = {"x": x, "cos": table, "sin": table, "positions": np.array([[-4, 3]])}
    made = model(feeds, x.shape)
    (y,) = lb.Session(lb.compile(made))(*feeds.values())
    np.testing.assert_array_equal(np.asarray(y), rotated(x, table[[[0, 2]]], table[[[0, 2]]], False))
    with pytest.raises(lb.IndexRangeError, match="position_ids"):
        lb.Session(lb.compile(made, check_indices=True))(*feeds.values())


def test_a_head_that_does_not_fit_is_refused() -> None:
    table = np.ones((3, 4), np.float32)
    feeds = {"x": np.ones((1, 1, 2, 6), np.float32), "cos": table, "sin": table, "positions": np.zeros((1, 2), int)}
    with pytest.raises(lb.ShapeError):
        lb.compile(model(feeds, (1, 1, 2, 6)))
