"""Tests of what works in the next life of an instance as it did in the first one."""

from __future__ import annotations

from collections.abc import Iterator

from landbridge.device.api import Region
from landbridge.device.protocols import Addresses, DeviceModules, HostBarriers
from landbridge.testing.conformance.barriers import BarrierCase
from landbridge.testing.conformance.base import expect, pattern
from landbridge.testing.conformance.kernels import NBYTES, KernelCase, float32_bytes, minus
from landbridge.testing.conformance.lifecycles import LifecycleCase

_BYTES = 4096


class NextLifeConformance(BarrierCase, LifecycleCase, KernelCase):
    """Tests barriers, addresses and launches after ``reset``, and after ``close`` and ``open``."""

    def test_barriers_in_the_next_life(self) -> None:
        """Barriers do in each life what they did in the first: both sides see each other's writes after reset, and
        after close and open."""
        self._own_lifecycle()
        self.ability(HostBarriers)
        for life in self._lives():
            for kind in self.host_kinds():
                size = self._size(kind)
                space = self._seen(kind, size, 1)
                self._device_writes(space, size, 2)
                found = self._look(space, 64, 200, "r")
                expect(found == pattern(size, 2)[64:264], f"{life}, begin_host_access of {kind.scope!r} brings nothing")
                self._host_writes(space, 0, b"\x5a" * size, "w")
                found = self._device_reads(space, size)
                expect(found == b"\x5a" * size, f"{life}, end_host_access of {kind.scope!r} flushes nothing")

    def test_addresses_in_the_next_life(self) -> None:
        """device_address is of each space in each life: after reset, and after close and open."""
        self._own_lifecycle()
        addresses = self.ability(Addresses)
        for life in self._lives():
            for scope in self.flat_scopes():
                kind = self.device.memory_kind(scope)
                spaces = [self.alloc(_BYTES, scope) for _ in range(3)]
                begins = [addresses.device_address(Region(space)) for space in spaces]
                wrong = f"{life}, spaces of {scope!r} are at {list(map(hex, begins))}"
                disjoint = all(abs(a - b) >= _BYTES for number, a in enumerate(begins) for b in begins[:number])
                expect(len(set(begins)) == len(begins), f"{wrong}: two have one address")
                expect(disjoint or not kind.physically_contiguous, f"{wrong}: they overlap")
                expect(all(begin % kind.alignment == 0 for begin in begins), f"{wrong}: not at {kind.alignment}")
                inside = [addresses.device_address(Region(space, 64)) for space in spaces]
                expect(not set(inside) & set(begins), f"{wrong}, and byte 64 of one is at one of these addresses")

    def test_launches_in_the_next_life(self) -> None:
        """Modules are loaded and launched in each life: after reset, and after close and open."""
        self._own_lifecycle()
        self.ability(DeviceModules)
        image = self.image()
        for seed, life in enumerate(self._lives()):
            kernel = self.loaded(image)
            a, b, y = (self.operand(content) for content in (float32_bytes(seed), float32_bytes(9), bytes(NBYTES)))
            self.wait(self.launch(kernel, Region(a), Region(b), Region(y)))
            wanted = minus(float32_bytes(seed), float32_bytes(9))
            expect(self.read(y, NBYTES) == wanted, f"{life}, a launch computes no difference")

    def _lives(self) -> Iterator[str]:
        """Yields the name of each life, which begins then: the first one, and two after each way to end one."""
        yield "in its first life"
        for _ in range(2):
            self._release()
            self.device = self.device.reset()
            yield "after a reset"
        for _ in range(2):
            self._release()
            self.device = self.device.reopen()
            yield "after close and open"
