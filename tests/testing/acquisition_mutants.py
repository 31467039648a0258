"""Mutants of a device with scopes that come and go, and the test that must notice."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import ClassVar

from landbridge.device.api import Space
from landbridge.errors import ScopeBusyError
from landbridge.testing.sim_on_demand import SimOnDemandDeviceAPI


class CorrectOnDemand(SimOnDemandDeviceAPI):
    """Nothing broken."""

    name = "mutant"
    caught_by: ClassVar[str] = ""


class NamesWhatIsAcquired(CorrectOnDemand):
    """acquired_scopes leaves out what is acquired already."""

    caught_by = "test_acquired_scopes"
    requested = 0

    def acquired_scopes(self, index: int) -> Sequence[str]:
        self.requested += 1
        return super().acquired_scopes(index)[self.requested % 2 :]


class NamesOfNoKind(CorrectOnDemand):
    """acquired_scopes names scopes without their "global."."""

    caught_by = "test_acquired_scopes"

    def acquired_scopes(self, index: int) -> Sequence[str]:
        return [scope.removeprefix("global.") for scope in super().acquired_scopes(index)]

    def acquire_scope(self, index: int, scope: str) -> int:
        return super().acquire_scope(index, f"global.{scope}")

    def release_scope(self, index: int, scope: str) -> None:
        super().release_scope(index, f"global.{scope}")


class AllocatesWhatIsAcquired(CorrectOnDemand):
    """Allocation in a scope that is not acquired is refused."""

    caught_by = "test_what_is_allocated_while_a_scope_is_away"

    def alloc_data_space(self, index: int, nbytes: int, alignment: int, scope: str, type_hint: str | None) -> Space:
        if self.acquired.get(scope) == 0:
            raise ScopeBusyError(f"{scope!r} is not acquired")
        return super().alloc_data_space(index, nbytes, alignment, scope, type_hint)


class MapsAnewWhenAcquired(CorrectOnDemand):
    """The scope is mapped elsewhere whenever it is acquired."""

    caught_by = "test_what_is_allocated_while_a_scope_is_away"

    def host_pointer(self, space: Space) -> int:
        return super().host_pointer(space) if self.acquired.get(space.scope, 1) else 1 << 20


class LosesInSilence(CorrectOnDemand):
    """What was there is lost at the last release, and the number stays."""

    caught_by = "test_the_number_of_what_is_retained"

    def release_scope(self, index: int, scope: str) -> None:
        super().release_scope(index, scope)
        self._hidden.pop(scope, None)


class CountsAcquisitions(CorrectOnDemand):
    """The number is another one each time: it counts acquisitions."""

    caught_by = "test_the_number_of_what_is_retained"

    def acquire_scope(self, index: int, scope: str) -> int:
        self._contents[scope] += 1
        return super().acquire_scope(index, scope)


class OneReleaseForAll(CorrectOnDemand):
    """The first release gives the scope back, however often it was acquired."""

    caught_by = "test_several_have_a_scope_at_once"

    def acquire_scope(self, index: int, scope: str) -> int:
        contents = super().acquire_scope(index, scope)
        self.acquired[scope] = 1
        return contents


class ReleasesEveryScope(CorrectOnDemand):
    """A release is of every scope: the hardware has one lock for them."""

    caught_by = "test_scopes_are_released_one_by_one"

    def release_scope(self, index: int, scope: str) -> None:
        for each in self.acquired_scopes(index):
            if self.acquired[each]:
                super().release_scope(index, each)


class CountsWithoutALock(CorrectOnDemand):
    """Acquisitions are counted without a lock."""

    caught_by = "test_acquisitions_by_many_threads"

    def acquire_scope(self, index: int, scope: str) -> int:
        count = self.acquired[scope]
        time.sleep(1e-3)
        contents = super().acquire_scope(index, scope)
        self.acquired[scope] = count + 1
        return contents
