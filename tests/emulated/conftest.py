"""The kernel that machines are emulated with."""

from __future__ import annotations

import pytest
from wheel_models import cache_folder

from tests.emulated.architecture import AMD64, ARM64, ZYNQ, Architecture
from tests.emulated.kernel import Kernel, fetch
from tests.emulated.machine import can_emulate
from tests.selection.installed import missing


def _kernel(architecture: Architecture) -> Kernel:
    lacking = can_emulate(architecture)
    if lacking is not None:
        missing(lacking, "emulation")
    return fetch(cache_folder() / "emulated", architecture)


@pytest.fixture(scope="module")
def kernel() -> Kernel:
    return _kernel(AMD64)


@pytest.fixture(scope="module")
def arm_kernel() -> Kernel:
    return _kernel(ARM64)


@pytest.fixture(scope="module")
def zynq_kernel() -> Kernel:
    return _kernel(ZYNQ)
