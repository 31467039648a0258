"""Kernels as PackedFuncs: called from this process, checked by generated code, exported for another process."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
import tvm_ffi
from onnx import TensorProto, helper

import landbridge as lb
from landbridge.errors import ExecutableError, InputError
from landbridge.executable.executable import Executable
from landbridge.module import Module
from tests.vm import programs

Array = np.ndarray


def floats(*shape: int) -> Array:
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


def one_node(operator: str, inputs: int, shape: tuple[int, ...]) -> onnx.ModelProto:
    def info(name: str) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)

    names = ["a", "b"][:inputs]
    node = helper.make_node(operator, names, ["c"])
    return helper.make_model(helper.make_graph([node], operator, [info(n) for n in names], [info("c")]))


@pytest.fixture(scope="module", params=["llvm", "c"])
def compiled(request: pytest.FixtureRequest) -> Executable:
    """An addition of two f32[2, 3, 4], compiled by each generator of CPU code."""
    return lb.compile(one_node("Add", 2, (2, 3, 4)), request.param)


@pytest.fixture(scope="module")
def add(compiled: Executable) -> tvm_ffi.Function:
    module = Module(compiled)
    (name,) = module
    return module[name]


def test_kernels_by_name() -> None:
    module = Module(programs.two_stages())
    assert sorted(module) == ["add", "double"] and len(module) == 2
    assert module.kernels["add"].tasks == 64
    assert [operand.shape for operand in module.kernels["double"].operands] == [(32,), (32,)]
    a, b, c = floats(64), np.ones(64, np.float32), np.zeros(64, np.float32)
    module["add"](a, b, c)
    assert np.array_equal(c, a + b)
    assert module["add"] is module["add"]
    with pytest.raises(KeyError, match="there are: add, double"):
        module["sub"]
    with pytest.raises(InputError, match="module 1 of an executable that has 1"):
        Module(programs.two_stages(), 1)


def test_kernels_inside_branches() -> None:
    assert sorted(Module(programs.branches())) == ["copy", "double", "is_positive"]


@pytest.mark.parametrize(
    "form", [lambda x: x, tvm_ffi.from_dlpack, lb.Tensor.from_numpy_view], ids=["numpy", "tvm_ffi", "landbridge"]
)
def test_any_tensor_is_used_in_place(add: tvm_ffi.Function, form: Callable[[Array], object]) -> None:
    a, b, c = floats(2, 3, 4), floats(2, 3, 4) * 2, np.zeros((2, 3, 4), np.float32)
    assert add(form(a), form(b), form(c)) is None
    assert np.array_equal(c, a + b)


def test_a_function_outlives_its_module(compiled: Executable) -> None:
    function = next(iter(Module(compiled).values()))
    c = np.zeros((2, 3, 4), np.float32)
    function(floats(2, 3, 4), floats(2, 3, 4), c)
    assert np.array_equal(c, 2 * floats(2, 3, 4))


GOOD = floats(2, 3, 4)
UNALIGNED = np.zeros(4 * 24 + 1, np.uint8)[1:].view(np.float32).reshape(2, 3, 4)


@pytest.mark.sample(12)
@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        ((GOOD, GOOD), TypeError, "takes 3 tensors, 2 were given"),
        ((), TypeError, "takes 3 tensors, 0 were given"),
        ((GOOD, 1.5, GOOD), TypeError, r"operand 1 is no tensor; it takes float32\[2, 3, 4\]"),
        ((GOOD, GOOD, None), TypeError, "operand 2 is no tensor"),
        ((GOOD.astype(np.int32), GOOD, GOOD), TypeError, "operand 0 .* DLPack type code 0, 32 bits"),
        ((GOOD, GOOD.astype(np.float64), GOOD), TypeError, "operand 1 .* DLPack type code 2, 64 bits"),
        ((GOOD, GOOD.reshape(6, 4), GOOD), ValueError, r"operand 1 is float32\[2, 3, 4\]; this tensor has rank 2"),
        ((GOOD, GOOD, floats(2, 3, 5)), ValueError, "operand 2 .* dimension 2 of this tensor is 5"),
        ((floats(2, 6, 4)[:, ::2], GOOD, GOOD), ValueError, "operand 0 .* the stride of dimension 0 is 24"),
        ((GOOD, UNALIGNED, GOOD), ValueError, "operand 1 .* not aligned to the 4 bytes of an element"),
    ],
)
def test_what_does_not_fit_is_refused(
    add: tvm_ffi.Function, arguments: tuple[object, ...], kind: type[Exception], message: str
) -> None:
    before = GOOD.copy()
    with pytest.raises(kind, match=message):
        add(*arguments)
    assert np.array_equal(GOOD, before), "nothing ran"


def test_images_without_the_checker_are_refused() -> None:
    from dataclasses import replace

    executable = programs.moves_data()
    (module,) = executable.modules
    symbols = {name: at for name, at in module.image.symbols.items() if name != "landbridge_packed_v3"}
    old = replace(executable, modules=(replace(module, image=replace(module.image, symbols=symbols)),))
    with pytest.raises(ExecutableError, match="compile the model again"):
        Module(old)


CHILD = """
import sys
import numpy as np
import tvm_ffi

