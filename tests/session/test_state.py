"""States of a Session: what runs continue, with its length and capacity, beside a cache of numpy."""

from __future__ import annotations

import contextlib
import gc
import json
import threading
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper

import landbridge as lb
from tests.frontend.test_retained_buffers import HEADS, SIZE, STATES, attention, feeds_of
from tests.session.state_histories import BATCH, History, walk

Array = np.ndarray[Any, Any]


def model(nodes: list[Any], inputs: dict[str, Any], outputs: dict[str, Any], opset: int = 24) -> ModelProto:
    def info(name: str, fact: Any) -> Any:
        shape, kind = fact if isinstance(fact, tuple) and isinstance(fact[0], list) else (fact, TensorProto.FLOAT)
        return helper.make_tensor_value_info(name, kind, shape)

    sides = [[info(*each) for each in side.items()] for side in (inputs, outputs)]
    graph = helper.make_graph(nodes, "g", *sides)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


@pytest.fixture(scope="module")
def grown() -> lb.Executable:
    """Keys and values that grow, in buffers of any capacity."""
    return lb.compile(attention(), alias=STATES)


def test_a_history_binds_nothing_anew_and_moves_no_byte(grown: lb.Executable) -> None:
    history = History(lb.Session(grown))
    state = history.new(12)
    assert (state.length, state.capacity, state.pairs, state.is_bound) == (0, 12, STATES, True)
    history.step(state, 4)
    where = {name: tensor.data_address for name, tensor in state.tensors.items()}
    with lb.ledger() as moves:
        for steps in (1, 1, 2):
            history.step(state, steps, by_call=steps == 2)
    assert {name: tensor.data_address for name, tensor in state.tensors.items()} == where
    assert not [move for move in moves if move.cause != "set_input" and not move.is_kernel]
    assert "8 of 12 steps, bound" in repr(state)


def test_rewind_reset_and_several_states(grown: lb.Executable) -> None:
    history = History(lb.Session(grown))
    first = history.new(12)
    history.step(first, 5)
    history.rewind(first, 2)
    history.step(first, 3, by_call=True)
    second = history.new(7)
    assert not first.is_bound
    assert (first.length, second.length) == (5, 0)
    history.step(second, 6)
    first.bind()
    with lb.no_copies():
        second.bind()
        first.bind()
    history.step(first, 1)
    history.check(second)
    history.reset(first)
    history.step(first, 2)
    second.bind()
    history.step(second, 1, by_call=True)
    history.check(first)


def test_a_fork_copies_what_is_filled_and_both_go_on(grown: lb.Executable) -> None:
    history = History(lb.Session(grown))
    state = history.new(1000)
    history.step(state, 3)
    with lb.ledger() as moves:
        forked = history.fork(state)
    assert {move.cause for move in moves} == {"fork"}
    assert moves.total_bytes == 2 * BATCH * HEADS * 3 * SIZE * 4
    assert state.is_bound and not forked.is_bound
    history.step(state, 2)
    history.check(forked)
    forked.bind()
    history.step(forked, 4)
    history.check(state)


def test_resize_is_one_copy_of_what_is_filled(grown: lb.Executable) -> None:
    history = History(lb.Session(grown))
    state = history.new(4)
    history.step(state, 4)
    with lb.ledger() as moves:
        state.resize(9)
    assert {move.cause for move in moves} == {"resize"}
    assert moves.total_bytes == 2 * BATCH * HEADS * 4 * SIZE * 4
    history.step(state, 5)
    history.rewind(state, 3)
    state.resize(3)
    history.check(state)
    with pytest.raises(lb.StateCapacityError, match="capacity 2 holds fewer; rewind"):
        state.resize(2)
    parked = state.fork()
    parked.resize(5)
    assert (parked.capacity, state.capacity) == (5, 3)


def test_a_step_beyond_the_capacity_is_refused_before_anything_is_written(grown: lb.Executable) -> None:
    history = History(lb.Session(grown))
    state = history.new(5)
    history.step(state, 4)
    before = {name: np.array(tensor) for name, tensor in state.tensors.items()}
    feeds = feeds_of(history.rng, BATCH, 2, 4)
    for name, value in feeds.items():
        history.session.set_input(name, value)
    for use in (history.session.run, lambda: history.session(feeds), lambda: history.session.run_async().wait()):
        with pytest.raises(lb.StateCapacityError, match=r"needs 6 steps.*capacity is 5.*state.resize\(6\)"):
            use()
        assert state.length == 4
        for name, tensor in state.tensors.items():
            np.testing.assert_array_equal(np.asarray(tensor), before[name])
    state.resize(6)
    history.step(state, 2)


