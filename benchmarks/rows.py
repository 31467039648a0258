"""What a kernel pays for operands in rows, through row tables, compared with the same kernel on flat memory.

python benchmarks/rows.py
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import partial
from random import Random

import numpy as np
from measure import interleaved, write
from xdsl.dialects.builtin import ModuleOp

from landbridge.codegen.registry import codegen_for
from landbridge.ir.prim_builder import PrimBuilder
from landbridge.ir.types import VDeviceAttr, tensor_type
from landbridge.passes.lower import lower_prim, machine_of
from landbridge.targets import Target
from landbridge.testing.sim_scratch_memory import table
from landbridge.vm.code_image import load_image

Shape = tuple[int, int]


def add(p: PrimBuilder, shapes: Sequence[Shape]) -> None:
    """``z = x + y``."""
    same = [(buffer, lambda i, j: (i, j)) for buffer in (*p.inputs, *p.outputs)]
    p.generic("pp", shapes[0], same[:2], same[2:], lambda s, x, y: x + y)


def product(p: PrimBuilder, shapes: Sequence[Shape]) -> None:
    """``z = x @ y``."""
    (m, k), (_, n), _ = shapes
    ins = [(p.inputs[0], lambda i, j, r: (i, r)), (p.inputs[1], lambda i, j, r: (r, j))]
    p.generic("ppr", [m, n, k], ins, [(p.outputs[0], lambda i, j, r: (i, j))], lambda s, c, a, b: c + a * b, init=0.0)


def kernel(build: Callable[[PrimBuilder, Sequence[Shape]], None], shapes: Sequence[Shape], in_rows: bool) -> partial:
    """A call of the compiled kernel, all its tasks, on operands of its own."""
    target = Target("llvm")
    place = VDeviceAttr.of(0, "global.vtcm", (1,)) if in_rows else VDeviceAttr.of()
    types = [tensor_type(shape, "float32", place) for shape in shapes]
    prim = PrimBuilder("kernel", types[:2], types[2:])
    build(prim, shapes)
    lowered = lower_prim(prim.finish(), machine_of(target))
    image = load_image(codegen_for("llvm")(ModuleOp([lowered]), target).image)
    held, addresses = [image], []
    for rows, columns in shapes:
        if in_rows:
            handle = table("rows", rows, 4 * columns, 0, 64, Random(0))
            words = (ctypes.c_uint64 * rows)(*(row.block.address for row in handle.rows))
            for row in handle.rows:
                row.block.data[:] = 0
            held += [handle, words]
            addresses.append(ctypes.addressof(words))
        else:
            held.append(np.ones((rows, columns), np.float32))
            addresses.append(held[-1].ctypes.data)
    arguments = (ctypes.c_void_p * len(addresses))(*addresses)
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(image.address("kernel"))
    call = partial(function, ctypes.addressof(arguments), 0, lowered.attributes["lb.tasks"].value.data)
    call.held = [*held, arguments]
    return call


def main() -> None:
    cases: list[tuple[str, Callable[[PrimBuilder, Sequence[Shape]], None], list[Shape]]] = [
        ("add, 256 rows of 256", add, [(256, 256)] * 3),
        ("add, 1024 rows of 1000", add, [(1024, 1000)] * 3),
        ("add, 4096 rows of 16 (one vector)", add, [(4096, 16)] * 3),
        ("product, 128 x 128 x 128", product, [(128, 128)] * 3),
        ("product, 64 x 256 x 512", product, [(64, 512), (512, 256), (64, 256)]),
    ]
    rows = []
    for name, build, shapes in cases:
        spent = interleaved(
            {key: kernel(build, shapes, key == "rows") for key in ("flat", "rows")}, rounds=300, calls=5
        )
        flat, scattered = spent["flat"] * 1e6, spent["rows"] * 1e6
        rows.append((name, flat, scattered, scattered / flat))
    write("rows", ("float32 kernel on one thread", "flat, us", "rows, us", "ratio"), rows)


if __name__ == "__main__":
    main()
