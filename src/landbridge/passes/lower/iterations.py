"""Lowers a PrimFunc whose stages are iterated: one task with a loop over the iterations around their nests.

Operands that every iteration reads, such as the weights of a recurrent layer, stay in the caches between iterations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from xdsl.ir import SSAValue

from landbridge.ir.stages import PrimView
from landbridge.passes.lower.candidates import schedule
from landbridge.passes.lower.code import Code, Index
from landbridge.passes.lower.nest import Nest, build_nests
from landbridge.passes.lower.nest_emitter import NestEmitter
from landbridge.passes.lower.schedule import Schedule, VectorUnit
from landbridge.passes.lower.simplify import simplify
from landbridge.passes.lower.tasks import TaskPlan, may_repeat, nested


def emit_sections(
    code: Code, prim: PrimView, buffers: dict[SSAValue, SSAValue], emit: Callable[[Nest, Mapping[int, Index]], None]
) -> None:
    """Emit the stages of ``prim`` in their order; iterated stages are emitted inside a loop over the iterations.

    ``emit(nest, env)`` emits one nest. For an iterated nest, ``env`` maps its first loop to the number of the
    iteration. ``buffers`` maps the memrefs of the PrimFunc to flat ones; the block arguments of iterated stages are
    added to it.
    """
    for steps, view in prim.sections():
        nests = [nest for nest in build_nests(view) if not nest.is_empty]
        if steps is None:
            for nest in nests:
                emit(nest, {})
            continue
        inside = steps.body.block.args
        buffers.update(zip(inside, [buffers[b] for b in steps.buffers], strict=True))

        def iteration(i: SSAValue, _: Sequence[SSAValue]) -> list[SSAValue]:
            for nest in nests:  # noqa: B023
                emit(nest, {0: i})
            return []

        if nests:
            code.loop(0, steps.iterations, 1, [], iteration)


def emit_iterations(
    code: Code,
    prim: PrimView,
    machine: VectorUnit,
    buffers: dict[SSAValue, SSAValue],
    begin: Index,
    end: Index,
) -> TaskPlan:
    """Emit tasks ``begin .. end``, of one at most, of a PrimFunc whose stages are iterated."""
    schedules: list[tuple[Nest, Schedule]] = []

    def task(_: SSAValue, __: Sequence[SSAValue]) -> list[SSAValue]:
        schedules.extend(emit_iterations_of(code, prim, machine, buffers))
        return []

    code.loop(begin, end, 1, [], task)
    return TaskPlan(min(len(schedules), 1), tuple(schedules))


def emit_iterations_of(
    code: Code,
    prim: PrimView,
    machine: VectorUnit,
    buffers: dict[SSAValue, SSAValue],
    row: Index | None = None,
) -> list[tuple[Nest, Schedule]]:
    """Emit all iterations of ``prim``, with ``row`` those of one row: iteration ``row`` of the first loop behind that
    of the iterations. Returns the nests with their schedules.
    """
    schedules: list[tuple[Nest, Schedule]] = []

    def emit(nest: Nest, env: Mapping[int, Index]) -> None:
        if row is not None:
            env = {**env, len(env): row}
        small = simplify(nest, keep=len(env))
        sched = schedule(small, machine, len(env), repeats=may_repeat(small))
        schedules.append((small, sched))
        nested(code, small, sched, NestEmitter(code, small, sched, buffers, dict(env)), list(sched.outer))

    emit_sections(code, prim, buffers, emit)
    return schedules
