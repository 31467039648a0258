"""Tuning: other tiles are measured within a time, kept on disk, and change no result."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.dialects import func

import landbridge as lb
from landbridge.compiler import tile_files, tuning
from landbridge.compiler.compilation import compile_model
from landbridge.compiler.options import CompileOptions
from landbridge.errors import CompileError, FallbackWarning, InputError
from landbridge.executable.kernel_facts import facts_of
from landbridge.executable.parts import VDevice
from landbridge.passes.lower.measured_tiles import MeasuredTiles, Tile
from landbridge.targets import Target
from tests.ops.one_node import one_node

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(7)


def floats(*shape: int) -> Array:
    return RNG.standard_normal(shape).astype(np.float32)


PRODUCT = one_node("MatMul", [floats(37, 70), floats(70, 48)], {1})
CASES: dict[str, tuple[Any, Array]] = {
    "product": (PRODUCT, floats(37, 70)),
    "long product": (one_node("MatMul", [floats(20, 700), floats(700, 40)], {1}), floats(20, 700)),
    "convolution": (
        one_node("Conv", [floats(1, 16, 9, 11), floats(32, 16, 3, 3)], {1}, pads=[1] * 4),
        floats(1, 16, 9, 11),
    ),
    "sums along lanes": (one_node("Gemm", [floats(24, 128), floats(10, 128)], {1}, transB=1), floats(24, 128)),
    "elementwise": (one_node("Sqrt", [np.abs(floats(9, 100))]), np.abs(floats(9, 100))),
}


class Given:
    """A tile for every kernel."""

    def __init__(self, tile: Tile) -> None:
        self.tile = tile

    def measured(self, function: func.FuncOp, target: Target) -> MeasuredTiles:
        return MeasuredTiles(self.tile, ())


def result(executable: lb.Executable, x: Array) -> bytes:
    (y,) = lb.Session(executable)(x)
    return np.asarray(y).tobytes()


def kernels_of(model: Any) -> list[tuning._Kernel]:
    """What a tuning of ``model`` would measure."""
    asked = tuning.Tuning()
    compile_model(model, (Target("llvm"),), (VDevice("cpu", 0),), CompileOptions(tiles=asked), None)
    found = (tuning._kernel(name, *each) for name, each in asked._requested.items())
    return [kernel for kernel in found if kernel is not None]


@pytest.mark.parametrize("case", CASES)
def test_every_tile_that_is_measured_computes_the_same(case: str) -> None:
    model, x = CASES[case]
    expected = result(lb.compile(model), x)
    tiles = {each.tile for kernel in kernels_of(model) for each in kernel.found}
    assert len(tiles) > 1
    schedules = set()
    for tile in tiles:
        options = CompileOptions(tiles=Given(tile))
        executable = compile_model(model, (Target("llvm"),), (VDevice("cpu", 0),), options, None)
        assert result(executable, x) == expected, tile
        schedules.add(tuple(facts.schedule for facts in facts_of(executable).values()))
    assert len(schedules) > 1, "tiles are taken"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of measured tiles of this test."""
    monkeypatch.setenv("LANDBRIDGE_CACHE", str(tmp_path / "kept"))
    return tmp_path / "kept"


@pytest.fixture
def times(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[int]]:
    """Makes times of kernels: ``times([2.0, 1.0])`` says that the second tile is faster. Returns a list that gets the
    number of tiles of each kernel that is measured.
    """

    def given(seconds: list[float], digests: str = "aaaa") -> list[int]:
        asked: list[int] = []

        def timed(files: list[str], results: int, end: float) -> list[dict[str, Any]]:
            asked.append(len(files))
            assert all(Path(file).is_file() for file in files) and results == 1
            padded = [*seconds, *[9.0] * len(files)]
            return [{"seconds": padded[i], "digest": digests[i]} for i in range(len(files))]

        monkeypatch.setattr(tuning, "_timed", timed)
        return asked

    return given


def tile_of(executable: lb.Executable) -> str:
    (facts,) = facts_of(executable).values()
    return facts.weighed[0].partition(":")[0]


