"""States on OpenCL and Vulkan devices: one memory, of which kernels write what is new alone."""

from __future__ import annotations

import copy
import functools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

import landbridge as lb
from landbridge.targets import Target
from tests.devices.present import first_instance
from tests.frontend import test_retained_buffers as retained_buffers
from tests.session.exported_decoders import static
from tests.session.state_histories import (
    BATCH,
    CAPACITY,
    GROUPED,
    GROWN,
    SHARED,
    SIZE,
    STEPS,
    History,
    grouped,
    read,
    walk,
)  # fmt: skip
from tests.session.test_aliases import KINDS, NEW, ROWS, WIDTH, indices, model, scattered, watched

Array = np.ndarray[Any, Any]

#: Devices, by the schedules of their kernels: work-items in workgroups, or tasks on the cores of a CPU.
PLACES = {"opencl": "opencl", "opencl on cores": "opencl", "vulkan": "vulkan"}


def target_of(place: str) -> Target:
    found = Target.from_device(first_instance(PLACES[place]))
    if found.kind != "opencl":
        return found
    return Target({**found.to_dict(), "device-class": "cpu" if "cores" in place else "gpu"})


def on(place: str, graph: Any, **options: Any) -> lb.Session:
    return lb.Session(lb.compile(graph, target_of(place), **options), device=PLACES[place])


@pytest.mark.sample(4)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kind", KINDS)
def test_only_new_rows_are_written(kind: str, place: str) -> None:
    session = on(place, scattered(kind))
    session.bind_state("after", "before")
    rng = np.random.default_rng(3)
    expected = rng.random((ROWS, WIDTH), np.float32)
    session.set_input("before", expected)
    for first in (4, 0, 10, 5):
        new = rng.random((NEW, WIDTH), np.float32)
        expected[first : first + NEW] = new
        session.set_input("at", indices(kind, first))
        session.set_input("new", new)
        with lb.no_copies(kernels=True):
            assert watched(session) == 0
        np.testing.assert_array_equal(read(session.get_output("after")), expected)


