"""Fills that threads create at once: each has a region of its own, with one operation."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from xdsl.dialects import arith, linalg, memref
from xdsl.dialects.builtin import FloatAttr, f32

from landbridge.ir.fill import fill


@pytest.fixture
def switches() -> Iterator[None]:
    """Another thread runs after ten microseconds."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def create(_: int) -> linalg.ops.FillOp:
    constant = arith.ConstantOp(FloatAttr(1.0, f32))
    target = memref.AllocOp.get(f32, shape=[4])
    return fill(constant.result, target.memref)


@pytest.mark.usefixtures("switches")
def test_threads_create_them_at_once() -> None:
    with ThreadPoolExecutor(4) as pool:
        for op in pool.map(create, range(400)):
            op.verify(verify_nested_ops=False)
            (yielded,) = op.body.block.ops
            assert isinstance(yielded, linalg.ops.YieldOp) and list(yielded.operands) == [op.body.block.args[0]]


def test_it_is_what_the_constructor_makes() -> None:
    mine = create(0)
    theirs = linalg.ops.FillOp(list(mine.inputs), list(mine.outputs), [])
    assert mine.is_structurally_equivalent(theirs, {v: v for v in (*mine.inputs, *mine.outputs)})
