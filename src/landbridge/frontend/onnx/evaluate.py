"""Evaluates nodes whose inputs are all constants, during import.

The interpreter of PrimFuncs (``landbridge.interpreter``) runs the node's own kernels with numpy. Therefore a constant
equals the result of a run on any target and host, and no second definition of each operator is needed, which could be
wrong. The kernels are not compiled for this: the target may be another machine, and executable memory may be forbidden.
A node that the interpreter does not support, or that would take minutes, stays in the program.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, SSAValue

from landbridge.errors import CompileError
from landbridge.interpreter.graphs import computed
from landbridge.ir.graph_builder import GraphBuilder
from landbridge.ir.limits import limited, most_bytes
from landbridge.ir.module import IRModule
from landbridge.operators import Handler
from landbridge.ops.context import OpContext

Array = np.ndarray[Any, Any]

#: Results with more bytes are computed at run time, unless an operand is as large.
_FOLDED = 1 << 28


def foldable(node: ir.Node) -> bool:
    """Returns whether a node with constant inputs may be replaced by its result."""
    graphs = (ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS)
    return not any(a.type in graphs for a in node.attributes.values())


def evaluate(c: OpContext, handler: Handler, inputs: Sequence[Array | None]) -> list[Array] | None:
    """Returns the outputs of a node with constant inputs; None if it is left to ``handler``, which also reports why it
    cannot be compiled.
    """
    block = Block()
    module = IRModule(ModuleOp([]), c.g.module.targets, c.g.module.vdevices)
    scratch = GraphBuilder(module, block, c.g.vdevice)
    scratch.node = c.g.node
    largest = min(max([_FOLDED, *(a.nbytes for a in inputs if a is not None)]), most_bytes())
    try:
        with limited(None):  # values that only exist here do not count
            created = handler(OpContext(scratch, c.op_type, c.opset, c.attributes, c.outputs), *inputs)
            results = [created] if isinstance(created, np.ndarray | SSAValue) else list(created)
            values = [x for x in results if isinstance(x, SSAValue)]
            arrays = dict(zip(values, computed(module, block, values, largest), strict=True))
    except CompileError:
        return None
    return [x if isinstance(x, np.ndarray) else arrays[x] for x in results]
