"""``sim:scratch`` with scopes that have to be acquired: other programs take them, and their content is lost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from landbridge.device.api import Event, Region, Stream
from landbridge.device.checks import kind_of
from landbridge.errors import DeviceError, InputError, ScopeBusyError
from landbridge.process.locks import new_lock
from landbridge.testing.sim_scratch import SimScratchDeviceAPI
from landbridge.testing.sim_scratch_memory import POISON


class SimOnDemandDeviceAPI(SimScratchDeviceAPI):
    """``scopes`` hold their bytes while they are acquired, and hide them otherwise: they read as poison.

    ``take(scope, holder)`` is another program that takes a scope, whose bytes are lost; acquiring it is refused until
    ``leave(scope)``. ``revoke(scope, holder)`` does the same to one that is acquired.
    """

    def __init__(self, seed: int = 0, scopes: Sequence[str] = ("global.scratch", "global.vtcm")) -> None:
        super().__init__(seed)
        self._on_demand = tuple(scopes)
        self._contents = dict.fromkeys(scopes, 0)
        self._holders: dict[str, str] = {}
        self._hidden: dict[str, list[tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]]] = {}
        self._lock = new_lock()
        #: How often each scope is acquired now.
        self.acquired = dict.fromkeys(scopes, 0)

    def acquired_scopes(self, index: int) -> Sequence[str]:
        """Returns the scopes that it was made with."""
        return self._on_demand

    def acquire_scope(self, index: int, scope: str) -> int:
        """Makes hidden bytes visible again, unless another program had the scope."""
        self._check_scope(index, scope)
        with self._lock:
            if scope in self._holders:
                raise ScopeBusyError(f"sim:scratch: {scope!r} is held by {self._holders[scope]}")
            self.acquired[scope] += 1
            for data, bytes_of in self._hidden.pop(scope, ()):
                data[:] = bytes_of
            return self._contents[scope]

    def release_scope(self, index: int, scope: str) -> None:
        """Hides the bytes, at the last release."""
        self._check_scope(index, scope)
        with self._lock:
            if not self.acquired[scope]:
                self._violation(DeviceError, f"scope {scope!r} is released and was not acquired")
            self.acquired[scope] -= 1
            if not self.acquired[scope]:
                self._hide(scope)

    def take(self, scope: str, holder: str) -> None:
        """Takes the scope for another program, ``holder``."""
        self._check_scope(0, scope)
        with self._lock:
            if self.acquired[scope]:
                raise ScopeBusyError(f"sim:scratch: {scope!r} is acquired by this process")
            self._hidden.pop(scope, None)
            self._contents[scope] += 1
            self._holders[scope] = holder

    def revoke(self, scope: str, holder: str) -> None:
        """Takes ``scope`` away from its holder between two runs, for another program with higher priority."""
        self._check_scope(0, scope)
        with self._lock:
            self._hide(scope)
            self._hidden.pop(scope)
            self._contents[scope] += 1
            self._holders[scope] = holder

    def leave(self, scope: str) -> None:
        """Releases the scope for the other program."""
        del self._holders[scope]

    def copy_data_from_to(
        self, src: Region, dst: Region, nbytes: int, stream: Stream | None, keep_alive: object
    ) -> Event | None:
        """Copies; such a scope is only reached while it is acquired."""
        for region in (src, dst):
            space = region.space
            if space.device.api is self and self.acquired.get(space.scope) == 0:
                self._violation(DeviceError, f"a copy reaches scope {space.scope!r}, which is not acquired")
        return super().copy_data_from_to(src, dst, nbytes, stream, keep_alive)

    def _hide(self, scope: str) -> None:
        live = [block.data for handle in tuple(self._live) if handle.scope == scope for block in handle.blocks()]
        self._hidden[scope] = [(data, data.copy()) for data in live]
        for data in live:
            data[:] = POISON

    def _check_scope(self, index: int, scope: str) -> None:
        kind_of(self.memory_kinds(index), scope, f"sim:scratch:{index}")
        if scope not in self._on_demand:
            raise InputError(f"sim:scratch: scope {scope!r} is always there; legal: {', '.join(self._on_demand)}")
