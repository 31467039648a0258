"""``denormals`` of CPU targets: results are numpy's, or numpy's with zeros, whichever way leads to a kernel."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import tvm_ffi
from onnx import TensorProto, helper

import landbridge as lb
from landbridge.errors import IndexRangeError
from landbridge.executable.executable import Executable
from landbridge.module import Module
from landbridge.vm.trace import trace_run

Array = np.ndarray[Any, Any]
KINDS = ("llvm", "c")
SETTINGS = ("flush", "keep")
#: Enough for a call of several tasks, which threads share, and no multiple of a vector.
SIZE = 1_000_003
#: Products that are denormal and normal ones, alternating; all of them, and what is made of them, are exact.
X = np.where(np.arange(SIZE) % 3 == 0, 2.0**-100, 2.0**-40).astype(np.float32)
A, B = (np.full(SIZE, 2.0**power, np.float32) for power in (-35, 100))
TINY = np.finfo(np.float32).tiny
#: The least f32 that is not 0: what denormals in Python's own thread are tried with.
LEAST = np.array([np.float32(1e-45)])


def flushed(x: Array) -> Array:
    """``x`` with zeros in place of denormals."""
    return np.where(np.abs(x) < np.finfo(x.dtype).tiny, x.dtype.type(0), x)


def network() -> onnx.ModelProto:
    """``p = x * a``, then ``y = p * b``."""

    def info(name: str) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, (SIZE,))

    nodes = [
        helper.make_node("Mul", ["x", "a"], ["p"], name="small"),
        helper.make_node("Mul", ["p", "b"], ["y"], name="large"),
    ]
    graph = helper.make_graph(nodes, "two", [info(n) for n in "xab"], [info(n) for n in "py"])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@cache
def compiled(kind: str, setting: str, sanitize: bool = False) -> Executable:
    return lb.compile(network(), f"{kind} -denormals={setting}", sanitize=sanitize)


def wanted(setting: str) -> tuple[Array, Array]:
    """What numpy makes of X, A and B."""
    product = X * A
    assert ((product != 0) & (product < TINY)).any()
    if setting == "flush":
        product = flushed(product)
    return product, product * B


def check(outputs: Any, setting: str) -> None:
    for found, want in zip(outputs, wanted(setting), strict=True):
        np.testing.assert_array_equal(np.asarray(found), want)


@pytest.fixture(autouse=True)
def many_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads for which this machine may have no core."""
    monkeypatch.setattr("landbridge.vm.thread_pool.usable_cores", lambda: 8)


@pytest.fixture(autouse=True)
def own_floats() -> Iterator[None]:
    """Arithmetic of this thread keeps denormals, before and after."""
    yield
    assert (np.float32(3e-45) == LEAST + LEAST).all()
    assert (LEAST * np.float32(4) != 0).all()


def by_run(executable: Executable, threads: int) -> list[Array]:
    session = lb.Session(executable, num_threads=threads)
    for name, value in zip("xab", (X, A, B), strict=True):
        session.set_input(name, value)
    session.run()
    return [np.asarray(session.get_output(i)) for i in range(2)]


def by_call(executable: Executable, threads: int) -> list[Array]:
    return [np.asarray(y) for y in lb.Session(executable, num_threads=threads)(X, A, B)]


def in_background(executable: Executable, threads: int) -> list[Array]:
    session = lb.Session(executable, num_threads=threads)
    for name, value in zip("xab", (X, A, B), strict=True):
        session.set_input(name, value)
    session.run_async().wait()
    return [np.asarray(session.get_output(i)) for i in range(2)]


VARIANTS: dict[str, Callable[[Executable, int], list[Array]]] = {
    "run": by_run,
    "call": by_call,
    "background": in_background,
}


@pytest.mark.sample(4)
@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("way", VARIANTS)
@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("kind", KINDS)
def test_every_thread_of_a_session_does_what_its_target_says(kind: str, setting: str, way: str, threads: int) -> None:
    for _ in range(5):
        check(VARIANTS[way](compiled(kind, setting), threads), setting)


def test_denormals_are_flushed_unless_the_target_says_otherwise() -> None:
    check(by_call(lb.compile(network()), 1), "flush")


@pytest.mark.parametrize("setting", SETTINGS)
def test_sanitized_kernels_give_the_same(setting: str) -> None:
    check(by_call(compiled("llvm", setting, sanitize=True), 2), setting)


@pytest.mark.parametrize("setting", SETTINGS)
def test_a_file_keeps_the_setting(setting: str, tmp_path: Path) -> None:
    compiled("llvm", setting).save(tmp_path / "two.lbx")
    loaded = lb.load(tmp_path / "two.lbx")
    assert setting in repr(loaded.modules[0].image)[-20:].replace("kept", "keep")
    check(by_call(loaded, 2), setting)


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("kind", KINDS)
def test_kernels_by_name_and_in_shared_libraries(kind: str, setting: str, tmp_path: Path) -> None:
    module = Module(compiled(kind, setting))
    module.export(tmp_path / "two.so")
    (name,) = module  # both products are one kernel
    for multiply in (module[name], tvm_ffi.load_module(str(tmp_path / "two.so"))[name]):
        p, y = np.empty_like(X), np.empty_like(X)
        multiply(X, A, p)
        multiply(p, B, y)
        check([p, y], setting)


