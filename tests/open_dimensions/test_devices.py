"""Open programs on devices of workgroups: sizes change from run to run, in memory that is used in place."""

from __future__ import annotations

import json
import mmap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import numpy_helper, parser

import landbridge as lb
from landbridge.errors import BindError, OutOfMemoryError, PlacementError, ShapeError
from landbridge.executable.header import SIZES_VERSION
from landbridge.executable.parts import Function
from landbridge.targets import Target
from landbridge.vm import bound_program
from landbridge.vm.program import Program
from tests.open_dimensions import models
from tests.open_dimensions.test_device_node_cases import TARGETS, device_and_target, run_on_device

Array = np.ndarray[Any, Any]
HEAD = '<ir_version: 8, opset_import: ["": 18]> '
#: 1024 columns are a page of memory.
SOFTMAX = HEAD + "m (float[n, 1024] x) => (float[n, 1024] y) { r = Relu(x)  y = Softmax(r) }"
DOUBLED = HEAD + "m (float[n, 4] x) => (float[n, 4] y) { d = Add(x, x)  y = Relu(d) }"
PRODUCT = HEAD + "m (float[n, 10] x) => (float[n, 12] y) { p = MatMul(x, w)  y = Relu(p) }"


@pytest.fixture(params=TARGETS)
def place(request: pytest.FixtureRequest) -> tuple[lb.Device, Target]:
    """A device, and a target for it."""
    return device_and_target(request.param)


def rows(*shape: int) -> Array:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def in_pages(*shape: int) -> Array:
    """Memory that devices import: it begins with a page."""
    return np.frombuffer(mmap.mmap(-1, 4 * int(np.prod(shape))), np.float32).reshape(shape)


def softmax(x: Array) -> Array:
    powers = np.exp(np.maximum(x, 0))
    return powers / powers.sum(1, keepdims=True)


@pytest.mark.sample(6)
@pytest.mark.parametrize(
    ("model", "dims", "shapes"),
    [
        ("convolutions", {"N": "1..3", "H": "16..64:8", "W": "8..256:8@64"}, [(1, 3, 16, 64), (2, 3, 40, 8)]),
        ("convolutions", None, [(1, 3, 17, 64), (2, 3, 40, 9)]),
        ("attention", {"N": "1..8", "T": "1..300@64"}, [(1, 5, 32), (3, 70, 32), (8, 1, 32)]),
        ("attention", None, [(1, 5, 32), (2, 300, 32)]),
        ("positions", None, [(1, 4, 5), (3, 4, 70)]),
    ],
)
def test_networks_give_what_they_give_on_a_cpu(
    place: tuple[lb.Device, Target], model: str, dims: dict[str, str] | None, shapes: list[tuple[int, ...]]
) -> None:
    device, target = place
    proto = getattr(models, model)()
    session = lb.Session(lb.compile(proto, target, dims=dims), device=device)
    on_cpu = lb.Session(lb.compile(proto, dims=dims))
    for shape in (*shapes, shapes[0]):
        x = rows(*shape)
        for found, expected in zip(run_on_device(session, {"x": x}), on_cpu(x), strict=True):
            np.testing.assert_allclose(found, np.asarray(expected), rtol=1e-4, atol=1e-5)


def test_more_sizes_than_are_retained(place: tuple[lb.Device, Target]) -> None:
    device, target = place
    session = lb.Session(lb.compile(parser.parse_model(DOUBLED), target), device=device)
    for n in (*range(1, 70), 2, 69):
        x = rows(n, 4)
        np.testing.assert_allclose(run_on_device(session, {"x": x})[0], np.maximum(2 * x, 0), rtol=1e-6)


def test_sizes_that_fit_the_memory_bind_nothing(
    place: tuple[lb.Device, Target], monkeypatch: pytest.MonkeyPatch
) -> None:
    device, target = place
    dims = {"N": "1..3", "H": "16..64:8", "W": "8..256:8@64"}
    proto = models.convolutions()
    session, on_cpu = lb.Session(lb.compile(proto, target, dims=dims), device=device), lb.Session(lb.compile(proto))
    bound: list[object] = []
    real = bound_program.bind_function

    def bind_function(function: Function, *given: Any) -> Program:
        if given[-1].binding(0).device == device:
            bound.append(function)
        return real(function, *given)

    monkeypatch.setattr(bound_program, "bind_function", bind_function)
    for shape in ((3, 3, 64, 256), (1, 3, 16, 8), (2, 3, 40, 64), (3, 3, 16, 256), (2, 3, 40, 64)):
        x = rows(*shape)
        for found, expected in zip(run_on_device(session, {"x": x}), on_cpu(x), strict=True):
            np.testing.assert_allclose(found, np.asarray(expected), rtol=1e-4, atol=1e-5)
    assert len(bound) == 1