@pytest.mark.sample(2)
@pytest.mark.parametrize("place", PLACES)
def test_one_memory_and_two_in_any_order(place: str) -> None:
    """Each is recorded by itself: a copy that is left out for one memory is made for two, also after many runs."""
    session, rng = on(place, scattered("ScatterND")), np.random.default_rng(5)
    buffers = [lb.asarray(rng.random((ROWS, WIDTH), np.float32), device=PLACES[place]) for _ in range(3)]
    expected = [read(each).copy() for each in buffers]
    for _ in range(24):
        source, target = (int(n) for n in rng.integers(3, size=2))
        first, new = int(rng.integers(ROWS - NEW)), rng.random((NEW, WIDTH), np.float32)
        session.set_input_zero_copy("before", buffers[source])
        session.set_output_zero_copy("after", buffers[target])
        session.set_input("at", indices("ScatterND", first))
        session.set_input("new", new)
        assert watched(session) == (0 if source == target else new.nbytes // NEW * ROWS)
        expected[target] = expected[source].copy()
        expected[target][first : first + NEW] = new
        for buffer, values in zip(buffers, expected, strict=True):
            np.testing.assert_array_equal(read(buffer), values)


@pytest.mark.sample(2)
@pytest.mark.parametrize("place", PLACES)
def test_a_kernel_that_reads_each_element_where_it_writes_it(place: str) -> None:
    graph = model(
        [helper.make_node("Tanh", ["x"], ["a"]), helper.make_node("Add", ["a", "w"], ["y"])],
        {"x": (40, 30), "w": (40, 30)},
        {"y": (40, 30)},
    )
    session = on(place, graph, alias={"y": "x"})
    session.bind_state("y", "x")
    rng = np.random.default_rng(2)
    x, w = (rng.random((40, 30), np.float32) for _ in "xw")
    session.set_input("x", x)
    session.set_input("w", w)
    for _ in range(3):
        session.run()
        x = np.tanh(x) + w
    np.testing.assert_allclose(read(session.get_output("y")), x, rtol=1e-5)


def test_what_stays_refused_says_where_it_runs() -> None:
    graph = model([helper.make_node("MatMul", ["x", "w"], ["y"])], {"x": (40, 40), "w": (40, 40)}, {"y": (40, 40)})
    with pytest.raises(lb.CompileError, match="reads elements of 'x' elsewhere than where it writes 'y'"):
        lb.compile(graph, "opencl", alias={"y": "x"})
    with pytest.raises(lb.CompileError, match="copies it to another device"):
        nodes = [
            helper.make_node("ScatterND", ["before", "at", "new"], ["between"], name="on the device"),
            helper.make_node("Tanh", ["between"], ["after"], name="on the host"),
        ]
        facts = {"before": (ROWS, WIDTH), "at": ((NEW, 1), TensorProto.INT64), "new": (NEW, WIDTH)}
        both = {"npu": "opencl -unified-memory=0", "cpu": "llvm"}
        graph = model(nodes, facts, {"after": (ROWS, WIDTH)})
        lb.compile(graph, both, place={"on the host": "cpu"}, alias={"after": "before"})


@pytest.mark.sample(6)
@pytest.mark.parametrize("seed", range(80))
def test_random_updates(seed: int) -> None:
    """Whatever is put where: as numpy has it, with reductions and repeated indices."""
    rng = np.random.default_rng(seed)
    reduction = ["none", "add", "max"][seed % 3]
    count = int(rng.integers(1, 30))
    shape = (int(rng.integers(1, 40)), *rng.integers(1, 20, rng.integers(0, 3)).tolist())
    nodes = [helper.make_node("ScatterND", ["before", "at", "new"], ["after"], reduction=reduction)]
    facts = {"before": shape, "at": ((count, 1), TensorProto.INT64), "new": (count, *shape[1:])}
    session = on(list(PLACES)[seed % len(PLACES)], model(nodes, facts, {"after": shape}))
    session.bind_state("after", "before")
    expected = rng.integers(-9, 9, shape).astype(np.float32)
    session.set_input("before", expected)
    for _ in range(4):
        at = rng.integers(-shape[0], shape[0], (count, 1))
        new = rng.integers(-9, 9, (count, *shape[1:])).astype(np.float32)
        session.set_input("at", at)
        session.set_input("new", new)
        with lb.no_copies(kernels=True):
            session.run()
        for where, value in zip(at[:, 0], new, strict=True):
            combined = {"add": expected[where] + value, "max": np.maximum(expected[where], value)}
            expected[where] = combined.get(reduction, value)
        np.testing.assert_array_equal(read(session.get_output("after")), expected)


# ---- States with a length


@functools.cache
def attending(place: str) -> lb.Executable:
    return lb.compile(grouped(), target_of(place))


@functools.cache
def growing(place: str) -> lb.Executable:
    return lb.compile(retained_buffers.attention(), target_of(place), alias=retained_buffers.STATES)


def history_on(place: str, seed: int, *, grows: bool = False) -> History:
    """States of a fixed capacity, or that grow in buffers of any capacity."""
    made, form = (growing, GROWN) if grows else (attending, GROUPED)
    return History(lb.Session(made(place), device=PLACES[place]), seed, form, PLACES[place])


@pytest.mark.sample(6, rarer=6)
@pytest.mark.parametrize("grows", [False, True], ids=["fixed", "open"])
@pytest.mark.parametrize("seed", range(500))
def test_random_histories(seed: int, grows: bool) -> None:
    walk(history_on(list(PLACES)[seed % len(PLACES)], seed, grows=grows), 12)


def shape_of_caches(grows: bool) -> tuple[int, ...]:
    return (BATCH, retained_buffers.HEADS, 9, retained_buffers.SIZE) if grows else (BATCH, SHARED, CAPACITY, SIZE)


@pytest.mark.sample(3)
@pytest.mark.parametrize("grows", [False, True], ids=["fixed", "open"])
@pytest.mark.parametrize("where", ["device", "imported"])
@pytest.mark.parametrize("place", PLACES)
def test_memory_of_the_application(place: str, where: str, grows: bool) -> None:
    """A Tensor of the device, and host memory that it imports, are what runs use; what is no number there is not."""
    shape, device = shape_of_caches(grows), PLACES[place]
    given: list[dict[str, Any]] = []

    def new() -> lb.State:
        arrays = {name: np.full(shape, np.nan, np.float32) for name in ("pk", "pv")}
        on = {name: lb.asarray(array, device=device) for name, array in arrays.items()}
        given.append(arrays if where == "imported" else on)
        return history.given(given[-1])

    history = history_on(place, 3, grows=grows)
    state = new()
    history.step(state, STEPS)
    for name, memory in given[0].items():
        now = np.array(memory) if where == "imported" else read(memory)
        np.testing.assert_array_equal(now, read(state.tensors[name]))
        assert where == "imported" or state.tensors[name].storage is memory.storage
    history.step(state, STEPS, by_call=True)
    walk(history, 6, new=new, actions=["append", "append", "rewind", "reset", "new"], most=3)


@pytest.mark.parametrize("grows", [False, True], ids=["fixed", "open"])
def test_memory_that_is_elsewhere_is_refused_when_it_is_bound(grows: bool) -> None:
    shape = shape_of_caches(grows)
    history = history_on("opencl", 3, grows=grows)
    for device in ("vulkan", "sim:lazy"):
        memory = {name: lb.empty(shape, dtype="float32", device=device) for name in ("pk", "pv")}
        with pytest.raises(lb.ZeroCopyError, match=r"'pk' is memory .* of .*, not memory .* of opencl.*lb.empty"):
            history.session.bind_state(memory=memory)
    history.step(history.new(9), STEPS)


@pytest.mark.sample(2)
@pytest.mark.parametrize("place", PLACES)
def test_a_step_beyond_the_capacity_is_refused_without_a_state(place: str) -> None:
    """Kernels would write the part of it that fits; lengths in memory that the host reads are checked before a run."""
    session = lb.Session(attending(place), device=PLACES[place])
    caches = {name: np.ones((BATCH, SHARED, CAPACITY, SIZE), np.float32) for name in ("pk", "pv")}
    feeds = {**GROUPED.feeds(np.random.default_rng(2), STEPS, CAPACITY - STEPS + 1), **caches}
    with pytest.raises(lb.StateCapacityError, match="needs 10 steps of 'pk', as 'ends' says; its capacity is 9"):
        session(feeds)
    for name, value in feeds.items():
        session.set_input(name, value)
    for run in (session.run, session.run_async):
        with pytest.raises(lb.StateCapacityError, match="needs 10 steps"):
            run()
    session.set_input("ends", np.array([CAPACITY - 1, 3], np.int32))
    session.run()
    found = read(session.get_output("nk"))
    assert (found[0, :, :-STEPS] == 1).all() and (found[0, :, -STEPS:] != 1).all()


@pytest.mark.sample(3)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("held", ["host", "device"])
def test_what_is_not_filled_is_never_read(place: str, held: str) -> None:
    """Kernels end where the length does, which they load: rows after it are no numbers, and no result is one."""
    session, rng = lb.Session(attending(place), device=PLACES[place]), np.random.default_rng(8)
    for length in (0, 1, 4, CAPACITY - STEPS):
        layer = GROUPED.layer()
        layer.keys, layer.values = rng.standard_normal((2, BATCH, SHARED, length, SIZE)).astype(np.float32)
        caches = {name: np.full((BATCH, SHARED, CAPACITY, SIZE), np.nan, np.float32) for name in ("pk", "pv")}
        caches["pk"][:, :, :length], caches["pv"][:, :, :length] = layer.keys, layer.values
        feeds: dict[str, Any] = {**GROUPED.feeds(rng, STEPS, length), **caches}
        expected = layer.step(feeds)
        if held == "device":
            feeds |= {name: lb.asarray(feeds[name], device=PLACES[place]) for name in ("ends", "total")}
        y, keys, values = map(read, session(feeds).values())
        np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-6)
        for found, filled in ((keys, layer.keys), (values, layer.values)):
            np.testing.assert_array_equal(found[:, :, : length + STEPS], filled)
            assert np.isnan(found[:, :, length + STEPS :]).all()


