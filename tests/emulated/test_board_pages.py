"""The pages about boards, end to end: what they say for the laptop runs here, what they say for the board runs on an
emulated one, and what stands for the logic of the FPGA works on the physical memory of that.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from wheel_models import CLASSIFY, PP_OCR, cache_folder, wheel_model

from tests.boards import folder
from tests.emulated import zynq
from tests.emulated.kernel import Kernel
from tests.emulated.logic import Logic
from tests.emulated.machine import Outcome
from tests.emulated.module import build
from tests.emulated.page_programs import programs_of
from tests.emulated.ramdisk import make_ramdisk
from tests.selection.installed import missing, package

pytestmark = pytest.mark.full

Array = np.ndarray[Any, Any]

HERE = Path(__file__).parent
PAGES = ("pynq", "de10", "u-dma-buf")
SHAPE = (1, 3, 48, 192)
#: Where docs/boards/de10.md has the frame and the scores, and where ``check_de10`` has a part of the rest.
_FRAME, _SCORES, _PART = 0x3000_0000, 0x3010_0000, 0x3080_0000
#: Accuracy of the target's kernels, in a probability.
_ATOL = 2e-6
_U_DMA_BUF = os.environ.get("LANDBRIDGE_U_DMA_BUF")


def scores_of(frames: Sequence[Array]) -> Array:
    """What onnxruntime computes for ``frames``, of shape ``(len(frames), 2)``."""
    session = package("onnxruntime", "test").InferenceSession(str(wheel_model(PP_OCR, CLASSIFY)))
    return np.concatenate([session.run(None, {"x": frame})[0] for frame in frames])


def frames_of(count: int) -> list[Array]:
    rng = np.random.default_rng(0)
    return [rng.standard_normal(SHAPE, np.float32) for _ in range(count)]


def files_of(page: str, scratch: Path) -> Path:
    """A folder called as ``page``: what its program for the laptop saved, and its program for the board."""
    programs, where = programs_of(page), scratch / page
    where.mkdir()
    shutil.copy(wheel_model(PP_OCR, CLASSIFY), scratch / "cls.onnx")
    subprocess.run([sys.executable, "-c", programs.laptop], cwd=scratch, check=True)
    (scratch / "cls.lbx").rename(where / "cls.lbx")
    (where / "program.py").write_text(programs.board)
    return where


def build_u_dma_buf(kernel: Kernel, source: Path, scratch: Path) -> tuple[str, bytes]:
    """The module of the folder ``source``, without its table for automatic loading: Debian's program that reads such
    tables expects those of a kernel with 64 bits."""
    copy = shutil.copytree(source, scratch / "module")
    for file in copy.glob("*.c"):
        file.write_text(re.sub(r"^MODULE_DEVICE_TABLE.*$", "", file.read_text(), flags=re.MULTILINE))
    return build(kernel, copy, scratch / "built", "u-dma-buf", "CONFIG_U_DMA_BUF=m")


@pytest.fixture(scope="module")
def ramdisk(zynq_kernel: Kernel, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What all machines of this file boot with: the pages' programs, and what checks them."""
    scratch = tmp_path_factory.mktemp("emulated")
    modules = [build(zynq_kernel, HERE / "cma_heap", scratch / "cma_heap")]
    if _U_DMA_BUF is not None:
        modules.append(build_u_dma_buf(zynq_kernel, Path(_U_DMA_BUF), scratch))
    guest = sorted((HERE / "guest").glob("*.py"))
    files = [*(file for file in guest if file.name != "init.py"), *(files_of(page, scratch) for page in PAGES)]
    board = folder.fetch(cache_folder() / "boards", folder.ARMHF)
    make_ramdisk(scratch / "ramdisk", board, files, modules)
    return scratch / "ramdisk"


def assert_ended_well(outcome: Outcome, page: str) -> None:
    """The program ended, and printed what its page shows."""
    assert outcome.code == 0, outcome.text[-4000:]
    lines = outcome.text.replace("\r", "").splitlines()
    assert [line for line in lines if line in programs_of(page).shown], outcome.text[-4000:]
    assert set(programs_of(page).shown) <= set(lines), outcome.text[-4000:]


def at(memory: Path, address: int, nbytes: int) -> bytes:
    """The bytes at a physical address."""
    with memory.open("rb") as file:
        file.seek(address)
        return file.read(nbytes)


def seen_by(logic: Logic) -> Array:
    """The scores that the logic read."""
    assert logic.wrong is None
    return np.stack([np.frombuffer(scores, np.float32) for scores in logic.read])


def test_pynq(zynq_kernel: Kernel, ramdisk: Path, tmp_path: Path) -> None:
    memory, frames = zynq.make_memory(tmp_path / "memory"), frames_of(9)
    with Logic(memory, iter([frame.tobytes() for frame in frames])) as logic:
        outcome = zynq.run(zynq_kernel, ramdisk, memory, "check_pynq", "pynq")
    assert_ended_well(outcome, "pynq")
    seen, wanted = seen_by(logic), scores_of(frames)
    assert len(seen) == 9
    np.testing.assert_allclose(seen[:6], wanted[:6], atol=_ATOL)
    # Where nothing is flushed, the logic reads what was in the memory before: the six would have told.
    assert np.abs(seen[6:] - wanted[6:]).max(axis=1).min() > 1e-3


def test_de10(zynq_kernel: Kernel, ramdisk: Path, tmp_path: Path) -> None:
    memory, (frame,) = zynq.make_memory(tmp_path / "memory"), frames_of(1)
    with memory.open("r+b") as file:  # before the machine boots, whose kernel leaves it there
        file.seek(_FRAME)
        file.write(frame.tobytes())
    outcome = zynq.run(zynq_kernel, ramdisk, memory, "check_de10", "de10")
    assert_ended_well(outcome, "de10")
    scores = np.frombuffer(at(memory, _SCORES, 8), np.float32)
    np.testing.assert_allclose(scores, scores_of([frame])[0], atol=_ATOL)
    assert re.findall(r"^holds (.+?)\r?$", outcome.text, re.MULTILINE) == [
        "the first row is refused: Operation not permitted",
        f"global.dev_mem is at {_PART:#x}",
    ]
    assert at(memory, _PART, 256) == bytes(range(256))


def test_u_dma_buf(zynq_kernel: Kernel, ramdisk: Path, tmp_path: Path) -> None:
    if _U_DMA_BUF is None:
        missing("the module u-dma-buf", "u-dma-buf")
    memory, frames = zynq.make_memory(tmp_path / "memory"), frames_of(3)
    with Logic(memory, iter([frame.tobytes() for frame in frames])) as logic:
        outcome = zynq.run(zynq_kernel, ramdisk, memory, "check_node", "u-dma-buf")
    assert_ended_well(outcome, "u-dma-buf")
    np.testing.assert_allclose(seen_by(logic), scores_of(frames), atol=_ATOL)


def test_the_contiguous_area_keeps_the_contract(zynq_kernel: Kernel, ramdisk: Path, tmp_path: Path) -> None:
    memory = zynq.make_memory(tmp_path / "memory")
    outcome = zynq.run(zynq_kernel, ramdisk, memory, "check_cma_conformance", "reserved")
    assert outcome.code == 0, outcome.text[-6000:]
    passed = re.findall(r"^pass +(\w+)", outcome.text, re.MULTILINE)
    assert {"test_there_and_back", "test_out_of_memory", "test_export_fd", "test_no_small_leaks"} <= set(passed)
