"""The measured limits of a machine."""

from __future__ import annotations

from landbridge.records import record


@record(frozen=True)
class Level:
    """A level of memory: data of up to ``capacity`` bytes (0: any number) are read from it at ``bandwidth`` bytes a
    second.
    """

    name: str
    capacity: int
    bandwidth: float


@record(frozen=True)
class MachineLimits:
    """The limits of ``threads`` threads together: f32 operations a second, and the levels of memory from the nearest
    on.
    """

    threads: int
    flops: float
    levels: tuple[Level, ...]

    def level_of(self, nbytes: int) -> Level:
        """Returns the nearest level whose capacity ``nbytes`` fits; the last level takes any number."""
        return next((level for level in self.levels if nbytes <= level.capacity), self.levels[-1])

    def seconds(self, flops: int, nbytes: int) -> float:
        """Returns the shortest possible time of a kernel with ``flops`` operations on ``nbytes`` bytes, in seconds."""
        return max(flops / self.flops, nbytes / self.level_of(nbytes).bandwidth)