@pytest.mark.sample(3)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("total", [-(1 << 31), 0, CAPACITY + 1, (1 << 31) - 1])
def test_a_length_that_no_buffer_has_is_clamped_on_the_device(place: str, total: int) -> None:
    """The host cannot read it. Kernels read from one row to all rows, and the mask leaves out what is not filled."""
    session, rng = lb.Session(attending(place), device=PLACES[place]), np.random.default_rng(9)
    caches = {name: np.zeros((BATCH, SHARED, CAPACITY, SIZE), np.float32) for name in ("pk", "pv")}
    feeds: dict[str, Any] = {**GROUPED.feeds(rng, STEPS, 0), **caches}
    layer = GROUPED.layer()
    expected = layer.step(feeds)
    if total < 1:  # the first row alone
        rows = layer.values[:, :, :1].repeat(2, 1).transpose(0, 2, 1, 3).repeat(STEPS, 1)
        expected = rows.reshape(expected.shape)
    feeds["total"] = lb.asarray(np.array([total], np.int32), device=PLACES[place])
    y, *_ = map(read, session(feeds).values())
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("place", PLACES)
def test_a_state_in_a_file_and_in_a_session_of_the_cpu(place: str, tmp_path: Path) -> None:
    """A prompt that the device computed is continued where the file is loaded."""
    history = history_on(place, 3)
    state = history.new()
    for _ in range(2):
        history.step(state, by_call=True)
    state.save(tmp_path / "prompt")
    again = history_on(place, 4)
    loaded = again.new()
    loaded.load(tmp_path / "prompt")
    again.expected[loaded] = copy.copy(history.expected[state])
    again.check(loaded)
    again.step(loaded, by_call=False)
    on_cpu = lb.Session(lb.compile(grouped())).bind_state()
    on_cpu.load(tmp_path / "prompt")
    expected = history.expected[state]
    for name, values in (("pk", expected.keys), ("pv", expected.values)):
        np.testing.assert_array_equal(np.asarray(on_cpu.tensors[name])[:, :, : on_cpu.length], values)