def test_the_fastest_tile_is_kept_on_disk(folder: Path, times: Callable[..., list[int]]) -> None:
    model, x = CASES["product"]
    plain = lb.compile(model)
    asked = times([2.0, 1.0])
    tuned = lb.compile(model, tune=60)
    assert len(asked) == 1 and asked[0] > 1
    (facts,) = facts_of(plain).values()
    assert tile_of(tuned) == facts.weighed[1].partition(":")[0] != tile_of(plain)
    (measured,) = facts_of(tuned).values()
    assert measured.weighed[0].endswith("1000000.0 us measured")
    assert result(tuned, x) == result(plain, x)
    assert tile_of(lb.compile(model, tune=0)) == tile_of(lb.compile(model, tune=60)) == tile_of(tuned)
    assert len(asked) == 1, "what is on disk is not measured again"
    assert tile_of(lb.compile(model)) == tile_of(plain), "without tune= nothing of it is used"


def test_a_tile_with_another_result_is_not_taken(folder: Path, times: Callable[..., list[int]]) -> None:
    times([2.0, 1.0, 1.5], "abaa")
    tuned = lb.compile(PRODUCT, tune=60)
    (facts,) = facts_of(lb.compile(PRODUCT)).values()
    assert tile_of(tuned) == facts.weighed[2].partition(":")[0]


def test_a_little_faster_is_not_enough(folder: Path, times: Callable[..., list[int]]) -> None:
    times([1.0, 0.98])
    assert tile_of(lb.compile(PRODUCT, tune=60)) == tile_of(lb.compile(PRODUCT))


def test_a_time_that_is_over_measures_nothing(folder: Path, times: Callable[..., list[int]]) -> None:
    asked = times([2.0, 1.0])
    assert tile_of(lb.compile(PRODUCT, tune=1e-9)) == tile_of(lb.compile(PRODUCT))
    assert asked == [] and not list(folder.glob("*.tiles"))


