"""The execution providers that are available."""

from __future__ import annotations

#: This host's CPU by onnxruntime's name.
CPU = "CPUExecutionProvider"


def get_available_providers() -> list[str]:
    """Returns the one provider: this host's CPU."""
    return [CPU]
