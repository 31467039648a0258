"""DeformConv as kernels, beside onnxruntime's."""

from __future__ import annotations

import numpy as np
import pytest

import landbridge as lb
from tests.ops.one_node_peer import Array, found_and_wanted, model_of

#: Batch, channels, results, rows, columns, groups, offset groups, stride, kernel extent; is there a mask, a bias.
CASES = {
    "one group": (2, 8, 6, 9, 7, 1, 1, 1, 3, True, True),
    "no mask, no bias, strides": (1, 8, 4, 9, 12, 1, 1, 2, 3, False, False),
    "no mask": (1, 3, 4, 5, 5, 1, 1, 1, 3, False, True),
    "groups of several offset groups": (2, 8, 6, 6, 7, 2, 4, 1, 3, True, True),
    "offset groups of several groups": (1, 8, 4, 9, 7, 4, 2, 1, 3, True, False),
    "groups that share no border": (1, 12, 12, 6, 6, 4, 6, 1, 3, True, True),
    "a channel a group": (1, 8, 8, 6, 6, 8, 1, 1, 3, True, True),
    "a kernel of two": (1, 4, 4, 6, 6, 2, 2, 1, 2, True, True),
    "many channels": (1, 48, 40, 8, 8, 1, 1, 1, 3, True, True),
}


def _case(name: str, far: float = 2.0) -> tuple[str, dict[str, Array]]:
    n, channels, results, rows, columns, group, offset_group, stride, k, has_mask, has_bias = CASES[name]
    rng = np.random.default_rng(len(name))
    out = [(e + 2 - k) // stride + 1 for e in (rows, columns)]
    feeds = {
        "x": rng.standard_normal((n, channels, rows, columns)).astype(np.float32),
        "w": rng.standard_normal((results, channels // group, k, k)).astype(np.float32),
        "o": (far * rng.standard_normal((n, 2 * offset_group * k * k, *out))).astype(np.float32),
    }
    if has_bias:
        feeds["b"] = rng.standard_normal(results).astype(np.float32)
    if has_mask:
        feeds["m"] = rng.random((n, offset_group * k * k, *out), np.float32)
    inputs = ", ".join(f"float[{','.join(map(str, a.shape))}] {name}" for name, a in feeds.items())
    given = f"x, w, o, {'b' * has_bias}, {'m' * has_mask}".rstrip(", ")
    text = (
        f"({inputs}) => (float[N,M,P,Q] y) {{ y = DeformConv<pads=[1,1,1,1], kernel_shape=[{k},{k}], "
        f"strides=[{stride},{stride}], group={group}, offset_group={offset_group}>({given}) }}"
    )
    return text, feeds


@pytest.mark.sample(3)
@pytest.mark.parametrize("target", ["llvm", "c"])
@pytest.mark.parametrize("name", CASES)
def test_values_are_those_of_onnxruntime(name: str, target: str) -> None:
    text, feeds = _case(name)
    found, want = found_and_wanted(model_of(text, 19), feeds, target=target)
    # Sums of up to 432 products of numbers of about 1: 1e-5 is some 100 units of the last place of one.
    np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-5 * max(1.0, float(np.abs(want).max())))


def test_weights_may_be_constants() -> None:
    text, feeds = _case("groups of several offset groups")
    w = feeds.pop("w")
    text = text.replace(f"float[{','.join(map(str, w.shape))}] w, ", "")
    found, want = found_and_wanted(model_of(text, 19, {"w": w}), feeds)
    np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-5 * float(np.abs(want).max()))


def test_taps_far_outside_are_0() -> None:
    text, feeds = _case("one group", far=1e6)
    feeds["o"][:, ::3] = np.float32(1e38)
    found, want = found_and_wanted(model_of(text, 19), feeds)
    np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-5)


def test_extents_may_be_open() -> None:
    text = """(float[N,8,H,W] x, float[4,8,3,3] w, float[N,18,P,Q] o) => (float[N,4,P,Q] y)
    { y = DeformConv<pads=[1,1,1,1], kernel_shape=[3,3]>(x, w, o) }"""
    rng = np.random.default_rng(0)
    model = model_of(text, 19)
    session = lb.Session(lb.compile(model))
    for n, rows, columns in ((1, 5, 6), (2, 17, 3)):
        feeds = {
            "x": rng.standard_normal((n, 8, rows, columns)).astype(np.float32),
            "w": rng.standard_normal((4, 8, 3, 3)).astype(np.float32),
            "o": rng.standard_normal((n, 18, rows, columns)).astype(np.float32),
        }
        _, want = found_and_wanted(model, feeds)
        np.testing.assert_allclose(np.asarray(session(*feeds.values())[0]), want, rtol=1e-5, atol=1e-4)


def test_an_offset_of_another_number_of_channels_is_refused() -> None:
    text = """(float[1,8,5,5] x, float[4,8,3,3] w, float[1,9,5,5] o) => (float[1,4,5,5] y)
    { y = DeformConv<pads=[1,1,1,1]>(x, w, o) }"""
    with pytest.raises(lb.ShapeError, match=r"offset\[1\] == 2"):
        lb.compile(model_of(text, 19))
