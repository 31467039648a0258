"""OpenWords: the words of a bound program that depend on sizes, each a sum of values of its extents."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from landbridge.executable.open_number import OpenNumber

if TYPE_CHECKING:
    from numpy.typing import NDArray

_WORD = (1 << 64) - 1


class OpenWords:
    """Computes words from ``slot_words``: OpenNumbers by word, whose slots are never subtracted, and constant numbers.

    ``words``: the words. ``value_of``: the value of each word, by number, as many words have the same value: strides
    and extents that kernels share.
    """

    def __init__(self, slot_words: Iterable[tuple[int, int]]) -> None:
        each = [
            (word, number.slots, number.more) if isinstance(number, OpenNumber) else (word, (), number)
            for word, number in slot_words
        ]
        places = {(slots, more): 0 for _, slots, more in each}
        places = {value: location for location, value in enumerate(places)}
        self.words = np.array([word for word, _, _ in each], np.intp)
        self.value_of = np.array([places[slots, more] for _, slots, more in each], np.intp)
        most = max((len(slots) for slots, _ in places), default=1)
        #: For each value the slots that it sums, padded with the last of all slots, which is 0.
        self._terms = [
            np.array([slots[k] if k < len(slots) else -1 for slots, _ in places], np.intp) for k in range(most)
        ]
        self._more = np.array([more & _WORD for _, more in places], np.uint64)

    def values(self, slot_words: NDArray[np.int64]) -> NDArray[np.uint64]:
        """Returns each value once, where slots have the values ``slot_words``, the last of them 0; row by row."""
        found = np.empty((*slot_words.shape[:-1], len(self._more)), np.uint64)
        found[...] = self._more
        for slots in self._terms:
            found += slot_words.view(np.uint64)[..., slots]
        return found
