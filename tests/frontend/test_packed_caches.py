"""Caches of com.microsoft's attention operators in one buffer, beside onnxruntime, which joins past and new."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime as ort
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

import landbridge as lb

Array = np.ndarray[Any, Any]
Facts = dict[str, list[Any]]

BATCH, HEADS, SIZE, CAPACITY = 2, 3, 4, 12
WIDTH = HEADS * SIZE
ROWS: list[Any] = [BATCH, "S", WIDTH]
CACHE: list[Any] = [BATCH, HEADS, "P", SIZE]
#: Steps of a prompt, single ones, and several at once.
PROMPT = (4, 1, 1, 3)


def model(
    kind: str, given: list[str], inputs: Facts, outputs: Facts, weights: dict[str, Array], **attributes: Any
) -> ModelProto:
    """One node of com.microsoft; ``given`` are its inputs, of which ``mask`` has integers."""
    sides = [
        [
            helper.make_tensor_value_info(
                name, TensorProto.INT32 if name in ("mask", "n") else TensorProto.FLOAT, shape
            )
            for name, shape in side.items()
        ]
        for side in (inputs, outputs)
    ]
    node = helper.make_node(kind, given, list(outputs), domain="com.microsoft", name="attend", **attributes)
    graph = helper.make_graph(
        [node], "g", *sides, [numpy_helper.from_array(value, name) for name, value in weights.items()]
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def check(written: ModelProto, caches: dict[str, str], axis: int, steps: tuple[int, ...]) -> None:
    """Runs that continue a State give what onnxruntime does, and copy nothing of it."""
    session, rng = lb.Session(lb.compile(written, alias="auto")), np.random.default_rng(7)
    state, reference = session.bind_state(capacity=CAPACITY), ort.InferenceSession(written.SerializeToString())
    assert state.pairs == caches
    past: dict[str, Array] = {}
    shapes = {value.name: value.type.tensor_type for value in written.graph.input}
    names = [value.name for value in written.graph.output]
    where, total = set(), 0
    for new in steps:
        total += new
        sizes = {"S": new, "T": total, "P": total - new}
        feeds: dict[str, Array] = {}
        for name, kind in shapes.items():
            shape = [sizes[d.dim_param] if d.dim_param else d.dim_value for d in kind.shape.dim]
            if name in caches.values():
                past.setdefault(name, np.zeros(shape, np.float32))
            elif name == "mask" and len(shape) == 1:
                feeds[name] = np.arange(total - BATCH + 1, total + 1).astype(np.int32)
            elif name == "mask":
                feeds[name] = (rng.random(shape) < 0.7).astype(np.int32)
            else:
                feeds[name] = rng.standard_normal(shape, np.float32)
        want = dict(zip(names, reference.run(None, feeds | past), strict=True))
        with lb.no_copies():
            found = session(feeds)
        np.testing.assert_allclose(np.asarray(found["y"]), want["y"], rtol=1e-4, atol=1e-5)
        past = {cache: want[present] for present, cache in caches.items()}
        for name, tensor in state.tensors.items():
            filled = np.asarray(tensor).take(range(total), axis)
            np.testing.assert_allclose(filled, past[name], rtol=1e-5, atol=1e-6)  # sums in another order
        where.add(tuple(tensor.data_address for tensor in state.tensors.values()))
        assert state.length == total
    assert len(where) == 1


def packed(masked: list[Any] | None, **attributes: Any) -> ModelProto:
    rng = np.random.default_rng(1)
    weights = {
        "w": rng.standard_normal((6, 3 * WIDTH), np.float32), "b": rng.standard_normal(3 * WIDTH, np.float32)
    }  # fmt: skip
    inputs: Facts = {"x": [BATCH, "S", 6], "past": [2, *CACHE]}
    inputs |= {"mask": masked} if masked else {}
    outputs: Facts = {"y": ROWS, "present": [2, BATCH, HEADS, "T", SIZE]}
    given = ["x", "w", "b", "mask" if masked else "", "past"]
    return model("Attention", given, inputs, outputs, weights, num_heads=HEADS, **attributes)


@pytest.mark.sample(3)
@pytest.mark.parametrize("unidirectional", [0, 1])
@pytest.mark.parametrize("masked", [None, [BATCH, "T"], [BATCH, "S", "T"], [BATCH]], ids=str)
def test_keys_and_values_in_one_cache(masked: list[Any] | None, unidirectional: int) -> None:
    check(packed(masked, unidirectional=unidirectional), {"present": "past"}, 3, PROMPT)


def test_a_packed_cache_that_is_one_buffer_from_the_start() -> None:
    """With a past_sequence_length: what onnxruntime does on its GPUs, compared with its CPU, which joins."""
    rng, grows = np.random.default_rng(5), packed(None)
    shared = packed(None, past_present_share_buffer=1)
    node, cache = shared.graph.node[0], helper.make_tensor_value_info("n", TensorProto.INT32, [1])
    node.input.extend(["", "n"])
    shared.graph.input.append(cache)
    for value in (shared.graph.input[1], shared.graph.output[1]):
        value.type.tensor_type.shape.dim[3].dim_value = CAPACITY
    executable = lb.compile(shared)
    assert executable.main.aliases == (("present", "past"),)
    session, reference = lb.Session(executable), ort.InferenceSession(grows.SerializeToString())
    state, past = session.bind_state(), np.zeros((2, BATCH, HEADS, 0, SIZE), np.float32)
    for steps in PROMPT:
        x = rng.standard_normal((BATCH, steps, 6), np.float32)
        want, past = reference.run(None, {"x": x, "past": past})
        with lb.no_copies():
            found = session({"x": x})["y"]
        np.testing.assert_allclose(np.asarray(found), want, rtol=1e-4, atol=1e-5)
        assert state.length == past.shape[3]
        np.testing.assert_allclose(
            np.asarray(state.tensors["past"])[:, :, :, : state.length], past, rtol=1e-5, atol=1e-6
        )
    with pytest.raises(lb.StateCapacityError, match="capacity is 12"):
        session({"x": np.ones((BATCH, 4, 6), np.float32)})


def test_a_quantized_packed_cache() -> None:
    rng = np.random.default_rng(2)
    weights = {
        "w": rng.integers(-99, 99, (6, 3 * WIDTH)).astype(np.int8),
        "b": rng.standard_normal(3 * WIDTH, np.float32),
        "xs": np.array(0.02, np.float32), "ws": np.array(0.01, np.float32),
        "xz": np.array(128, np.uint8), "wz": np.array(0, np.int8),
    }  # fmt: skip
    node = helper.make_node(
        "QAttention", ["q", "w", "b", "xs", "ws", "", "xz", "wz", "past"], ["y", "present"], domain="com.microsoft",
        num_heads=HEADS, unidirectional=1,
    )  # fmt: skip
    bytes_of = helper.make_node("QuantizeLinear", ["x", "xs", "xz"], ["q"])
    written = packed(None, unidirectional=1)
    del written.graph.node[:], written.graph.initializer[:]
    written.graph.node.extend([bytes_of, node])
    written.graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in weights.items())
    check(written, {"present": "past"}, 3, PROMPT)


SEPARATE = {"query": ROWS, "key": ROWS, "value": ROWS}
VARIANTS: dict[str, tuple[Facts, dict[str, Any]]] = {
    "rows": (SEPARATE, {}),
    "causal": (SEPARATE, {"unidirectional": 1}),
    "a scale": (SEPARATE, {"scale": 0.3}),
    "a mask of keys": (SEPARATE | {"mask": [BATCH, "T"]}, {}),
    "a mask of queries and keys": (SEPARATE | {"mask": [BATCH, "S", "T"]}, {}),
    "a bias of scores": (SEPARATE | {"attention_bias": [BATCH, HEADS, "S", "T"]}, {}),
    "one bias of scores for all": (SEPARATE | {"attention_bias": [1, 1, "S", "T"]}, {}),
    "mask and bias": (SEPARATE | {"mask": [BATCH, "T"], "attention_bias": [1, HEADS, "S", "T"]}, {}),
    "rows with a bias": (SEPARATE | {"bias": [3 * WIDTH]}, {}),
}


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", VARIANTS)
def test_multi_head_attention(name: str) -> None:
    inputs, attributes = VARIANTS[name]
    places = ["query", "key", "value", "bias", "mask", "attention_bias"]
    given = [each if each in inputs else "" for each in places] + ["past_key", "past_value"]
    caches: Facts = {"past_key": CACHE, "past_value": CACHE}
    outputs: Facts = {"y": ROWS} | {key: [BATCH, HEADS, "T", SIZE] for key in ("nk", "nv")}
    written = model("MultiHeadAttention", given, inputs | caches, outputs, {}, num_heads=HEADS, **attributes)
    check(written, {"nk": "past_key", "nv": "past_value"}, 2, PROMPT)


ROW: list[Any] = [BATCH, 1, WIDTH]
OF_ONE = {"query": ROW, "key": ROW, "value": ROW}
STEPS: dict[str, tuple[Facts, dict[str, Any]]] = {
    "rows": (OF_ONE, {}),
    "a scale": (OF_ONE, {"scale": 0.3}),
    "a mask": (OF_ONE | {"mask": [BATCH, "T"]}, {"mask_filter_value": -1e4}),
    "a bias of scores": (OF_ONE | {"attention_bias": [1, HEADS, 1, "T"]}, {}),
    "rows with a bias": (OF_ONE | {"bias": [3 * WIDTH]}, {}),
}


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", STEPS)
def test_decoder_masked_multi_head_attention(name: str) -> None:
    """One step at a time; onnxruntime computes it as MultiHeadAttention, which takes a growing past."""
    inputs, attributes = STEPS[name]
    caches: Facts = {"past_key": CACHE, "past_value": CACHE}
    outputs: Facts = {"y": ROW} | {key: [BATCH, HEADS, "T", SIZE] for key in ("nk", "nv")}

    def written(kind: str, places: list[str]) -> ModelProto:
        given = [each if each in {**inputs, **caches} else "" for each in places]
        return model(kind, given, inputs | caches, outputs, {}, num_heads=HEADS, **attributes)

    decoder = written(
        "DecoderMaskedMultiHeadAttention",
        ["query", "key", "value", "mask", "attention_bias", "past_key", "past_value", "", "", "", "bias"],
    )
    general = written(
        "MultiHeadAttention", ["query", "key", "value", "bias", "mask", "attention_bias", "past_key", "past_value"]
    )
    session, rng = lb.Session(lb.compile(decoder, alias="auto")), np.random.default_rng(3)
    state, reference = session.bind_state(capacity=CAPACITY), ort.InferenceSession(general.SerializeToString())
    past = dict.fromkeys(caches, np.zeros((BATCH, HEADS, 0, SIZE), np.float32))
    for total in range(1, 6):
        feeds = {
            each: rng.standard_normal([total if extent == "T" else extent for extent in shape], np.float32)
            for each, shape in inputs.items()
        }
        if "mask" in feeds:
            feeds["mask"] = (feeds["mask"] > -0.5).astype(np.int32)
        want, *presents = reference.run(None, feeds | past)
        past = dict(zip(caches, presents, strict=True))
        with lb.no_copies():
            found = session(feeds)["y"]
        np.testing.assert_allclose(np.asarray(found), want, rtol=1e-4, atol=1e-5)
        assert state.length == total
        for each, tensor in state.tensors.items():
            np.testing.assert_allclose(np.asarray(tensor)[:, :, :total], past[each], rtol=1e-5, atol=1e-6)
