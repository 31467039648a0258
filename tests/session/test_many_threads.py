"""One Session called from many threads at a time: right results, and no more memory than a few instances take."""

from __future__ import annotations

import contextlib
import gc
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import parser

import landbridge as lb
from landbridge.process.usable_cores import usable_cores
from landbridge.vm.spares import Spares
from tests.whole_models.small_models import edges

DOUBLE = '<ir_version: 8, opset_import: ["": 17]> m (float[4] x) => (float[4] y) { y = Add(x, x) }'

THREADS = 8


def _reference(model: onnx.ModelProto, x: np.ndarray) -> np.ndarray:
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {"x": x})[0]


def _called_by_all(session: lb.Session, inputs: list[np.ndarray], rounds: int) -> list[list[np.ndarray]]:
    together = threading.Barrier(THREADS)

    def work(i: int) -> list[np.ndarray]:
        together.wait(30)
        return [session(inputs[i])[0].numpy() for _ in range(rounds)]

    with ThreadPoolExecutor(THREADS) as pool:
        return [future.result(120) for future in [pool.submit(work, i) for i in range(THREADS)]]


def test_each_thread_gets_its_own_result() -> None:
    model = edges(32, 32)
    session = lb.Session(lb.compile(model))
    rng = np.random.default_rng(0)
    inputs = [rng.standard_normal((1, 3, 32, 32)).astype(np.float32) for _ in range(THREADS)]
    for x, results in zip(inputs, _called_by_all(session, inputs, 40), strict=True):
        expected = _reference(model, x)
        for y in results:
            np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-5)
    assert len(session._spares) <= usable_cores()


def test_sizes_that_come_from_many_threads() -> None:
    model = parser.parse_model(
        '<ir_version: 8, opset_import: ["": 18]> g (float[n, w] x) => (float[n, w] y) { y = Softmax (x) }'
    )
    session = lb.Session(lb.compile(model))
    rng = np.random.default_rng(0)
    inputs = [rng.standard_normal((2, 5 + i)).astype(np.float32) for i in range(THREADS)]
    for x, results in zip(inputs, _called_by_all(session, inputs, 40), strict=True):
        for y in results:
            np.testing.assert_allclose(y, _reference(model, x), rtol=1e-5)
    assert len(session._spares) <= usable_cores()


def test_what_is_bound_has_one_owner_and_calls_go_on() -> None:
    session = lb.Session(lb.compile(edges(256, 256)), num_threads=1)
    x = np.ones((1, 3, 256, 256), np.float32)
    session.set_input("x", x)
    expected = session(x)[0].numpy()
    stop, refused = threading.Event(), []

    def runs() -> None:
        while not stop.is_set():
            with contextlib.suppress(lb.SessionBusyError):  # others may hold it between two
                session.run()

    worker = threading.Thread(target=runs)
    worker.start()
    deadline = time.monotonic() + 30
    while not refused and time.monotonic() < deadline:
        np.testing.assert_array_equal(session(x)[0].numpy(), expected)
        try:
            session.get_output(0)
        except lb.SessionBusyError as error:
            refused.append(str(error))
    stop.set()
    worker.join()
    assert refused and "call it, session(x), from any thread" in refused[0]


def test_weights_that_were_replaced_hold_for_all_threads() -> None:
    model = parser.parse_model(
        '<ir_version: 8, opset_import: ["": 18]> g (float[64, 64] x) => (float[64, 64] y) '
        "<float[64, 64] w = {" + ",".join(["1"] * 4096) + "}> { y = MatMul (x, w) }"
    )
    session = lb.Session(lb.compile(model, mutable=["w"]))
    x = np.eye(64, dtype=np.float32)
    for scale in (1, 2, 3):
        session.set_params({"w": np.full((64, 64), scale, np.float32)})
        for results in _called_by_all(session, [x] * THREADS, 20):
            for y in results:
                assert (y == scale).all()


def test_a_state_has_one_owner() -> None:
    model = parser.parse_model(
        '<ir_version: 8, opset_import: ["": 18]> g (float[4] x, float[4] s) => (float[4] t) { t = Add (x, s) }'
    )
    session = lb.Session(lb.compile(model))
    session.bind_state("t", "s")
    token = session._entry.take()
    with ThreadPoolExecutor(1) as pool, pytest.raises(lb.SessionBusyError):
        pool.submit(session, np.ones(4, np.float32)).result(30)
    session._entry.give_back(token)


def test_nothing_keeps_a_session_that_nobody_holds() -> None:
    session = lb.Session(lb.compile(edges(16, 16)))
    gone = weakref.ref(session)
    gc.disable()
    try:
        del session
        assert gone() is None
    finally:
        gc.enable()


def test_spares_are_bounded_and_come_back_after_an_error() -> None:
    made: list[object] = []

    class Spare:
        pass

    def make() -> Spare:
        made.append(None)
        if len(made) == 1:
            raise lb.InputError("not now")
        return Spare()

    spares = Spares(make, lambda: 2)
    with pytest.raises(lb.InputError):
        spares.take()
    first, second = spares.take(), spares.take()
    assert len(spares) == 2
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(spares.take)
        time.sleep(0.02)
        assert not waiting.done()
        spares.give_back(first)
        assert waiting.result(30) is first
    del second  # dropped, as by an interrupt, and made anew
    assert isinstance(spares.take(), Spare)


def test_a_spare_that_was_made_of_what_was_before_is_used_once() -> None:
    """Weights may be replaced while it is made."""

    class Spare:
        pass

    def make() -> Spare:
        spares.forget()
        return Spare()

    spares = Spares(make, lambda: 2)
    first = spares.take()
    spares.give_back(first)
    assert spares.take() is not first


def test_calls_go_on_while_another_thread_holds_the_session() -> None:
    """As one that runs again and again does nearly all the time, without weights that may be replaced."""
    session = lb.Session(lb.compile(parser.parse_model(DOUBLE)))
    x = np.arange(4, dtype=np.float32)
    with ThreadPoolExecutor(1) as pool:
        token = session._entry.take()
        try:
            (y,) = pool.submit(session, x).result(10)
        finally:
            session._entry.give_back(token)
    np.testing.assert_array_equal(y, 2 * x)


def test_names_go_in_and_come_out() -> None:
    model = edges(16, 16)
    x = np.random.default_rng(1).standard_normal((1, 3, 16, 16)).astype(np.float32)
    open_model = edges(16, 16)
    for value in (open_model.graph.input[0], open_model.graph.output[0]):
        value.type.tensor_type.shape.dim[0].dim_param = "n"
    for program in (lb.compile(model), lb.compile(open_model)):
        session = lb.Session(program)
        given = session({"x": x})
        assert list(given) == ["y"]
        np.testing.assert_array_equal(given["y"].numpy(), session(x)[0].numpy())
        out = {"y": np.empty_like(given["y"].numpy())}
        assert session({"x": x}, out=out)["y"] is out["y"]
        np.testing.assert_array_equal(out["y"], given["y"].numpy())
        with pytest.raises(lb.InputError, match="no input 'z'"):
            session({"x": x, "z": x})
        with pytest.raises(lb.InputError, match="nothing is given for input 'x'"):
            session({})
        with pytest.raises(lb.InputError, match="no output 'q'"):
            session({"x": x}, out={"q": x})
