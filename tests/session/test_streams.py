"""The last samples of a stream as a state: a window that slides, of which runs write the new samples alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import landbridge as lb
from landbridge.executable.state_growth import growths_of, program_of
from landbridge.sizes.size import Size, dimensions_of
from tests.cli.command_line import invoke
from tests.session.stream_histories import LAYERS, History, convolved, of_any_number, stream
from tests.witnesses.guard_pages import GuardedRun, in_child

Array = np.ndarray[Any, Any]


@pytest.mark.sample(4)
@pytest.mark.parametrize("is_open", [False, True], ids=["known", "open"])
@pytest.mark.parametrize("layer", LAYERS)
def test_random_histories(layer: str, is_open: bool, tmp_path: Path) -> None:
    """Runs, forks, resets, values that are given, files; memory is used from its end to its begin many times."""
    compiled = lb.compile(alias="auto", **(of_any_number(layer) if is_open else {"model": stream(*LAYERS[layer])}))
    History(lb.Session(compiled), layer, 5, is_open=is_open).walk(300, tmp_path)


def test_only_new_samples_are_written_for_as_long_as_a_stream_lasts() -> None:
    """The window slides round its memory, and every run leaves what it does not write as it was."""
    history = History(lb.Session(lb.compile(stream(*LAYERS["dense"]), alias="auto")), "dense", 1)
    state = history.begin(history.session.bind_state())
    channels, before, new = history.channels, history.before, history.new
    offsets = []
    for _ in range(400):
        window = state.tensors["cache_in"]
        offsets.append(window.byte_offset)
        memory = lb.Tensor(window.storage, "float32", (window.storage.nbytes // 8,))
        earlier = np.array(memory)
        history.step(state)
        changed = np.flatnonzero(np.asarray(memory) != earlier)
        written = window.byte_offset // 4 + before + np.arange(channels)[:, None] * (before + new) + np.arange(new)
        assert set(changed) <= set((written % len(earlier)).reshape(-1))
    assert offsets == [number * 4 * new % window.storage.repeats for number in range(400)]
    assert max(offsets) < window.storage.repeats < 400 * 4 * new


def test_a_pair_and_an_open_batch() -> None:
    session = lb.Session(lb.compile(stream(4, 6, 2, 3, 1, "B"), alias="auto"))
    state, rng = session.bind_state(), np.random.default_rng(2)
    weights = rng.standard_normal((4, 4, 3)).astype(np.float32)
    pair = lb.Session(lb.compile(stream(4, 6, 2, 3, 1), alias="auto"))
    pair.bind_state("cache_out", "cache_in")
    past = np.zeros((3, 4, 6), np.float32)
    for _ in range(20):
        x = rng.standard_normal((3, 4, 2)).astype(np.float32)
        with lb.no_copies():
            y = np.asarray(session(x, weights)[0])
            one = np.asarray(pair(x[:1], weights)[0])
        past = np.concatenate([past, x], axis=2)
        np.testing.assert_allclose(y, convolved(past, weights, 3, 1), rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(one, y[:1], rtol=1e-4, atol=1e-5)
        past = past[:, :, -6:]
        np.testing.assert_array_equal(np.asarray(state.tensors["cache_in"]), past)
    with pytest.raises(lb.InputError, match="shape"):
        session(np.ones((2, 4, 2), np.float32), weights)  # the state has a batch of 3
    state.reset()
    np.testing.assert_array_equal(np.asarray(state.tensors["cache_in"]), 0)


def test_values_that_are_set_before_the_first_run_are_its_samples() -> None:
    session = lb.Session(lb.compile(stream(4, 6, 2, 3, 1), alias="auto"))
    samples, weights = np.arange(24, dtype=np.float32).reshape(1, 4, 6), np.ones((4, 4, 3), np.float32)
    window = np.concatenate([samples, np.full((1, 4, 2), 99, np.float32)], axis=2)
    session.set_input("cache_in", window)
    session.bind_state("cache_out", "cache_in")
    (y,) = session(np.ones((1, 4, 2), np.float32), weights)
    joined = np.concatenate([samples, np.ones((1, 4, 2), np.float32)], axis=2)
    np.testing.assert_allclose(np.asarray(y), convolved(joined, weights, 3, 1), rtol=1e-5)


def test_two_memories_and_one_give_the_same() -> None:
    """Without a State: one memory is updated in place, of two the one is copied to the other first."""
    session, rng = lb.Session(lb.compile(stream(4, 6, 2, 3, 1), alias="auto")), np.random.default_rng(3)
    window, x = rng.standard_normal((1, 4, 8)).astype(np.float32), rng.standard_normal((1, 4, 2)).astype(np.float32)
    feeds = {"x": x, "cache_in": window, "w": rng.standard_normal((4, 4, 3)).astype(np.float32)}
    given = window.copy()
    apart = session(feeds)
    np.testing.assert_array_equal(window, given)
    session.set_input_zero_copy("cache_in", window)
    session.set_output_zero_copy("cache_out", window)
    session.set_input("x", x)
    session.set_input("w", feeds["w"])
    with lb.no_copies():
        session.run()
    np.testing.assert_array_equal(np.asarray(session.get_output("y")), np.asarray(apart["y"]))
    np.testing.assert_array_equal(window, np.asarray(apart["cache_out"]))
    np.testing.assert_array_equal(window, np.concatenate([given[:, :, :6], x], axis=2))


def test_memory_of_the_application_is_refused() -> None:
    session = lb.Session(lb.compile(stream(4, 6, 2, 3, 1), alias="auto"))
    with pytest.raises(lb.InputError, match=r"slides through memory.*leave memory= out"):
        session.bind_state(memory={"cache_in": np.zeros((1, 4, 8), np.float32)})
    with pytest.raises(lb.InputError, match="does not grow"):
        session.bind_state().rewind(0)


def test_memory_that_nothing_slides_through_is_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as memory that several devices use: each run gets new memory, and the ledger has what is copied there."""
    session = lb.Session(lb.compile(stream(*LAYERS["dense"]), alias="auto"))
    runs = session._executor.program.runs
    monkeypatch.setattr(runs, "allocate_window", lambda slot, spec, step: runs.allocate(slot, spec))
    history = History(session, "dense", 4)
    state = history.begin(session.bind_state())
    for _ in range(5):
        x = history.rng.standard_normal((1, 16, 3)).astype(np.float32)
        with lb.ledger() as moves:
            session(x, history.weights)
        assert [(move.cause, move.nbytes) for move in moves if move.cause == "slide"] == [("slide", 16 * 4 * 4)]
        history.samples[state] = np.concatenate([history.samples[state], x], axis=2)[:, :, -4:]
        history.check(state)


