"""Checkpoint: takes back what a GraphBuilder has appended since."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from xdsl.ir import Block, Operation, SSAValue

from landbridge.ir.graph_builder import GraphBuilder
from landbridge.ir.traversal import operations


class Checkpoint:
    """The state of ``g``, the builder of ``@main``, and of its module."""

    def __init__(self, g: GraphBuilder) -> None:
        module, data = g.module, g.data
        self._g = g
        self._last = g.block.last_op, module.op.body.block.last_op
        self._counts = len(module.constants), len(module.bodies), len(g.guards), len(g.whole), len(g.growths)
        self._lengths = len(g.lengths)
        self._prims, self._spent = module.prim_count, g.budget.spent
        self._read, self._data = set(g.read_dimensions), data.checkpoint()

    def restore(self) -> None:
        """Remove the operations, functions, constants and facts that were added since, and uses by abandoned graphs."""
        g, module = self._g, self._g.module
        constants, bodies, guards, whole, growths = self._counts
        for block, last in zip((g.block, module.op.body.block), self._last, strict=True):
            while block.last_op is not None and block.last_op is not last:
                _erase(block.last_op)
        module.prim_count = self._prims
        module.forget_constants(constants)
        for table, count in ((module.bodies, bodies), (g.whole, whole), (g.growths, growths)):
            _shorten(table, count)
        _shorten(g.lengths, self._lengths)
        del g.guards[guards:]
        g.budget.spent = self._spent
        g.read_dimensions.intersection_update(self._read)
        g.data.restore(self._data)
        _drop_abandoned_uses(g.block)


def _erase(op: Operation) -> None:
    op.detach()  # type: ignore[no-untyped-call]
    op.erase(safe_erase=False)


def _shorten(table: dict[Any, Any], count: int) -> None:
    while len(table) > count:
        table.popitem()


def _drop_abandoned_uses(block: Block) -> None:
    """Remove the uses of values of ``block`` by operations of graphs that were begun and never became part of it."""
    values: Iterable[SSAValue] = (*block.args, *(result for op in operations(block) for result in op.results))
    for value in values:
        while (use := value.first_use) is not None:  # the newest
            if use.operation.parent is block or _root(use.operation) is block:
                break
            value.remove_use(use)


def _root(op: Operation) -> Block | None:
    """Returns the outermost block that ``op`` is in."""
    block = op.parent_block()
    while block is not None and (parent := block.parent_op()) is not None:
        block = parent.parent_block()
    return block