@pytest.mark.sample(2)
@pytest.mark.parametrize("place", [*PLACES, "cpu"])
def test_a_static_cache_of_torch(place: str) -> None:
    """Runs of two steps each append to it; where the number of steps is open, the CPU computes the same."""
    exported, rng = static(), np.random.default_rng(8)
    shapes = {
        each.name: tuple(d.dim_value or STEPS for d in each.type.tensor_type.shape.dim) for each in exported.graph.input
    }
    target = lb.Target("llvm") if place == "cpu" else target_of(place)
    session = lb.Session(lb.compile(exported, target, shapes=shapes), device=PLACES.get(place, "cpu"))
    other = lb.Session(lb.compile(exported))
    state, expected = session.bind_state(), other.bind_state()
    for number in range(3):
        words = rng.integers(0, 5, shapes["input_ids"])
        feeds = {"input_ids": words, "cache_position": np.arange(STEPS * number, STEPS * (number + 1))}
        given = {name: lb.asarray(value, device=PLACES.get(place, "cpu")) for name, value in feeds.items()}
        with lb.no_copies():
            found = session(given)
        computed = other(feeds)
        (result,) = (name for name in computed if name not in state.pairs)
        np.testing.assert_allclose(read(found[result]), np.asarray(computed[result]), rtol=1e-4, atol=1e-4)
        assert state.length == expected.length == STEPS * (number + 1)


def test_a_target_without_integers_of_64_bits_appends_on_the_device(recwarn: pytest.WarningsRecorder) -> None:
    """The generic Vulkan target: lengths are words of the launch, and a run may begin with no steps."""
    executable = lb.compile(retained_buffers.attention(), "vulkan", alias=retained_buffers.STATES)
    assert not [each for each in recwarn if issubclass(each.category, lb.FallbackWarning)]
    assert {vdevice.name for vdevice in executable.vdevices} == {"vulkan"}
    history = History(lb.Session(executable, device="vulkan"), 3, GROWN, "vulkan")
    state = history.new(8)
    for steps in (3, 1, 2):
        history.step(state, steps, by_call=True)
        history.check(state)
    history.rewind(state, 2)
    history.step(state, 4, by_call=True)
    history.check(state)
