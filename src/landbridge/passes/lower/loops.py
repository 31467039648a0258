"""Lowers a PrimFunc to plain loops: nests of ``scf.for`` over single elements, one nest after the other.

There are no vectors, tasks, workgroups or unrolling. It is the form for devices whose compiler does these itself, and
for those that have none. A lowered function takes the PrimFunc's memrefs, flat or in rows, and nothing else. A
``memref.alloc`` at its head is scratch, which holds what one nest leaves for the next.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects import func
from xdsl.dialects.builtin import FunctionType, MemRefType
from xdsl.ir import Block, Region, SSAValue

from landbridge.ir.allocations import buffer_alloc
from landbridge.ir.kernel_attributes import keep_marks, set_task_count
from landbridge.ir.stages import view_prim
from landbridge.ir.types import element_count, extents_attr, shape_of
from landbridge.passes.lower.code import Code, Index
from landbridge.passes.lower.forall import emit_forall_in_order
from landbridge.passes.lower.iterations import emit_sections
from landbridge.passes.lower.nest import Nest, build_nests, used_buffers
from landbridge.passes.lower.nest_emitter import NestEmitter
from landbridge.passes.lower.row_memory import lowered_type
from landbridge.passes.lower.serial import ONE, serial
from landbridge.passes.lower.simplify import simplify
from landbridge.sizes.size import largest


def lower_loops(function: func.FuncOp) -> func.FuncOp:
    """Returns one PrimFunc as plain loops. Its attribute ``lb.tasks`` is 1, or 0 if nothing is computed."""
    prim = view_prim(function)
    arguments = list(function.body.block.args)
    block = Block(arg_types=[lowered_type(a.type) for a in arguments])
    code = Code(block)
    buffers: dict[SSAValue, SSAValue] = dict(zip(arguments, block.args, strict=True))
    if prim.forall is not None:
        _scratch(code, prim.temporaries, buffers)
        tasks = emit_forall_in_order(code, prim.forall, buffers)
    else:
        nests = [n for _, view in prim.sections() for n in build_nests(view) if not n.is_empty]
        used = used_buffers(nests)
        _scratch(code, [t for t in prim.temporaries if t in used], buffers)
        emit_sections(code, prim, buffers, lambda nest, env: _points(code, simplify(nest, len(env)), buffers, env))
        tasks = min(len(nests), 1)
    block.add_op(func.ReturnOp())
    code.finish()
    lowered = func.FuncOp(function.sym_name.data, FunctionType.from_lists(list(block.arg_types), []), Region(block))
    set_task_count(lowered, tasks)
    keep_marks(function, lowered)
    return lowered


def _scratch(code: Code, temporaries: Sequence[SSAValue], buffers: dict[SSAValue, SSAValue]) -> None:
    """Allocate memory for each of ``temporaries``."""
    for temporary in temporaries:
        ty = temporary.type
        assert isinstance(ty, MemRefType)
        flat = MemRefType(
            ty.element_type, extents_attr([largest(element_count(shape_of(ty)), 1)]), memory_space=ty.memory_space
        )
        buffers[temporary] = code.hoist(buffer_alloc(flat))


def _points(code: Code, nest: Nest, buffers: Mapping[SSAValue, SSAValue], iteration: Mapping[int, Index]) -> None:
    """Emit a loop for each parallel dim of ``nest`` that is not in ``iteration``, and the code of one point inside."""
    sched = serial(nest, iteration)
    env: dict[int, Index] = dict(iteration)

    def within(outer: tuple[int, ...]) -> None:
        if not outer:
            NestEmitter(code, nest, sched, buffers, env).tile(ONE)
            return

        def body(i: SSAValue, _: list[SSAValue]) -> list[SSAValue]:
            env[outer[0]] = i
            within(outer[1:])
            return []

        code.loop(0, nest.dims[outer[0]].extent, 1, [], body)

    within(sched.outer)
