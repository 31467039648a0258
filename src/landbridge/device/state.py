"""DeviceState: whether one instance of a device can still be used; all handles of it share one."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar, Protocol
from weakref import WeakKeyDictionary, WeakSet

from landbridge.device.answers import failure
from landbridge.device.waits import waits_of_thread
from landbridge.errors import DeviceError, DeviceLostError, ForkedDeviceError, LandbridgeError
from landbridge.locks import new_lock

#: Counts what a run has to look at before it begins: accesses that were queued, and lives of devices that ended. While
#: it is 0, no run in the process looks further.
concerns = [0]


class Instances(Protocol):
    """What is read here of a DeviceAPI."""

    name: ClassVar[str]
    survives_fork: ClassVar[bool]


class DeviceState:
    """One life of instance ``name``: from its first use, or a ``reopen()``, until it is lost.

    ``last_work`` is what was submitted last, ``failure`` what every call raises since the loss, ``is_over`` whether
    the next life has begun. ``is_open`` says whether the instance was opened, with ``options``, or the ones to open it
    with; ``opening`` is held meanwhile. ``streams`` are those of it that users made, ``last_event`` is of the work that
    was queued last.
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
        """Raise DeviceLostError or ForkedDeviceError when the device can no longer be used."""
        if self.failure is not None:
            raise type(self.failure)(*self.failure.args)

    @contextmanager
    def submitting(self, work: str, method: str = "") -> Iterator[None]:
        """Give the device ``work`` by ``method``; when it says that it is lost, that is so from then on."""
        with self.watching(work, method):
            self.last_work = work
            yield

    @contextmanager
    def watching(self, work: str = "a wait, a barrier or a free", method: str = "") -> Iterator[None]:
        """Call ``method`` of the device for what is no work: a wait, a barrier, a free. What it raises that is no error
        of Landbridge is a DeviceError, which names both."""
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
        """Note the loss, for every handle; the error to raise."""
        lost = DeviceLostError(
            f"device {self.name} is lost ({reason}); the last work submitted was {self.last_work}. Memory on it is "
            "gone: call device.reopen() and make its tensors and Sessions again"
        )
        self.failure = lost
        concerns[0] += 1
        return lost


_states: WeakKeyDictionary[Instances, dict[int, DeviceState]] = WeakKeyDictionary()


def state_of(api: Instances, index: int) -> DeviceState:
    """The present life of instance ``index`` of ``api``."""
    known = _states.get(api)
    if known is None:
        known = _states.setdefault(api, {})
    return known.get(index) or known.setdefault(index, DeviceState(f"{api.name}:{index}"))


def begin_anew(api: Instances, index: int, reason: str, options: Mapping[str, object]) -> DeviceState:
    """End the present life of an instance, whose memory is lost for ``reason``; the next one, which handles made from
    now on belong to."""
    old = state_of(api, index)
    if old.failure is None:
        old.lose(reason)
    old.is_over = True
    new = _states[api][index] = DeviceState(old.name, options)
    return new


def every_state() -> list[tuple[Instances, int, DeviceState]]:
    """The present life of each instance that anybody asked for, the youngest API first."""
    return [(api, index, state) for api, lives in reversed(list(_states.items())) for index, state in lives.items()]


def _leave_behind() -> None:
    """In a child process: a driver's state belongs to the parent."""
    for api, lives in list(_states.items()):
        if not api.survives_fork:
            for state in lives.values():
                state.failure = ForkedDeviceError(
                    f"device {state.name} was opened by the parent process, and its driver does not survive a fork; "
                    "start the process with the 'spawn' method, or open the device in the child alone"
                )


os.register_at_fork(after_in_child=_leave_behind)
