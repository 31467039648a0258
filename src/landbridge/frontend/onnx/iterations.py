"""Imports the body of a ``Loop`` or ``Scan`` once for each iteration."""

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
from landbridge.frontend.onnx.values import ImportedValue, Unknown, is_known
from landbridge.ops.context import OpContext, Operand

#: The most iterations: graphs of longer loops would take too long to compile.
LONGEST = 4096


class Iterations:
    """The iterations of ``node``, whose body has ``inputs`` inputs and at least ``outputs`` outputs.

    ``name`` is the node's name in messages. Raises NodeError for a body with other numbers.
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
        """Raises an error for too many iterations now, instead of after a long walk."""
        self.bound(trips - 1)
        self.foresee(trips, trips * nodes_of_iteration(self.body, self._walk.values))

    def bound(self, iteration: int) -> None:
        """Raises an error if the iteration with this number is one too many."""
        if iteration >= LONGEST:
            raise UnsupportedOperatorError(
                f"{self.name} has more than {LONGEST} iterations, and each is compiled "
                "on its own; feed shorter sequences and carry the state from run to run"
            )

    def foresee(self, trips: int, count: int) -> None:
        """Raises an error if ``count`` nodes, which ``trips`` iterations still have to import, are too many."""
        self._walk.g.budget.foresee(count, f"{self.name}, of {trips} iterations,")

    def constant(self, value: Any, subject: str, not_rolled: CompileError | None = None) -> Any:
        """Returns the one element of a constant.

        Raises UnsupportedOperatorError for any other value; the error says why the body was ``not_rolled`` for any
        number of iterations.
        """
        if isinstance(value, np.ndarray):
            return value.reshape(-1)[0]
        why = "" if not_rolled is None else f"; it cannot be compiled for any number of iterations, as {not_rolled}"
        raise UnsupportedOperatorError(
            f"{self.name}: its {subject} is computed when the model runs; make it a constant{why}"
        )

    def no_rows(
        self, inputs: Sequence[Any], first: int, axes: Sequence[int], elements: Sequence[Attribute] = ()
    ) -> list[ImportedValue]:
        """Returns the collected values of a loop without iterations: tensors without elements along their axes.

        Outputs of the body from ``first`` on are collected. Their shapes are those that an iteration would compute from
        ``inputs``, and then from ``elements``, which are types only. Raises UnsupportedOperatorError if an iteration
        cannot be compiled, so that the shapes are unknown.
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
                raise UnsupportedOperatorError("\n".join(walk.problems[reported:]) or "a row is not a tensor")
        except CompileError as error:
            raise UnsupportedOperatorError(
                f"{self.name}: it has no iterations, and none can be compiled to find the shape of its collected "
                f"values: {error}"
            ) from error
        finally:
            del walk.problems[reported:], walk.needed[needed:], walk.g.guards[guards:]
            walk.g.budget.spent = spent
        c = OpContext(walk.g, "Loop", 1, {})
        found: list[ImportedValue] = []
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
        """Import one iteration; returns its outputs."""
        inner = self._walk.nested(self._walk.g)
        inner.values.update(zip(self.body.inputs, inputs, strict=True))
        return inner.run_graph(self.body)

    def stack(self, rows: Sequence[Any], axis: int = 0, back: int = 0) -> ImportedValue:
        """Returns the collected values along a new axis, in reverse order if ``back``; unknown if one of them is."""
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
