"""DeviceAPI, the contract of a device, and its handles: Device, Space, Region, Stream, Event.

A plugin is a subclass of DeviceAPI, named by an entry point of the group ``landbridge.devices`` and created without
arguments. Methods may be called from any thread; those that block release the GIL and stay interruptible. Each optional
ability of a device is a Protocol in ``protocols``.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import field
from math import isfinite
from typing import Any, ClassVar, Protocol, TypeVar, cast, runtime_checkable
from weakref import finalize

from landbridge.device.answers import answering, kinds_of, refusal
from landbridge.device.attr import DeviceAttr, is_legal
from landbridge.device.event import Event as Event
from landbridge.device.event import EventFile as EventFile
from landbridge.device.event import event_of
from landbridge.device.event import wait_for_event as wait_for_event
from landbridge.device.lifecycle import Lifecycle as Lifecycle
from landbridge.device.lifecycle import reopen, reset
from landbridge.device.state import DeviceState, state_of
from landbridge.device.suspension import Suspension as Suspension
from landbridge.device.suspension import resume, suspend
from landbridge.errors import DeviceLostError, ForkedDeviceError, InputError, UnsupportedError
from landbridge.memory_kind import GLOBAL_SCOPE, MemoryKind
from landbridge.process.process_bound import ProcessBound
from landbridge.records import record

#: The version of this contract; the registry refuses a plugin that declares another one.
DEVICE_API_VERSION = 1

_Protocol = TypeVar("_Protocol")


class Device(ProcessBound):
    """A handle of instance ``index`` of ``api``. Two handles are equal when they name the same life of one instance.

    ``state`` says whether it can still be used.
    """

    __slots__ = ("_capabilities", "_kinds", "api", "index", "state")

    _instead: ClassVar[str] = "pickle its name, str(device), and ask for it with landbridge.device where it is used"

    def __init__(self, api: DeviceAPI, index: int = 0) -> None:
        self.api = api
        self.index = index
        self.state = state_of(api, index)
        self._kinds: Mapping[str, MemoryKind] | None = None
        self._capabilities: dict[object, object | None] = {}

    @property
    def name(self) -> str:
        """Returns the name of the API, without the index."""
        return self.api.name

    @property
    def memory_kinds(self) -> Mapping[str, MemoryKind]:
        """Returns the MemoryKind of each scope; the device is asked once per handle."""
        if self._kinds is None:
            self._kinds = kinds_of(self.api, self.index)
        return self._kinds

    def memory_kind(self, scope: str = "global") -> MemoryKind:
        """Returns the MemoryKind of ``scope``; raises InputError that names the legal scopes."""
        kind = (self._kinds or self.memory_kinds).get(scope or GLOBAL_SCOPE)
        if kind is None:
            raise InputError(
                f"device {self} has no memory scope {scope!r}; legal: {', '.join(sorted(self.memory_kinds))}"
            )
        return kind

    def attr(self, attr: DeviceAttr) -> object | None:
        """Returns the value of ``attr``; None when unknown or not applicable. Raises DeviceError for a wrong type."""
        with answering(str(self), f"get_attr({attr})"):
            found = self.api.get_attr(self.index, attr)
        if not is_legal(attr, found):
            raise refusal(self, "get_attr", found, f"what {attr} is, by the type in landbridge.device.attr, or None")
        return found

    def capability(self, protocol: Callable[..., _Protocol]) -> _Protocol | None:
        """Returns the API if it has the methods of ``protocol`` (one of ``landbridge.device.protocols``), else None.

        The answer is cached in the handle: ``isinstance`` with a Protocol takes longer than most of what it decides.
        """
        try:
            return self._capabilities[protocol]  # type: ignore[return-value]  # cast() would be a call of each lb.empty
        except KeyError:
            found = self.api if isinstance(self.api, cast("Any", protocol)) else None
            self._capabilities[protocol] = found
            return cast("_Protocol | None", found)

    @property
    def is_lost(self) -> bool:
        """Returns whether every call raises, because the device is gone or belongs to the parent process."""
        return self.state.failure is not None and not self.state.is_suspended

    def create_stream(self) -> Stream:
        """Returns a new stream, unordered with all others; it is freed when nothing refers to it any more.

        ``with lb.set_stream(stream):`` submits work there. Raises UnsupportedError where the device has a single queue.
        """
        streams = self.capability(Streams)
        if streams is None:
            raise UnsupportedError(f"device {self} has one queue, and makes no streams; leave set_stream out")
        with self.state.watching("a new stream", "create_stream"):
            stream: object = streams.create_stream(self.index)
        if not isinstance(stream, Stream) or stream.device != self:
            raise refusal(self, "create_stream", stream, f"a Stream of {self}")
        finalize(stream, _free_stream, streams, self.state, Stream(stream.device, stream.handle)).atexit = False
        self.state.streams.add(stream)
        return stream

    def synchronize(self, timeout: float | None = None) -> bool:
        """Wait until all work queued so far is done, at most ``timeout`` seconds in all; returns whether it is done.

        Covers the device's own queue and every stream that ``create_stream`` made. Ctrl-C ends the wait. Raises what
        the work raised, and DeviceLostError.
        """
        end = None if timeout is None else time.monotonic() + timeout
        return all(
            self._drain(queue, None if end is None else max(0.0, end - time.monotonic()))
            for queue in (None, *self.state.streams)
        )

    def _drain(self, stream: Stream | None, timeout: float | None) -> bool:
        """Wait at most ``timeout`` seconds for the work queued on ``stream`` (None: the device's own queue) so far."""
        streams, events = self.capability(Streams), self.capability(Events)
        if events is not None and (timeout is not None or streams is None):
            event = self._record(stream)
            with self.state.watching():
                return wait_for_event(event, timeout, self)
        if streams is not None and timeout is None:
            with self.state.watching(method="stream_sync"):
                streams.stream_sync(self.index, stream)
            return True
        with self.state.watching():
            # A single queue does its work in order: when the last work is done, all is.
            return self.state.last_event is None or wait_for_event(self.state.last_event, timeout, self)

    def _record(self, stream: Stream | None) -> Event:
        events = self.capability(Events)
        if events is None:
            raise UnsupportedError(f"{self} records no events; wait with synchronize()")
        with self.state.submitting("an event", "record_event"):
            event = event_of(events.record_event(self.index, stream), self, "record_event")
        if event is None:
            raise refusal(self, "record_event", event, "an Event")
        return event

    def _order(self, stream: Stream, other: Stream | Event | None) -> None:
        if isinstance(other, Stream) and other.device != self:
            raise InputError(f"a stream of {self} cannot wait for one of {other.device}; synchronize() that one first")
        streams, events = self.capability(Streams), self.capability(Events)
        method = "sync_stream_from_to" if other is None or isinstance(other, Stream) else "wait_event"
        with self.state.submitting("a wait of a stream", method):
            if streams is not None and (other is None or isinstance(other, Stream)):
                streams.sync_stream_from_to(self.index, other, stream)
            elif events is not None and other is not None and not isinstance(other, Stream):
                events.wait_event(self.index, stream, other)
            else:
                raise UnsupportedError(f"{self} has no events to wait for; give a stream")

    def elapsed_ms(self, start: Event, end: Event) -> float | None:
        """Returns the milliseconds between two events by the device's clock; None without one, or while one is
        pending.
        """
        events = self.capability(Events)
        with self.state.watching(method="elapsed_ms"):
            found: object = None if events is None else events.elapsed_ms(start, end)
        if found is None or (isinstance(found, float | int) and found is not True and isfinite(found)):
            return found
        raise refusal(self, "elapsed_ms", found, "milliseconds, a finite number, or None")

    def reopen(self, **options: object) -> Device:
        """Returns a new handle of the instance after closing and opening it, where it has such methods, lost or not.

        It keeps the options it was opened with; ``options`` override them. Tensors, Sessions and handles of the old
        life raise DeviceLostError from then on; on an old handle, this reopens the present life. Raises
        ForkedDeviceError in a child process, else as ``landbridge.device``.
        """
        if isinstance(self.state.failure, ForkedDeviceError):
            self.state.check()
        if self.state is state_of(self.api, self.index):
            reopen(self.api, self.index, options)
        return Device(self.api, self.index)

    def reset(self) -> Device:
        """Returns a new handle of the instance after its own reset, which drops queued work and ends the old life.

        Raises UnsupportedError where the device has no reset, DeviceLostError after a loss.
        """
        self.state.check()
        reset(self.api, self.index)
        return Device(self.api, self.index)

    def suspend(self) -> None:
        """Suspend the device once its work is done, to save power; its uses raise DeviceSuspendedError until
        ``resume``.

        Raises UnsupportedError where the device cannot be suspended, DeviceLostError after a loss.
        """
        self.state.check()
        self.synchronize()
        suspend(self.api, self.index)

    def resume(self) -> Device:
        """Returns a handle of the resumed device: this one where its memory was retained, else one of its next life.

        In the second case Tensors, Sessions and handles of the last life raise ContextLostError from then on.
        """
        resume(self.api, self.index)
        return self if self.state.failure is None else Device(self.api, self.index)

    def __copy__(self) -> Device:
        """Returns the handle itself, which never changes."""
        return self

    def __deepcopy__(self, memo: object) -> Device:
        return self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and self.state is other.state

    def __hash__(self) -> int:
        return hash(self.state)

    def __str__(self) -> str:
        return f"{self.name}:{self.index}"

    def __repr__(self) -> str:
        return f"device({str(self)!r})"


@record(frozen=True, slots=True)
class Space:
    """One allocation of a device. ``handle`` is the device's own: opaque, and nobody else does arithmetic on it.

    ``kind``: the kind of this allocation, where more is known of it than the kind of the scope says of every one.
    """

    device: Device
    scope: str
    handle: Any
    kind: MemoryKind | None = field(default=None, compare=False, repr=False, kw_only=True)


@record(frozen=True, slots=True)
class NdSpace(Space):
    """One allocation in a scope of more than one dimension: ``physical_shape`` elements, in rows.

    The first dimension counts the rows, and ``row_bytes`` of each may be used. Row ``r`` either begins ``r *
    row_pitch`` bytes into the space, or is a space of its own with handle ``rows[r]``. ``free_data_space`` takes the
    whole.
    """

    physical_shape: tuple[int, ...]
    row_bytes: int
    row_pitch: int | None = None
    rows: tuple[Any, ...] | None = None

    def row(self, number: int) -> Region:
        """Returns the Region where row ``number`` begins; raises InputError where there is no such row (-1 is none)."""
        if not 0 <= number < self.physical_shape[0]:
            raise InputError(f"row {number} of {self.physical_shape[0]}; legal: 0 to {self.physical_shape[0] - 1}")
        if self.rows is not None:
            return Region(Space(self.device, self.scope, self.rows[number]))
        return Region(self, number * (self.row_pitch or 0))


@record(frozen=True, slots=True)
class Region:
    """The bytes of ``space`` from ``byte_offset`` on."""

    space: Space
    byte_offset: int = 0


@record(frozen=True)  # no slots: streams are referred to weakly, which a class with slots allows from Python 3.11 on
class Stream(ProcessBound):
    """A queue of one device; ``handle`` is the device's own."""

    _instead: ClassVar[str] = "pickle str(stream.device), and create a stream there"

    device: Device
    handle: Any

    def synchronize(self, timeout: float | None = None) -> bool:
        """Wait for the work queued on this stream; the arguments and the result are those of ``Device.synchronize``."""
        return self.device._drain(self, timeout)

    def record(self) -> Event:
        """Returns an Event after all work on this stream so far; raises UnsupportedError if the device has no
        events.
        """
        return self.device._record(self)

    def wait_for(self, other: Stream | Event | None) -> None:
        """Order work queued here from now on after the present work of ``other``; returns at once.

        ``other`` is a stream of the same device (None: its own queue), or an event that one of them recorded. Raises
        InputError for another device's.
        """
        self.device._order(self, other)


def _free_stream(streams: Streams, state: DeviceState, stream: Stream) -> None:
    """Free a stream that nothing refers to any more, unless it went with its device."""
    if state.failure is None:
        with suppress(DeviceLostError), state.watching(method="free_stream"):
            streams.free_stream(stream)


class DeviceAPI(ABC):
    """The instances of one kind of device, numbered from 0.

    Class attributes: ``name``, by which the device is requested; ``device_type``, its DLPack code, None to get one
    above ``kDLExtDev`` from the registry; ``api_version``, the ``DEVICE_API_VERSION`` it was written for;
    ``survives_fork``, whether a child process may go on using it; ``contiguous_by_default``, whether scope ``global``
    is taken for physically contiguous memory, so that allocating what is not known to be warns. Any method may raise
    DeviceLostError: the instance is then lost, and the runtime calls no method of it, frees included, until it is
    reopened.
    """

    name: ClassVar[str]
    device_type: ClassVar[int | None] = None
    api_version: ClassVar[int]
    survives_fork: ClassVar[bool] = False
    contiguous_by_default: ClassVar[bool] = False

    @abstractmethod
    def count(self) -> int:
        """Returns how many instances there are now; 0 when the driver or the hardware is absent."""

    @abstractmethod
    def get_attr(self, index: int, attr: DeviceAttr) -> object | None:
        """Returns the value of ``attr``, or None when it is unknown or does not apply; must not raise for that."""

    @abstractmethod
    def memory_kinds(self, index: int) -> Mapping[str, MemoryKind]:
        """Returns the MemoryKind of each scope; ``"global"`` is always one of them."""

    @abstractmethod
    def alloc_data_space(self, index: int, nbytes: int, alignment: int, scope: str, type_hint: str | None) -> Space:
        """Allocate ``nbytes`` bytes of ``scope``, owned by the caller until ``free_data_space``.

        The effective alignment is the larger of ``alignment`` (a power of two) and the kind's. ``type_hint`` is
        the dtype name the bytes will mostly hold, or None. Raises OutOfMemoryError when the memory is not there.
        """

    @abstractmethod
    def free_data_space(self, space: Space) -> None:
        """Give ``space`` back. The runtime calls this after the last queued use of it."""

    @abstractmethod
    def copy_data_from_to(
        self, src: Region, dst: Region, nbytes: int, stream: Stream | None, keep_alive: object
    ) -> Event | None:
        """Queue a copy of ``nbytes`` bytes on ``stream`` (None: the device's in-order queue).

        None means that both ends are done on return; otherwise the runtime holds ``keep_alive``, the owners of
        both ends, until the Event completes.
        """


@runtime_checkable
class Streams(Protocol):
    """The ability to have queues besides the in-order one. Without it, no Stream can be created."""

    def create_stream(self, index: int) -> Stream:
        """Returns a new queue of instance ``index``, unordered with others, which the caller frees by
        ``free_stream``.
        """

    def free_stream(self, stream: Stream) -> None:
        """Free ``stream``; work queued on it is still done."""

    def set_stream(self, index: int, stream: Stream | None) -> None:
        """Tell the driver which stream this thread uses from now on, for libraries that have a current one."""

    def stream_sync(self, index: int, stream: Stream | None) -> None:
        """Wait, interruptibly, until everything queued on ``stream`` so far is done."""

    def sync_stream_from_to(self, index: int, source: Stream | None, target: Stream | None) -> None:
        """Order work queued on ``target`` from now on after the present work of ``source``; returns at once."""


@runtime_checkable
class Events(Protocol):
    """The ability to record points of a stream that can be waited for and timed by the device's clock."""

    def record_event(self, index: int, stream: Stream | None) -> Event:
        """Returns an Event after all work queued on ``stream`` so far."""

    def wait_event(self, index: int, stream: Stream | None, event: Event) -> None:
        """Order work queued on ``stream`` from now on after ``event``, of any stream; returns at once."""

    def elapsed_ms(self, start: Event, end: Event) -> float | None:
        """Returns the milliseconds between two events by the device's clock; None without one, or while one is
        pending.
        """
