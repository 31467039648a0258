"""Programs run on small stacks: no kernel takes more of one than ``abi.KERNEL_STACK_BYTES``, whatever it computes.

What a run takes is measured: it runs on memory of ours as its stack (``makecontext``), filled with a pattern before,
and the deepest byte that differs after it is how far it went.
"""

from __future__ import annotations

import ctypes
import platform
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import landbridge as lb
from landbridge.executable.abi import KERNEL_STACK_BYTES, STACK_TEMPORARY_BYTES

FLOAT = TensorProto.FLOAT
_STACK_BYTES = 1 << 20
_PATTERN = 0xC7
#: Of a ``ucontext_t`` of glibc: its bytes, more than it has, and where the stack and the next context are.
_CONTEXT_BYTES, _LINK, _STACK = 8192, 8, 16
_libc = ctypes.CDLL(None)
#: What the kernels of a machine with small caches copy: this one may have larger ones.
SMALL_CACHES = "llvm -l2-bytes=1048576"


def model(
    nodes: list[onnx.NodeProto], inputs: dict[str, tuple[int, ...]], weights: dict[str, Any], outputs: str = "y"
) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(name, FLOAT, shape) for name, shape in inputs.items()],
        [helper.make_tensor_value_info(name, FLOAT, None) for name in outputs.split()],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def weight(*shape: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32) / 8


def product(n: int, k: int | None = None, m: int | None = None) -> onnx.ModelProto:
    k, m = k or n, m or n
    return model([helper.make_node("MatMul", ["a", "b"], ["y"])], {"a": (n, k), "b": (k, m)}, {})


def attention() -> onnx.ModelProto:
    nodes = [
        helper.make_node("MatMul", ["q", "k"], ["s"]),
        helper.make_node("Softmax", ["s"], ["p"], axis=-1),
        helper.make_node("MatMul", ["p", "v"], ["y"]),
    ]
    return model(nodes, {"q": (4, 128, 64), "k": (4, 64, 128), "v": (4, 128, 64)}, {})


def normalized(n: int) -> onnx.ModelProto:
    node = helper.make_node("LayerNormalization", ["x", "s", "b"], ["y"], axis=-1)
    return model([node], {"x": (16, n)}, {"s": weight(n), "b": weight(n)})


def softmax(n: int) -> onnx.ModelProto:
    return model([helper.make_node("Softmax", ["x"], ["y"], axis=-1)], {"x": (8, n)}, {})


