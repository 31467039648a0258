"""A kernel of a run with its measured time and its time by the machine's limits."""

from __future__ import annotations

from collections.abc import Iterable

from landbridge.records import record
from landbridge.roofline.limits import MachineLimits


@record(frozen=True)
class TimedKernel:
    """One call: median ``seconds`` of warm runs, its operations and bytes, and the schedule in words.

    ``lane`` is where it ran, ``"cpu"`` or a device. ``weighed``: schedules that were compared, with their costs.
    ``loops``: the loops of the kernel, a line each.
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
    loops: str = ""

    @property
    def flops_rate(self) -> float:
        """Returns operations a second."""
        return self.flops / self.seconds if self.seconds else 0.0

    @property
    def bandwidth(self) -> float:
        """Returns bytes a second, with each byte of an operand counted once."""
        return self.nbytes / self.seconds if self.seconds else 0.0

    @property
    def intensity(self) -> float:
        """Returns operations for each byte."""
        return self.flops / self.nbytes if self.nbytes else 0.0

    def of_peak(self, limits: MachineLimits) -> float:
        """Returns its share of the peak of ``limits``."""
        return self.flops_rate / limits.flops

    def of_bandwidth(self, limits: MachineLimits) -> float:
        """Returns its share of the bandwidth of the nearest memory whose capacity its bytes fit."""
        return self.bandwidth / limits.level_of(self.nbytes).bandwidth

    def of_roof(self, limits: MachineLimits) -> float:
        """Returns the shortest time by ``limits`` as a share of the measured time."""
        return limits.seconds(self.flops, self.nbytes) / self.seconds if self.seconds else 0.0


def roof_share(kernels: Iterable[TimedKernel], limits: MachineLimits) -> float:
    """Returns the shortest times of ``kernels`` together as a share of their measured times; 0 without kernels."""
    least = spent = 0.0
    for kernel in kernels:
        least += limits.seconds(kernel.flops, kernel.nbytes)
        spent += kernel.seconds
    return least / spent if spent else 0.0
