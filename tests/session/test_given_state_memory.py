"""States in memory of the application, which runs use in place."""

from __future__ import annotations

import ctypes
import gc
import mmap
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import landbridge as lb
from landbridge.device.api import Device
from landbridge.testing.sim_lazy import SimLazyDeviceAPI
from tests.frontend.test_retained_buffers import HEADS, SIZE, STATES, attention, feeds_of
from tests.session.state_histories import BATCH, History, walk
from tests.session.test_state import recurrent, scatter
from tests.witnesses.guard_pages import SIDES, guarded, in_child

Array = np.ndarray[Any, Any]
CAPACITY = 9
SHAPE = (BATCH, HEADS, CAPACITY, SIZE)
NBYTES = 4 * BATCH * HEADS * CAPACITY * SIZE


@pytest.fixture(scope="module", params=["open", "fixed"])
def grown(request: pytest.FixtureRequest) -> lb.Executable:
    """Keys and values that grow, with a capacity that the State decides, or the program."""
    shapes = dict.fromkeys(STATES.values(), SHAPE) if request.param == "fixed" else None
    return lb.compile(attention(), alias=STATES, shapes=shapes)


def new_memory(fill: float = np.nan) -> dict[str, Array]:
    return {name: np.full(SHAPE, fill, np.float32) for name in STATES.values()}


def begin(executable: lb.Executable, memory: dict[str, Any]) -> tuple[History, lb.State]:
    """A Session whose State has ``memory``, with three steps."""
    history = History(lb.Session(executable))
    state = history.given(memory)
    history.step(state, 3)
    return history, state


def between_guard_pages(executable: lb.Executable, first: int, count: int) -> None:
    """Histories in buffers that end, or begin, at an inaccessible page."""
    for seed in range(first, first + count):
        history, side = History(lb.Session(executable), seed), SIDES[seed % 2]

        def new() -> lb.State:
            return history.given({name: guarded(array, side) for name, array in new_memory().items()})  # noqa: B023

        walk(history, 12, new=new, actions=["append", "append", "rewind", "reset", "new"], most=3)


@pytest.mark.sample(1, rarer=3)
@pytest.mark.parametrize("first", range(0, 1000, 50))
def test_random_histories_between_guard_pages(grown: lb.Executable, first: int) -> None:
    in_child(between_guard_pages, grown, first, 50)


def test_runs_write_only_what_is_new_into_the_buffer(grown: lb.Executable) -> None:
    """What lies behind the steps is never written, nor read: it is not a number."""
    memory = new_memory()
    history, state = begin(grown, memory)
    assert (state.length, state.capacity, state.is_bound) == (3, CAPACITY, True)
    with lb.no_copies():
        history.step(state, 2, by_call=True)
    for name, array in memory.items():
        assert state.tensors[name].data_address == array.ctypes.data
        assert not np.isnan(array[:, :, :5]).any() and np.isnan(array[:, :, 5:]).all()
    array = memory["pk"]
    array[:, :, 4] = 7  # what the application writes is what the next run reads
    history.expected[state].keys[:, :, 4] = 7
    history.step(state, 1)


def test_steps_that_are_there_are_continued(grown: lb.Executable) -> None:
    """The buffer of a Session that is gone, with its steps: nothing is computed anew."""
    memory = new_memory()
    history, state = begin(grown, memory)
    expected = history.expected[state]
    del history, state
    other = History(lb.Session(grown), 8)
    with lb.no_copies():
        continued = other.session.bind_state(memory=memory, length=3)
    other.expected[continued] = expected
    other.check(continued)
    other.step(continued, 4)
    other.rewind(continued, 1)
    other.step(continued, 2)


