"""Attention of ONNX whose past and present are one buffer, beside onnx's own reference, which concatenates them."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

import landbridge as lb

BATCH, HEADS, SHARED, SIZE = 2, 4, 2, 8


def model(
    opset: int, *, in_heads: bool, masked: str = "", of_heads: tuple[int, ...] = (), **attributes: Any
) -> onnx.ModelProto:
    """Attention over a past of P steps and S new ones; ``masked``: the dtype of a mask over all of them, whose first
    extents are ``of_heads``.
    """
    widths = {"q": HEADS, "k": SHARED, "v": SHARED}
    shapes: dict[str, list[Any]] = {
        name: [BATCH, heads, "S", SIZE] if in_heads else [BATCH, "S", heads * SIZE] for name, heads in widths.items()
    }
    shapes |= {name: [BATCH, SHARED, "P", SIZE] for name in ("past_key", "past_value")}
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items()]
    if masked:
        kind = TensorProto.BOOL if masked == "bool" else TensorProto.FLOAT
        inputs.insert(3, helper.make_tensor_value_info("mask", kind, [*of_heads, "S", "T"]))
    present = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [BATCH, SHARED, "T", SIZE])
        for name in ("present_key", "present_value")
    ]
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, shapes["q"])
    given = ["q", "k", "v", "mask" if masked else "", "past_key", "past_value"]
    heads = {} if in_heads else {"q_num_heads": HEADS, "kv_num_heads": SHARED}
    node = helper.make_node(
        "Attention", given, ["y", "present_key", "present_value"], name="attend", **heads, **attributes
    )
    graph = helper.make_graph([node], "g", inputs, [y, *present])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


@pytest.mark.sample(8)
@pytest.mark.parametrize("opset", [23, 24])
@pytest.mark.parametrize("in_heads", [True, False])
@pytest.mark.parametrize(
    ("masked", "attributes"),
    [
        ("", {}),
        ("bool", {}),
        ("float32", {"scale": 0.5}),
        ("", {"is_causal": 1}),
        ("", {"is_causal": 1, "softcap": 2.0}),
        ("bool", {"is_causal": 1}),
        ("float32", {"is_causal": 1}),
        ("float32", {"is_causal": 1, "of_heads": (BATCH, 1)}),
        ("bool", {"is_causal": 1, "of_heads": (BATCH, HEADS)}),
    ],
)
def test_a_prompt_and_steps(opset: int, in_heads: bool, masked: str, attributes: dict[str, Any]) -> None:
    of_heads = attributes.get("of_heads", ())
    written = model(opset, in_heads=in_heads, masked=masked, **attributes)
    session, rng = lb.Session(lb.compile(written, alias="auto")), np.random.default_rng(3)
    state, reference = session.bind_state(capacity=16), ReferenceEvaluator(written)
    past = [np.zeros((BATCH, SHARED, 0, SIZE), np.float32)] * 2
    for steps in (5, 1, 1, 3):
        total = past[0].shape[2] + steps
        shapes = [(BATCH, h, steps, SIZE) if in_heads else (BATCH, steps, h * SIZE) for h in (HEADS, SHARED, SHARED)]
        feeds = {name: rng.standard_normal(s, np.float32) for name, s in zip("qkv", shapes, strict=True)}
        if masked:
            allowed = rng.random((*of_heads, steps, total)) < 0.7
            allowed[..., 0] = True
            feeds["mask"] = allowed if masked == "bool" else np.where(allowed, 0, -5).astype(np.float32)
        with lb.no_copies(), lb.ledger() as ledger:
            found = session(feeds)
        assert not [move for move in ledger.entries if "present" in move.tensor or "past" in move.tensor]
        want, *past = reference.run(None, feeds | {"past_key": past[0], "past_value": past[1]})
        np.testing.assert_allclose(found["y"], want, rtol=1e-5, atol=1e-5)
        assert state.length == total
        for name, value in zip(("past_key", "past_value"), past, strict=True):
            np.testing.assert_array_equal(np.asarray(state.tensors[name])[:, :, :total], value)


@pytest.mark.parametrize("attributes", [{"left_window_size": 2}, {"is_causal": 1, "left_window_size": 1}])
@pytest.mark.parametrize("masked", ["", "bool"])
def test_windows_count_from_the_past(masked: str, attributes: dict[str, Any]) -> None:
    test_a_prompt_and_steps(25, True, masked, attributes)


def test_a_window_to_later_keys() -> None:
    test_a_prompt_and_steps(25, True, "", {"left_window_size": 2, "right_window_size": 1})


@pytest.mark.parametrize("kind", ["bool", "float32"])
def test_a_causal_mask_that_is_shorter_than_the_keys(kind: str) -> None:
    """From opset 24 on: the keys behind it are not attended."""
    written = model(24, in_heads=True, masked=kind, is_causal=1)
    written.graph.input[3].type.tensor_type.shape.dim[1].dim_param = "M"
    session, rng = lb.Session(lb.compile(written, alias="auto")), np.random.default_rng(3)
    session.bind_state(capacity=16)
    past = np.zeros((2, BATCH, SHARED, 0, SIZE), np.float32)
    for steps, known in ((4, 3), (1, 5), (2, 4)):
        total = past.shape[3] + steps
        feeds = {
            name: rng.standard_normal((BATCH, heads, steps, SIZE), np.float32)
            for name, heads in zip("qkv", (HEADS, SHARED, SHARED), strict=True)
        }
        allowed = rng.random((steps, known)) < 0.7
        allowed[:, 0] = True
        mask = allowed if kind == "bool" else np.where(allowed, rng.random((steps, known)), -np.inf).astype(np.float32)
        with lb.no_copies():
            found = session(feeds | {"mask": mask})
        keys, values = past = np.concatenate([past, np.stack([feeds["k"], feeds["v"]])], axis=3)
        scores = np.einsum("bhsd,bhtd->bhst", feeds["q"], keys.repeat(HEADS // SHARED, 1)) / np.sqrt(SIZE)
        bias = np.full((steps, total), -np.inf, np.float32)
        bias[:, :known] = np.where(mask, 0, -np.inf) if kind == "bool" else mask
        bias[np.arange(total) > np.arange(total - steps, total)[:, None]] = -np.inf
        weights = np.exp(scores + bias)
        want = weights / weights.sum(-1, keepdims=True) @ values.repeat(HEADS // SHARED, 1)
        np.testing.assert_allclose(found["y"], want, rtol=1e-4, atol=1e-5)


def test_an_open_number_of_heads() -> None:
    """ONNX's own definition is used where it is not known which heads share keys."""
    text = """<ir_version: 10, opset_import: ["" : 23]>
        g (float[2, H, 3, 8] q, float[2, H, 5, 8] k, float[2, H, 5, 8] v) => (float[2, H, 3, 8] y)
        { y = Attention <scale = 0.5> (q, k, v) }"""
    written, rng = onnx.parser.parse_model(text), np.random.default_rng(1)
    session, reference = lb.Session(lb.compile(written)), ReferenceEvaluator(written)
    for heads in (1, 4):
        feeds = {n: rng.standard_normal((2, heads, s, 8), np.float32) for n, s in zip("qkv", (3, 5, 5), strict=True)}
        np.testing.assert_allclose(session(feeds)["y"], reference.run(None, feeds)[0], rtol=1e-5, atol=1e-5)
