"""``Loop`` and ``Scan`` with a trip count known at import: the body is imported once for each trip."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx_ir as ir
from xdsl.ir import SSAValue

from landbridge.errors import NodeError, ShapeError, UnsupportedOperatorError
from landbridge.frontend.onnx.branches import check_single
from landbridge.frontend.onnx.unfolded import known_trips, nodes_of_trip
from landbridge.ops.context import OpContext, Operand
from landbridge.ops.slicing import part

if TYPE_CHECKING:
    from landbridge.frontend.onnx.importer import Importer

#: Longer loops would make graphs nobody wants to wait for.
LONGEST = 4096


def import_loop(importer: Importer, node: ir.Node, inputs: Sequence[Any]) -> list[Any]:
    """The results of a ``Loop`` whose count and condition do not depend on what the model computes."""
    body: ir.Graph = node.attributes["body"].as_graph()
    count, condition, *carried = inputs
    state = list(carried)
    _check_body(importer, node, body, 2 + len(state), 1 + len(state))
    for value, what in ((count, "trip count"), (condition, "condition")):
        check_single(f"Loop node {importer.g.node!r}: its {what}", value)
    collected: list[list[Any]] = [[] for _ in body.outputs[1 + len(state) :]]
    going: Any = np.asarray(True) if condition is None else condition
    limit = None if count is None else _constant(importer, node, count, "trip count")
    trips = known_trips(node, importer.values)
    _bound(importer, node, trips - 1)
    _foresee(importer, node, trips, trips * nodes_of_trip(body, importer.values))
    trip = 0
    while limit is None or trip < int(limit.reshape(-1)[0]):
        if not _constant(importer, node, going, "condition").reshape(-1)[0]:
            break
        _bound(importer, node, trip)
        spent = importer.g.budget.spent
        results = _run(importer, body, [np.asarray(trip, np.int64), going, *state])
        going, state = results[0], results[1 : 1 + len(state)]
        for rows, value in zip(collected, results[1 + len(state) :], strict=True):
            rows.append(value)
        trip += 1
        if not trips:
            importer.g.budget.walk(spent, f"Loop node {importer.g.node!r}")
        _foresee(importer, node, trips, (trips - trip) * (importer.g.budget.spent - spent))
    if trip == 0 and collected:
        raise UnsupportedOperatorError(
            f"Loop node {importer.g.node!r}: it never runs, so the shape of what it collects is unknown"
        )
    return [*state, *(_stack(importer, rows, 0, False) for rows in collected)]


def import_scan(importer: Importer, node: ir.Node, inputs: Sequence[Any]) -> list[Any]:
    """The results of a ``Scan`` (opset 9 and newer), whose trip count is a static extent."""
    if importer.opset_of(node) < 9:
        raise UnsupportedOperatorError(
            f"Scan node {importer.g.node!r} is of opset 8, which had batches; convert the model to opset 9 or newer"
        )
    body: ir.Graph = node.attributes["body"].as_graph()
    scanned = node.attributes["num_scan_inputs"].as_int()
    if not 0 < scanned <= len(inputs):
        raise NodeError(
            f"Scan node {importer.g.node!r}: num_scan_inputs is {scanned}; legal: 1..{len(inputs)}, its operands"
        )
    _check_body(importer, node, body, len(inputs), len(inputs) - scanned)
    state, sequences = list(inputs[: len(inputs) - scanned]), inputs[len(inputs) - scanned :]
    outputs = len(body.outputs) - len(state)

    def each(name: str, count: int) -> list[int]:
        given = node.attributes.get(name)
        values = list(given.as_ints()) if given is not None else [0] * count
        if len(values) != count:
            raise NodeError(f"Scan node {importer.g.node!r}: {name} is {values}; {count} values are legal")
        return values

    axes, turned = each("scan_input_axes", scanned), each("scan_input_directions", scanned)
    out_axes, out_turned = each("scan_output_axes", outputs), each("scan_output_directions", outputs)
    c = OpContext(importer.g, node.op_type, importer.opset_of(node), {})
    if any(not isinstance(v, np.ndarray | SSAValue) for v in sequences):
        return [next(v for v in sequences if not isinstance(v, np.ndarray | SSAValue))] * len(node.outputs)
    if not all(c.rank(v) for v in sequences):
        raise ShapeError(f"Scan node {importer.g.node!r}: what it scans has no axis; a rank of 1 or more is legal")
    trips, *others = (c.shape(v)[c.axis(axis, c.rank(v))] for v, axis in zip(sequences, axes, strict=True))
    if any(extent != trips for extent in others):
        raise ShapeError(f"Scan node {importer.g.node!r}: it scans {[trips, *others]} elements; they must be equal")
    if not trips and outputs:
        raise UnsupportedOperatorError(
            f"Scan node {importer.g.node!r}: it never runs, so the shape of what it collects is unknown"
        )
    _bound(importer, node, trips - 1)
    _foresee(importer, node, trips, trips * nodes_of_trip(body, importer.values))
    collected: list[list[Any]] = [[] for _ in range(outputs)]
    for trip in range(trips):
        slices = []
        for value, axis, back in zip(sequences, axes, turned, strict=True):
            shape, a = c.shape(value), c.axis(axis, c.rank(value))
            start = [(trips - 1 - trip if back else trip) if i == a else 0 for i in range(len(shape))]
            one = [1 if i == a else e for i, e in enumerate(shape)]
            slices.append(
                c.reshape(part(c, value, start, [1] * len(shape), one), [e for i, e in enumerate(shape) if i != a])
            )
        results = _run(importer, body, [*state, *slices])
        state = results[: len(state)]
        for rows, value in zip(collected, results[len(state) :], strict=True):
            rows.append(value)
    return [
        *state,
        *(
            _stack(importer, rows, axis, bool(back))
            for rows, axis, back in zip(collected, out_axes, out_turned, strict=True)
        ),
    ]


def _check_body(importer: Importer, node: ir.Node, body: ir.Graph, inputs: int, outputs: int) -> None:
    """Raise NodeError unless a body takes so many inputs and gives so many outputs, or more."""
    if len(body.inputs) != inputs or len(body.outputs) < outputs:
        raise NodeError(
            f"{node.op_type} node {importer.g.node!r}: its body takes {len(body.inputs)} inputs and gives "
            f"{len(body.outputs)} outputs; {inputs}, and {outputs} or more, are legal for its operands"
        )


def _run(importer: Importer, body: ir.Graph, inputs: Sequence[Any]) -> list[Any]:
    """One trip."""
    inner = importer.nested(importer.g)
    inner.values.update(zip(body.inputs, inputs, strict=True))
    inner.run_graph(body)
    return [inner.values[v] for v in body.outputs]


def _stack(importer: Importer, rows: Sequence[Any], axis: int, back: bool) -> Any:
    """The collected values along a new axis; the first unknown one makes it unknown."""
    for row in rows:
        if not isinstance(row, np.ndarray | SSAValue):
            return row
    if all(isinstance(row, np.ndarray) for row in rows):
        return np.stack(rows[::-1] if back else rows, axis)
    c = OpContext(importer.g, "Concat", 1, {})
    shape = list(c.shape(rows[0]))
    a = c.axis(axis, len(shape) + 1)
    lifted: list[Operand] = [c.reshape(row, [*shape[:a], 1, *shape[a:]]) for row in rows]
    values = [c.value(v) for v in (lifted[::-1] if back else lifted)]
    return values[0] if len(values) == 1 else importer.g.concat(values, a)


def _constant(importer: Importer, node: ir.Node, value: Any, what: str) -> np.ndarray[Any, Any]:
    if isinstance(value, np.ndarray):
        return value
    raise UnsupportedOperatorError(
        f"{node.op_type} node {importer.g.node!r}: its {what} is computed when the model runs; make it a constant"
    )


def _foresee(importer: Importer, node: ir.Node, trips: int, count: int) -> None:
    """Refuse now what would be refused after a long walk: ``count`` nodes that ``trips`` trips have, or have left."""
    importer.g.budget.foresee(count, f"{node.op_type} node {importer.g.node!r}, of {trips} trips,")


def _bound(importer: Importer, node: ir.Node, trip: int) -> None:
    if trip >= LONGEST:
        raise UnsupportedOperatorError(
            f"{node.op_type} node {importer.g.node!r} runs more than {LONGEST} times and each trip is compiled "
            "on its own; feed shorter sequences and carry the state from run to run"
        )
