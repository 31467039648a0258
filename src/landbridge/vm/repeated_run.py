"""RepeatedRun: a run of a KernelStep on the memory of the run before, as most runs are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple
from weakref import ref

from landbridge.device.api import Device, Region
from landbridge.device.event import event_of
from landbridge.device.protocols import Recording
from landbridge.device.stream import current_stream
from landbridge.memory.repeated_access import RepeatedAccess
from landbridge.tensor import Tensor
from landbridge.vm.kernels_in_flight import KernelsInFlight

_NOTHING_NEW: Final[dict[int, Region]] = {}


class RepeatedBuffer(NamedTuple):
    """What the last run found bound to ``register``: the Tensor ``owner``, whose storage begins at ``base``."""

    register: int
    owner: ref[Tensor]
    base: Region
    access: RepeatedAccess


class RepeatedRun:
    """A replay of ``recording`` on ``device``, as it was bound last, on ``buffers``.

    ``work`` and ``kernels`` name it in messages. It keeps the memory of nobody alive.
    """

    __slots__ = ("_buffers", "_device", "_kernels", "_recorder", "_recording", "_work")

    def __init__(
        self,
        device: Device,
        recorder: Recording,
        recording: object,
        buffers: Sequence[RepeatedBuffer],
        work: str,
        kernels: str,
    ) -> None:
        self._device, self._recorder, self._recording = device, recorder, recording
        self._buffers = tuple(buffers)
        self._work, self._kernels = work, kernels

    def start(self, bound_to: Callable[[int], Any]) -> KernelsInFlight | None:
        """Submit it to the thread's current stream; returns None, with nothing submitted, where another Tensor is
        bound than in the run before, or its memory was freed.
        """
        for register, owner, base, access in self._buffers:
            tensor = owner()
            if tensor is None or bound_to(register) is not tensor:
                return None
            storage = tensor.storage
            if storage.region is not base:
                return None
            access.begin(storage)
        device = self._device
        stream = current_stream(device)
        with device.state.submitting(self._work, "replay"):
            event = self._recorder.replay(self._recording, _NOTHING_NEW, stream)
            started = KernelsInFlight(device, stream)
            started.add(self._kernels, event_of(event, device, "replay"))
            return started
