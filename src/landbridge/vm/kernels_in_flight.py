"""KernelsInFlight: launches of one step of a run that their device was given and may not have finished."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from landbridge.device.api import Device, Event, Stream, wait_for_event
from landbridge.errors import DeviceError, DeviceLostError, JobTimeoutError
from landbridge.memory.allocators.in_flight import hold
from landbridge.memory.coherence import share_granules, take_back
from landbridge.memory.storage import Storage


class KernelsInFlight:
    """Launches on ``stream`` of ``device`` (None: its own queue), in order, with their Events.

    ``borrowed``: memory that they write and its owner reads without barriers; it is handed back by ``wait``. ``owners``
    returns who owns the memory of callers that they use, for as long as that is bound.
    """

    __slots__ = ("_device", "_events", "_stream", "borrowed", "owners")

    def __init__(self, device: Device, stream: Stream | None) -> None:
        self._device, self._stream = device, stream
        self._events: list[tuple[str, Event]] = []
        self.borrowed: list[tuple[Storage, int, int]] = []
        self.owners: Callable[[], object] | None = None

    def add(self, kernels: str, event: Event | None) -> None:
        """Record the launch of ``kernels``, a name for messages. None for ``event`` means that it is done, and so are
        all launches before it, as they run in order.
        """
        if event is not None:
            self._events.append((kernels, event))
            self._device.state.last_event = event

    def returns_any_of(self, borrowed: Sequence[tuple[Storage, int, int]]) -> bool:
        """Returns whether ``wait`` hands any of ``borrowed`` back."""
        return any(share_granules(*mine, *other) for mine in self.borrowed for other in borrowed)

    def wait(self) -> None:
        """Wait until all are done. Raises DeviceError with the kernel that failed first, and DeviceLostError.

        After an interrupt they go on, and hold the memory of callers, which may be bound no more.
        """
        events, self._events = self._events, []
        borrowed, self.borrowed = self.borrowed, []
        try:
            self._wait(events)
        except Exception:
            raise
        except BaseException:
            if events and self.owners is not None:
                hold(events[-1][1], self._stream or self._device, (self._device,), self.owners())
            raise
        for storage, start, stop in borrowed:
            take_back(storage, start, stop)

    def _wait(self, events: Sequence[tuple[str, Event]]) -> None:
        with self._device.state.watching():
            if len(events) > 1:  # one wait instead of one for each
                self._wait_for_last(events[-1])
            for kernels, event in events:
                try:
                    self._wait_for(kernels, event)
                except DeviceLostError:
                    raise
                except JobTimeoutError as error:
                    raise JobTimeoutError(f"kernel {kernels} on {self._device} was ended: {error}") from error
                except Exception as error:
                    raise DeviceError(f"kernel {kernels} failed on {self._device}: {error}") from error

    def _wait_for_last(self, last: tuple[str, Event]) -> None:
        """Wait for the last launch. Raises DeviceLostError: its first report has the cause, later ones may have only
        what came of it. Any other exception is raised again, in order.
        """
        try:
            self._wait_for(*last)
        except DeviceLostError:
            raise
        except Exception:
            return

    def _wait_for(self, kernels: str, event: Event) -> None:
        wait_for_event(event, device=self._device, work=("kernel", kernels), queue=self._stream)