def convolution(channels: int, size: int, kernel: int, **attributes: Any) -> onnx.ModelProto:
    group = attributes.get("group", 1)
    node = helper.make_node("Conv", ["x", "w"], ["c"], pads=[kernel // 2] * 4, **attributes)
    nodes = [node, helper.make_node("Relu", ["c"], ["y"])]
    return model(nodes, {"x": (1, channels, size, size)}, {"w": weight(channels, channels // group, kernel, kernel)})


def recurrence() -> onnx.ModelProto:
    node = helper.make_node("LSTM", ["x", "w", "r"], ["y"], hidden_size=64)
    return model([node], {"x": (20, 2, 32)}, {"w": weight(1, 256, 32), "r": weight(1, 256, 64)})


def transposed() -> onnx.ModelProto:
    node = helper.make_node("Transpose", ["x"], ["y"], perm=[1, 0])
    return model([node], {"x": (700, 900)}, {})


def running_sum() -> onnx.ModelProto:
    node = helper.make_node("CumSum", ["x", "axis"], ["y"])
    return model([node], {"x": (64, 3000)}, {"axis": np.array(1, np.int64)})


def reduced() -> onnx.ModelProto:
    nodes = [helper.make_node("Exp", ["x"], ["e"]), helper.make_node("ReduceSum", ["e", "axes"], ["y"])]
    return model(nodes, {"x": (300, 40, 50)}, {"axes": np.array([0, 2], np.int64)})


def resized() -> onnx.ModelProto:
    node = helper.make_node("Resize", ["x", "", "scales"], ["y"], mode="cubic")
    return model([node], {"x": (1, 3, 40, 50)}, {"scales": np.array([1, 1, 2.5, 1.7], np.float32)})


MODELS: dict[str, Callable[[], onnx.ModelProto]] = {
    "product of 64": lambda: product(64),
    "product of 512": lambda: product(512),
    "product of 1024": lambda: product(1024),
    "product of 301x830x1029": lambda: product(301, 830, 1029),
    "attention": attention,
    "softmax of 1000": lambda: softmax(1000),
    "softmax of 100,000": lambda: softmax(100_000),
    "normalization of 768": lambda: normalized(768),
    "normalization of 50,000": lambda: normalized(50_000),
    "convolution": lambda: convolution(64, 28, 3),
    "depthwise convolution": lambda: convolution(32, 56, 5, group=32),
    "recurrence": recurrence,
    "transpose": transposed,
    "running sum": running_sum,
    "reduction": reduced,
    "resize": resized,
}


def deepest(session: lb.Session) -> int:
    """Bytes of stack that a run of ``session`` takes on the calling thread, compiled code alone."""
    session.run()  # which binds what has no memory yet
    native = session._executor.program.runs.frame.execute
    function, arguments = native.func, (*native.args,)  # type: ignore[attr-defined]
    values = [ctypes.cast(each, ctypes.c_void_p).value if each is not None else 0 for each in arguments[:2]]
    values += [each.value for each in arguments[2:]]
    stack = np.full(_STACK_BYTES, _PATTERN, np.uint8)
    here, there = (ctypes.create_string_buffer(_CONTEXT_BYTES) for _ in range(2))
    assert _libc.getcontext(there) == 0
    ctypes.c_void_p.from_buffer(there, _LINK).value = ctypes.addressof(here)
    ctypes.c_void_p.from_buffer(there, _STACK).value = stack.ctypes.data
    ctypes.c_size_t.from_buffer(there, _STACK + 16).value = _STACK_BYTES
    _libc.makecontext(there, function, len(values), *map(ctypes.c_void_p, values))
    assert _libc.swapcontext(here, there) == 0
    untouched = int(np.argmax(stack != _PATTERN))
    assert stack[untouched] != _PATTERN, "the run was not on this stack"
    return _STACK_BYTES - untouched


def zeros(program: lb.Executable) -> list[np.ndarray[Any, Any]]:
    return [np.full(spec.shape, 0.5, spec.dtype) for spec in program.main.inputs]


@pytest.fixture
def contexts_of_x86_64() -> None:
    if platform.machine() != "x86_64":
        pytest.skip("contexts are those of glibc on x86-64")


@pytest.mark.sample(4)
@pytest.mark.usefixtures("contexts_of_x86_64")
@pytest.mark.parametrize("target", ["llvm", SMALL_CACHES, "llvm -mcpu=x86-64-v3", "c"])
@pytest.mark.parametrize("name", MODELS)
def test_no_kernel_takes_more_stack_than_the_bound(name: str, target: str) -> None:
    program = lb.compile(MODELS[name](), target=target)
    session = lb.Session(program, num_threads=1)
    for number, array in enumerate(zeros(program)):
        session.set_input(number, array)
    assert 0 < deepest(session) <= KERNEL_STACK_BYTES


@pytest.mark.usefixtures("contexts_of_x86_64")
def test_the_measure_sees_what_is_on_the_stack() -> None:
    """Of a row of 4,000 numbers that a kernel keeps between its stages."""
    program = lb.compile(normalized(3000), target="llvm")
    session = lb.Session(program, num_threads=1)
    session.set_input(0, np.full((16, 3000), 0.5, np.float32))
    assert 0 < program.scratch_bytes <= STACK_TEMPORARY_BYTES
    assert deepest(session) >= program.scratch_bytes


@pytest.mark.sample(2)
@pytest.mark.parametrize("stack", [96 << 10, 128 << 10])
@pytest.mark.parametrize("threads", [1, 2])
def test_threads_with_small_stacks_run_what_has_a_workspace(stack: int, threads: int) -> None:
    """Each at its own time and with its own numbers: no two have the same workspace."""
    program = lb.compile(product(512), target=SMALL_CACHES)
    assert program.scratch_bytes >= 128 << 10, "the case is about temporaries that no such stack has"
    session = lb.Session(program, num_threads=threads)
    rng = np.random.default_rng(0)
    pairs = [rng.standard_normal((2, 512, 512)).astype(np.float32) for _ in range(6)]
    found: list[Any] = [None] * len(pairs)

    def run(number: int) -> None:
        for _ in range(5):
            found[number] = np.array(session(*pairs[number])[0])

    before = threading.stack_size(stack)
    try:
        workers = [threading.Thread(target=run, args=(number,)) for number in range(len(pairs))]
        for worker in workers:
            worker.start()
    finally:
        threading.stack_size(before)
    for worker in workers:
        worker.join()
    for (a, b), y in zip(pairs, found, strict=True):
        np.testing.assert_allclose(y, a.astype(np.float64) @ b, atol=1e-3)
