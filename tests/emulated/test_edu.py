"""A device that nobody here wrote: QEMU's edu card in an emulated Linux, reached in three ways.

By UIO its engine uses physical addresses; by VFIO behind an IOMMU, addresses that are no physical ones; by the kernel's
DMA API with ``swiotlb=force`` each barrier is a real copy, and one that is left out leaves old bytes.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.emulated.image import make_disk
from tests.emulated.kernel import Kernel
from tests.emulated.machine import Outcome, run
from tests.emulated.module import build

pytestmark = pytest.mark.full

HERE = Path(__file__).parent
_VARIANTS = {
    "uio": {"memory_mib": 512},
    "vfio": {"memory_mib": 512, "devices": ("-device", "intel-iommu"), "boot": "intel_iommu=on"},
    "dma_api": {"memory_mib": 256, "boot": "swiotlb=16384,force"},  # all of it within the engine's 28 bits
}


@pytest.fixture(scope="module")
def disk(kernel: Kernel, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("emulated")
    ours = build(kernel, HERE / "edu_dma", folder / "edu_dma")
    path = folder / "disk"
    modules = [*kernel.modules("uio_pci_generic", "vfio_pci", "vfio_iommu_type1"), ours]
    make_disk(path, modules, [HERE / "landbridge_edu", HERE / "guest" / "check_edu.py"])
    return path


def check(kernel: Kernel, disk: Path, way: str, *wrong: str) -> Outcome:
    """The suite on the card."""
    options = dict(_VARIANTS[way])
    devices = (*options.pop("devices", ()), "-device", "edu")
    return run(kernel, disk, "check_edu", way, *wrong, devices=devices, **options)


@pytest.mark.parametrize("way", _VARIANTS)
def test_conformance(kernel: Kernel, disk: Path, way: str) -> None:
    outcome = check(kernel, disk, way)
    assert outcome.code == 0, outcome.text[-4000:]
    passed = re.findall(r"^pass +(\w+)", outcome.text, re.MULTILINE)
    assert {"test_there_and_back", "test_one_in_order_queue", "test_host_view"} <= set(passed), outcome.text[-4000:]


@pytest.mark.parametrize("wrong", ["NothingIsFlushed", "NothingIsInvalidated", "WrongBytesAreFlushed", "NobodyWaits"])
def test_a_barrier_that_is_left_out_is_noticed(kernel: Kernel, disk: Path, wrong: str) -> None:
    outcome = check(kernel, disk, "dma_api", wrong)
    assert outcome.code == 1, outcome.text[-4000:]
    assert re.search(r"^fail +test_\w+", outcome.text, re.MULTILINE), outcome.text[-4000:]


def test_without_an_iommu_there_are_no_addresses_of_ours(kernel: Kernel, disk: Path) -> None:
    outcome = run(kernel, disk, "check_edu", "vfio", devices=("-device", "edu"), memory_mib=512)
    assert outcome.code == 1
    assert "stands behind no IOMMU" in outcome.text
