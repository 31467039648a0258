"""Device: a handle to one instance of a DeviceAPI."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar, cast

from landbridge.device.attr import DeviceAttr
from landbridge.device.state import begin_anew, state_of
from landbridge.errors import DeviceLostError, ForkedDeviceError, InputError
from landbridge.memory_kind import GLOBAL_SCOPE, MemoryKind

if TYPE_CHECKING:
    from landbridge.device.api import DeviceAPI


_Protocol = TypeVar("_Protocol")


class Device:
    """Instance ``index`` of ``api``. Two handles are equal when they name the same life of the same instance.

    ``state`` says whether it can still be used.
    """

    __slots__ = ("_capabilities", "_kinds", "api", "index", "state")

    def __init__(self, api: DeviceAPI, index: int = 0) -> None:
        self.api = api
        self.index = index
        self.state = state_of(api, index)
        self._kinds: Mapping[str, MemoryKind] | None = None
        self._capabilities: dict[object, object | None] = {}

    @property
    def name(self) -> str:
        """The name of the API, without the index."""
        return self.api.name

    @property
    def memory_kinds(self) -> Mapping[str, MemoryKind]:
        """The MemoryKind of each scope, asked once per handle."""
        if self._kinds is None:
            self._kinds = self.api.memory_kinds(self.index)
        return self._kinds

    def memory_kind(self, scope: str = "global") -> MemoryKind:
        """The MemoryKind of ``scope``; raises InputError naming the legal scopes."""
        kind = (self._kinds or self.memory_kinds).get(scope or GLOBAL_SCOPE)
        if kind is None:
            raise InputError(
                f"device {self} has no memory scope {scope!r}; legal: {', '.join(sorted(self.memory_kinds))}"
            )
        return kind

    def attr(self, attr: DeviceAttr) -> object | None:
        """The value of ``attr``; None when the device does not know or it does not apply."""
        return self.api.get_attr(self.index, attr)

    def capability(self, protocol: Callable[..., _Protocol]) -> _Protocol | None:
        """The API, if it has the methods of ``protocol`` (one of ``landbridge.device.protocols``); else None.

        Asked once per handle: ``isinstance`` with a Protocol takes longer than most of what it decides.
        """
        try:
            return cast("_Protocol | None", self._capabilities[protocol])
        except KeyError:
            found = self.api if isinstance(self.api, cast("Any", protocol)) else None
            self._capabilities[protocol] = found
            return cast("_Protocol | None", found)

    @property
    def is_lost(self) -> bool:
        """Whether every call raises, because the device is gone or belongs to the parent process."""
        return self.state.failure is not None

    def reopen(self) -> Device:
        """A new handle after a loss; the driver is closed and opened again where it has such methods.

        Tensors of the lost device stay lost, its old handles too. Raises ForkedDeviceError in a child process.
        """
        from landbridge.device.protocols import Lifecycle
        from landbridge.device.registry import forget

        if isinstance(self.state.failure, ForkedDeviceError):
            self.state.check()
        if self.state is state_of(self.api, self.index):
            lifecycle = self.capability(Lifecycle)
            if lifecycle is not None:
                with suppress(DeviceLostError):
                    lifecycle.close(self.index)
                lifecycle.open(self.index)
            begin_anew(self.api, self.index)
            forget(self)
        return Device(self.api, self.index)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and self.state is other.state

    def __hash__(self) -> int:
        return hash(self.state)

    def __str__(self) -> str:
        return f"{self.name}:{self.index}"

    def __repr__(self) -> str:
        return f"device({str(self)!r})"