def test_a_step_that_ends_early_leaves_length_and_contents() -> None:
    """A run that is ended between its kernels, at one that only moves: what was written lies behind the length."""
    moving = attention()
    moving.graph.node.append(helper.make_node("Transpose", ["y"], ["moved"], perm=[0, 1, 3, 2]))
    moving.graph.output.append(helper.make_tensor_value_info("moved", TensorProto.FLOAT, ["B", HEADS, SIZE, "S"]))
    history = History(lb.Session(lb.compile(moving, alias=STATES)))
    state = history.new(9)
    history.step(state, 3)
    feeds = feeds_of(history.rng, BATCH, 2, 3)
    for name, value in feeds.items():
        history.session.set_input(name, value)
    with lb.no_copies(kernels=True):
        for use in (history.session.run, lambda: history.session(feeds)):
            with pytest.raises(lb.CopyForbiddenError):
                use()
    assert state.length == 3
    history.check(state)
    history.step(state, 4)


def test_run_async_continues_a_state(grown: lb.Executable) -> None:
    history = History(lb.Session(grown))
    state = history.new(8)
    for steps in (3, 1):
        feeds = feeds_of(history.rng, BATCH, steps, state.length or 0)
        for name, value in feeds.items():
            history.session.set_input(name, value)
        history.session.run_async().wait()
        y = np.asarray(history.session.get_output("y"))
        np.testing.assert_allclose(y, history.expected[state].step(feeds), rtol=1e-5, atol=1e-6)
    assert state.length == 4


def test_a_state_is_in_use_while_a_run_is_in_flight(grown: lb.Executable) -> None:
    history = History(lb.Session(grown))
    state = history.new(8)
    for name, value in feeds_of(history.rng, BATCH, 1, 0).items():
        history.session.set_input(name, value)
    for _ in range(1000):  # any one may be over before the next line
        run = history.session.run_async()
        try:
            state.rewind(0)
        except lb.SessionBusyError as error:
            assert "call wait() of its handle first" in str(error)
            return
        finally:
            run.wait()
            state.rewind(0)
    pytest.fail("none of 1,000 runs was in flight")


@pytest.mark.parametrize(
    ("act", "why"),
    [
        (lambda s: s.rewind(-1), "length -1 is negative"),
        (lambda s: s.rewind(4), "length 4: the state has 3 steps; legal: 0 to 3"),
        (lambda s: s.rewind(True), "length is True; legal: a whole number"),
        (lambda s: s.rewind("1"), "length is '1'"),
        (lambda s: s.resize(0), "capacity=0; legal: from 1"),
        (lambda s: s.assign({"pk": np.zeros(3, np.float32)}, 3), "values are given as .* legal: a dict by the names"),
        (lambda s: s.assign(None, 3), "values are given as NoneType; legal: a dict by the names"),
        (lambda s: s.assign({"pk": 1, 2: 3}, 3), "values are given as .* legal: a dict by the names"),
        (lambda s: s.assign(dict.fromkeys(("pk", "pv"), np.zeros((2, 2, 3, 4)))), "length= says how many"),
        (lambda s: s.assign(dict.fromkeys(("pk", "pv"), np.zeros((2, 2, 3, 4))), 3), "the value is float64"),
        (lambda s: s.assign(dict.fromkeys(("pk", "pv"), np.zeros((2, 2, 2, 4), np.float32)), 3), "with 3 steps"),
        (lambda s: s.assign(dict.fromkeys(("pk", "pv"), np.zeros((2, 2, 9, 4), np.float32)), 9), "the capacity is 8"),
    ],
)
def test_bad_input_changes_nothing(grown: lb.Executable, act: Any, why: str) -> None:
    history = History(lb.Session(grown))
    state = history.new(8)
    history.step(state, 3)
    with pytest.raises(lb.InputError, match=why):
        act(state)
    assert (state.length, state.capacity) == (3, 8)
    history.check(state)
    history.step(state, 1)


