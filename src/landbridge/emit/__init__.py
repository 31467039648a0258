"""Emission: turns a planned module into the data of an Executable, which the runtime reads."""

from __future__ import annotations

from landbridge.emit.executable import emit
from landbridge.emit.kernel_facts import kernel_facts

__all__ = ["emit", "kernel_facts"]
