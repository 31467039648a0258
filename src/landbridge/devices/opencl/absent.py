"""The device ``opencl`` where pyopencl is not installed: it has no instances, and says why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, NoReturn

from landbridge.device.api import DEVICE_API_VERSION, DeviceAPI, Region, Space, Stream
from landbridge.device.attr import DeviceAttr
from landbridge.errors import DeviceIndexError
from landbridge.memory_kind import MemoryKind

_WAY_OUT = "pyopencl is not installed: pip install 'landbridge[opencl]'"


class AbsentDeviceAPI(DeviceAPI):
    """A device without instances; the error of a request for one says how to install it."""

    name: ClassVar[str] = "opencl"
    device_type: ClassVar[int | None] = 4
    api_version: ClassVar[int] = DEVICE_API_VERSION

    def count(self) -> int:
        """Returns 0."""
        return 0

    def discovery(self) -> Sequence[str]:
        """Returns a line that says what to install."""
        return (_WAY_OUT,)

    def get_attr(self, index: int, attr: DeviceAttr) -> None:
        """Returns None, as there is no device."""

    def memory_kinds(self, index: int) -> Mapping[str, MemoryKind]:
        """Raises DeviceIndexError, as all that follow."""
        self._refuse()

    def alloc_data_space(self, index: int, nbytes: int, alignment: int, scope: str, type_hint: str | None) -> Space:
        """Raises DeviceIndexError."""
        self._refuse()

    def free_data_space(self, space: Space) -> None:
        """Raises DeviceIndexError."""
        self._refuse()

    def copy_data_from_to(
        self, src: Region, dst: Region, nbytes: int, stream: Stream | None, keep_alive: object
    ) -> None:
        """Raises DeviceIndexError."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise DeviceIndexError(f"there is no OpenCL device: {_WAY_OUT}")