name, path = sys.argv[1:]
module = tvm_ffi.load_module(path)
a = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
c = np.zeros_like(a)
module[name](a, a, c)
assert np.array_equal(c, a + a)
try:
    module[name](a, a)
except TypeError as error:
    assert "takes 3 tensors, 2 were given" in str(error)
else:
    raise SystemExit("a wrong call was not refused")
assert not any(part.startswith("landbridge") for part in sys.modules)
with open("/proc/self/maps") as maps:
    modes = [line.split()[1] for line in maps if path in line]
assert modes and not any("w" in mode and "x" in mode for mode in modes), modes
print("done")
"""


PROGRAM = """
import sys
import numpy as np
import landbridge as lb

device, path = sys.argv[1:]
session = lb.Session(lb.load(path), device=device)
a = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
for name in "ab":
    session.set_input(name, a)
session.run()
c = session.get_output(0)
assert np.array_equal(np.array(c.to_device("cpu")), a + a)
assert not any(part.split(".")[0] in ("xdsl", "llvmlite", "onnx") for part in sys.modules)
assert not any(part.startswith(("landbridge.passes", "landbridge.codegen", "landbridge.ir")) for part in sys.modules)
print("done")
"""


@pytest.mark.parametrize("device", ["opencl", "vulkan"])
def test_an_exported_program_of_a_device_needs_no_compiler(device: str, tmp_path: Path) -> None:
    try:
        target = lb.Target.from_device(lb.device(device))
    except lb.LandbridgeError as error:
        pytest.skip(f"no {device} here: {error}")
    path = tmp_path / "add.lbx"
    Module(lb.compile(one_node("Add", 2, (2, 3, 4)), target), device=device).export(path)
    done = subprocess.run([sys.executable, "-c", PROGRAM, device, path], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


def test_an_exported_library_needs_tvm_ffi_alone(compiled: Executable, tmp_path: Path) -> None:
    module = Module(compiled)
    path = tmp_path / "add.so"
    path.write_bytes(b"to be replaced")
    module.export(path)
    assert [p.name for p in tmp_path.iterdir()] == ["add.so"]
    done = subprocess.run(
        [sys.executable, "-c", CHILD, *module, str(path)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


@pytest.mark.parametrize("target", ["llvm", "c"])
def test_functions_of_the_c_library_are_found_by_the_loader(target: str, tmp_path: Path) -> None:
    model = one_node("Atan", 1, (64,))
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.elem_type = onnx.TensorProto.DOUBLE  # of floats the compiler has the code itself
    executable = lb.compile(model, target)
    assert "atan" in executable.modules[0].image.imports
    module = Module(executable)
    module.export(tmp_path / "atan.so")
    x, y = np.linspace(-9, 9, 64), np.zeros(64)
    (name,) = module
    tvm_ffi.load_module(str(tmp_path / "atan.so"))[name](x, y)
    np.testing.assert_allclose(y, np.arctan(x), rtol=1e-15)
