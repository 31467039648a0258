"""KernelStep: the step of a Program that runs kernels on a device, on its own memory and on what is bound."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from copy import copy
from functools import partial
from typing import Any, NamedTuple
from weakref import ref

from landbridge.device.api import Device, Event, Region, Stream
from landbridge.device.event import event_of
from landbridge.device.granted import granted_stream
from landbridge.device.protocols import DeviceModules, Recording, RowTable, Streams
from landbridge.device.stream import current_stream
from landbridge.errors import BindError, ZeroCopyError
from landbridge.executable.device_image import Launch
from landbridge.memory.coherence import before_device_access, lend
from landbridge.memory.repeated_access import RepeatedAccess
from landbridge.memory.storage import Storage
from landbridge.tensor import Tensor, empty
from landbridge.tensor.copy import copy_tensor
from landbridge.tensor.imported import import_tensor
from landbridge.vm.device_kernels import LoadedKernels
from landbridge.vm.flight import Pending
from landbridge.vm.kernels_in_flight import KernelsInFlight
from landbridge.vm.repeated_run import RepeatedBuffer, RepeatedRun
from landbridge.vm.space_check import check_spaces

#: What is bound to the register of an input, output or parameter: a Tensor, or an array where code uses it in place.
BoundTo = Callable[[int], Any]

_NAMED = 3  # how many kernels of a recording a message names
_RECORDINGS = 4  # how many a step has; the one used longest ago is released


class OwnedBuffer(NamedTuple):
    """``nbytes`` bytes of the program's own memory, in ``region``.

    ``borrowed``: the Storage of host memory that they are part of, where code of the host uses it too; else None.
    """

    region: Region
    nbytes: int
    borrowed: Storage | None = None


class BoundBuffer(NamedTuple):
    """``nbytes`` bytes from byte ``offset`` on of the memory that is bound to ``register``; ``writes``: whether kernels
    write them.
    """

    register: int
    offset: int
    nbytes: int
    writes: bool


Buffer = OwnedBuffer | BoundBuffer | RowTable


class BoundLaunch(NamedTuple):
    """One ``launch`` of ``kernels``. Each argument is a region of the program's own memory, a table of rows, or the
    index of a bound buffer of the step. ``unless_same``: the indices of two bound buffers, of which it copies the first
    to the second; it is left out where they are the same region. ``copied_bytes``: how many, where that is all that it
    does; the device's own copy does it then, which takes no longer, and a tenth of the time where a driver runs each
    work-item alone.
    """

    kernels: LoadedKernels
    launch: Launch
    args: tuple[Region | RowTable | int, ...]
    unless_same: tuple[int, int] | None = None
    copied_bytes: int = 0

    def is_needed(self, regions: Sequence[Region]) -> bool:
        """Returns whether it does anything where bound buffers are ``regions``."""
        if self.unless_same is None:
            return True
        source, target = self.unless_same
        return regions[source] != regions[target]


class BoundRecording(NamedTuple):
    """A ``recording`` by the device: the position in it of each bound buffer, None for one that it does not use, and
    the region of each in its last run.
    """

    recording: object
    positions: Sequence[int | None]
    regions: list[Region]


#: A function that queues the launches on regions for what is bound.
Submit = Callable[[list[Region], Stream | None], KernelsInFlight]


class KernelStep:
    """Launches on one device, in order; where the device can record, they are recorded at the first run and replayed
    later.

    ``number`` is the key under which an execution keeps the launches of this step that it has not waited for; no two
    steps that it may have in flight at once have the same. Host memory that takes part is handed to the device before
    the first launch, and back by whoever waits for the last one, where kernels write it and it needs barriers.
    ``words``: memory that launches read, which lives as long as the step.
    """

    def __init__(self, device: Device, number: int = 0, words: Tensor | None = None) -> None:
        api = device.capability(DeviceModules)
        if api is None:
            raise BindError(f"{device} runs no kernels; bind a device that does")
        self.device = device
        self.number = number
        self._api = api
        self._checks_spaces = device.memory_kind().one_tensor_per_space
        self._launches: list[BoundLaunch] = []
        self._bound: list[BoundBuffer] = []
        self._borrowed: list[tuple[Storage, int, int, bool]] = []
        self._mirrors: dict[int, Tensor] = {}
        self._words = words
        #: By which bound buffers are the same region: the number of the first that is, for each. One that is not
        #: there yet is made; where several buffers are one region, it has one position for them.
        self._recordings: OrderedDict[tuple[int, ...], BoundRecording] = OrderedDict()
        #: The last run, where the next may be like it; ``observed`` steps have none.
        self._repeated: RepeatedRun | None = None
        self._repeats = True

    def add(
        self,
        kernels: LoadedKernels,
        launches: Sequence[Launch],
        buffers: Sequence[Buffer],
        *,
        unless_same: bool = False,
        copied_bytes: int = 0,
    ) -> None:
        """Append ``launches``, whose arguments are numbers of ``buffers``; called while the program is bound.

        ``unless_same``: they copy the first buffer to the second, both bound, and are left out where these are the same
        memory. ``copied_bytes``: how many bytes from the first on, where they do nothing else.
        """
        ends = [self._argument(buffer) for buffer in buffers[:2]] if unless_same else []
        copied = None
        if len(ends) == 2 and isinstance(ends[0], int) and isinstance(ends[1], int):
            copied = ends[0], ends[1]
            if copied_bytes and len(launches) == 1:
                self._launches.append(BoundLaunch(kernels, launches[0], copied, copied, copied_bytes))
                return
        for launch in launches:
            args = tuple(self._argument(buffers[number]) for number in launch.args)
            self._launches.append(BoundLaunch(kernels, launch, args, copied))

    def _argument(self, buffer: Buffer) -> Region | RowTable | int:
        if isinstance(buffer, RowTable):
            return buffer
        if isinstance(buffer, OwnedBuffer):
            if buffer.borrowed is not None:
                start = buffer.region.byte_offset - buffer.borrowed.live_region.byte_offset
                if (borrowed := (buffer.borrowed, start, start + buffer.nbytes, True)) not in self._borrowed:
                    self._borrowed.append(borrowed)
            return buffer.region
        if buffer not in self._bound:
            self._bound.append(buffer)
        return self._bound.index(buffer)

    def run(self, bound_to: BoundTo) -> None:
        """Run on what ``bound_to`` returns for each register; returns when the device is done."""
        self.start(bound_to).wait()

    def start(self, bound_to: BoundTo, flight: Iterable[Pending] = ()) -> KernelsInFlight:
        """Submit the launches to the thread's current stream, on what ``bound_to`` returns for each register.

        ``flight``: the pending work of the run. Work that writes the same borrowed memory is waited for, as its owner
        gets that back when it ends.
        """
        repeated = self._repeated
        try:
            started = None if repeated is None else repeated.start(bound_to)
            if started is None:
                started = self._run(bound_to, self._submit, flight)
            started.owners = partial(self._owners, bound_to)
            return started
        except Exception:
            raise
        except BaseException:  # an interrupt: what was queued has no event, and the caller may let its memory go
            with suppress(Exception):
                (current_stream(self.device) or self.device).synchronize()
            raise

    def _owners(self, bound_to: BoundTo) -> list[object]:
        return [bound_to(buffer.register) for buffer in self._bound]

    def observed(self, submitted: Callable[[Launch, Event | None, int], None]) -> KernelStep:
        """Returns the same step with runs that launch one by one and report each launch.

        ``submitted`` gets the launch, its Event, and its begin in nanoseconds of ``time.perf_counter_ns``.
        """

        def submit(regions: list[Region], stream: Stream | None) -> KernelsInFlight:
            flight = KernelsInFlight(self.device, stream)
            for bound in self._needed(regions):
                began = time.perf_counter_ns()
                event = self._launch_one(bound, regions, stream)
                flight.add(bound.launch.kernel, event)
                submitted(bound.launch, event, began)
            return flight

        step = copy(self)
        step._repeated, step._repeats = None, False
        step._submit = submit  # type: ignore[method-assign]
        return step

    def _run(self, bound_to: BoundTo, submit: Submit, flight: Iterable[Pending]) -> KernelsInFlight:
        borrowed = self._borrowed.copy()
        regions: list[Region] = []
        found: list[tuple[BoundBuffer, Tensor, Region]] = []
        self._repeated = None
        for buffer in self._bound:
            owner = bound_to(buffer.register)
            tensor = owner if isinstance(owner, Tensor) else Tensor.from_numpy_view(owner)
            if tensor.device is not self.device and tensor.device != self.device:
                tensor = self._reached(buffer, tensor)
            storage, start = tensor.storage, tensor.byte_offset + buffer.offset
            base = storage.live_region
            region = Region(base.space, base.byte_offset + start)
            regions.append(region)
            found.append((buffer, tensor, base))
            if storage.owner is None:
                before_device_access(storage, start, start + buffer.nbytes, writes=buffer.writes)
            else:
                borrowed.append((storage, start, start + buffer.nbytes, buffer.writes))
        back = [each[:3] for each in borrowed if each[3] and each[0].domains()[0]]
        for pending in flight if back else ():
            if isinstance(pending, KernelsInFlight) and pending.returns_any_of(back):
                pending.wait()
        if self._checks_spaces:
            for each in self._launches:
                arguments = [arg for arg in each.args if not isinstance(arg, RowTable)]
                check_spaces(
                    each.launch.kernel,
                    [regions[arg] if isinstance(arg, int) else arg for arg in arguments],
                    [isinstance(arg, int) and self._bound[arg].writes for arg in arguments],
                )
        state, stream = self.device.state, current_stream(self.device)
        method = "replay" if self._recordings else "launch"
        with state.submitting(self._work, method):
            for storage, start, stop, writes in borrowed:
                lend(storage, start, stop, writes=writes)
            started = submit(regions, stream)
            started.borrowed = back
            if self._repeats and not borrowed:
                self._repeated = self._repetition(found, regions)
            return started

    def _repetition(
        self, found: Sequence[tuple[BoundBuffer, Tensor, Region]], regions: Sequence[Region]
    ) -> RepeatedRun | None:
        """Returns the run on ``regions`` that just began as one that can be repeated; None where it replayed nothing.

        ``found``: for each bound buffer, the Tensor, and where its storage begins.
        """
        recorder, recorded = self.device.capability(Recording), next(reversed(self._recordings.values()), None)
        if recorder is None or recorded is None or recorded.regions != regions:
            return None
        buffers = []
        for buffer, tensor, base in found:
            start = tensor.byte_offset + buffer.offset
            access = RepeatedAccess(tensor.storage, start, start + buffer.nbytes, writes=buffer.writes)
            buffers.append(RepeatedBuffer(buffer.register, ref(tensor), base, access))
        return RepeatedRun(self.device, recorder, recorded.recording, buffers, self._work, self._names)

    def _reached(self, buffer: BoundBuffer, tensor: Tensor) -> Tensor:
        """Returns memory of ``tensor`` that kernels of the device can use, for host memory bound to ``buffer``.

        It is the same memory, imported, where the device can do that; else, for memory that kernels only read, a copy
        on the device, which later runs reuse. Raises ZeroCopyError for memory that kernels write and the device cannot
        import.
        """
        try:
            return import_tensor(tensor, self.device, writes=buffer.writes)
        except ZeroCopyError:
            if buffer.writes:
                raise
        if not tensor.is_contiguous:  # kernels use its strides, gaps included
            start, stop = tensor.byte_range
            tensor = Tensor(tensor.storage, "uint8", (stop - start,), None, start)
        mirror = self._mirrors.get(buffer.register)
        if mirror is None:
            mirror = self._mirrors[buffer.register] = empty(tensor.shape, dtype=tensor.dtype, device=self.device)
        copy_tensor(mirror, tensor, cause="to_vdevice")
        return mirror

    def _submit(self, regions: list[Region], stream: Stream | None) -> KernelsInFlight:
        """Queue all launches that are needed."""
        recorder = self.device.capability(Recording)
        flight = KernelsInFlight(self.device, stream)
        recorded = None if recorder is None else self._recorded(recorder, regions)
        if recorder is None or recorded is None:
            for bound in self._needed(regions):
                flight.add(bound.launch.kernel, self._launch_one(bound, regions, stream))
            return flight
        changed = {
            position: region
            for position, region, before in zip(recorded.positions, regions, recorded.regions, strict=True)
            if region != before and position is not None
        }
        try:
            event = recorder.replay(recorded.recording, changed, stream)
            flight.add(self._names, event_of(event, self.device, "replay"))
            recorded.regions[:] = regions
        except BaseException:
            self._recordings.popitem()  # ``recorded``, of which nobody knows now what it is bound to
            raise
        return flight

    def _recorded(self, recorder: Recording, regions: list[Region]) -> BoundRecording | None:
        """Returns the recording for bound buffers that are ``regions``, new where there is none; None where the device
        records nothing.
        """
        last = next(reversed(self._recordings.values()), None)
        if last is not None and last.regions == regions:  # as in most runs
            return last
        first: dict[Region, int] = {}
        same = tuple(first.setdefault(region, number) for number, region in enumerate(regions))
        found = self._recordings.get(same) or self._record(recorder, regions)
        if found is not None:
            self._recordings[same] = found
            self._recordings.move_to_end(same)
            if len(self._recordings) > _RECORDINGS:
                self._recordings.popitem(last=False)
        return found

    def _needed(self, regions: Sequence[Region]) -> list[BoundLaunch]:
        """Returns the launches that do anything where bound buffers are ``regions``."""
        return [bound for bound in self._launches if bound.is_needed(regions)]

    def _record(self, recorder: Recording, regions: list[Region]) -> BoundRecording | None:
        """Returns the launches that are needed as a recording; None where there are none, or no streams to record."""
        streams, index = self.device.capability(Streams), self.device.index
        needed = self._needed(regions)
        if streams is None or not needed:
            return None
        # Other threads may use the device's own queue.
        state, work = self.device.state, "a recording"
        with state.watching(work, "create_stream"):
            stream = granted_stream(streams.create_stream(index), self.device)
        try:
            with state.watching(work, "begin_record"):
                recorder.begin_record(index, stream)
            try:
                for bound in needed:
                    self._launch_one(bound, regions, stream)
            finally:
                with state.watching(work, "end_record"):
                    recording = recorder.end_record(index, stream)
        except BaseException:
            with suppress(Exception):  # recorded work only after all is done, as its memory may go now
                streams.stream_sync(index, stream)
            raise
        finally:
            with state.watching(work, "free_stream"):
                streams.free_stream(stream)
        return BoundRecording(recording, _find_positions(needed, regions), regions.copy())

    @property
    def _work(self) -> str:
        return f"a run of {len(self._launches)} kernels"

    @property
    def _names(self) -> str:
        """Returns the names of the kernels, for messages."""
        names = list(dict.fromkeys(bound.launch.kernel for bound in self._launches))
        return ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")

    def _launch_one(self, bound: BoundLaunch, regions: list[Region], stream: Stream | None) -> Event | None:
        launch = bound.launch
        if bound.copied_bytes and bound.unless_same is not None:
            source, target = (regions[number] for number in bound.unless_same)
            copied = self.device.api.copy_data_from_to(source, target, bound.copied_bytes, stream, (source, target))
            return event_of(copied, self.device, "copy_data_from_to")
        args = [regions[arg] if isinstance(arg, int) else arg for arg in bound.args]
        grid, block = _three(launch.grid), _three(launch.block)
        event = self._api.launch(bound.kernels.module, launch.kernel, grid, block, args, stream)
        return event_of(event, self.device, "launch")


def _find_positions(launches: Sequence[BoundLaunch], regions: Sequence[Region]) -> list[int | None]:
    """Returns the position in a recording of each bound buffer, None where ``launches`` do not use it: regions count in
    the order of their first use.
    """
    order: dict[Region, int] = {}
    for bound in launches:
        for arg in bound.args:
            if not isinstance(arg, RowTable):
                order.setdefault(regions[arg] if isinstance(arg, int) else arg, len(order))
    return [order.get(region) for region in regions]


def _three(counts: tuple[int, ...]) -> tuple[int, int, int]:
    x, y, z = counts
    return x, y, z
