"""How many vectors a loop has in registers at each line of its LLVM IR."""

from __future__ import annotations

import re
from collections.abc import Sequence

_NAME = re.compile(r"%[\w.]+")
_LOAD = re.compile(r"  (%[\w.]+) = load <")
#: A lane that is selected or repeated stays in its vector: the multiplication reads it there.
_LANES = re.compile(r"  (%[\w.]+) = (?:extractelement|insertelement|shufflevector) ")


class LiveVectors:
    """The vectors that are loaded in ``lines`` from ``first`` on, each from its load to its last use, and ``carried``
    others, which are in registers throughout.
    """

    def __init__(self, lines: Sequence[str], first: int, carried: int) -> None:
        self._live = [carried] * (len(lines) - first)
        loaded: dict[str, int] = {}
        last: dict[str, int] = {}
        lanes_of: dict[str, str] = {}
        for at, line in enumerate(lines[first:]):
            load, lanes = _LOAD.match(line), _LANES.match(line)
            if load:
                loaded[load[1]] = at
                continue
            read = [lanes_of.get(name, name) for name in _NAME.findall(line)]
            for name in read:
                if name in loaded:
                    last[name] = at
                    if lanes:
                        lanes_of[lanes[1]] = name
        self._spans = {name: (at, last.get(name, at)) for name, at in loaded.items()}
        for span in self._spans.values():
            self._add(span, 1)

    def join(self, first: str, second: str, registers: int) -> bool:
        """Counts two vectors as one pair and returns True; returns False, and counts nothing, if more than
        ``registers`` would be live then.

        LLVM keeps both registers of a pair, on an instruction set without a liveness of parts of registers, from its
        load to the last use of either.
        """
        before = [self._spans[name] for name in (first, second)]
        both = min(at for at, _ in before), max(end for _, end in before)
        for span in before:
            self._add(span, -1)
        fits = max(self._live[both[0] : both[1] + 1]) + 2 <= registers
        for name, span in zip((first, second), before, strict=True):
            self._spans[name] = both if fits else span
            self._add(self._spans[name], 1)
        return fits

    def _add(self, span: tuple[int, int], count: int) -> None:
        for at in range(span[0], span[1] + 1):
            self._live[at] += count
