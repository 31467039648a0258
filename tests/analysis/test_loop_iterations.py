"""The bound of a work-item's iterations, compared with those that are counted by executing its loops."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from onnx import TensorProto, helper
from xdsl.dialects import arith, func, gpu, memref, scf
from xdsl.ir import Block, SSAValue

import landbridge as lb
from landbridge.analysis.loop_iterations import most_iterations
from landbridge.compiler.compilation import lower_kernels
from landbridge.executable.executable import Executable
from landbridge.ir.kernel_attributes import sizes_of
from landbridge.sizes.size import Size
from landbridge.targets import Target


def lowered(monkeypatch: pytest.MonkeyPatch, op: str, shape: tuple[int | str, ...], axis: int) -> list[func.FuncOp]:
    """The kernels of ``op`` along ``axis``, lowered for a grid."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    axes = helper.make_tensor("a", TensorProto.INT64, [] if op == "CumSum" else [1], [axis])
    graph = helper.make_graph([helper.make_node(op, ["x", "a"], ["y"])], "one", [x], [y], [axes])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    found: list[func.FuncOp] = []

    def kept(*args: Any, **options: Any) -> Any:
        result = lower_kernels(*args, **options)
        found.extend(each for each in result[0].body.block.ops if isinstance(each, func.FuncOp))
        return result

    monkeypatch.setattr("landbridge.compiler.compilation.lower_kernels", kept)
    executable: Executable = lb.compile(model, target=Target("vulkan"))
    assert executable is not None
    return found


class Counted:
    """Executes the loops of a work-item where words are ``words``, and counts the iterations."""

    def __init__(self, function: func.FuncOp, words: list[int]) -> None:
        self._words, self._memory = words, function.body.block.args[-1]
        self.count = 0

    def run(self, block: Block, env: dict[SSAValue, Any]) -> None:
        for op in block.ops:
            values = [env.get(operand) for operand in op.operands]
            match op:
                case arith.ConstantOp():
                    env[op.result] = op.value.value.data  # type: ignore[union-attr]
                case memref.LoadOp() if op.memref is self._memory:
                    env[op.res] = self._words[values[1]]
                case arith.IndexCastOp():
                    env[op.result] = values[0]
                case arith.AddiOp() if None not in values:
                    env[op.result] = values[0] + values[1]
                case arith.MuliOp() if None not in values:
                    env[op.result] = values[0] * values[1]
                case arith.MinSIOp() if None not in values:
                    env[op.result] = min(values)
                case gpu.ThreadIdOp() | gpu.BlockIdOp():
                    env[op.result] = 0
                case scf.ForOp():
                    for number in range(*values[:3]):
                        self.count += 1
                        env[op.body.block.args[0]] = number
                        self.run(op.body.block, env)
                    self.count += 1
                case _:
                    for region in op.regions:
                        for inner in region.blocks:
                            self.run(inner, env)


CASES = [
    ("ReduceSum", ("n", 4), 0, {"n": 70}),
    ("ReduceSum", ("n", 4), 0, {"n": 5000}),
    ("ReduceSum", (3, "n"), 1, {"n": 1025}),
    ("ReduceSum", ("m", "n"), 1, {"m": 7, "n": 31}),
    ("ReduceMax", ("n", 4), 0, {"n": 999}),
    ("ReduceSum", (4, 4, 40000), 0, {}),
    ("CumSum", ("n", 4), 0, {"n": 300}),
    ("CumSum", (300, 4), 0, {}),
]


@pytest.mark.parametrize(("op", "shape", "axis", "sizes"), CASES)
def test_the_bound_is_close(
    op: str, shape: tuple[int | str, ...], axis: int, sizes: Mapping[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    for kernel in lowered(monkeypatch, op, shape, axis):
        words = [size.at(sizes) if isinstance(size, Size) else size for size in sizes_of(kernel)]
        bound = most_iterations(kernel)
        assert bound is not None
        most = bound.at(sizes) if isinstance(bound, Size) else bound
        counts = []
        for launch in (each for each in kernel.body.block.ops if isinstance(each, gpu.LaunchOp)):
            counted = Counted(kernel, words)
            counted.run(launch.body.block, {})
            counts.append(counted.count)
        found = max(counts, default=0)
        assert found <= most <= 1.1 * found + 1100, (counts, most)  # a sum of sums counts its last block as full