def test_a_file_has_how_a_window_slides(tmp_path: Path) -> None:
    lb.compile(alias="auto", **of_any_number("dense")).save(tmp_path / "stream.lbx")
    loaded = lb.load(tmp_path / "stream.lbx")
    History(lb.Session(loaded), "dense", 3, is_open=True).walk(30, tmp_path)
    shown = json.loads(invoke(["inspect", str(tmp_path / "stream.lbx"), "--json"]).stdout)
    assert shown["windows"] == [{"input": "cache_in", "axis": 2, "state": 4, "new": "S"}]


def test_programs_of_one_file_slide_by_what_each_writes() -> None:
    """A batch of any number, and the program for a batch of 1 that the Squeeze needs, have dimensions of their own."""
    model = stream(4, 6, "S", 3, 1, "B")
    model.graph.node.append(onnx.helper.make_node("Squeeze", ["y"], ["z"]))
    model.graph.output.append(onnx.helper.make_tensor_value_info("z", onnx.TensorProto.FLOAT, None))
    executable = lb.compile(model, alias="auto", dims={"S": lb.Dim(2, 5)})
    assert len(executable.programs) > 1
    for name in executable.programs:
        alone = program_of(executable, name)
        growths = growths_of(alone)
        assert list(growths) == ["main"]
        (slide,) = growths["main"]
        written = slide.after - slide.before
        assert isinstance(written, Size)
        x = next(spec for spec in alone.main.inputs if spec.name == "x")
        assert written.at({"S": 4}) == 4 and set(written.symbols) <= set(dimensions_of(x.shape))


def test_values_that_are_assigned_before_the_first_run() -> None:
    """They are in memory that no window slides through, until a run has decided sizes; the first run moves them."""
    history = History(
        lb.Session(lb.compile(alias="auto", **of_any_number("dense"))), "dense", 7, is_open=True, moves=True
    )
    samples = np.random.default_rng(0).standard_normal((1, 16, 4)).astype(np.float32)
    state = history.begin(history.session.bind_state(), samples)
    state.assign({"cache_in": samples})
    forked = history.begin(state.fork(), samples)
    for each in (state, forked, state, forked):
        each.bind()
        for _ in range(3):
            history.step(each)
    assert sum(moved > 0 for moved in history.moved) <= 2


