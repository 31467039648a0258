"""Loops as separate programs: with tensors that grow from iteration to iteration, or with a number of rows that data
decide.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field
from typing import Any

import numpy as np
import onnx_ir as ir
from xdsl.ir import SSAValue

from landbridge.errors import CompileError, UndecidedSizeError, UnsupportedOperatorError
from landbridge.executable.segments import LOOP
from landbridge.frontend.onnx.appended import begins_with
from landbridge.frontend.onnx.graph_walk import GraphWalk
from landbridge.frontend.onnx.separate import (
    Captured,
    Formal,
    Joined,
    Shape,
    body_program,
    call,
    captured,
    known_around,
    results_of,
)
from landbridge.frontend.onnx.unfolded_size import known_to_go_on
from landbridge.frontend.onnx.values import ImportedValue, is_known
from landbridge.ir.module import IRModule
from landbridge.ir.types import dtype_of, shape_of
from landbridge.ops.context import OpContext
from landbridge.records import record
from landbridge.sizes.dim import identifier
from landbridge.sizes.size import Extent, Size, least

#: The most guesses of which axes grow; each costs an import of the body.
_MOST_TRIED = 6


def separate_loop(walk: GraphWalk, node: ir.Node, inputs: Sequence[Any]) -> list[ImportedValue]:
    """Returns the results of a ``Loop`` whose body is a separate program.

    Raises UnsupportedOperatorError if there is no such program; the error names the carried value that prevents it.
    """
    name = f"Loop node {walk.g.node!r}"
    body = node.attributes["body"].as_graph()
    count, condition, *state = inputs
    if not all(x is None or is_known(x) for x in inputs):
        raise UnsupportedOperatorError(f"{name}: an input is not a tensor")
    c = OpContext(walk.g, "Loop", walk.opset_of(node), {})
    around = captured(walk, body)
    given = [c.value(x) for x in state]
    found = _Body(walk, name, body, around, given).found()
    results = results_of(found.program)
    joined = Joined(walk)
    outputs: list[tuple[Shape, str]] = []
    for number, value in enumerate(given):
        shape, dtype = results[1 + number]
        first = shape_of(value.type)
        extents = []
        for axis, extent in enumerate(shape):
            same = len(first) == len(shape) and first[axis] == extent and (number, axis) not in found.grown
            if same and found.first is not None:
                same = results_of(found.first)[1 + number][0][axis] == extent
            key = ("state", found.grown.get((number, axis), (number, axis)), first[axis] if axis < len(first) else "")
            label = f"{walk.g.node}_{number}_{axis}"
            extents.append(extent if same else joined.extent(label, key))
        outputs.append((tuple(extents), dtype))
    trips: Extent | None = None
    begins_if_any = condition is None or (isinstance(condition, np.ndarray) and bool(condition.reshape(-1)[0]))
    if isinstance(count, np.ndarray) and begins_if_any and known_to_go_on(body, walk.values):
        text = count.reshape(-1).tolist()[0]
        trips = text if isinstance(text, Size) else max(text, 0)
    for number, (shape, dtype) in enumerate(results[1 + len(given) :], len(given)):
        rows = joined.extent(f"{walk.g.node}_trips", ("trips",)) if trips is None else trips
        rest = [
            e if known_around(found.program, e) else joined.extent(f"{walk.g.node}_{number}_{axis + 1}", (number, axis))
            for axis, e in enumerate(shape)
        ]
        outputs.append(((rows, *rest), dtype))
    begins = [None if x is None else c.value(x) for x in (count, condition)]
    bodies = [found.program] if found.first is None else [found.first, found.program]
    appended = [n for n in range(len(given)) if _is_extended(body, n, results[1 + n][0])]
    attributes = {"carried": len(given), "captured": len(around.inputs), "appended": appended}
    return call(walk, LOOP, [*begins, *given, *around.inputs.values()], outputs, bodies, joined.new, attributes)


def _is_extended(body: ir.Graph, number: int, shape: Shape) -> bool:
    """Returns whether carried value ``number``, of ``shape``, is its previous value with more elements after all
    others.
    """
    axis = begins_with(body.outputs[1 + number], body.inputs[2 + number])
    return axis is not None and all(extent == 1 for extent in shape[: axis % len(shape)])


@record(frozen=True, eq=False)
class _Found:
    """The program of an iteration, that of the first iteration if it differs, and the group of each axis that grows."""

    program: IRModule
    first: IRModule | None
    grown: dict[tuple[int, int], int]


@record(eq=False)
class _Body:
    walk: GraphWalk
    name: str
    body: ir.Graph
    around: Captured
    state: Sequence[SSAValue]
    #: The number of the dimension of each axis that changes, by carried value and axis.
    grown: dict[tuple[int, int], int] = field(default_factory=dict)

    def found(self) -> _Found:
        """Returns the body as a program in which the axes of carried values that change are dimensions."""
        shapes: list[Shape] = [shape_of(x.type) for x in self.state]
        first: IRModule | None = None
        for _ in range(_MOST_TRIED):
            program = self._import(shapes)
            after = self._created(program)
            grown = self._grown(shapes, after)
            if first is None and self._is_another(shapes, after, grown):
                first, shapes = program, after  # all other iterations begin with the results of the first
                continue
            for number, (old, new) in enumerate(zip(shapes, after, strict=True)):
                if len(old) != len(new):
                    raise self._refused(number, f"has {len(old)} axes before an iteration and {len(new)} after it")
            if grown.keys() == self.grown.keys() and len({*grown.values()}) == len({*self.grown.values()}):
                return _Found(program, first, self.grown)
            self.grown = grown
        raise self._refused(
            next(iter(self.grown))[0], "changes its extents in each iteration, by no rule that was found"
        )

    def _created(self, program: IRModule) -> list[Shape]:
        """Returns the shapes of the carried values after an iteration."""
        results = results_of(program)[1 : 1 + len(self.state)]
        for number, (value, (_, dtype)) in enumerate(zip(self.state, results, strict=True)):
            if dtype != dtype_of(value.type):
                raise self._refused(number, f"is {dtype_of(value.type)} before an iteration and {dtype} after it")
        return [shape for shape, _ in results]

    def _grown(self, shapes: Sequence[Shape], created: Sequence[Shape]) -> dict[tuple[int, int], int]:
        """Returns the axes that change; axes that had the same extent before and after the iteration are one group."""
        values: dict[Any, int] = {}
        found = {}
        for number, (old, new) in enumerate(zip(shapes, created, strict=True)):
            for axis, (before, after) in enumerate(zip(old, new, strict=False)):
                group = self.grown.get((number, axis))
                if group is not None or before != after:
                    key = (before, after) if group is None else (group, after)
                    found[number, axis] = values.setdefault(key, len(values))
        return found

    def _is_another(self, shapes: Sequence[Shape], created: Sequence[Shape], grown: Iterable[tuple[int, int]]) -> bool:
        """Returns whether the first iteration differs from the others: in the number of axes, or because a tensor may
        be empty.
        """
        ranks = any(len(old) != len(new) for old, new in zip(shapes, created, strict=True))
        return ranks or any(least(shapes[number][axis]) < 1 for number, axis in grown)

    def _refused(self, number: int, why: str) -> UnsupportedOperatorError:
        self.walk.branches.part_refused = True
        return UnsupportedOperatorError(
            f"{self.name}: {str(self.body.inputs[2 + number].name)!r}, which it carries, {why}; carry it in a buffer "
            "of one shape, of which a counter says how much is filled, or run the body from the application"
        )

    def _import(self, shapes: Sequence[tuple[Extent, ...]]) -> IRModule:
        formals = [Formal((), "int64"), Formal((), "bool")]
        for number, (shape, value) in enumerate(zip(shapes, self.state, strict=True)):
            called = [
                self._called(self.grown[number, axis]) if (number, axis) in self.grown else extent
                for axis, extent in enumerate(shape)
            ]
            formals.append(Formal(tuple(called), dtype_of(value.type)))
        try:
            return body_program(self.walk, self.body, formals, self.around)
        except UndecidedSizeError:
            raise
        except CompileError as error:
            self.walk.branches.part_refused = True
            grown = ", ".join(
                f"axis {axis} of {str(self.body.inputs[2 + number].name)!r}" for number, axis in sorted(self.grown)
            )
            subject = f", in which {grown} may change from iteration to iteration," if grown else ""
            raise UnsupportedOperatorError(
                f"{self.name}: its body{subject} is not a program by itself: {error}"
            ) from error

    def _called(self, group: int) -> str:
        return identifier(f"{self.walk.g.node}_length_{group}")
