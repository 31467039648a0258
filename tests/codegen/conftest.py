"""What every code generator of CPUs must give: the tests that take ``target`` run for each of them."""

from __future__ import annotations

import pytest

from landbridge.targets.target import Target


@pytest.fixture(scope="package", params=["llvm", "c", "c -cflags=-DLB_PORTABLE"], ids=["llvm", "c", "portable-c"])
def target(request: pytest.FixtureRequest) -> Target:
    """This host, through LLVM, C with the compiler's vector types, and C without extensions."""
    return Target(request.param)
