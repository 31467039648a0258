"""Products that read caches as torch's exporter writes them, beside onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest

import landbridge as lb

Array = np.ndarray[Any, Any]

HEADS, SHARED, SIZE, CAPACITY = 6, 2, 4, 8

#: Of (1, HEADS or SHARED, steps, SIZE) keys ``all``: what a product reads, in the words of an exporter.
SWAPPED = """shape = Shape({0}) batch = Slice(shape, zero, two) steps = Slice(shape, two, three)
    size = Slice(shape, three, four) flat_to = Concat<axis = 0>(minus, steps, size) flat = Reshape({0}, flat_to)
    swap = Transpose<perm = [0, 2, 1]>(flat) back_to = Concat<axis = 0>(batch, size, steps)
    keys = Reshape(swap, back_to)"""
REPEATED = """total = Shape<start = 2, end = 3>(all) wide_to = Concat<axis = 0>(one, one, groups, total, one)
    apart = Unsqueeze(all, {1}) wide = Expand(apart, wide_to) {0} = Reshape(wide, heads_to)"""
PLAIN = "keys = Transpose<perm = [0, 1, 3, 2]>({0})"
NUMBERS = ", ".join(
    f"int64[{len(value)}] {name} = {{{', '.join(map(str, value))}}}"
    for name, value in {
        "minus": [-1], "zero": [0], "one": [1], "two": [2], "three": [3], "four": [4], "groups": [HEADS // SHARED],
        "heads_to": [1, HEADS, -1, SIZE], "joined_to": [HEADS, CAPACITY, SIZE],
        "split_to": [1, HEADS, SIZE, CAPACITY], "wide_const": [1, 1, HEADS // SHARED, CAPACITY, 1],
        "row_to": [SHARED, CAPACITY, SIZE], "row_back": [1, SHARED, SIZE, CAPACITY],
    }.items()
)  # fmt: skip


def growing(read: str, heads: int, product: str = "y = MatMul(q, keys)") -> onnx.ModelProto:
    """Keys that grow by a Concat, and a product with them."""
    return onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["" : 17]>
        reads (float[1,{HEADS},S,{SIZE}] q, float[1,{heads},S,{SIZE}] k, float[1,{heads},P,{SIZE}] past_key)
            => (float[1,{HEADS},S,T] y, float[1,{heads},T,{SIZE}] present_key)
        <{NUMBERS}, float factor = {{0.5}}>
        {{ present_key = Concat<axis = 2>(past_key, k) all = Identity(present_key) {read} {product} }}""".replace(
            "all = Identity(present_key)", ""
        ).replace("all", "present_key"))  # fmt: skip


def check_growing(written: onnx.ModelProto, heads: int, *, in_place: bool, query_heads: int = HEADS) -> None:
    session, rng = lb.Session(lb.compile(written, alias="auto")), np.random.default_rng(3)
    state, reference = session.bind_state(capacity=CAPACITY), ort.InferenceSession(written.SerializeToString())
    past = np.zeros((1, heads, 0, SIZE), np.float32)
    for steps in (3, 1, 2):
        feeds = {
            "q": rng.standard_normal((1, query_heads, steps, SIZE), np.float32),
            "k": rng.standard_normal((1, heads, steps, SIZE), np.float32),
        }
        want, past = reference.run(None, feeds | {"past_key": past})
        if in_place:
            with lb.no_copies():
                found = session(feeds)["y"]
        else:
            with lb.no_copies(), pytest.raises(lb.CopyForbiddenError):
                session(feeds)
            found = session(feeds)["y"]
        np.testing.assert_allclose(np.asarray(found), want, rtol=1e-5, atol=1e-6)
        assert state.length == past.shape[2]


