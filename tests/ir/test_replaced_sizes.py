"""Sizes of IR that is built already, replaced by those of narrower dimensions."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block

from landbridge.ir.graph_builder import GraphBuilder
from landbridge.ir.module import IRModule
from landbridge.ir.replaced_sizes import SizeReplacer, replace_sizes
from landbridge.ir.types import shape_of, tensor_type
from landbridge.sizes.replaced import replaced
from landbridge.sizes.size import Extent, Size, dimension
from landbridge.targets import Target

N = dimension("n")


def _to(name: str, value: Extent):
    return lambda extent: replaced(extent.terms, {name: value}) if isinstance(extent, Size) else extent


def _built() -> tuple[IRModule, GraphBuilder]:
    """A module with a slice of ``n`` elements, whose kernel computes with ``n - 1``."""
    module = IRModule(ModuleOp([]), (Target("llvm"),))
    block = Block(arg_types=[tensor_type((2, N), "float32")])
    g = GraphBuilder(module, block)
    x = g.elementwise("less", [block.args[0]], lambda s, v: v - s.cast(s.const(N - 1, "int64"), "float32"))
    g.reshape(x, (2 * N - 2,), 2)
    return module, g


def test_values_stay_and_their_types_change() -> None:
    module, g = _built()
    results = [result for op in g.block.ops for result in op.results]
    SizeReplacer(_to("n", dimension("n", 8, 64))).operations(g.block.ops)
    assert results == [result for op in g.block.ops for result in op.results]
    (view,) = [op for op in g.block.ops if op.name == "lb.view"]
    assert shape_of(view.results[0].type) == (2 * dimension("n", 8, 64) - 2,)
    replace_sizes(module, _to("n", dimension("n", 8, 64)))
    assert "n" in str(module.op)


def test_a_size_that_becomes_a_number_is_a_constant() -> None:
    module, _ = _built()
    assert "lb.size" in str(module.op)
    replace_sizes(module, _to("n", 5))
    assert "lb.size" not in str(module.op)
    assert [op.value.value.data for op in module.op.walk() if isinstance(op, arith.ConstantOp)] == [4]
    module.op.verify()


def test_other_sizes_stay() -> None:
    module, _ = _built()
    before = str(module.op)
    replace_sizes(module, _to("m", 5))
    assert str(module.op) == before
