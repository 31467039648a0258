"""First programs of models with open dimensions: one for each size that comes, until the full program is there."""

from __future__ import annotations

import contextlib
import fcntl
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import parser

import landbridge as lb
import landbridge.onnxruntime as ort
from landbridge.compiler.background_compile import BackgroundCompile
from landbridge.errors import FallbackWarning
from landbridge.onnxruntime import first_sessions
from landbridge.onnxruntime.capi import onnxruntime_pybind11_state as failures
from tests.onnxruntime.both import same

HEAD = '<ir_version: 8, opset_import: ["": 17]> '
#: ``softmax(x @ w)``, of any batch.
PRODUCT = HEAD + "g (float[N, 2] x) => (float[N, 2] y) <float[2, 2] w = {1, 2, 3, 4}> {"
PRODUCT += " p = MatMul(x, w)  y = Softmax<axis = -1>(p) }"
#: The first tier has no translation of Unique.
UNKNOWN = HEAD + "g (float[N] x) => (float[M] y) { y = Unique(x) }"
SUM = HEAD + "g (float[N] a, float[N] b) => (float[N] y) { y = Add(a, b) }"
#: The kernel of a convolution has to be known.
OPEN_KERNEL = HEAD + "g (float[1,1,9] x, float[1,1,k] w) => (float[1,1,n] y) { y = Conv(x, w) }"
BROKEN = HEAD + "g (float[N] x) => (float[N] y) { y = NoSuchOperator(x) }"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    folder.mkdir(mode=0o700)
    monkeypatch.setenv("LANDBRIDGE_CACHE", str(folder))
    return folder