@pytest.mark.parametrize(
    ("read", "heads"),
    [
        (SWAPPED.format("all"), HEADS),
        (REPEATED.format("each", "two") + " " + PLAIN.format("each"), SHARED),
        (REPEATED.format("each", "two") + " " + SWAPPED.format("each"), SHARED),
    ],
    ids=["transposed by way of three axes", "repeated heads", "both"],
)
@pytest.mark.parametrize("product", ["y = MatMul(q, keys)", "scaled = Mul(keys, factor) y = MatMul(q, scaled)"])
def test_a_cache_is_read_where_it_is(read: str, heads: int, product: str) -> None:
    check_growing(growing(read, heads, product), heads, in_place=True)


def test_heads_that_alternate_are_no_repeated_heads() -> None:
    """All heads, and then all of them again: query head 1 has key head 1, and not 0."""
    read = f"{REPEATED.format('each', 'one')} {PLAIN.format('each')}"
    written = growing(read.replace("one, one, groups", "one, groups, one"), SHARED)
    check_growing(written, SHARED, in_place=False)


def test_one_query_head_for_all_heads_of_keys_is_left() -> None:
    """Its rows are not those of several heads."""
    written = growing(f"{REPEATED.format('each', 'two')} {PLAIN.format('each')}", SHARED)
    written.graph.input[0].type.tensor_type.shape.dim[1].dim_value = 1
    check_growing(written, SHARED, in_place=False, query_heads=1)


def test_a_reshape_that_is_no_transposition_is_left() -> None:
    """Back to steps and sizes in the other order: elements go elsewhere."""
    read = SWAPPED.format("all").replace("Transpose<perm = [0, 2, 1]>", "Identity")
    check_growing(growing(read, HEADS), HEADS, in_place=False)


@pytest.mark.parametrize("known", [True, False], ids=["constant positions", "positions"])
@pytest.mark.parametrize("shared", [True, False], ids=["repeated heads", "heads"])
def test_a_static_cache(shared: bool, known: bool) -> None:
    """Steps that are written at positions, and reads of all of the cache with known extents."""
    heads = SHARED if shared else HEADS
    read = (
        """apart = Unsqueeze(present_key, two) wide = Expand(apart, wide_const) joined = Reshape(wide, joined_to)
            swap = Transpose<perm = [0, 2, 1]>(joined) keys = Reshape(swap, split_to)"""
        if shared
        else "keys = Transpose<perm = [0, 1, 3, 2]>(present_key)"
    )
    at = "" if known else ", int64[1,1] at"
    written = onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["" : 17]>
        reads (float[1,{HEADS},1,{SIZE}] q, float[1,{heads},1,{SIZE}] k,
               float[1,{heads},{CAPACITY},{SIZE}] past_key{at})
            => (float[1,{HEADS},1,{CAPACITY}] y, float[1,{heads},{CAPACITY},{SIZE}] present_key)
        <{NUMBERS}, float factor = {{0.5}}{", int64[1,1] at = {3}" if known else ""}>
        {{
            front = Transpose<perm = [2, 0, 1, 3]>(past_key) steps = Transpose<perm = [2, 0, 1, 3]>(k)
            put = ScatterND(front, at, steps) present_key = Transpose<perm = [1, 2, 0, 3]>(put)
            {read} scaled = Mul(keys, factor) y = MatMul(q, scaled)
        }}""")
    executable = lb.compile(written, alias="auto")
    assert executable.main.aliases == (("present_key", "past_key"),)
    session, rng = lb.Session(executable), np.random.default_rng(3)
    state, reference = session.bind_state(), ort.InferenceSession(written.SerializeToString())
    past = np.zeros((1, heads, CAPACITY, SIZE), np.float32)
    for place in range(3):
        feeds: dict[str, Array] = {
            "q": rng.standard_normal((1, HEADS, 1, SIZE), np.float32),
            "k": rng.standard_normal((1, heads, 1, SIZE), np.float32),
        }
        feeds |= {} if known else {"at": np.array([[place]])}
        want, past = reference.run(None, feeds | {"past_key": past})
        with lb.no_copies():
            found = session(feeds)["y"]
        np.testing.assert_allclose(np.asarray(found), want, rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(np.asarray(state.tensors["past_key"]), past)
