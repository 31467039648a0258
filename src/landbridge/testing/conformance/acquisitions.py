"""Tests of scopes that have to be acquired: what they hold while acquired, and what stays when they are released."""

from __future__ import annotations

from threading import Barrier, Thread

from landbridge.device.api import Region
from landbridge.device.protocols import Addresses, HostMemory, NdSpaces
from landbridge.shapes.physical import row_bytes
from landbridge.testing.conformance.base import ConformanceCase, expect, pattern

_BYTES = 64
_THREADS = 4
_ROUNDS = 8


class AcquisitionConformance(ConformanceCase):
    """Tests ``acquire_scope`` and ``release_scope``."""

    def test_acquired_scopes(self) -> None:
        """acquired_scopes(index): scopes of the instance that have to be acquired; always the same."""
        found = [tuple(self.on_demand().acquired_scopes(self.device.index)) for _ in range(3)]
        expect(len(set(found)) == 1, f"acquired_scopes was {found[0]}, and then {found[1:]}")
        unknown = set(found[0]) - set(self.device.memory_kinds)
        expect(not unknown, f"acquired_scopes names {unknown}, of which there is no memory kind")

    def test_what_is_allocated_while_a_scope_is_away(self) -> None:
        """Allocation in a scope that comes and goes reserves space and addresses, acquired or not; they stay."""
        api, index = self.on_demand(), self.device.index
        self.release_scopes()
        for scope in api.acquired_scopes(index):
            early = self._piece(scope)
            before = self._addresses(early)
            contents = api.acquire_scope(index, scope)
            late = self._piece(scope)
            self._put(early, 1)
            self._put(late, 2)
            self._expect(early, 1, "was allocated while the scope was released")
            found = self._addresses(early)
            expect(found == before, f"an address in {scope!r} was {before}, and is {found} while it is acquired")
            api.release_scope(index, scope)
            expect(type(contents) is int, f"acquire_scope returned {contents!r}, not an int")
            expect(self._addresses(early) == before, f"an address in {scope!r} is another one after the release")

    def test_the_number_of_what_is_retained(self) -> None:
        """acquire_scope: its number stays the same while everything written there is kept, released or not."""
        api, index = self.on_demand(), self.device.index
        for scope in api.acquired_scopes(index):
            piece = self._piece(scope)
            inner = [api.acquire_scope(index, scope) for _ in range(2)]
            for _ in inner:
                api.release_scope(index, scope)
            expect(inner[0] == inner[1], f"{scope!r} is acquired all the time, and its numbers are {inner}")
            self._put(piece, 3)
            self.release_scopes()
            again = api.acquire_scope(index, scope)
            if again == inner[0]:  # otherwise another program had the scope, and nothing is guaranteed
                self._expect(piece, 3, f"was written before the release, and the number is still {again}")
            api.release_scope(index, scope)
            self.acquire_scopes()

    def test_several_have_a_scope_at_once(self) -> None:
        """Several runs may have a scope at once: its bytes are there until each has given it back."""
        api, index = self.on_demand(), self.device.index
        for scope in api.acquired_scopes(index):
            piece = self._piece(scope)
            self._put(piece, 4)
            api.acquire_scope(index, scope)
            api.release_scope(index, scope)
            self._expect(piece, 4, "was written by one who has the scope still")
            self._put(piece, 5)
            self._expect(piece, 5, "was written by one who has the scope still")

    def test_scopes_are_released_one_by_one(self) -> None:
        """release_scope gives back that scope and no other."""
        api, index = self.on_demand(), self.device.index
        scopes = api.acquired_scopes(index)
        if len(scopes) < 2:
            self.skip("has one scope that comes and goes")
        pieces = {scope: self._piece(scope) for scope in scopes}
        for seed, scope in enumerate(scopes):
            self._put(pieces[scope], seed)
        for released in scopes:
            api.release_scope(index, released)
            for seed, scope in enumerate(scopes):
                if scope != released:
                    self._expect(pieces[scope], seed, f"was written there, and {released!r} was released")
            api.acquire_scope(index, released)

    def test_acquisitions_by_many_threads(self) -> None:
        """Methods may be called from any thread: acquisitions of threads at once are all counted."""
        api, index = self.on_demand(), self.device.index
        for scope in api.acquired_scopes(index):
            piece = self._piece(scope)
            self._put(piece, 6)
            failures = self._alternate(scope)
            expect(not failures, "; ".join(failures))
            self._expect(piece, 6, "was written by one who has the scope still")
            self._put(piece, 7)
            self._expect(piece, 7, "was written by one who has the scope still")

    def _alternate(self, scope: str) -> list[str]:
        """Returns the faults that threads found that acquired ``scope`` at once, and released it when all had it."""
        api, index, failures = self.on_demand(), self.device.index, list[str]()
        all_have_it = Barrier(_THREADS, timeout=self.patience)

        def work() -> None:
            try:
                for _ in range(_ROUNDS):
                    api.acquire_scope(index, scope)
                    all_have_it.wait()
                    api.release_scope(index, scope)
                    all_have_it.wait()
            except Exception as error:
                failures.append(f"{type(error).__name__}: {error}")
                all_have_it.abort()

        threads = [Thread(target=work, daemon=True) for _ in range(_THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return failures

    def _piece(self, scope: str) -> Region:
        """Returns ``_BYTES`` bytes of ``scope``: a space, or a row of one."""
        kind = self.device.memory_kind(scope)
        if kind.ndim == 1:
            return Region(self.alloc(_BYTES, scope))
        shape = (2, *(4,) * (kind.ndim - 2), _BYTES // 4 ** (kind.ndim - 1))
        assert row_bytes(shape, "float32") == _BYTES
        space = self.ability(NdSpaces).alloc_data_space_nd(self.device.index, shape, "float32", scope, 1)
        self.keep(space)
        return space.row(1)

    def _put(self, piece: Region, seed: int) -> None:
        self.write(piece.space, pattern(_BYTES, seed), piece.byte_offset)

    def _expect(self, piece: Region, seed: int, subject: str) -> None:
        found = self.read(piece.space, _BYTES, piece.byte_offset)
        expect(found == pattern(_BYTES, seed), f"what is lost in {piece.space.scope!r} {subject}")

    def _addresses(self, piece: Region) -> list[int]:
        """Returns the addresses of ``piece`` for the host and the device, as far as they are known."""
        host, owned = self.device.capability(HostMemory), self.device.capability(Addresses)
        found = [owned.device_address(piece)] if owned is not None else []
        if host is not None and self.device.memory_kind(piece.space.scope).host_access != "none":
            found.append(host.host_pointer(piece.space))
        return found
