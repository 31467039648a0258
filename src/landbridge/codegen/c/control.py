"""C of structured control flow and calls."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import func, scf
from xdsl.dialects.builtin import SymbolRefAttr
from xdsl.ir import Block, Operation, SSAValue

from landbridge.codegen.c.emitter import Emitter, Printer
from landbridge.codegen.c.scalar import signed
from landbridge.errors import CodegenError


def _for(e: Emitter, op: Operation) -> None:
    lower, upper, step, *initial = op.operands
    block = op.regions[0].block
    induction, *carried = block.args
    names = [e.variable(v, e.names[start]) for v, start in zip(carried, initial, strict=True)]
    kind, counter = e.kind(lower), e.fresh()
    first, last, by = (signed(kind, e.names[v]) for v in (lower, upper, step))
    e.open(f"for ({kind.signed} {counter} = {first}; {counter} < {last}; {counter} += {by})")
    e.names[induction] = counter
    if kind.element != "index":
        e.set(induction, f"({kind.scalar}){counter}")
    e.assign(names, _block(e, block))
    e.close()
    e.names.update(zip(op.results, names, strict=True))


def _if(e: Emitter, op: Operation) -> None:
    names = [e.variable(result) for result in op.results]
    e.open(f"if ({e.names[op.operands[0]]})")
    e.assign(names, _block(e, op.regions[0].block))
    if op.regions[1].blocks:
        e.otherwise()
        e.assign(names, _block(e, op.regions[1].block))
    e.close()


def _while(e: Emitter, op: Operation) -> None:
    test, turn = op.regions[0].block, op.regions[1].block
    names = [e.variable(v, e.names[start]) for v, start in zip(test.args, op.operands, strict=True)]
    results = [e.variable(result) for result in op.results]
    e.open("for (;;)")
    condition, *passed = _block(e, test)
    e.assign(results, passed)
    e.line(f"if (!{e.names[condition]}) break;")
    e.names.update(zip(turn.args, results, strict=True))
    e.assign(names, _block(e, turn))
    e.close()


def _block(e: Emitter, block: Block) -> Sequence[SSAValue]:
    """Print a region's only block; the operands of its terminator."""
    *ops, last = block.ops
    e.region(ops)
    if not isinstance(last, scf.YieldOp | scf.ConditionOp):
        raise CodegenError(f"a region ends with {last.name!r}; legal: scf.yield, scf.condition")
    return tuple(last.operands)


def _call(e: Emitter, op: Operation) -> None:
    callee = op.properties["callee"]
    assert isinstance(callee, SymbolRefAttr)
    if len(op.results) > 1:
        raise CodegenError(f"call of {callee.root_reference.data!r}: at most one result is supported")
    call = f"{e.unit.bodies[callee.root_reference.data]}({', '.join(e.names[v] for v in op.operands)})"
    if op.results:
        e.set(op.results[0], call)
    else:
        e.line(f"{call};")


def _return(e: Emitter, op: Operation) -> None:
    if len(op.operands) > 1:
        raise CodegenError("a function returns at most one value; write the others through memrefs")
    if op.operands:
        e.line(f"return {e.names[op.operands[0]]};")


PRINTERS: dict[type[Operation], Printer] = {
    scf.ForOp: _for,
    scf.IfOp: _if,
    scf.WhileOp: _while,
    func.CallOp: _call,
    func.ReturnOp: _return,
}