@contextlib.contextmanager
def held(cache: Path) -> Iterator[None]:
    """Holds what background compiles of the folder wait for."""
    descriptor = os.open(cache, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        yield
    finally:
        os.close(descriptor)


def content(text: str) -> bytes:
    model: onnx.ModelProto = parser.parse_model(text)
    return bytes(model.SerializeToString())


def fast(model: str | bytes | Path, **entries: str) -> ort.InferenceSession:
    options = ort.SessionOptions()
    for key, value in {"optimize": "fast", **entries}.items():
        options.add_session_config_entry(f"landbridge.{key}", value)
    return ort.InferenceSession(content(model) if isinstance(model, str) else model, options)


def pending(session: ort.InferenceSession) -> BackgroundCompile:
    first = session._programs._first
    assert first is not None
    return first.pending


def rows(number: int) -> np.ndarray[Any, Any]:
    return np.linspace(-1, 1, 2 * number, dtype=np.float32).reshape(number, 2)


def test_first_programs_run_until_the_full_one_is_there(cache: Path) -> None:
    theirs = onnxruntime.InferenceSession(content(PRODUCT), providers=["CPUExecutionProvider"])
    with held(cache):
        session = fast(PRODUCT)
        (given,), made = session.get_inputs(), session.get_outputs()
        assert (given.name, given.type, given.shape) == ("x", "tensor(float)", ["N", 2]) and made[0].shape == ["N", 2]
        for number in (3, 1, 3, 7):
            same(session.run(None, {"x": rows(number)}), theirs.run(None, {"x": rows(number)}))
            assert session._programs.session is None
        background = pending(session)
    full = background.wait()
    assert full is not None and full.is_open
    for number in (3, 11):
        same(session.run(None, {"x": rows(number)}), theirs.run(None, {"x": rows(number)}))
        assert session._programs.session is not None and session._programs.session.executable is full
    again = fast(PRODUCT)._programs
    assert again._first is None and again.session is not None  # from the cache


def test_bindings_and_ort_values(cache: Path) -> None:
    with held(cache):
        session = fast(PRODUCT)
        background = pending(session)
        binding, out = session.io_binding(), np.zeros((3, 2), np.float32)
        binding.bind_cpu_input("x", rows(3))
        binding.bind_ortvalue_output("y", ort.OrtValue(out))
        session.run_with_iobinding(binding)
        before = out.copy()
        value = ort.OrtValue.ortvalue_from_numpy(rows(3))
        (result,) = session.run_with_ort_values(None, {"x": value})
        assert np.array_equal(result.numpy(), before) and session._programs.session is None
    background.wait()
    out[:] = 0
    session.run_with_iobinding(binding)
    assert session._programs.session is not None
    same([out], [before])


def test_what_has_no_first_program_waits_for_the_full_one(cache: Path) -> None:
    session = fast(UNKNOWN)
    background = pending(session)
    assert session.run(None, {"x": np.array([3, 1, 3], np.float32)})[0].tolist() == [1, 3]
    assert session._programs.session is not None and session._programs.session.executable is background.take()


def test_shapes_that_do_not_fit_have_the_error_of_the_full_program(cache: Path) -> None:
    feeds = {"a": np.ones(3, np.float32), "b": np.ones(1, np.float32)}  # numpy would repeat b
    with held(cache):
        session = fast(SUM)
        assert session.run(None, {"a": feeds["a"], "b": feeds["a"]})[0].tolist() == [2, 2, 2]
    with pytest.raises(failures.InvalidArgument) as later:
        session.run(None, feeds)
    with pytest.raises(failures.InvalidArgument) as expected:
        ort.InferenceSession(content(SUM)).run(None, feeds)
    assert str(later.value) == str(expected.value)


def test_dimensions_that_exporters_call_unknown_need_not_be_equal(cache: Path) -> None:
    model = onnx.load_model_from_string(content(HEAD + "g (float[N, N] x) => (float[N, N] y) { y = Relu(x) }"))
    for dim in model.graph.input[0].type.tensor_type.shape.dim:
        dim.dim_param = "?"
    with held(cache):
        session = fast(bytes(model.SerializeToString()))
        assert session.run(None, {"x": rows(3)})[0].shape == (3, 2) and session._programs.session is None


def test_only_some_sessions_are_retained_and_they_share_constants(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[lb.Executable] = []

    def session_of(program: lb.Executable, **options: Any) -> lb.Session:
        made.append(program)
        return lb.Session(program, **options)

    monkeypatch.setattr(first_sessions, "Session", session_of)
    with held(cache):
        session = fast(PRODUCT)
        for number in (1, 2, 3, 4, 1, 5, 2):  # 5 takes the place of 2
            session.run(None, {"x": rows(number)})
    assert [each.main.inputs[0].shape[0] for each in made] == [1, 2, 3, 4, 5, 2]
    weights = [each.constants["w"] for each in made]
    assert all(np.shares_memory(weights[0], each) for each in weights)


def test_a_file_that_is_gone(cache: Path, tmp_path: Path) -> None:
    file = tmp_path / "product.onnx"
    file.write_bytes(content(PRODUCT))
    with held(cache):
        session = fast(file)
        expected = session.run(None, {"x": rows(2)})
        file.unlink()
        same(session.run(None, {"x": np.tile(rows(2), (2, 1))})[0][:2], expected[0])


def test_a_compile_that_fails_is_told_once(cache: Path) -> None:
    with held(cache):
        session = fast(PRODUCT)
        session.run(None, {"x": rows(2)})
        process = pending(session)._process
        assert process is not None
        process.kill()
        process.wait()
    with pytest.warns(FallbackWarning, match=r"status -9; the model is compiled for each choice of sizes") as told:
        session.run(None, {"x": rows(2)})
    assert len(told) == 1
    with warnings.catch_warnings(action="error"):
        same(session.run(None, {"x": rows(3)}), ort.InferenceSession(content(PRODUCT)).run(None, {"x": rows(3)}))


def test_a_model_that_needs_a_program_for_each_size(cache: Path) -> None:
    session, x = fast(OPEN_KERNEL), np.arange(9, dtype=np.float32)
    taps = np.ones(2, np.float32)
    with warnings.catch_warnings(action="ignore"):
        pending(session).wait()
        for _ in range(2):
            (y,) = session.run(None, {"x": x.reshape(1, 1, 9), "w": taps.reshape(1, 1, 2)})
            np.testing.assert_allclose(y[0, 0], np.correlate(x, taps), rtol=1e-6)
    assert session._programs.session is None and session._programs._first is None


def test_errors_of_the_model_appear_when_a_run_needs_it(cache: Path) -> None:
    with pytest.raises(failures.InvalidGraph) as expected:
        ort.InferenceSession(content(BROKEN))
    session = fast(BROKEN)
    with pytest.warns(FallbackWarning, match="NoSuchOperator"), pytest.raises(failures.InvalidGraph) as later:
        session.run(None, {"x": np.ones(2, np.float32)})
    assert str(later.value) == str(expected.value)


def test_the_program_that_is_written_is_the_full_one(cache: Path, tmp_path: Path) -> None:
    options = ort.SessionOptions()
    options.add_session_config_entry("landbridge.optimize", "fast")
    for text in (PRODUCT, PRODUCT.replace("N", "3")):
        options.optimized_model_filepath = str(tmp_path / "product.lbx")
        ort.InferenceSession(content(text), options)
        assert lb.load(tmp_path / "product.lbx").modules


def test_without_a_cache_the_full_program_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANDBRIDGE_CACHE", "0")
    session = fast(PRODUCT)
    assert session._programs.session is not None and session._programs.session.executable.modules


def test_a_child_after_a_fork_compiles_what_it_needs(cache: Path) -> None:
    with held(cache):
        session = fast(UNKNOWN)
        child = os.fork()
        if child == 0:
            status = 1
            with contextlib.suppress(BaseException):
                status = 0 if session.run(None, {"x": np.array([3, 1, 3], np.float32)})[0].tolist() == [1, 3] else 2
            os._exit(status)
        _, status = os.waitpid(child, 0)
    assert status == 0


def test_dimensions_that_the_options_fix_have_first_programs(cache: Path) -> None:
    """Of two dimensions one is a number for all runs; a run of another is refused, as by the full program."""
    text = HEAD + "g (float[N, M] x) => (float[N, M] y) { y = Softmax<axis = -1>(x) }"
    options = ort.SessionOptions()
    options.add_session_config_entry("landbridge.optimize", "fast")
    options.add_free_dimension_override_by_name("M", 2)
    theirs = onnxruntime.InferenceSession(content(text), providers=["CPUExecutionProvider"])
    with held(cache):
        session = ort.InferenceSession(content(text), options)
        for number in (3, 5):
            same(session.run(None, {"x": rows(number)}), theirs.run(None, {"x": rows(number)}))
            assert session._programs.session is None
        background = pending(session)
    full = background.wait()
    assert full is not None and [str(e) for e in full.main.inputs[0].shape] == ["N", "2"]
    same(session.run(None, {"x": rows(4)}), theirs.run(None, {"x": rows(4)}))
    assert session._programs.session is not None and session._programs.session.executable is full
    with pytest.raises(failures.InvalidArgument):
        session.run(None, {"x": np.zeros((4, 3), np.float32)})