def test_what_belongs_to_a_state_is_not_set_beside_it(grown: lb.Executable) -> None:
    session = lb.Session(grown)
    session.bind_state(capacity=4)
    with pytest.raises(lb.InputError, match=r"use state.rewind\(length\)"):
        session.set_input("P", np.array([1]))
    with pytest.raises(lb.InputError, match=r"use state.assign\(values, length\)"):
        session.set_input("pk", np.zeros((BATCH, HEADS, 4, SIZE), np.float32))
    with pytest.raises(lb.InputError, match="is a recurrent state"):
        session.set_input_zero_copy("pk", np.zeros((BATCH, HEADS, 4, SIZE), np.float32))
    with pytest.raises(lb.InputError, match="made of all their pairs together"):
        session.bind_state("nk", "pk")
    with pytest.raises(lb.InputError, match="the States of this Session are"):
        session.bind_state({"nk": "pk"}, capacity=4)
    with pytest.raises(lb.InputError, match="no memory yet"):
        _ = next(iter([session.bind_state(capacity=4)])).tensors
    old = lb.Session(grown)
    old.bind_state("nk", "pk")
    with pytest.raises(lb.InputError, match="has bound pairs of this Session"):
        old.bind_state(capacity=4)
    with pytest.raises(lb.InputError, match="capacity= is needed"):
        lb.Session(grown).bind_state()


def test_values_of_another_program_are_continued(grown: lb.Executable) -> None:
    history = History(lb.Session(grown))
    state = history.new(8)
    history.step(state, 3)
    values = {name: np.array(tensor)[:, :, :3] for name, tensor in state.tensors.items()}
    other = History(lb.Session(grown), 9)
    continued = other.new(6)
    continued.assign(values, 3)
    other.expected[continued].keys, other.expected[continued].values = values["pk"], values["pv"]
    other.check(continued)
    other.step(continued, 3)


def test_a_state_in_a_file(grown: lb.Executable, tmp_path: Path) -> None:
    history = History(lb.Session(grown))
    state = history.new(4000)
    history.step(state, 3)
    path = tmp_path / "prompt.state"
    state.save(path)
    assert path.stat().st_size < 8192  # what is filled, and no more
    other = History(lb.Session(grown), 8)
    loaded = other.new(5)
    loaded.load(path)
    other.expected[loaded] = history.expected[state]
    other.step(loaded, 2)
    small = other.session.bind_state(capacity=2)
    with pytest.raises(lb.StateCapacityError, match="length 3: the capacity is 2"):
        small.load(path)
    with pytest.raises(lb.MissingFileError):
        small.load(tmp_path / "none")


def test_a_file_of_another_model_or_none_is_refused(grown: lb.Executable, tmp_path: Path) -> None:
    history = History(lb.Session(grown))
    state = history.new(6)
    history.step(state, 3)
    path = tmp_path / "of.state"
    state.save(path)
    renamed = attention()
    renamed.graph.name = "another"
    other = lb.Session(lb.compile(renamed, alias=STATES)).bind_state(capacity=6)
    with pytest.raises(lb.InputError, match=r"a state of model .*, this is 'another'"):
        other.load(path)
    content = path.read_bytes()
    for name, broken in damaged(content):
        path.write_bytes(broken)
        with pytest.raises(lb.InputError, match="holds no state"):
            state.load(path)
        assert state.length == 3, name
    history.check(state)
    history.step(state, 2)


