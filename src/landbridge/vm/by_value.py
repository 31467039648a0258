"""ByValue: marks an argument of a call that may be copied where its memory cannot be used in place."""

from __future__ import annotations

from typing import Any

from landbridge.records import record


@record(frozen=True, slots=True, eq=False)
class ByValue:
    """``value``, an array or Tensor, which is used in place where possible, else copied, as the ledger shows."""

    value: Any
    cause: str

    @property
    def shape(self) -> tuple[int, ...]:
        """Returns the shape of the value."""
        return tuple(self.value.shape)
