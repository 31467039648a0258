"""Operators with a state of their own, continued in place: a causal Attention of ONNX, a cache that goes round, the
last samples of a stream.
"""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import landbridge as lb

HEADS, SIZE, CAPACITY = 2, 8, 12


def _causal(opset: int, shape: str, heads: str) -> lb.Executable:
    cache = f"float[1,{HEADS},P,{SIZE}]"
    text = f"""<ir_version: 11, opset_import: ["" : {opset}]>
        causal ({shape} x, {cache} past_key, {cache} past_value)
            => ({shape} y, float[1,{HEADS},T,{SIZE}] present_key, float[1,{HEADS},T,{SIZE}] present_value)
        {{ y, present_key, present_value = Attention<is_causal=1{heads}>(x, x, x, , past_key, past_value) }}"""
    return lb.compile(onnx.parser.parse_model(text), alias="auto")


@pytest.mark.parametrize("opset", [23, 24])
@pytest.mark.parametrize("by_heads", [True, False])
def test_a_causal_attention_appends(opset: int, by_heads: bool) -> None:
    """A row sees the past and the new rows up to its own, from prompts and single steps, after a rewind as before."""
    facts = f", q_num_heads={HEADS}, kv_num_heads={HEADS}"
    shape, heads = (f"float[1,{HEADS},S,{SIZE}]", "") if by_heads else (f"float[1,S,{HEADS * SIZE}]", facts)
    session = lb.Session(_causal(opset, shape, heads))
    state, rng, where = session.bind_state(capacity=CAPACITY), np.random.default_rng(1), set()
    keys = np.zeros((1, HEADS, 0, SIZE), np.float32)
    for rows, length in ((5, 0), (1, 5), (3, 6), (1, 7), (1, 8)):
        state.rewind(length)
        new = rng.standard_normal((1, HEADS, rows, SIZE), np.float32)
        keys = np.concatenate([keys[:, :, :length], new], axis=2)
        scores = new @ keys.swapaxes(2, 3) / np.sqrt(SIZE)
        is_seen = np.arange(length + rows) <= np.arange(length, length + rows)[:, None]
        weights = np.exp(np.where(is_seen, scores, -np.inf))
        expected = weights / weights.sum(axis=-1, keepdims=True) @ keys
        given = new if by_heads else np.ascontiguousarray(new.transpose(0, 2, 1, 3).reshape(1, rows, -1))
        with lb.no_copies():
            (found,) = session(given)
        if not by_heads:
            expected = expected.transpose(0, 2, 1, 3).reshape(1, rows, -1)
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-4, atol=1e-5)
        assert state.length == length + rows
        for tensor in state.tensors.values():
            np.testing.assert_array_equal(tensor.numpy()[:, :, : state.length], keys)
        where.add(tuple(tensor.data_address for tensor in state.tensors.values()))
    assert len(where) == 1
    before = {name: np.array(tensor) for name, tensor in state.tensors.items()}
    with pytest.raises(lb.StateCapacityError, match="needs 13 steps"):
        session(np.ones((1, HEADS, 4, SIZE) if by_heads else (1, 4, HEADS * SIZE), np.float32))
    for name, tensor in state.tensors.items():
        np.testing.assert_array_equal(tensor.numpy(), before[name])


def test_a_cache_that_goes_round() -> None:
    """The oldest rows are overwritten: there is no length, and nothing but the new rows is written."""
    text = """<ir_version: 11, opset_import: ["" : 24]>
        ring (float[2,4,3] past, float[2,S,3] new, int64[2] at) => (float[2,4,3] present)
        { present = TensorScatter<axis=1, mode="circular">(past, new, at) }"""
    executable = lb.compile(onnx.parser.parse_model(text))
    assert executable.main.aliases == (("present", "past"),)
    session = lb.Session(executable)
    state, rng = session.bind_state(), np.random.default_rng(3)
    assert state.length is None and state.capacity is None
    expected = np.zeros((2, 4, 3), np.float32)
    for rows, at in ((3, [0, 0]), (2, [3, 2]), (1, [5, 4]), (4, [6, 5])):
        new = rng.random((2, rows, 3), np.float32)
        for row, start in enumerate(at):
            expected[row, np.arange(start, start + rows) % 4] = new[row]
        with lb.no_copies(kernels=True):
            session(new, np.array(at))
        np.testing.assert_array_equal(np.asarray(state.tensors["past"]), expected)
    fork = state.fork()
    state.reset()
    assert not np.asarray(state.tensors["past"]).any()
    np.testing.assert_array_equal(np.asarray(fork.tensors["past"]), expected)


