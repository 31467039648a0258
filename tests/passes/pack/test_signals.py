"""1-D convolutions: what is done to their signals between them follows their layout, and equals onnxruntime's."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import ModelProto, numpy_helper

import landbridge as lb
from landbridge.executable.kernel_facts import facts_of

#: What lies between two convolutions of C channels, from t to u, both of ``(N, C, 40)``.
BETWEEN = {
    "circular": "a = Slice(t, tail, end, two)  b = Slice(t, zero, four, two)  u = Concat<axis=2>(a, t, b)",
    "activation": "a = Sigmoid(t)  u = Mul(a, t)",
    "over the signal": "u = Softmax<axis=2>(t)",
    "over the channels": "u = Softmax<axis=1>(t)",
    "mean": "a = ReduceMean<axes=[2], keepdims=1>(t)  u = Sub(t, a)",
    "mean of channels": "a = ReduceMean<axes=[1], keepdims=0>(t)  b = Unsqueeze(a, one)  u = Sub(t, b)",
    "gate": "a = ReduceMean<axes=[2], keepdims=0>(t)  b = Sigmoid(a)  d = Unsqueeze(b, two)  u = Mul(t, d)",
    "normalized": "u = InstanceNormalization(t, scale, shift)",
    "turned": "a = Transpose<perm=[0,2,1]>(t)  b = Softmax<axis=2>(a)  u = Transpose<perm=[0,2,1]>(b)",
    "beside": "a = Relu(t)  u = Concat<axis=1>(t, a)",
}


def model(between: str, batch: int, channels: int) -> ModelProto:
    rng = np.random.default_rng(channels)
    ints = {"zero": [0], "one": [1], "two": [2], "four": [4], "tail": [-4], "end": [1 << 40]}
    body = BETWEEN[between].replace("  ", "\n")
    made = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["" : 17]> g (float[{batch},8,40] x) => (float[{batch},c,w] y) {{
            t = Conv<pads=[1,1]>(x, v)
            {body}
            y = Conv(u, w)
        }}"""
    )
    inside = 2 * channels if between == "beside" else channels
    floats = {
        "v": rng.standard_normal((channels, 8, 3)) / 5,
        "w": rng.standard_normal((16, inside, 3)) / inside**0.5,
        "scale": rng.standard_normal(channels),
        "shift": rng.standard_normal(channels),
    }
    made.graph.initializer.extend(numpy_helper.from_array(a.astype(np.float32), k) for k, a in floats.items())
    made.graph.initializer.extend(numpy_helper.from_array(np.array(a, np.int64), k) for k, a in ints.items())
    return made


@pytest.mark.sample(2)
@pytest.mark.parametrize("target", ["llvm", "llvm -vector-bits=256 -vector-registers=16"])
@pytest.mark.parametrize(("batch", "channels"), [(1, 32), (2, 24)])
@pytest.mark.parametrize("between", BETWEEN)
def test_results_are_onnxruntimes(between: str, batch: int, channels: int, target: str) -> None:
    made = model(between, batch, channels)
    x = np.random.default_rng(0).standard_normal((batch, 8, 40)).astype(np.float32)
    (expected,) = onnxruntime.InferenceSession(made.SerializeToString()).run(None, {"x": x})
    (found,) = lb.Session(lb.compile(made, target))(x)
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-4, atol=1e-5 * np.abs(expected).max())


@pytest.mark.sample(2)
@pytest.mark.parametrize("between", ["circular", "activation", "over the signal", "mean"])
def test_signals_stay_in_blocks(between: str) -> None:
    """The first convolution reads the plain input, and only the last one's result is brought back."""
    kernels = list(facts_of(lb.compile(model(between, 1, 32), "llvm -vector-bits=512 -vector-registers=32")))
    assert sum("unpack" in name for name in kernels) <= 1
    assert not any(name.startswith("pack") for name in kernels)


@pytest.mark.parametrize(("new", "alias"), [("8", "auto"), ("S", "auto"), ("8", None)])
@pytest.mark.parametrize("groups", [1, 32])
def test_the_last_samples_of_a_stream_are_read_where_they_are(groups: int, new: str, alias: str | None) -> None:
    """A run writes a few samples of a window: all others are from outside the program, and stay there. So are all that
    a Concat joins where there is no window.
    """
    made = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["" : 17]> g (float[1,32,{new}] x, float[1,32,512] past)
            => (float[1,32,{new}] y, float[1,32,512] present)
        <int64[1] first = {{-512}}, int64[1] last = {{9223372036854775807}}, int64[1] axis = {{2}}> {{
            joined = Concat<axis=2>(past, x)
            y = Conv<dilations=[256], group={groups}>(joined, w)
            present = Slice(joined, first, last, axis)
        }}"""
    )
    weights = np.random.default_rng(groups).standard_normal((32, 32 // groups, 3)).astype(np.float32)
    made.graph.initializer.append(numpy_helper.from_array(weights, "w"))
    ranges = {"S": lb.Dim(1, 100)} if new == "S" else None
    executable = lb.compile(made, "llvm -vector-bits=512 -vector-registers=32", alias=alias, dims=ranges)
    assert bool(executable.main.aliases) is (alias is not None)
    moving = [name for name in facts_of(executable) if name.startswith(("pack", "slice_")) and "conv" not in name]
    assert [name.partition("_")[0] for name in moving] == ([] if alias else ["slice"]), "the state of two buffers"


@pytest.mark.parametrize("groups", [1, 32])
def test_a_short_signal_is_read_where_it_is(groups: int) -> None:
    """Reordering it would move all of its line, of which a dilated convolution reads a few elements."""
    rng = np.random.default_rng(groups)
    made = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["" : 17]> g (float[1,32,520] x) => (float[1,32,8] y) {{
            y = Conv<dilations=[256], group={groups}>(x, w)
        }}"""
    )
    weights = rng.standard_normal((32, 32 // groups, 3)).astype(np.float32)
    made.graph.initializer.append(numpy_helper.from_array(weights, "w"))
    executable = lb.compile(made, "llvm -vector-bits=512 -vector-registers=32")
    assert not any(name.startswith("pack") for name in facts_of(executable))
    x = rng.standard_normal((1, 32, 520)).astype(np.float32)
    (expected,) = onnxruntime.InferenceSession(made.SerializeToString()).run(None, {"x": x})
    (found,) = lb.Session(lb.compile(made))(x)
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-4, atol=1e-4)
