"""The device ``cma`` on the contiguous area (CMA) of an AArch64 kernel: Debian's, which has the area and no dma-heaps.

A module of ours gives the area as a heap. What the kernel has decides the rest: which pages they are, and the end.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import onnx.parser
import pytest
from onnx.reference import ReferenceEvaluator
from wheel_models import cache_folder

import landbridge as lb
from tests.boards import folder
from tests.emulated.image import make_disk
from tests.emulated.kernel import Kernel
from tests.emulated.machine import run
from tests.emulated.module import build

pytestmark = pytest.mark.full

HERE = Path(__file__).parent
SCOPE = "global.reserved"
_MODEL = """<ir_version: 10, opset_import: ["" : 18]>
g (float[1,3,32,32] image, float[8,3,3,3] w) => (float[1,8] mean) {
    features = Conv<strides = [2, 2], pads = [1, 1, 1, 1]>(image, w)
    positive = Relu(features)
    pooled = GlobalAveragePool(positive)
    mean = Flatten(pooled)
}"""


@pytest.fixture(scope="module")
def disk(arm_kernel: Kernel, tmp_path_factory: pytest.TempPathFactory) -> Path:
    scratch = tmp_path_factory.mktemp("emulated")
    model = onnx.parser.parse_model(_MODEL)
    rng = np.random.default_rng(0)
    feeds = {
        "image": rng.standard_normal((1, 3, 32, 32), np.float32),
        "w": rng.standard_normal((8, 3, 3, 3), np.float32),
    }
    (mean,) = ReferenceEvaluator(model).run(None, feeds)
    np.savez(scratch / "net.npz", **feeds, expected_mean=mean)
    lb.compile(model, "llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72").save(scratch / "net.lbx")
    heap = build(arm_kernel, HERE / "cma_heap", scratch / "cma_heap")
    files = [*sorted((HERE / "guest").glob("check_c*.py")), scratch / "net.lbx", scratch / "net.npz"]
    make_disk(scratch / "disk", [heap], files, board=folder.fetch(cache_folder() / "boards"))
    return scratch / "disk"


def test_a_program_and_the_end_of_the_area(arm_kernel: Kernel, disk: Path) -> None:
    outcome = run(arm_kernel, disk, "check_contiguous_area", SCOPE, "/packages/net.lbx", boot="cma=64M", memory_mib=512)
    assert outcome.code == 0, outcome.text[-4000:]
    assert re.findall(r"^holds (.+?)\r?$", outcome.text, re.MULTILINE) == [
        "adjacent pages of the area: 2048",
        "a program on it, without a copy",
        "an error at the end of the area",
        "memory again once a buffer is given back",
    ]
    assert re.search(
        r"error .*/dev/dma_heap/reserved has no 8388608 bytes: Cannot allocate memory; \d+ of the 67108864 bytes of "
        r"the kernel's contiguous areas are free.*cma=SIZE",
        outcome.text,
    ), outcome.text[-4000:]


def test_what_other_sources_hold(arm_kernel: Kernel, disk: Path) -> None:
    outcome = run(arm_kernel, disk, "check_cma", SCOPE, boot="cma=64M", memory_mib=512)
    assert outcome.code == 0, outcome.text[-4000:]
    assert len(re.findall(rf"^holds {SCOPE} ", outcome.text, re.MULTILINE)) == 5, outcome.text[-4000:]
