"""LLVM IR of innermost loops that add products to sums with NEON of ARMv7, whose VLD1 loads two vectors at once.

LLVM makes no such loads itself. Where they are asked for and it is free to order them, its schedulers load what many
multiplications want before the first of them, and sums are spilled for it: a tile of 4 by 2 sums took 54 to 74
instructions on Cortex-A7, and takes 47 with loads of one vector. Here the order is chosen and fixed: the address of a
load depends on the multiply-add before it, by an empty piece of assembly, which is no instruction. With two vectors of
weights at a time such a tile takes 43.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects import arith, scf, vector
from xdsl.dialects.builtin import Float32Type, IndexType, VectorType
from xdsl.ir import Block, Operation, SSAValue

from landbridge.codegen.contraction import fused_product
from landbridge.codegen.llvm.advancing import Advancing, Carried
from landbridge.codegen.llvm.emitter import LlvmEmitter
from landbridge.codegen.llvm.memory import address
from landbridge.codegen.llvm.paired_loads import Fetch, LaneProduct, Load, paired_steps
from landbridge.codegen.printing import lane_position
from landbridge.records import record

#: Registers of NEON of four floats, less one: those of two vectors have to be next to each other.
_REGISTERS = 15
_LANES, _VECTOR_BYTES = 4, 16
_VECTOR, _PAIR = "<4 x float>", "{ <4 x float>, <4 x float> }"
_LOAD_PAIR = "llvm.arm.neon.vld1x2.v4f32.p0"


@record(frozen=True)
class _Products:
    """What an iteration does: operations that compute ``indices``, ``loads`` of vectors, and ``terms`` of the sums."""

    indices: tuple[Operation, ...]
    loads: tuple[vector.LoadOp, ...]
    terms: tuple[LaneProduct, ...]


def emit_products(e: LlvmEmitter, loop: Advancing, body: Block) -> Sequence[SSAValue] | None:
    """Prints ``body``, that of a loop that carries the pointers of ``loop``, if it does nothing but add products to
    the sums that it carries, of vectors in memory and lanes of others; returns what it yields.

    Returns None, and has printed nothing that is used, where the body does anything else, where loads of two vectors
    gain nothing, where each vector of weights has one use, as in products of one row (sums are spilled there), and
    where several windows are unrolled: sums get more terms there than a vector has lanes, whose order fits the
    registers only as LLVM interleaves it (100 instructions for 68 multiply-adds, against 149 in this order).
    """
    found = _products(body)
    if found is None or len(found.terms) > _LANES * (len(body.args) - 1):
        return None
    if len(found.terms) < 2 * len({term.factor for term in found.terms}):
        return None
    e.region(found.indices)
    e.scopes.append({})
    names = [address(e, op.operands[0], op.operands[1:], in_bounds=True)[0] for op in found.loads]
    e.scopes.pop()
    uses = {use.name: Load(carried.name, use.offset) for carried in loop.all() for use in carried.uses}
    for carried in loop.all():
        carried.uses.clear()
    if any(name not in uses for name in names):
        return None
    loads, sums = [uses[name] for name in names], body.args[1:]
    steps = paired_steps(loads, found.terms, _REGISTERS - len(sums))
    if steps is None:
        return None
    carried_by = {carried.name: carried for carried in loop.all()}
    totals = _emit(e, loads, steps, carried_by, [e.names[value] for value in sums])
    assert body.last_op is not None
    for value, name in zip(body.last_op.operands, totals, strict=True):
        e.names[value] = name
    return tuple(body.last_op.operands)


def _emit(
    e: LlvmEmitter,
    loads: Sequence[Load],
    steps: Sequence[Fetch | LaneProduct],
    carried: Mapping[str, Carried],
    sums: Sequence[str],
) -> list[str]:
    """Prints ``steps``, which add to ``sums`` and advance the pointers; returns the new sums."""
    totals, latest = list(sums), ""
    vectors, lanes = dict[int, str](), dict[tuple[int, int], str]()
    accesses: dict[str, list[Fetch]] = {}
    for step in steps:
        if isinstance(step, Fetch):
            accesses.setdefault(loads[step.loads[0]].pointer, []).append(step)
    for pointer, found in accesses.items():
        each, offset = carried[pointer], loads[found[0].loads[0]].offset
        each.following = pointer
        if offset:
            each.first = e.once(f"getelementptr i8, ptr {each.first}, i64 {offset}", each.first)
    for step in steps:
        if isinstance(step, Fetch):
            pointer = loads[step.loads[0]].pointer
            at = _after(e, carried[pointer].following, latest)
            for number, name in zip(step.loads, _loaded(e, at, len(step.loads)), strict=True):
                vectors[number] = name
            distance = _distance(e, loads, step, accesses[pointer], carried[pointer])
            carried[pointer].following = e.emit(f"getelementptr i8, ptr {at}, {distance}")
            continue
        key = step.scalars, step.lane
        if key not in lanes:
            mask = ", ".join(f"i32 {step.lane}" for _ in range(_LANES))
            scalars = vectors[step.scalars]
            lanes[key] = e.emit(f"shufflevector {_VECTOR} {scalars}, {_VECTOR} poison, <{_LANES} x i32> <{mask}>")
        factors = [vectors[step.factor], lanes[key], totals[step.sum]]
        latest = totals[step.sum] = e.emit(e.intrinsic("fmuladd", _VECTOR, factors, "contract "))
    return totals


def _after(e: LlvmEmitter, pointer: str, total: str) -> str:
    """Returns ``pointer``, by what LLVM takes for an instruction that reads ``total`` where that is not "": what
    accesses it comes later, and does not move to a constant distance from another pointer.
    """
    if not total:
        return e.emit(f'call ptr asm "", "=r,0"(ptr {pointer}) nounwind memory(none)')
    return e.emit(f'call ptr asm "", "=r,0,w"(ptr {pointer}, {_VECTOR} {total}) nounwind memory(none)')


def _loaded(e: LlvmEmitter, pointer: str, count: int) -> list[str]:
    """Returns the names of ``count`` vectors from ``pointer`` on, loaded by one instruction."""
    if count == 1:
        return [e.emit(f"load {_VECTOR}, ptr {pointer}, align 4")]
    e.module.declare(_LOAD_PAIR, _PAIR, ["ptr"])
    both = e.emit(f"call {_PAIR} @{_LOAD_PAIR}(ptr {pointer})")
    return [e.emit(f"extractvalue {_PAIR} {both}, {i}") for i in range(count)]


def _distance(e: LlvmEmitter, loads: Sequence[Load], fetch: Fetch, accesses: Sequence[Fetch], carried: Carried) -> str:
    """Returns what is added to the pointer of ``fetch`` for the next of ``accesses``, or the first one of the next
    iteration: an operand, with its type.

    VLD1 adds what it loads, or a register. A register is defined before the loop.
    """
    number, offset = accesses.index(fetch), loads[fetch.loads[0]].offset
    following = accesses[(number + 1) % len(accesses)]
    nbytes, advance = loads[following.loads[0]].offset - offset, ""
    if number + 1 == len(accesses):
        if carried.advance[0] == "%":
            advance = carried.advance
        else:
            nbytes += int(carried.advance)
    if not advance and nbytes == len(fetch.loads) * _VECTOR_BYTES:
        return f"i64 {nbytes}"
    value = str(nbytes)
    if advance:
        value = advance if e.word == "i64" else e.once(f"trunc i64 {advance} to {e.word}", advance)
        value = e.once(f"add {e.word} {value}, {nbytes}", value) if nbytes else value
    hidden = f'call {e.word} asm "", "=r,0"({e.word} {value}) nounwind memory(none)'
    return f"{e.word} {e.once(hidden, value if advance else carried.first)}"


def _products(body: Block) -> _Products | None:
    """Returns what the body of a loop does; None where it is anything else than products that are added to sums."""
    kind = VectorType(Float32Type(), [_LANES])
    if any(value.type != kind for value in body.args[1:]):
        return None
    slots: dict[SSAValue, int] = {value: number for number, value in enumerate(body.args[1:])}
    loads, scalars = dict[SSAValue, int](), dict[SSAValue, tuple[int, int]]()
    indices, operations, terms, products = list[Operation](), list[vector.LoadOp](), list[LaneProduct](), 0
    for op in body.ops:
        match op:
            case vector.LoadOp() if op.results[0].type == kind:
                loads[op.results[0]] = len(operations)
                operations.append(op)
            case vector.ExtractOp() if op.operands[0] in loads and isinstance(lane := lane_position(op, 1), int):
                scalars[op.results[0]] = loads[op.operands[0]], lane
            case vector.BroadcastOp() if op.operands[0] in scalars:
                scalars[op.results[0]] = scalars[op.operands[0]]
            case arith.MulfOp() if op.results[0].type == kind:
                products += 1
            case arith.AddfOp() if (term := _term(op, slots, loads, scalars)) is not None:
                slots[op.results[0]] = term.sum
                terms.append(term)
            case scf.YieldOp() if [slots.get(value) for value in op.operands] == list(range(len(body.args) - 1)):
                pass
            case _ if op.results and all(type(result.type) is IndexType for result in op.results):
                indices.append(op)
            case _:
                return None
    return _Products(tuple(indices), tuple(operations), tuple(terms)) if products == len(terms) else None


def _term(
    op: arith.AddfOp,
    slots: Mapping[SSAValue, int],
    loads: Mapping[SSAValue, int],
    scalars: Mapping[SSAValue, tuple[int, int]],
) -> LaneProduct | None:
    """Returns the term that ``op`` adds to a sum; None where it is another addition."""
    product = fused_product(op)
    if product is None:
        return None
    addend = op.operands[1] if op.operands[0] is product.results[0] else op.operands[0]
    factor, other = product.operands
    if factor not in loads:
        factor, other = other, factor
    if addend not in slots or not addend.has_one_use() or factor not in loads or other not in scalars:
        return None
    return LaneProduct(slots[addend], loads[factor], *scalars[other])
