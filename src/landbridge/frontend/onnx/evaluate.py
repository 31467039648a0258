"""Nodes whose inputs are all constants, computed while the model is imported.

They are computed by their own kernels, which the interpreter of PrimFuncs (``landbridge.interpreter``) runs with numpy:
so a constant is what the node would give in a run, whatever the target and the host are, without machine code and
without a second definition of each operator that can be wrong. Kernels that were compiled for this are no choice: the
target may be another machine, and memory may not be allowed to become executable. What the interpreter does not
compute, or would take minutes for, stays a node of the program.
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
from landbridge.ops.context import OpContext
from landbridge.ops.registry import Handler

Array = np.ndarray[Any, Any]

#: Results of more bytes are computed when the model runs, unless an operand is as large.
_FOLDED = 1 << 28


def foldable(node: ir.Node) -> bool:
    """Whether a node with constant inputs may be replaced by its result."""
    graphs = (ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS)
    return not any(a.type in graphs for a in node.attributes.values())


def evaluate(c: OpContext, handler: Handler, inputs: Sequence[Array | None]) -> list[Array] | None:
    """The outputs of a node of constants; None where it is left to ``handler``, which says why it cannot be compiled
    either."""
    block = Block()
    module = IRModule(ModuleOp([]), c.g.module.targets, c.g.module.vdevices)
    scratch = GraphBuilder(module, block, c.g.vdevice)
    scratch.node = c.g.node
    largest = min(max([_FOLDED, *(a.nbytes for a in inputs if a is not None)]), most_bytes())
    try:
        with limited(None):  # what only lives here counts for nothing
            created = handler(OpContext(scratch, c.op_type, c.opset, c.attributes, c.outputs), *inputs)
            results = [created] if isinstance(created, np.ndarray | SSAValue) else list(created)
            values = [x for x in results if isinstance(x, SSAValue)]
            arrays = dict(zip(values, computed(module, block, values, largest), strict=True))
    except CompileError:
        return None
    return [x if isinstance(x, np.ndarray) else arrays[x] for x in results]
