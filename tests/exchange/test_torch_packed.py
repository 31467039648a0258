"""Kernels called as PackedFuncs with torch tensors and numpy arrays, in place; what does not fit is an exception."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import tvm_ffi
from onnx import TensorProto, helper

import landbridge as lb
from tests.selection.installed import package

torch = package("torch", "peers")

#: Operators as a graph ``y = f(x, w)``, with torch's way to say the same.
GRAPHS: dict[str, tuple[list[tuple[str, list[str], str]], Callable[..., torch.Tensor]]] = {
    "add": ([("Add", ["x", "w"], "y")], lambda x, w: x + w),
    "swish": ([("Mul", ["x", "w"], "p"), ("Sigmoid", ["p"], "q"), ("Mul", ["p", "q"], "y")],
              lambda x, w: torch.nn.functional.silu(x * w)),
    "softmax": ([("Sub", ["x", "w"], "p"), ("Softmax", ["p"], "y")], lambda x, w: torch.softmax(x - w, -1)),
    "matmul": ([("MatMul", ["x", "w"], "y")], torch.matmul),
}  # fmt: skip


@pytest.fixture(scope="module", params=["llvm", "c"])
def kernels(request: pytest.FixtureRequest) -> dict[str, tvm_ffi.Function]:
    """The kernel of each graph, on f32[4, 4]."""
    return {name: only_kernel(lb.Module(compiled(name, request.param))) for name in GRAPHS}


def compiled(name: str, target: str) -> lb.Executable:
    infos = {v: helper.make_tensor_value_info(v, TensorProto.FLOAT, (4, 4)) for v in "xwy"}
    nodes = [helper.make_node(op, inputs, [output]) for op, inputs, output in GRAPHS[name][0]]
    graph = helper.make_graph(nodes, name, [infos["x"], infos["w"]], [infos["y"]])
    return lb.compile(helper.make_model(graph), target)


def only_kernel(module: lb.Module) -> tvm_ffi.Function:
    (function,) = module.values()
    return function


def pair() -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(5)
    return torch.randn(4, 4, generator=generator), torch.randn(4, 4, generator=generator)


@pytest.mark.parametrize("name", GRAPHS)
def test_torch_tensors_in_place(name: str, kernels: dict[str, tvm_ffi.Function]) -> None:
    x, w = pair()
    y = torch.full((4, 4), torch.nan)
    address = y.data_ptr()
    with lb.no_copies():
        assert kernels[name](x, w, y) is None
    assert y.data_ptr() == address
    # sums of 4 products, and exp, in another order than torch: a few units in the last place of float32
    torch.testing.assert_close(y, GRAPHS[name][1](x, w), rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("name", GRAPHS)
def test_numpy_and_torch_in_one_call(name: str, kernels: dict[str, tvm_ffi.Function]) -> None:
    x, w = pair()
    y = np.full((4, 4), np.nan, np.float32)
    kernels[name](x, w.numpy(), y)
    again = lb.empty((4, 4), dtype="float32")
    kernels[name](lb.from_dlpack(x), w, again)
    assert np.array_equal(y, np.asarray(again))
    torch.testing.assert_close(torch.from_numpy(y), GRAPHS[name][1](x, w), rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("change", "kind", "message"),
    [
        (lambda x: x.double(), TypeError, "operand 0 is float32.* 64 bits; nothing is cast silently"),
        (lambda x: x.bfloat16(), TypeError, "operand 0 .* DLPack type code 4, 16 bits"),
        (lambda x: x.t(), ValueError, "operand 0 .* the stride of dimension 0 is 1; pass a contiguous copy"),
        (lambda x: x[:, :3], ValueError, "dimension 1 of this tensor is 3"),
        (lambda x: x.reshape(16), ValueError, "this tensor has rank 1"),
        (lambda x: x.tolist(), TypeError, "operand 0 is no tensor"),
        (lambda x: None, TypeError, "operand 0 is no tensor"),
    ],
)
def test_what_does_not_fit_is_an_exception(
    change: Callable[[torch.Tensor], object],
    kind: type[Exception],
    message: str,
    kernels: dict[str, tvm_ffi.Function],
) -> None:
    x, w = pair()
    y = torch.zeros(4, 4)
    with pytest.raises(kind, match=message):
        kernels["add"](change(x), w, y)
    assert not y.any(), "nothing ran"


def test_memory_of_another_device_is_refused(kernels: dict[str, tvm_ffi.Function]) -> None:
    x, w = pair()
    with pytest.raises(RuntimeError, match="meta"):  # what torch says of a tensor without memory
        kernels["add"](x.to("meta"), w, torch.zeros(4, 4))


CHILD = """
import sys
import torch
import tvm_ffi

name, path = sys.argv[1:]
kernel = tvm_ffi.load_module(path)[name]
x, w, y = torch.arange(16.0).reshape(4, 4), torch.ones(4, 4), torch.zeros(4, 4)
kernel(x, w, y)
torch.testing.assert_close(y, x + 1)
try:
    kernel(x.t(), w, y)
except ValueError as error:
    assert "pass a contiguous copy" in str(error)
else:
    raise SystemExit("a wrong call was not refused")
assert not any(part.startswith("landbridge") for part in sys.modules)
print("done")
"""


def test_another_process_calls_an_exported_library_with_torch_alone(tmp_path: Path) -> None:
    module = lb.Module(compiled("add", "llvm"))
    module.export(tmp_path / "add.so")
    (name,) = module
    child = [sys.executable, "-c", CHILD, name, str(tmp_path / "add.so")]
    done = subprocess.run(child, capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
