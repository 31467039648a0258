"""Tests of the host's access to the device's own bytes."""

from __future__ import annotations

import ctypes

import landbridge as lb
from landbridge.device.api import Region
from landbridge.device.protocols import HostBarriers, HostMemory, Streams
from landbridge.errors import HostAccessError, HostViewError
from landbridge.testing.conformance.base import ConformanceCase, expect, expect_raises, pattern

_BYTES = 512
_ROUNDS = 8  # repeated, as a wrong order may be right by chance


class HostAccessConformance(ConformanceCase):
    """Tests ``host_pointer``, barriers and host views."""

    def test_host_pointer(self) -> None:
        """host_pointer(space): what the host writes there, the device reads."""
        kind = self.host_kind()
        first, second = self.alloc(_BYTES, kind.scope), self.alloc(_BYTES, kind.scope)
        barriers = self.device.capability(HostBarriers)
        if barriers is not None:
            barriers.begin_host_access(Region(first), _BYTES, "w")
        ctypes.memmove(self.host_address(first), pattern(_BYTES, 4), _BYTES)
        if barriers is not None:
            barriers.end_host_access(Region(first), _BYTES, "w")
        self.wait(self.copy(Region(first), Region(second), _BYTES))
        expect(self.read(second, _BYTES) == pattern(_BYTES, 4), "the device did not read what the host wrote")

    def test_begin_host_access_waits(self) -> None:
        """r waits for pending writers."""
        kind = self.host_kind()
        barriers = self.ability(HostBarriers)
        source, target = self.alloc(_BYTES, kind.scope), self.alloc(_BYTES, kind.scope)
        self.write(source, pattern(_BYTES, 9))
        event = self.copy(Region(source), Region(target), _BYTES)
        barriers.begin_host_access(Region(target), _BYTES, "r")
        seen = ctypes.string_at(self.host_address(target), _BYTES)
        barriers.end_host_access(Region(target), _BYTES, "r")
        self.wait(event)
        expect(seen == pattern(_BYTES, 9), "the host read bytes that a copy queued before had yet to write")

    def test_begin_host_access_waits_for_streams(self) -> None:
        """begin_host_access waits for pending writers on every stream, not on stream None alone."""
        kind = self.host_kind()
        barriers, streams, index = self.ability(HostBarriers), self.ability(Streams), self.device.index
        for seed in range(_ROUNDS):
            stream = streams.create_stream(index)
            source, target = self.alloc(_BYTES, kind.scope), self.alloc(_BYTES, kind.scope)
            self.write(source, pattern(_BYTES, seed))
            event = self.copy(Region(source), Region(target), _BYTES, stream)
            barriers.begin_host_access(Region(target), _BYTES, "r")
            seen = ctypes.string_at(self.host_address(target), _BYTES)
            barriers.end_host_access(Region(target), _BYTES, "r")
            self.wait(event)
            expect(seen == pattern(_BYTES, seed), "the host read bytes that a copy on a stream had yet to write")
            streams.free_stream(stream)

    def test_hidden_scope(self) -> None:
        """host access absent: no host view: HostViewError naming the scope."""
        hidden = [kind for kind in self.device.memory_kinds.values() if kind.host_access == "none" and kind.ndim == 1]
        if not hidden:
            self.skip("has no scope that the host cannot see")
        tensor = lb.empty((4,), dtype="float32", device=self.device, scope=hidden[0].scope)
        error = expect_raises(HostViewError, lambda: tensor.host_view("r"), "a host view of a hidden scope")
        expect(hidden[0].scope in str(error), f"the message does not name the scope: {error}")

    def test_incoherent_kind_has_barriers(self) -> None:
        """begin/end are no-ops, legal only on a coherent kind."""
        for kind in self.device.memory_kinds.values():
            if kind.host_access != "none" and not kind.coherent:
                expect(
                    self.device.capability(HostBarriers) is not None,
                    f"scope {kind.scope!r} is not coherent and the device has no begin_host_access",
                )

    def test_host_access_has_a_pointer(self) -> None:
        """Presence is the capability: a kind with host access has host_pointer(space)."""
        for kind in self.device.memory_kinds.values():
            if kind.host_access != "none":
                expect(self.device.capability(HostMemory) is not None, f"{kind.scope!r} has no host_pointer")

    def test_host_view(self) -> None:
        """with t.host_view("r" | "w" | "rw") as a: gives a numpy array over the device's own bytes."""
        kind = self.host_kind()
        tensor = lb.empty((64,), dtype="int32", device=self.device, scope=kind.scope)
        with tensor.host_view("w") as a:
            a[:] = range(64)
        with tensor.host_view("rw") as a:
            a += 1
        with tensor.host_view("r") as a:
            expect(a.tolist() == list(range(1, 65)), "what a host view wrote, the next one did not read")
            expect(not a.flags.writeable, "an array of mode 'r' can be written")

    def test_host_views_conflict(self) -> None:
        """Submitting work that conflicts with an open view raises HostAccessError."""
        kind = self.host_kind()
        tensor = lb.empty((64,), dtype="int32", device=self.device, scope=kind.scope)
        with tensor.host_view("w"):
            expect_raises(HostAccessError, tensor.copy, "a copy of bytes under an open view that writes")
