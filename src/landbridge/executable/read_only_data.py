"""Data of a library outside its code, in pages that are neither written nor executed, and the function that returns its
address.
"""

from __future__ import annotations

from landbridge.records import record


@record(frozen=True)
class ReadOnlyData:
    """The ``content``, and the offset in the code of the function that returns its address; that code is not written
    yet.
    """

    content: bytes
    function: int


def with_reference(code: bytes, data: ReadOnlyData, function: bytes) -> bytes:
    """Returns ``code`` with ``function`` written at its offset."""
    return code[: data.function] + function + code[data.function + len(function) :]