def damaged(content: bytes) -> Iterator[tuple[str, bytes]]:
    yield "empty", b""
    yield "cut", content[: len(content) // 2]
    yield "text", b"no zip at all"
    at = content.index(b'"states"')
    yield "facts", content[:at] + b'"stetes"' + content[at + 8 :]
    middle = len(content) // 2
    yield "a byte of the values", content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


def test_a_part_that_is_larger_than_declared_is_not_read(grown: lb.Executable, tmp_path: Path) -> None:
    history = History(lb.Session(grown))
    state = history.new(6)
    history.step(state, 3)
    path, grown_path = tmp_path / "of.state", tmp_path / "large.state"
    state.save(path)
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(grown_path, "w", zipfile.ZIP_DEFLATED) as target:
        for info in source.infolist():
            target.writestr(info.filename, source.read(info) + bytes(1 << 20) * (info.filename == "0.npy"))
    with pytest.raises(lb.InputError, match="holds no state"):
        state.load(grown_path)


# Other forms ----------------------------------------------------------------------------------------------------------


def with_header(path: Path, header: bytes) -> None:
    """Replace the header of the state file ``path``; its parts stay."""
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist() if name != "header.npy"}
    with zipfile.ZipFile(path, "w") as archive:
        with archive.open("header.npy", "w") as member:
            np.lib.format.write_array(member, np.frombuffer(header, np.uint8))
        for name, content in parts.items():
            archive.writestr(name, content)


