"""Recurrent states of open programs: carried from size to size, and refused where their shapes change."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import parser

import landbridge as lb
from landbridge.errors import InputError
from landbridge.executable.instance import instance
from landbridge.vm import arena as arenas
from tests.ops.recurrent_models import feeds_of, network

# A running sum over all that came, of any length; and sums of each of a batch.
_MODEL = """<ir_version: 8, opset_import: ["": 17]>
sums (float[n, t] x, float[{h}] h) => (float[n, t] y, float[{h}] s)
    <int64[1] axis = {{{axis}}}> {{ a = ReduceSum<keepdims = 0>(x, axis)  s = Add(a, h)  y = Mul(x, x) }}"""


@pytest.fixture(scope="module")
def rows() -> lb.Executable:
    """s is h plus the sum of each of 3 rows of any length t."""
    model = parser.parse_model(_MODEL.format(h="3", axis=1))
    return lb.compile(model, shapes={"x": (3, "T"), "h": (3,)}, dims={"T": "1..50"})


@pytest.fixture(scope="module")
def batches() -> lb.Executable:
    """s is h plus the sum of each of n rows."""
    return lb.compile(parser.parse_model(_MODEL.format(h="n", axis=1)), dims={"n": "1..5", "t": "1..50"})


def picture(*shape: int) -> np.ndarray:
    return np.random.default_rng(shape).integers(-9, 9, shape).astype(np.float32)


def state(session: lb.Session) -> np.ndarray:
    return np.array(session.get_output("s"))


def test_a_state_goes_from_size_to_size(rows: lb.Executable) -> None:
    session, expected = lb.Session(rows), np.array([5, 6, 7], np.float32)
    session.set_input("h", expected)
    session.bind_state("s", "h")
    for step, t in enumerate((4, 4, 9, 1, 4, 9, 9)):
        x = picture(3, t)
        expected = expected + x.sum(1)
        if step % 2:
            (y,) = session(x)
        else:
            session.set_input_zero_copy("x", x)
            session.run()
            y = session.get_output("y")
        assert np.array_equal(np.asarray(y), x * x)
        assert np.array_equal(state(session), expected)


def test_it_starts_with_zeros_and_is_set(rows: lb.Executable) -> None:
    session = lb.Session(rows)
    session.bind_state(1, 1)
    session(picture(3, 4))
    assert np.array_equal(state(session), picture(3, 4).sum(1))
    session.set_input("h", np.ones(3, np.float32))
    session(picture(3, 9))
    assert np.array_equal(state(session), 1 + picture(3, 9).sum(1))


def test_nothing_is_copied_when_sizes_change(rows: lb.Executable) -> None:
    session, expected = lb.Session(rows), np.zeros(3, np.float32)
    session.bind_state("s", "h")
    session.prepare(T=[4, 9])
    with lb.no_copies():
        for t in (4, 9, 4, 50, 9):
            session(picture(3, t))
            session.set_input_zero_copy("x", picture(3, t))
            session.run()
            session.run()
            expected += 3 * picture(3, t).sum(1)
    assert np.array_equal(state(session), expected)


def test_no_copy_where_memory_is_outgrown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arenas, "_RESERVED", 0)
    model = parser.parse_model(
        """<ir_version: 8, opset_import: ["": 17]> sums (float[3, t] x, float[3] h) => (float[3] s)
            <int64[1] axis = {1}> { b = Sin(x)  c = Softmax(b)  a = ReduceSum<keepdims = 0>(c, axis)  s = Add(a, h) }"""
    )
    session = lb.Session(lb.compile(model))  # nothing says how large t may be
    session.bind_state("s", "h")
    arena = session._executor.instances.program_of("main").arena  # type: ignore[attr-defined]
    session(picture(3, 4))
    with lb.no_copies():
        for t in (4, 1 << 12, 4, 1 << 12):
            session(picture(3, t))
    assert arena.generation == 1
    np.testing.assert_allclose(state(session), np.full(3, 5), atol=1e-5)  # rows of a softmax, sums of 4096 terms


@given(st.data())
@settings(max_examples=25, deadline=None)
def test_runs_and_calls_of_any_sizes_in_any_order(batches: lb.Executable, data: st.DataObject) -> None:
    """As a program of each size that is given the state, and what ``run`` has bound stays."""
    session, fresh = lb.Session(batches, num_threads=1), {}
    session.bind_state("s", "h")
    held, bound = np.zeros(2, np.float32), None
    session.set_input("h", held)
    for _ in range(data.draw(st.integers(2, 8))):
        n = data.draw(st.integers(1, 5)) if data.draw(st.integers(0, 3)) == 0 else len(held)
        if n != len(held):
            held = np.arange(n, dtype=np.float32)
            session.set_input("h", held)
        x = picture(n, data.draw(st.integers(1, 50)))
        owned = fresh.setdefault(x.shape, lb.Session(instance(batches, dict(zip("nt", x.shape, strict=True)))))
        y, held = (np.array(np.from_dlpack(each)) for each in owned(x, held))
        if data.draw(st.booleans()):
            (found,) = session(x)
        else:
            bound = x
            session.set_input_zero_copy("x", x)
            session.run()
            found = session.get_output("y")
        assert np.array_equal(np.from_dlpack(found), y)
        assert np.array_equal(state(session), held)
        if bound is not None:
            assert np.array_equal(np.from_dlpack(session.get_output("y")), bound * bound)
    assert session._executor.instances.executors() == {session._executor.instances.program_of("main").executor}  # type: ignore[attr-defined]


def test_an_lstm_of_steps_of_any_number() -> None:
    """Two states of an open batch; each call goes on where the last one ended, as one call of all steps does."""
    model = network("LSTM", "T", "N", 5, 8, "forward", states=True)
    names = [each.name for each in model.graph.output], [each.name for each in model.graph.input]
    (_, h, c), (_, h0, c0) = names
    session, peer = (
        lb.Session(lb.compile(model, dims={"N": "1..9"})),
        onnxruntime.InferenceSession(model.SerializeToString()),
    )
    session.bind_state(h, h0)
    session.bind_state(c, c0)
    for batch in (3, 1, 3):
        whole = feeds_of(model, 40, batch)
        expected = peer.run(None, whole)
        session.set_input(h0, whole[h0])
        session.set_input(c0, whole[c0])
        at, parts = 0, []
        for steps in (7, 1, 20, 12):
            (y,) = session(np.ascontiguousarray(whole["x"][at : at + steps]))
            parts.append(np.array(np.from_dlpack(y)))
            at += steps
        found = [np.concatenate(parts), np.array(session.get_output(h)), np.array(session.get_output(c))]
        for a, b in zip(found, expected, strict=True):
            # as in test_recurrent: sums of 13 terms of values below 1, and of a state that was given
            np.testing.assert_allclose(a, b, rtol=0, atol=2e-6 * max(1.0, float(np.abs(b).max())))


def test_a_state_outlives_the_instance_that_computed_it(rows: lb.Executable) -> None:
    session, expected = lb.Session(rows), np.zeros(3, np.float32)
    session.bind_state("s", "h")
    session(picture(3, 50))
    expected += picture(3, 50).sum(1)
    session.prepare(T=list(range(1, 50)))
    session._executor.instances._instances.clear()  # type: ignore[attr-defined]  # as when memory is outgrown
    session(picture(3, 2))
    assert np.array_equal(state(session), expected + picture(3, 2).sum(1))


def test_a_state_of_another_shape_is_not_carried(batches: lb.Executable) -> None:
    session = lb.Session(batches)
    session.bind_state("s", "h")
    session(picture(2, 4))
    before = state(session)
    for use in (session, lambda x: (session.set_input_zero_copy("x", x), session.run())):
        with pytest.raises(InputError, match=r"state 'h' is \(2,\), .* takes \(3,\); .* set_input\('h', \.\.\.\)"):
            use(picture(3, 4))
    assert np.array_equal(state(session), before)
    session(picture(2, 7))
    before = before + picture(2, 7).sum(1)
    assert np.array_equal(state(session), before)
    session.set_input("h", np.ones(3, np.float32))
    assert np.array_equal(state(session), before)  # that of the last run
    session(picture(3, 4))
    assert np.array_equal(state(session), 1 + picture(3, 4).sum(1))


def test_a_dimension_of_the_state_alone() -> None:
    model = parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]> g (float[1] x, float[k] h) => (float[k] s) { s = Add(x, h) }'
    )
    session, one = lb.Session(lb.compile(model, dims={"k": "2..8"})), np.ones(1, np.float32)
    session.bind_state("s", "h")
    with pytest.raises(InputError, match=r"dimension 'k' is that of state 'h', which has none; .*set_input"):
        session(one)
    for k in (3, 5):
        session.set_input("h", np.zeros(k, np.float32))
        session(one)
        session.set_input_zero_copy("x", one)
        session.run()
        assert np.array_equal(state(session), np.full(k, 2))


def test_its_memory_is_the_sessions(rows: lb.Executable, batches: lb.Executable) -> None:
    session = lb.Session(rows)
    session.bind_state("s", "h")
    for use in (session.set_input_zero_copy, session.set_output_zero_copy):
        with pytest.raises(InputError, match="recurrent state"):
            use(1, np.zeros(3, np.float32))
    with pytest.raises(InputError, match="'s' is a recurrent state already"):
        session.bind_state("s", "h")
    with pytest.raises(InputError, match="2 arrays are given; the program takes 1: x"):
        session(picture(3, 4), picture(3))
    with pytest.raises(InputError, match=r"no output 'q'; legal: .*, or an index from 0"):
        session.bind_state("q", "h")
    with pytest.raises(InputError, match=r"output 'y' is float32\(n, t\), input 'h' is float32\(n,\)"):
        lb.Session(batches).bind_state("y", "h")
