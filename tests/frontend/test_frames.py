"""Inputs that arrive as frames, against numpy: cast, transpose, normalize, resize, written here once more."""

from __future__ import annotations

import re
from itertools import product
from math import prod

import numpy as np
import onnxruntime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import ModelProto, TensorProto, helper

import landbridge as lb
from landbridge.frontend.onnx.import_request import ImportRequest
from landbridge.frontend.onnx.importer import import_onnx
from landbridge.ir.module import IRModule
from landbridge.targets import Target
from tests.frontend.models import model, value
from tests.whole_models.small_models import edges

KINDS = {"float32": TensorProto.FLOAT, "float64": TensorProto.DOUBLE, "float16": TensorProto.FLOAT16}
KINDS |= {"uint8": TensorProto.UINT8, "int32": TensorProto.INT32}


def identity(shape: tuple[int, ...], dtype: str = "float32") -> ModelProto:
    """``y = x``: what the network sees of its input."""
    kind = KINDS[dtype]
    return model([helper.make_node("Identity", ["x"], ["y"])], [value("x", shape, kind)], [value("y", shape, kind)])


def expected(frame: np.ndarray, order: tuple[int, ...], mean, scale, dtype: str, channel: int) -> np.ndarray:
    """What a model that takes ``dtype`` sees of ``frame``, whose axes ``order`` gives it."""
    inner = np.float64 if dtype == "float64" else np.float32
    by_channel = [-1 if axis == channel else 1 for axis in range(frame.ndim)]
    mean, scale = (np.asarray(v, inner).reshape(by_channel if np.ndim(v) else ()) for v in (mean, scale))
    return ((frame.transpose(order).astype(inner) - mean) * scale).astype(dtype)


@st.composite
def pitched(draw):
    """A shape of four axes and strides for it, in elements, with gaps of any size and axes in any order of memory."""
    shape = tuple(draw(st.lists(st.integers(1, 9), min_size=4, max_size=4)))
    strides, step = [0] * 4, draw(st.integers(1, 3))
    for axis in draw(st.permutations(range(4))):
        strides[axis] = step
        step = step * shape[axis] + draw(st.integers(0, 5))
    return shape, tuple(strides)


@settings(max_examples=25)
@given(
    pitched(),
    st.permutations("NCHW"),
    st.sampled_from(["uint8", "int8", "uint16", "float16", "float32"]),
    st.sampled_from(["float32", "float64", "float16"]),
    st.data(),
)
def test_any_layout_strides_and_normalization(frame, layout, dtype, model_dtype, data):
    shape, strides = frame
    order = tuple(layout.index(letter) for letter in "NCHW")
    channels = shape[order[1]]
    moments = st.sampled_from([0.0, 1.0, 0.5, 127.5, -3.0])
    mean, scale = (
        data.draw(st.one_of(moments, st.lists(moments, min_size=channels, max_size=channels).map(tuple)))
        for _ in range(2)
    )
    spec = lb.InputSpec(dtype, "".join(layout), shape, strides, mean, scale)
    executable = lb.compile(identity(tuple(shape[a] for a in order), model_dtype), inputs={"x": spec})
    rng = np.random.default_rng(0)
    memory = rng.integers(0, 100, 1 + sum((e - 1) * s for e, s in zip(shape, strides, strict=True))).astype(dtype)
    array = np.lib.stride_tricks.as_strided(memory, shape, [s * memory.itemsize for s in strides])
    session = lb.Session(executable, num_threads=1)
    with lb.ledger() as moves:
        session.set_input_zero_copy("x", array)
        session.run()
    assert {move.cause for move in moves} <= {"kernel:reorder"}, "a kernel that only moves data is listed, no copy is"
    wanted = expected(array, order, mean, scale, model_dtype, 1)
    tolerance = {"rtol": 1e-6, "atol": 1e-4} if model_dtype != "float16" else {"rtol": 2e-3, "atol": 1e-2}
    np.testing.assert_allclose(np.asarray(session.get_output(0)), wanted, **tolerance)


def coordinates(old: int, new: int) -> np.ndarray:
    return np.clip((np.arange(new) + 0.5) * old / new - 0.5, 0, old - 1)


