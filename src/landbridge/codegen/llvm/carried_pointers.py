"""LLVM IR of the pointers that an innermost loop carries: where they begin, each use, and how far they advance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.ir import SSAValue

from landbridge.codegen.llvm.advancing import Advancing, Carried, PointerUse
from landbridge.codegen.llvm.emitter import LlvmEmitter

#: A name of an index, and a name that it is multiplied by, or "".
Key = tuple[str, str]
#: Bytes that an address has for each 1 of a product of names.
Terms = dict[Key, int]


def carried_pointer(
    e: LlvmEmitter, pointer: str, indices: Sequence[SSAValue], strides: Sequence[int], constant: int, nbytes: int
) -> str | None:
    """Returns the pointer to the element by one that the innermost loop carries; None where it carries none for it:
    the address does not depend on its counter, or on something else that changes.
    """
    loop = e.advancing
    if loop is None or not e.is_invariant(pointer):
        return None
    terms: Terms = {}
    for index, stride in zip(indices, strides, strict=True):
        constant += _add_terms(e, terms, e.names[index], stride * nbytes)
    start = constant
    steps = {times: terms.pop((loop.counter, times)) for name, times in list(terms) if name == loop.counter}
    if not steps or not all(e.is_invariant(name) for key in terms for name in key):
        return None
    ordered = sorted(terms.items(), key=lambda term: max(e.depths.get(name, 0) for name in term[0]))
    base = f"{pointer} {ordered} {steps}"
    found = loop.sharing(base, start)
    if found is None:
        if loop.is_full:
            return None
        name = e.fresh()
        found = Carried(name, *_first(e, pointer, ordered, steps, start), start)
        e.enter(name)
        loop.add(base, found)
    name = e.fresh()
    e.enter(name)
    e.lines.append("")
    found.uses.append(PointerUse(len(e.lines) - 1, name, start - found.start, e.is_in_body))
    return name


def _first(
    e: LlvmEmitter, pointer: str, terms: Sequence[tuple[Key, int]], steps: Mapping[str, int], constant: int
) -> tuple[str, str]:
    """Returns the pointer to the element in the first iteration of the innermost loop, and how many bytes an iteration
    adds: names that are defined before the loop, or a number.
    """
    assert e.advancing is not None
    lower, step = e.advancing.lower, e.advancing.step
    for key, by in terms:
        pointer = _moved(e, pointer, _product(e, *key, by))
    distances = [_product(e, times, "", by) if times else str(by) for times, by in steps.items()]
    if constant:
        pointer = _moved(e, pointer, str(constant))
    advance = ""
    for distance in distances:
        if lower != "0":
            pointer = _moved(e, pointer, _product(e, lower, distance, 1))
        further = _product(e, distance, "", step)
        advance = further if not advance else e.once(f"add nsw i64 {advance}, {further}", advance, further)
    return pointer, advance


def _moved(e: LlvmEmitter, pointer: str, nbytes: str) -> str:
    return e.once(f"getelementptr i8, ptr {pointer}, i64 {nbytes}", pointer, nbytes)


def _product(e: LlvmEmitter, x: str, y: str, by: int) -> str:
    """Returns the product of ``x``, ``y`` where that is not "", and ``by``: a name, or a number."""
    factors = [name for name in (x, y) if name[:1] == "%"]
    for number in (x, y):
        by *= int(number) if number and number[0] != "%" else 1
    if not factors:
        return str(by)
    total = factors[0]
    if len(factors) > 1:
        total = e.once(f"mul nsw i64 {factors[0]}, {factors[1]}", *factors)
    return total if by == 1 else e.once(f"mul nsw i64 {total}, {by}", total)


def _add_terms(e: LlvmEmitter, terms: Terms, name: str, factor: int, times: str = "") -> int:
    """Adds index ``name`` times ``factor`` and ``times``, a name or "", to ``terms``, as a sum of products of names
    that are defined outside of the innermost loop and of its counter; returns the constant of that sum.
    """
    if name[0] != "%":
        if not times:
            return int(name) * factor
        terms[times, ""] = terms.get((times, ""), 0) + int(name) * factor
        return 0
    if not e.is_invariant(name):
        if name in e.sums:
            parts, constant = e.sums[name]
            total = sum(_add_terms(e, terms, part, by * factor, times) for part, by in parts)
            return total + (_add_terms(e, terms, str(constant), factor, times) if constant else 0)
        x, y = e.products.get(name, ("", ""))
        if not times and x and e.is_invariant(x) != e.is_invariant(y):
            x, y = (y, x) if e.is_invariant(x) else (x, y)
            return _add_terms(e, terms, x, factor, y)
    terms[name, times] = terms.get((name, times), 0) + factor
    return 0


def finish(e: LlvmEmitter, loop: Advancing, before: str) -> list[str]:
    """Writes the lines of the pointers of ``loop``, whose body has been printed; returns their phis.

    ``before``: the block before the loop. LLVM would add the constants separately to one register. The sums are hidden
    from it, so that each access adds to the register what the next one needs.
    """
    return [_finish(e, carried, before) for carried in loop.all()]


def _finish(e: LlvmEmitter, carried: Carried, before: str) -> str:
    if carried.following:
        return f"  {carried.name} = phi ptr [ {carried.first}, %{before} ], [ {carried.following}, %{e.block} ]"
    last, at = carried.name, 0
    for use in carried.uses:
        moved = use.offset - at
        if not use.in_body or not moved:
            e.lines[use.line] = f"  {use.name} = getelementptr i8, ptr {last}, i64 {moved}"
            continue
        sum_ = e.fresh()
        e.lines[use.line] = (
            f"  {sum_} = getelementptr i8, ptr {last}, i64 {moved}\n"
            f'  {use.name} = call ptr asm "", "=r,0"(ptr {sum_}) nounwind memory(none)'
        )
        last, at = use.name, use.offset
    word = e.word
    if carried.advance[0] == "%":
        rest = carried.advance
        if word != "i64":
            rest = e.once(f"trunc i64 {rest} to {word}", rest)
        rest = e.once(f"sub {word} {rest}, {at}", rest)
        rest = e.once(f'call {word} asm "", "=r,0"({word} {rest}) nounwind memory(none)', rest)
    else:
        rest = str(int(carried.advance) - at)
    following = e.emit(f"getelementptr i8, ptr {last}, {word} {rest}")
    return f"  {carried.name} = phi ptr [ {carried.first}, %{before} ], [ {following}, %{e.block} ]"
