"""Lowered functions of the form "loops" in the form for printers: the buffers of each, and its one launch."""

from __future__ import annotations

from xdsl.dialects import func, memref
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue

from landbridge.codegen.functions import body_of, errors_of, identified_functions
from landbridge.executable.device_image import Launch, LaunchSequence
from landbridge.ir.kernel_attributes import task_count
from landbridge.ir.types import nbytes_of
from landbridge.records import record


@record(frozen=True)
class LoopFunction:
    """A lowered function of plain loops.

    ``name`` is the PrimFunc's, ``identifier`` a C identifier like it that no other has. ``buffers`` are its memrefs, in
    the order in which a launch gets them: the operands, inputs before destinations, then scratch. An element of a flat
    one has one index, of one in rows a row and a column. ``operations`` are its code, scratch and the return apart.
    ``sequence`` launches ``identifier`` once, as one workgroup of one work-item; it is not launched where nothing is
    computed.
    """

    name: str
    identifier: str
    buffers: tuple[SSAValue, ...]
    operations: tuple[Operation, ...]
    sequence: LaunchSequence


def loop_functions(module: ModuleOp) -> list[LoopFunction]:
    """Returns the functions of ``module``; raises CodegenError for one not in the form of
    ``landbridge.passes.lower.loops``.
    """
    return [_loop_function(function, identifier) for function, identifier in identified_functions(module)]


def _loop_function(function: func.FuncOp, identifier: str) -> LoopFunction:
    name = function.sym_name.data
    with errors_of(name):
        body: Block = body_of(function)
    scratch = [op.memref for op in body.ops if isinstance(op, memref.AllocOp)]
    operations = tuple(op for op in body.ops if not isinstance(op, memref.AllocOp | func.ReturnOp))
    buffers = (*body.args, *scratch)
    launches = (Launch(identifier, tuple(range(len(buffers))), (1, 1, 1), (1, 1, 1)),) if task_count(function) else ()
    sequence = LaunchSequence(len(body.args), tuple(nbytes_of(s.type) for s in scratch), launches)
    return LoopFunction(name, identifier, buffers, operations, sequence)
