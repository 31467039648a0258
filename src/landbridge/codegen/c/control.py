"""C of structured control flow and calls."""

from __future__ import annotations

from xdsl.dialects import func, scf
from xdsl.ir import Operation

from landbridge.codegen.c.emitter import CEmitter, Printer
from landbridge.codegen.c.scalar import signed
from landbridge.codegen.printing import callee, returned


def _for(e: CEmitter, op: Operation) -> None:
    lower, upper, step, *initial = op.operands
    block = op.regions[0].block
    induction, *carried = block.args
    names = e.variables(carried, initial)
    kind, counter = e.kind(lower), e.fresh()
    first, last, by = (signed(kind, e.names[v]) for v in (lower, upper, step))
    e.open(f"for ({kind.signed} {counter} = {first}; {counter} < {last}; {counter} += {by})")
    e.names[induction] = counter
    if kind.element != "index":
        e.set(induction, f"({kind.scalar}){counter}")
    e.assign(names, e.nested(block))
    e.close()
    e.rename(op.results, names)


def _if(e: CEmitter, op: Operation) -> None:
    names = e.variables(op.results)
    e.open(f"if ({e.names[op.operands[0]]})")
    e.assign(names, e.nested(op.regions[0].block))
    if op.regions[1].blocks:
        e.otherwise()
        e.assign(names, e.nested(op.regions[1].block))
    e.close()


def _while(e: CEmitter, op: Operation) -> None:
    test, body_block = op.regions[0].block, op.regions[1].block
    names = e.variables(test.args, op.operands)
    results = e.variables(op.results)
    e.open("for (;;)")
    condition, *passed = e.nested(test)
    e.assign(results, passed)
    e.line(f"if (!{e.names[condition]}) break;")
    e.rename(body_block.args, results)
    e.assign(names, e.nested(body_block))
    e.close()


def _call(e: CEmitter, op: Operation) -> None:
    call = f"{e.unit.bodies[callee(op)]}({', '.join(e.names[v] for v in op.operands)})"
    if op.results:
        e.set(op.results[0], call)
    else:
        e.line(f"{call};")


def _return(e: CEmitter, op: Operation) -> None:
    value = returned(op)
    if value is not None:
        e.line(f"return {e.names[value]};")


PRINTERS: dict[type[Operation], Printer] = {
    scf.ForOp: _for,
    scf.IfOp: _if,
    scf.WhileOp: _while,
    func.CallOp: _call,
    func.ReturnOp: _return,
}
