"""Values of shared code that differ from call to call, and how the code computes them from the words that a call
passes.

If, in every call of the shared code, one value is another one times a factor plus an offset, both are computed from one
word. An example is the locations of neighbouring elements. For LLVM it is a sum with a constant, which needs no
register.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xdsl.dialects import arith, memref, vector
from xdsl.dialects.builtin import IndexType, IntegerAttr, VectorType, i32
from xdsl.ir import Attribute, Operation, SSAValue

from landbridge.passes.lower.cost import SHARED_CODE
from landbridge.records import record
from landbridge.sizes.size import Size


@record(frozen=True)
class WordTerm:
    """The value ``factor * memory[word] + offset``."""

    word: int
    factor: int = 1
    offset: int = 0


def terms(rows: Iterable[tuple[int, ...]]) -> dict[tuple[int, ...], WordTerm]:
    """Returns, for each of ``rows`` (the values of one index in all calls), its term; the terms use as few words as
    possible.
    """
    found: dict[tuple[int, ...], WordTerm] = {}
    bases: list[tuple[int, ...]] = []
    rows = dict.fromkeys(rows)
    known = [row for row in rows if not any(isinstance(value, Size) for value in row)]
    for row in [*sorted(known), *(row for row in rows if row not in known)]:
        candidates = [term for word, base in enumerate(bases) if (term := _term(row, base, word)) is not None]
        if not candidates:
            candidates = [WordTerm(len(bases))]
            bases.append(row)
        found[row] = min(candidates, key=lambda term: (term.factor, abs(term.offset)))
    return found


def _term(row: Sequence[int], base: Sequence[int], word: int) -> WordTerm | None:
    """Returns ``row`` as a term of ``base``, which differs between calls; None if it is not a multiple of it plus a
    constant.
    """
    if any(isinstance(value, Size) for value in (*row, *base)):
        return None
    other = next(i for i, value in enumerate(base) if value != base[0])
    factor, rest = divmod(row[other] - row[0], base[other] - base[0])
    offset = row[0] - factor * base[0]
    if rest or not 1 <= factor <= SHARED_CODE.factor:
        return None
    same = all(value == factor * each + offset for value, each in zip(row, base, strict=True))
    return WordTerm(word, factor, offset) if same else None


class CallWords:
    """Values read from the words in ``memory``. ``ops`` are the operations that compute them, each value once."""

    def __init__(self, memory: SSAValue) -> None:
        self._memory = memory
        self._values: dict[tuple[WordTerm, Attribute], SSAValue] = {}
        self.ops: list[Operation] = []

    def value(self, term: WordTerm, kind: Attribute) -> SSAValue:
        """Returns ``term`` as a value of type ``kind``: an index, or the bits of an f32, as a scalar or in each lane of
        a vector.
        """
        if (found := self._values.get((term, kind))) is None:
            found = self._values[term, kind] = self._make(term, kind)
        return found

    def _make(self, term: WordTerm, kind: Attribute) -> SSAValue:
        if isinstance(kind, VectorType):
            return self._add(
                vector.BroadcastOp.create(operands=[self.value(term, kind.element_type)], result_types=[kind])
            )
        if term.offset:
            rest = self.value(WordTerm(term.word, term.factor), kind)
            return self._add(arith.AddiOp(rest, self._index(term.offset)))
        if term.factor != 1:
            return self._add(arith.MuliOp(self.value(WordTerm(term.word), kind), self._index(term.factor)))
        load = self._add(memref.LoadOp.get(self._memory, [self._index(term.word)]))
        if isinstance(kind, IndexType):
            return self._add(arith.IndexCastOp(load, kind))
        return self._add(arith.BitcastOp(self._add(arith.TruncIOp(load, i32)), kind))

    def _index(self, number: int) -> SSAValue:
        return self._add(arith.ConstantOp(IntegerAttr(number, IndexType())))

    def _add(self, op: Operation) -> SSAValue:
        self.ops.append(op)
        return op.results[0]
