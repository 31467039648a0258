"""The register of floats in runs: what every thread's is inside of kernels, and the caller's afterwards."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest

from landbridge.codegen.cpu_runtime.object_code import runtime_object
from landbridge.codegen.link import link_objects
from landbridge.codegen.llvm.compile import compile_ir
from landbridge.codegen.llvm.machine import Machine
from landbridge.executable import abi
from landbridge.executable.parts import CodeImage
from landbridge.vm.code_image import LoadedImage, load_image

KEEP, FLUSH = 0x1F80, 0x9FC0
#: The lower six bits say what has happened, which kernels may change as they like.
SETTINGS = ~0x3F
TASKS = 64

#: ``note`` writes the register into the element of each task, slowly enough for others to take some, and sets flags.
#: ``around`` calls ``run(pool, null, records, count)`` with a register of the caller's and returns what it is then.
SOURCE = """
declare void @llvm.x86.sse.stmxcsr(ptr)
declare void @llvm.x86.sse.ldmxcsr(ptr)
define void @note(ptr %args, i64 %begin, i64 %end) {
entry:
  %now = alloca i32
  %out = load ptr, ptr %args
  br label %head
head:
  %t = phi i64 [ %begin, %entry ], [ %t1, %done ]
  %more = icmp slt i64 %t, %end
  br i1 %more, label %body, label %exit
body:
  call void @llvm.x86.sse.stmxcsr(ptr %now)
  %value = load i32, ptr %now
  %at = getelementptr i32, ptr %out, i64 %t
  store i32 %value, ptr %at
  br label %spin
spin:
  %n = phi i32 [ 0, %body ], [ %n1, %spin ]
  %x = load volatile float, ptr %at
  %y = fdiv float 1.0, %x
  store volatile float %y, ptr %now
  %n1 = add i32 %n, 1
  %again = icmp slt i32 %n1, 2000
  br i1 %again, label %spin, label %done
done:
  %t1 = add i64 %t, 1
  br label %head
exit:
  ret void
}
define i32 @around(ptr %run, ptr %a, ptr %b, i64 %c, i32 %callers) {
  %before = alloca i32
  %given = alloca i32
  %after = alloca i32
  call void @llvm.x86.sse.stmxcsr(ptr %before)
  store i32 %callers, ptr %given
  call void @llvm.x86.sse.ldmxcsr(ptr %given)
  %r = call i64 %run(ptr %a, ptr null, ptr %b, i64 %c)
  call void @llvm.x86.sse.stmxcsr(ptr %after)
  call void @llvm.x86.sse.ldmxcsr(ptr %before)
  %found = load i32, ptr %after
  ret i32 %found
}
"""
#: Registers that a caller may come with: the default, flags, denormals flushed, other roundings, traps.
CALLERS = [KEEP, KEEP | 0x21, FLUSH, FLUSH | 0x3F, KEEP | 0x2000, KEEP | 0x6000, KEEP & ~0x0200]


@cache
def _image() -> CodeImage:
    made = compile_ir(SOURCE, Machine("x86_64-unknown-linux-gnu", "x86-64", ""))
    linked = link_objects([runtime_object("x86_64"), made])
    return CodeImage("x86_64", linked.code, linked.symbols, linked.imports, linked.relocations)


class Noted:
    """The kernel ``note`` called by records of the kinds ``kinds``, and what it has noted for each."""

    def __init__(self, image: LoadedImage, kinds: Sequence[int]) -> None:
        self._image = image
        self.found = np.zeros((len(kinds), TASKS), np.int32)
        self._args = [(ctypes.c_void_p * 1)(row.ctypes.data) for row in self.found]
        kernel = image.address("note")
        words = [(kind, kernel, ctypes.addressof(a), TASKS) for kind, a in zip(kinds, self._args, strict=True)]
        self._records = np.array(words, np.int64)

    def run(self, pool: int | None, callers: int) -> int:
        """The caller's register after a run that began with ``callers``."""
        kinds = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int32]
        around = ctypes.CFUNCTYPE(ctypes.c_int32, *kinds)(self._image.address("around"))
        run = self._image.address(abi.RUN_SYMBOL)
        return int(around(run, pool, self._records.ctypes.data, len(self._records), callers))

    @property
    def settings(self) -> list[set[int]]:
        """What was set while each record's kernel ran, on any thread."""
        return [set((row & SETTINGS).tolist()) for row in self.found]


class Pools:
    """Pools of the image."""

    def __init__(self, image: LoadedImage) -> None:
        create: Any = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(
            image.address(abi.POOL_CREATE_SYMBOL)
        )
        self.create = lambda threads: create(threads, 0)
        self.destroy: Any = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(image.address(abi.POOL_DESTROY_SYMBOL))


@pytest.mark.sample(1)
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_each_record_says_what_every_thread_does(threads: int) -> None:
    image = load_image(_image())
    pools = Pools(image)
    pool = pools.create(threads)
    kinds = [abi.RECORD_CALL, abi.RECORD_FLUSHING_CALL, abi.RECORD_FLUSHING_CALL, abi.RECORD_CALL]
    want = [{FLUSH if kind == abi.RECORD_FLUSHING_CALL else KEEP} for kind in kinds]
    try:
        for iteration in range(60):
            noted = Noted(image, kinds)
            callers = CALLERS[iteration % len(CALLERS)]
            assert noted.run(pool, callers) == callers
            assert noted.settings == want
    finally:
        pools.destroy(pool)


@pytest.mark.parametrize("callers", CALLERS)
@pytest.mark.parametrize("kind", [abi.RECORD_CALL, abi.RECORD_FLUSHING_CALL])
def test_the_caller_keeps_its_register_flags_and_all(kind: int, callers: int) -> None:
    noted = Noted(load_image(_image()), [kind])
    assert noted.run(None, callers) == callers
    assert noted.settings == [{KEEP if kind == abi.RECORD_CALL else FLUSH}]


def test_no_call_touches_nothing() -> None:
    noted = Noted(load_image(_image()), [])
    assert [noted.run(None, callers) for callers in CALLERS] == CALLERS


def test_runs_of_either_kind_share_a_pool() -> None:
    """Whoever finds it busy runs alone; a worker goes from one run's setting to the other's."""
    image = load_image(_image())
    pools = Pools(image)
    pool = pools.create(3)
    wrong: list[object] = []

    def work(kind: int, want: int, callers: int) -> None:
        for _ in range(40):
            noted = Noted(image, [kind] * 3)
            after = noted.run(pool, callers)
            if after != callers or noted.settings != [{want}] * 3:
                wrong.append((kind, after, noted.settings))

    plans = [(abi.RECORD_CALL, KEEP, CALLERS[3]), (abi.RECORD_FLUSHING_CALL, FLUSH, CALLERS[4])] * 2
    threads = [threading.Thread(target=work, args=plan) for plan in plans]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    pools.destroy(pool)
    assert not wrong
