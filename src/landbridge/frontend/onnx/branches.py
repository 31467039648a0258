"""``If``: a constant condition picks its branch; a condition known only at run time imports both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx_ir as ir
from xdsl.ir import SSAValue

from landbridge.errors import BudgetError, CompileError, ShapeError, UnsupportedOperatorError
from landbridge.ir.graph_builder import GraphBuilder
from landbridge.ir.types import element_count, shape_of

if TYPE_CHECKING:
    from landbridge.frontend.onnx.importer import Importer


def check_single(what: str, value: Any) -> None:
    """Raise ShapeError for an array or a value of the graph that has not one element."""
    if not isinstance(value, np.ndarray | SSAValue):
        return
    shape = value.shape if isinstance(value, np.ndarray) else shape_of(value.type)
    if element_count(shape) != 1:
        raise ShapeError(f"{what} has shape {shape}; one element is legal")


def import_if(importer: Importer, node: ir.Node, inputs: Sequence[Any]) -> Sequence[Any]:
    """The results of an ``If`` node."""
    branches = {name: node.attributes[name].as_graph() for name in ("then_branch", "else_branch")}
    condition = inputs[0]
    check_single(f"If node {importer.g.node!r}: its condition", condition)
    if isinstance(condition, np.ndarray):
        graph = branches["then_branch" if condition.reshape(-1)[0] else "else_branch"]
        importer.run_graph(graph)
        return [importer.values[v] for v in graph.outputs]
    if not isinstance(condition, SSAValue):
        for graph in branches.values():  # only for the problems they report
            importer.nested(importer.g).run_graph(graph)
        from landbridge.frontend.onnx.importer import UNKNOWN

        return [UNKNOWN] * len(node.outputs)

    def build(name: str) -> Any:
        def branch(g: GraphBuilder) -> list[SSAValue]:
            g.node = importer.g.node
            inner = importer.nested(g)
            reported = len(importer.problems)
            try:
                inner.run_graph(branches[name])
                values = [inner.values[v] for v in branches[name].outputs]
                if len(importer.problems) > reported:
                    raise UnsupportedOperatorError(f"{name} has operators that cannot be compiled")
                return inner.own_outputs(values)
            except (UnsupportedOperatorError, BudgetError):
                raise
            except CompileError as error:
                raise type(error)(
                    f"{name} of If node {importer.g.node!r} cannot be compiled for these shapes: {error}\n"
                    "The condition is known only when the model runs, so both branches must be valid; give shapes that "
                    "suit both, or make the condition constant"
                ) from error

        return branch

    return importer.g.branch(condition, build("then_branch"), build("else_branch"))