@pytest.mark.sample(5)
@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.parametrize(("old", "new"), [((12, 18), (6, 6)), ((7, 5), (16, 9)), ((8, 30), (8, 10)), ((9, 4), (3, 8))])
def test_resized_as_onnxruntime_resizes(mode, old, new):
    """Against onnxruntime's Resize of the frame after cast, transposition and normalization."""
    spec = lb.InputSpec("uint8", "NHWC", (1, *old, 3), mean=(10.0, 20.0, 30.0), scale=0.25, resize=mode)
    session = lb.Session(lb.compile(identity((1, 3, *new)), inputs={"x": spec}), num_threads=1)
    frame = np.random.default_rng(0).integers(0, 256, (1, *old, 3)).astype(np.uint8)
    (seen,) = session(frame)
    plain = expected(frame, (0, 3, 1, 2), (10.0, 20.0, 30.0), 0.25, "float32", 1)
    sizes = np.array([1, 3, *new], np.int64)
    resize = helper.make_node("Resize", ["x", "", "", "sizes"], ["y"], mode=mode)
    reference = model([resize], [value("x", plain.shape)], [value("y", (1, 3, *new))], {"sizes": sizes})
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    (wanted,) = onnxruntime.InferenceSession(reference.SerializeToString(), options).run(None, {"x": plain})
    # onnxruntime interpolates what was normalized, we normalize what was interpolated: float32 rounds differently
    np.testing.assert_allclose(np.asarray(seen), wanted, rtol=1e-5, atol=1e-4)


def test_resized_integers_are_rounded():
    spec = lb.InputSpec(shape=(1, 1, 1, 2), resize="linear")
    session = lb.Session(lb.compile(identity((1, 1, 1, 8), "uint8"), inputs={"x": spec}), num_threads=1)
    (seen,) = session(np.array([[[[0, 100]]]], np.uint8))
    wanted = np.round(100 * coordinates(2, 8)).astype(np.uint8)
    np.testing.assert_array_equal(np.asarray(seen)[0, 0, 0], wanted)


def kernels(executable: lb.Executable) -> list[str]:
    return [instruction.name for instruction in executable.main.instructions if hasattr(instruction, "tasks")]


def test_one_kernel_reads_the_frame_and_does_what_follows():
    nodes = [
        helper.make_node("Mul", ["x", "k"], ["a"], name="mul"),
        helper.make_node("Relu", ["a"], ["y"], name="relu"),
    ]
    network = model(nodes, [value("x", (1, 3, 8, 10))], [value("y", (1, 3, 8, 10))], {"k": np.float32(2)})
    spec = lb.InputSpec("uint8", "NHWC", strides=(320, 32, 3, 1), mean=(1, 2, 3), scale=0.5)
    assert kernels(lb.compile(network, inputs={"x": spec})) == ["x:frame+mul+relu"]


def test_a_convolution_of_frames_is_that_of_what_they_become():
    network = edges(24, 36)
    spec = lb.InputSpec("uint8", "NHWC", strides=(24 * 128, 128, 3, 1), mean=(100, 110, 120), scale=1 / 58)
    session = lb.Session(lb.compile(network, inputs={"x": spec}), num_threads=1)
    whole = np.random.default_rng(1).integers(0, 256, (1, 24, 128)).astype(np.uint8)
    frame = np.lib.stride_tricks.as_strided(whole, (1, 24, 36, 3), (24 * 128, 128, 3, 1))
    (seen,) = session(frame)
    x = expected(frame, (0, 3, 1, 2), (100, 110, 120), 1 / 58, "float32", 1)
    (wanted,) = onnxruntime.InferenceSession(network.SerializeToString()).run(None, {"x": x})
    np.testing.assert_allclose(np.asarray(seen), wanted, rtol=1e-4, atol=1e-4)


def test_the_shape_of_a_frame_is_enough_where_the_file_has_none():
    network = model(
        [helper.make_node("Identity", ["x"], ["y"])], [value("x", ("n", 3, "h", "w"))], [value("y", ("n", 3, "h", "w"))]
    )
    executable = lb.compile(network, inputs={"x": lb.InputSpec("uint8", "NHWC", (1, 4, 6, 3))})
    assert executable.main.outputs[0].shape == (1, 3, 4, 6)
    assert executable.main.inputs[0].shape == (1, 4, 6, 3)


