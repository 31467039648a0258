"""OpenWords: words of a bound program that are others for other sizes, each a sum of numbers of its extents."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from landbridge.executable.open_number import OpenNumber

if TYPE_CHECKING:
    from numpy.typing import NDArray

_WORD = (1 << 64) - 1


class OpenWords:
    """``slot_words`` by word: OpenExtentValues, whose slots are none that are subtracted, and numbers of all sizes.

    ``words``: the words. ``value_of``: of each, which of the values it has, as many words have the same one: strides
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
        #: Of each value the slots that it sums, the last of all numbers, a zero, where it has fewer.
        self._terms = [
            np.array([slots[k] if k < len(slots) else -1 for slots, _ in places], np.intp) for k in range(most)
        ]
        self._more = np.array([more & _WORD for _, more in places], np.uint64)

    def values(self, slot_words: NDArray[np.int64]) -> NDArray[np.uint64]:
        """Each value once, where the slots have ``slot_words``, the last of which is 0; a row for each row of them."""
        found = np.empty((*slot_words.shape[:-1], len(self._more)), np.uint64)
        found[...] = self._more
        for slots in self._terms:
            found += slot_words.view(np.uint64)[..., slots]
        return found
