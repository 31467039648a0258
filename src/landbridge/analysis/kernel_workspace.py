"""Places the temporaries of a lowered kernel: on the stack of its thread, or in the thread's workspace."""

from __future__ import annotations

from xdsl.dialects import func, memref

from landbridge.errors import CodegenError
from landbridge.executable.abi import STACK_TEMPORARY_BYTES, STORAGE_ALIGNMENT, WORKSPACE_BYTES
from landbridge.ir.types import nbytes_of


def temporaries(kernel: func.FuncOp) -> dict[memref.AllocaOp, int]:
    """Returns the offset in bytes of each temporary of ``kernel``, one behind the other, each aligned as storages
    are."""
    offsets: dict[memref.AllocaOp, int] = {}
    end = 0
    for op in kernel.body.block.ops if kernel.body.blocks else ():
        if isinstance(op, memref.AllocaOp):
            offsets[op] = -(-end // STORAGE_ALIGNMENT) * STORAGE_ALIGNMENT
            end = offsets[op] + nbytes_of(op.memref.type)
    return offsets


def temporary_bytes(kernel: func.FuncOp) -> int:
    """Returns the bytes that a thread needs for the temporaries of ``kernel``."""
    return max((at + nbytes_of(op.memref.type) for op, at in temporaries(kernel).items()), default=0)


def in_workspace(kernel: func.FuncOp, stack_bytes: int = STACK_TEMPORARY_BYTES) -> dict[memref.AllocaOp, int]:
    """Returns the offset in the workspace of each temporary of ``kernel``; none if they may lie on the stack, of which
    they take at most ``stack_bytes``.

    Raises CodegenError if the workspace is too small for them.
    """
    offsets, needed = temporaries(kernel), temporary_bytes(kernel)
    if needed <= stack_bytes:
        return {}
    if needed > WORKSPACE_BYTES:
        raise CodegenError(
            f"its temporaries need {needed:,} bytes, and a thread has at most {WORKSPACE_BYTES:,} for them; give them "
            "as operands"
        )
    return offsets
