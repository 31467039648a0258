"""HostView: a numpy array over a device's own bytes, with the waits and barriers that make its content valid."""

from __future__ import annotations

from types import TracebackType
from typing import Any, ClassVar, Generic, TypeVar, get_args

import numpy as np

from landbridge.device.protocols import AccessMode, HostBarriers
from landbridge.errors import HostAccessError, HostViewError, UseAfterFreeError
from landbridge.memory.accesses import Access, open_views
from landbridge.memory.coherence import begin_host_access, end_host_access
from landbridge.memory.storage import Storage
from landbridge.process.process_bound import ProcessBound
from landbridge.tensor.exports import array_over
from landbridge.tensor.typed_view import TypedView

_View = TypeVar("_View", bound=TypedView)


class HostView(ProcessBound, Generic[_View]):
    """The host's view of a Tensor. In a ``with`` it is an ndarray and the barriers are placed for you::

        with t.host_view("rw") as a:
            a += 1

    ``r`` waits for pending writers of the bytes, ``w`` and ``rw`` for readers too. ``w`` discards the whole range:
    bytes that are not written are undefined. Outside a ``with`` it lasts until ``close()``: ``.tensor`` is on
    ``cpu:0``, and ``invalidate()`` before reading and ``flush()`` after writing are yours to call.
    """

    _instead: ClassVar[str] = "pickle or copy its Tensor, or an array of it"

    def __init__(self, tensor: _View, mode: AccessMode) -> None:
        """Raises HostViewError when the scope or the Tensor does not allow ``mode``."""
        if mode not in get_args(AccessMode):
            raise HostViewError(f"host view mode {mode!r} is unknown; legal: r, w, rw")
        storage = tensor.storage
        storage.live_region  # noqa: B018  raises when freed
        storage.check_device()
        _check_mode(tensor, storage, mode)
        self.mode: AccessMode = mode
        self._source: _View | None = tensor
        self._storage = storage
        self._start, self._stop = tensor.byte_range
        self._access = Access(self._start, self._stop, mode != "r", f"host view {mode!r} of {tensor!r}")
        self._entered = False

    @property
    def _live(self) -> _View:
        if self._source is None:
            raise UseAfterFreeError("this host view was closed; ask the tensor for another one")
        return self._source

    def __enter__(self) -> np.ndarray[Any, Any]:
        tensor = self._live
        if self._entered:
            raise HostAccessError("this host view is open already; ask the tensor for another one")
        if not self._storage.is_ready:  # so that a copy of a run is waited for, and not refused
            self._storage.wait(self._start, self._stop, writes=self.mode != "r")
        try:
            self._storage.open_view(self._access)
            begin_host_access(self._storage, self._start, self._stop, self.mode)
            array = self._array(tensor)
            self._entered = True
            return array
        except BaseException:
            open_views.pop(self._access, None)
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            end_host_access(self._storage, self._start, self._stop, self.mode)
        finally:
            open_views.pop(self._access, None)
            self._entered = False

    def __del__(self) -> None:
        # An interrupt may come before the first statement of __exit__. The storage is not there after a refusal.
        if getattr(self, "_entered", False):
            open_views.pop(self._access, None)

    @property
    def tensor(self) -> _View:
        """Returns the same bytes as a Tensor on ``cpu:0``, read-only unless the mode writes."""
        source = self._live
        return type(source).from_numpy_view(self._array(source))

    def flush(self) -> None:
        """Make what the host wrote visible to the device; raises HostAccessError when the device wrote there too."""
        self._live  # noqa: B018
        if self.mode == "r":
            raise HostAccessError("a view of mode 'r' has nothing to flush; ask for mode 'w' or 'rw'")
        end_host_access(self._storage, self._start, self._stop, "w")

    def invalidate(self) -> None:
        """Make what the device wrote visible to the host; waits for its pending writers."""
        self._live  # noqa: B018
        begin_host_access(self._storage, self._start, self._stop, "r")

    def close(self) -> None:
        """End a lasting view; later calls raise. Arrays taken from it keep the bytes alive, but get no barriers."""
        self._source = None

    def __dlpack__(self, **request: Any) -> object:
        """Returns a DLPack capsule over the bytes, as ``.tensor`` gives it."""
        return self.tensor.__dlpack__(**request)

    def __dlpack_device__(self) -> tuple[int, int]:
        """Returns ``(kDLCPU, 0)``."""
        return self.tensor.__dlpack_device__()

    def _array(self, tensor: _View) -> np.ndarray[Any, Any]:
        return array_over(tensor, readonly=self.mode == "r", subject=self._access.holder)


def _check_mode(tensor: TypedView, storage: Storage, mode: AccessMode) -> None:
    kind = storage.kind
    reads, writes = mode != "w", mode != "r"
    if (reads and not kind.host_readable) or (writes and not kind.host_writable):
        raise HostViewError(
            f"host view {mode!r} of {tensor!r}: the host has access {kind.host_access!r} to scope {kind.scope!r} of "
            f"{storage.device}; copy the tensor to the host with t.to_device('cpu')"
        )
    if writes and tensor.readonly:
        raise HostViewError(f"host view {mode!r} of {tensor!r}: it is read-only; ask for 'r', or copy it first")
    if not kind.coherent and storage.device.capability(HostBarriers) is None and not storage.domains()[0]:
        raise HostViewError(
            f"host view of {tensor!r}: scope {kind.scope!r} of {storage.device} is not coherent and the device has no "
            "begin_host_access and end_host_access; copy the tensor with t.to_device('cpu')"
        )
    start, stop = tensor.byte_range
    if mode == "w" and stop - start != tensor.nbytes:
        raise HostViewError(
            f"host view 'w' of {tensor!r} would discard the {stop - start - tensor.nbytes} bytes between its elements; "
            "ask for 'rw'"
        )
