"""A new operation is what xDSL's ``create`` makes, in all that it holds."""

from __future__ import annotations

import pytest
from xdsl.dialects import arith, memref, scf, vector
from xdsl.dialects.builtin import FloatAttr, IndexType, MemRefType, UnitAttr, VectorType, f32
from xdsl.ir import Block, Region

from landbridge.ir.new_operation import new_operation

INDEX = IndexType()
LANES = VectorType(f32, [8])
CASES = [
    (arith.AddfOp, [2, 3], [f32], {}, {}),
    (arith.AddfOp, [2, 3], [f32], {"fastmath": arith.FastMathFlagsAttr("fast")}, {"lb.note": UnitAttr()}),
    (arith.AddiOp, [1, 1], [INDEX], {}, {}),
    (arith.ConstantOp, [], [f32], {"value": FloatAttr(1.5, f32)}, {}),
    (memref.LoadOp, [0, 1], [f32], {}, {}),
    (memref.StoreOp, [2, 0, 1], [], {}, {}),
    (vector.LoadOp, [0, 1], [LANES], {}, {}),
    (scf.YieldOp, [], [], {}, {}),
]


@pytest.mark.parametrize(("kind", "operands", "results", "properties", "attributes"), CASES)
def test_it_is_as_xdsl_makes_it(kind, operands, results, properties, attributes):
    block = Block(arg_types=[MemRefType(f32, [64]), INDEX, f32, f32])
    given = [block.args[i] for i in operands]
    theirs = kind.create(operands=given, result_types=results, properties=properties, attributes=attributes)
    ours = new_operation(kind, given, results, properties, attributes)
    assert {name: getattr(ours, name) for name in ("properties", "attributes", "location", "regions")} == {
        name: getattr(theirs, name) for name in ("properties", "attributes", "location", "regions")
    }
    assert list(ours.properties) == list(theirs.properties)
    assert ours.properties is not properties and ours.attributes is not attributes
    assert list(ours.operands) == given and [r.type for r in ours.results] == results
    assert [(r.op, r.index) for r in ours.results] == [(ours, i) for i in range(len(results))]
    for value in given:
        uses = [(use.operation, use.index) for use in value.uses]
        of_each = [[index for op, index in uses if op is each] for each in (ours, theirs)]
        assert of_each[0] == of_each[1] != []
    block.add_ops([theirs, ours])
    assert theirs.next_op is ours and not ours.successors
    ours.detach()
    ours.erase()
    assert all(use.operation is theirs for value in given for use in value.uses)


def test_regions_are_its_own():
    block = Block(arg_types=[INDEX])
    inner = Region(Block(arg_types=[INDEX]))
    loop = new_operation(scf.ForOp, [block.args[0]] * 3, regions=[inner])
    assert loop.regions == (inner,) and inner.parent is loop
    with pytest.raises(ValueError, match="already attached"):
        new_operation(scf.ForOp, [block.args[0]] * 3, regions=[inner])
