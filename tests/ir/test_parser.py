"""IR text that threads parse at once: each gets what it gives, and xDSL's classes stay as they were."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from xdsl.dialects import linalg
from xdsl.ir import Operation

from landbridge.ir.module import IRModule
from landbridge.targets import Target

FILLS = 20
TEXT = (
    'builtin.module {\n  func.func @f(%0: memref<4xf32, "global">) attributes {lb.prim} {\n'
    "    %1 = arith.constant 0.0 : f32\n"
    + '    linalg.fill ins(%1 : f32) outs(%0 : memref<4xf32, "global">)\n' * FILLS
    + "    func.return\n  }\n}\n"
)


@pytest.fixture
def switches() -> Iterator[None]:
    """Another thread runs after ten microseconds."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def parse(_: int) -> IRModule:
    return IRModule.parse(TEXT, (Target("llvm"),))


@pytest.mark.usefixtures("switches")
def test_threads_parse_at_once() -> None:
    before = Operation.__post_init__
    with ThreadPoolExecutor(4) as pool:
        for module in pool.map(parse, range(24)):
            fills = [op for op in module.op.walk() if isinstance(op, linalg.ops.FillOp)]
            assert len(fills) == FILLS
            assert [len(op.body.block.ops) for op in fills] == [1] * FILLS
            assert sum(isinstance(op, linalg.ops.YieldOp) for op in module.op.walk()) == FILLS
    assert Operation.__post_init__ is before
