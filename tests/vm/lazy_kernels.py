"""Kernels that ``sim:lazy`` loads, over as many float32 as the grid has workgroups, and a device that loads them."""

from __future__ import annotations

from typing import Any

import numpy as np

from landbridge.device.api import Event, Region, Stream
from landbridge.errors import DeviceError
from landbridge.executable.device_image import DeviceImage, Launch, LaunchSequence
from landbridge.testing.sim_lazy import SimLazyDeviceAPI

N = 16
Extents = tuple[int, int, int]
Bytes = np.ndarray[Any, Any]


def double(grid: Extents, block: Extents, x: Bytes, y: Bytes) -> None:
    count = 4 * grid[0]
    y[:count].view(np.float32)[:] = 2 * x[:count].view(np.float32)


def double_by_scratch(grid: Extents, block: Extents, x: Bytes, scratch: Bytes, y: Bytes) -> None:
    double(grid, block, x, scratch)
    y[: 4 * grid[0]] = scratch[: 4 * grid[0]]


def _sequence(kernel: str, scratch: tuple[int, ...] = ()) -> LaunchSequence:
    buffers = (0, 2, 1) if scratch else (0, 1)
    return LaunchSequence(2, scratch, (Launch(kernel, buffers, (N, 1, 1), (1, 1, 1)),))


#: ``double``, ``fails`` and ``scratchy``, each of x and its destination.
IMAGE = DeviceImage(
    "python",
    b"tests.vm.lazy_kernels",
    {
        "double": _sequence("double"),
        "fails": _sequence("fails"),
        "scratchy": _sequence("double_by_scratch", (4 * N,)),
    },
)


class FailedEvent:
    """The event of work that went wrong."""

    def query(self) -> bool:
        return True

    def synchronize(self, timeout: float | None = None) -> bool:
        raise DeviceError("instruction 7 is illegal")


class LazyKernels(SimLazyDeviceAPI):
    """``launched`` are the streams of launches; ``fails`` is a kernel whose event says that it failed."""

    def __init__(self, seed: int | None = None) -> None:
        super().__init__(seed)
        self.launched: list[Stream | None] = []

    def launch(
        self, module: object, function: str, grid: Any, block: Any, args: Any, stream: Stream | None
    ) -> Event | None:
        self.launched.append(stream)
        if function == "fails":
            return FailedEvent()
        return super().launch(module, function, grid, block, args, stream)


class OwnedWorkspace(LazyKernels):
    """Has a workspace; ``taken`` are its spaces."""

    def __init__(self) -> None:
        super().__init__(0)
        self.taken: list[Region] = []

    def alloc_workspace(self, index: int, nbytes: int, stream: Stream | None) -> Any:
        space = self.alloc_data_space(index, nbytes, 256, "global", None)
        self.taken.append(Region(space))
        return space

    def free_workspace(self, space: Any) -> None:
        self.taken.remove(Region(space))
        self.free_data_space(space)
