"""Tests of scratch memory of kernels, and of the memory of other instances."""

from __future__ import annotations

from landbridge.device.api import Device, Region, Space, Stream
from landbridge.device.attr import DeviceAttr
from landbridge.device.protocols import Addresses, PeerCopy, Streams, WorkspaceMemory
from landbridge.device.registry import device as find_device
from landbridge.errors import LandbridgeError
from landbridge.testing.conformance.base import expect, expect_raises, pattern
from landbridge.testing.conformance.kernels import NBYTES, KernelCase, float32_bytes, minus

_BYTES = 4096
_SIZES = (1, 100, 4097, 20_001)
_ROUNDS = 64


class WorkspaceConformance(KernelCase):
    """Tests ``alloc_workspace``, ``free_workspace``, and several instances."""

    def test_workspaces(self) -> None:
        """alloc_workspace(index, nbytes, stream): so many bytes of scope global, the runtime's alone until they are
        freed, whatever stream they are for."""
        workspace = self.ability(WorkspaceMemory)
        queues: list[Stream | None] = [None]
        queues += [] if self.device.capability(Streams) is None else [self.new_stream(), self.new_stream()]
        data, spaces = self.alloc(_BYTES), list[tuple[Space, int]]()
        self.write(data, pattern(_BYTES, 99))
        try:
            for nbytes in map(self.whole_granules, _SIZES):
                for stream in queues:
                    spaces.append((workspace.alloc_workspace(self.device.index, nbytes, stream), nbytes))
            for seed, (space, nbytes) in enumerate(spaces):
                expect(space.device == self.device, f"a workspace says that it is of {space.device}")
                expect(space.scope == "global", f"a workspace has scope {space.scope!r}")
                self.write(space, pattern(nbytes, seed))
            for seed, (space, nbytes) in enumerate(spaces):
                expect(self.read(space, nbytes) == pattern(nbytes, seed), f"a workspace of {nbytes} bytes lost some")
            expect(self.read(data, _BYTES) == pattern(_BYTES, 99), "a workspace has bytes of a data space")
        finally:
            for space, _ in spaces:
                workspace.free_workspace(space)

    def test_workspace_alignment(self) -> None:
        """alloc_workspace: it begins at a multiple of the kind's alignment."""
        workspace, addresses = self.ability(WorkspaceMemory), self.ability(Addresses)
        alignment, spaces = self.device.memory_kind().alignment, list[Space]()
        for nbytes in (1, alignment + 1, 3, 4097, 5):
            spaces.append(workspace.alloc_workspace(self.device.index, nbytes, None))
        begins = [addresses.device_address(Region(space)) for space in spaces]
        for space in spaces:
            workspace.free_workspace(space)
        expect(all(begin % alignment == 0 for begin in begins), f"{begins} are not multiples of {alignment}")

    def test_workspaces_are_given_back(self) -> None:
        """free_workspace gives the bytes back."""
        workspace, index = self.ability(WorkspaceMemory), self.device.index
        before = self.device.attr(DeviceAttr.AVAILABLE_MEMORY)
        if not isinstance(before, int):
            self.skip("does not say how much memory is available")
        # memory that is retained for the next one
        workspace.free_workspace(workspace.alloc_workspace(index, _BYTES, None))
        before = self.device.attr(DeviceAttr.AVAILABLE_MEMORY)
        for _ in range(_ROUNDS):
            workspace.free_workspace(workspace.alloc_workspace(index, _BYTES, None))
        after = self.device.attr(DeviceAttr.AVAILABLE_MEMORY)
        expect(after == before, f"{_ROUNDS} workspaces came and went, and of {before} bytes {after} are available")

    def test_launches_with_scratch(self) -> None:
        """Kernels use a workspace as they use data spaces: what one launch writes there the next one reads."""
        workspace, kernel, index = self.ability(WorkspaceMemory), self.kernel(), self.device.index
        queues: list[Stream | None] = [None]
        queues += [] if self.device.capability(Streams) is None else [self.new_stream()]
        for seed, stream in enumerate(queues):
            a, b = self.operand(float32_bytes(seed)), self.operand(float32_bytes(seed + 5))
            y = self.operand(bytes(NBYTES))
            scratch = workspace.alloc_workspace(index, NBYTES, stream)
            try:
                self.launch(kernel, Region(a), Region(b), Region(scratch), stream)
                self.wait(self.launch(kernel, Region(scratch), Region(b), Region(y), stream))
                wanted = minus(minus(float32_bytes(seed), float32_bytes(seed + 5)), float32_bytes(seed + 5))
                expect(self.read(y, NBYTES) == wanted, "a launch did not read what the one before wrote to a workspace")
            finally:
                workspace.free_workspace(scratch)

    def test_instances_have_memory_of_their_own(self) -> None:
        """Spaces of one instance are no other's: bytes, devices and streams are told apart by index."""
        other = self._neighbour()
        owned, theirs = self.alloc(_BYTES), self._space_of(other)
        expect(theirs.device == other, f"a space of {other} says that it is of {theirs.device}")
        expect(owned != theirs, f"a space of {self.device} equals one of {other}")
        self.write(owned, pattern(_BYTES, 1))
        content = self.host(pattern(_BYTES, 2))
        if not self.can_copy_host(owned):
            self.skip("copies neither from nor to host memory")
        self.wait(other.api.copy_data_from_to(Region(content), Region(theirs), _BYTES, None, None))
        target = self.host(bytes(_BYTES))
        self.wait(other.api.copy_data_from_to(Region(theirs), Region(target), _BYTES, None, None))
        expect(self.host_bytes(target, _BYTES) == pattern(_BYTES, 2), f"{other} lost what was written there")
        expect(self.read(owned, _BYTES) == pattern(_BYTES, 1), f"writing to {other} changed {self.device}")

    def test_copies_between_instances(self) -> None:
        """can_copy(src, dst): what it says of two instances is so: such a copy moves the bytes."""
        other, peer = self._neighbour(), self.ability(PeerCopy)
        owned, theirs = self.alloc(_BYTES), self._space_of(other)
        for seed, (source, target) in enumerate(((owned, theirs), (theirs, owned))):
            if not peer.can_copy(source, target):
                continue
            self.write(source, pattern(_BYTES, seed))
            self.write(target, pattern(_BYTES, 60 + seed))
            self.wait(self.copy(Region(source), Region(target), _BYTES))
            moved = self.read(target, _BYTES) == pattern(_BYTES, seed)
            expect(moved, f"a copy from {source.device} to {target.device}, which can_copy allows, moved other bytes")

    def test_streams_of_other_instances(self) -> None:
        """A stream belongs to one device: that of another instance is refused."""
        other, streams = self._neighbour(), self.ability(Streams)
        stream = streams.create_stream(other.index)
        expect(stream.device == other, f"a stream of {other} says that it is of {stream.device}")
        source, target = self.alloc(_BYTES), self.alloc(_BYTES)
        call = lambda: self.wait(self.copy(Region(source), Region(target), _BYTES, stream))  # noqa: E731
        expect_raises(LandbridgeError, call, f"a copy within {self.device} on a stream of {other}")
        streams.free_stream(stream)

    def _neighbour(self) -> Device:
        """Returns another instance; skips the test where there is none."""
        if self.is_host():
            self.skip("is the host, of which there is one memory")
        for index in range(self.api.count()):
            if index != self.device.index:
                try:
                    find_device(f"{self.device.name}:{index}")  # this opens it
                except LandbridgeError:
                    continue
                return Device(self.api, index)  # of this very API, whose methods another instance may be executing
        return self.skip("has one instance")

    def _space_of(self, other: Device) -> Space:
        kind = other.memory_kind()
        size = -(-_BYTES // kind.size_multiple) * kind.size_multiple
        space = other.api.alloc_data_space(other.index, size, 1, "global", None)
        self.keep(space)
        return space
