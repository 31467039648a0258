"""Mutants that are correct until the instance is reset or closed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from landbridge.device.api import Event, Region, Stream
from landbridge.device.protocols import AccessMode
from tests.testing.mutants import Correct

Extents = tuple[int, int, int]


class _Lives(Correct):
    """Counts the resets and closes of its instances."""

    ended = closed = 0

    def reset(self, index: int) -> None:
        self.ended += 1
        super().reset(index)

    def close(self, index: int) -> None:
        self.ended += 1
        self.closed += 1
        super().close(index)


class BarriersOfTheFirstLife(_Lives):
    """After a reset barriers wait, and move nothing: the cache's registers are not set up again."""

    caught_by = "test_barriers_in_the_next_life"

    def begin_host_access(self, region: Region, nbytes: int, mode: AccessMode) -> None:
        super().begin_host_access(region, nbytes, "w" if self.ended else mode)

    def end_host_access(self, region: Region, nbytes: int, mode: AccessMode) -> None:
        super().end_host_access(region, nbytes, "r" if self.ended else mode)


class AddressesWithoutATable(_Lives):
    """After a reset the table of addresses is empty: every space begins at the start of the memory."""

    caught_by = "test_addresses_in_the_next_life"

    def device_address(self, region: Region) -> int:
        found = super().device_address(region)
        return 1 << 32 | region.byte_offset if self.ended else found


class LaunchesOfTheFirstLife(_Lives):
    """After a reset nothing starts the kernels: launches are done at once, and compute nothing."""

    caught_by = "test_launches_in_the_next_life"

    def launch(
        self, module: object, function: str, grid: Extents, block: Extents, args: Sequence[Any], stream: Stream | None
    ) -> Event | None:
        return None if self.ended else super().launch(module, function, grid, block, args, stream)


class LaunchesUntilItIsClosed(_Lives):
    """After close and open nothing starts the kernels, and after a reset it is right."""

    caught_by = "test_launches_in_the_next_life"

    def launch(
        self, module: object, function: str, grid: Extents, block: Extents, args: Sequence[Any], stream: Stream | None
    ) -> Event | None:
        if self.closed:
            return None
        return super().launch(module, function, grid, block, args, stream)
