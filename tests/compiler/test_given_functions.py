"""Functions of IR that is compiled: each is callable by its name, whatever @main does with it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import landbridge as lb
from landbridge.errors import CompileError
from landbridge.ir.module import IRModule
from landbridge.targets import Target
from tests.devices.opencl.transfers import filled, read
from tests.frontend.test_ir_text import X, network, result

SPACE = 'memref<4x8xf32, "global">'
MAPS = "indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>]"


def function(name: str, operation: str, flipped: bool = False) -> str:
    source, target = ("%1", "%0") if flipped else ("%0", "%1")
    return f"""  func.func @{name}(%0: {SPACE}, %1: {SPACE}) attributes {{lb.prim}} {{
    linalg.generic {{{MAPS}, iterator_types = ["parallel", "parallel"]}} ins({source} : {SPACE}) outs({target} : {SPACE}) attrs = {{lb.extents = [4 : i64, 8 : i64]}} {{
    ^bb0(%2: f32, %3: f32):
      %4 = arith.{operation} %2, %2 : f32
      linalg.yield %4 : f32
    }}
    func.return
  }}
"""  # noqa: E501


TENSOR = 'tensor<4x8xf32, #lb.vdevice<0, "global">>'
#: Calls @double twice, which fusion makes one kernel, and never @square.
MAIN = f"""  func.func @main(%0: {TENSOR}) -> {TENSOR} attributes {{lb.input_names = ["x"], lb.output_names = ["y"]}} {{
    %1 = bufferization.alloc_tensor() : {TENSOR}
    %2 = "lb.call"(%0, %1) {{callee = @double, operandSegmentSizes = array<i32: 1, 1>, node = "a"}} : ({TENSOR}, {TENSOR}) -> {TENSOR}
    %3 = bufferization.alloc_tensor() : {TENSOR}
    %4 = "lb.call"(%2, %3) {{callee = @double, operandSegmentSizes = array<i32: 1, 1>, node = "b"}} : ({TENSOR}, {TENSOR}) -> {TENSOR}
    func.return %4 : {TENSOR}
  }}
"""  # noqa: E501
DOUBLE, SQUARE = function("double", "addf"), function("square", "mulf")


def text(*functions: str) -> str:
    return "builtin.module {\n" + "".join(functions) + "}\n"


def check(executable: lb.Executable, expected: dict[str, float], device: str = "cpu") -> None:
    """Each function makes of 3 what is expected."""
    module = lb.Module(executable)
    for name, value in expected.items():
        x, y = (np.full((4, 8), number, np.float32) for number in (3, 0))
        if device == "cpu":
            module[name](x, y)
        else:
            given = filled(device, x), filled(device, y)
            module[name](*given)
            y = read(given[1])
        np.testing.assert_array_equal(y, value, name)


@pytest.mark.parametrize("target", ["llvm", "c", "opencl"])
@pytest.mark.parametrize("saved", [False, True])
def test_every_function_is_callable(tmp_path: Path, target: str, saved: bool) -> None:
    executable = lb.compile(text(DOUBLE, SQUARE, MAIN), {"cpu": target})
    if saved:
        executable.save(tmp_path / "m.lbx")
        executable = lb.load(tmp_path / "m.lbx")
    check(executable, {"double": 6, "square": 9}, "cpu" if target != "opencl" else "opencl:0")
    if target != "opencl":
        x = np.ones((4, 8), np.float32)
        np.testing.assert_array_equal(np.asarray(lb.Session(executable)(x)[0]), 4 * x)
    assert [spec.name for spec in executable.main.inputs] == ["x"] and list(executable.programs) == ["main"]


def test_a_module_without_main_has_functions() -> None:
    executable = lb.compile(text(SQUARE, function("twin", "mulf"), DOUBLE))
    assert sorted(lb.Module(executable)) == ["double", "square", "twin"]
    check(executable, {"square": 9, "twin": 9, "double": 6})
    assert executable.main.instructions == () and executable.memory == ()


def test_a_module_in_memory_is_not_changed() -> None:
    module = IRModule.parse(text(SQUARE), (Target("llvm"),))
    before = module.print()
    check(lb.compile(module), {"square": 9})
    assert module.print() == before


def test_destinations_come_last() -> None:
    with pytest.raises(CompileError, match="@odd writes operand 0 and only reads operand 1; destinations come last"):
        lb.compile(text(function("odd", "addf", flipped=True)))


def test_what_a_program_calls_unchanged_is_compiled_once(tmp_path: Path) -> None:
    executable = lb.compile(network(), dump=tmp_path)
    assert list(executable.functions) == ["main"]  # of a model that is no IR
    (plan,) = tmp_path.glob("*-plan.mlir")
    again = lb.compile(plan.read_text(), constants=executable.constants)
    assert list(again.functions) == ["main"]
    (early,) = tmp_path.glob("03-*.mlir")  # whose functions are fused
    fused = lb.compile(early.read_text(), constants={})
    assert len(lb.Module(fused)) > len(lb.Module(executable))
    assert result(fused).shape == result(executable).shape and X.size
