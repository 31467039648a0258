"""Tests of allocations: they are disjoint, aligned, and freed."""

from __future__ import annotations

from dataclasses import replace
from threading import Thread

from landbridge.device.protocols import HostMemory
from landbridge.errors import OutOfMemoryError
from landbridge.testing.conformance.base import ConformanceCase, expect, expect_raises, pattern

_BYTES = 4096


class SpaceConformance(ConformanceCase):
    """Tests spaces, regions and ownership."""

    def test_space(self) -> None:
        """Space = (device, scope, handle): one allocation."""
        for scope in self.flat_scopes():
            kind = self.device.memory_kind(scope)
            space = self.alloc(min([_BYTES, *(limit for limit in (kind.max_bytes, kind.capacity) if limit)]), scope)
            expect(space.device == self.device, f"the space is on {space.device}, not {self.device}")
            expect(space.scope == scope, f"the space has scope {space.scope!r}, not {scope!r}")

    def test_kind_of_a_space(self) -> None:
        """A Space's kind, where it has one, is its scope's, of which more is known: nothing less is promised."""
        for scope in self.flat_scopes():
            kind = self.device.memory_kind(scope)
            size = min([_BYTES, *(limit for limit in (kind.max_bytes, kind.capacity) if limit)])
            granted = self.alloc(size, scope).kind
            if granted is None:
                continue
            if kind.physically_contiguous is None:
                granted = replace(granted, physically_contiguous=None)
            if not kind.pinned:
                granted = replace(granted, pinned=False, resident=kind.resident)
            expect(granted == kind, f"an allocation of {kind} was granted as {granted}")

    def test_alignment(self) -> None:
        """alignment (allocations of each scope; a power of two; effective = the larger of asked and this)."""
        api = self.ability(HostMemory)
        for kind in self.host_kinds():
            for requested in (1, kind.alignment, 4 * kind.alignment, 1 << 16):
                # A neighbour of odd size, so that the next space is not aligned by chance.
                self.alloc(kind.alignment + 1, kind.scope)
                address = api.host_pointer(self.alloc(_BYTES, kind.scope, requested))
                wanted = max(requested, kind.alignment)
                expect(
                    address % wanted == 0,
                    f"{address:#x} of {kind.scope!r} was asked aligned to {requested}, the kind says {kind.alignment}",
                )

    def test_type_hint(self) -> None:
        """type_hint, the name of a dtype or None, changes nothing of a space but where it may lie."""
        for seed, hint in enumerate(("float32", "float64", "bfloat16", "bool", None)):
            size = -(-_BYTES // (unit := self.device.memory_kind().size_multiple)) * unit
            space = self.api.alloc_data_space(self.device.index, size, 1, "global", hint)
            self.keep(space)
            self.write(space, pattern(_BYTES, seed))
            expect(self.read(space, _BYTES) == pattern(_BYTES, seed), f"a space with type_hint {hint!r} lost bytes")

    def test_spaces_are_disjoint(self) -> None:
        """A Space is one allocation: no two share bytes."""
        spaces = [self.alloc(_BYTES) for _ in range(4)]
        for seed, space in enumerate(spaces):
            self.write(space, pattern(_BYTES, seed))
        for seed, space in enumerate(spaces):
            expect(self.read(space, _BYTES) == pattern(_BYTES, seed), f"space {seed} of 4 lost what was written there")

    def test_free_leaves_the_others(self) -> None:
        """free_data_space(space) frees that space and no other."""
        retained, freed = self.alloc(_BYTES), self.alloc(_BYTES)
        self.write(retained, pattern(_BYTES, 1))
        self.free(freed)
        self.write(self.alloc(_BYTES), pattern(_BYTES, 2))
        expect(self.read(retained, _BYTES) == pattern(_BYTES, 1), "a space lost its bytes when another was freed")

    def test_freed_bytes_can_be_had_again(self) -> None:
        """free_data_space(space) gives the bytes back."""
        kind = self.device.memory_kind()
        if kind.capacity is None or kind.capacity > 1 << 32:
            self.skip("has more memory than a test should use up")
        capacity = kind.capacity or 0
        nbytes = min(capacity // 2, kind.max_bytes or capacity) // kind.size_multiple * kind.size_multiple
        for _ in range(4):
            self.free(self.alloc(nbytes))

    def test_out_of_memory(self) -> None:
        """alloc_data_space raises OutOfMemoryError when the memory is not there."""
        call = lambda: self.api.alloc_data_space(self.device.index, 1 << 62, 1, "global", None)  # noqa: E731
        expect_raises(OutOfMemoryError, call, "an allocation of 2**62 bytes")

    def test_any_thread(self) -> None:
        """Methods may be called from any thread."""
        failures: list[str] = []

        def work(seed: int) -> None:
            try:
                for _ in range(8):
                    space = self.alloc(_BYTES)
                    self.write(space, pattern(_BYTES, seed))
                    if self.read(space, _BYTES) != pattern(_BYTES, seed):
                        failures.append(f"thread {seed} read what it did not write")
                    self.free(space)
            except Exception as error:
                failures.append(f"thread {seed}: {type(error).__name__}: {error}")

        threads = [Thread(target=work, args=(seed,), daemon=True) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        expect(not failures, "; ".join(failures))
