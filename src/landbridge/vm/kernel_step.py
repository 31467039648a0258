"""KernelStep: the step of a Program that runs kernels on a device, on its own memory and on what is bound."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from copy import copy
from typing import Any, NamedTuple

from landbridge.device.api import Device, Event, Region, Stream, wait_for_event
from landbridge.device.event import event_of
from landbridge.device.granted import granted_stream
from landbridge.device.protocols import DeviceModules, Recording, RowTable, Streams
from landbridge.device.stream import current_stream
from landbridge.errors import BindError, DeviceError, DeviceLostError, ZeroCopyError
from landbridge.executable.device_image import Launch
from landbridge.memory.coherence import before_device_access, lend, take_back
from landbridge.memory.storage import Storage
from landbridge.tensor import Tensor, empty
from landbridge.tensor.copy import copy_tensor
from landbridge.tensor.imported import import_tensor
from landbridge.vm.device_kernels import LoadedKernels

#: What is bound to the register of an input, output or parameter: a Tensor, or an array where code uses it in place.
BoundTo = Callable[[int], Any]

_NAMED = 3  # how many kernels of a recording a message names


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
    index of a bound buffer of the step.
    """

    kernels: LoadedKernels
    launch: Launch
    args: tuple[Region | RowTable | int, ...]


class KernelsInFlight:
    """Launches on ``stream`` of ``device`` (None: its own queue), in order, with their Events."""

    __slots__ = ("_device", "_events", "_stream")

    def __init__(self, device: Device, stream: Stream | None) -> None:
        self._device, self._stream = device, stream
        self._events: list[tuple[str, Event]] = []

    def add(self, kernels: str, event: Event | None) -> None:
        """Record the launch of ``kernels``, a name for messages. None for ``event`` means that it is done, and so are
        all launches before it, as they run in order.
        """
        if event is not None:
            self._events.append((kernels, event))
            self._device.state.last_event = event

    def wait(self) -> None:
        """Wait until all are done. Raises DeviceError with the kernel that failed first, and DeviceLostError."""
        events, self._events = self._events, []
        if len(events) > 1:  # one wait instead of one for each; its exception is raised again, in order
            with suppress(Exception):
                self._wait_for(*events[-1])
        with self._device.state.watching():
            for kernels, event in events:
                try:
                    self._wait_for(kernels, event)
                except DeviceLostError:
                    raise
                except Exception as error:
                    raise DeviceError(f"kernel {kernels} failed on {self._device}: {error}") from error

    def _wait_for(self, kernels: str, event: Event) -> None:
        wait_for_event(event, device=self._device, work=("kernel", kernels), queue=self._stream)


#: A function that queues the launches on regions for what is bound.
Submit = Callable[[list[Region], Stream | None], KernelsInFlight]


