"""Work in flight on devices: the owners of the memory that it uses are held until it is done."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Collection
from typing import NamedTuple

from landbridge.device.api import Device, Event
from landbridge.memory.allocators.base import Queue, QueuedUse, device_of
from landbridge.process.locks import new_lock


class _Held(NamedTuple):
    use: QueuedUse
    devices: tuple[Device, ...]
    owners: object


_ASK_EVERY = 16  # uses of a queue to collect before the device is asked, as asking takes time

_held: dict[Queue, deque[_Held]] = {}  # in the order of each queue
_lock = new_lock()


def _start_anew() -> None:
    """Forget all work in a child process: it is the parent's."""
    _held.clear()


os.register_at_fork(after_in_child=_start_anew)


def hold(event: Event, queue: Queue, devices: tuple[Device, ...], owners: object) -> QueuedUse:
    """Keep ``owners`` alive until ``event`` of ``queue`` completes, which is work on memory of ``devices``; returns the
    use.
    """
    use = QueuedUse(event, queue)
    device_of(queue).state.last_event = event
    with _lock:
        held = _held.setdefault(queue, deque())
        held.append(_Held(use, devices, owners))
    if len(held) % _ASK_EVERY == 0:  # whoever waits for work looks too
        release_finished(devices)
    return use


def release_finished(devices: Collection[Device]) -> None:
    """Release the owners whose work on memory of ``devices`` is done, or whose device is lost."""
    done = []  # freed outside the lock: an owner may be the last to hold memory, and freeing that takes time
    if _held:
        with _lock:
            for queue in list(_held):
                held = _held[queue]
                lost = device_of(queue).is_lost
                while held and (lost or (_meet(held[0].devices, devices) and held[0].use.is_over())):
                    done.append(held.popleft())
                if not held:
                    del _held[queue]


def finish(device: Device) -> None:
    """Wait for the work in flight on memory of ``device``, and release its owners."""
    with _lock:
        waiting = [held for queue in _held.values() for held in queue if device in held.devices]
    for held in waiting:
        held.use.is_over(wait=True)
    release_finished((device,))


def _meet(some: Collection[Device], others: Collection[Device]) -> bool:
    return any(device in others for device in some)
