"""What OpenCL C has no words for does not stand in a kernel."""

from __future__ import annotations

import re
from importlib import resources


def test_macros_have_fixed_arguments() -> None:
    """Drivers refuse others (OpenCL C 3.0 specification, section 6.12)."""
    text = (resources.files("landbridge.codegen.opencl") / "prelude.cl").read_text()
    assert re.findall(r"#define \w+\([^)]*\)", text)
    assert not re.findall(r"#define \w+\([^)]*\.\.\.\)|__VA_ARGS__", text)
