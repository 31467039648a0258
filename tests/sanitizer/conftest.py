"""Each test begins with no findings, and leaves none for the end of the process."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator

import pytest

import landbridge.sanitizer  # noqa: F401


@pytest.fixture(autouse=True)
def _own_findings() -> Iterator[None]:
    kept = sys.modules["landbridge.sanitizer.findings"]
    gc.collect()
    kept._found.clear()
    kept._untold.clear()
    yield
    gc.collect()
    kept._found.clear()
    kept._untold.clear()
