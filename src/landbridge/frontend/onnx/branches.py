"""``If``: a constant condition picks its branch; a condition known only at run time imports both.

A branch that cannot be for the shapes of this program, when the other one can, ends the run that takes it, where a
model cannot be compiled otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir
from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Block, SSAValue

from landbridge.errors import (
    BudgetError,
    CompileError,
    NodeError,
    ShapeError,
    UndecidedSizeError,
    UnsupportedOperatorError,
)
from landbridge.executable.instructions import REFUSED_BRANCH
from landbridge.frontend.onnx.graph_walk import GraphWalk
from landbridge.frontend.onnx.values import UNKNOWN, Imported, check_single
from landbridge.ir.graph_builder import GraphBuilder
from landbridge.ir.types import dtype_of, shape_of


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
    branches = [_branch(walk, "then_branch", then), _branch(walk, "else_branch", orelse)]
    try:
        return walk.g.branch(condition, *branches)
    except UndecidedSizeError:
        raise
    except (ShapeError, NodeError):
        walk.branches.failed = True
        reasons = [_why_not(walk, build) for build in branches] if walk.branches.refused else []
        if len([why for why in reasons if why is not None]) != 1:
            raise
    for at, why in enumerate(reasons):
        if why is not None:
            branches[at] = _refusing(walk, branches[1 - at], why)
    return walk.g.branch(condition, *branches)


def _why_not(walk: GraphWalk, build: Callable[[GraphBuilder], list[SSAValue]]) -> CompileError | None:
    """What keeps a branch from being compiled for these shapes; None where it can be, or where that is open."""
    try:
        build(walk.g.nested(Block()))
    except UndecidedSizeError:
        return None
    except (ShapeError, NodeError) as error:
        return error
    return None


def _refusing(
    walk: GraphWalk, other: Callable[[GraphBuilder], list[SSAValue]], error: CompileError
) -> Callable[[GraphBuilder], list[SSAValue]]:
    """A branch that ends a run with ``error``, of the results that the ``other`` one has."""

    def build(g: GraphBuilder) -> list[SSAValue]:
        g.node = walk.g.node
        types = [value.type for value in other(walk.g.nested(Block()))]
        outputs = [(shape_of(ty), dtype_of(ty)) for ty in types]
        return g.host_call(REFUSED_BRANCH, [], outputs, {"why": StringAttr(str(error))})

    return build


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
