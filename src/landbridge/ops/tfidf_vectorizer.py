"""TfIdfVectorizer: counts each n-gram of a pool in a row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from xdsl.ir import SSAValue

from landbridge.errors import NodeError
from landbridge.ir.loop_builder import LoopBuilder
from landbridge.ir.prim_builder import PrimBuilder
from landbridge.ir.scalars import Value
from landbridge.ir.types import element_count
from landbridge.operators import kernel
from landbridge.ops.accuracy import ROUNDED, accuracy
from landbridge.ops.context import Array, BodyBuffer, OpContext, Operand
from landbridge.ops.legal import at_least, one_of
from landbridge.ops.rules import rules
from landbridge.records import record

#: Odd multipliers of a hash; the products depend on all bits in their high bits.
_OF_NODE, _OF_KEY = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9
#: The rows that one task counts, so that threads rarely write to the same cache line.
_ROWS = 16


@record(frozen=True, eq=False)
class _Trie:
    """Prefixes of n-grams: a ``token`` leads from ``node`` to the node ``after``, where the n-gram ``index`` ends (-1
    for none).

    The entries form a hash table, whose size is a power of two; ``node`` is -1 in empty entries.
    """

    node: Array
    token: Array
    after: Array
    index: Array

    @property
    def shift(self) -> int:
        """Returns the right shift of the hash of a node and a token that gives its row."""
        return 65 - len(self.node).bit_length()

    @staticmethod
    def of(grams: Mapping[tuple[int, ...], int]) -> _Trie:
        """Returns the trie of ``grams``, by their tokens."""
        nodes: dict[tuple[int, ...], int] = {(): 0}
        edges: list[tuple[int, int, int, int]] = []
        for gram in grams:
            for end in range(1, len(gram) + 1):
                if gram[:end] not in nodes:
                    nodes[gram[:end]] = len(nodes)
                    edges.append((nodes[gram[: end - 1]], gram[end - 1], len(nodes) - 1, grams.get(gram[:end], -1)))
        rows = max(2, 1 << (2 * len(edges)).bit_length())  # at least half of the entries are empty
        created = _Trie(*(np.full(rows, -1, dtype) for dtype in (np.int32, np.int64, np.int32, np.int32)))
        for node, token, after, index in edges:
            key = (token ^ (node * _OF_NODE)) % (1 << 64)
            row = (key * _OF_KEY) % (1 << 64) >> created.shift
            while created.node[row] >= 0:
                row = (row + 1) % rows
            created.node[row], created.token[row], created.after[row], created.index[row] = node, token, after, index
        return created


@rules(
    "X: *N C",
    attributes={
        "max_gram_length": at_least(1),
        "min_gram_length": at_least(1),
        "max_skip_count": at_least(0),
        "mode": one_of("TF", "IDF", "TFIDF"),
        "ngram_indexes": at_least(0),
        "ngram_counts": at_least(0),
    },
)
@kernel("", "TfIdfVectorizer")
@accuracy(ROUNDED)
def tfidf_vectorizer(c: OpContext, x: Operand) -> Operand:
    """Computes how often each n-gram of a pool occurs in a row, with up to ``max_skip_count`` elements skipped between
    its tokens, optionally weighted.
    """
    pool, mode = c.attribute("pool_int64s", []), c.attribute("mode")
    counts, indexes = c.attribute("ngram_counts"), c.attribute("ngram_indexes")
    grams = _grams(pool, counts)
    if not grams or len(grams) != len(indexes):
        raise NodeError(
            f"{c.op_type} node {c.g.node!r} has {len(grams)} n-grams of integers and {len(indexes)} ngram_indexes; "
            "legal is one for each n-gram, of which there is one at least"
        )
    *batch, length = c.shape(x)
    width, rows = max(indexes) + 1, element_count(batch)
    trie = _Trie.of(dict(zip(grams, indexes, strict=True)))
    created: Operand = c.g.reshape(_counted(c, c.value(c.reshape(x, (rows, length))), trie, width), (*batch, width))
    if mode == "IDF":
        created = c.elementwise("found", [created], lambda s, v: s.minimum(v, 1.0))
    weights = c.attribute("weights", [])
    if mode == "TF" or not len(weights):
        return created
    of_index = np.ones(width, np.float32)
    of_index[indexes] = weights
    return c.elementwise("weighted", [created, of_index], lambda s, v, w: v * w)


def _grams(pool: Sequence[int], counts: Sequence[int]) -> list[tuple[int, ...]]:
    """Returns the n-grams of ``pool``, whose n-grams of length i + 1 begin at ``counts[i]``."""
    found = []
    for length, (begin, end) in enumerate(zip(counts, [*counts[1:], len(pool)], strict=True), 1):
        found += [tuple(pool[at : at + length]) for at in range(begin, end - length + 1, length)]
    return found


def _counted(c: OpContext, x: SSAValue, trie: _Trie, width: int) -> SSAValue:
    """Returns how often each n-gram is in the rows of ``x`` (rows, tokens): float32 (rows, width)."""
    rows, length = c.shape(x)
    least, most = c.attribute("min_gram_length"), c.attribute("max_gram_length")

    def build(p: PrimBuilder) -> None:
        def block(s: LoopBuilder, number: Value, *memrefs: SSAValue) -> None:
            x, *tables, found = (BodyBuffer(each, p.dtype(each)) for each in memrefs)
            lookup = _Lookup(s, tables, trie)

            def row(at: Value) -> Sequence[Value]:
                def clear(index: Value) -> Sequence[Value]:
                    found.store(s, [at, index], s.const(0.0, "float32"))
                    return ()

                def count(index: Value) -> Sequence[Value]:
                    location = [at, s.inside(index, width)]
                    found.store(s, location, found.load(s, location) + 1.0)
                    return ()

                def with_skips(step: Value) -> Sequence[Value]:
                    def begin(first: Value) -> Sequence[Value]:
                        def goes_on(node: Value, location: Value, depth: Value) -> tuple[Value, Sequence[Value]]:
                            inside = (node >= 0) & (location < s.const(length, "index")) & (depth < most)
                            return inside, [node, location, depth]

                        def longer(node: Value, location: Value, depth: Value) -> Sequence[Value]:
                            token = s.cast(x.load(s, [at, s.inside(location, length)]), "int64")
                            after, index = lookup.after(node, token)
                            # One token alone has none between it and the next.
                            is_counted = (index >= 0) & (depth + 1 >= least) & ((depth > 0) | step.eq(1))
                            s.branch(is_counted, lambda: count(index))
                            return [after, location + step, depth + 1]

                        s.repeat([s.const(0, "int32"), first, s.const(0, "index")], goes_on, longer)
                        return ()

                    s.loop(0, s.const(length, "index"), [], begin)
                    return ()

                s.loop(0, width, [], clear)
                s.loop(1, (c.attribute("max_skip_count") if most > 1 else 0) + 2, [], with_skips)
                return ()

            first = number * _ROWS
            s.loop(first, s.minimum(first + _ROWS, s.const(rows, "index")), [], row)

        p.forall((rows + _ROWS - 1) // _ROWS, [*p.inputs, *p.outputs], block)

    tables = [c.g.constant(table, c.g.node) for table in (trie.node, trie.token, trie.after, trie.index)]
    return c.g.call("count_grams", [x, *tables], [((rows, width), "float32")], build)[0]


class _Lookup:
    """Writes code that looks into the ``tables`` of ``trie``."""

    def __init__(self, s: LoopBuilder, tables: Sequence[BodyBuffer], trie: _Trie) -> None:
        self._s, self._trie = s, trie
        self._node, self._token, self._after, self._index = tables

    def after(self, node: Value, token: Value) -> tuple[Value, Value]:
        """Returns the node that ``token`` leads to from ``node``, and the n-gram that ends there; -1 for none."""
        s, rows = self._s, len(self._trie.node)
        key = s.cast(token, "uint64") ^ s.cast(s.cast(node, "int64"), "uint64") * _OF_NODE
        first = s.cast(s.binary("shr", key * _OF_KEY, self._trie.shift), "index")

        def is_another(row: Value) -> tuple[Value, Sequence[Value]]:
            here = [s.inside(row, rows)]
            held = self._node.load(s, here)
            return (held >= 0) & (held.ne(node) | self._token.load(s, here).ne(token)), [*here, held]

        def following(row: Value, _: Value) -> Sequence[Value]:
            return [s.cast(s.cast(row + 1, "int64") & (rows - 1), "index")]

        row, _ = s.repeat([first], is_another, following)
        here = [s.inside(row, rows)]
        return self._after.load(s, here), self._index.load(s, here)
