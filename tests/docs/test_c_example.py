"""The example in C, as its Makefile builds it, finds what a Session finds; and reads the frame within its bounds."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from wheel_models import CLASSIFY, PP_OCR, wheel_model

import landbridge as lb
from tests.selection.installed import program

EXAMPLE = Path(__file__).parents[2] / "examples" / "c"


def frame() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (480, 640, 3), dtype=np.uint8)


def build(folder: Path, *words: str) -> Path:
    """The program, built in a copy of the example by make with ``words``."""
    shutil.copytree(EXAMPLE, folder, dirs_exist_ok=True)
    shutil.copy(wheel_model(PP_OCR, CLASSIFY), folder / "cls.onnx")
    frame().tofile(folder / "frame.raw")
    path = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run([program("make", "debian"), *words], cwd=folder, env=path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder / "classify_frame"


def printed(*command: str | Path) -> list[float]:
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [float(words.split()[-1]) for words in done.stdout.strip().split(",")]


def wanted(left: int, top: int) -> np.ndarray:
    model = wheel_model(PP_OCR, CLASSIFY)
    session = lb.Session(lb.compile(model, shapes={"x": (1, 3, 48, 192)}))
    line = (frame()[top : top + 48, left : left + 192].astype(np.float32) - 127.5) / 127.5
    return np.asarray(session(line.transpose(2, 0, 1)[None].copy())[0])[0]


@pytest.mark.full
def test_it_reads_a_line_of_the_frame_in_place_and_nothing_else(tmp_path: Path) -> None:
    program("gcc", "debian")
    made = build(tmp_path, "CFLAGS=-g -fsanitize=address,undefined -fno-sanitize-recover=all")
    file = tmp_path / "frame.raw"
    for left, top in ((0, 0), (448, 432)):  # the last reads up to the last byte of the frame
        np.testing.assert_allclose(printed(made, file, str(left), str(top)), wanted(left, top), atol=2e-6)
    assert printed(made, file, "9", "9", "3") == printed(made, file, "9", "9")
    done = subprocess.run([made, file, "449", "0"], capture_output=True, text=True)
    assert (done.returncode, "no such line" in done.stderr) == (1, True)


@pytest.mark.full
def test_it_runs_on_a_board(tmp_path: Path) -> None:
    compiler, qemu = program("aarch64-linux-gnu-gcc", "boards"), program("qemu-aarch64", "boards")
    made = build(tmp_path, "TARGET=raspberry-pi-4", f"CC={compiler} -static")
    found = printed(qemu, "-cpu", "cortex-a72", made, tmp_path / "frame.raw", "100", "200", "2")
    np.testing.assert_allclose(found, wanted(100, 200), atol=2e-6)


@pytest.mark.full
def test_its_page_does_what_it_says(tmp_path: Path) -> None:
    for name in ("gcc", "make"):
        program(name, "debian")
    for name in ("aarch64-linux-gnu-gcc", "qemu-aarch64"):
        program(name, "boards")
    shutil.copytree(EXAMPLE.parent, tmp_path, dirs_exist_ok=True)
    shutil.copy(wheel_model(PP_OCR, CLASSIFY), tmp_path / "c" / "cls.onnx")
    page = (EXAMPLE / "README.md").read_text()
    blocks = re.findall(r"^```(sh|text)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    # What downloads is that of the page on boards, whose model the tests have.
    assert blocks.pop(0)[1] in (EXAMPLE.parents[1] / "docs/deploy-to-a-board.md").read_text()
    path = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    shown = 0
    for (kind, text), (following, output) in zip(blocks, [*blocks[1:], ("", "")], strict=True):
        if kind == "text":
            continue
        done = subprocess.run(["sh", "-ec", text], cwd=tmp_path / "c", env=path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        if following == "text":
            values, words = r"[0-9.]+", done.stdout
            assert re.sub(values, "#", words) == re.sub(values, "#", output)
            # The picture is a JPEG, which libraries decode to pixels that differ by one.
            found, wanted = ([float(number) for number in re.findall(values, each)] for each in (words, output))
            np.testing.assert_allclose(found, wanted, atol=0.02)
            shown += 1
    assert shown == 2
