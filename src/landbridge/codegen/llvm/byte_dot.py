"""LLVM IR of products of bytes.

Where the CPU multiplies bytes and adds four products to a sum in one instruction that does not saturate (``vpdpbusd``,
``usdot``), the addition that reads a product becomes part of it. ``sdot`` takes signs on both sides: with 128 less data
have one, and 128 times the weights are two products with 64, the same for all rows. Elsewhere bytes become 16-bit
integers, of which pairs of products are added: 2 * 255 * 128 fits, and 255 * 128 in 16 bits. What has nothing of that
is left to LLVM as products of i32.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import VectorType
from xdsl.ir import Operation, SSAValue

from landbridge.codegen.llvm.arith import PRINTERS as INTEGERS
from landbridge.codegen.llvm.emitter import LlvmEmitter, Printer
from landbridge.codegen.llvm.types import lanes_of, splat
from landbridge.ir.prim_ops import ByteDotOp

#: Intrinsics by the instruction that Isa names and the bits of a vector (LLVM, IntrinsicsX86.td, IntrinsicsAArch64.td).
_DOTS = {
    "vpdpbusd": {bits: f"llvm.x86.avx512.vpdpbusd.{bits}" for bits in (128, 256, 512)},
    "usdot": {128: "llvm.aarch64.neon.usdot.v4i32.v16i8"},
    "sdot": {128: "llvm.aarch64.neon.sdot.v4i32.v16i8"},
    "": {},
}
_PAIRS = {
    "pmaddwd": {512: "llvm.x86.avx512.pmaddw.d.512", 256: "llvm.x86.avx2.pmadd.wd", 128: "llvm.x86.sse2.pmadd.wd"},
    "saddlp": {128: "llvm.aarch64.neon.saddlp.v4i32.v8i16"},
    "": {},
}


def _bits(e: LlvmEmitter, value: SSAValue) -> int:
    return 32 * lanes_of(e.type(value.type))


def _has_dots(e: LlvmEmitter, value: SSAValue) -> bool:
    return _bits(e, value) in _DOTS[e.module.isa.dots] and _bits(e, value) <= e.module.isa.dot_bits


def _sum_with(e: LlvmEmitter, product: SSAValue) -> Operation | None:
    """Returns the addition that is fused with ``product``; None if there is none.

    The addition must be the only reader of the product. If it adds two products, it is fused with the first.
    """
    if not isinstance(product.owner, ByteDotOp) or not _has_dots(e, product) or not product.has_one_use():
        return None
    user = next(iter(product.uses)).operation
    if not isinstance(user, arith.AddiOp) or user.parent is not product.owner.parent:
        return None
    return user if product is next(v for v in user.operands if isinstance(v.owner, ByteDotOp)) else None


def _add(e: LlvmEmitter, op: Operation) -> None:
    # most additions are of indices
    pairs = (op.operands, reversed(op.operands)) if type(op.results[0].type) is VectorType else ()
    for product, other in pairs:
        if _sum_with(e, product) is op:
            assert isinstance(product.owner, ByteDotOp)
            e.set(op.results[0], _dot(e, product.owner, e.names[other]))
            return
    INTEGERS[arith.AddiOp](e, op)


def _product(e: LlvmEmitter, op: Operation) -> None:
    assert isinstance(op, ByteDotOp)
    kind, result = e.type(op.result.type), op.result
    if _sum_with(e, result) is not None:
        return
    if _has_dots(e, result):
        e.set(result, _dot(e, op, splat(0, kind)))
    elif _bits(e, result) in _PAIRS[e.module.isa.pairs] and _bits(e, result) <= e.module.isa.pair_bits:
        _pairs(e, op)
    else:
        _by_shifts(e, op)


def _dot(e: LlvmEmitter, op: ByteDotOp, total: str) -> str:
    """Returns the text of an instruction: ``total`` plus the sums of products of ``op``. The caller emits it."""
    kind, dots = e.type(op.result.type), e.module.isa.dots
    symbol = _DOTS[dots][_bits(e, op.result)]
    operands = kind if dots == "vpdpbusd" else f"<{4 * lanes_of(kind)} x i8>"
    x, y = (e.names[v] for v in op.operands)
    if operands != kind:
        x, y = (e.once(f"bitcast {kind} {name} to {operands}") for name in (x, y))
    if dots == "sdot":
        half = (operands, splat(64, operands))
        first = e.once(_call(e, symbol, kind, [(kind, splat(0, kind)), half, (operands, y)]))
        more = e.once(_call(e, symbol, kind, [(kind, first), half, (operands, y)]))
        total = e.emit(f"add {kind} {total}, {more}")
        x = e.once(f"xor {operands} {x}, {splat(-128, operands)}")
    return _call(e, symbol, kind, [(kind, total), (operands, x), (operands, y)])


def _call(e: LlvmEmitter, symbol: str, kind: str, operands: Sequence[tuple[str, str]]) -> str:
    e.module.declare(symbol, kind, [k for k, _ in operands])
    return f"call {kind} @{symbol}({', '.join(f'{k} {name}' for k, name in operands)})"


def _pairs(e: LlvmEmitter, op: ByteDotOp) -> None:
    """Emits the sum of four products for each 32-bit lane with instructions that add pairs of 16-bit products.

    Bytes 0 and 2 of each lane make one pair, bytes 1 and 3 the other.
    """
    kind = e.type(op.result.type)
    half = f"<{2 * lanes_of(kind)} x i16>"
    eight, low = splat(8, half), splat(255, half)
    x, y = (e.once(f"bitcast {kind} {e.names[v]} to {half}") for v in op.operands)
    moved = e.once(f"shl {half} {y}, {eight}")
    even = e.once(f"and {half} {x}, {low}"), e.once(f"ashr {half} {moved}, {eight}")
    odd = e.once(f"lshr {half} {x}, {eight}"), e.once(f"ashr {half} {y}, {eight}")
    first, second = (_pair(e, op, half, *pair) for pair in (even, odd))
    e.set(op.result, f"add {kind} {first}, {second}")


def _pair(e: LlvmEmitter, op: ByteDotOp, half: str, x: str, y: str) -> str:
    """Emits the products of the 16-bit integers ``x`` and ``y`` and adds adjacent ones; returns the name of the i32
    sums.
    """
    kind, pairs = e.type(op.result.type), e.module.isa.pairs
    symbol = _PAIRS[pairs][_bits(e, op.result)]
    if pairs == "pmaddwd":
        return e.emit(_call(e, symbol, kind, [(half, x), (half, y)]))
    product = e.emit(f"mul {half} {x}, {y}")
    return e.emit(_call(e, symbol, kind, [(half, product)]))


def _by_shifts(e: LlvmEmitter, op: ByteDotOp) -> None:
    """Emits the sum of four products of bytes for each 32-bit lane, as additions and products of i32.

    The operands hold four bytes in each lane. Byte k of the first is extended with zeros, byte k of the second with its
    sign, by shifts to the top of the lane and back.
    """
    kind = e.type(op.result.type)
    x, y = (e.names[v] for v in op.operands)
    top, total = splat(24, kind), splat(0, kind)
    for bits in (24, 16, 8, 0):
        a, b = (e.once(f"shl {kind} {name}, {splat(bits, kind)}") for name in (x, y))
        a, b = e.once(f"lshr {kind} {a}, {top}"), e.once(f"ashr {kind} {b}, {top}")
        product = e.emit(f"mul {kind} {a}, {b}")
        total = e.emit(f"add {kind} {total}, {product}")
    e.names[op.result] = total


PRINTERS: dict[type[Operation], Printer] = {ByteDotOp: _product, arith.AddiOp: _add}
