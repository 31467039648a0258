"""Recurrent states of open programs: carried from size to size, and refused where their shapes change."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import parser

import landbridge as lb
from landbridge.errors import InputError

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


def test_one_copy_where_sizes_change_and_none_where_they_stay(rows: lb.Executable) -> None:
    session = lb.Session(rows)
    session.bind_state("s", "h")
    session.prepare(T=[4, 9])
    session(picture(3, 4))
    with lb.no_copies():
        session(picture(3, 4))
        session.set_input_zero_copy("x", picture(3, 4))
        session.run()
        session.run()
    with lb.ledger() as moves:
        session(picture(3, 9))
    (move,) = (move for move in moves if not move.is_kernel)
    assert (move.cause, move.tensor, move.nbytes) == ("set_input", "h", 12)


def test_a_state_outlives_the_instance_that_computed_it(rows: lb.Executable) -> None:
    session, expected = lb.Session(rows), np.zeros(3, np.float32)
    session.bind_state("s", "h")
    session(picture(3, 50))
    expected += picture(3, 50).sum(1)
    session.prepare(T=list(range(1, 50)))
    session._instances.clear()  # type: ignore[attr-defined]  # as when memory is outgrown
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
    with pytest.raises(InputError, match="there is no output 'q'"):
        session.bind_state("q", "h")
    with pytest.raises(InputError, match=r"output 'y' is float32\(n, t\), input 'h' is float32\(n,\)"):
        lb.Session(batches).bind_state("y", "h")
