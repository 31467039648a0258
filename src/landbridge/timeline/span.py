"""A span of time in one lane of a run."""

from __future__ import annotations

from landbridge.records import record


@record(frozen=True)
class Span:
    """A kernel, or with ``is_kernel`` false a step of the host, of ``lane``: ``"cpu"`` or a device.

    Times are microseconds from the start of the run; ``tasks`` is 0 on the host.
    """

    name: str
    lane: str
    start_us: float
    duration_us: float
    tasks: int = 0
    is_kernel: bool = True

    @property
    def end_us(self) -> float:
        """Returns the time of its end."""
        return self.start_us + self.duration_us
