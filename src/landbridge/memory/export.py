"""Exports: numpy arrays over the bytes of a Storage, which keep it alive and count as its users."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from landbridge.memory.borrowed import host_device
from landbridge.memory.storage import Storage


class Exporter:
    """The base of exported arrays: slices and memoryviews of one refer to it, and it refers to the Storage.

    Its ``str`` is ``subject``, or the result of calling ``subject`` where that takes longer to build.
    """

    __slots__ = ("__array_interface__", "__weakref__", "storage", "subject")

    __array_interface__: dict[str, Any]

    def __init__(self, storage: Storage, subject: Callable[[], str] | str) -> None:
        self.storage = storage
        self.subject = subject
        storage.add_export(self)
        if storage.device != host_device():  # who is given the array finds by its address that a device may lose it
            storage.part()

    def __str__(self) -> str:
        return self.subject if isinstance(self.subject, str) else self.subject()


def exported_bytes(storage: Storage, *, readonly: bool, subject: Callable[[], str] | str) -> np.ndarray[Any, Any]:
    """Returns all bytes of host-addressable ``storage`` as a uint8 array; messages call the export ``subject``.

    Raises HostViewError when the host cannot address them.
    """
    exporter = Exporter(storage, subject)
    exporter.__array_interface__ = {
        "version": 3,
        "shape": (storage.nbytes,),
        "typestr": "|u1",
        "data": (storage.address, readonly),
    }
    return np.asarray(exporter)
