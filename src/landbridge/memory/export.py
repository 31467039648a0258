"""Exports: numpy arrays over the bytes of a Storage that keep it alive and are counted as its users."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from landbridge.memory.storage import Storage


class Exporter:
    """The base of exported arrays: slices and memoryviews of them refer to it, and it refers to the Storage.

    ``str`` is ``subject``, or where that is longer to build, what its call gives.
    """

    __slots__ = ("__array_interface__", "__weakref__", "storage", "subject")

    __array_interface__: dict[str, Any]

    def __init__(self, storage: Storage, subject: Callable[[], str] | str) -> None:
        self.storage = storage
        self.subject = subject
        storage.add_export(self)

    def __str__(self) -> str:
        return self.subject if isinstance(self.subject, str) else self.subject()


def exported_bytes(storage: Storage, *, readonly: bool, subject: Callable[[], str] | str) -> np.ndarray[Any, Any]:
    """All bytes of host-addressable ``storage`` as uint8; ``subject`` names the export in later messages.

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
