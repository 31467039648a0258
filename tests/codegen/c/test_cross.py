"""A compiler for another instruction set is refused before anything is compiled."""

from __future__ import annotations

from pathlib import Path

import pytest

import landbridge as lb
from landbridge.errors import CodegenError


def test_what_cannot_be_linked_is_refused_first(tmp_path: Path) -> None:
    compiler = tmp_path / "cross-cc"
    compiler.write_text("#!/bin/sh\necho '#define __powerpc64__ 1'\n")
    compiler.chmod(0o755)
    with pytest.raises(CodegenError, match="makes code for powerpc64le, which cannot be linked"):
        lb.compile(b"no model, and not looked at", f"c -mcpu=generic -compiler={compiler}")
