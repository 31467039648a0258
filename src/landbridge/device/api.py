"""DeviceAPI: what a device must do. Everything else is one of the Protocols in ``protocols``.

A plugin is a subclass, named by an entry point of the group ``landbridge.devices`` and created without arguments.
Methods may be called from any thread; those that block release the GIL and stay interruptible.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from landbridge.device.attr import DeviceAttr
from landbridge.device.space import Region, Space
from landbridge.memory_kind import MemoryKind

if TYPE_CHECKING:
    from landbridge.device.protocols import Event
    from landbridge.device.stream import Stream

#: The version of this contract; the registry refuses a plugin that states another one.
DEVICE_API_VERSION = 1


class DeviceAPI(ABC):
    """The instances of one kind of device, numbered from 0.

    Class attributes: ``name``, under which the device is asked for; ``device_type``, its DLPack code, None to
    get one above ``kDLExtDev`` from the registry; ``api_version``, the ``DEVICE_API_VERSION`` it was written for;
    ``survives_fork``, whether a child process may go on using it. Any method may raise DeviceLostError: the
    instance is lost from then on, and the runtime calls nothing of it, frees included, until it is reopened.
    """

    name: ClassVar[str]
    device_type: ClassVar[int | None] = None
    api_version: ClassVar[int]
    survives_fork: ClassVar[bool] = False

    @abstractmethod
    def count(self) -> int:
        """How many instances there are now; 0 when the driver or the hardware is absent."""

    @abstractmethod
    def get_attr(self, index: int, attr: DeviceAttr) -> object | None:
        """The value of ``attr``, or None when it cannot be queried or does not apply; never raises for that."""

    @abstractmethod
    def memory_kinds(self, index: int) -> Mapping[str, MemoryKind]:
        """The MemoryKind of each scope; ``"global"`` is always one of them."""

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
