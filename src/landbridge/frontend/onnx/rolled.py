"""Imports ``Loop`` and ``Scan`` as one ``lb.loop``: the body is imported once, for any number of iterations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, cast

import numpy as np
import onnx_ir as ir
from xdsl.ir import Block, BlockArgument, SSAValue

from landbridge.errors import BudgetError, CompileError, UndecidedSizeError, UnsupportedOperatorError
from landbridge.frontend.onnx.appended import Appended
from landbridge.frontend.onnx.counted_loops import sum_of
from landbridge.frontend.onnx.graph_walk import GraphWalk
from landbridge.frontend.onnx.unfolded_size import nodes_of_iteration
from landbridge.frontend.onnx.values import ImportedValue, is_known
from landbridge.frontend.segment_sizes import SegmentSizes
from landbridge.ir.graph_builder import GraphBuilder
from landbridge.ir.iteration_numbers import asks_of_iterations, is_iteration, iteration_name
from landbridge.ir.permissions import Permission
from landbridge.ir.types import dtype_of, element_count, shape_of
from landbridge.ops.context import OpContext, Operand
from landbridge.ops.extent_arrays import extents_array
from landbridge.records import record
from landbridge.sizes.size import Extent, Size, dimensions_of

#: A loop is unfolded if all its iterations together have at most this many nodes. They are then fused and planned like
#: any other nodes, and a run has nothing to count. Kernels of so many nodes compile within a second.
UNFOLDED_NODES = 128


@record(frozen=True, eq=False)
class Rolled:
    """A loop over ``body`` of ``trips`` iterations, or fewer if ``count``, computed by a run, says so.

    ``carried``: the inputs of the body with their values in the first iteration; ``elements``: those that are scanned
    along their first axis, with the scanned tensors. The body's outputs from ``first_output`` on are the carried values
    of the next iteration, in that order, then the rows. ``index``: the input that is the iteration number. ``going``:
    the condition before the first iteration, which is output 0 and input 1 of the body; None if no condition ends the
    loop. ``back``: the directions of the elements and of the rows. ``most``: an upper bound of the trip count, if
    known; ``begins``: it is known that there is an iteration. ``appended``: the carried values, by number, to which
    iterations only append.
    """

    name: str
    body: ir.Graph
    trips: Extent
    carried: Sequence[tuple[ir.Value, ImportedValue]]
    elements: Sequence[tuple[ir.Value, SSAValue]] = ()
    first_output: int = 0
    count: SSAValue | None = None
    index: ir.Value | None = None
    going: Operand | None = None
    back: tuple[Sequence[int], Sequence[int]] | None = None
    most: Extent | None = None
    begins: bool = False
    appended: Mapping[int, Appended] = field(default_factory=dict)


def pays(walk: GraphWalk, body: ir.Graph, trips: Extent | None, values: Sequence[Any]) -> bool:
    """Returns whether a loop over ``body``, whose inputs are ``values``, is rolled; ``trips`` is None if only a run
    knows it.

    Values that are known at import stay known in an unfolded loop. Devices other than the CPU have no loops.
    """
    if (
        Permission.UNROLL in walk.permissions.granted
        or not all(target.on_host for target in walk.g.module.targets)
        or not all(map(_has_location, values))
    ):
        return False
    if isinstance(trips, Size):
        return True
    if not any(isinstance(x, SSAValue) for x in (*values, *_captured(walk, body))):
        return False
    return trips is None or trips * nodes_of_iteration(body, walk.values) > UNFOLDED_NODES


def roll(walk: GraphWalk, loop: Rolled) -> list[ImportedValue] | CompileError:
    """Returns the final carried values, then the rows; or the error if the body cannot be compiled once for all
    iterations.

    In case of an error, the walk's problems are as before. First, counters are values like any others, because bodies
    are simplest that way. If the body cannot be compiled so, counters become dimensions, one size per iteration.
    """
    found = _attempt(walk, loop, None)
    if not isinstance(found, CompileError) or loop.most is None:
        return found
    steps = _counters(walk, loop)
    if not steps and (loop.index is None or not loop.index.uses()):
        return found
    again = _attempt(walk, loop, steps)
    return found if isinstance(again, CompileError) else again


def _attempt(walk: GraphWalk, loop: Rolled, steps: Mapping[int, int] | None) -> list[ImportedValue] | CompileError:
    restore, useful = walk.checkpoint(), set(walk.permissions.useful)
    try:
        results = _Roller(walk, loop, steps).results()
        walk.permissions.useful.add(Permission.UNROLL)
        return results
    except BudgetError:
        raise
    except CompileError as error:
        if isinstance(error, UndecidedSizeError) and not asks_of_iterations(error):
            raise
        restore()
        walk.permissions.useful -= {Permission.REFUSE} - useful
        return error


def _counters(walk: GraphWalk, loop: Rolled) -> dict[int, int]:
    """Returns, by number, the carried values to which each iteration adds a constant whole number, with that number."""
    found = {}
    outputs = loop.body.outputs[loop.first_output :]
    for number, ((formal, value), out) in enumerate(zip(loop.carried, outputs, strict=False)):
        root, step = sum_of(out, walk.values)
        is_whole = isinstance(value, np.ndarray) and value.size == 1 and value.dtype in (np.int64, object)
        if is_whole and root is formal and step:
            found[number] = step
    return found


def _has_location(value: Any) -> bool:
    """Returns whether ``value`` can be in memory; a sequence of tensors cannot."""
    return value is None or is_known(value)


def _captured(walk: GraphWalk, graph: ir.Graph) -> list[Any]:
    """Returns the known values of the enclosing graph that the nodes of ``graph`` read, subgraphs included."""
    read = (v for node in ir.traversal.RecursiveGraphIterator(graph) for v in node.inputs if v is not None)
    return [walk.values[v] for v in read if v in walk.values]


@record(frozen=True, eq=False)
class _Roller:
    walk: GraphWalk
    loop: Rolled
    #: The increments of carried values by number, if counters are dimensions; None if they are values.
    steps: Mapping[int, int] | None

    def results(self) -> list[ImportedValue]:
        loop, walk = self.loop, self.walk
        outputs = loop.body.outputs[loop.first_output : loop.first_output + len(loop.carried)]
        retained = [_through(out) is formal for out, (formal, _) in zip(outputs, loop.carried, strict=True)]
        moving = [number for number, same in enumerate(retained) if not same and number not in loop.appended]
        c = OpContext(walk.g, "Loop", 1, {})
        first = [_value(c, loop.carried[number][1]) for number in moving]
        extra = []
        if loop.going is not None:
            extra.append(_value(c, loop.going))
        knows = self.steps is not None
        is_counted = knows or (loop.index is not None and bool(loop.index.uses()))
        if is_counted:
            extra.append(walk.g.constant(np.asarray(0, np.int64), "trip"))

        def build(g: GraphBuilder, given: Sequence[SSAValue]) -> tuple[list[SSAValue], list[SSAValue]]:
            g.node = walk.g.node
            inner = walk.nested(g)
            arguments = iter(given)
            inner.values.update((loop.carried[number][0], next(arguments)) for number in moving)
            inner.values.update(value for value, same in zip(loop.carried, retained, strict=True) if same)
            inner.values.update((loop.carried[n][0], each.nothing(c)) for n, each in loop.appended.items())
            self._bring_extra(inner, arguments, is_counted)
            if knows:
                self._know_counters(inner, given[len(first) + len(extra) - 1])
            inner.values.update((formal, next(arguments)) for formal, _ in loop.elements)
            reported, reported_guards = len(walk.problems), len(walk.g.guards)
            every = inner.run_graph(loop.body)
            if len(walk.problems) > reported:
                raise UnsupportedOperatorError("\n".join(walk.problems[reported:]))
            outputs = every[loop.first_output :]
            inside = OpContext(g, "Loop", 1, {})
            following = [_as(inside, outputs[number], given[at]) for at, number in enumerate(moving)]
            at = len(moving)
            if loop.going is not None:
                following.append(_as(inside, every[0], given[at]))
                at += 1
            if is_counted:
                following.append(g.elementwise("next_trip", [given[at]], lambda s, v: v + 1))
            collected = [*(outputs[number] for number in loop.appended), *outputs[len(loop.carried) :]]
            rows = [_value(inside, row) for row in collected]
            if knows:
                self._check_iterations_are_read(g, cast(BlockArgument, given[-1]).block, reported_guards)
            return following, rows

        found = walk.g.loop(
            loop.trips,
            [*first, *extra],
            [sequence for _, sequence in loop.elements],
            build,
            loop.back,
            loop.count,
            len(first) if loop.going is not None else None,
            loop.begins,
        )
        last: dict[int, Operand] = dict(zip(moving, found, strict=False))
        rows = found[len(first) + len(extra) :]
        for (number, each), row in zip(loop.appended.items(), rows, strict=False):
            last[number] = each.of_rows(c, row)
        states: list[ImportedValue] = [last.get(n, value) for n, (_, value) in enumerate(loop.carried)]
        return [*states, *rows[len(loop.appended) :]]

    def _bring_extra(self, inner: GraphWalk, arguments: Any, is_counted: bool) -> None:
        """Set the condition and the iteration number, if the body has them as inputs."""
        loop = self.loop
        if loop.first_output:
            inner.values[loop.body.inputs[1]] = np.asarray(True) if loop.going is None else next(arguments)
        if is_counted and loop.index is not None:
            inner.values[loop.index] = next(arguments)

    def _know_counters(self, inner: GraphWalk, count: SSAValue) -> None:
        """Set counters to sizes that depend on ``count``, the number of the iteration."""
        loop, g = self.loop, inner.g
        assert loop.most is not None
        iteration = g.iteration(iteration_name(f"{len(g.iterations)} of {g.node}"), loop.most - 1, count)
        if loop.index is not None:
            inner.values[loop.index] = extents_array([iteration]).reshape(())
        for number, step in (self.steps or {}).items():
            formal, value = loop.carried[number]
            assert isinstance(value, np.ndarray)
            before = value.reshape(-1).tolist()
            inner.values[formal] = extents_array([before[0] + iteration * step]).reshape(value.shape)

    def _check_iterations_are_read(self, g: GraphBuilder, block: Block, guards: int) -> None:
        """Raises UnsupportedOperatorError if something that must be known before a run depends on the iteration."""
        sizes = SegmentSizes(g.module.prims())
        named = {name for op in block.ops for name in sizes.of_operation(op)}
        named |= dimensions_of(e for guard in g.guards[guards:] for e in (guard.found, guard.legal)).keys()
        if any(map(is_iteration, named)):
            raise UnsupportedOperatorError(f"{self.loop.name}: an extent depends on the number of the iteration")


def _through(value: ir.Value | None) -> ir.Value | None:
    """Returns the value that ``value`` is a copy of, by Identity nodes."""
    while value is not None and (node := value.producer()) is not None and node.op_type == "Identity":
        value = node.inputs[0]
    return value


def _value(c: OpContext, x: Any) -> SSAValue:
    if not is_known(x):
        raise UnsupportedOperatorError("a value that an iteration carries or collects is not a tensor")
    return c.value(x)


def _as(c: OpContext, x: Any, like: SSAValue) -> SSAValue:
    """Returns ``x`` in the shape of ``like`` if both have one element; models may omit an axis of 1."""
    value = _value(c, x)
    mine, wanted = shape_of(value.type), shape_of(like.type)
    is_one = element_count(mine) == element_count(wanted) == 1 and dtype_of(value.type) == dtype_of(like.type)
    return c.g.reshape(value, wanted) if is_one else value


#: The trip count of a loop that only its condition ends.
MANY = 1 << 62
