"""Finds the nodes that the result of a comparison decides: branches that it chooses, and loops that it ends."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterator
from itertools import chain

import onnx_ir as ir

#: Operators that compute a bool from bools.
_OF_TRUTH = {"And", "Cast", "Identity", "Not", "Or", "Reshape", "Squeeze", "Unsqueeze", "Xor"}


def chooses_branches(node: ir.Node) -> bool:
    """Returns whether the results of ``node`` are only used as conditions of ``If`` nodes, directly or through
    operators on bools.
    """
    return only_for(node, (), "If")


def only_for(node: ir.Node, outputs: Collection[ir.Value], *op_types: str) -> bool:
    """Returns whether the results of ``node`` are used, directly or through operators on bools, only by nodes of
    ``op_types`` or as graph outputs among ``outputs``.
    """
    uses = [use for value in node.outputs for use in value.uses()]
    returned = [value for value in node.outputs if value.is_graph_output()]
    if not (uses or returned) or not all(value in outputs for value in returned):
        return False
    return all(
        not u.node.domain
        and (u.node.op_type in op_types or (u.node.op_type in _OF_TRUTH and only_for(u.node, outputs, *op_types)))
        for u in uses
    )


def is_of_carried(node: ir.Node, conditions: Container[ir.Value]) -> bool:
    """Returns whether ``node`` depends on a carried value of the loop whose body it is in, for a loop that one of
    ``conditions`` ends.
    """
    body = node.graph
    if not isinstance(body, ir.Graph) or not body.outputs or body.outputs[0] not in conditions:
        return False
    carried, pending, seen = {*body.inputs[2:]}, [*node.inputs], set[ir.Value]()
    while pending:
        value = pending.pop()
        if value is None or value in seen:
            continue
        if value in carried:
            return True
        seen.add(value)
        created = value.producer()
        pending += created.inputs if created is not None and created.graph is body else ()
    return False


def ifs_of(node: ir.Node, negated: bool = False) -> Iterator[tuple[ir.Node, bool]]:
    """Yields each ``If`` node whose condition is computed from the result of ``node``, and whether it is negated."""
    for use in chain.from_iterable(value.uses() for value in node.outputs):
        if use.node.op_type == "If":
            yield use.node, negated
        elif use.node.op_type not in ("And", "Or", "Xor"):
            yield from ifs_of(use.node, negated != (use.node.op_type == "Not"))
