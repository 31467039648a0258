"""Plans for open sizes, from a plan for the expected sizes: which buffers lie below each buffer.

Lifetimes do not depend on sizes. A buffer begins at the highest end of those that live at the same time and lay below
it in that plan; so no two of them overlap, whatever the sizes are, and for the expected sizes nothing is higher than
planned.
"""

from __future__ import annotations

from collections.abc import Sequence

from landbridge.planner.buffers import Buffer
from landbridge.planner.conflicts import conflicts
from landbridge.sizes.size import Extent, ceildiv, largest


def supported(
    buffers: Sequence[Buffer], offsets: Sequence[int], sizes: Sequence[Extent]
) -> tuple[list[Extent], Extent]:
    """Returns the offset of each buffer, and the end of the highest, where buffers take ``sizes``.

    ``buffers`` have the sizes that ``offsets`` were planned for; alignments and times are theirs.
    """
    together = [set(others) for others in conflicts(buffers)]
    result: list[Extent] = [0] * len(buffers)
    done: list[int] = []
    for number in sorted(range(len(buffers)), key=lambda n: (offsets[n], n)):
        below = _highest([other for other in done if other in together[number]], together)
        highest = largest(0, *(result[other] + sizes[other] for other in below))
        result[number] = ceildiv(highest, buffers[number].alignment) * buffers[number].alignment
        done.append(number)
    return result, largest(0, *(result[n] + sizes[n] for n in _highest(done, together)))


def _highest(values: Sequence[int], together: Sequence[set[int]]) -> list[int]:
    """Returns those of ``values`` (lowest first) that have no other one on top: the end of a buffer on top is
    higher."""
    found: list[int] = []
    later = set[int]()
    for number in reversed(values):
        if together[number].isdisjoint(later):
            found.append(number)
        later.add(number)
    return found
