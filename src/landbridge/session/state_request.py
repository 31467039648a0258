"""StateRequest: what a caller of bind_state() asks for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from landbridge.records import record


@record(frozen=True)
class StateRequest:
    """A State of ``pairs``, names of inputs by output (None: those found), for ``capacity`` steps.

    ``memory``: that of the application, by the name of the input, of which ``length`` steps are filled.
    """

    pairs: Mapping[str, str] | None = None
    capacity: int | None = None
    memory: Mapping[str, Any] | None = None
    length: int | None = None
