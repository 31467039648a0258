"""The step of a Program that runs kernels on a device: launches on memory of its own and on what is bound."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from landbridge.device.device import Device
from landbridge.device.protocols import DeviceModules, Event, HostBarriers, Recording, Streams
from landbridge.device.space import Region
from landbridge.errors import BindError
from landbridge.executable.device_image import Launch
from landbridge.memory.coherence import before_device_access
from landbridge.memory.imports import import_tensor
from landbridge.tensor import Tensor
from landbridge.vm.device_kernels import LoadedKernels

#: What is bound to a register: a Tensor, or an array of the host.
BoundTo = Callable[[int], Any]


@dataclass(frozen=True)
class OwnBuffer:
    """``nbytes`` bytes of the program's own; ``shared``: memory of the host, which code of the host uses too."""

    region: Region
    nbytes: int
    shared: bool = False


@dataclass(frozen=True)
class BoundBuffer:
    """``nbytes`` bytes from ``offset`` on of what is bound to ``register``; ``writes`` where kernels write them."""

    register: int
    offset: int
    nbytes: int
    writes: bool


Buffer = OwnBuffer | BoundBuffer


@dataclass(frozen=True)
class BoundLaunch:
    """A launch of ``kernels``, its arguments in order."""

    kernels: LoadedKernels
    launch: Launch
    args: tuple[Buffer, ...]


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
        self._barriers = device.capability(HostBarriers)
        self._launches: list[BoundLaunch] = []
        self._bound: list[BoundBuffer] = []
        self._shared: list[OwnBuffer] = []
        self._recorded: _Recorded | None = None

    def add(self, kernels: LoadedKernels, launches: Sequence[Launch], buffers: Sequence[Buffer]) -> None:
        """Append ``launches``, whose arguments are numbers of ``buffers``; while the program is bound."""
        for launch in launches:
            args = tuple(buffers[number] for number in launch.args)
            self._launches.append(BoundLaunch(kernels, launch, args))
            for buffer in args:
                if isinstance(buffer, BoundBuffer):
                    if buffer not in self._bound:
                        self._bound.append(buffer)
                elif buffer.shared and buffer not in self._shared:
                    self._shared.append(buffer)

    def run(self, bound_to: BoundTo) -> None:
        """Run on what ``bound_to`` says is bound; returns when the device is done."""
        lent = [(buffer.region, buffer.nbytes) for buffer in self._shared]
        regions: dict[Buffer, Region] = {}
        for buffer in self._bound:
            tensor = self._on_device(bound_to(buffer.register))
            storage, start = tensor.storage, tensor.byte_offset + buffer.offset
            base = storage.live_region
            regions[buffer] = region = Region(base.space, base.byte_offset + start)
            if storage.owner is None:
                before_device_access(storage, start, start + buffer.nbytes, writes=buffer.writes)
            elif storage.coherence is not None:
                lent.append((region, buffer.nbytes))
        with self.device.state.submitting(f"a run of {len(self._launches)} kernels"):
            barriers = self._barriers
            if barriers is not None:
                for region, nbytes in lent:
                    barriers.end_host_access(region, nbytes, "w")
            event = self._submit(regions)
            if event is not None:
                event.synchronize()
            if barriers is not None:
                for region, nbytes in lent:
                    barriers.begin_host_access(region, nbytes, "r")

    def _on_device(self, owner: Any) -> Tensor:
        """What is bound, as memory of the device; of the host it is imported, the first time it is seen."""
        tensor = owner if isinstance(owner, Tensor) else Tensor.from_numpy_view(owner)
        return tensor if tensor.device == self.device else import_tensor(tensor, self.device)

    def _submit(self, regions: dict[Buffer, Region]) -> Event | None:
        recorder, streams = self.device.capability(Recording), self.device.capability(Streams)
        if recorder is None or streams is None:
            return self._launch(regions, None)
        if self._recorded is None:
            if len(set(regions.values())) < len(regions):  # by position they could not be told apart later
                return self._launch(regions, None)
            index = self.device.index
            stream = streams.create_stream(index)  # other threads may be using the device's own queue
            recorder.begin_record(index, stream)
            try:
                self._launch(regions, stream)
            finally:
                recording = recorder.end_record(index, stream)
                streams.free_stream(stream)
            self._recorded = _Recorded(recording, self._positions(regions), dict(regions))
        known = self._recorded
        changed = {
            known.positions[buffer]: region for buffer, region in regions.items() if known.regions[buffer] != region
        }
        known.regions.update(regions)
        return recorder.replay(known.recording, changed, None)

    def _launch(self, regions: dict[Buffer, Region], stream: Any) -> Event | None:
        event: Event | None = None
        for bound in self._launches:
            launch = bound.launch
            args = [arg.region if isinstance(arg, OwnBuffer) else regions[arg] for arg in bound.args]
            grid, block = _three(launch.grid), _three(launch.block)
            event = self._api.launch(bound.kernels.module, launch.kernel, grid, block, args, stream)
        return event

    def _positions(self, regions: dict[Buffer, Region]) -> dict[Buffer, int]:
        """The position in a recording of each bound buffer: regions count in the order of their first use."""
        order: dict[Region, int] = {}
        found: dict[Buffer, int] = {}
        for bound in self._launches:
            for arg in bound.args:
                region = arg.region if isinstance(arg, OwnBuffer) else regions[arg]
                position = order.setdefault(region, len(order))
                if isinstance(arg, BoundBuffer):
                    found[arg] = position
        return found


@dataclass
class _Recorded:
    """A recording, where each bound buffer is in it, and the region it has there now."""

    recording: object
    positions: dict[Buffer, int]
    regions: dict[Buffer, Region]


def _three(counts: tuple[int, ...]) -> tuple[int, int, int]:
    x, y, z = counts
    return x, y, z