def test_no_argument_lies_in_memory_that_a_window_slides_through() -> None:
    """Wherever the window is now, and at either of its addresses."""
    history = History(lb.Session(lb.compile(stream(*LAYERS["dense"]), alias="auto")), "dense", 7)
    state, session = history.begin(history.session.bind_state()), history.session
    for _ in range(3):
        history.step(state)
    storage = state.tensors["cache_in"].storage
    memory = np.asarray(lb.Tensor(storage, "float32", (storage.nbytes // 4,)))
    for first in (0, 300, storage.repeats // 4, storage.repeats // 4 + 20, storage.nbytes // 4 - 48):
        x = memory[first : first + 48].reshape(1, 16, 3)
        with pytest.raises(lb.InputError, match=r"would share .* bytes"):
            session.set_input_zero_copy("x", x)
        with pytest.raises(lb.InputError, match=r"would share .* bytes"):
            session.set_output_zero_copy("y", x)
        with pytest.raises(lb.InputError, match=r"would share .* bytes"):
            session(x, history.weights)
        with pytest.raises(lb.InputError, match=r"would share .* bytes"):
            session(x.copy(), history.weights, out=[x])
        samples = memory[: 64 * 4].reshape(-1)[first % 64 : first % 64 + 64].reshape(1, 16, 4)
        with pytest.raises(lb.InputError, match="lies in memory of the state itself"):
            state.assign({"cache_in": samples})
    history.step(state)


def test_a_view_of_any_address_of_a_window_is_in_the_way_of_runs() -> None:
    history = History(lb.Session(lb.compile(stream(*LAYERS["dense"]), alias="auto")), "dense", 7)
    state = history.begin(history.session.bind_state())
    history.step(state)
    storage = state.tensors["cache_in"].storage
    other = lb.Tensor(storage, "float32", (100,), None, storage.repeats + 40)
    x = np.zeros((1, 16, 3), np.float32)
    history.session.set_input("x", x)
    with other.host_view("r"):
        with pytest.raises(lb.HostAccessError):
            history.session.run()
        with pytest.raises(lb.HostAccessError):
            history.session(x, history.weights)
    history.step(state)


@pytest.mark.parametrize("layer", ["each channel", "far apart"])
def test_no_kernel_leaves_its_operands(layer: str) -> None:
    in_child(guarded, layer)


def guarded(layer: str) -> None:
    channels, before, new, dilation, groups = LAYERS[layer]
    rng = np.random.default_rng(0)
    weights = rng.standard_normal((channels, channels // groups, before // dilation + 1)).astype(np.float32)
    x = rng.standard_normal((1, channels, new)).astype(np.float32)
    window = rng.standard_normal((1, channels, before + new)).astype(np.float32)
    executable = lb.compile(stream(*LAYERS[layer]), alias="auto")
    for side in ("after", "before"):
        y, written = GuardedRun(executable, side)(
            *({"x": x, "cache_in": window, "w": weights}[spec.name] for spec in executable.main.inputs)
        )
        joined = np.concatenate([window[:, :, :before], x], axis=2)
        np.testing.assert_array_equal(written, joined)
        np.testing.assert_allclose(y, convolved(joined, weights, dilation, groups), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("counts", [(1, 1, 2, 1), (1, 2, 1, 2), (3, 3, 1, 3), (1, 2, 3, 1, 2, 3, 3, 2, 1)])
@pytest.mark.parametrize("calls", [True, False])
def test_a_window_slides_by_what_each_run_writes(counts: tuple[int, ...], calls: bool) -> None:
    """Numbers of new samples that were there before, and others that runs before let expect."""
    text = """<ir_version: 8, opset_import: ["" : 17]>
        g (float[1, S] x, float[1, 4] c) => (float[1, T] y, float[1, 4] last)
        <int64[1] a = {-4}, int64[1] b = {9223372036854775807}, int64[1] axis = {1}>
        { joined = Concat<axis = 1>(c, x)  y = Relu(joined)  last = Slice(joined, a, b, axis) }"""
    session = lb.Session(lb.compile(onnx.parser.parse_model(text), alias="auto", dims={"S": lb.Dim(1, 3)}))
    state = session.bind_state({"last": "c"})
    samples = np.zeros(4, np.float32)
    for count in counts:
        new = np.arange(len(samples), len(samples) + count, dtype=np.float32)
        if calls:
            y = np.asarray(session(new[None])[0])
        else:
            session.set_input("x", new[None])
            session.run()
            y = np.asarray(session.get_output("y"))
        np.testing.assert_array_equal(y[0], np.concatenate([samples[-4:], new]))
        samples = np.concatenate([samples, new])
        np.testing.assert_array_equal(np.asarray(state.tensors["c"])[0], samples[-4:])
