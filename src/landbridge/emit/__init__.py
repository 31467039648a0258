"""From a planned module to the data of an Executable: what the run side reads."""

from __future__ import annotations

from landbridge.emit.executable import emit

__all__ = ["emit"]
