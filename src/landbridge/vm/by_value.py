"""ByValue: an argument of a call that may be copied where its own memory cannot be used."""

from __future__ import annotations

from typing import Any

from landbridge.records import record


@record(frozen=True, slots=True, eq=False)
class ByValue:
    """``value``, an array or Tensor: used in place where the program can, else copied, which the ledger shows."""

    value: Any
    cause: str

    @property
    def shape(self) -> tuple[int, ...]:
        """That of the value."""
        return tuple(self.value.shape)
