"""The body of a ``Loop`` or ``Scan``, imported once for each trip."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import onnx_ir as ir
from xdsl.ir import Attribute, Block

from landbridge.dtypes import numpy_dtype
from landbridge.errors import CompileError, NodeError, UnsupportedOperatorError
from landbridge.frontend.onnx.graph_walk import GraphWalk
from landbridge.frontend.onnx.unfolded_size import nodes_of_iteration
from landbridge.frontend.onnx.values import Imported, Unknown, is_known
from landbridge.ops.context import OpContext, Operand

#: Longer loops would make graphs nobody wants to wait for.
LONGEST = 4096


class Iterations:
    """The trips of ``node``, whose body takes so many ``inputs`` and gives so many ``outputs``, or more.

    ``name`` is what messages call the node. Raises NodeError for a body that takes or gives others.
    """

    def __init__(self, walk: GraphWalk, node: ir.Node, inputs: int, outputs: int) -> None:
        self.name = f"{node.op_type} node {walk.g.node!r}"
        self.body = node.attributes["body"].as_graph()
        self._walk = walk
        if len(self.body.inputs) != inputs or len(self.body.outputs) < outputs:
            raise NodeError(
                f"{self.name}: its body takes {len(self.body.inputs)} inputs and gives "
                f"{len(self.body.outputs)} outputs; {inputs}, and {outputs} or more, are legal for its operands"
            )

    def expect(self, trips: int) -> None:
        """Refuse so many trips now, where they would be refused after a long walk."""
        self.bound(trips - 1)
        self.foresee(trips, trips * nodes_of_iteration(self.body, self._walk.values))

    def bound(self, iteration: int) -> None:
        """Refuse the trip of that number where it is too many."""
        if iteration >= LONGEST:
            raise UnsupportedOperatorError(
                f"{self.name} runs more than {LONGEST} times and each trip is compiled "
                "on its own; feed shorter sequences and carry the state from run to run"
            )

    def foresee(self, trips: int, count: int) -> None:
        """Refuse ``count`` nodes that ``trips`` trips have, or have left, where they are too many."""
        self._walk.g.budget.foresee(count, f"{self.name}, of {trips} trips,")

    def constant(self, value: Any, subject: str, not_rolled: CompileError | None = None) -> Any:
        """The one element of a constant; raises UnsupportedOperatorError for another value, which says why the body
        was ``not_rolled`` for any number of trips."""
        if isinstance(value, np.ndarray):
            return value.reshape(-1)[0]
        why = "" if not_rolled is None else f"; no code is made for any number of trips, as {not_rolled}"
        raise UnsupportedOperatorError(
            f"{self.name}: its {subject} is computed when the model runs; make it a constant{why}"
        )

    def no_rows(
        self, inputs: Sequence[Any], first: int, axes: Sequence[int], elements: Sequence[Attribute] = ()
    ) -> list[Imported]:
        """Returns what is collected where there is no trip: tensors without elements, along an axis each.

        Outputs of the body from ``first`` on are collected. Their shapes are those that a trip would make of
        ``inputs``, and then of ``elements``, which are types alone. Raises UnsupportedOperatorError where no code can
        be made of one, so that they are unknown.
        """
        if not axes:
            return []
        walk, block = self._walk, Block(arg_types=elements)
        reported, needed, guards, spent = len(walk.problems), len(walk.needed), len(walk.g.guards), walk.g.budget.spent
        inner = walk.nested(walk.g.nested(block))
        inner.g.never_runs = True  # so that it may look for rows that there are not
        inner.values.update(zip(self.body.inputs, [*inputs, *block.args], strict=True))
        try:
            rows = inner.run_graph(self.body)[first:]
            if not all(map(is_known, rows)):
                raise UnsupportedOperatorError("\n".join(walk.problems[reported:]) or "a row is no tensor")
        except CompileError as error:
            raise UnsupportedOperatorError(
                f"{self.name}: it never runs, and no trip can be compiled to know the shape of what it would collect: "
                f"{error}"
            ) from error
        finally:
            del walk.problems[reported:], walk.needed[needed:], walk.g.guards[guards:]
            walk.g.budget.spent = spent
        c = OpContext(walk.g, "Loop", 1, {})
        found: list[Imported] = []
        for row, axis in zip(cast(list[Operand], rows), axes, strict=True):
            shape, dtype = c.shape(row), numpy_dtype(c.dtype(row))
            at = c.axis(axis, len(shape) + 1)
            whole = (*shape[:at], 0, *shape[at:])
            if all(isinstance(extent, int) for extent in whole):
                found.append(np.zeros(whole, dtype))
            else:
                found.append(walk.g.reshape(walk.g.constant(np.zeros(0, dtype)), whole))
        return found

    def run(self, inputs: Sequence[Any]) -> list[Any]:
        """One trip."""
        inner = self._walk.nested(self._walk.g)
        inner.values.update(zip(self.body.inputs, inputs, strict=True))
        return inner.run_graph(self.body)

    def stack(self, rows: Sequence[Any], axis: int = 0, back: int = 0) -> Imported:
        """The collected values along a new axis, the last first with ``back``; an unknown one makes it unknown."""
        unknown: list[Unknown] = [row for row in rows if not is_known(row)]
        if unknown:
            return unknown[0]
        rows = rows[::-1] if back else rows
        if all(isinstance(row, np.ndarray) for row in rows):
            return np.stack(rows, axis)
        c = OpContext(self._walk.g, "Concat", 1, {})
        shape = list(c.shape(rows[0]))
        a = c.axis(axis, len(shape) + 1)
        values = [c.value(c.reshape(row, [*shape[:a], 1, *shape[a:]])) for row in rows]
        return values[0] if len(values) == 1 else self._walk.g.concat(values, a)
