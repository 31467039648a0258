"""What depends on parameters alone comes first, keeps its memory, and nothing else is there."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper
from tests.frontend.models import model, value
from xdsl.ir import BlockArgument, Operation

from landbridge.analysis.lifetimes import root
from landbridge.compiler.compilation import PIPELINE
from landbridge.frontend.onnx.import_request import ImportRequest
from landbridge.frontend.onnx.importer import import_onnx
from landbridge.ir.graph_ops import CallOp, ConstantOp, IfOp
from landbridge.ir.memory_ops import AllocTensorOp, PreparedOp
from landbridge.ir.module import IRModule, parameters
from landbridge.ir.types import nbytes_of
from landbridge.passes.registry import run_pipeline
from landbridge.targets import Target

RNG = np.random.default_rng(3)
WEIGHTS = {
    "first": RNG.standard_normal((32, 16, 3, 3), dtype=np.float32),
    "second": RNG.standard_normal((48, 32, 1, 1), dtype=np.float32),
    "head": RNG.standard_normal((48, 32), dtype=np.float32),
}


def network(mutable: tuple[str, ...], target: str = "llvm") -> IRModule:
    nodes = [
        helper.make_node("Conv", ["x", "first"], ["a"], pads=[1, 1, 1, 1]),
        helper.make_node("Conv", ["a", "second"], ["c"]),
        helper.make_node("GlobalAveragePool", ["c"], ["d"]),
        helper.make_node("Flatten", ["d"], ["e"]),
        helper.make_node("MatMul", ["e", "head"], ["y"]),
    ]
    proto = model(nodes, [value("x", (1, 16, 10, 10))], [value("y", (1, 32))], WEIGHTS)
    return import_onnx(ImportRequest(proto, (Target(target),), mutable=mutable)).module


def planned(mutable: tuple[str, ...]) -> IRModule:
    return run_pipeline(network(mutable), PIPELINE)


def before_and_after(module: IRModule) -> tuple[list[Operation], list[Operation]]:
    """The calls before and after ``lb.prepared``."""
    ops = list(module.main.body.block.ops)
    (end,) = [n for n, op in enumerate(ops) if isinstance(op, PreparedOp)]
    found = [[op for op in part if isinstance(op, CallOp | IfOp)] for part in (ops[:end], ops[end:])]
    return found[0], found[1]


def test_without_parameters_nothing_is_prepared() -> None:
    assert not any(isinstance(op, PreparedOp) for op in planned(()).main.body.block.ops)


@pytest.mark.parametrize("mutable", [("first",), ("second", "head"), tuple(WEIGHTS)])
def test_the_first_part_reads_parameters_and_constants_alone(mutable: tuple[str, ...]) -> None:
    module = planned(mutable)
    weights = parameters(module)
    first, later = before_and_after(module)
    assert len(first) >= len(mutable) and len(later) >= 4
    written = {root(v) for op in first for v in op.destinations}
    for op in first:
        for v in map(root, op.inputs):
            assert v in weights or isinstance(v.owner, ConstantOp) or v in written
    assert not any(isinstance(v, BlockArgument) for v in written)
    # and what is left to the runs is more than that
    assert all(any(root(v) not in weights | written for v in op.inputs) for op in later)


def test_nothing_is_written_where_prepared_values_are() -> None:
    module = planned(tuple(WEIGHTS))
    (end,) = [op for op in module.main.body.block.ops if isinstance(op, PreparedOp)]
    retained = [place(v.owner) for v in map(root, end.buffers)]
    assert len(retained) == 3
    _, later = before_and_after(module)
    for op in later:
        for v in map(root, op.destinations):
            if isinstance(v.owner, AllocTensorOp):
                begin, stop = place(v.owner)
                assert all(stop <= first or last <= begin for first, last in retained)


def place(op: Operation) -> tuple[int, int]:
    assert isinstance(op, AllocTensorOp)
    offset = op.offset.value.data
    return offset, offset + nbytes_of(op.result.type)


def test_it_prints_and_parses() -> None:
    module = network(tuple(WEIGHTS))
    for number, name in enumerate(PIPELINE):
        module = run_pipeline(module, (name,))
        text = module.print()
        assert IRModule.parse(text, module.targets, constants=module.constants).print() == text
        assert ("lb.prepared" in text) == (number >= PIPELINE.index("prepare"))
