"""DeviceState: whether one instance of a device can still be used; all handles of the instance share it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar, Protocol
from weakref import WeakKeyDictionary, WeakSet

from landbridge.device.answers import failure
from landbridge.device.waits import waits_of_thread
from landbridge.errors import DeviceError, DeviceLostError, ForkedDeviceError, LandbridgeError
from landbridge.process.locks import new_lock

#: Counts what a run must check before it begins: accesses that were queued, and lives of devices that ended. While it
#: is 0, no run in the process checks further.
concerns = [0]


class Instances(Protocol):
    """The part of a DeviceAPI that this module reads."""

    name: ClassVar[str]
    survives_fork: ClassVar[bool]


class DeviceState:
    """One life of instance ``name``: from its first use, or a ``reopen()``, until it is lost.

    ``last_work`` is the last work submitted; ``failure`` is what every call raises since the loss; ``is_over`` says
    whether the next life has begun. ``is_open`` says whether the instance was opened with ``options``, or else they are
    the ones to open it with; ``opening`` is the lock for that. ``streams`` are those that users made, and
    ``last_event`` is that of the work queued last.
    """

    __slots__ = (
        "__weakref__",
        "failure",
        "is_open",
        "is_over",
        "last_event",
        "last_work",
        "name",
        "opening",
        "options",
        "streams",
    )

    def __init__(self, name: str, options: Mapping[str, object] | None = None) -> None:
        self.name = name
        self.options = dict(options or {})
        self.is_open = False
        self.opening = new_lock()
        self.last_event: Any = None
        self.streams: WeakSet[Any] = WeakSet()
        self.last_work = "nothing"
        self.failure: DeviceError | None = None
        self.is_over = False

    def check(self) -> None:
        """Raises DeviceLostError or ForkedDeviceError when the device can no longer be used."""
        if self.failure is not None:
            raise type(self.failure)(*self.failure.args)

    @contextmanager
    def submitting(self, work: str, method: str = "") -> Iterator[None]:
        """Guard a ``with`` block that submits ``work`` by ``method``; when it raises that the device is lost, record
        that.
        """
        with self.watching(work, method):
            self.last_work = work
            yield

    @contextmanager
    def watching(self, work: str = "a wait, a barrier or a free", method: str = "") -> Iterator[None]:
        """Guard a ``with`` block that calls ``method`` of the device for something other than work: a wait, a barrier,
        a free.

        A foreign exception becomes a DeviceError that names both.
        """
        self.check()
        waits = waits_of_thread()
        try:
            if waits is None or not method:
                yield
            else:
                with waits.inside(f"{self.name} to return from {method}, for", work):
                    yield
        except DeviceLostError as error:
            raise self.lose(str(error)) from error
        except (LandbridgeError, MemoryError):
            raise
        except Exception as error:
            raise failure(self.name, work, error, method) from error

    def lose(self, reason: str) -> DeviceLostError:
        """Record the loss for every handle; returns the error to raise."""
        lost = DeviceLostError(
            f"device {self.name} is lost ({reason}); the last work submitted was {self.last_work}. Memory on it is "
            "gone: call device.reopen() and make its tensors and Sessions again"
        )
        self.failure = lost
        concerns[0] += 1
        return lost


_states: WeakKeyDictionary[Instances, dict[int, DeviceState]] = WeakKeyDictionary()


def state_of(api: Instances, index: int) -> DeviceState:
    """Returns the present life of instance ``index`` of ``api``."""
    known = _states.get(api)
    if known is None:
        known = _states.setdefault(api, {})
    return known.get(index) or known.setdefault(index, DeviceState(f"{api.name}:{index}"))


def begin_anew(api: Instances, index: int, reason: str, options: Mapping[str, object]) -> DeviceState:
    """End the present life of an instance, whose memory is lost for ``reason``, and begin the next one for new
    handles.
    """
    old = state_of(api, index)
    if old.failure is None:
        old.lose(reason)
    old.is_over = True
    new = _states[api][index] = DeviceState(old.name, options)
    return new


def every_state() -> list[tuple[Instances, int, DeviceState]]:
    """Returns the present life of each instance that was requested, the newest API first."""
    return [(api, index, state) for api, lives in reversed(list(_states.items())) for index, state in lives.items()]


def _leave_behind() -> None:
    """Mark all devices as the parent's in a child process, unless they survive a fork."""
    for api, lives in list(_states.items()):
        if not api.survives_fork:
            for state in lives.values():
                state.failure = ForkedDeviceError(
                    f"device {state.name} was opened by the parent process, and its driver does not survive a fork; "
                    "start the process with the 'spawn' method, or open the device in the child alone"
                )


os.register_at_fork(after_in_child=_leave_behind)
