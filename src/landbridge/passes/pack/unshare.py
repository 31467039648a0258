"""Gives each stage its own argument where several read the same one.

A residual convolution reads its input twice, once along its reduced channels and once along its produced ones, and only
as separate arguments can both be blocked.
"""

from __future__ import annotations

from xdsl.dialects import func
from xdsl.dialects.builtin import FunctionType
from xdsl.ir import Operation


def unshare(function: func.FuncOp, inputs: int, name: str) -> tuple[func.FuncOp, list[int]] | None:
    """Returns a clone called ``name`` in which no input is read by two stages, and the old input number of each new
    input.

    New inputs are appended after the first ``inputs``. Returns None if nothing is shared.
    """
    clone = function.clone()
    block = clone.body.block
    repeated: list[int] = []
    for number in range(inputs):
        argument = block.args[number]
        stages: list[Operation] = []
        for use in argument.uses:
            if use.operation.parent is not block:
                return None  # read at computed indices inside a body
            if use.operation not in stages:
                stages.append(use.operation)
        for stage in stages[1:]:
            fresh = block.insert_arg(argument.type, inputs + len(repeated))
            repeated.append(number)
            for i, operand in enumerate(stage.operands):
                if operand is argument:
                    stage.operands[i] = fresh
    if not repeated:
        return None
    clone.properties["function_type"] = FunctionType.from_lists(list(block.arg_types), [])
    clone.properties["sym_name"] = type(function.sym_name)(name)
    return clone, repeated
