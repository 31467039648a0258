"""CPU kernels that test their accesses: planted ones are found where AddressSanitizer finds them, models are clean."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects import func

from landbridge.codegen.c import print_source
from landbridge.codegen.functions import c_names
from landbridge.codegen.registry import codegen_for
from landbridge.executable.access_report import report_word, report_words
from landbridge.passes.lower.checked import guard_accesses
from landbridge.targets import Target
from landbridge.vm.code_image import LoadedImage, load_image
from tests.codegen.native import call, parse
from tests.sanitizer.planted import EXTENT, PLANTED, symbol, text
from tests.selection.installed import program

PLACES = (-9, -1, 0, EXTENT - 8, EXTENT - 5, EXTENT - 3, EXTENT - 1, EXTENT)
WORDS = report_words(3)
#: Room around each buffer, so that a kernel which is not stopped harms nobody but its own arrays.
CAPACITY = 16
MAIN = """
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
typedef void kernel(void **, int64_t, int64_t);
int main(void) {
  kernel *const kernels[] = {%s};
  const size_t sizes[] = {%s};
  const int64_t places[] = {%s};
  for (size_t k = 0; k < sizeof kernels / sizeof *kernels; ++k)
    for (size_t p = 0; p < sizeof places / sizeof *places; ++p) {
      int status = 0;
      if (!fork()) {
        int64_t at = places[p];
        void *args[] = {&at, calloc(64, sizes[k]), calloc(64, sizes[k])};
        kernels[k](args, 0, 1);
        _exit(0);
      }
      wait(&status);
      printf("%%d\\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
      fflush(stdout);
    }
}
"""
FOUND = 77
BYTES = {"f32": 4, "i8": 1, "i1": 1, "f16": 2, "bf16": 2, "f64": 8, "i64": 8}


@pytest.fixture(scope="module", params=["llvm", "c", "c -cflags=-DLB_PORTABLE"], ids=["llvm", "c", "portable-c"])
def checked(request: pytest.FixtureRequest) -> LoadedImage:
    """The planted kernels, each with tests and a report."""
    module = parse("\n".join(text(name, f"memref<{WORDS}xi64>") for name in PLANTED))
    for function in module.body.block.ops:
        assert isinstance(function, func.FuncOp)
        guard_accesses(function)
    target = Target(request.param)
    return load_image(codegen_for(target.kind)(module, target).image)


@pytest.mark.sample(19)
@pytest.mark.parametrize("name", PLANTED)
def test_what_lies_outside_is_reported_and_not_done(checked: LoadedImage, name: str) -> None:
    planted = PLANTED[name]
    for at in PLACES:
        item = BYTES[planted.dtype]
        x, y = (np.full((EXTENT + 2 * CAPACITY) * item, 1, np.uint8) for _ in range(2))
        report, retained = np.zeros(WORDS, np.int64), y.copy()
        inner = [a[CAPACITY * item : -CAPACITY * item] for a in (x, y)]
        call(checked, symbol(name), np.array([at], np.int64), *inner, report)
        outside = planted.outside(at)
        found = {int(word): int(report[word]) >> 1 for word in np.flatnonzero(report)}
        if name == "in a loop" and outside is not None:  # each iteration reports, and the last report is kept
            outside = [at + e for e in planted.elements if not 0 <= at + e < EXTENT][-1]
        assert found == ({} if outside is None else {report_word(planted.operand, planted.reads): outside}), at
        for around in (slice(None, CAPACITY * item), slice(-CAPACITY * item, None)):
            assert np.array_equal(y[around], retained[around])
        if outside is not None and not planted.reads:
            assert np.array_equal(y, retained)


TWO_AXES = f"""
func.func @two(%at: memref<2xi64>, %x: memref<4x8xf32>, %y: memref<1xf32>, %report: memref<{WORDS}xi64>,
    %begin: index, %end: index) {{{{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = memref.load %at[%c0] : memref<2xi64>
  %b = memref.load %at[%c1] : memref<2xi64>
  %i = arith.index_cast %a : i64 to index
  %j = arith.index_cast %b : i64 to index
  {{access}}
  memref.store %v, %y[%c0] : memref<1xf32>
  func.return
}}}}"""


@pytest.mark.parametrize("target", ["llvm", "c"])
def test_each_axis_is_tested_by_itself(target: str) -> None:
    """An index past a row is outside though the buffer has the byte; the report counts elements of the whole."""
    module = parse(TWO_AXES.format(access="%v = memref.load %x[%i, %j] : memref<4x8xf32>"))
    (function,) = module.body.block.ops
    assert isinstance(function, func.FuncOp)
    guard_accesses(function)
    image = load_image(codegen_for(Target(target).kind)(module, Target(target)).image)
    x = np.arange(1, 33, dtype=np.float32).reshape(4, 8)
    for i, j in ((0, 0), (3, 7), (4, 0), (-1, 7), (-1, 0), (0, 8), (2, 11), (1, -1), (5, 9)):
        y, report = np.full(1, 99, np.float32), np.zeros(WORDS, np.int64)
        call(image, "two", np.array([i, j], np.int64), x, y, report)
        inside = 0 <= i < 4 and 0 <= j < 8
        found = {int(word): int(report[word]) for word in np.flatnonzero(report)}
        assert found == ({} if inside else {report_word(1, True): 2 * (8 * i + j) + 1}), (i, j)
        assert y[0] == (x[i, j] if inside else 0)


def test_address_sanitizer_agrees(tmp_path: Path) -> None:
    """The same kernels without tests, in C, each in a process of its own."""
    module = parse("\n".join(map(text, PLANTED)))
    names = c_names(op for op in module.body.block.ops if isinstance(op, func.FuncOp))
    columns = [
        [names[symbol(name)] for name in PLANTED],
        [str(BYTES[planted.dtype]) for planted in PLANTED.values()],
        [str(at) for at in PLACES],
    ]
    (tmp_path / "planted.c").write_text(print_source(module) + MAIN % tuple(map(", ".join, columns)))
    made = str(tmp_path / "planted")
    options = ["-O1", "-fsanitize=address", "-DLB_PORTABLE", "-o", made, str(tmp_path / "planted.c"), "-lm"]
    subprocess.run([program("gcc", "debian"), *options], check=True)
    requested = f"exitcode={FOUND}:symbolize=0:detect_leaks=0"
    reported = subprocess.run(
        [made], env={"ASAN_OPTIONS": requested}, capture_output=True, text=True, timeout=120, check=True
    )
    theirs = [int(line) for line in reported.stdout.split()]
    ours = [0 if p.outside(at) is None else FOUND for p in PLANTED.values() for at in PLACES]
    assert theirs == ours
