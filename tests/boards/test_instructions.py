"""Kernels for a board hold instructions that its CPU has, by what the GNU assembler knows of it, and use newer ones."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx
import pytest

import landbridge as lb
from landbridge.executable.parts import CodeImage
from tests.selection.installed import program

#: Products of bytes, half floats and floats: what newer CPUs have instructions of their own for.
MODEL = """<ir_version: 8, opset_import: ["" : 18]>
g (uint8[5,64] x, float16[16,64] h, float[1,16,7,7] f)
=> (int32[5,32] y, float16[16,32] p, float16[16,64] s, float[1,16,7,7] c) {
    y = MatMulInteger(x, w)
    p = MatMul(h, v)
    s = Add(h, b)
    c = Conv<pads=[1,1,1,1]>(f, k)
}"""
_LINE = re.compile(r"\s+([0-9a-f]+):\s+(.*?)(?:\s*//.*)?$")
_BRANCH = re.compile(r"(?P<name>b|bl|b\.\w+|cbn?z|tbn?z)\s.*?0x(?P<to>[0-9a-f]+)$")
_ENDS = re.compile(r"(ret|br|b|udf|\.inst)\b(?!\.)")


def model() -> onnx.ModelProto:
    rng, made = np.random.default_rng(0), onnx.parser.parse_model(MODEL)
    weights = {
        "w": rng.integers(-128, 128, (64, 32), np.int8),
        "v": rng.normal(size=(64, 32)).astype(np.float16),
        "b": rng.normal(size=64).astype(np.float16),
        "k": rng.normal(size=(16, 16, 3, 3)).astype(np.float32),
    }
    made.graph.initializer.extend(onnx.numpy_helper.from_array(array, name) for name, array in weights.items())
    return made


def instructions(image: CodeImage, folder: Path) -> list[str]:
    """What is reached from the functions of ``image``, without branches; its constants are none of it."""
    (folder / "code").write_bytes(image.code)
    objdump = program("aarch64-linux-gnu-objdump", "boards")
    command = [objdump, "-D", "-b", "binary", "-m", "aarch64", "--no-show-raw-insn", "code"]
    text = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout
    found = (_LINE.match(line) for line in text.splitlines())
    return reached({int(line[1], 16): line[2].replace("\t", " ") for line in found if line}, image.symbols)


def reached(code: Mapping[int, str], symbols: Mapping[str, int]) -> list[str]:
    waiting, seen, retained = list(symbols.values()), set(), set()
    while waiting:
        at = waiting.pop()
        while at not in seen and at in code:
            seen.add(at)
            branch = _BRANCH.match(code[at])
            if branch:
                waiting.append(int(branch["to"], 16))
            elif not code[at].startswith("adr"):  # the assembler wants a symbol there
                retained.add(code[at])
            if _ENDS.match(code[at]):
                break
            at += 4
    return sorted(retained)


def refused(lines: list[str], cpu: str, folder: Path) -> list[str]:
    """Those of ``lines`` that the assembler does not take for ``cpu``."""
    (folder / "code.s").write_text("\n".join([*lines, ""]))
    command = [program("aarch64-linux-gnu-as", "boards"), f"-mcpu={cpu}", "-o", "code.o", "code.s"]
    output = subprocess.run(command, cwd=folder, capture_output=True, text=True).stderr
    return [lines[int(number) - 1] for number in re.findall(r"code\.s:(\d+): Error", output)]


@pytest.mark.parametrize(
    ("tag", "cpu"),
    [("raspberry-pi-3", "cortex-a53"), ("raspberry-pi-4", "cortex-a72"), ("raspberry-pi-5", "cortex-a76")],
)
def test_a_board_gets_instructions_that_it_has(tag: str, cpu: str, tmp_path: Path) -> None:
    (module,) = lb.compile(model(), tag).modules
    assert isinstance(module.image, CodeImage)
    found = instructions(module.image, tmp_path)
    assert len(found) > 300 and any(line.startswith("fmla v") for line in found)
    assert refused(found, cpu, tmp_path) == []
    newer = refused(found, "cortex-a53", tmp_path)
    for kind in (r"[su]dot v\d+\.4s", r"f\w+ v\d+\.8h"):
        assert any(re.match(kind, line) for line in newer) == (cpu == "cortex-a76"), kind