HOSTILE: dict[str, tuple[Any, str]] = {
    "nested too deep": (lambda facts: b"[" * 100_000, "holds no state"),
    "a state twice": (lambda facts: {**facts, "states": facts["states"] + facts["states"][:1]}, "names a state twice"),
    "a truth for a length": (lambda facts: {**facts, "length": True}, "no number where one belongs"),
    "a truth for the format": (lambda facts: {**facts, "format": True}, "no number where one belongs"),
    "no length": (lambda facts: {**facts, "length": None}, "holds a state with no length; .* has a length"),
    "a negative length": (lambda facts: {**facts, "length": -1}, "length -1 is negative"),
    "fewer steps than the length": (lambda facts: {**facts, "length": 4}, "with 4 steps, the value is"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_header_that_was_made_to_mislead_is_refused(grown: lb.Executable, tmp_path: Path, name: str) -> None:
    session = History(lb.Session(grown))
    state = session.new(8)
    session.step(state, 3)
    path = tmp_path / "a.state"
    state.save(path)
    with zipfile.ZipFile(path) as archive, archive.open("header.npy") as member:
        facts = json.loads(np.lib.format.read_array(member).tobytes())
    with_header(path, json.dumps(facts).encode())
    state.load(path)  # the same facts, written here, are taken
    change, why = HOSTILE[name]
    found = change(facts)
    with_header(path, found if isinstance(found, bytes) else json.dumps(found).encode())
    with pytest.raises(lb.InputError, match=why):
        state.load(path)
    session.check(state)
    session.step(state, 2)


def test_reset_of_states_some_of_which_grow() -> None:
    """What does not grow, two buffers or a window of a stream, begins as zeros again."""
    both = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]>
        mixed (float[1,4,2] x, float[1,4,6] cache_in, float[1,4,P] past_key, float[1,4,2] state)
            => (float[1,4,8] y, float[1,4,6] cache_out, float[1,4,Q] present_key, float[1,4,2] stateN)
        <int64[1] first = {-6}, int64[1] last = {9223372036854775807}, int64[1] axis = {2}>
        {
            all = Concat<axis = 2>(cache_in, x)
            y = Neg(all)
            cache_out = Slice(all, first, last, axis)
            present_key = Concat<axis = 2>(past_key, x)
            stateN = Add(state, x)
        }""")
    session = lb.Session(lb.compile(both, alias="auto"))
    state = session.bind_state(capacity=8)
    for _ in range(3):
        session(np.ones((1, 4, 2), np.float32))
    state.reset()
    assert state.length == 0
    assert not np.any(np.asarray(state.tensors["cache_in"])) and not np.any(np.asarray(state.tensors["state"]))
    (y,) = session(np.ones((1, 4, 2), np.float32))
    np.testing.assert_array_equal(np.asarray(y)[0, 0], [0, 0, 0, 0, 0, 0, -1, -1])


def test_a_state_outlives_the_name_of_its_session(grown: lb.Executable) -> None:
    history = History(lb.Session(grown))
    state = history.new(8)
    history.step(state, 3)
    del history.session
    gc.collect()
    history.check(state)
    forked = state.fork()
    forked.bind()
    state.resize(20)
    forked.reset()
    history.check(state)
    assert (state.length, state.capacity, forked.length, forked.is_bound) == (3, 20, 0, True)


def test_forks_while_another_thread_runs_are_whole_or_refused(grown: lb.Executable) -> None:
    """A fork has the steps of whole runs, whose keys and values belong together, or raises SessionBusyError."""
    session, rng = lb.Session(grown), np.random.default_rng(4)
    state = session.bind_state(capacity=400)
    rows = [feeds_of(rng, BATCH, 1, length) for length in range(400)]
    keys, values = (np.concatenate([row[name] for row in rows], 2) for name in "kv")
    failures: list[BaseException] = []

    def run() -> None:
        try:
            for row in rows:
                session(row)
                time.sleep(0.0005)  # so that forks find the Session free
        except BaseException as error:  # shown by the test
            failures.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    forks = []
    while thread.is_alive():
        with contextlib.suppress(lb.SessionBusyError):
            forks.append(state.fork())
        time.sleep(0.001)
    thread.join()
    refused = [error for error in failures if not isinstance(error, lb.SessionBusyError)]
    assert not refused and forks
    for fork in forks:
        for name, expected in (("pk", keys), ("pv", values)):
            if fork.length:
                found = np.asarray(fork.tensors[name])[:, :, : fork.length]
                np.testing.assert_array_equal(found, expected[:, :, : fork.length])


def recurrent() -> ModelProto:
    """``hn`` is the sum of ``h`` and ``x``, as silero names its state."""
    nodes = [helper.make_node("Add", ["x", "h"], ["hn"]), helper.make_node("Neg", ["hn"], ["y"])]
    return model(nodes, {"x": [2, 3], "h": [2, 3]}, {"y": [2, 3], "hn": [2, 3]}, 17)


def test_a_state_without_steps(tmp_path: Path) -> None:
    session = lb.Session(lb.compile(recurrent()))
    state = session.bind_state()
    assert (state.pairs, state.length, state.capacity) == ({"hn": "h"}, None, None)
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    session.set_input("x", x)
    with lb.no_copies():
        session.run()
        session.run()
    np.testing.assert_array_equal(np.asarray(state.tensors["h"]), 2 * x)
    forked = state.fork()
    session(x)
    np.testing.assert_array_equal(np.asarray(state.tensors["h"]), 3 * x)
    np.testing.assert_array_equal(np.asarray(forked.tensors["h"]), 2 * x)
    forked.bind()
    (y,) = session(x)
    np.testing.assert_array_equal(np.asarray(y), -3 * x)
    state.save(tmp_path / "h.state")
    forked.load(tmp_path / "h.state")
    np.testing.assert_array_equal(np.asarray(forked.tensors["h"]), 3 * x)
    forked.reset()
    session.run()
    np.testing.assert_array_equal(np.asarray(forked.tensors["h"]), x)
    with pytest.raises(lb.InputError, match="does not grow and has no length"):
        state.rewind(0)
    with pytest.raises(lb.InputError, match="does not grow; leave it out"):
        state.resize(4)
    with pytest.raises(lb.InputError, match="does not grow; leave it out"):
        session.bind_state(capacity=4)


def scatter() -> ModelProto:
    """A cache of ONNX 24, whose positions are an input."""
    put = helper.make_node("TensorScatter", ["past", "new", "at"], ["present"], axis=1)
    inputs = {"past": [BATCH, 6, 3], "new": [BATCH, "S", 3], "at": ([BATCH], TensorProto.INT64)}
    return model([put], inputs, {"present": [BATCH, 6, 3]})


def test_a_cache_of_tensor_scatter() -> None:
    """Its positions are values of the run: the longest row has to go on where the state ends."""
    session = lb.Session(lb.compile(scatter()))
    state = session.bind_state()
    assert (state.capacity, state.length) == (6, 0)
    expected = np.zeros((BATCH, 6, 3), np.float32)
    rng = np.random.default_rng(2)
    for steps, at in ((3, [0, 0]), (1, [2, 3]), (2, [3, 4])):
        new = rng.random((BATCH, steps, 3), np.float32)
        for row, start in enumerate(at):
            expected[row, start : start + steps] = new[row]
        with lb.no_copies(kernels=True):
            session(new, np.array(at))
        assert state.length == at[1] + steps
        np.testing.assert_array_equal(np.asarray(state.tensors["past"]), expected)
    new = np.ones((BATCH, 1, 3), np.float32)
    with pytest.raises(lb.StateCapacityError, match=r"needs 7 steps.*compile for a larger cache"):
        session(new, np.array([6, 6]))
    with pytest.raises(lb.InputError, match=r"continues from 5 steps, the state has 6; call state.rewind\(5\)"):
        session(new, np.array([5, 5]))
    state.rewind(2)
    with pytest.raises(lb.InputError, match="continues from 5 steps, the state has 2; give it lengths"):
        session(new, np.array([5, 5]))
    np.testing.assert_array_equal(np.asarray(state.tensors["past"]), expected)
    with pytest.raises(lb.InputError, match="compiled with 6 steps"):
        state.resize(12)
    state.reset()
    with pytest.raises(lb.InputError, match="continues from -2 steps, the state has 0; give it lengths"):
        session(new, np.array([-2, -2]))
    assert state.length == 0 and not np.any(np.asarray(state.tensors["past"]))


def test_nothing_found_lists_what_there_is() -> None:
    session = lb.Session(lb.compile(model([helper.make_node("Neg", ["x"], ["y"])], {"x": [2]}, {"y": [2]}, 17)))
    with pytest.raises(lb.InputError, match=r"inputs 'x'; outputs 'y'; say which are, as bind_state\(\{'present'"):
        session.bind_state()
    assert session.bind_state({"y": "x"}).pairs == {"y": "x"}
    for pairs, why in (({"z": "x"}, "no output 'z'"), ({"y": "z"}, "no input 'z'"), ({}, "takes names of inputs")):
        with pytest.raises(lb.InputError, match=why):
            lb.Session(session.executable).bind_state(pairs)


def test_a_cache_that_grows_says_how_it_is_one_buffer() -> None:
    with pytest.raises(lb.InputError, match=r"compile with alias=\{'present': 'past'\}"):
        concat = helper.make_node("Concat", ["past", "new"], ["present"], axis=0)
        graph = model([concat], {"past": ["P", 4], "new": ["S", 4]}, {"present": ["T", 4]}, 17)
        lb.Session(lb.compile(graph)).bind_state(capacity=8)


def test_a_limited_session_has_states(grown: lb.Executable) -> None:
    history = History(lb.Session(grown, time_limit=60))
    state = history.new(6)
    history.step(state, 2)
    history.step(state, 3, by_call=True)


@pytest.mark.sample(8, rarer=3)
@pytest.mark.parametrize("seed", range(1000))
def test_random_histories(grown: lb.Executable, seed: int) -> None:
    walk(History(lb.Session(grown, num_threads=1 + seed % 2), seed), 14)


def test_a_kernel_that_moves_a_state_is_a_copy() -> None:
    """Plain no_copies() forbids what a kernel moves of a state, and nothing of what it moves of other tensors."""
    nodes = [
        helper.make_node("ScatterND", ["cache", "at", "row"], ["present"]),
        helper.make_node("Add", ["cache", "present"], ["sum"]),  # reads what was there before: no alias
        helper.make_node("Transpose", ["row"], ["moved"]),
    ]
    inputs = {"cache": [64, 8], "at": ([1, 1], TensorProto.INT64), "row": [1, 8]}
    outputs = {"present": [64, 8], "sum": [64, 8], "moved": [8, 1]}
    session = lb.Session(lb.compile(model(nodes, inputs, outputs)))
    session.set_input("row", np.ones((1, 8), np.float32))
    session.set_input("at", np.array([[3]]))
    session.set_input("cache", np.zeros((64, 8), np.float32))
    with lb.no_copies():
        session.run()  # an input like others
    session.bind_state("present", "cache")
    given = {"row": lb.asarray(np.ones((1, 8), np.float32)), "at": np.array([[3]])}
    session(given)  # a call releases what it was given, and no state
    for run in (session.run, lambda: session(given)):
        with lb.no_copies(), pytest.raises(lb.CopyForbiddenError, match=r"2048 bytes of present.*alias='auto'"):
            run()
    in_place = lb.Session(
        lb.compile(model([nodes[0], nodes[2]], inputs, {n: outputs[n] for n in ("present", "moved")}))
    )
    in_place.bind_state("present", "cache")
    with lb.no_copies():
        in_place({"row": np.ones((1, 8), np.float32), "at": np.array([[3]])})
