"""What a machine can do at most, as it was measured."""

from __future__ import annotations

from landbridge.records import record


@record(frozen=True)
class Level:
    """A place of bytes: ``capacity`` of them have room there (0: any number), read at ``bandwidth`` bytes a second."""

    name: str
    capacity: int
    bandwidth: float


@record(frozen=True)
class MachineLimits:
    """Of ``threads`` threads together: f32 operations a second, and the levels of memory, the nearest first."""

    threads: int
    flops: float
    levels: tuple[Level, ...]

    def level_of(self, nbytes: int) -> Level:
        """The nearest level that has room for ``nbytes``; the last has room for all."""
        return next((level for level in self.levels if nbytes <= level.capacity), self.levels[-1])

    def seconds(self, flops: int, nbytes: int) -> float:
        """The least time of a kernel of so many operations, on so many bytes."""
        return max(flops / self.flops, nbytes / self.level_of(nbytes).bandwidth)
