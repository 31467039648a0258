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
    ],
)
def test_a_prompt_and_steps(opset: int, in_heads: bool, masked: str, attributes: dict[str, Any]) -> None:
    written = model(opset, in_heads=in_heads, masked=masked, **attributes)
    session, rng = lb.Session(lb.compile(written, alias="auto")), np.random.default_rng(3)
    state, reference = session.bind_state(capacity=16), ReferenceEvaluator(written)
    past = [np.zeros((BATCH, SHARED, 0, SIZE), np.float32)] * 2
    for steps in (5, 1, 1, 3):
        total = past[0].shape[2] + steps
        shapes = [(BATCH, h, steps, SIZE) if in_heads else (BATCH, steps, h * SIZE) for h in (HEADS, SHARED, SHARED)]
        feeds = {name: rng.standard_normal(s, np.float32) for name, s in zip("qkv", shapes, strict=True)}
        if masked:
            allowed = rng.random((*attributes.get("of_heads", ()), steps, total)) < 0.7
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