class KernelStep:
    """Launches on one device, in order; where the device can record, they are recorded at the first run and replayed
    later.

    ``number`` is the key under which an execution keeps the launches of this step that it has not waited for; no two
    steps that it may have in flight at once have the same. Host memory that takes part is handed to the device before
    the first launch, and back after the last one where kernels write it and it needs barriers; such a run returns when
    the device is done.
    """

    def __init__(self, device: Device, number: int = 0) -> None:
        api = device.capability(DeviceModules)
        if api is None:
            raise BindError(f"{device} runs no kernels; bind a device that does")
        self.device = device
        self.number = number
        self._api = api
        self._launches: list[BoundLaunch] = []
        self._bound: list[BoundBuffer] = []
        self._borrowed: list[tuple[Storage, int, int, bool]] = []
        self._mirrors: dict[int, Tensor] = {}
        self._recording: object = None
        #: The position of each bound buffer in the recording, and the region it has there now.
        self._positions: list[int] = []
        self._recorded: list[Region] = []

    def add(self, kernels: LoadedKernels, launches: Sequence[Launch], buffers: Sequence[Buffer]) -> None:
        """Append ``launches``, whose arguments are numbers of ``buffers``; called while the program is bound."""
        for launch in launches:
            args = tuple(self._argument(buffers[number]) for number in launch.args)
            self._launches.append(BoundLaunch(kernels, launch, args))

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

    def start(self, bound_to: BoundTo) -> KernelsInFlight:
        """Submit the launches to the thread's current stream, on what ``bound_to`` returns for each register."""
        return self._run(bound_to, self._submit)

    def observed(self, submitted: Callable[[Launch, Event | None, int], None]) -> KernelStep:
        """Returns the same step with runs that launch one by one and report each launch.

        ``submitted`` gets the launch, its Event, and its begin in nanoseconds of ``time.perf_counter_ns``.
        """

        def submit(regions: list[Region], stream: Stream | None) -> KernelsInFlight:
            flight = KernelsInFlight(self.device, stream)
            for bound in self._launches:
                began = time.perf_counter_ns()
                event = self._launch_one(bound, regions, stream)
                flight.add(bound.launch.kernel, event)
                submitted(bound.launch, event, began)
            return flight

        step = copy(self)
        step._submit = submit  # type: ignore[method-assign]
        return step

    def _run(self, bound_to: BoundTo, submit: Submit) -> KernelsInFlight:
        borrowed = self._borrowed.copy()
        regions: list[Region] = []
        for buffer in self._bound:
            owner = bound_to(buffer.register)
            tensor = owner if isinstance(owner, Tensor) else Tensor.from_numpy_view(owner)
            if tensor.device is not self.device and tensor.device != self.device:
                tensor = self._reached(buffer, tensor)
            storage, start = tensor.storage, tensor.byte_offset + buffer.offset
            base = storage.live_region
            region = Region(base.space, base.byte_offset + start)
            regions.append(region)
            if storage.owner is None:
                before_device_access(storage, start, start + buffer.nbytes, writes=buffer.writes)
            else:
                borrowed.append((storage, start, start + buffer.nbytes, buffer.writes))
        state, stream = self.device.state, current_stream(self.device)
        method = "launch" if self._recording is None else "replay"
        with state.submitting(f"a run of {len(self._launches)} kernels", method):
            for storage, start, stop, writes in borrowed:
                lend(storage, start, stop, writes=writes)
            flight = submit(regions, stream)
            back = [each for each in borrowed if each[3] and each[0].domains()[0]]
            if back:
                flight.wait()
            for storage, start, stop, _ in back:
                take_back(storage, start, stop)
            return flight

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
        """Queue all launches."""
        recorder = self.device.capability(Recording)
        if recorder is not None and self._recording is None:
            self._record(recorder, regions)
        flight = KernelsInFlight(self.device, stream)
        if recorder is None or self._recording is None:
            for bound in self._launches:
                flight.add(bound.launch.kernel, self._launch_one(bound, regions, stream))
            return flight
        changed = {
            position: region
            for position, region, before in zip(self._positions, regions, self._recorded, strict=True)
            if region != before
        }
        event = recorder.replay(self._recording, changed, stream)
        flight.add(self._names, event_of(event, self.device, "replay"))
        self._recorded = regions
        return flight

    def _record(self, recorder: Recording, regions: list[Region]) -> None:
        streams, index = self.device.capability(Streams), self.device.index
        if streams is None or len(set(regions)) < len(regions):  # positions could not be distinguished later
            return
        # Other threads may use the device's own queue.
        state, work = self.device.state, "a recording"
        with state.watching(work, "create_stream"):
            stream = granted_stream(streams.create_stream(index), self.device)
        try:
            with state.watching(work, "begin_record"):
                recorder.begin_record(index, stream)
            try:
                for bound in self._launches:
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
        self._positions, self._recorded = self._find_positions(regions), regions
        self._recording = recording

    @property
    def _names(self) -> str:
        """Returns the names of the kernels, for messages."""
        names = list(dict.fromkeys(bound.launch.kernel for bound in self._launches))
        return ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")

    def _launch_one(self, bound: BoundLaunch, regions: list[Region], stream: Stream | None) -> Event | None:
        launch = bound.launch
        args = [regions[arg] if isinstance(arg, int) else arg for arg in bound.args]
        grid, block = _three(launch.grid), _three(launch.block)
        event = self._api.launch(bound.kernels.module, launch.kernel, grid, block, args, stream)
        return event_of(event, self.device, "launch")

    def _find_positions(self, regions: list[Region]) -> list[int]:
        """Returns the position in a recording of each bound buffer: regions count in the order of their first use."""
        order: dict[Region, int] = {}
        for bound in self._launches:
            for arg in bound.args:
                if not isinstance(arg, RowTable):
                    order.setdefault(regions[arg] if isinstance(arg, int) else arg, len(order))
        return [order[region] for region in regions]


def _three(counts: tuple[int, ...]) -> tuple[int, int, int]:
    x, y, z = counts
    return x, y, z
