"""Tests of opening, closing and resetting an instance, which affect the whole process, so each needs its own."""

from __future__ import annotations

import landbridge as lb
from landbridge.device.api import Region, Streams
from landbridge.device.lifecycle import Lifecycle
from landbridge.errors import InputError, LandbridgeError
from landbridge.testing.conformance.base import ConformanceCase, expect, expect_raises, pattern

_BYTES = 4096
_LIVES = 3


class LifecycleCase(ConformanceCase):
    """A test that ends lives of an instance."""

    def _own_lifecycle(self) -> Lifecycle:
        lifecycle = self.ability(Lifecycle)
        if self.is_host():
            self.skip("is the host, which the whole process lives on")
        if not self.separate_process:
            self.skip("is used by the whole process: landbridge conformance tests it in one that it can end")
        self.release_scopes()  # an instance must not end while a scope is acquired
        return lifecycle

    def _release(self) -> None:
        """Forgets the spaces of an instance that ends."""
        self._taken.clear()

    def _try_it(self, seed: int, when: str = "in its next life") -> None:
        """Fails unless memory and copies work."""
        source, target = self.alloc(_BYTES), self.alloc(_BYTES)
        self.write(source, pattern(_BYTES, seed))
        self.wait(self.copy(Region(source), Region(target), _BYTES))
        expect(self.read(target, _BYTES) == pattern(_BYTES, seed), f"the instance does not copy {when}")
        self.free(source)
        self.free(target)


class LifecycleConformance(LifecycleCase):
    """Tests ``open``, ``close`` and ``reset``."""

    def test_reopen(self) -> None:
        """close, then open: the next life begins with all its memory, and nothing of the last."""
        self._own_lifecycle()
        self._try_it(1, "in its first life")
        self.device = self.device.reopen()  # this empties the pools of this process
        before = self.available()
        for seed in range(_LIVES):
            self.write(self.alloc(16 * _BYTES), pattern(16 * _BYTES, seed))
            self._release()
            self.device = self.device.reopen()
            expect(self.available() == before, f"of {before} bytes {self.available()} are available in the next life")
            self._try_it(seed)

    def test_close_finishes_what_is_queued(self) -> None:
        """close(index) finishes what is queued; nothing happens where the instance is not open."""
        lifecycle, index = self._own_lifecycle(), self.device.index
        source, target = self.alloc(_BYTES), self.host(b"\xee" * _BYTES)
        if not self.can_copy_host(source):
            self.skip("copies neither from nor to host memory")
        self.write(source, pattern(_BYTES, 5))
        middle = self.alloc(_BYTES)
        self.copy(Region(source), Region(middle), _BYTES)
        self.copy(Region(middle), Region(target), _BYTES)
        self._release()
        lifecycle.close(index)
        expect(self.host_bytes(target, _BYTES) == pattern(_BYTES, 5), "close left out what was queued")
        lifecycle.close(index)
        lifecycle.open(index)
        self._try_it(2)

    def test_unknown_options(self) -> None:
        """open(index, **options) raises InputError for options that the device does not have; it stays closed then."""
        lifecycle, index = self._own_lifecycle(), self.device.index
        lifecycle.close(index)
        options: dict[str, object] = {"no_such_option": 1}
        try:
            lifecycle.open(index, **options)
        except (InputError, TypeError):  # a method without such a parameter raises too
            pass
        else:
            raise AssertionError("open took the option 'no_such_option', which no device has")
        lifecycle.open(index)
        self._try_it(3, "after an option was refused")

    def test_reset_begins_anew(self) -> None:
        """reset(index): what was queued is dropped or done, its memory is gone, and the next life has all of it."""
        self._own_lifecycle()
        self._try_it(1, "in its first life")
        self.device = self.device.reset()
        before = self.available()
        for seed in range(_LIVES):
            source, target = self.alloc(_BYTES), self.alloc(_BYTES)
            self.write(source, pattern(_BYTES, seed))
            self.copy(Region(source), Region(target), _BYTES)
            self._release()
            self.device = self.device.reset()
            after = [self.alloc(_BYTES) for _ in range(4)]
            for number, space in enumerate(after):
                self.write(space, pattern(_BYTES, number + 60))
            for number, space in enumerate(after):
                late = self.read(space, _BYTES) != pattern(_BYTES, number + 60)
                expect(not late, "work of the last life wrote to memory of this one")
                self.free(space)
            expect(self.available() == before, f"of {before} bytes {self.available()} are available after a reset")

    def test_streams_end_with_their_life(self) -> None:
        """A stream of the last life takes no work after reset(index): an error says so."""
        self._own_lifecycle()
        old = self.ability(Streams).create_stream(self.device.index)
        self._release()
        self.device = self.device.reset()
        source, target = self.alloc(_BYTES), self.alloc(_BYTES)
        self.write(source, pattern(_BYTES, 7))
        self.write(target, pattern(_BYTES, 8))
        subject = "a copy on a stream of the last life"
        expect_raises(LandbridgeError, lambda: self.copy(Region(source), Region(target), _BYTES, old), subject)
        expect(self.read(target, _BYTES) == pattern(_BYTES, 8), f"{subject} was done")
        self._try_it(9)

    def test_reset_of_one_instance(self) -> None:
        """reset(index) and close(index) are of that instance alone."""
        lifecycle = self._own_lifecycle()
        other = next((index for index in range(self.api.count()) if index != self.device.index), None)
        if other is None:
            self.skip("has one instance")
        try:
            lb.device(f"{self.device.name}:{other}")
        except LandbridgeError:
            self.skip("has one instance that can be opened")
        space = self.alloc(_BYTES)
        self.write(space, pattern(_BYTES, 6))
        lifecycle.reset(other)
        expect(self.read(space, _BYTES) == pattern(_BYTES, 6), f"a reset of instance {other} took memory of this one")
        lifecycle.close(other)
        expect(self.read(space, _BYTES) == pattern(_BYTES, 6), f"closing instance {other} took memory of this one")
        lifecycle.open(other)
        self._try_it(4, f"after instance {other} was reset, closed and opened")
