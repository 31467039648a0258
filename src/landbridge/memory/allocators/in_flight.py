"""Work in flight: what devices still do, and the owners of the memory that they do it on, held until it is done."""

from __future__ import annotations

import os
from collections import deque
from dataclasses import dataclass

from landbridge.device.device import Device
from landbridge.memory.allocators.base import Use


@dataclass(frozen=True, slots=True, eq=False)
class _Held:
    use: Use
    devices: tuple[Device, ...]
    owners: object


_held: deque[_Held] = deque()

os.register_at_fork(after_in_child=_held.clear)


def hold(use: Use, devices: tuple[Device, ...], owners: object) -> None:
    """Keep ``owners`` until ``use``, of memory of ``devices``, is done. Lets go of what is done by now."""
    for _ in range(len(_held)):
        try:
            oldest = _held.popleft()
        except IndexError:  # another thread
            break
        if not oldest.use.is_over():
            _held.appendleft(oldest)
            break
    _held.append(_Held(use, devices, owners))


def finish(device: Device) -> None:
    """Wait for the work in flight on memory of ``device``, and let go of its owners."""
    for _ in range(len(_held)):
        try:
            held = _held.popleft()
        except IndexError:
            return
        if device not in held.devices or not held.use.is_over(wait=True):
            _held.append(held)
