"""Tests of suspension: what becomes of memory, and of work after it."""

from __future__ import annotations

from landbridge.device.api import Region
from landbridge.device.suspension import Suspension
from landbridge.testing.conformance.base import ConformanceCase, expect, pattern

_BYTES = 4096
_ROUNDS = 2


class SuspensionConformance(ConformanceCase):
    """Tests ``Suspension``."""

    def test_suspension(self) -> None:
        """resume(index) returns whether memory holds what it held before suspend(index); work goes on after it."""
        able, index = self.ability(Suspension), self.device.index
        spaces = {scope: self.alloc(_BYTES, scope) for scope in self.flat_scopes()}
        for seed in range(_ROUNDS):
            for number, space in enumerate(spaces.values()):
                self.write(space, pattern(_BYTES, seed + number))
            able.suspend(index)
            retained = able.resume(index)
            expect(retained is True or retained is False, f"resume() returned {retained!r}; legal: True or False")
            if not retained:
                self._taken.clear()
                spaces = {scope: self.alloc(_BYTES, scope) for scope in spaces}
            for number, (scope, space) in enumerate(spaces.items()):
                same = not retained or self.read(space, _BYTES) == pattern(_BYTES, seed + number)
                expect(same, f"resume() returned True, and memory of scope {scope!r} is not as it was")
            source, target = self.alloc(_BYTES), self.alloc(_BYTES)
            self.write(source, pattern(_BYTES, seed + 40))
            self.wait(self.copy(Region(source), Region(target), _BYTES))
            expect(self.read(target, _BYTES) == pattern(_BYTES, seed + 40), "a copy after resume() did not happen")
