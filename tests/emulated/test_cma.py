"""The device ``cma`` on a kernel that has dma-heaps, udmabuf and huge pages."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests.emulated.image import make_disk
from tests.emulated.kernel import Kernel
from tests.emulated.machine import run
from tests.emulated.module import build
from tests.selection.installed import missing

pytestmark = pytest.mark.full

HERE = Path(__file__).parent
_SCOPES = ("global.system", "global.udmabuf", "global.huge_2m", "global.huge_1024m")
_HOLDS = ("alignment", "barriers", "mapped twice", "used by a process while this one has no rights to its pages")
_RETAINED = "kept by size class"
#: The folder of the sources of the module u-dma-buf (github.com/ikwzm/udmabuf), which are not ours to have here.
_U_DMA_BUF = os.environ.get("LANDBRIDGE_U_DMA_BUF")


@pytest.fixture(scope="module")
def disk(kernel: Kernel, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("emulated") / "disk"
    make_disk(path, [], sorted((HERE / "guest").glob("check_cma*.py")))
    return path


def test_sources_of_the_kernel(kernel: Kernel, disk: Path) -> None:
    boot = "hugepagesz=1G hugepages=1 hugepagesz=2M hugepages=8"
    outcome = run(kernel, disk, "check_cma", *_SCOPES, boot=boot, memory_mib=2560)
    assert outcome.code == 0, outcome.text[-4000:]
    assert re.findall(r"^holds (\S+) (.+?)\r?$", outcome.text, re.MULTILINE) == [
        (scope, subject) for scope in _SCOPES for subject in (*_HOLDS, *([] if "huge" in scope else [_RETAINED]))
    ]


@pytest.mark.parametrize("source", ["system", "udmabuf", "huge_2m"])
def test_each_keeps_the_contract(kernel: Kernel, disk: Path, source: str) -> None:
    outcome = run(
        kernel,
        disk,
        "check_cma_conformance",
        source,
        boot="hugepages=400" if source == "huge_2m" else "",
        memory_mib=1536 if source == "huge_2m" else 512,
        timeout=600,
        counted=False,
    )
    assert outcome.code == 0, outcome.text[-4000:]
    passed = re.findall(r"^pass +(\w+)", outcome.text, re.MULTILINE)
    assert {"test_there_and_back", "test_out_of_memory", "test_export_fd", "test_no_small_leaks"} <= set(passed)


@pytest.mark.parametrize("program", ["check_u_dma_buf", "check_cma_conformance"])
def test_the_module_u_dma_buf(kernel: Kernel, tmp_path: Path, program: str) -> None:
    if _U_DMA_BUF is None:
        missing("the module u-dma-buf", "u-dma-buf")
    options = ("CONFIG_U_DMA_BUF=m", "U_DMA_BUF_IOCTL=2", "U_DMA_BUF_EXPORT=1", "U_DMA_BUF_QUIRK_MMAP=1")
    module = build(kernel, Path(_U_DMA_BUF), tmp_path / "module", "u-dma-buf", *options)
    programs = [HERE / "guest" / f"{program}.py"]
    make_disk(tmp_path / "disk", [module], programs, {"u-dma-buf": "udmabuf0=4194304"})
    arguments = ("udmabuf0",) if program == "check_cma_conformance" else ()
    outcome = run(kernel, tmp_path / "disk", program, *arguments, memory_mib=512, timeout=600, counted=False)
    assert outcome.code == 0, outcome.text[-6000:]


def test_memory_that_the_kernel_leaves_alone(kernel: Kernel, disk: Path) -> None:
    boot = "memmap=16M$0x1c000000"
    outcome = run(kernel, disk, "check_cma", "dev_mem=0x1c000000+0x1000000", boot=boot, memory_mib=512)
    assert outcome.code == 0, outcome.text[-4000:]
    assert "dev_mem: found" in outcome.text
    assert "holds global.dev_mem bus address" in outcome.text
