"""Fences of a device's queues: work that waits for others, and fences that others wait for."""

from __future__ import annotations

import os

from landbridge.device.answers import number, refusal
from landbridge.device.api import Device, Stream
from landbridge.device.fence import Fence, as_fence
from landbridge.device.protocols import ExternalFences
from landbridge.device.stream import current_stream
from landbridge.errors import InputError, UnsupportedError


def wait_for_fence(device: Device, fence: object, stream: Stream | None = None) -> None:
    """Order work that is queued from now on on ``stream`` (None: the thread's current one) after ``fence``.

    Returns at once where the device can wait for it; else waits here, interruptibly. Raises InputError for what is no
    fence, DeviceError for one that failed.
    """
    found = as_fence(fence)
    api = device.capability(ExternalFences)
    if api is not None and not found.is_signalled():
        with device.state.submitting("a wait for a fence", "wait_fence"):
            try:
                api.wait_fence(device.index, stream or current_stream(device), found.fileno())
            except UnsupportedError:  # of this kind of file
                found.wait()
        return
    found.wait()


def fence_of(device: Device, stream: Stream | None = None) -> Fence:
    """Returns a Fence that is signalled when the work is done that is queued so far on ``stream`` (None: the thread's
    current one).

    A device that makes none is waited for, and the fence is signalled then.
    """
    queue = stream or current_stream(device)
    api = device.capability(ExternalFences)
    if api is not None:
        with device.state.submitting("a fence", "signal_fence"):
            found = api.signal_fence(device.index, queue)
        file = number(found, device, "signal_fence", "an open file descriptor", 1 << 31)
        try:
            return Fence.owning(file)
        except InputError:
            raise refusal(device, "signal_fence", file, "an open file descriptor") from None
    device.synchronize() if queue is None else queue.synchronize()
    return Fence.owning(os.eventfd(1, os.EFD_CLOEXEC))