def test_sizes_that_take_more_scratch_memory_than_there_is(place: tuple[lb.Device, Target]) -> None:
    device, target = place
    text = "m (float[n, 40] x) => (float[n, 40] y) { y, i = TopK<largest = 1>(x, all) }"
    model = parser.parse_model(HEAD + text)
    model.graph.initializer.append(numpy_helper.from_array(np.array([40]), "all"))
    session = lb.Session(lb.compile(model, target), device=device)
    for n in (2, 700, 5, 3000):
        x = rows(n, 40)
        np.testing.assert_array_equal(run_on_device(session, {"x": x})[0], -np.sort(-x))


def test_moves_of_each_size_are_listed(place: tuple[lb.Device, Target]) -> None:
    device, target = place
    text = "m (float[n, 4] x) => (float[4, n] y) { y = Transpose<perm = [1, 0]>(x) }"
    session = lb.Session(lb.compile(parser.parse_model(HEAD + text), target), device=device)
    for n in (3, 70, 3):
        x = rows(n, 4)
        session.set_input("x", x)
        with lb.ledger() as moves:
            session.run()
        assert [move.nbytes for move in moves if move.cause.startswith("kernel:")] == [16 * n]
        np.testing.assert_array_equal(np.array(session.get_output("y").to_device("cpu")), x.T)


def test_memory_of_every_size_is_used_in_place(place: tuple[lb.Device, Target]) -> None:
    device, target = place
    session = lb.Session(lb.compile(parser.parse_model(SOFTMAX), target), device=device)
    for n in (3, 200, 3):
        x, y = in_pages(n, 1024), in_pages(n, 1024)
        with lb.no_copies():
            session.set_input_zero_copy("x", x)
            session.set_output_zero_copy("y", y)
            x[...] = rows(n, 1024)
            session.run()
        np.testing.assert_allclose(y, softmax(x), rtol=1e-4, atol=1e-6)


def test_prepared_sizes_and_files(place: tuple[lb.Device, Target], tmp_path: Path) -> None:
    device, target = place
    path = tmp_path / "open.lbx"
    lb.compile(parser.parse_model(SOFTMAX), target).save(path)
    assert int.from_bytes(path.read_bytes()[8:12], "little") == SIZES_VERSION
    session = lb.Session(lb.load(path, verify="all"), device=device)
    session.prepare(n=[4, 7])
    for n in (7, 4, 5):
        x = rows(n, 1024)
        np.testing.assert_allclose(run_on_device(session, {"x": x})[0], softmax(x), rtol=1e-4, atol=1e-6)


def test_a_dimension_may_be_0(place: tuple[lb.Device, Target]) -> None:
    device, target = place
    text = "m (float[n, 4] x) => (float[4] s, float[n, 4] y) { y = Relu(x)  s = ReduceSum<keepdims = 0>(y, axes) }"
    model = parser.parse_model(HEAD + text)
    model.graph.initializer.append(numpy_helper.from_array(np.array([0]), "axes"))
    session = lb.Session(lb.compile(model, target), device=device)
    for n in (3, 0, 200, 0):
        total, y = run_on_device(session, {"x": np.ones((n, 4), np.float32)})
        assert total.tolist() == [n] * 4 and y.shape == (n, 4)


def test_several_dimensions_that_may_broadcast(place: tuple[lb.Device, Target]) -> None:
    device, target = place
    text = "m (float[b, s, 4] x, float[mb, s, 1] mask) => (float[b, s, 4] y) { y = Mul(x, mask) }"
    session = lb.Session(lb.compile(parser.parse_model(HEAD + text), target), device=device)
    for b, mb, s in ((3, 3, 2), (3, 1, 70), (1, 1, 5)):
        x, mask = rows(b, s, 4), rows(mb, s, 1)
        np.testing.assert_allclose(run_on_device(session, {"x": x, "mask": mask})[0], x * mask, rtol=1e-6)
    with pytest.raises(ShapeError, match=r"they must be equal|legal"):
        run_on_device(session, {"x": rows(3, 2, 4), "mask": rows(3, 5, 1)})


def test_weights_that_are_replaced_serve_all_sizes(place: tuple[lb.Device, Target]) -> None:
    device, target = place
    model, w = parser.parse_model(PRODUCT), rows(10, 12)
    model.graph.initializer.append(numpy_helper.from_array(w, "w"))
    session = lb.Session(lb.compile(model, target, mutable=["w"]), device=device)
    for times in (1, 2):
        session.set_params({"w": times * w})
        for n in (2, 40):
            x = rows(n, 10)
            expected = np.maximum(x @ (times * w), 0)
            np.testing.assert_allclose(run_on_device(session, {"x": x})[0], expected, rtol=1e-4, atol=1e-5)


