"""Addresses: where an offset before the base has no room in an instruction, accesses share a base that was moved."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest

from landbridge.codegen.llvm.isa import REDUCED, isa_of
from landbridge.codegen.llvm.print_ir import print_functions
from landbridge.instruction_sets.isa import Isa
from landbridge.targets import Target
from tests.codegen.native import build, call, parse

BOARD = isa_of("aarch64", 128, ())

#: ``y[i] = x[i - far] + x[i - near] + x[i - 1]`` for the i that are called for.
BEFORE = """
builtin.module {{
  func.func @before(%x : memref<4096xf32, "global">, %y : memref<4096xf32, "global">, %begin : index, %end : index) {{
    %one = arith.constant 1 : index
    %far = arith.constant {far} : index
    %near = arith.constant {near} : index
    scf.for %i = %begin to %end step %one {{
      %a = arith.subi %i, %far : index
      %b = arith.subi %i, %near : index
      %c = arith.subi %i, %one : index
      %p = memref.load %x[%a] : memref<4096xf32, "global">
      %q = memref.load %x[%b] : memref<4096xf32, "global">
      %r = memref.load %x[%c] : memref<4096xf32, "global">
      %s = arith.addf %p, %q : f32
      %t = arith.addf %s, %r : f32
      memref.store %t, %y[%i] : memref<4096xf32, "global">
    }}
    func.return
  }}
}}
"""

#: ``y[i] = sum(x[k + 7 * i] + x[k + 7 * i + 1] + x[k + 7 * i + 2] for k in range(50))``.
SUMS = """
builtin.module {
  func.func @sums(%x : memref<4096xf32, "global">, %y : memref<500xf32, "global">, %begin : index, %end : index) {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %two = arith.constant 2 : index
    %seven = arith.constant 7 : index
    %many = arith.constant 50 : index
    %none = arith.constant 0.0 : f32
    scf.for %i = %begin to %end step %one {
      %row = arith.muli %i, %seven : index
      %next = arith.addi %row, %one : index
      %last = arith.addi %row, %two : index
      %sum = scf.for %k = %zero to %many step %one iter_args(%before = %none) -> (f32) {
        %a = arith.addi %k, %row : index
        %b = arith.addi %next, %k : index
        %c = arith.addi %k, %last : index
        %p = memref.load %x[%a] : memref<4096xf32, "global">
        %q = memref.load %x[%b] : memref<4096xf32, "global">
        %r = memref.load %x[%c] : memref<4096xf32, "global">
        %s = arith.addf %p, %q : f32
        %t = arith.addf %s, %r : f32
        %after = arith.addf %before, %t : f32
        scf.yield %after : f32
      }
      memref.store %sum, %y[%i] : memref<500xf32, "global">
    }
    func.return
  }
}
"""


def printed(isa: Isa, far: int, near: int) -> str:
    (function,) = parse(BEFORE.format(far=far, near=near)).body.block.ops
    return print_functions([function], isa)  # type: ignore[list-item]


def test_far_offsets_share_a_base_and_near_ones_need_none() -> None:
    assert printed(BOARD, 800, 700).count("call i64 asm") == 1
    assert printed(BOARD, 800, 100).count("call i64 asm") == 2
    assert "asm" not in printed(BOARD, 64, 3)
    assert "asm" not in printed(isa_of("x86_64", 512, ("fma",)), 800, 700)


def test_what_is_read_stays_the_same() -> None:
    board = lambda *given: replace(isa_of(*given), reach_back=BOARD.reach_back)  # noqa: E731
    x = np.random.default_rng(0).standard_normal(4096, dtype=np.float32)
    for far, near in ((800, 700), (1500, 67), (64, 3)):
        with patch("landbridge.codegen.llvm.image.isa_of", board):
            image = build(BEFORE.format(far=far, near=near), Target("llvm"))
        y = np.zeros_like(x)
        call(image, "before", x, y, begin=far, end=4096)
        np.testing.assert_array_equal(y[far:], x[:-far] + x[far - near : -near] + x[far - 1 : -1])


def test_accesses_that_differ_by_a_constant_share_a_base_in_loops_of_sums() -> None:
    (function,) = parse(SUMS).body.block.ops
    assert print_functions([function], BOARD).count("call i64 asm") == 1  # type: ignore[list-item]
    x, y = np.random.default_rng(0).standard_normal(4096, dtype=np.float32), np.zeros(500, np.float32)
    call(build(SUMS, Target("llvm")), "sums", x, y, begin=0, end=500)
    windows = np.lib.stride_tricks.sliding_window_view(x.astype(np.float64), 52)[: 7 * 500 : 7]
    wanted = sum(windows[:, j : j + 50].sum(1) for j in range(3))
    np.testing.assert_allclose(y, wanted, rtol=0, atol=1e-4)  # 150 terms of about 1, each rounded


def strided(rows: int) -> str:
    """A sum over ``rows`` rows of x, whose stride is a word that is loaded."""
    strides = "\n".join(
        f"    %m{r} = arith.constant {r} : index\n    %s{r} = arith.muli %word, %m{r} : index" for r in range(1, rows)
    )
    loads, total = "", "%before"
    for r in range(rows):
        place = "%first" if r == 0 else f"%a{r}"
        if r:
            loads += f"        {place} = arith.addi %first, %s{r} : index\n"
        loads += f'        %x{r} = memref.load %x[{place}] : memref<4096xf32, "global">\n'
        loads += f"        %t{r} = arith.addf {total}, %x{r} : f32\n"
        total = f"%t{r}"
    return f"""
builtin.module {{
  func.func @strided(%x : memref<4096xf32, "global">, %words : memref<1xindex, "global">, %y : memref<99xf32, "global">,
      %begin : index, %end : index) {{
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %many = arith.constant 50 : index
    %none = arith.constant 0.0 : f32
    %word = memref.load %words[%zero] : memref<1xindex, "global">
{strides}
    scf.for %i = %begin to %end step %one {{
      %sum = scf.for %k = %zero to %many step %one iter_args(%before = %none) -> (f32) {{
        %first = arith.addi %i, %k : index
{loads}        scf.yield {total} : f32
      }}
      memref.store %sum, %y[%i] : memref<99xf32, "global">
    }}
    func.return
  }}
}}
"""


@pytest.mark.parametrize(("isa", "rows", "reduced"), [("x86_64", 3, False), ("x86_64", 9, True), ("aarch64", 3, True)])
def test_strength_is_reduced_where_a_loop_has_many_bases(isa: str, rows: int, reduced: bool) -> None:
    (function,) = parse(strided(rows)).body.block.ops
    text = print_functions([function], isa_of(isa, 128, ()))  # type: ignore[list-item]
    assert (REDUCED in text) is reduced


@pytest.mark.parametrize("rows", [3, 9])
def test_sums_over_rows_are_the_same_with_it_and_without(rows: int) -> None:
    x, y = np.random.default_rng(0).standard_normal(4096, dtype=np.float32), np.zeros(99, np.float32)
    call(build(strided(rows), Target("llvm")), "strided", x, np.array([400]), y, begin=0, end=99)
    windows = np.lib.stride_tricks.sliding_window_view(x.astype(np.float64), 50)
    wanted = sum(windows[r * 400 : r * 400 + 99].sum(1) for r in range(rows))
    np.testing.assert_allclose(y, wanted, rtol=0, atol=1e-3)  # 450 terms of about 1, each rounded