@pytest.mark.parametrize("setting", SETTINGS)
def test_a_trace_computes_the_same(setting: str) -> None:
    """A trace gives no results: here what is computed is the index 1 into one element, or 0 where it is flushed."""
    info = helper.make_tensor_value_info
    inputs = [info(name, TensorProto.FLOAT, (1,)) for name in "xabt"]
    nodes = [
        helper.make_node("Mul", ["x", "a"], ["p"]),
        helper.make_node("Mul", ["p", "b"], ["q"]),
        helper.make_node("Cast", ["q"], ["i"], to=TensorProto.INT64),
        helper.make_node("Gather", ["t", "i"], ["y"]),
    ]
    graph = helper.make_graph(nodes, "index", inputs, [info("y", TensorProto.FLOAT, (1,))])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    executable = lb.compile(model, f"llvm -denormals={setting}", check_indices=True)
    values = {"x": 2.0**-92, "a": 2.0**-35, "b": 2.0**127, "t": 1.0}
    given = {name: lb.Tensor.from_numpy_view(np.array([value], np.float32)) for name, value in values.items()}
    if setting == "flush":
        assert trace_run(executable, "cpu", given)
    else:
        with pytest.raises(IndexRangeError):
            trace_run(executable, "cpu", given)


@pytest.mark.parametrize("threads", [1, 2])
def test_kernels_of_two_targets_in_one_program(threads: int) -> None:
    """Each does what its own target says, in one native run."""
    targets = {"a": "llvm -denormals=keep", "b": "llvm -denormals=flush"}
    for first, second, want in (
        ("a", "b", [X * A, flushed(X * A) * B]),
        ("b", "a", [flushed(X * A), flushed(X * A) * B]),
    ):
        executable = lb.compile(network(), targets, place={"small": first, "large": second})
        outputs = lb.Session(executable, devices={"a": "cpu", "b": "cpu"}, num_threads=threads)(X, A, B)
        for found, wants in zip(outputs, want, strict=True):
            np.testing.assert_array_equal(np.asarray(found), wants)


def test_sessions_of_both_settings_in_threads_that_share_a_pool() -> None:
    wrong: list[str] = []

    def work(setting: str) -> None:
        session = lb.Session(compiled("llvm", setting), num_threads=3)
        for _ in range(8):
            for found, want in zip(session(X, A, B), wanted(setting), strict=True):
                if not np.array_equal(np.asarray(found), want):
                    wrong.append(setting)
        if not (np.float32(3e-45) == LEAST + LEAST).all():
            wrong.append(f"the thread after {setting}")

    threads = [threading.Thread(target=work, args=(setting,)) for setting in (*SETTINGS, *SETTINGS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def conv() -> tuple[onnx.ModelProto, Array, Array]:
    """A convolution whose input is denormal: every product and sum is exact, whatever their order."""
    rng = np.random.default_rng(0)
    x = (rng.integers(-3, 4, (1, 16, 9, 9)) * 2.0**-145).astype(np.float32)
    w = rng.integers(-2, 3, (24, 16, 1, 1)).astype(np.float32)
    infos = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in (("x", x.shape), ("y", (1, 24, 9, 9)))]
    graph = helper.make_graph(
        [helper.make_node("Conv", ["x", "w"], ["y"])],
        "conv",
        infos[:1],
        infos[1:],
        [helper.make_tensor("w", TensorProto.FLOAT, w.shape, w.tobytes(), raw=True)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return model, x, np.einsum("nchw,oc->nohw", x.astype(np.float64), w[:, :, 0, 0]).astype(np.float32)


@pytest.mark.sample(2)
@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("kind", KINDS)
def test_denormal_activations_of_a_convolution(kind: str, setting: str) -> None:
    model, x, want = conv()
    assert want.any()
    (found,) = lb.Session(lb.compile(model, f"{kind} -denormals={setting}"))(x)
    np.testing.assert_array_equal(np.asarray(found), want if setting == "keep" else np.zeros_like(want))


@pytest.mark.parametrize("setting", SETTINGS)
def test_weights_that_are_set_are_prepared_by_the_same_rules(setting: str) -> None:
    model, x, want = conv()
    session = lb.Session(lb.compile(model, f"llvm -denormals={setting}", mutable=["w"]))
    (found,) = session(x)
    np.testing.assert_array_equal(np.asarray(found), want if setting == "keep" else np.zeros_like(want))


@pytest.mark.parametrize("setting", SETTINGS)
def test_sixteen_bits_and_double(setting: str) -> None:
    """All denormals of f16 are numbers of f32, in which it is computed: they are kept. Those of f64 are flushed."""
    for dtype, small, factor in ((np.float16, 2.0**-20, 0.5), (np.float64, 2.0**-1000, 2.0**-40)):
        x, a = (np.full(SIZE, value, dtype) for value in (small, factor))
        kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        infos = [helper.make_tensor_value_info(n, kind, (SIZE,)) for n in "xay"]
        graph = helper.make_graph([helper.make_node("Mul", ["x", "a"], ["y"])], "mul", infos[:2], infos[2:])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        (found,) = lb.Session(lb.compile(model, f"llvm -denormals={setting}"))(x, a)
        want = x * a
        assert (want < np.finfo(dtype).tiny).all() and want.all()
        if setting == "flush" and dtype == np.float64:
            want = flushed(want)
        np.testing.assert_array_equal(np.asarray(found), want)
