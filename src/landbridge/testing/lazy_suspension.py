"""Suspension of a simulated device, which retains its memory."""

from __future__ import annotations

from landbridge.errors import DeviceError
from landbridge.testing.lazy_streams import LazyStreams


class LazySuspension(LazyStreams):
    """The instances of ``LazyStreams``, which do no work while they are suspended."""

    def suspend(self, index: int) -> None:
        """Suspends an instance that has nothing queued."""
        if not self._live(index).queue.is_idle():
            raise DeviceError(f"{self.name}:{index} has work queued and is suspended; wait for it first")

    def resume(self, index: int) -> bool:
        """Resumes an instance; its memory is as it was."""
        self._live(index)
        return True
