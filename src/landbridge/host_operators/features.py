"""Features of text and sound: TfIdfVectorizer, MelWeightMatrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from landbridge.dtypes import numpy_dtype
from landbridge.host_operators.registry import Array, HostValue, Results, host_operator

#: Integers are found by a table where the largest is no further from the smallest; a search takes ten times as long.
_MOST_SPREAD = 1 << 20


def _tfidf_results(x: HostValue, *, ngram_indexes: Sequence[int], **_: Any) -> Results:
    return [((*x.shape[:-1], max(ngram_indexes) + 1), "float32")]


@host_operator("", "TfIdfVectorizer", results=_tfidf_results)
def tfidf_vectorizer(
    x: Array,
    *,
    max_gram_length: int,
    max_skip_count: int,
    min_gram_length: int,
    mode: str,
    ngram_counts: Sequence[int],
    ngram_indexes: Sequence[int],
    pool_int64s: Sequence[int] = (),
    pool_strings: Sequence[str] = (),
    weights: Sequence[float] | None = None,
) -> Array:
    """How often each n-gram of a pool is in a row, its elements up to ``max_skip_count`` apart, perhaps weighted."""
    pool = np.array(pool_int64s if pool_int64s else pool_strings)
    grams = _Grams.of(pool, ngram_counts)
    rows = x.reshape(-1, x.shape[-1])
    codes, width = grams.codes(rows), max(ngram_indexes) + 1
    indexes = np.array(ngram_indexes)
    made = np.zeros((len(rows), width), np.float32)
    for length in range(min_gram_length, max_gram_length + 1):
        for step in range(1, (max_skip_count if length > 1 else 0) + 2):
            row, number = grams.found(codes, length, step)
            made += np.bincount(row * width + indexes[number], minlength=made.size).reshape(made.shape)
    if mode == "IDF":
        np.minimum(made, 1, out=made)
    if weights is not None and mode != "TF":
        of_index = np.ones(width, np.float32)
        of_index[indexes] = weights
        made *= of_index
    return made.reshape(*x.shape[:-1], width)


class _Grams(NamedTuple):
    """N-grams as a trie: a node is a prefix, its key the number of the prefix before it and the code of its last token.

    ``tokens`` are sorted, and a token's code is its position. ``keys`` has the sorted keys of each length, and
    ``numbers`` the n-gram of each key's prefix, -1 where that is none.
    """

    tokens: Array
    keys: list[Array]
    numbers: list[Array]

    @classmethod
    def of(cls, pool: Array, counts: Sequence[int]) -> _Grams:
        """The trie of ``pool``, whose n-grams of length i + 1 begin at ``counts[i]`` and are numbered in order."""
        tokens, codes = np.unique(pool, return_inverse=True)
        ends = [*counts[1:], len(pool)]
        groups = [codes[a:b].reshape(-1, n) for n, (a, b) in enumerate(zip(counts, ends, strict=True), 1)]
        firsts = np.concatenate([[0], np.cumsum([len(group) for group in groups])])
        before = [np.zeros(len(group), np.int64) for group in groups]
        keys, numbers = [], []
        for length in range(1, len(groups) + 1):
            longer = range(length - 1, len(groups))
            of_group = {g: before[g] * len(tokens) + groups[g][:, length - 1] for g in longer}
            keys.append(np.unique(np.concatenate([*of_group.values()])))
            for g in longer:
                before[g] = np.searchsorted(keys[-1], of_group[g])
            number = np.full(len(keys[-1]), -1)
            number[before[length - 1]] = firsts[length - 1] + np.arange(len(groups[length - 1]))
            numbers.append(number)
        return cls(tokens, keys, numbers)

    def codes(self, rows: Array) -> Array:
        """The codes of tokens, -1 of one that is in no n-gram."""
        return _position(self.tokens, rows)

    def found(self, codes: Array, length: int, step: int) -> tuple[Array, Array]:
        """Row and number of each n-gram of ``length`` tokens, ``step`` apart, in rows of ``codes``."""
        starts = codes.shape[1] - step * (length - 1)
        if starts <= 0 or length > len(self.keys):
            return np.zeros(0, int), np.zeros(0, int)
        row, start = np.nonzero(codes[:, :starts] >= 0)
        prefix = np.zeros(len(row), np.int64)
        for at, keys in enumerate(self.keys[:length]):
            code = codes[row, start + step * at]
            prefix = _position(keys, prefix * len(self.tokens) + code)
            kept = (prefix >= 0) & (code >= 0)
            row, start, prefix = row[kept], start[kept], prefix[kept]
        number = self.numbers[length - 1][prefix]
        return row[number >= 0], number[number >= 0]


def _position(ordered: Array, values: Array) -> Array:
    """Where each value is in ``ordered``, -1 where it is not."""
    if not len(ordered):
        return np.full(values.shape, -1)
    if ordered.dtype.kind == "i" and 0 <= (spread := int(ordered[-1]) - int(ordered[0])) < _MOST_SPREAD:
        table = np.full(spread + 2, -1)
        table[ordered - ordered[0]] = np.arange(len(ordered))
        inside = (values >= ordered[0]) & (values <= ordered[-1])
        return table.take(np.where(inside, values - ordered[0], spread + 1))
    found = np.minimum(np.searchsorted(ordered, values), len(ordered) - 1)
    return np.where(ordered[found] == values, found, -1)


def _mel_results(
    bins: HostValue, length: HostValue, *_: HostValue, output_datatype: int | str = "float32", **__: Any
) -> Results:
    known = [None if v.value is None else int(v.value.reshape(-1)[0]) for v in (length, bins)]
    return [((None if known[0] is None else known[0] // 2 + 1, known[1]), _datatype(output_datatype))]


def _datatype(code: int | str) -> str:
    names = {1: "float32", 10: "float16", 11: "float64", 16: "bfloat16"}
    return code if isinstance(code, str) else names.get(code, "float32")


@host_operator("", "MelWeightMatrix", results=_mel_results)
def mel_weight_matrix(
    bins: Array, length: Array, rate: Array, lowest: Array, highest: Array, *, output_datatype: int | str = "float32"
) -> Array:
    """Triangles over the bins of a spectrum, a column each, that lie evenly on the mel scale."""
    count, points, hertz = (int(v.reshape(-1)[0]) for v in (bins, length, rate))
    ends = [2595 * np.log10(1 + float(v.reshape(-1)[0]) / 700) for v in (lowest, highest)]
    mel = np.arange(count + 2) * ((ends[1] - ends[0]) / (count + 2)) + ends[0]
    corners = ((points + 1) * (700 * (np.power(10, mel / 2595) - 1)) // hertz).astype(int)
    at = np.arange(points // 2 + 1)[:, None]
    left, top, right = corners[:-2], corners[1:-1], corners[2:]
    with np.errstate(divide="ignore", invalid="ignore"):
        rising = np.where(left == top, 1.0, (at - left) / (top - left))
        falling = (right - at) / (right - top)
    made = np.where((at >= left) & (at <= top), rising, 0.0)
    made = np.where((at >= top) & (at < right), falling, made)
    made = np.where((at == top) & (left == top) & (right == top), 1.0, made)
    return made.astype(numpy_dtype(_datatype(output_datatype)))
