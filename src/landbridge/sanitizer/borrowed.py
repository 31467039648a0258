"""BorrowedSnapshot: host memory that queued work still reads, and that must not change until the work is done."""

from __future__ import annotations

import ctypes

from landbridge.device.api import Device, Region
from landbridge.records import record
from landbridge.sanitizer.findings import call_site, tell


@record(frozen=True, slots=True)
class BorrowedSnapshot:
    """The ``content`` of ``nbytes`` bytes of the host at ``address``, when ``subject`` was queued."""

    address: int
    content: bytes
    subject: str

    @classmethod
    def of(cls, source: Region, nbytes: int, host: Device, subject: str) -> BorrowedSnapshot | None:
        """Returns a snapshot of ``source``; None unless it is memory of ``host``."""
        if source.space.device != host or not nbytes:
            return None
        address = source.space.handle + source.byte_offset
        return cls(address, ctypes.string_at(address, nbytes), subject)

    def check(self) -> None:
        """Reports a finding when the bytes changed since."""
        now = ctypes.string_at(self.address, len(self.content))
        if now != self.content:
            byte = next(i for i, (a, b) in enumerate(zip(self.content, now, strict=True)) if a != b)
            tell(
                "source changed",
                f"byte {byte} of the host memory that {self.subject} reads was written by the host before that was "
                "done, "
                f"which {call_site()} was the first to ask",
            )
