"""LoopBuilder: scalar code with loops and branches, for stages that are no loop nest over elements."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeAlias

from xdsl.dialects import scf
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint

from landbridge.ir.fill import fill
from landbridge.ir.scalars import Number, ScalarBuilder, Value
from landbridge.sizes.size import Extent, largest

#: Values that one iteration of a loop passes to the next.
Carried: TypeAlias = Sequence[Value]


class LoopBuilder(ScalarBuilder):
    """A ScalarBuilder with ``for``, ``while`` and ``if``; their bodies are Python functions that are called once.

    A body may use values of the code around it. Only the values that it returns reach the code after it.
    """

    def inside(self, v: Value, extent: Extent) -> Value:
        """Returns the integer ``v`` as an index proved to be below ``extent``: an index out of range becomes the last
        one."""
        last = self.const(largest(extent - 1, 0), "uint64")
        return self.cast(self.minimum(self.cast(v, "uint64"), last), "index")

    def fill(self, target: SSAValue, value: Value) -> None:
        """Write ``value``, a constant, to all elements of ``target``."""
        self._builder.insert(fill(value.ssa, target))

    def loop(
        self, low: Number, high: Number, carried: Carried, body: Callable[..., Carried], step: int = 1
    ) -> list[Value]:
        """Emit ``for i in range(low, high, step)``: ``body(i, *carried)`` returns the carried values of the next
        iteration.

        Returns the values after the last iteration; ``carried`` itself if there is none.
        """
        first, last, by = (self.value(each, "index").ssa for each in (low, high, step))
        block = Block(arg_types=[IndexType(), *(v.ssa.type for v in carried)])
        counter, *inside = block.args
        with self._at_end_of(block):
            self._end(scf.YieldOp, body(self.wrap(counter, "index"), *self._as(inside, carried)))
        op = scf.ForOp(first, last, by, [v.ssa for v in carried], Region(block))
        return self._as(self._builder.insert(op).results, carried)

    def repeat(
        self, carried: Carried, test: Callable[..., tuple[Value, Carried]], body: Callable[..., Carried]
    ) -> list[Value]:
        """Emit ``while``: ``test(*carried)`` returns whether to go on, and values; ``body(*values)`` returns the next
        carried ones.

        Returns the values of the test that ended it.
        """
        before = Block(arg_types=[v.ssa.type for v in carried])
        with self._at_end_of(before):
            condition, passed = test(*self._as(before.args, carried))
            values = [v.ssa for v in passed]
            self._builder.insert(scf.ConditionOp(condition.ssa, *values))
        types = [v.type for v in values]
        after = Block(arg_types=types)
        with self._at_end_of(after):
            self._end(scf.YieldOp, body(*self._as(after.args, passed)))
        op = scf.WhileOp([v.ssa for v in carried], types, Region(before), Region(after))
        return self._as(self._builder.insert(op).results, passed)

    def branch(
        self, condition: Value, then: Callable[[], Carried], otherwise: Callable[[], Carried] = lambda: ()
    ) -> list[Value]:
        """Returns the values of ``then()`` if ``condition`` holds, else those of ``otherwise()``; only one of them
        runs."""
        regions, results = [], []
        for build in (then, otherwise):
            block = Block()
            with self._at_end_of(block):
                results.append(list(build()))
                self._end(scf.YieldOp, results[-1])
            regions.append(Region(block))
        op = scf.IfOp(condition.ssa, [v.ssa.type for v in results[0]], regions[0], regions[1])
        return self._as(self._builder.insert(op).results, results[0])

    def _as(self, values: Sequence[SSAValue], like: Carried) -> list[Value]:
        return [self.wrap(value, each.dtype) for value, each in zip(values, like, strict=True)]

    def _end(self, terminator: type[Operation], values: Carried) -> None:
        self._builder.insert(terminator.create(operands=[v.ssa for v in values]))

    @contextmanager
    def _at_end_of(self, block: Block) -> Iterator[None]:
        outside = self._builder.insertion_point
        self._builder.insertion_point = InsertPoint.at_end(block)
        yield
        self._builder.insertion_point = outside
