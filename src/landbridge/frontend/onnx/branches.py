"""Imports ``If``: a constant condition selects a branch; if only a run knows the condition, both branches are imported.

A branch may be impossible for the shapes of this program while the other is possible. If the model cannot be compiled
otherwise, a run that takes the impossible branch ends with an error. If one branch returns a scalar and the other an
array of one element, as exported while loops do, both return the array, unless it is an output of the model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

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
from landbridge.frontend.onnx.separate import else_separate, is_legal, separate_branch
from landbridge.frontend.onnx.values import UNKNOWN, ImportedValue, check_single
from landbridge.ir.graph_builder import GraphBuilder
from landbridge.ir.permissions import Permission
from landbridge.ir.types import dtype_of, element_count, shape_of
from landbridge.sizes.replaced import replaced
from landbridge.sizes.size import Extent, Size

Shape: TypeAlias = tuple[Extent, ...]
#: Builds a branch with the builder of its block, and returns its results.
Builds: TypeAlias = Callable[[GraphBuilder], list[SSAValue]]


def import_if(walk: GraphWalk, node: ir.Node, inputs: Sequence[Any]) -> Sequence[ImportedValue]:
    """Returns the results of an ``If`` node.

    A constant condition selects the branch. Otherwise both branches are compiled, as code of this program or as
    separate programs.
    """
    then, orelse = (node.attributes[name].as_graph() for name in ("then_branch", "else_branch"))
    condition = inputs[0]
    check_single(f"If node {walk.g.node!r}: its condition", condition)
    if isinstance(condition, np.ndarray):
        return walk.run_instead(then if condition.reshape(-1)[0] else orelse)
    if not isinstance(condition, SSAValue):
        for graph in (then, orelse):  # imported only for the problems that they report
            walk.nested(walk.g).run_graph(graph)
        return [UNKNOWN] * len(node.outputs)
    if node in walk.counted:
        name, is_then = walk.counted[node]
        found = _of_some(walk, name, *((then, orelse) if is_then else (orelse, then)))
        if found is not None:
            return found
    if is_legal(walk):
        return else_separate(
            walk, lambda: _in_whole(walk, node, condition), lambda: separate_branch(walk, condition, then, orelse)
        )
    return _in_whole(walk, node, condition)


def _in_whole(walk: GraphWalk, node: ir.Node, condition: SSAValue) -> Sequence[ImportedValue]:
    """Returns the results of an ``If`` whose condition only a run knows, with both branches in this program.

    Results of one element whose ranks differ get the higher rank, unless they are outputs of the model. A branch that
    is impossible for these shapes is replaced by one that ends the run with its error, if the walk permits that.
    """
    then, orelse = (node.attributes[name].as_graph() for name in ("then_branch", "else_branch"))
    shapes: dict[str, list[Shape]] = {}
    branches = [_branch(walk, n, graph, shapes) for n, graph in (("then_branch", then), ("else_branch", orelse))]
    try:
        return walk.g.branch(condition, *branches)
    except UndecidedSizeError:
        raise
    except (ShapeError, NodeError):
        merged = _of_one_rank(node, *shapes.values()) if len(shapes) == 2 else None
        if merged is not None:
            return walk.g.branch(condition, *(_reshaping(build, merged) for build in branches))
        reasons = [_why_not(walk, build) for build in branches] if walk.permissions.may(Permission.REFUSE) else []
        if len([why for why in reasons if why is not None]) != 1:
            raise
    for at, why in enumerate(reasons):
        if why is not None:
            branches[at] = _refusing(walk, branches[1 - at], why)
    return walk.g.branch(condition, *branches)


def _of_some(walk: GraphWalk, name: str, some: ir.Graph, none: ir.Graph) -> Sequence[ImportedValue] | None:
    """Returns the results of the branch ``some`` if they are right for size 0 of the dimension ``name`` too; else None.

    They are if ``none``, the branch that is taken for 0, returns only tensors without elements. Raises ShapeError if
    those of ``some`` would have another shape or dtype for size 0.
    """
    reported, restore = len(walk.problems), walk.checkpoint()
    try:
        empty = _branch(walk, "the branch for nothing", none, {})(walk.g.nested(Block()))
    except CompileError:
        return None
    finally:
        restore()
    if not empty or not all(0 in shape_of(value.type) for value in empty):
        return None
    results = walk.run_graph(some)
    if len(walk.problems) == reported:
        results = list(walk.owned_outputs(results))
        for value, wanted in zip(results, empty, strict=True):
            assert isinstance(value, SSAValue)
            shape = [replaced(e.terms, {name: 0}) if isinstance(e, Size) else e for e in shape_of(value.type)]
            if (shape, dtype_of(value.type)) != (list(shape_of(wanted.type)), dtype_of(wanted.type)):
                raise ShapeError(f"{walk.g.node}: the branches give {value.type} and {wanted.type}")
    return results


def _of_one_rank(node: ir.Node, then: Sequence[Shape], orelse: Sequence[Shape]) -> list[Shape] | None:
    """Returns common shapes for the outputs of both branches; None if there are none.

    Shapes may differ only in tensors of one element that are not outputs of the model.
    """
    shapes = []
    for output, one, other in zip(node.outputs, then, orelse, strict=False):
        is_one = element_count(one) == element_count(other) == 1
        if one != other and (not is_one or output.is_graph_output()):
            return None
        shapes.append(max(one, other, key=len))
    return None if list(then) == list(orelse) or len(then) != len(orelse) else shapes


def _reshaping(build: Builds, shapes: Sequence[Shape]) -> Builds:
    return lambda g: [g.reshape(value, shape) for value, shape in zip(build(g), shapes, strict=True)]


def _why_not(walk: GraphWalk, build: Builds) -> CompileError | None:
    """Returns the ShapeError or NodeError that building a branch raises for these shapes.

    Returns None if it raises none, or if whether it does depends on open sizes.
    """
    try:
        build(walk.g.nested(Block()))
    except UndecidedSizeError:
        return None
    except (ShapeError, NodeError) as error:
        return error
    return None


def _refusing(walk: GraphWalk, other: Builds, error: CompileError) -> Builds:
    """Returns a branch that ends a run with ``error``, and has the result types of ``other``."""

    def build(g: GraphBuilder) -> list[SSAValue]:
        g.node = walk.g.node
        types = [value.type for value in other(walk.g.nested(Block()))]
        outputs = [(shape_of(ty), dtype_of(ty)) for ty in types]
        return g.host_call(REFUSED_BRANCH, [], outputs, {"why": StringAttr(str(error))})

    return build


def _branch(walk: GraphWalk, name: str, graph: ir.Graph, shapes: dict[str, list[Shape]]) -> Builds:
    """Returns a function that builds the branch ``graph`` in a builder, and records the shapes of its results in
    ``shapes[name]``.
    """

    def build(g: GraphBuilder) -> list[SSAValue]:
        g.node = walk.g.node
        inner = walk.nested(g)
        reported = len(walk.problems)
        try:
            values = inner.run_graph(graph)
            if len(walk.problems) > reported:
                raise UnsupportedOperatorError(f"{name} has operators that cannot be compiled")
            results = inner.owned_outputs(values)
            shapes[name] = [shape_of(value.type) for value in results]
            return results
        except (UnsupportedOperatorError, BudgetError):
            raise
        except CompileError as error:
            raise type(error)(
                f"{name} of If node {walk.g.node!r} cannot be compiled for these shapes: {error}\n"
                "The condition is known only when the model runs, so both branches must be valid; give shapes that "
                "suit both, or make the condition constant"
            ) from error

    return build
