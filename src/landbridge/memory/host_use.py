"""A warning for host code that reads memory past the host's caches."""

from __future__ import annotations

from collections.abc import Callable

from landbridge.device.memory_provider import Caching
from landbridge.errors import SlowMemoryWarning
from landbridge.memory.storage import Storage
from landbridge.reporting.warning_notes import warn


def warn_if_slow(storage: Storage, subject: Callable[[], str]) -> None:
    """Warn when ``subject``, which reads the bytes in place, does so past the host's caches.

    A copy made once is faster than reading such bytes more than once, and so is reading them by a device.
    """
    caching = storage.caching
    if caching in (Caching.WRITE_COMBINED, Caching.UNCACHED):
        warn(
            f"{subject()} reads {caching.value} memory of {storage.device}, which the host does past its caches, many "
            "times slower; copy it once to the host, with set_input for one, or allocate cached memory",
            SlowMemoryWarning,
        )
