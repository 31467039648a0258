"""Converts loops that append a tensor to a sequence in each iteration to loops that collect these tensors as rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import onnx_ir as ir

from landbridge.frontend.onnx.counted_loops import counted_trips
from landbridge.frontend.onnx.graph_walk import ControlFlow, GraphWalk
from landbridge.frontend.onnx.row_sequences import RowSequence, extended
from landbridge.frontend.onnx.sequences import TensorSequence
from landbridge.frontend.onnx.unfolded_size import known_trips
from landbridge.frontend.onnx.values import UNKNOWN, Unknown, is_known
from landbridge.ops.context import OpContext, Operand
from landbridge.records import record


def loop_of_rows(walk: GraphWalk, node: ir.Node, inputs: Sequence[Any], run: ControlFlow) -> list[Any] | None:
    """Returns the results of ``node``, a Loop with sequences, if only a run knows its trip count and it can collect
    rows.

    ``run`` imports the loop that collects rows. Returns None if ``node`` is not such a Loop. Raises
    UnsupportedOperatorError if the tensors of a sequence have different shapes.
    """
    count, _, *state = inputs
    sequences = [number for number, value in enumerate(state) if isinstance(value, TensorSequence | RowSequence)]
    if not sequences or any(isinstance(value, Unknown) for value in inputs) or _is_unfolded(walk, node, count):
        return None
    loop = _collecting(node, sequences)
    if loop is None:
        return None
    found = run(walk, loop.node, [*inputs[:2], *(state[n] for n in loop.taken)])
    rows = found[len(found) - len(loop.grow) :]
    if not all(map(is_known, rows)):
        return [UNKNOWN] * len(node.outputs)
    c = OpContext(walk.g, node.op_type, walk.opset_of(node), {})
    last = dict(enumerate(state)) | dict(zip(loop.taken, found, strict=False))
    last |= {n: extended(c, state[n], cast(Operand, row)) for n, row in zip(loop.grow, rows, strict=True)}
    return [*last.values(), *found[len(loop.taken) : len(found) - len(loop.grow)]]


def _is_unfolded(walk: GraphWalk, node: ir.Node, count: Any) -> bool:
    """Returns whether the trip count of ``node`` is a known number, so that each iteration can be imported
    separately.
    """
    if not isinstance(count, np.ndarray) or count.dtype == object:
        return False
    most = int(count.reshape(-1)[0])
    body = node.attributes["body"].as_graph()
    counted = counted_trips(body, node.inputs, walk.values, most)
    return most < 1 or known_trips(node, walk.values) > 0 or isinstance(counted, int)


@record(frozen=True, eq=False)
class _CollectingLoop:
    """A Loop that collects rows instead of sequences.

    ``node`` is the Loop without sequences, with an additional row output for each of the carried values ``grow``;
    ``taken`` are the numbers of the values that it still carries.
    """

    node: ir.Node
    taken: tuple[int, ...]
    grow: tuple[int, ...]


def _collecting(node: ir.Node, sequences: Sequence[int]) -> _CollectingLoop | None:
    """Returns ``node``, a Loop that carries the values ``sequences``, as a loop that collects rows.

    Returns None if an iteration does more with a sequence than to append one tensor.
    """
    body = node.attributes["body"].as_graph().clone(allow_outer_scope_values=True)
    carried = len(node.inputs) - 2
    grow: list[int] = []
    rows: list[ir.Value] = []
    for number in sequences:
        formal, output = body.inputs[2 + number], body.outputs[1 + number]
        chain = _through(output)
        if chain[-1] is formal:  # the sequence does not change
            around = node.inputs[2 + number]
            assert around is not None
            formal.replace_all_uses_with(around, replace_graph_outputs=True)
            continue
        row = _put_behind(formal, chain)
        if row is None:
            return None
        if row.graph is not body:  # a value of the enclosing graph, which a body cannot return directly
            body.append(
                ir.Node("", "Identity", [row], num_outputs=1, version=node.version, name=f"{node.name}_{number}")
            )
            row = body[-1].outputs[0]
        grow.append(number)
        rows.append(row)
    taken = tuple(n for n in range(carried) if n not in sequences)
    outputs = list(body.outputs)
    body.outputs[:] = [outputs[0], *(outputs[1 + n] for n in taken), *outputs[1 + carried :], *rows]
    body.remove([each for number in grow for each in _nodes(outputs[1 + number])], safe=True)
    inputs = list(body.inputs)
    body.inputs[:] = [*inputs[:2], *(inputs[2 + n] for n in taken)]
    given = [*node.inputs[:2], *(node.inputs[2 + n] for n in taken)]
    count = len(taken) + len(outputs) - 1 - carried + len(rows)
    new = ir.Node(
        "", "Loop", given, [ir.AttrGraph("body", body)], num_outputs=count, version=node.version, name=node.name
    )
    for number, value in enumerate(new.outputs):
        value.name = f"{node.name}_collected_{number}"
    return _CollectingLoop(new, taken, tuple(grow))


def _through(value: ir.Value) -> list[ir.Value]:
    """Returns ``value``, and the values that it is copied from by Identity nodes."""
    found = [value]
    while (
        (producer := found[-1].producer()) is not None
        and producer.op_type == "Identity"
        and producer.inputs[0] is not None
    ):
        found.append(producer.inputs[0])
    return found


def _nodes(output: ir.Value) -> list[ir.Node]:
    """Returns the SequenceInsert node whose result is ``output``, and the Identity nodes before and after it."""
    chain = _through(output)
    insert = chain[-1].producer()
    before = _through(insert.inputs[0]) if insert is not None and insert.inputs[0] is not None else []
    return [producer for value in (*chain, *before) if (producer := value.producer()) is not None]


def _put_behind(formal: ir.Value, chain: Sequence[ir.Value]) -> ir.Value | None:
    """Returns the tensor that a SequenceInsert appends to ``formal``, if nothing else reads the sequences in between;
    else None.
    """
    producer = chain[-1].producer()
    is_insert = producer is not None and (producer.domain, producer.op_type) == ("", "SequenceInsert")
    if producer is None or not is_insert or producer.inputs[0] is None or len(producer.inputs) > 2:
        return None
    before = _through(producer.inputs[0])
    if before[-1] is not formal or any(len(list(v.uses())) != 1 or v.is_graph_output() for v in before):
        return None
    if any(len(list(value.uses())) != int(at > 0) for at, value in enumerate(chain)):
        return None
    return producer.inputs[1]
