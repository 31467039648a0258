"""MultiHeadAttention whose past and present are one buffer, beside onnxruntime, whose caches grow."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto, TensorProto, helper

import landbridge as lb

Array = np.ndarray[Any, Any]

HEADS, SIZE, BATCH = 2, 8, 2
WIDTH = HEADS * SIZE


def model(kind: str, *, masked: bool = False, **attributes: Any) -> ModelProto:
    steps = 1 if kind == "DecoderMaskedMultiHeadAttention" else "S"
    floats: dict[str, list[int | str]] = {name: [BATCH, steps, WIDTH] for name in "qkv"}
    floats |= {name: [BATCH, HEADS, "P", SIZE] for name in ("past_key_0", "past_value_0")}
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in floats.items()]
    past = ["past_key_0", "past_value_0"]
    if kind == "MultiHeadAttention":
        given = ["q", "k", "v", "", "mask" if masked else "", "", *past]
    else:
        given = ["q", "k", "v", "", "", *past]
    if masked:
        inputs.append(helper.make_tensor_value_info("mask", TensorProto.INT32, [BATCH, "T"]))
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [BATCH, steps, WIDTH])]
    present = ["present_key_0", "present_value_0"]
    outputs += [helper.make_tensor_value_info(n, TensorProto.FLOAT, [BATCH, HEADS, "T", SIZE]) for n in present]
    node = helper.make_node(
        kind, given, ["y", *present], domain="com.microsoft", name="attend", num_heads=HEADS, **attributes
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(helper.make_graph([node], "g", inputs, outputs), opset_imports=opsets, ir_version=8)


FORMS: dict[str, Any] = {
    "plain": ("MultiHeadAttention", {}),
    "causal": ("MultiHeadAttention", {"unidirectional": 1}),
    "masked": ("MultiHeadAttention", {"masked": True}),
    "of one step": ("DecoderMaskedMultiHeadAttention", {}),
}


@pytest.mark.sample(2)
@pytest.mark.parametrize("form", FORMS)
def test_a_history_in_one_buffer(form: str) -> None:
    kind, facts = FORMS[form]
    graph, rng = model(kind, **facts), np.random.default_rng(3)
    session = lb.Session(lb.compile(graph, alias="auto"))
    state = session.bind_state(capacity=12)
    same = model("MultiHeadAttention", **facts)  # onnxruntime's own node of one step takes caches of one buffer alone
    theirs = onnxruntime.InferenceSession(same.SerializeToString(), providers=["CPUExecutionProvider"])
    past: dict[str, Array] = {name: np.zeros((BATCH, HEADS, 0, SIZE), np.float32) for name in state.pairs.values()}
    where = set()
    for steps, length in ((4, 0), (1, 4), (2, 5), (1, 3), (3, 4)) if kind == "MultiHeadAttention" else (
        (1, 0), (1, 1), (1, 2), (1, 1), (1, 2)
    ):  # fmt: skip
        state.rewind(length)
        feeds = {name: rng.standard_normal((BATCH, steps, WIDTH)).astype(np.float32) for name in "qkv"}
        if facts.get("masked"):
            feeds["mask"] = np.ones((BATCH, length + steps), np.int32)
        past = {name: value[:, :, :length].copy() for name, value in past.items()}
        expected, *kept = theirs.run(None, feeds | past)
        past = dict(zip(past, kept, strict=True))
        with lb.no_copies():
            found = session(feeds)
        np.testing.assert_allclose(found["y"].numpy(), expected, rtol=1e-4, atol=1e-5)
        for name, tensor in state.tensors.items():
            np.testing.assert_allclose(tensor.numpy()[:, :, : state.length], past[name], rtol=1e-5, atol=1e-6)
        where.add(tuple(tensor.data_address for tensor in state.tensors.values()))
    assert len(where) == 1


def onnx_attention(*, in_rows: bool, opset: int) -> ModelProto:
    """Attention of ONNX, of heads or of rows, with a mask that is an input."""
    shape: list[int | str] = [BATCH, "S", WIDTH] if in_rows else [BATCH, HEADS, "S", SIZE]
    floats: dict[str, list[int | str]] = dict.fromkeys("qkv", shape)
    floats |= {"mask": [BATCH, 1, "S", "T"]} | {name: [BATCH, HEADS, "P", SIZE] for name in ("past_k", "past_v")}
    results = {"y": shape, "present_k": [BATCH, HEADS, "T", SIZE], "present_v": [BATCH, HEADS, "T", SIZE]}
    sides = [
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in side.items()]
        for side in (floats, results)
    ]
    heads = {"q_num_heads": HEADS, "kv_num_heads": HEADS} if in_rows else {}
    node = helper.make_node("Attention", ["q", "k", "v", "mask", "past_k", "past_v"], list(results), "attend", **heads)
    graph = helper.make_graph([node], "g", *sides)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=11)


@pytest.mark.parametrize(("in_rows", "opset"), [(True, 23), (False, 24)])
def test_attention_of_onnx(in_rows: bool, opset: int) -> None:
    graph, rng = onnx_attention(in_rows=in_rows, opset=opset), np.random.default_rng(4)
    session = lb.Session(lb.compile(graph, alias="auto"))
    state = session.bind_state(capacity=12)
    theirs = onnxruntime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
    past: dict[str, Array] = {name: np.zeros((BATCH, HEADS, 0, SIZE), np.float32) for name in state.pairs.values()}
    where = set()
    for steps, length in ((4, 0), (1, 4), (2, 3)):
        state.rewind(length)
        shape = (BATCH, steps, WIDTH) if in_rows else (BATCH, HEADS, steps, SIZE)
        feeds = {name: rng.standard_normal(shape).astype(np.float32) for name in "qkv"}
        feeds["mask"] = rng.standard_normal((BATCH, 1, steps, length + steps)).astype(np.float32)
        past = {name: value[:, :, :length].copy() for name, value in past.items()}
        expected, *presents = theirs.run(None, feeds | past)
        past = dict(zip(past, presents, strict=True))
        np.testing.assert_allclose(session(feeds)["y"].numpy(), expected, rtol=1e-4, atol=1e-5)
        for name, tensor in state.tensors.items():
            np.testing.assert_allclose(tensor.numpy()[:, :, : state.length], past[name], rtol=1e-5, atol=1e-6)
        where.add(tuple(tensor.data_address for tensor in state.tensors.values()))
    assert len(where) == 1
