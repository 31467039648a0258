"""Buffers of Python as arguments: used in place, as arrays are, by programs of fixed, open and data-dependent sizes."""

from __future__ import annotations

import mmap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx.parser
import pytest

import landbridge as lb
from landbridge.errors import InputError, ZeroCopyError

FIXED = """<ir_version: 8, opset_import: ["" : 17]> g (float[4, 8] x) => (float[4, 8] y) { y = Add(x, x) }"""
OPEN = """<ir_version: 8, opset_import: ["" : 17]> g (float[N, 8] x) => (float[N, 8] y) { y = Add(x, x) }"""
#: The number of rows of the result is known when NonZero has run.
CUT = """<ir_version: 8, opset_import: ["" : 17]> g (float[4, 8] x) => (float[K, 2] y)
{ k = NonZero(x) c = Cast<to = 1>(k) y = Transpose(c) }"""
X = np.arange(1, 33, dtype=np.float32).reshape(4, 8)


def session_of(text: str, target: str = "llvm") -> lb.Session:
    return lb.Session(lb.compile(onnx.parser.parse_model(text), target), None if target == "llvm" else target)


def mapped(tmp_path: Path) -> mmap.mmap:
    (tmp_path / "frame.raw").write_bytes(X.tobytes())
    with (tmp_path / "frame.raw").open("r+b") as file:
        return mmap.mmap(file.fileno(), 0)


@pytest.mark.parametrize("text", [FIXED, OPEN])
def test_inputs_and_outputs_are_used_in_place(text: str, tmp_path: Path) -> None:
    session, source, result = session_of(text), mapped(tmp_path), bytearray(X.nbytes)
    with lb.no_copies():
        (given,) = session(source, out=[result])
        assert given is result
        np.testing.assert_array_equal(np.frombuffer(result, np.float32), 2 * X.ravel())
        assert session({"x": source})["y"].numpy()[3, 7] == 64
        session.set_input_zero_copy("x", source)
        session.set_output_zero_copy("y", result)
        source[:4] = np.float32(50).tobytes()  # what is there when the run starts
        session.run()
        assert np.frombuffer(result, np.float32)[0] == 100
    with pytest.raises(BufferError):
        source.close()  # it is bound
    session.set_input_zero_copy("x", X)
    session.run()
    source.close()


@pytest.mark.parametrize("text", [FIXED, OPEN, CUT])
def test_by_value(text: str) -> None:
    session, source = session_of(text), bytearray(X.tobytes())
    session.set_input("x", source)
    source[:] = bytes(len(source))
    session.run()
    result = np.asarray(session.get_output("y"))
    copied = bytearray(result.nbytes)
    assert session.get_output("y", out=copied) is copied
    assert bytes(copied) == result.tobytes()
    assert result[-1, -1] == (7 if text is CUT else 64)


def test_data_decide_the_size() -> None:
    session = session_of(CUT)
    assert session(bytearray(X.tobytes()))[0].shape == (32, 2)
    session.set_input_zero_copy("x", memoryview(bytes(X.nbytes)))
    session.run()
    assert session.get_output("y").shape == (0, 2)
    with pytest.raises(InputError, match=r"the bytearray has 12 bytes, it takes 256 bytes, float32 of shape \(32, 2\)"):
        session(X, out=[bytearray(12)])
    with pytest.raises(InputError, match="a list cannot be written"):
        session(X, out=[[0.0] * 64])


@pytest.mark.parametrize("text", [FIXED, OPEN])
@pytest.mark.parametrize(
    ("act", "error", "match"),
    [
        (lambda s: s(bytearray(100)), InputError, "the bytearray has 100 bytes"),
        (lambda s: s(X, out=[bytes(128)]), ZeroCopyError, "read-only"),
        (lambda s: s.set_input_zero_copy("x", b"abc"), InputError, "the bytes has 3 bytes"),
        (lambda s: s.set_input("x", bytearray(7)), InputError, "the bytearray has 7 bytes"),
        (lambda s: s(memoryview(bytearray(132))[1:129]), ZeroCopyError, "not aligned to the 4 bytes"),
    ],
)
def test_errors_say_what_fits(text: str, act: Callable[[lb.Session], Any], error: type[Exception], match: str) -> None:
    session = session_of(text)
    session(X)
    with pytest.raises(error, match=match):
        act(session)
    np.testing.assert_array_equal(session(X)[0], 2 * X)


@pytest.mark.parametrize("text", [FIXED, OPEN])
def test_a_call_releases_what_it_was_given(text: str) -> None:
    session, source, result = session_of(text), bytearray(X.nbytes), bytearray(X.nbytes)
    session(source, out=[result])
    source.append(0)
    result.append(0)


def test_registered_buffers() -> None:
    session, frames = session_of(FIXED), [bytearray(X.tobytes()), bytearray(128)]
    session.register_buffers("x", frames)
    for frame, last in zip(frames, (64, 0), strict=True):
        session.set_input_zero_copy("x", frame)
        session.run()
        assert np.asarray(session.get_output(0))[3, 7] == last


def test_a_device_uses_it_in_place_or_says_how() -> None:
    try:
        session = session_of(FIXED, "opencl")
    except lb.LandbridgeError as error:
        pytest.skip(f"no OpenCL: {error}")
    source = mmap.mmap(-1, X.nbytes)
    source[:] = X.tobytes()
    session.set_input_zero_copy("x", source)
    session.run()
    np.testing.assert_array_equal(session.get_output(0).to_device("cpu").numpy(), 2 * X)
    session.set_input("x", bytes(X.nbytes))
    session.run()
    assert not session.get_output(0).to_device("cpu").numpy().any()
