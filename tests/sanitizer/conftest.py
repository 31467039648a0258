"""Each test begins with no findings, and leaves none for the end of the process."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator

import pytest

import landbridge.sanitizer  # noqa: F401


@pytest.fixture(autouse=True)
def _own_findings() -> Iterator[None]:
    retained = sys.modules["landbridge.sanitizer.findings"]
    gc.collect()
    retained._found.clear()
    retained._untold.clear()
    yield
    gc.collect()
    retained._found.clear()
    retained._untold.clear()
