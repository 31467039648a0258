"""DeviceState: whether one instance of a device can still be used; all handles of the instance share it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, ClassVar, Protocol
from weakref import WeakKeyDictionary, WeakSet

from landbridge.device.answers import failure
from landbridge.device.waits import waits_of_thread
from landbridge.errors import (
    ContextLostError,
    DeviceError,
    DeviceLostError,
    DeviceSuspendedError,
    ForkedDeviceError,
    LandbridgeError,
)
from landbridge.process.locks import new_lock

#: Counts what a run must check before it begins: accesses that were queued, and lives of devices that ended. While it
#: is 0, no run in the process checks further.
concerns = [0]


#: Methods that are called of a suspended device too: memory is given back whenever its last user goes.
_GIVES_BACK = frozenset({"free_data_space", "free_workspace", "free_stream", "release_import"})


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
        self.last_work: object = "nothing"
        self.failure: DeviceError | None = None
        self.is_over = False

    def check(self) -> None:
        """Raises DeviceLostError or ForkedDeviceError when the device can no longer be used."""
        if self.failure is not None:
            raise type(self.failure)(*self.failure.args)

    def submitting(self, work: object, method: str = "") -> Watch:
        """Returns a guard of a ``with`` block that submits ``work``, whose text is asked for when an error has it, by
        ``method``; when the block raises that the device is lost, the guard records that.
        """
        return Watch(self, work, method, submits=True)

    def watching(self, work: object = "a wait, a barrier or a free", method: str = "") -> Watch:
        """Returns a guard of a ``with`` block that calls ``method`` of the device for something other than work: a
        wait, a barrier, a free.

        A foreign exception becomes a DeviceError that names both.
        """
        return Watch(self, work, method)

    @property
    def is_suspended(self) -> bool:
        """Returns whether uses raise DeviceSuspendedError until the device is resumed."""
        return isinstance(self.failure, DeviceSuspendedError)

    def suspend(self) -> None:
        """Let every use raise DeviceSuspendedError; those that give memory back go on."""
        self.failure = DeviceSuspendedError(f"device {self.name} is suspended; call device.resume() first")
        concerns[0] += 1

    def resume(self) -> None:
        """End what ``suspend`` began; memory is as it was."""
        self.failure = None

    def lose(self, reason: str, kind: type[DeviceLostError] = DeviceLostError) -> DeviceLostError:
        """Record the loss, an error of ``kind``, for every handle; returns the error to raise."""
        what = "has lost the context of this process" if issubclass(kind, ContextLostError) else "is lost"
        lost = kind(
            f"device {self.name} {what} ({reason}); the last work submitted was {self.last_work}. Memory on it is "
            "gone: call device.reopen() and make its tensors and Sessions again"
        )
        self.failure = lost
        concerns[0] += 1
        return lost


class Watch:
    """A guard of a ``with`` block that calls a device. Its enter raises DeviceLostError or ForkedDeviceError when the
    device can no longer be used.

    It is a class, not a generator, because every copy and launch enters several.
    """

    __slots__ = ("_inside", "_method", "_state", "_submits", "_work")

    def __init__(self, state: DeviceState, work: object, method: str, *, submits: bool = False) -> None:
        self._state, self._work, self._method, self._submits = state, work, method, submits
        self._inside: AbstractContextManager[None] | None = None

    def __enter__(self) -> None:
        state = self._state
        if state.failure is not None and not (state.is_suspended and self._method in _GIVES_BACK):
            state.check()
        if self._submits:
            state.last_work = self._work
        waits = waits_of_thread()
        if waits is not None and self._method:
            self._inside = waits.inside(f"{state.name} to return from {self._method}, for", self._work)
            self._inside.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._inside is not None:
            self._inside.__exit__(kind, error, traceback)
        if error is None:
            return
        if isinstance(error, DeviceLostError):
            raise self._state.lose(str(error), type(error)) from error
        if isinstance(error, Exception) and not isinstance(error, LandbridgeError | MemoryError):
            raise failure(self._state.name, str(self._work), error, self._method) from error


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
    if old.failure is None or old.is_suspended:
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