def test_a_state_goes_from_size_to_size(place: tuple[lb.Device, Target]) -> None:
    device, target = place
    nodes = "{ y = Add(x, h)  g = ReduceSum(y, axes) }"
    text = f"m (float[n, 4] x, float[1, 4] h) => (float[n, 4] y, float[1, 4] g) {nodes}"
    model = parser.parse_model(HEAD + text)
    model.graph.initializer.append(numpy_helper.from_array(np.array([0]), "axes"))
    session = lb.Session(lb.compile(model, target), device=device)
    session.bind_state("g", "h")
    state = np.zeros((1, 4), np.float32)
    for n in (2, 5, 2, 90):
        x = rows(n, 4)
        session.set_input("x", x)
        session.run()
        found = np.array(session.get_output("y").to_device("cpu"))
        np.testing.assert_allclose(found, x + state, rtol=1e-3, atol=1e-3)
        state = (x + state).sum(0, keepdims=True)


@pytest.mark.parametrize("layer", ["LSTM", "GRU", "RNN"])
def test_steps_of_recurrent_layers(place: tuple[lb.Device, Target], layer: str) -> None:
    device, target = place
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[layer]
    text = f"m (float[t, b, 4] x) => (float[t, 1, b, 5] y) {{ y, h = {layer}<hidden_size = 5>(x, w, r) }}"
    model = parser.parse_model(HEAD + text)
    for name, shape in (("w", (1, 5 * gates, 4)), ("r", (1, 5 * gates, 5))):
        model.graph.initializer.append(numpy_helper.from_array(rows(*shape), name))
    session, on_cpu = lb.Session(lb.compile(model, target), device=device), lb.Session(lb.compile(model))
    for shape in ((3, 2, 4), (1, 90, 4)):
        x = rows(*shape)
        expected = np.asarray(on_cpu(x)[0])
        np.testing.assert_allclose(run_on_device(session, {"x": x})[0], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.filterwarnings("ignore::landbridge.errors.FallbackWarning")
def test_a_program_that_data_cut(place: tuple[lb.Device, Target]) -> None:
    device, target = place
    text = "m (float[n] x) => (float[m] y) { good = Greater(x, zero)  some = Compress(x, good)  y = Sqrt(some) }"
    model = parser.parse_model(HEAD + text)
    model.graph.initializer.append(numpy_helper.from_array(np.float32(0), "zero"))
    session = lb.Session(lb.compile(model, target), device=device)
    for x in ([4.0, -1, 9], [-1.0], [16.0]):
        found = run_on_device(session, {"x": np.array(x, np.float32)})[0]
        assert found.tolist() == [number**0.5 for number in x if number > 0]


def test_each_access_is_tested_where_that_is_requested(place: tuple[lb.Device, Target]) -> None:
    device, target = place
    session = lb.Session(lb.compile(parser.parse_model(SOFTMAX), target, sanitize=True), device=device)
    x = rows(3, 1024)
    np.testing.assert_allclose(run_on_device(session, {"x": x})[0], softmax(x), rtol=1e-4, atol=1e-6)


def test_more_workgroups_than_an_axis_of_a_launch_takes() -> None:
    device, _ = device_and_target("vulkan")
    target = Target({**json.loads(Target.from_device(device).to_json()), "max-workgroups": 4})
    session = lb.Session(lb.compile(parser.parse_model(SOFTMAX), target), device=device)
    for n in (1, 4, 5, 13):
        x = rows(n, 1024)
        np.testing.assert_allclose(run_on_device(session, {"x": x})[0], softmax(x), rtol=1e-4, atol=1e-6)


def test_integers_of_32_bits_are_enough() -> None:
    """A target without integers of 64 bits reads the lower halves of the words."""
    device, _ = device_and_target("vulkan")
    executable = lb.compile(parser.parse_model(SOFTMAX), "vulkan")
    session, x = lb.Session(executable, device=device), rows(3, 1024)
    np.testing.assert_allclose(run_on_device(session, {"x": x})[0], softmax(x), rtol=1e-4, atol=1e-6)


def test_more_bytes_than_a_kernel_takes_are_refused_when_the_size_is_known() -> None:
    device, _ = device_and_target("vulkan")
    session = lb.Session(lb.compile(parser.parse_model(SOFTMAX), "vulkan"), device=device)
    with pytest.raises(OutOfMemoryError, match=r"has \d+ bytes at these sizes, .* at most \d+ in one buffer"):
        session.prepare(n=40_000)
    x = rows(2, 1024)
    np.testing.assert_allclose(run_on_device(session, {"x": x})[0], softmax(x), rtol=1e-4, atol=1e-6)


@pytest.fixture(params=["opencl", "vulkan"])
def textures(request: pytest.FixtureRequest) -> tuple[lb.Device, Target]:
    """A device with images, and its Target."""
    device, _ = device_and_target(request.param)
    return device, Target.from_device(device)


IMAGES = "m (float[n, 8, h, 4] x) => (float[n, 8, h, 4] y) { t = Relu(x)  u = Exp(t)  y = Add(u, x) }"
POOLED = "m (float[1, 4, h, w] x) => (float[1, 4, p, q] y) { t = Relu(x)  y = MaxPool<kernel_shape = [2, 2]>(t) }"
TEXTURE = "npu@global.texture[2,3]"


@pytest.mark.parametrize("names", ["t", "xy", "xty"])
def test_images_of_open_extents(textures: tuple[lb.Device, Target], names: str) -> None:
    device, target = textures
    model, dims = parser.parse_model(HEAD + IMAGES), {"n": "1..4", "h": "1..64"}
    executable = lb.compile(model, {"npu": target}, dims=dims, place=dict.fromkeys(names, TEXTURE))
    session = lb.Session(executable, device=device)
    for shape in ((1, 8, 5, 4), (3, 8, 40, 4), (1, 8, 5, 4), (4, 8, 1, 4)):
        x = rows(*shape)
        (found,) = run_on_device(session, {"x": x})
        np.testing.assert_allclose(found, np.exp(np.maximum(x, 0)) + x, rtol=1e-5, atol=1e-6)


def test_rows_and_pixels_of_an_image_are_open(textures: tuple[lb.Device, Target]) -> None:
    device, target = textures
    model = parser.parse_model(HEAD + POOLED)
    place = {"t": "npu@global.texture[2,4]"}  # a pixel has one element
    executable = lb.compile(model, {"npu": target}, dims={"h": "2..64", "w": "2..64"}, place=place)
    session, on_cpu = lb.Session(executable, device=device), lb.Session(lb.compile(model))
    for shape in ((1, 4, 6, 8), (1, 4, 9, 33)):
        x = rows(*shape)
        np.testing.assert_array_equal(run_on_device(session, {"x": x})[0], np.asarray(on_cpu(x)[0]))


def test_an_image_has_no_dimension_of_0(textures: tuple[lb.Device, Target]) -> None:
    device, target = textures
    model = parser.parse_model(HEAD + IMAGES)
    session = lb.Session(lb.compile(model, {"npu": target}, place={"t": TEXTURE}), device=device)
    x = rows(2, 8, 3, 4)
    np.testing.assert_allclose(run_on_device(session, {"x": x})[0], np.exp(np.maximum(x, 0)) + x, rtol=1e-5, atol=1e-6)
    with pytest.raises((ShapeError, BindError)):
        run_on_device(session, {"x": rows(2, 8, 0, 4)})


def test_the_elements_of_a_pixel_are_a_known_number(textures: tuple[lb.Device, Target]) -> None:
    dims, place = {"n": "1..4", "h": "1..4"}, {"t": "npu@global.texture[1,2]"}
    with pytest.raises(PlacementError, match=r"elements in a pixel .*; legal: 1, 2 or 4"):
        lb.compile(parser.parse_model(HEAD + IMAGES), {"npu": textures[1]}, dims=dims, place=place)


def test_a_size_whose_image_is_too_large_is_refused_when_it_is_bound(textures: tuple[lb.Device, Target]) -> None:
    device, target = textures
    dims = {"n": "1..4", "h": "1..1000000"}
    executable = lb.compile(parser.parse_model(HEAD + IMAGES), {"npu": target}, dims=dims, place={"t": TEXTURE})
    session = lb.Session(executable, device=device)
    with pytest.raises(BindError, match=r"an image of 8 rows of 100000 pixels; legal"):
        session.prepare(n=1, h=100_000)
    x = rows(1, 8, 3, 4)
    np.testing.assert_allclose(run_on_device(session, {"x": x})[0], np.exp(np.maximum(x, 0)) + x, rtol=1e-5, atol=1e-6)


def test_a_device_and_the_cpu_share_an_open_program(place: tuple[lb.Device, Target]) -> None:
    device, target = place
    proto = models.convolutions()
    places = dict.fromkeys([node.name or node.output[0] for node in proto.graph.node][1::2], "cpu")
    executable = lb.compile(proto, {"npu": target, "cpu": "llvm"}, place=places)
    session = lb.Session(executable, devices={"npu": device, "cpu": "cpu"})
    on_cpu = lb.Session(lb.compile(proto))
    for shape in ((1, 3, 16, 64), (2, 3, 40, 8)):
        x = rows(*shape)
        expected = np.asarray(on_cpu(x)[0])
        np.testing.assert_allclose(run_on_device(session, {"x": x})[0], expected, rtol=1e-4, atol=1e-5)
