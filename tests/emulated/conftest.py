"""The kernel that machines are emulated with."""

from __future__ import annotations

import pytest
from wheel_models import cache_folder

from tests.emulated.kernel import Kernel, fetch
from tests.emulated.machine import can_emulate
from tests.selection.installed import missing


@pytest.fixture(scope="module")
def kernel() -> Kernel:
    lacking = can_emulate()
    if lacking is not None:
        missing(lacking, "emulation")
    return fetch(cache_folder() / "emulated")