@pytest.mark.parametrize("samples", [10, "N"])
def test_the_last_samples_of_a_stream(samples: int | str) -> None:
    """A convolution of a stream in parts is that of the whole: its last samples are the next state.

    A number of new samples makes them a window. Of a run that has as many as it likes, kernels move them.
    """
    text = f"""<ir_version: 8, opset_import: ["" : 17]>
        stream (float[1,4,{samples}] x, float[1,4,6] cache_in, float[2,4,7] w)
            => (float[1,2,{samples}] y, float[1,4,6] cache_out)
        <int64[1] first = {{-6}}, int64[1] last = {{9223372036854775807}}, int64[1] axis = {{2}}>
        {{
            all = Concat<axis = 2>(cache_in, x)
            y = Conv(all, w)
            cache_out = Slice(all, first, last, axis)
        }}"""
    session, rng = lb.Session(lb.compile(onnx.parser.parse_model(text), alias="auto")), np.random.default_rng(4)
    state = session.bind_state()
    assert state.pairs == {"cache_out": "cache_in"} and state.length is None
    weights = rng.standard_normal((2, 4, 7), np.float32)
    parts = [rng.standard_normal((1, 4, n), np.float32) for n in ((10, 10, 10) if samples == 10 else (10, 2, 1, 7))]
    found = []
    for part in parts:
        with lb.ledger() as ledger:
            (y,) = session(part, weights)
        assert ledger.total_bytes == 0
        assert ledger.kernel_bytes == (0 if samples == 10 else 4 * 4 * (2 * 6 + part.shape[2]))
        found.append(np.array(y))
    whole = np.concatenate([np.zeros((1, 4, 6), np.float32), *parts], axis=2)
    windows = np.lib.stride_tricks.sliding_window_view(whole, 7, axis=2)
    expected = np.einsum("bcnk,ock->bon", windows, weights)
    np.testing.assert_allclose(np.concatenate(found, axis=2), expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(np.asarray(state.tensors["cache_in"]), whole[:, :, -6:])
    if samples == 10:
        with lb.no_copies():
            session(parts[0], weights)
    else:
        with lb.no_copies(), pytest.raises(lb.CopyForbiddenError, match="of all on"):
            session(parts[0], weights)


@pytest.mark.parametrize("operator", ["MultiHeadAttention", "DecoderMaskedMultiHeadAttention"])
def test_a_length_that_the_model_takes(operator: str) -> None:
    """As onnxruntime's decoders: past and present share a buffer, and past_sequence_length says what is filled."""
    heads, size, rng = 2, 8, np.random.default_rng(0)
    row, cache = [1, 1, heads * size], [1, heads, CAPACITY, size]
    shapes = dict.fromkeys("qkv", row) | dict.fromkeys(("pk", "pv"), cache)
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items()]
    inputs.append(helper.make_tensor_value_info("length", TensorProto.INT32, [1]))
    results = {"y": row, "nk": cache, "nv": cache}
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in results.items()]
    given = ["q", "k", "v", *[""] * (3 if operator == "MultiHeadAttention" else 2), "pk", "pv", "length"]
    node = helper.make_node(operator, given, list(results), domain="com.microsoft", num_heads=heads)
    if operator != "MultiHeadAttention":
        node.attribute.append(helper.make_attribute("past_present_share_buffer", 1))
    graph = helper.make_graph([node], "g", inputs, outputs)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    executable = lb.compile(helper.make_model(graph, opset_imports=opsets, ir_version=8))
    session = lb.Session(executable)
    state, keys, values = session.bind_state(), [], []

    def step() -> None:
        q, k, v = (rng.standard_normal(row, np.float32) for _ in "qkv")
        with lb.no_copies():
            found = session({"q": q, "k": k, "v": v})["y"]
        keys.append(k.reshape(heads, 1, size))
        values.append(v.reshape(heads, 1, size))
        scores = q.reshape(heads, 1, size) @ np.concatenate(keys, 1).swapaxes(1, 2) / np.sqrt(size)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        want = weights / weights.sum(-1, keepdims=True) @ np.concatenate(values, 1)
        np.testing.assert_allclose(np.asarray(found).reshape(want.shape), want, rtol=1e-4, atol=1e-5)

    for number in range(CAPACITY):
        assert state.length == number
        step()
    with pytest.raises(lb.StateCapacityError, match=f"capacity is {CAPACITY}"):
        step()
    state.rewind(3)
    del keys[3:], values[3:]
    step()

    by_hand = lb.Session(executable)
    feeds = {name: np.ones(shape, np.float32) for name, shape in shapes.items()}
    for length in (CAPACITY, -1, 1 << 30):
        with pytest.raises(lb.ShapeError, match=f"length={length}"):
            by_hand(feeds | {"length": np.array([length], np.int32)})
