"""RepeatedCopy: a copy between an array and memory of a device that a program has bound, like the copy before."""

from __future__ import annotations

from typing import Any
from weakref import ref

import numpy as np

from landbridge.device.api import Device, Region, Space
from landbridge.device.event import event_of, wait_for_event
from landbridge.device.protocols import AccessMode, HostBarriers
from landbridge.device.stream import current_stream
from landbridge.memory import ledger
from landbridge.memory.accesses import Access, open_views
from landbridge.memory.allocators.in_flight import hold
from landbridge.memory.borrowed import host_device
from landbridge.memory.device_barriers import begin, end
from landbridge.memory.host_array import address_of_known
from landbridge.memory.repeated_access import RepeatedAccess
from landbridge.memory.row_space import region_at
from landbridge.memory.windows import host_windows
from landbridge.memory_kind import GLOBAL_SCOPE
from landbridge.tensor import Tensor
from landbridge.tensor.copy import copying_device
from landbridge.tensor.granules import granule_of, pieces

_ndarray = np.ndarray


class RepeatedCopy:
    """Copies of arrays of ``dtype`` into ``tensor``, or with ``writes=False`` of its elements into arrays.

    ``tensor`` is dense and bound to a program; it is not kept alive.
    """

    __slots__ = ("_access", "_at", "_base", "_dtype", "_nbytes", "_shape", "_start", "_tensor", "_writes")

    def __init__(self, tensor: Tensor, dtype: np.dtype[Any], *, writes: bool) -> None:
        storage = tensor.storage
        self._tensor, self._base, self._writes = ref(tensor), storage.live_region, writes
        self._dtype, self._shape, self._nbytes = dtype, tensor.shape, tensor.nbytes
        self._start, stop = tensor.byte_range
        self._at = region_at(self._base, self._start)
        self._access = RepeatedAccess(storage, self._start, stop, writes=writes)

    def take(self, array: object, tensor: Tensor | None, cause: str) -> bool:
        """Copy between ``array`` and ``tensor``; returns False, with nothing done, where anything is not as before.

        That is another Tensor, or one in use by others; an ``array`` that is not a plain, dense array of the shape and
        dtype, or that a device uses; an open host view, or somebody who watches copies.
        """
        if (
            type(array) is not _ndarray
            or array.dtype is not self._dtype
            or array.shape != self._shape
            or not (array.flags.c_contiguous if self._writes else array.flags.carray)
            or open_views
            or ledger.is_active()
            or not self._access.is_alone
            or tensor is None
            or self._tensor() is not tensor
            or tensor.storage.region is not self._base
        ):
            return False
        address = address_of_known(array)
        if host_windows.find(address, address + self._nbytes) is not None:
            return False
        return self._copy(array, address, tensor, cause)

    def _copy(self, array: np.ndarray[Any, Any], address: int, tensor: Tensor, cause: str) -> bool:
        raise NotImplementedError


class DeviceCopy(RepeatedCopy):
    """Copies that the device ``by`` does."""

    __slots__ = ("_by", "_host")

    def __init__(self, tensor: Tensor, dtype: np.dtype[Any], by: Device, *, writes: bool) -> None:
        super().__init__(tensor, dtype, writes=writes)
        self._by, self._host = by, host_device()

    def _copy(self, array: np.ndarray[Any, Any], address: int, tensor: Tensor, cause: str) -> bool:
        by = self._by
        self._access.begin(tensor.storage)
        stream = current_stream(by)
        host = Region(Space(self._host, GLOBAL_SCOPE, address))
        source, target = (host, self._at) if self._writes else (self._at, host)
        with by.state.submitting(cause, "copy_data_from_to"):
            found = by.api.copy_data_from_to(source, target, self._nbytes, stream, (array, tensor))
            event = event_of(found, by, "copy_data_from_to")
        if event is not None:
            try:
                with by.state.watching():
                    wait_for_event(event, device=by, work=("work queued for", cause), queue=stream or by)
            except BaseException:  # it goes on after an interrupt, and the caller may let the array go
                use = hold(event, stream or by, (by,), (array, tensor))
                storage = tensor.storage
                storage.queue(Access(self._start, self._start + self._nbytes, self._writes, cause), use)
                raise
        return True


class HostCopy(RepeatedCopy):
    """Copies that the host does, in coherent memory that it can use."""

    __slots__ = ("_barriers", "_mode")

    def __init__(self, tensor: Tensor, dtype: np.dtype[Any], *, writes: bool) -> None:
        super().__init__(tensor, dtype, writes=writes)
        self._barriers = tensor.device.capability(HostBarriers)
        self._mode: AccessMode = "w" if writes else "r"

    def _copy(self, array: np.ndarray[Any, Any], address: int, tensor: Tensor, cause: str) -> bool:
        if not self._access.is_prepared:
            return False
        storage, api = tensor.storage, self._barriers
        access = Access(self._start, self._start + self._nbytes, self._writes, cause)
        try:
            open_views[access] = storage
            if api is not None:
                begin(api, self._at, self._nbytes, self._mode, is_over=False)
            there = storage.address + self._start
            source, target = (address, there) if self._writes else (there, address)
            ledger.copy_unwatched(target, source, self._nbytes)
            if api is not None:
                end(api, self._at, self._nbytes, self._mode)
        finally:
            open_views.pop(access, None)
        return True


def repeated_copy(tensor: Tensor, array: Tensor, dtype: np.dtype[Any], *, writes: bool) -> RepeatedCopy | None:
    """Returns copies like the one that was just done, of ``array`` to ``tensor`` with ``writes``, else back.

    None where each takes the long way: other layouts, memory that is not flat or is borrowed, staged bytes, and parts
    of granules that the device copies.
    """
    storage, host = tensor.storage, host_device()
    is_simple = storage.kind.ndim == 1 and tensor.is_contiguous and storage.owner is None
    if not is_simple or not tensor.nbytes or array.device != host:
        return None
    by = copying_device(tensor, array) if writes else copying_device(array, tensor)
    if by is None:
        return None
    if by != host:
        start, stop = tensor.byte_range
        in_granules = granule_of(storage, storage) == 1 or all(
            each.is_whole for each in pieces(storage, storage, start, start, stop - start)
        )
        return DeviceCopy(tensor, dtype, by, writes=writes) if in_granules else None
    return HostCopy(tensor, dtype, writes=writes) if storage.kind.coherent else None
