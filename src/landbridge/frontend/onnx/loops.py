"""Imports ``Loop`` and ``Scan``: rolled if that pays and the body allows it, else unfolded, which requires a known trip
count.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import onnx_ir as ir
from xdsl.ir import Attribute, SSAValue

from landbridge.errors import CompileError, NodeError, ShapeError, UnsupportedOperatorError
from landbridge.frontend.onnx.appended import appended
from landbridge.frontend.onnx.counted_loops import counted_trips, most_trips
from landbridge.frontend.onnx.graph_walk import GraphWalk
from landbridge.frontend.onnx.host_nodes import read_sizes
from landbridge.frontend.onnx.iterations import Iterations
from landbridge.frontend.onnx.loop_sequences import loop_of_rows
from landbridge.frontend.onnx.rolled import MANY, Rolled, pays, roll
from landbridge.frontend.onnx.separate import else_separate, is_legal
from landbridge.frontend.onnx.separate_loops import separate_loop
from landbridge.frontend.onnx.unfolded_size import known_to_go_on, known_trips
from landbridge.frontend.onnx.values import ImportedValue, check_single, is_known
from landbridge.ir.permissions import Permission
from landbridge.ir.types import tensor_type
from landbridge.ops.context import OpContext, Operand
from landbridge.ops.extent_arrays import extents_array
from landbridge.ops.slicing import part
from landbridge.sizes.size import Extent, Size, dimensions_of, largest, least, must_agree


def import_loop(walk: GraphWalk, node: ir.Node, inputs: Sequence[Any]) -> list[ImportedValue]:
    """Returns the results of a ``Loop``; if it cannot be compiled as part of this program, as a separate program.

    A trip count below 0 means no iterations, as in onnxruntime.
    """
    count, *rest = inputs
    collected = loop_of_rows(walk, node, inputs, import_loop)
    if collected is not None:
        return collected
    if isinstance(count, np.ndarray) and count.size == 1:
        count = extents_array([largest(count.reshape(-1).tolist()[0], 0)]).reshape(count.shape)
    given = [count, *rest]
    walk.branches.conditions.add(node.attributes["body"].as_graph().outputs[0])
    if not is_legal(walk):
        return _in_whole(walk, node, given)
    return else_separate(walk, lambda: _in_whole(walk, node, given), lambda: separate_loop(walk, node, given))


def _in_whole(walk: GraphWalk, node: ir.Node, inputs: Sequence[Any]) -> list[ImportedValue]:
    count, condition, *carried = inputs
    state = list(carried)
    loop = Iterations(walk, node, 2 + len(state), 1 + len(state))
    for value, subject in ((count, "trip count"), (condition, "condition")):
        check_single(f"{loop.name}: its {subject}", value)
    counted = _counted(walk, node, loop, count)
    if counted is not None:
        count, condition = extents_array([counted]).reshape(()), None
    rolled = _rolled_loop(walk, node, loop, [count, condition, *state], is_counted=counted is not None)
    if isinstance(rolled, list):
        return rolled
    collected: list[list[Any]] = [[] for _ in loop.body.outputs[1 + len(state) :]]
    going: Any = np.asarray(True) if condition is None else condition
    limit = None if count is None else int(loop.constant(count, "trip count", rolled))
    trips = counted if isinstance(counted, int) else known_trips(node, walk.values)
    loop.expect(trips)
    iteration = 0
    while (limit is None or iteration < limit) and loop.constant(going, "condition", rolled):
        loop.bound(iteration)
        spent = walk.g.budget.spent
        goes_on, *results = loop.run([np.asarray(iteration, np.int64), going, *state])
        going = going if counted is not None else goes_on
        state = results[: len(state)]
        for rows, value in zip(collected, results[len(state) :], strict=True):
            rows.append(value)
        iteration += 1
        if not trips:
            walk.g.budget.walk(spent, loop.name)
        loop.foresee(trips, (trips - iteration) * (walk.g.budget.spent - spent))
    if not iteration:
        inputs = [np.asarray(0, np.int64), np.asarray(True), *state]
        return [*state, *loop.no_rows(inputs, 1 + len(state), [0] * len(collected))]
    return [*state, *map(loop.stack, collected)]


def _counted(walk: GraphWalk, node: ir.Node, loop: Iterations, count: Any) -> Extent | None:
    """Returns the trip count of a loop whose condition compares a counter, unless ``count`` is computed by a run; else
    None.
    """
    if isinstance(count, SSAValue) or known_to_go_on(loop.body, walk.values):
        return None
    most = None if count is None else cast(Extent, count.reshape(-1).tolist()[0])
    return counted_trips(loop.body, node.inputs, walk.values, most)


def _rolled_loop(
    walk: GraphWalk, node: ir.Node, loop: Iterations, inputs: Sequence[Any], *, is_counted: bool
) -> list[ImportedValue] | CompileError | None:
    """Returns the results of a rolled ``Loop``; an error if it must be rolled and cannot be; None if it need not be."""
    count, condition, *state = inputs
    first = np.asarray(True) if condition is None else condition
    if isinstance(first, np.ndarray) and not first.reshape(-1)[0]:
        return None  # no iterations
    goes_on = is_counted or (isinstance(first, np.ndarray) and known_to_go_on(loop.body, walk.values))
    going = None if goes_on else first
    trips: Extent | None = MANY if count is None else None
    if isinstance(count, np.ndarray):
        count_value = count.reshape(-1)[0]
        trips = count_value if isinstance(count_value, Size) else max(int(count_value), 0)
    if not pays(walk, loop.body, trips if going is None else None, inputs):
        return None
    c = OpContext(walk.g, node.op_type, walk.opset_of(node), {})
    grown = appended(c, loop.body, state)
    rows = len(loop.body.outputs) - 1 - len(state)
    if (rows or grown) and going is None and isinstance(count, SSAValue):  # the trip count is also the number of rows
        read = read_sizes(
            c,
            count
            if Permission.READ not in walk.permissions.granted
            else c.value(c.elementwise("count", [count], lambda s, v: s.maximum(v, 0))),
        )
        if read is None:
            walk.needed.append((count, None))
        else:
            count, trips = read, cast(Extent, read.reshape(-1)[0]) if isinstance(read, np.ndarray) else None
    if isinstance(trips, Size):
        walk.branches.trips |= dimensions_of([trips]).keys()
    if going is not None or not isinstance(count, np.ndarray):
        if rows:
            return None  # the number of rows is known only at run time
        grown = {}
    most = trips
    if going is not None or trips is None or trips == MANY:
        most = most_trips(loop.body, node.inputs, walk.values, None if trips == MANY else trips)
    return roll(
        walk,
        Rolled(
            loop.name,
            loop.body,
            MANY if trips is None else trips,
            list(zip(loop.body.inputs[2:], state, strict=True)),
            first_output=1,
            count=count if isinstance(count, SSAValue) else None,
            index=loop.body.inputs[0],
            going=going,
            most=most,
            begins=isinstance(first, np.ndarray) and trips is not None and least(trips) > 0,
            appended=grown,
        ),
    )


def import_scan(walk: GraphWalk, node: ir.Node, inputs: Sequence[Any]) -> list[ImportedValue]:
    """Returns the results of a ``Scan``, whose trip count is an extent."""
    name = f"Scan node {walk.g.node!r}"
    if walk.opset_of(node) < 9:
        if inputs[0] is not None:
            raise UnsupportedOperatorError(
                f"{name}, of opset 8, has a length for each row of its batch; legal: none, as all are as long"
            )
        return import_scan(walk, _over_rows(node), inputs[1:])
    scanned = node.attributes["num_scan_inputs"].as_int()
    if not 0 < scanned <= len(inputs):
        raise NodeError(f"{name}: num_scan_inputs is {scanned}; legal: 1..{len(inputs)}, its operands")
    state, sequences = list(inputs[:-scanned]), inputs[-scanned:]
    scan = Iterations(walk, node, len(inputs), len(state))
    collected: list[list[Any]] = [[] for _ in scan.body.outputs[len(state) :]]
    axes, backwards = _each(name, node, "scan_input", scanned)
    out_axes, out_backwards = _each(name, node, "scan_output", len(collected))
    for value in sequences:
        if not is_known(value):
            return [value] * len(node.outputs)
    c = OpContext(walk.g, node.op_type, walk.opset_of(node), {})
    trips = _trips(name, c, sequences, axes)
    if pays(walk, scan.body, trips, inputs):
        scanning = list(zip(sequences, axes, backwards, strict=True))
        rolled = _rolled_scan(c, walk, scan, trips, state, scanning, list(zip(out_axes, out_backwards, strict=True)))
        if isinstance(rolled, list):
            return rolled
        if isinstance(trips, Size):
            raise rolled
    if isinstance(trips, Size):
        raise UnsupportedOperatorError(
            f"{name}: it scans an open number of elements, {trips}, and its body cannot be compiled for any number; "
            "give shapes= that say it"
        )
    if not trips:
        types = [_element_type(c, value, axis) for value, axis in zip(sequences, axes, strict=True)]
        return [*state, *scan.no_rows(state, len(state), out_axes, types)]
    scan.expect(trips)
    for iteration in range(trips):
        elements = [
            _element(c, value, axis, trips - 1 - iteration if back else iteration)
            for value, axis, back in zip(sequences, axes, backwards, strict=True)
        ]
        results = scan.run([*state, *elements])
        state = results[: len(state)]
        for rows, value in zip(collected, results[len(state) :], strict=True):
            rows.append(value)
    return [*state, *map(scan.stack, collected, out_axes, out_backwards)]


def _over_rows(node: ir.Node) -> ir.Node:
    """Returns ``node``, a Scan of opset 8, as one of opset 9 over the batch, whose body is a Scan over the
    sequences.
    """
    given = list(node.inputs[1:])
    rows = [ir.Value(name=f"{node.name}_row_{i}") for i in range(len(given))]
    scan, scanned = node.attributes, node.attributes["num_scan_inputs"].as_int()
    directions = [ir.AttrInt64s("scan_input_directions", scan["directions"].as_ints())] if "directions" in scan else []
    how = [ir.AttrGraph("body", scan["body"].as_graph()), ir.AttrInt64("num_scan_inputs", scanned), *directions]
    count = len(node.outputs)
    inner = ir.Node("", "Scan", rows, how, num_outputs=count, version=9, name=node.name)
    for i, value in enumerate(inner.outputs):
        value.name = f"{node.name}_of_row_{i}"
    body = ir.Graph(rows, inner.outputs, nodes=[inner], name=f"{node.name}_rows")
    around = [ir.AttrGraph("body", body), ir.AttrInt64("num_scan_inputs", len(given))]
    return ir.Node("", "Scan", given, around, num_outputs=count, version=9, name=node.name)


def _rolled_scan(
    c: OpContext,
    walk: GraphWalk,
    scan: Iterations,
    trips: Extent,
    state: Sequence[Any],
    sequences: Sequence[tuple[Operand, int, int]],
    rows: Sequence[tuple[int, int]],
) -> list[ImportedValue] | CompileError:
    """Returns the results of a rolled ``Scan``; the scanned axis is moved to the front of each sequence."""
    elements = []
    for formal, (value, axis, _) in zip(scan.body.inputs[len(state) :], sequences, strict=True):
        rank = c.rank(value)
        at = c.axis(axis, rank)
        first = c.transpose(value, [at, *(a for a in range(rank) if a != at)])
        elements.append((formal, c.value(first)))
    back = [back for _, _, back in sequences], [back for _, back in rows]
    carried = list(zip(scan.body.inputs, state, strict=False))
    found = roll(
        walk, Rolled(scan.name, scan.body, trips, carried, elements, back=back, most=trips, begins=least(trips) > 0)
    )
    if isinstance(found, CompileError):
        return found
    for number, (axis, _) in enumerate(rows, len(state)):
        value = cast(Operand, found[number])
        rank = c.rank(value)
        at = c.axis(axis, rank)
        order = [*range(1, at + 1), 0, *range(at + 1, rank)]
        found[number] = c.transpose(value, order)
    return found


def _each(name: str, node: ir.Node, which: str, count: int) -> list[list[int]]:
    """Returns axes or directions for each of ``count`` tensors; 0 if the attribute is absent."""
    found = []
    for attribute in (f"{which}_axes", f"{which}_directions"):
        given = node.attributes.get(attribute)
        found.append(list(given.as_ints()) if given is not None else [0] * count)
        if len(found[-1]) != count:
            raise NodeError(f"{name}: {attribute} is {found[-1]}; {count} values are legal")
    return found


def _trips(name: str, c: OpContext, sequences: Sequence[Operand], axes: Sequence[int]) -> Extent:
    """Returns the extent of the sequences along their scanned axes."""
    if not all(c.rank(value) for value in sequences):
        raise ShapeError(f"{name}: what it scans has no axis; a rank of 1 or more is legal")
    extents = [c.shape(value)[c.axis(axis, c.rank(value))] for value, axis in zip(sequences, axes, strict=True)]
    if not all(must_agree(f"{name}: what it scans", extents[0], each) for each in extents[1:]):
        raise ShapeError(f"{name}: it scans {extents} elements; they must be equal")
    return extents[0]


def _element_type(c: OpContext, sequence: Operand, axis: int) -> Attribute:
    """Returns the type of an element of ``sequence`` along ``axis``."""
    shape = list(c.shape(sequence))
    del shape[c.axis(axis, len(shape))]
    return tensor_type(shape, c.dtype(sequence), c.g.vdevice)


def _element(c: OpContext, sequence: Operand, axis: int, at: int) -> Operand:
    """Returns the element of ``sequence`` at index ``at`` of ``axis``, without that axis."""
    shape = list(c.shape(sequence))
    a = c.axis(axis, len(shape))
    rest = [*shape[:a], *shape[a + 1 :]]
    start = [at if i == a else 0 for i in range(len(shape))]
    return c.reshape(part(c, sequence, start, [1] * len(shape), [*shape[:a], 1, *shape[a + 1 :]]), rest)
