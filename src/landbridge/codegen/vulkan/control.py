"""SPIR-V of structured control flow; loop-carried values and results are variables of the invocation, which drivers
promote to values.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import gpu, scf
from xdsl.ir import Operation, SSAValue

from landbridge.codegen.printing import axis
from landbridge.codegen.vulkan.casts import resized
from landbridge.codegen.vulkan.emitter import Printer, SpirvEmitter
from landbridge.executable.spirv import BuiltIn, Op, StorageClass

_WORKGROUP = 2  # of scopes
_ACQUIRE_RELEASE, _BUFFERS, _SHARED = 0x8, 0x40, 0x100  # of memory semantics


def _for(e: SpirvEmitter, op: Operation) -> None:
    lower, upper, step, *initial = op.operands
    block = op.regions[0].block
    induction, *carried = block.args
    element = e.element(lower)
    counter = e.variable(element, e.ids[lower])
    retained = [e.variable(e.element(v), e.ids[start]) for v, start in zip(carried, initial, strict=True)]
    header, test, body_label, again, after = (e.label() for _ in range(5))
    _loop(e, header, after, again, test)
    count = e.load(counter, element)
    e.statement(Op.BranchConditional, e.emit(Op.SLessThan, "i1", count, e.ids[upper]), body_label, after)
    e.begin(body_label)
    e.set(induction, count)
    _load_all(e, carried, retained)
    _store_all(e, retained, e.nested(block))
    e.statement(Op.Branch, again)
    e.begin(again)
    e.statement(Op.Store, counter, e.emit(Op.IAdd, element, e.load(counter, element), e.ids[step]))
    e.statement(Op.Branch, header)
    e.begin(after)
    _load_all(e, op.results, retained)


def _while(e: SpirvEmitter, op: Operation) -> None:
    first, second = op.regions[0].block, op.regions[1].block
    retained = [e.variable(e.element(v), e.ids[start]) for v, start in zip(first.args, op.operands, strict=True)]
    results = [e.variable(e.element(result)) for result in op.results]
    header, test, body_label, again, after = (e.label() for _ in range(5))
    _loop(e, header, after, again, test)
    _load_all(e, first.args, retained)
    condition, *passed = e.nested(first)
    _store_all(e, results, passed)
    e.statement(Op.BranchConditional, e.ids[condition], body_label, after)
    e.begin(body_label)
    _load_all(e, second.args, results)
    _store_all(e, retained, e.nested(second))
    e.statement(Op.Branch, again)
    e.begin(again)
    e.statement(Op.Branch, header)
    e.begin(after)
    _load_all(e, op.results, results)


def _loop(e: SpirvEmitter, header: int, after: int, again: int, test: int) -> None:
    """Emits the header block of a structured loop and begins the block of its test.

    All arguments are labels: ``again`` of the block that continues the loop, ``after`` of the block that follows it.
    """
    e.statement(Op.Branch, header)
    e.begin(header)
    e.statement(Op.LoopMerge, after, again, 0)
    e.statement(Op.Branch, test)
    e.begin(test)


def _if(e: SpirvEmitter, op: Operation) -> None:
    results = [e.variable(e.element(result)) for result in op.results]
    has_else = bool(op.regions[1].blocks)
    then, after = e.label(), e.label()
    otherwise = e.label() if has_else else after
    e.statement(Op.SelectionMerge, after, 0)
    e.statement(Op.BranchConditional, e.ids[op.operands[0]], then, otherwise)
    for label, region in ((then, op.regions[0]), (otherwise, op.regions[1])):
        if region.blocks:
            e.begin(label)
            _store_all(e, results, e.nested(region.block))
            e.statement(Op.Branch, after)
    e.begin(after)
    _load_all(e, op.results, results)


def _load_all(e: SpirvEmitter, values: Sequence[SSAValue], variables: Sequence[int]) -> None:
    for value, variable in zip(values, variables, strict=True):
        e.set(value, e.load(variable, e.element(value)))


def _store_all(e: SpirvEmitter, variables: Sequence[int], values: Sequence[SSAValue]) -> None:
    for variable, value in zip(variables, values, strict=True):
        e.statement(Op.Store, variable, e.ids[value])


def _number(builtin: BuiltIn) -> Printer:
    """Returns a printer of an index: of this workgroup, or of this invocation in its workgroup, as ``builtin`` says."""

    def emit(e: SpirvEmitter, op: Operation) -> None:
        variable = e.module.builtin(builtin)
        e.interface[variable] = None
        kind = e.module.pointer(StorageClass.Input, e.module.type_of("i32"))
        pointer = e.module.fresh()
        e.statement(Op.AccessChain, kind, pointer, variable, e.constant(axis(op), "i32"))
        e.set(op.results[0], resized(e, e.emit(Op.Load, "i32", pointer), "i32", e.index, signed=False))

    return emit


def _barrier(e: SpirvEmitter, op: Operation) -> None:
    scope = e.constant(_WORKGROUP, "i32")
    e.statement(Op.ControlBarrier, scope, scope, e.constant(_ACQUIRE_RELEASE | _BUFFERS | _SHARED, "i32"))


def _nothing(e: SpirvEmitter, op: Operation) -> None:
    pass


PRINTERS: dict[type[Operation], Printer] = {
    scf.ForOp: _for,
    scf.IfOp: _if,
    scf.WhileOp: _while,
    gpu.BlockIdOp: _number(BuiltIn.WorkgroupId),
    gpu.ThreadIdOp: _number(BuiltIn.LocalInvocationId),
    gpu.BarrierOp: _barrier,
    gpu.TerminatorOp: _nothing,
}
