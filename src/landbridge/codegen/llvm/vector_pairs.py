"""Loads of two adjacent vectors by one instruction, among the accesses by pointers that a loop carries."""

from __future__ import annotations

from landbridge.codegen.llvm.advancing import Advancing, Carried, PointerUse
from landbridge.codegen.llvm.emitter import LlvmEmitter
from landbridge.codegen.llvm.live_vectors import LiveVectors
from landbridge.codegen.llvm.types import suffix

#: Types that are loaded in pairs, and their bytes.
_PAIRED = ("<4 x float>", "<4 x i32>")
_VECTOR_BYTES = 16


def load_in_pairs(e: LlvmEmitter, symbol: str, loop: Advancing) -> None:
    """Makes one load of two vectors of each pair of loads in ``loop`` if there are registers for all second vectors
    from the first loads on.

    LLVM allocates pairs beside single vectors badly: it spills where all are loaded alone or all in pairs fit. A vector
    that is loaded alone is therefore counted as two.
    """
    live = LiveVectors(e.lines, loop.first_line, loop.vectors)
    found, singles = _pairs(loop)
    registers = e.module.isa.registers - (1 if singles else 0)
    if not all(live.join(a.load.result, b.load.result, registers) for _, a, b in found if a.load and b.load):
        return
    for carried, first, second in found:
        _load_both(e, symbol, first, second)
        carried.uses.remove(second)


def _pairs(loop: Advancing) -> tuple[list[tuple[Carried, PointerUse, PointerUse]], int]:
    """Returns the pairs of loads of adjacent vectors, and how many loads of vectors are in none."""
    found, singles = [], 0
    for carried in loop.all():
        remaining = list(carried.uses)
        while remaining:
            first = remaining.pop(0)
            second = next((a for a in remaining if _is_pair(first, a)), None)
            if second is not None:
                remaining.remove(second)
                found.append((carried, first, second))
            elif first.load is not None and first.load.kind in _PAIRED:
                singles += 1
    return found, singles


def _is_pair(first: PointerUse, second: PointerUse) -> bool:
    a, b = first.load, second.load
    if a is None or b is None or a.kind != b.kind or a.kind not in _PAIRED or b.line < a.line:
        return False
    return first.epoch == second.epoch and second.offset - first.offset == _VECTOR_BYTES


def _load_both(e: LlvmEmitter, symbol: str, first: PointerUse, second: PointerUse) -> None:
    assert first.load is not None and second.load is not None
    kind = first.load.kind
    pair, name, symbol = f"{{{kind}, {kind}}}", e.fresh(), f"{symbol}.{suffix(kind)}.p0"
    e.module.declare(symbol, pair, ["ptr"])
    e.lines[first.load.line] = (
        f"  {name} = call {pair} @{symbol}(ptr {first.name})\n"
        f"  {first.load.result} = extractvalue {pair} {name}, 0\n"
        f"  {second.load.result} = extractvalue {pair} {name}, 1"
    )
    e.lines[second.load.line] = ""
