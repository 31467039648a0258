"""From a planned module to the data of an Executable: what the run side reads."""

from __future__ import annotations

from landbridge.emit.executable import emit
from landbridge.emit.kernel_facts import kernel_facts

__all__ = ["emit", "kernel_facts"]
