"""The form "loops": what lowering makes of every operator, every access of it proved."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from tests.ops import node_cases
from tests.ops.test_node_cases import NAMES
from xdsl.dialects import gpu
from xdsl.dialects.builtin import ModuleOp, VectorType

import landbridge as lb
from landbridge.codegen.loops import loop_functions
from landbridge.codegen.registry import register_codegen
from landbridge.errors import AccessError, CodegenError, FallbackWarning
from landbridge.executable.device_image import DeviceImage
from landbridge.executable.parts import ModuleImage
from landbridge.ir.module import IRModule
from landbridge.passes.lower import lowering_for
from landbridge.targets import TargetKind, names, register

KIND = "plain-loops"


def plain(module: ModuleOp, target: lb.Target) -> ModuleImage:
    """No code, after a look at the form."""
    for op in module.walk():
        assert not isinstance(op, gpu.LaunchOp | gpu.BarrierOp), op
        assert not any(isinstance(v.type, VectorType) for v in (*op.operands, *op.results)), op
    functions = {f.name: f.sequence for f in loop_functions(module)}
    return ModuleImage(target.to_json(), DeviceImage("none", b"", functions))


if KIND not in names():
    register(TargetKind(KIND, "what a device without vectors is given", (), ("plain",), form="loops"))
    register_codegen(KIND, plain)


@pytest.mark.sample(18)
@pytest.mark.parametrize("name", NAMES[::3])
def test_every_operator(name: str) -> None:
    def run(module: IRModule, feeds: Mapping[str, np.ndarray[Any, Any]]) -> Sequence[np.ndarray[Any, Any]]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FallbackWarning)  # of host functions and branches
            lb.compile(module, KIND)
        return node_cases.run_compiled(module, feeds)

    node_cases.check(name, lb.Target("llvm"), run)


def test_an_access_that_is_not_proved_is_refused() -> None:
    module = IRModule.parse(
        """builtin.module {
          func.func @shift(%x: memref<4xf32, "global">, %y: memref<4xf32, "global">) attributes {lb.prim} {
            linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>],
                iterator_types = ["parallel"]} ins(%x : memref<4xf32, "global">) outs(%y : memref<4xf32, "global">)
                attrs = {lb.extents = [4 : i64]} {
              ^bb0(%a: f32, %b: f32):
              %i = linalg.index 0 : index
              %one = arith.constant 1 : index
              %j = arith.addi %i, %one : index
              %v = memref.load %x[%j] : memref<4xf32, "global">
              linalg.yield %v : f32
            }
            func.return
          }
        }""",
        (lb.Target(KIND),),
    )
    with pytest.raises(AccessError, match=r"@shift reads operand 0, .* at elements 1 to 4"):
        lowering_for(lb.Target(KIND))(module.prims()["shift"])


def test_what_is_no_function_is_refused() -> None:
    with pytest.raises(CodegenError, match="only functions can be compiled"):
        loop_functions(ModuleOp([ModuleOp([])]))
    assert loop_functions(ModuleOp([])) == []
