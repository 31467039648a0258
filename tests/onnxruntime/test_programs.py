"""Compiles during a run: none where one program does, each reason is told, and programs that stay have a limit."""

from __future__ import annotations

import gc
import warnings
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Barrier, Thread
from typing import Any

import numpy as np
import pytest
from onnx import parser

import landbridge.onnxruntime as ort
from landbridge.compiler.background_compile import BackgroundCompile
from landbridge.errors import FallbackWarning, LandbridgeError
from landbridge.onnxruntime import programs
from landbridge.onnxruntime.lru_cache import Retained

HEAD = '<ir_version: 8, opset_import: ["": 18]> '
#: As torch's exporter writes keys and values of a decoder: one length by two names.
DECODER = (
    HEAD + "g (float[1,1,s,4] q, float[1,1,s15,4] k, float[1,1,s89,4] v) => (float[1,1,s,4] y) {"
    " kt = Transpose<perm=[0,1,3,2]>(k)  w = MatMul(q, kt)  y = MatMul(w, v) }"
)
#: The kernel of a convolution has to be known.
OPEN_KERNEL = HEAD + "g (float[1,1,9] x, float[1,1,k] w) => (float[1,1,n] y) { y = Conv(x, w) }"
WEIGHT = HEAD + "g (float[2] x, float[2] a, float[2] b) => (float[2] y) <float[2] a = {1, 2}, float[2] b = {3, 4}> {"
WEIGHT += " s = Mul(x, a)  y = Add(s, b) }"


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """The shapes of each compile."""
    seen: list[Any] = []
    compile = programs.compile

    def counted(*args: Any, **options: Any) -> Any:
        seen.append(options["shapes"])
        return compile(*args, **options)

    monkeypatch.setattr(programs, "compile", counted)
    yield seen


def session_of(text: str, **entries: str) -> ort.InferenceSession:
    options = ort.SessionOptions()
    for key, value in entries.items():
        options.add_session_config_entry(f"landbridge.{key}", value)
    return ort.InferenceSession(parser.parse_model(text).SerializeToString(), options)


def convolve(session: ort.InferenceSession, taps: int) -> None:
    x, w = np.arange(9, dtype=np.float32), np.ones(taps, np.float32)
    (y,) = session.run(None, {"x": x.reshape(1, 1, 9), "w": w.reshape(1, 1, taps)})
    np.testing.assert_allclose(y[0, 0], np.correlate(x, w), rtol=1e-6)


def test_a_dimension_of_two_names_compiles_once(compiled: list[Any]) -> None:
    session = session_of(DECODER)
    with warnings.catch_warnings(action="error"):
        for past in range(1, 7):
            rng = np.random.default_rng(past)
            q, k, v = (rng.standard_normal((1, 1, n, 4)).astype(np.float32) for n in (2, past, past))
            (y,) = session.run(None, {"q": q, "k": k, "v": v})
            np.testing.assert_allclose(y, q @ k.transpose(0, 1, 3, 2) @ v, rtol=1e-4, atol=1e-5)
    assert compiled == [None]
    with pytest.raises(LandbridgeError, match="must be equal"):
        session.run(None, {"q": q, "k": k, "v": v[:, :, :3]})


def test_a_compile_in_a_run_is_reported_once(compiled: list[Any]) -> None:
    with warnings.catch_warnings(action="error"):
        session = session_of(OPEN_KERNEL)
    with pytest.warns(FallbackWarning, match=r"compiles the model for x\[1, 1, 9\], w\[1, 1, 2\].*The last 8 are kept"):
        convolve(session, 2)
    with warnings.catch_warnings(action="error"):
        convolve(session, 3)
        convolve(session, 2)
    assert [each and each["w"][2] for each in compiled] == [None, 2, 3]


def test_programs_that_are_retained_have_a_limit(compiled: list[Any]) -> None:
    session = session_of(OPEN_KERNEL, kept_programs="2")
    with pytest.warns(FallbackWarning):
        convolve(session, 2)
    convolve(session, 3)
    convolve(session, 2)  # now 3 was not used for longest
    with pytest.warns(FallbackWarning, match="more than 2 programs.*landbridge.kept_programs"):
        convolve(session, 4)
    with warnings.catch_warnings(action="error"):
        convolve(session, 2)
        convolve(session, 3)
    assert [each["w"][2] for each in compiled[1:]] == [2, 3, 4, 3]


@pytest.mark.parametrize("output", ["0", "-1", "many"])
def test_a_limit_that_is_none(output: str) -> None:
    with pytest.raises(LandbridgeError, match="a whole number from 1 is legal"):
        session_of(OPEN_KERNEL, kept_programs=output)


def test_values_of_weights_are_reported_and_have_the_limit(compiled: list[Any]) -> None:
    session, ones = session_of(WEIGHT, kept_programs="1"), np.ones(2, np.float32)
    with pytest.warns(FallbackWarning, match="once more, as the feed has values of weights: a;"):
        session.run(None, {"x": ones, "a": ones})
    with warnings.catch_warnings(action="error"):
        session.run(None, {"x": ones, "a": 2 * ones})
    with pytest.warns(FallbackWarning, match="more than 1 programs"):
        session.run(None, {"x": ones, "b": ones})
    assert session.run(None, {"x": ones, "a": 5 * ones})[0].tolist() == [8, 9]
    assert len(compiled) == 4


def test_a_session_that_nobody_has_is_freed_at_once() -> None:
    session = session_of(OPEN_KERNEL)
    with pytest.warns(FallbackWarning):
        convolve(session, 2)
    held = weakref.ref(session), weakref.ref(session._programs)
    with collector_off():
        del session
        assert [each() for each in held] == [None, None]


@contextmanager
def collector_off() -> Iterator[None]:
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def test_threads_get_one_value_of_a_key() -> None:
    retained: Retained[int, object] = Retained(1)
    both, found = Barrier(2), []

    def make() -> object:
        both.wait(10)  # the other thread makes one, too
        return object()

    threads = [Thread(target=lambda: found.append(retained.get(1, make, list))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found[0] is found[1] is retained.get(1, object, list)


def test_a_first_program_runs_until_the_full_one_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANDBRIDGE_CACHE", str(tmp_path / "cache"))
    model = parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> g (float[2, 3] x) => (float[2, 3] y) { y = Relu(x) }'
    )
    options = ort.SessionOptions()
    options.add_session_config_entry("landbridge.optimize", "fast")
    session = ort.InferenceSession(model.SerializeToString(), options)
    x = np.arange(-3, 3, dtype=np.float32).reshape(2, 3)
    running = session._programs.session
    assert running is not None
    first = running.executable
    pending = first.replacement
    assert isinstance(pending, BackgroundCompile)
    assert session.run(None, {"x": x})[0].tolist() == np.maximum(x, 0).tolist()
    full = pending.wait()
    assert full is not None
    assert session.run(None, {"x": x})[0].tolist() == np.maximum(x, 0).tolist() and running.executable is full


def test_illegal_words_of_optimize() -> None:
    model = parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> g (float[2, 3] x) => (float[2, 3] y) { y = Relu(x) }'
    )
    options = ort.SessionOptions()
    options.add_session_config_entry("landbridge.optimize", "quick")
    with pytest.raises(ort.capi.onnxruntime_pybind11_state.InvalidArgument, match="legal: 'full', 'fast'"):
        ort.InferenceSession(model.SerializeToString(), options)
