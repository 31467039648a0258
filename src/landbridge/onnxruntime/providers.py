"""Where models run here."""

from __future__ import annotations

#: This host's CPU by onnxruntime's name.
CPU = "CPUExecutionProvider"


def get_available_providers() -> list[str]:
    """The one provider: this host's CPU."""
    return [CPU]
