"""GroupQueryAttention of ``com.microsoft``, as exporters of language models write it."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest

import landbridge as lb
from tests.frontend.bodies.against_onnxruntime import check

R = np.random.default_rng(0)
#: Two heads share each of two of keys and values, of 16 numbers.
HEADS = "num_heads = 4, kv_num_heads = 2"
#: Rotated by positions, as caches of cosines and sines say.
ROTARY = {
    "c": np.cos(np.outer(np.arange(32), 0.8 ** np.arange(8))),
    "s": np.sin(np.outer(np.arange(32), 0.8 ** np.arange(8))),
}


def floats(*shape: int) -> np.ndarray:
    return R.standard_normal(shape).astype(np.float32)


def of_lengths(
    attributes: str,
    inputs: str,
    shapes: dict[str, tuple[int, ...]],
    ends: list[int],
    total: int,
    places: np.ndarray | None = None,
) -> None:
    """Compare a node with past keys and values in buffers, whose rows end at ``ends``."""
    formal = ", ".join(f"float[{', '.join(map(str, shape))}] {name}" for name, shape in shapes.items())
    others = "" if places is None else f", int64{list(places.shape)} p"
    check(
        f"""g ({formal}, int32[{len(ends)}] ends, int64[{len(ends)}, {total}] mask, float[32, 8] c,
            float[32, 8] s{others})
            => (float[B, S, 64] y, float[B, 2, L, 16] nk, float[B, 2, L, 16] nv) {{
            at = Shape <start = 1, end = 2> (mask)
            n64 = Squeeze (at)
            n = Cast <to = 6> (n64)
            y, nk, nv = com.microsoft.GroupQueryAttention <{HEADS}{attributes}> ({inputs}) }}""",
        {
            **{name: floats(*shape) for name, shape in shapes.items()},
            "ends": np.array(ends, np.int32),
            "mask": np.ones((len(ends), total), np.int64),
            **{name: table.astype(np.float32) for name, table in ROTARY.items()},
            **({} if places is None else {"p": places}),
        },
    )


PACKED = {"x": (2, 5, 128)}
SEPARATE = {"x": (2, 1, 64), "k": (2, 1, 32), "v": (2, 1, 32)}
PAST = {"pk": (2, 2, 6, 16), "pv": (2, 2, 6, 16)}
CAPACITY = {"pk": (2, 2, 16, 16), "pv": (2, 2, 16, 16)}
CASES = {
    "a prompt, packed": ("", "x, , , , , ends, n", PACKED, [4, 4], 5),
    "prompts of several lengths, turned": (", do_rotary = 1", "x, , , , , ends, n, c, s", PACKED, [4, 2], 5),
    "a step, keys of those before": (
        ", do_rotary = 1",
        "x, k, v, pk, pv, ends, n, c, s",
        {**SEPARATE, **PAST},
        [6, 6],
        7,
    ),
    "a step, a buffer that has room": (
        ", do_rotary = 1",
        "x, k, v, pk, pv, ends, n, c, s",
        {**SEPARATE, **CAPACITY},
        [9, 4],
        10,
    ),
    "turned in pairs": (
        ", do_rotary = 1, rotary_interleaved = 1",
        "x, k, v, pk, pv, ends, n, c, s",
        {**SEPARATE, **PAST},
        [6, 6],
        7,
    ),
    "a window": (", local_window_size = 3", "x, k, v, pk, pv, ends, n", {**SEPARATE, **PAST}, [6, 6], 7),
    "a window of a prompt": (", local_window_size = 2", "x, , , , , ends, n", PACKED, [4, 4], 5),
    "scores that are capped": (", softcap = 0.5, scale = 0.7", "x, , , , , ends, n", PACKED, [4, 4], 5),
    "smooth": (", smooth_softmax = 1", "x, , , , , ends, n", PACKED, [4, 4], 5),
}


@pytest.mark.sample(3)
@pytest.mark.parametrize("case", CASES)
def test_of_groups(case: str) -> None:
    attributes, inputs, shapes, ends, total = CASES[case]
    of_lengths(attributes, inputs, shapes, ends, total)


def test_several_steps_after_others() -> None:
    shapes = {"x": (1, 3, 128), "pk": (1, 2, 6, 16), "pv": (1, 2, 6, 16)}
    of_lengths(", do_rotary = 1", "x, , , pk, pv, ends, n, c, s", shapes, [8], 9)


def test_a_step_in_a_buffer_of_any_capacity() -> None:
    """The model says that past and present have one capacity, and not which; nothing requests one memory for both."""
    text = f"""<ir_version: 10, opset_import: ["" : 18, "com.microsoft" : 1]>
        g (float[1, 1, 64] x, float[1, 1, 32] k, float[1, 1, 32] v, float[1, 2, C, 16] pk, float[1, 2, C, 16] pv,
           int32[1] ends, int32 total) => (float[1, 1, 64] y, float[1, 2, C, 16] nk, float[1, 2, C, 16] nv) {{
        y, nk, nv = com.microsoft.GroupQueryAttention <{HEADS}> (x, k, v, pk, pv, ends, total) }}"""
    model = onnx.parser.parse_model(text)
    session = lb.Session(lb.compile(model))
    theirs = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    for capacity, total in ((8, 3), (5, 5), (40, 1)):
        feeds = {
            **{name: floats(1, 1, width) for name, width in (("x", 64), ("k", 32), ("v", 32))},
            **{name: floats(1, 2, capacity, 16) for name in ("pk", "pv")},
            "ends": np.array([total - 1], np.int32),
            "total": np.array(total, np.int32),
        }
        found = session(feeds)
        y, nk, nv = (np.asarray(found[name]) for name in ("y", "nk", "nv"))
        expected = theirs.run(None, feeds)
        np.testing.assert_allclose(y, expected[0], rtol=1e-5, atol=1e-6)
        for present, wanted in ((nk, expected[1]), (nv, expected[2])):
            np.testing.assert_allclose(present[:, :, :total], wanted[:, :, :total], rtol=1e-6)


def test_positions_that_are_given_and_scores_of_their_own() -> None:
    shapes = {**PACKED, "more": (1, 4, 5, 5)}
    places = np.array([[3, 4, 5, 6, 7]] * 2)  # onnxruntime's are those of the first row, in all
    of_lengths(", do_rotary = 1", "x, , , , , ends, n, c, s, p, more", shapes, [4, 4], 5, places)


def test_a_sink_for_each_head() -> None:
    of_lengths("", "x, , , , , ends, n, , , , , sink", {**PACKED, "sink": (4,)}, [4, 4], 5)


@pytest.mark.sample(1)
@pytest.mark.parametrize(("batch", "steps", "past"), [(1, 1, 5), (1, 3, 7), (2, 1, 9)])
def test_of_open_lengths(batch: int, steps: int, past: int) -> None:
    """What exporters make: the total is the length of a mask, whose sum says where each row ends."""
    feeds = {
        "x": floats(batch, steps, 128),
        "pk": floats(batch, 2, past, 16),
        "pv": floats(batch, 2, past, 16),
        "mask": np.ones((batch, past + steps), np.int64),
        **{name: table.astype(np.float32) for name, table in ROTARY.items()},
    }
    check(
        f"""g (float[B, S, 128] x, float[B, 2, P, 16] pk, float[B, 2, P, 16] pv, int64[B, T] mask, float[32, 8] c,
            float[32, 8] s) => (float[B, S, 64] y, float[B, 2, L, 16] nk, float[B, 2, L, 16] nv) {{
            one = Constant <value_ints = [1]> ()
            sums = ReduceSum <keepdims = 0> (mask, one)
            last = Sub (sums, one)
            ends = Cast <to = 6> (last)
            at = Shape <start = 1, end = 2> (mask)
            n64 = Squeeze (at)
            n = Cast <to = 6> (n64)
            y, nk, nv = com.microsoft.GroupQueryAttention <{HEADS}, do_rotary = 1> (x, , , pk, pv, ends, n, c, s) }}""",
        feeds,
    )


def test_the_total_is_an_input() -> None:
    """An int32 scalar that the program reads as int64: a dimension of what is compiled, which each run says."""
    feeds = {
        "x": floats(1, 1, 128),
        "pk": floats(1, 2, 6, 16),
        "pv": floats(1, 2, 6, 16),
        "ends": np.array([6], np.int32),
        "n": np.array(7, np.int32),
    }
    check(
        f"""g (float[1, 1, 128] x, float[1, 2, 6, 16] pk, float[1, 2, 6, 16] pv, int32[1] ends, int32 n)
            => (float[1, 1, 64] y, float[1, 2, L, 16] nk, float[1, 2, L, 16] nv) {{
            y, nk, nv = com.microsoft.GroupQueryAttention <{HEADS}> (x, , , pk, pv, ends, n) }}""",
        feeds,
    )
