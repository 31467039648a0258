"""LLVM IR of structured control flow and calls."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import func, scf
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block, Operation, SSAValue

from landbridge.codegen.llvm.advancing import Advancing
from landbridge.codegen.llvm.carried_pointers import finish
from landbridge.codegen.llvm.emitter import INDEX_BITS, LlvmEmitter, Printer
from landbridge.codegen.llvm.neon_products import emit_products
from landbridge.codegen.printing import callee, returned

#: Instructions up to which a loop of known length is unrolled; loops already lowered to vectors get no other unrolling.
_UNROLLED_LINES = 160


def _for(e: LlvmEmitter, op: Operation) -> None:
    lower, upper, step, *initial = op.operands
    block = op.regions[0].block
    kind = e.type(lower.type)
    head, body, done = e.label("for"), e.label("body"), e.label("done")
    before, names = e.block, [e.names[value] for value in (lower, upper, step)]
    narrow = e.module.isa.address_bits < INDEX_BITS and kind == f"i{INDEX_BITS}"
    if narrow:
        kind = e.word
        first, end, by = (e.cut(bound) for bound in names)
    else:
        first, end, by = names
    induction, *carried = block.args
    name = counter = e.define(induction)
    advancing = _advancing(e, block, name, names)
    e.begin_loop(advancing)
    e.line(f"br label %{head}")
    e.start_block(head)
    e.enter(name)
    if narrow:
        e.short.add(name)
    _define_all(e, carried)
    phis = len(e.lines)
    e.lines.append("")
    if narrow:
        counter = f"{name}.narrow"
        e.line(f"{name} = sext {kind} {counter} to i{INDEX_BITS}")
    going = e.emit(f"icmp slt {kind} {counter}, {end}")
    e.line(f"br i1 {going}, label %{body}, label %{done}")
    e.start_block(body)
    around, e.accumulates = e.accumulates, bool(carried)
    products = emit_products(e, advancing, block) if advancing else None
    yielded = e.nested(block) if products is None else products
    e.accumulates = around
    following = e.emit(f"add nsw {kind} {counter}, {by}")
    pointers = finish(e, advancing, before) if advancing else []
    trips = _trips(*names)
    unroll = trips > 1 and trips * (len(e.lines) - phis) <= _UNROLLED_LINES
    e.line(f"br label %{head}{e.module.unrolled_loop() if unroll else ''}")
    lines = [f"  {counter} = phi {kind} [ {first}, %{before} ], [ {following}, %{e.block} ]"]
    lines += [*_phis(e, carried, initial, before, yielded), *pointers]
    e.lines[phis] = "\n".join(lines)
    e.end_loop()
    e.start_block(done)
    for result, value in zip(op.results, carried, strict=True):
        e.names[result] = e.names[value]


def _advancing(e: LlvmEmitter, body: Block, counter: str, bounds: Sequence[str]) -> Advancing | None:
    """Returns where the pointers of a loop are collected; None for one that carries none, as one with loops inside,
    which want the registers.
    """
    lower, _, step = bounds
    if not e.module.isa.advances or "%" in step:
        return None
    if any(isinstance(op, scf.ForOp | scf.WhileOp) for op in body.walk()):
        return None
    return Advancing(counter, lower, int(step))


def _trips(lower: str, upper: str, step: str) -> int:
    """Returns the trip count of a loop if its bounds are constants; else 0."""
    if "%" in lower + upper + step or int(step) < 1:
        return 0
    return max(0, -(-(int(upper) - int(lower)) // int(step)))


def _if(e: LlvmEmitter, op: Operation) -> None:
    has_else = bool(op.regions[1].blocks)
    then, done = e.label("then"), e.label("endif")
    otherwise = e.label("else") if has_else else done
    e.line(f"br i1 {e.names[op.operands[0]]}, label %{then}, label %{otherwise}")
    ends: list[tuple[Sequence[SSAValue], str]] = []
    for label, region in ((then, op.regions[0]), (otherwise, op.regions[1])):
        if region.blocks:
            e.start_block(label)
            ends.append((e.nested(region.block), e.block))
            e.line(f"br label %{done}")
    e.start_block(done)
    for i, result in enumerate(op.results):
        sources = ", ".join(f"[ {e.names[values[i]]}, %{block} ]" for values, block in ends)
        e.set(result, f"phi {e.type(result.type)} {sources}")
        if isinstance(result.type, IndexType):
            e.depths[e.names[result]] = e.depth
            if all(e.is_short(e.names[values[i]]) for values, _ in ends):
                e.short.add(e.names[result])


def _while(e: LlvmEmitter, op: Operation) -> None:
    test, body_block = op.regions[0].block, op.regions[1].block
    head, body, done = e.label("while"), e.label("do"), e.label("done")
    before = e.block
    e.begin_loop()
    e.line(f"br label %{head}")
    e.start_block(head)
    _define_all(e, test.args)
    phis = len(e.lines)
    e.lines.append("")
    condition, *passed = e.nested(test)
    e.line(f"br i1 {e.names[condition]}, label %{body}, label %{done}")
    # The values of the test are visible in the body and after the loop: no phi is needed.
    for value, result, source in zip(body_block.args, op.results, passed, strict=True):
        e.names[value] = e.names[result] = e.names[source]
    e.start_block(body)
    yielded = e.nested(body_block)
    e.line(f"br label %{head}")
    e.lines[phis] = "\n".join(_phis(e, test.args, op.operands, before, yielded))
    e.end_loop()
    e.start_block(done)


def _phis(
    e: LlvmEmitter, values: Sequence[SSAValue], initial: Sequence[SSAValue], before: str, yielded: Sequence[SSAValue]
) -> list[str]:
    """Makes phis of ``values``, which come from block ``before`` the first time and from the current block later."""
    names, after = e.names, e.block
    return [
        f"  {names[v]} = phi {e.type(v.type)} [ {names[first]}, %{before} ], [ {names[last]}, %{after} ]"
        for v, first, last in zip(values, initial, yielded, strict=True)
    ]


def _define_all(e: LlvmEmitter, values: Sequence[SSAValue]) -> None:
    for value in values:
        name = e.define(value)
        if type(value.type) is IndexType:
            e.depths[name] = e.depth


def _call(e: LlvmEmitter, op: Operation) -> None:
    args = ", ".join(f"{e.type(v.type)} {e.names[v]}" for v in op.operands)
    target = body_symbol(callee(op))
    if op.results:
        e.set(op.results[0], f"call {e.type(op.results[0].type)} {target}({args})")
    else:
        e.line(f"call void {target}({args})")


def _return(e: LlvmEmitter, op: Operation) -> None:
    value = returned(op)
    e.line("ret void" if value is None else f"ret {e.type(value.type)} {e.names[value]}")


def body_symbol(name: str) -> str:
    """Returns the LLVM name of the internal function that holds the body of function ``name``."""
    return f'@"{name}.body"'


PRINTERS: dict[type[Operation], Printer] = {
    scf.ForOp: _for,
    scf.IfOp: _if,
    scf.WhileOp: _while,
    func.CallOp: _call,
    func.ReturnOp: _return,
}
