"""``If``: a constant condition picks its branch; a condition known only at run time imports both."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir
from xdsl.ir import SSAValue

from landbridge.errors import BudgetError, CompileError, UnsupportedOperatorError
from landbridge.frontend.onnx.graph_walk import GraphWalk
from landbridge.frontend.onnx.values import UNKNOWN, Imported, check_single
from landbridge.ir.graph_builder import GraphBuilder


def import_if(walk: GraphWalk, node: ir.Node, inputs: Sequence[Any]) -> Sequence[Imported]:
    """The results of an ``If`` node."""
    then, orelse = (node.attributes[name].as_graph() for name in ("then_branch", "else_branch"))
    condition = inputs[0]
    check_single(f"If node {walk.g.node!r}: its condition", condition)
    if isinstance(condition, np.ndarray):
        return walk.run_graph(then if condition.reshape(-1)[0] else orelse)
    if not isinstance(condition, SSAValue):
        for graph in (then, orelse):  # only for the problems they report
            walk.nested(walk.g).run_graph(graph)
        return [UNKNOWN] * len(node.outputs)
    return walk.g.branch(condition, _branch(walk, "then_branch", then), _branch(walk, "else_branch", orelse))


def _branch(walk: GraphWalk, name: str, graph: ir.Graph) -> Callable[[GraphBuilder], list[SSAValue]]:
    def build(g: GraphBuilder) -> list[SSAValue]:
        g.node = walk.g.node
        inner = walk.nested(g)
        reported = len(walk.problems)
        try:
            values = inner.run_graph(graph)
            if len(walk.problems) > reported:
                raise UnsupportedOperatorError(f"{name} has operators that cannot be compiled")
            return inner.own_outputs(values)
        except (UnsupportedOperatorError, BudgetError):
            raise
        except CompileError as error:
            raise type(error)(
                f"{name} of If node {walk.g.node!r} cannot be compiled for these shapes: {error}\n"
                "The condition is known only when the model runs, so both branches must be valid; give shapes that "
                "suit both, or make the condition constant"
            ) from error

    return build
