"""Windows of streams on devices: they slide through memory that has an end, and are moved once in eight runs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

import landbridge as lb
from landbridge.memory_kind import MemoryKind
from landbridge.targets import Target
from landbridge.vm import sliding_windows
from landbridge.vm.device_binding import DeviceBinding
from tests.devices.present import first_instance
from tests.session.state_histories import read
from tests.session.stream_histories import FORMS, LAYERS, History, joined_by, of_any_number, stream

#: Devices, by the schedules of their kernels and the memory of states. Buffers begin at multiples of many bytes.
PLACES = {"opencl": "opencl", "opencl on cores": "opencl", "opencl in buffers": "opencl", "vulkan": "vulkan"}
#: How many runs a window slides for before it is moved.
RUNS = 8


def target_of(place: str) -> Target:
    found = Target.from_device(first_instance(PLACES[place]))
    if found.kind != "opencl":
        return found
    return Target({**found.to_dict(), "device-class": "cpu" if "cores" in place else "gpu"})


def session_on(place: str, layer: str, *, is_open: bool = False) -> lb.Session:
    described = of_any_number(layer) if is_open else {"model": stream(*LAYERS[layer])}
    return lb.Session(lb.compile(target=target_of(place), alias="auto", **described), device=PLACES[place])


@pytest.fixture(autouse=True)
def memory_of_states(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Puts states in buffers where the place says so, as on devices without shared virtual memory."""

    def kind_of_binding(binding: DeviceBinding, itemsize: int) -> MemoryKind:
        return binding.kind

    if "buffers" in request.node.name:
        monkeypatch.setattr(sliding_windows, "_sliding_kind", kind_of_binding)


@pytest.mark.sample(8)
@pytest.mark.parametrize("is_open", [False, True], ids=["known", "open"])
@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("place", PLACES)
def test_random_histories(place: str, layer: str, is_open: bool, tmp_path: Path) -> None:
    """Runs, forks, resets, values that are given, files; memory is used from its end to its begin many times."""
    history = History(session_on(place, layer, is_open=is_open), layer, 5, is_open=is_open, moves=True)
    history.walk(80, tmp_path)


@pytest.mark.sample(2)
@pytest.mark.parametrize("is_open", [False, True], ids=["known", "open"])
@pytest.mark.parametrize("place", ["opencl", "vulkan"])
def test_a_window_is_moved_in_every_eighth_run(place: str, is_open: bool) -> None:
    history = History(session_on(place, "dense", is_open=is_open), "dense", 3, is_open=is_open, moves=True)
    state = history.begin(history.session.bind_state())
    storage = None
    for _ in range(4 * RUNS):
        history.step(state, new=3)
        tensor = state.tensors["cache_in"]
        assert storage in (None, tensor.storage)
        storage = tensor.storage
    whole = 4 * 16 * (4 + 3)
    moved = whole - 4 * 3  # all but the samples that the last row needs no more
    assert history.moved[1:] == 4 * [*[0] * (RUNS - 1), moved]
    assert storage is not None and storage.nbytes == pytest.approx(2 * (whole + (RUNS - 1) * 4 * 3), abs=2 * 128)


@pytest.mark.sample(2)
@pytest.mark.parametrize("place", ["opencl", "vulkan"])
def test_any_number_of_samples_moves_no_more_than_the_same_number(place: str) -> None:
    """Few samples after many: a part of the memory has eight locations, whichever runs there are."""
    history = History(session_on(place, "more new than kept", is_open=True), "more new than kept", 3, moves=True)
    state = history.begin(history.session.bind_state())
    for number in range(6 * RUNS):
        history.step(state, new=(10, 1, 7)[number % 3])
    assert sum(moved > 0 for moved in history.moved) == 6


@pytest.mark.parametrize("place", ["opencl in buffers"])
def test_where_memory_begins_at_multiples_of_many_bytes(place: str) -> None:
    """Windows slide by such multiples, and other ones are moved by each run: by one copy, in one memory."""
    layers = {"aligned": (8, 16, 32, 4, 1), "others": (8, 16, 3, 4, 1)}
    for name, layer in layers.items():
        session = lb.Session(lb.compile(stream(*layer), target_of(place), alias="auto"), device="opencl")
        state = session.bind_state()
        x, w = np.ones((1, 8, layer[2]), np.float32), np.ones((8, 8, 5), np.float32)
        found = []
        for _ in range(2 * RUNS):
            with lb.ledger() as moves:
                session(x, w)
            found.append(len([move for move in moves if move.cause == "slide"]))
            storage = state.tensors["cache_in"].storage
        assert storage.kind.scope == "global"
        assert found == (2 * [*[0] * (RUNS - 1), 1] if name == "aligned" else 2 * RUNS * [1])


def test_two_parts_are_one_allocation() -> None:
    kind = MemoryKind(scope="global", host_access="none", coherent=True, offset_alignment=256, max_bytes=2048)
    assert sliding_windows.bytes_of_parts(kind, 512, 64) == 2 * 1024
    assert sliding_windows.bytes_of_parts(kind, 512, 100) == 0, "each part would have 1280"
    assert sliding_windows.bytes_of_parts(kind, 0, 0) == 2 * 256, "a state without elements"