def test_an_interrupt_keeps_what_was_measured(
    folder: Path, times: Callable[..., list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    times([2.0, 1.0])
    first = tuning._measured
    done: list[object] = []

    def interrupted(kernel: Any, end: float) -> MeasuredTiles | None:
        if done:
            raise KeyboardInterrupt
        done.append(kernel)
        return first(kernel, end)

    monkeypatch.setattr(tuning, "_measured", interrupted)
    two = one_node("Gemm", [floats(24, 128), floats(16, 128), floats(24, 16)], {1}, transB=1)
    lb.compile(PRODUCT, tune=60)
    with pytest.raises(KeyboardInterrupt):
        lb.compile(two, tune=60)
    assert len(list(folder.glob("*.tiles"))) == 1
    monkeypatch.undo()
    os.environ["LANDBRIDGE_CACHE"] = str(folder)
    try:
        assert tile_of(lb.compile(PRODUCT, tune=0)) != tile_of(lb.compile(PRODUCT))
    finally:
        os.environ["LANDBRIDGE_CACHE"] = "0"


def test_without_a_folder_this_compile_has_what_it_measured(
    monkeypatch: pytest.MonkeyPatch, times: Callable[..., list[int]]
) -> None:
    monkeypatch.setenv("LANDBRIDGE_CACHE", "0")
    times([2.0, 1.0])
    assert tile_of(lb.compile(PRODUCT, tune=60)) != tile_of(lb.compile(PRODUCT))
    assert tile_of(lb.compile(PRODUCT, tune=0)) == tile_of(lb.compile(PRODUCT))


def test_a_folder_that_cannot_be_written_is_said(
    folder: Path, times: Callable[..., list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    times([2.0, 1.0])
    plain = lb.compile(PRODUCT)

    def refused(self: object, name: str) -> Any:
        raise PermissionError(13, "read-only")

    monkeypatch.setattr("landbridge.files.cache_folder.CacheFolder.new_file", refused)
    with pytest.warns(FallbackWarning, match="measured tiles cannot be written"):
        tuned = lb.compile(PRODUCT, tune=60)
    assert tile_of(tuned) != tile_of(plain)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x80\xff",
        b"[]",
        b"{}",
        b'{"fastest": [1, 1], "seconds": []}',
        b'{"fastest": null}',
        b'{"fastest": [6, 4], "seconds": [[6, 4, "1"]]}',
        b'{"fastest": [6, 4], "seconds": [[6, 4, -1.0]]}',
        b'{"fastest": [0, 4], "seconds": [[0, 4, 1.0]]}',
        b'{"fastest": [6, 4, 1], "seconds": [[6, 4, 1.0]]}',
        b"[" * 100_000,
    ],
)
def test_files_that_are_damaged_or_of_others_are_ignored(
    content: bytes, folder: Path, times: Callable[..., list[int]]
) -> None:
    times([2.0, 1.0])
    lb.compile(PRODUCT, tune=60)
    (file,) = folder.glob("*.tiles")
    file.write_bytes(content)
    with pytest.warns(FallbackWarning, match="is no file of measured tiles and is ignored"):
        assert tile_of(lb.compile(PRODUCT, tune=0)) == tile_of(lb.compile(PRODUCT))


def test_a_tile_that_is_no_candidate_is_ignored(folder: Path, times: Callable[..., list[int]]) -> None:
    times([2.0, 1.0])
    plain = lb.compile(PRODUCT)
    lb.compile(PRODUCT, tune=60)
    (file,) = folder.glob("*.tiles")
    file.write_text(json.dumps({"fastest": [60, 60], "seconds": [[60, 60, 1.0]]}))
    assert tile_of(lb.compile(PRODUCT, tune=0)) == tile_of(plain)


def test_the_compiler_and_the_target_are_in_the_name(monkeypatch: pytest.MonkeyPatch) -> None:
    (kernel,) = kernels_of(PRODUCT)
    here = tile_files.file_name(kernel.function, kernel.target)
    other = kernel.function.clone()
    other.properties["sym_name"] = type(other.sym_name)("another_name")
    assert tile_files.file_name(other, kernel.target) == here
    assert tile_files.file_name(kernel.function, Target("llvm -vector-bits=128")) != here
    monkeypatch.setattr(tile_files, "code_text", lambda: "another compiler")
    assert tile_files.file_name(kernel.function, kernel.target) != here


@pytest.mark.parametrize("seconds", [-1, float("nan"), float("inf"), "30", True])
def test_a_time_that_is_none_is_refused(seconds: Any) -> None:
    with pytest.raises(InputError, match=r"tune=.*legal: seconds from 0"):
        lb.compile(PRODUCT, tune=seconds)


def test_a_target_that_is_not_timed_is_refused() -> None:
    with pytest.raises(CompileError, match="tune= measures kernels on this machine, and target kind 'c'"):
        lb.compile(PRODUCT, target="c", tune=1)


def test_another_machine_is_refused() -> None:
    other = "aarch64" if os.uname().machine == "x86_64" else "x86_64"
    with pytest.raises(CompileError, match=f"tune= cannot run the kernels of this target.*{other}"):
        lb.compile(PRODUCT, target=f"llvm -mtriple={other}-linux-gnu -mcpu=generic", tune=120)


def test_a_process_that_takes_too_long_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[subprocess.Popen[bytes]] = []
    popen = subprocess.Popen

    def noted(*args: Any, **kwargs: Any) -> subprocess.Popen[bytes]:
        started.append(popen(*args, **kwargs))
        return started[-1]

    monkeypatch.setattr(tuning, "_SERVE", "import time; time.sleep(600)")
    monkeypatch.setattr(subprocess, "Popen", noted)
    assert tuning._timed([], 1, time.monotonic() + 0.2) is None
    assert [each.returncode for each in started] == [-9]


def test_a_kernel_is_measured_on_this_machine(folder: Path) -> None:
    model, x = CASES["product"]
    tuned = lb.compile(model, tune=120)
    (facts,) = facts_of(tuned).values()
    assert sum(text.endswith(" us measured") for text in facts.weighed) > 1
    (file,) = folder.glob("*.tiles")
    assert len(json.loads(file.read_text())["seconds"]) > 1
    assert result(tuned, x) == result(lb.compile(model), x)