def test_axes_have_the_names_that_are_given_to_them():
    spec = lb.InputSpec("uint8", "CTB", model_layout="BTC", mean=(1.0, 2.0))
    session = lb.Session(lb.compile(identity((3, 4, 2)), inputs={"x": spec}), num_threads=1)
    frame = np.arange(24, dtype=np.uint8).reshape(2, 4, 3)
    np.testing.assert_array_equal(np.asarray(session(frame)[0]), frame.T.astype(np.float32) - np.array([1, 2]))


def test_frames_survive_printing_and_parsing():
    spec = lb.InputSpec("uint8", "NHWC", strides=(96, 24, 3, 1))
    module = import_onnx(ImportRequest(identity((1, 3, 4, 6)), (Target("llvm"),), frames={"x": spec})).module
    parsed = IRModule.parse(str(module.op), module.targets, module.vdevices)
    (seen,) = lb.compile(parsed).main.inputs
    assert (seen.shape, seen.strides, seen.dtype) == ((1, 4, 6, 3), (96, 24, 3, 1), "uint8")


@pytest.mark.parametrize("batch", [72, 0, 1 << 40])
def test_a_dense_frame_has_no_strides(batch):
    spec = lb.InputSpec("uint8", "NHWC", strides=(batch, 18, 3, 1))
    (seen,) = lb.compile(identity((1, 3, 4, 6)), inputs={"x": spec}).main.inputs
    assert seen.strides == ()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dtype": "rgb"}, "unknown dtype"),
        ({"layout": "NHHC"}, "one letter for each axis"),
        ({"layout": "NHWX"}, "not a permutation"),
        ({"layout": "NHW"}, "not a permutation|numbers of axes"),
        ({"layout": "NHWC", "shape": (1, 4, 6)}, "numbers of axes"),
        ({"shape": (1, 3, 4, -6)}, "negative extent"),
        ({"shape": (1, 3, 8, 6)}, "give resize="),
        ({"shape": (1, 4, 4, 6), "resize": "linear"}, "changes D, H and W alone"),
        ({"shape": (1, 3, 0, 6), "resize": "linear"}, "extent 0"),
        ({"resize": "cubic"}, "'nearest', 'linear'"),
        ({"strides": (72, 24, 6, -1)}, "none negative"),
        ({"strides": (72, 0, 6, 1)}, "share memory"),
        ({"strides": (72, 24, 5, 1)}, "share memory"),
        ({"strides": (6, 1)}, "do not match shape"),
        ({"strides": (1.5, 1, 1, 1)}, "integer for each axis"),
        ({"mean": (1.0, 2.0)}, "3 channels"),
        ({"scale": float("nan")}, "finite number"),
        ({"mean": "grey"}, "finite number"),
        ({"model_layout": "NC"}, "one letter for each|numbers of axes"),
    ],
)
def test_what_contradicts_itself_or_the_model_is_refused(options, message):
    with pytest.raises(lb.InputError, match=message):
        lb.compile(identity((1, 3, 4, 6)), inputs={"x": lb.InputSpec(**options)})


def test_an_input_that_is_not_there_and_moments_of_integers_are_refused():
    with pytest.raises(lb.InputError, match=re.escape("no input 'frame' is left to state; they are: x")):
        lb.compile(identity((1, 3, 4, 6)), inputs={"frame": lb.InputSpec()})
    with pytest.raises(lb.InputError, match="takes uint8, which mean and scale do not make"):
        lb.compile(identity((1, 3, 4, 6), "uint8"), inputs={"x": lb.InputSpec(mean=1)})


def test_a_frame_without_elements_is_nothing_to_read():
    session = lb.Session(lb.compile(identity((0, 3, 4, 6)), inputs={"x": lb.InputSpec("uint8", "NHWC")}))
    (seen,) = session(np.empty((0, 4, 6, 3), np.uint8))
    assert np.asarray(seen).shape == (0, 3, 4, 6)


def test_every_element_of_a_frame_has_a_place_of_its_own():
    """What ``frame_strides`` accepts has no two elements in one place, and it accepts what is sorted by nesting."""
    for shape, strides in product([(2, 3), (3, 2)], product(range(5), repeat=2)):
        places = {i * strides[0] + j * strides[1] for i in range(shape[0]) for j in range(shape[1])}
        try:
            lb.InputSpec(strides=strides).frame_strides(shape)
        except lb.InputError:
            continue
        assert len(places) == prod(shape)
