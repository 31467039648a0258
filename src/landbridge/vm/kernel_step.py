"""The step of a Program that runs kernels on a device: launches on memory of its own and on what is bound."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from landbridge.device.api import Device, Event, Region, Stream
from landbridge.device.protocols import DeviceModules, Recording, RowTable, Streams
from landbridge.errors import BindError, ZeroCopyError
from landbridge.executable.device_image import Launch
from landbridge.memory.coherence import before_device_access, lend, take_back
from landbridge.memory.storage import Storage
from landbridge.tensor import Tensor, empty
from landbridge.tensor.copy import copy_tensor
from landbridge.tensor.imported import import_tensor
from landbridge.vm.device_kernels import LoadedKernels

#: What is bound to the register of an input, output or parameter: a Tensor, or an array where code uses it in place.
BoundTo = Callable[[int], Any]


@dataclass(frozen=True)
class OwnBuffer:
    """``nbytes`` bytes of the program's own; ``lent``: of the host, whose code uses them too, what they are part of."""

    region: Region
    nbytes: int
    lent: Storage | None = None


@dataclass(frozen=True)
class BoundBuffer:
    """``nbytes`` bytes from ``offset`` on of what is bound to ``register``; ``writes`` where kernels write them."""

    register: int
    offset: int
    nbytes: int
    writes: bool


Buffer = OwnBuffer | BoundBuffer | RowTable


@dataclass(frozen=True)
class BoundLaunch:
    """A launch of ``kernels``; an argument is memory of the program's own, or the number of a bound buffer."""

    kernels: LoadedKernels
    launch: Launch
    args: tuple[Region | RowTable | int, ...]


class KernelStep:
    """Launches on one device, in order: recorded at the first run and one submission from then on, if it records.

    A run ends when the device is done. Memory of the host that takes part is given to the device before the first
    launch and back after the last one, unless the two see each other's writes anyway.
    """

    def __init__(self, device: Device) -> None:
        api = device.capability(DeviceModules)
        if api is None:
            raise BindError(f"{device} runs no kernels; bind a device that does")
        self.device = device
        self._api = api
        self._launches: list[BoundLaunch] = []
        self._bound: list[BoundBuffer] = []
        self._lent: list[tuple[Storage, int, int, bool]] = []
        self._mirrors: dict[int, Tensor] = {}
        self._recording: object = None
        #: Where each bound buffer is in the recording, and the region it has there now.
        self._positions: list[int] = []
        self._recorded: list[Region] = []

    def add(self, kernels: LoadedKernels, launches: Sequence[Launch], buffers: Sequence[Buffer]) -> None:
        """Append ``launches``, whose arguments are numbers of ``buffers``; while the program is bound."""
        for launch in launches:
            args = tuple(self._argument(buffers[number]) for number in launch.args)
            self._launches.append(BoundLaunch(kernels, launch, args))

    def _argument(self, buffer: Buffer) -> Region | RowTable | int:
        if isinstance(buffer, RowTable):
            return buffer
        if isinstance(buffer, OwnBuffer):
            if buffer.lent is not None:
                start = buffer.region.byte_offset - buffer.lent.live_region.byte_offset
                if (lent := (buffer.lent, start, start + buffer.nbytes, True)) not in self._lent:
                    self._lent.append(lent)
            return buffer.region
        if buffer not in self._bound:
            self._bound.append(buffer)
        return self._bound.index(buffer)

    def run(self, bound_to: BoundTo) -> None:
        """Run on what ``bound_to`` says is bound; returns when the device is done."""
        self._run(bound_to, self._submit)

    def run_each(self, bound_to: BoundTo, done: Callable[[Launch], None]) -> None:
        """As ``run``, one launch at a time; ``done`` is told of each when the device is done with it."""

        def submit(regions: list[Region]) -> None:
            for bound in self._launches:
                event = self._launch_one(bound, regions, None)
                if event is not None:
                    event.synchronize()
                done(bound.launch)

        self._run(bound_to, submit)

    def _run(self, bound_to: BoundTo, submit: Callable[[list[Region]], None]) -> None:
        lent = self._lent.copy()
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
                lent.append((storage, start, start + buffer.nbytes, buffer.writes))
        with self.device.state.submitting(f"a run of {len(self._launches)} kernels"):
            for storage, start, stop, writes in lent:
                lend(storage, start, stop, writes=writes)
            submit(regions)
            for storage, start, stop, writes in lent:
                if writes:
                    take_back(storage, start, stop)

    def _reached(self, buffer: BoundBuffer, tensor: Tensor) -> Tensor:
        """Memory of the host as the device's: imported the first time it is seen; what it only reads may be copied.

        Raises ZeroCopyError for what kernels write and the device cannot import.
        """
        try:
            return import_tensor(tensor, self.device, writes=buffer.writes)
        except ZeroCopyError:
            if buffer.writes:
                raise
        if not tensor.is_contiguous:  # kernels look for its elements where they are, gaps included
            start, stop = tensor.byte_range
            tensor = Tensor(tensor.storage, "uint8", (stop - start,), None, start)
        mirror = self._mirrors.get(buffer.register)
        if mirror is None:
            mirror = self._mirrors[buffer.register] = empty(tensor.shape, dtype=tensor.dtype, device=self.device)
        copy_tensor(mirror, tensor, cause="to_vdevice")
        return mirror

    def _submit(self, regions: list[Region]) -> None:
        """Queue everything and wait for it."""
        recorder = self.device.capability(Recording)
        if recorder is not None and self._recording is None:
            self._record(recorder, regions)
        if recorder is None or self._recording is None:
            event = self._launch(regions, None)
        else:
            changed = {
                position: region
                for position, region, before in zip(self._positions, regions, self._recorded, strict=True)
                if region != before
            }
            event = recorder.replay(self._recording, changed, None)
            self._recorded = regions
        if event is not None:
            event.synchronize()

    def _record(self, recorder: Recording, regions: list[Region]) -> None:
        streams, index = self.device.capability(Streams), self.device.index
        if streams is None or len(set(regions)) < len(regions):  # by position they could not be told apart later
            return
        stream = streams.create_stream(index)  # other threads may be using the device's own queue
        recorder.begin_record(index, stream)
        try:
            self._launch(regions, stream)
        finally:
            recording = recorder.end_record(index, stream)
            streams.free_stream(stream)
        self._positions, self._recorded = self._find_positions(regions), regions
        self._recording = recording

    def _launch(self, regions: list[Region], stream: Stream | None) -> Event | None:
        event: Event | None = None
        for bound in self._launches:
            event = self._launch_one(bound, regions, stream)
        return event

    def _launch_one(self, bound: BoundLaunch, regions: list[Region], stream: Stream | None) -> Event | None:
        launch = bound.launch
        args = [regions[arg] if isinstance(arg, int) else arg for arg in bound.args]
        grid, block = _three(launch.grid), _three(launch.block)
        return self._api.launch(bound.kernels.module, launch.kernel, grid, block, args, stream)

    def _find_positions(self, regions: list[Region]) -> list[int]:
        """The position in a recording of each bound buffer: regions count in the order of their first use."""
        order: dict[Region, int] = {}
        for bound in self._launches:
            for arg in bound.args:
                if not isinstance(arg, RowTable):
                    order.setdefault(regions[arg] if isinstance(arg, int) else arg, len(order))
        return [order[region] for region in regions]


def _three(counts: tuple[int, ...]) -> tuple[int, int, int]:
    x, y, z = counts
    return x, y, z