@pytest.mark.sample(1)
@pytest.mark.parametrize("is_open", [False, True], ids=["known", "open"])
@pytest.mark.parametrize("place", ["opencl", "vulkan"])
def test_a_move_that_is_forbidden_leaves_the_state_as_it_was(place: str, is_open: bool) -> None:
    """Kernels move nothing either in the runs before: the copy before an update is not launched."""
    history = History(session_on(place, "dense", is_open=is_open), "dense", 3, is_open=is_open, moves=True)
    ones = np.ones((1, 16, 3), np.float32)
    x, w = (lb.asarray(array, device=place) for array in (ones, history.weights))
    state = history.begin(history.session.bind_state(), np.concatenate([ones, ones], axis=2)[:, :, -4:])
    for _ in range(RUNS - 1):
        with lb.no_copies(kernels=True):
            history.session(x, w)
    history.check(state)
    with lb.no_copies(), pytest.raises(lb.CopyForbiddenError, match=r"^slide: 436 bytes"):
        history.session(x, w)
    history.check(state)
    history.step(state)


@pytest.mark.sample(1)
@pytest.mark.parametrize("place", ["opencl", "vulkan"])
def test_no_argument_lies_in_memory_that_a_window_slides_through(place: str) -> None:
    history = History(session_on(place, "dense"), "dense", 3, moves=True)
    state = history.begin(history.session.bind_state())
    history.step(state)
    storage = state.tensors["cache_in"].storage
    x = lb.Tensor(storage, "float32", (1, 16, 3), None, storage.nbytes // 2)
    with pytest.raises(lb.InputError, match=r"would share .* bytes"):
        history.session.set_input_zero_copy("x", x)
    with pytest.raises(lb.InputError, match=r"would share .* bytes"):
        history.session(x, history.weights)
    history.step(state)


@pytest.mark.sample(2)
@pytest.mark.parametrize("place", ["opencl", "vulkan"])
def test_two_windows_of_one_session_and_a_pair(place: str) -> None:
    """Windows of different steps are moved in the same run, so that devices record no more than for one."""
    model = lb.compile(target=target_of(place), model=two_layers(), alias="auto")
    session, pairs = (lb.Session(model, device=PLACES[place]) for _ in "ab")
    session.bind_state()
    pairs.bind_state("a_out", "a_in")
    pairs.bind_state("b_out", "b_in")
    past = {"a": np.zeros((1, 4, 6), np.float32), "b": np.zeros((1, 4, 5), np.float32)}
    rng = np.random.default_rng(0)
    for number in range(1, 3 * RUNS + 1):
        x = rng.standard_normal((1, 4, 8)).astype(np.float32)
        with lb.ledger() as moves:
            found = session(x)
        assert len([m for m in moves if m.cause == "slide"]) == (2 if number % RUNS == 0 else 0)
        a = np.concatenate([past["a"], x], axis=2)
        b = np.concatenate([past["b"], np.abs(x[:, :, ::2])], axis=2)
        past = {"a": a[:, :, -6:], "b": b[:, :, -5:]}
        for results in (found, pairs(x)):
            np.testing.assert_array_equal(read(results[0]), np.maximum(a, 0))
            np.testing.assert_array_equal(read(results[1]), -b)


@pytest.mark.sample(6)
@pytest.mark.parametrize("is_open", [False, True], ids=["known", "open"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("place", ["cpu", "opencl", "vulkan"])
def test_samples_along_any_axis(place: str, form: str, is_open: bool) -> None:
    """The state and what is computed are those of a program with two buffers."""
    first, before, last, _ = FORMS[form]
    target = "llvm" if place == "cpu" else target_of(place)
    ranges = {"S": lb.Dim(1, 6)} if is_open else None
    model, rng = joined_by(form, "S" if is_open else "4"), np.random.default_rng(2)
    programs = [lb.compile(model, target, alias=alias, dims=ranges) for alias in ("auto", None)]
    assert [bool(program.main.aliases) for program in programs] == [True, False]
    sessions = [lb.Session(program, device=place) for program in programs]
    states = [session.bind_state() for session in sessions]
    for _ in range(2 * RUNS + 3):
        shape = (*first, int(rng.integers(1, 7)) if is_open else 4, *last)
        feeds = {spec.name: rng.standard_normal(spec.shape) for spec in sessions[0].inputs if spec.name in "vw"}
        feeds["x"] = rng.standard_normal(shape)
        dtypes = {spec.name: spec.dtype for spec in programs[0].main.inputs}
        given = {name: array.astype(dtypes[name]) for name, array in feeds.items()}
        found, expected = (session(given)["y"] for session in sessions)
        np.testing.assert_allclose(read(found), read(expected), rtol=1e-5, atol=1e-5)
        kept = [read(state.tensors["cache_in"]) for state in states]
        assert kept[0].shape == (*first, before, *last)
        np.testing.assert_array_equal(kept[0], kept[1])


def two_layers() -> onnx.ModelProto:
    return onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]>
        two (float[1,4,8] x, float[1,4,6] a_in, float[1,4,5] b_in)
            => (float[1,4,14] y, float[1,4,9] z, float[1,4,6] a_out, float[1,4,5] b_out)
        <int64[1] zero = {0}, int64[1] six = {-6}, int64[1] five = {-5}, int64[1] two = {2},
         int64[1] last = {9223372036854775807}> {
            a = Concat<axis=2>(a_in, x)
            y = Relu(a)
            a_out = Slice(a, six, last, two)
            fewer = Slice(x, zero, last, two, two)
            positive = Abs(fewer)
            b = Concat<axis=2>(b_in, positive)
            z = Neg(b)
            b_out = Slice(b, five, last, two)
        }""")
