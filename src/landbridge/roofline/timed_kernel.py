"""A kernel of a run with its time, beside what it should take."""

from __future__ import annotations

from collections.abc import Iterable

from landbridge.records import record
from landbridge.roofline.limits import MachineLimits


@record(frozen=True)
class TimedKernel:
    """One call: median ``seconds`` of warm runs, its operations and bytes, and the schedule in words.

    ``lane`` says who ran it, ``"cpu"`` or a device. ``weighed``: schedules that were weighed, with their costs.
    """

    name: str
    function: str
    lane: str
    seconds: float
    flops: int = 0
    nbytes: int = 0
    tasks: int = 0
    schedule: str = ""
    weighed: tuple[str, ...] = ()

    @property
    def flops_rate(self) -> float:
        """Operations a second."""
        return self.flops / self.seconds if self.seconds else 0.0

    @property
    def bandwidth(self) -> float:
        """Bytes a second, each byte of an operand counted once."""
        return self.nbytes / self.seconds if self.seconds else 0.0

    @property
    def intensity(self) -> float:
        """Operations for each byte."""
        return self.flops / self.nbytes if self.nbytes else 0.0

    def of_peak(self, limits: MachineLimits) -> float:
        """The share of the peak of ``limits`` that it reached."""
        return self.flops_rate / limits.flops

    def of_bandwidth(self, limits: MachineLimits) -> float:
        """The share it reached of the bandwidth of the nearest memory that has room for its bytes."""
        return self.bandwidth / limits.level_of(self.nbytes).bandwidth

    def of_roof(self, limits: MachineLimits) -> float:
        """The share that the least time by ``limits`` is of the time it took."""
        return limits.seconds(self.flops, self.nbytes) / self.seconds if self.seconds else 0.0


def roof_share(kernels: Iterable[TimedKernel], limits: MachineLimits) -> float:
    """The share that the least times of ``kernels`` together are of the time they took; 0 of none."""
    least = spent = 0.0
    for kernel in kernels:
        least += limits.seconds(kernel.flops, kernel.nbytes)
        spent += kernel.seconds
    return least / spent if spent else 0.0
