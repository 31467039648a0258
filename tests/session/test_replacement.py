"""A Session continues with another compile of its program: bindings, weights, states and results go on."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from onnx import numpy_helper, parser

import landbridge as lb
from landbridge.errors import BindError
from landbridge.session.session import prepared_replacement, replace

FORMS = {
    "fixed": "g (float[4] x) => (float[4] y) <float[1] w = {2}> { y = Mul(x, w) }",
    "open": "g (float[n] x) => (float[n] y) <float[1] w = {2}> { y = Mul(x, w) }",
    "cut": "g (float[n] x) => (float[m] y) <float[1] w = {2}, int64[1] one = {-1}> "
    "{ z = Mul(x, w)  k = Greater(x, w)  y = Compress(z, k) }",
}
#: A sum that runs continue, of known and of open sizes.
SUMS = {
    "fixed": "g (float[4] x, float[4] s) => (float[4] t) { t = Add(x, s) }",
    "open": "g (float[n] x, float[n] s) => (float[n] t) { t = Add(x, s) }",
}
#: A cache that grows by what each run appends.
GROWING = "g (float[1,S,8] x, float[1,P,8] past) => (float[1,T,8] present, float[1,1,8] y) \
{ present = Concat<axis=1>(past, x)  y = ReduceSum<keepdims=1>(present, a) }"


def compiled(text: str, **options: Any) -> lb.Executable:
    return lb.compile(parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> {text}'), **options)


def continue_with(session: lb.Session, executable: lb.Executable) -> None:
    before = session._executor
    replace(session, prepared_replacement(session, executable))
    assert session.executable is executable and session._executor is not before


def ones(value: float = 1, count: int = 4) -> np.ndarray:
    return np.full(count, value, np.float32)


@pytest.mark.filterwarnings("ignore::landbridge.errors.FallbackWarning")
@pytest.mark.parametrize("form", FORMS)
def test_what_is_bound_and_the_results_go_on(form: str) -> None:
    session, x = lb.Session(compiled(FORMS[form]), num_threads=1), ones(3)
    session.set_input_zero_copy("x", x)
    session.run()
    continue_with(session, compiled(FORMS[form]))
    np.testing.assert_array_equal(np.asarray(session.get_output("y")), ones(6))  # of the program before
    x[:] = 5
    session.run()
    np.testing.assert_array_equal(np.asarray(session.get_output("y")), ones(10))
    (y,) = session(ones(4))
    np.testing.assert_array_equal(np.asarray(y), ones(8))


@pytest.mark.parametrize("form", ["fixed", "open"])
def test_memory_stays_where_it_is(form: str) -> None:
    session, out = lb.Session(compiled(FORMS[form]), num_threads=1), ones(0)
    session.set_input("x", ones(3))
    session.set_output_zero_copy("y", out)
    session.run()
    held = session.get_input("x")
    with lb.no_copies():
        continue_with(session, compiled(FORMS[form]))
        with held.host_view("w") as view:
            view[:] = 7
        session.run()
    np.testing.assert_array_equal(out, ones(14))


@pytest.mark.filterwarnings("ignore::landbridge.errors.FallbackWarning")
@pytest.mark.parametrize("copy", [True, False])
@pytest.mark.parametrize("form", FORMS)
def test_weights_that_were_replaced_stay_so(form: str, copy: bool) -> None:
    executable, w = compiled(FORMS[form], mutable=["w"]), np.array([3], np.float32)
    session = lb.Session(executable, num_threads=1)
    session.set_params({"w": w}, copy=copy)
    continue_with(session, compiled(FORMS[form], mutable=["w"]))
    np.testing.assert_array_equal(np.asarray(session(ones(4))[0]), ones(12))
    w[0] = 2  # of the caller: seen where it was given without a copy
    expected = 3 if copy else 2
    np.testing.assert_array_equal(np.asarray(session(ones(4))[0]), ones(4 * expected))
    assert float(np.asarray(session.get_params()["w"])[0]) == expected
    session.set_params({"w": np.array([1], np.float32)})
    np.testing.assert_array_equal(np.asarray(session(ones(4))[0]), ones(4))


@pytest.mark.parametrize("form", SUMS)
@pytest.mark.parametrize("alias", [None, {"t": "s"}])
def test_a_pair_goes_on(form: str, alias: dict[str, str] | None) -> None:
    options = {} if alias is None else {"alias": alias}
    session = lb.Session(compiled(SUMS[form], **options), num_threads=1)
    session.bind_state("t", "s")
    for _ in range(3):
        session(ones())
    with lb.no_copies():
        continue_with(session, compiled(SUMS[form], **options))
    session(ones(10))
    np.testing.assert_array_equal(np.asarray(session.get_output("t")), ones(13))
    continue_with(session, compiled(SUMS[form], **options))
    np.testing.assert_array_equal(np.asarray(session.get_output("t")), ones(13))


@pytest.mark.parametrize("runs_before", [0, 3])
def test_states_with_a_length_go_on(runs_before: int) -> None:
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> {GROWING}')
    model.graph.initializer.append(numpy_helper.from_array(np.array([1], np.int64), "a"))
    session = lb.Session(lb.compile(model, alias="auto"), num_threads=1)
    state, other = session.bind_state(capacity=6), session.bind_state(capacity=6)
    state.bind()
    row, total = np.ones((1, 1, 8), np.float32), 0
    for step in range(6):
        if step == runs_before:
            continue_with(session, lb.compile(model, alias="auto"))
            assert state.length == runs_before and state.is_bound
        total += step
        (y,) = session(row * step)
        assert float(np.asarray(y)[0, 0, 0]) == total and state.length == step + 1
    with pytest.raises(lb.StateCapacityError):
        session(row)
    other.bind()
    (y,) = session(row * 9)
    assert float(np.asarray(y)[0, 0, 0]) == 9 and (state.length, other.length) == (6, 1)


@pytest.mark.parametrize(
    ("form", "other", "why"),
    [
        ("fixed", "open", "its inputs are"),
        ("fixed", "g (float[4] x) => (float[4] z) <float[1] w = {2}> { z = Mul(x, w) }", "its outputs are"),
        ("open", "cut", "its outputs are"),
    ],
)
@pytest.mark.filterwarnings("ignore::landbridge.errors.FallbackWarning")
def test_another_interface_is_refused(form: str, other: str, why: str) -> None:
    session = lb.Session(compiled(FORMS[form]), num_threads=1)
    executor = session._executor
    with pytest.raises(BindError, match=why):
        prepared_replacement(session, compiled(FORMS.get(other, other)))
    with pytest.raises(BindError, match="its weights that set_params replaces are"):
        prepared_replacement(session, compiled(FORMS[form], mutable=["w"]))
    assert session._executor is executor
    np.testing.assert_array_equal(np.asarray(session(ones(4))[0]), ones(8))


def test_nothing_has_changed_where_it_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    session = lb.Session(compiled(SUMS["fixed"]), num_threads=1)
    session.bind_state("t", "s")
    session(ones())
    prepared = prepared_replacement(session, compiled(SUMS["fixed"]))
    states = prepared.executor.program.states  # type: ignore[attr-defined]

    def fail(*_: object) -> None:
        raise lb.OutOfMemoryError("no memory is left")

    monkeypatch.setattr(states, "bind_all", fail)
    with pytest.raises(lb.OutOfMemoryError):
        replace(session, prepared)
    session(ones(2))
    np.testing.assert_array_equal(np.asarray(session.get_output("t")), ones(3))


@pytest.mark.parametrize("form", ["fixed", "open"])
def test_calls_of_many_threads_go_on_meanwhile(form: str) -> None:
    executables = [compiled(FORMS[form]) for _ in range(2)]
    session, over = lb.Session(executables[0], num_threads=1), threading.Event()

    def work(number: int) -> int:
        count = 0
        while not over.is_set() or not count:
            (y,) = session(ones(number))
            np.testing.assert_array_equal(np.asarray(y), ones(2 * number))
            count += 1
        return count

    with ThreadPoolExecutor(3) as pool:
        done = [pool.submit(work, number) for number in range(3)]
        for number in range(20):
            continue_with(session, executables[number % 2])
        over.set()
        assert all(each.result(60) for each in done)


def test_it_waits_for_a_run_that_is_under_way() -> None:
    session = lb.Session(compiled(FORMS["fixed"]), num_threads=1)
    prepared = prepared_replacement(session, compiled(FORMS["fixed"]))
    token = session._entry.take()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(replace, session, prepared)
        with pytest.raises(TimeoutError):
            waiting.result(0.05)
        session._entry.give_back(token)
        waiting.result(30)
    assert session._executor is prepared.executor