def from_bytes(owner: Any) -> Any:
    return np.frombuffer(owner, np.float32, NBYTES // 4).reshape(SHAPE)


@pytest.mark.parametrize(
    "make",
    [
        lambda: np.zeros(SHAPE, np.float32),
        lambda: lb.empty(SHAPE, dtype="float32"),
        lambda: memoryview(np.zeros(SHAPE, np.float32)),
        lambda: from_bytes(bytearray(NBYTES)),
        lambda: from_bytes(mmap.mmap(-1, mmap.PAGESIZE)),
        lambda: ((((ctypes.c_float * SIZE) * CAPACITY) * HEADS) * BATCH)(),
        lambda: np.zeros((2, *SHAPE), np.float32)[1],
    ],
    ids=["array", "Tensor", "memoryview", "bytearray", "mmap", "ctypes", "part of an array"],
)
def test_whatever_has_memory_is_used_in_place(grown: lb.Executable, make: Callable[[], Any]) -> None:
    memory = {name: make() for name in STATES.values()}
    history, state = begin(grown, memory)
    for name, given in memory.items():
        found = np.asarray(given)
        assert state.tensors[name].data_address == found.ctypes.data
        np.testing.assert_array_equal(found[:, :, :3], np.asarray(state.tensors[name])[:, :, :3])
    history.step(state, 1)


def test_plain_bytes_are_elements_where_one_extent_is_open() -> None:
    session = lb.Session(lb.compile(recurrent_rows(), alias="auto"))
    memory = bytearray(4 * 8 * 3)
    state = session.bind_state(memory={"past": memory})
    session(np.arange(6, dtype=np.float32).reshape(2, 3))
    assert (state.length, state.capacity) == (2, 8)
    assert np.frombuffer(memory, np.float32)[:6].tolist() == [0, 1, 2, 3, 4, 5]


def recurrent_rows() -> Any:
    import onnx

    return onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]>
        rows (float[S, 3] x, float[P, 3] past) => (float[T, 3] present) { present = Concat <axis = 0> (past, x) }""")


def test_the_memory_lives_as_long_as_the_state_does() -> None:
    memory = new_memory()
    alive = weakref.ref(memory["pk"])
    history, state = begin(lb.compile(attention(), alias=STATES), memory)
    memory.clear()
    gc.collect()
    history.step(state, 2)  # of the array's memory, although nobody has its name
    state.resize(12)
    assert state.capacity == 12
    history.step(state, 4)
    gc.collect()
    assert alive() is None  # it moved to memory of the Session


def test_what_is_done_with_a_state_is_done_with_its_memory(grown: lb.Executable) -> None:
    memory = new_memory()
    history, state = begin(grown, memory)
    forked = history.fork(state)
    history.step(state, 1)
    forked.bind()
    history.step(forked, 2)
    for name, array in memory.items():
        assert np.isnan(array[:, :, 4:]).all()
        assert forked.tensors[name].data_address != array.ctypes.data
    state.bind()
    history.rewind(state, 2)
    history.step(state, 2)
    values = {name: np.array(tensor)[:, :, :2] for name, tensor in forked.tensors.items()}
    state.assign(values, 2)
    np.testing.assert_array_equal(memory["pk"][:, :, :2], values["pk"])


def test_a_tensor_that_a_state_has_is_not_freed(grown: lb.Executable) -> None:
    memory = {name: lb.empty(SHAPE, dtype="float32") for name in STATES.values()}
    history, state = begin(grown, memory)
    with pytest.raises(lb.StorageInUseError):
        memory["pk"].storage.free()
    history.step(state, 1)


def test_a_state_that_swaps_has_two() -> None:
    """What is there first is what the first run reads."""
    session = lb.Session(lb.compile(recurrent()))
    first, second = np.full((2, 3), 5, np.float32), np.zeros((2, 3), np.float32)
    with pytest.raises(lb.InputError, match=r"'h' has two memories, which swap .* give a tuple of two"):
        session.bind_state(memory={"h": first})
    with pytest.raises(lb.InputError, match="'h' and 'h' shares bytes"):
        session.bind_state(memory={"h": (first, first[:])})
    with pytest.raises(lb.InputError, match="this state does not grow and has no length"):
        session.bind_state(memory={"h": (first, second)}, length=1)
    state = session.bind_state(memory={"h": (first, second)})
    x = np.ones((2, 3), np.float32)
    with lb.no_copies():
        session(x)
    assert second.tolist() == np.full((2, 3), 6).tolist()
    session(x)
    assert first.tolist() == np.full((2, 3), 7).tolist()
    assert np.asarray(state.tensors["h"]).tolist() == first.tolist()
    state.reset()
    session(x)
    assert np.asarray(state.tensors["h"]).tolist() == x.tolist()


def test_positions_of_the_run_are_in_the_memory_too() -> None:
    session = lb.Session(lb.compile(scatter()))
    past = np.full((BATCH, 6, 3), -1, np.float32)
    state = session.bind_state(memory={"past": past}, length=2)
    with lb.no_copies(kernels=True):
        session(np.ones((BATCH, 1, 3), np.float32), np.array([2, 2]))
    assert past[:, :, 0].tolist() == [[-1, -1, 1, -1, -1, -1]] * BATCH
    assert state.length == 3


def gapped() -> Array:
    return np.zeros((*SHAPE[:3], 2 * SIZE), np.float32)[..., ::2]


def unaligned() -> Array:
    return np.frombuffer(bytearray(NBYTES + 4), np.uint8)[1 : NBYTES + 1].view(np.float32).reshape(SHAPE)


def read_only() -> Array:
    found = np.zeros(SHAPE, np.float32)
    found.flags.writeable = False
    return found


def of(one: Any, other: Any = None) -> dict[str, Any]:
    return {"pk": one, "pv": np.zeros(SHAPE, np.float32) if other is None else other}


@pytest.mark.parametrize(
    ("memory", "options", "error", "why"),
    [
        (lambda: np.zeros(SHAPE, np.float32), {}, lb.InputError, "memory= is given as ndarray; legal: a dict"),
        (lambda: 3, {}, lb.InputError, "memory= is given as int; legal: a dict"),
        (lambda: {"pk": np.zeros(SHAPE, np.float32)}, {}, lb.InputError, r"given as \['pk'\]; legal: .*\['pk', 'pv'\]"),
        (lambda: of(np.zeros(SHAPE, np.float64)), {}, lb.InputError, "dtype float64, it takes float32"),
        (lambda: of(np.zeros(SHAPE, ">f4")), {}, lb.ZeroCopyError, "byte order"),
        (lambda: of(np.zeros(SHAPE[1:], np.float32)), {}, lb.InputError, "memory= for state 'pk'"),
        (lambda: of(np.zeros((2, 2, 9, 5), np.float32)), {}, lb.InputError, "memory= for state 'pk'"),
        (lambda: of(np.zeros((3, 2, 9, 4), np.float32)), {}, lb.InputError, "dimension 'B' is 3 by axis 0 of input"),
        (lambda: of(np.zeros((2, 2, 8, 4), np.float32)), {}, lb.InputError, "dimension 'P_capacity' is 8 by axis 2"),
        (lambda: of(gapped()), {}, lb.ZeroCopyError, "not C-contiguous"),
        (lambda: of(unaligned()), {}, lb.ZeroCopyError, "at multiples of their 4 bytes"),
        (lambda: of(read_only()), {}, lb.ZeroCopyError, "is read-only, and runs write it"),
        (lambda: of(b"".ljust(NBYTES)), {}, lb.InputError, "several extents of shape"),
        (lambda: of([[1.0]]), {}, lb.InputError, "a list cannot be bound by reference"),
        (lambda: of(None), {}, lb.InputError, "a NoneType cannot be bound by reference"),
        (lambda: dict.fromkeys(STATES.values(), np.zeros(SHAPE, np.float32)), {}, lb.InputError, "shares bytes"),
        (new_memory, {"capacity": 8}, lb.InputError, "capacity=8: memory= has 9 steps; leave capacity out"),
        (new_memory, {"capacity": "x"}, lb.InputError, "capacity is 'x'; legal: a whole number"),
        (new_memory, {"length": 10}, lb.StateCapacityError, "length 10: the capacity is 9; legal: 0 to 9"),
        (new_memory, {"length": -1}, lb.InputError, "length -1 is negative"),
        (new_memory, {"length": True}, lb.InputError, "length is True; legal: a whole number"),
        (lambda: None, {"length": 3, "capacity": 9}, lb.InputError, "length=3 says how many steps memory= holds"),
    ],
)  # fmt: skip
def test_memory_that_does_not_fit_is_refused_and_changes_nothing(
    memory: Callable[[], Any], options: dict[str, Any], error: type[Exception], why: str
) -> None:
    session = lb.Session(lb.compile(attention(), alias=STATES))
    with pytest.raises(error, match=why):
        session.bind_state(memory=memory(), **options)
    history = History(session)
    state = history.new(CAPACITY)
    history.step(state, 3)
    with pytest.raises(error, match=why):
        session.bind_state(memory=memory(), **options)
    assert state.is_bound
    history.step(state, 1)


def test_two_states_never_share_memory(grown: lb.Executable) -> None:
    memory = new_memory()
    history, state = begin(grown, memory)
    other = history.session.bind_state(memory=new_memory())
    for overlapping in (memory, {**new_memory(), "pv": memory["pk"]}):
        with pytest.raises(lb.InputError, match="is memory of another State of this Session; continue that one"):
            history.session.bind_state(memory=overlapping)
    assert other.is_bound
    state.bind()
    history.step(state, 1)
    del other, state
    history.expected.clear()
    gc.collect()
    again = history.given(memory)  # nobody has the state that it was of
    history.step(again, 2)


def test_memory_of_an_input_is_refused(grown: lb.Executable) -> None:
    """Also when it is bound after the state was."""
    session, shared = lb.Session(grown), np.zeros(SHAPE, np.float32)
    feeds = feeds_of(np.random.default_rng(1), BATCH, CAPACITY, 0)
    for name, value in feeds.items():
        session.set_input(name, value)
    session.set_input_zero_copy("k", shared)
    with pytest.raises(lb.InputError, match="'pk' shares bytes with what is bound to 'k'; give memory of its own"):
        session.bind_state(memory=of(shared))
    session.set_input("k", feeds["k"])
    state = session.bind_state(memory=of(shared))
    session.run()
    assert state.length == CAPACITY
    state.reset()
    with pytest.raises(lb.InputError, match="would share"):
        session.set_input_zero_copy("k", shared)
        session.run()


def test_a_limited_session_takes_memory(grown: lb.Executable) -> None:
    history, memory = History(lb.Session(grown, time_limit=60)), new_memory()
    state = history.given(memory)
    history.step(state, 3, by_call=True)
    assert not np.isnan(memory["pk"][:, :, :3]).any()


def test_one_pair_takes_no_memory(grown: lb.Executable) -> None:
    with pytest.raises(lb.InputError, match="takes an output and an input, and no capacity"):
        lb.Session(grown).bind_state("nk", "pk", memory=new_memory())  # type: ignore[call-overload]


def test_memory_of_a_device_that_is_lost_is_used_no_more() -> None:
    """An array over memory that a device shares with the host: the program runs on the CPU, and finds whose it is."""
    api = SimLazyDeviceAPI(seed=11)
    device = Device(api, 0)
    array = np.asarray(lb.empty((BATCH, 6, 3), dtype="float32", device=device, scope="shared"))
    array[...] = 0
    session = lb.Session(lb.compile(scatter()))
    state = session.bind_state(memory={"past": array}, length=0)
    new = np.ones((BATCH, 1, 3), np.float32)
    session(new, np.zeros(BATCH, np.int64))
    session.set_input("new", new)
    session.set_input("at", np.ones(BATCH, np.int64))
    session.run()
    assert state.length == 2 and array[:, :2].all()
    api.lose(0)
    with pytest.raises(lb.DeviceLostError):  # which records it
        lb.empty((4,), dtype="float32", device=device)
    session.set_input("at", np.full(BATCH, 2))
    for use in (
        lambda: session(new, np.full(BATCH, 2)),
        session.run,
        lambda: np.asarray(state.tensors["past"]),
        state.reset,
    ):
        with pytest.raises(lb.DeviceLostError, match="sim:lazy:0 is lost"):
            use()
    assert not array[:, 2:].any()
    session.bind_state(memory={"past": np.zeros((BATCH, 6, 3), np.float32)}, length=0)
    session(new, np.zeros(BATCH, np.int64))
