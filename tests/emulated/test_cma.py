"""The device ``cma`` on a kernel that has dma-heaps, udmabuf and huge pages."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.emulated.image import make_disk
from tests.emulated.kernel import Kernel
from tests.emulated.machine import run

pytestmark = pytest.mark.full

HERE = Path(__file__).parent
_SCOPES = ("global.system", "global.udmabuf", "global.huge_2m")
_HOLDS = ("alignment", "barriers", "mapped twice", "used by a process while this one has no rights to its pages")


@pytest.fixture(scope="module")
def disk(kernel: Kernel, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("emulated") / "disk"
    make_disk(path, [], [HERE / "guest" / "check_cma.py"])
    return path


def test_sources_of_the_kernel(kernel: Kernel, disk: Path) -> None:
    outcome = run(kernel, disk, "check_cma", *_SCOPES, boot="hugepages=8", memory_mib=512)
    assert outcome.code == 0, outcome.text[-4000:]
    assert re.findall(r"^holds (\S+) (.+?)\r?$", outcome.text, re.MULTILINE) == [
        (scope, what) for scope in _SCOPES for what in _HOLDS
    ]
    assert "huge_1024m: /sys/kernel/mm/hugepages/hugepages-1048576kB" in outcome.text


def test_memory_that_the_kernel_leaves_alone(kernel: Kernel, disk: Path) -> None:
    boot = "memmap=16M$0x1c000000"
    outcome = run(kernel, disk, "check_cma", "dev_mem=0x1c000000+0x1000000", boot=boot, memory_mib=512)
    assert outcome.code == 0, outcome.text[-4000:]
    assert "dev_mem: found" in outcome.text
    assert "holds global.dev_mem bus address" in outcome.text
