"""Measures the limits of this machine with kernels of our own code generator on a Session's threads."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from landbridge.codegen.generate import generate
from landbridge.executable.executable import Executable
from landbridge.executable.instructions import Call
from landbridge.executable.parts import Function, ModuleImage, TensorSpec, VDevice
from landbridge.ir.dialect import context
from landbridge.ir.parser import IrParser
from landbridge.roofline.limits import Level, MachineLimits
from landbridge.session import Session
from landbridge.targets import Target
from landbridge.targets.machine import cpu_model
from landbridge.tensor import empty

#: Multiply-adds of a step; enough for two pipes six deep, and few enough for 16 registers.
_CHAINS = 12
#: Vectors that a step of a read takes.
_READS = 8
#: Steps of the peak, and bytes that a measurement of bandwidth reads at least: half a millisecond, of which the call's
#: few microseconds are no part.
_STEPS = 200_000
_READ_BYTES = 128 << 20
#: The bytes of a read that is larger than every cache, if the size of the last cache is not known.
_MEMORY = 64 << 20
#: How many bytes a repeated read must exceed a cache to find nothing in it. A server's caches have hundreds of MiB and
#: are shared; reading four times as much would take seconds and gigabytes of memory.
_BEYOND = 64 << 20
ROUNDS = 7
_ITEM = 4  # bytes of an f32


def measured_limits(
    target: Target, threads: int, seconds: Callable[[Executable, int], float] | None = None
) -> MachineLimits:
    """Returns the limits that ``threads`` threads reach with the vectors of ``target``: the best of several rounds of
    each.

    ``seconds``: returns the shortest time of ``ROUNDS`` runs of a program with one input, on as many threads; by
    default it runs here.

    The peak is of f32 multiply-adds in registers, two operations each. A bandwidth is of reading: for a cache, half of
    its capacity, on each thread where the cache is private, and for memory four times the last cache, or ``_BEYOND``
    more than it where that is less. Takes about a second, most of which is LLVM's.
    """
    model = cpu_model(target)
    lanes = model.vector_bytes // _ITEM
    levels = model.levels
    sizes = [size // 2 * (1 if name == "L3" else threads) for name, size in levels]
    last = levels[-1][1] if levels else 0
    sizes.append(max(_MEMORY, min(4 * last, last + _BEYOND)))
    step = _READS * lanes * threads
    counts = [max(1, size // _ITEM // step) * step for size in sizes]
    texts = [_peak_text(lanes, threads), *(_read_text(i, n, lanes, threads) for i, n in enumerate(counts))]
    image = generate(_parsed("builtin.module {\n" + "\n".join(texts) + "\n}"), target)

    def best(kernel: str, count: int) -> float:
        return (seconds or _seconds_here)(_program(image, kernel, count, lanes, threads), threads)

    peak = best("peak", lanes)
    bandwidths = [best(f"read_{i}", n) for i, n in enumerate(counts)]
    found = [
        Level(name, size, _passes(n) * n * _ITEM / seconds)
        for (name, size), n, seconds in zip([*levels, ("memory", 0)], counts, bandwidths, strict=True)
    ]
    return MachineLimits(threads, 2.0 * _CHAINS * lanes * _STEPS * threads / peak, tuple(found))


def _parsed(text: str) -> ModuleOp:
    return IrParser(context(), text).parse_module()


def _passes(count: int) -> int:
    return max(1, _READ_BYTES // (count * _ITEM))


def _program(image: ModuleImage, kernel: str, count: int, lanes: int, threads: int) -> Executable:
    """Returns a program that runs ``kernel`` on ``count`` f32 elements."""
    call = Call(0, kernel, (0, 1), threads)
    inputs, outputs = (TensorSpec("x", (count,), "float32"),), (TensorSpec("y", (threads * lanes,), "float32"),)
    return Executable({"main": Function("main", inputs, outputs, (call,))}, (VDevice("cpu"),), (image,), {})


def _seconds_here(program: Executable, threads: int) -> float:
    session = Session(program, num_threads=threads)
    # Landbridge aligns memory to cache lines; otherwise each read would touch two lines.
    x = empty(program.main.inputs[0].shape, dtype="float32")
    np.asarray(x).fill(0.5)
    session.set_input_zero_copy("x", x)
    spent = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        session.run()
        spent.append(time.perf_counter() - began)
    return min(spent)


def _peak_text(lanes: int, threads: int) -> str:
    """Returns IR of chains ``a = a * x + x`` that stay in registers: with ``x`` below 1 they converge."""
    return _kernel_text("peak", lanes, lanes, threads, _CHAINS, list(_chains(lanes)))


def _chains(lanes: int) -> Iterator[str]:
    vector = f"vector<{lanes}xf32>"
    types = _types(_CHAINS, vector)
    yield f"%s = arith.constant {_STEPS} : index"
    yield f'%x = vector.load %0[%zero] : memref<{lanes}xf32, "global">, {vector}'
    carried = ", ".join(f"%a{i} = %z" for i in range(_CHAINS))
    yield f"{_results(_CHAINS)} = scf.for %k = %zero to %s step %one iter_args({carried}) -> ({types}) {{"
    for i in range(_CHAINS):
        yield f"%m{i} = arith.mulf %a{i}, %x fastmath<contract> : {vector}"
        yield f"%n{i} = arith.addf %m{i}, %x fastmath<contract> : {vector}"
    yield f"scf.yield {', '.join(f'%n{i}' for i in range(_CHAINS))} : {types}"
    yield "}"


def _read_text(number: int, count: int, lanes: int, threads: int) -> str:
    """Returns IR of sums over ``count`` elements, a part of them on each thread, repeatedly."""
    return _kernel_text(f"read_{number}", count, lanes, threads, _READS, list(_sums(count, lanes, threads)))


def _sums(count: int, lanes: int, threads: int) -> Iterator[str]:
    vector, part = f"vector<{lanes}xf32>", count // threads
    types = _types(_READS, vector)
    yield f"%s = arith.constant {_passes(count)} : index"
    yield f"%part = arith.constant {part} : index"
    yield f"%step = arith.constant {_READS * lanes} : index"
    for i in range(_READS):
        yield f"%o{i} = arith.constant {i * lanes} : index"
    yield "%first = arith.muli %t, %part : index"
    yield "%last = arith.addi %first, %part : index"
    outer = ", ".join(f"%p{i} = %z" for i in range(_READS))
    yield f"{_results(_READS)} = scf.for %k = %zero to %s step %one iter_args({outer}) -> ({types}) {{"
    inner = ", ".join(f"%a{i} = %p{i}" for i in range(_READS))
    names = ", ".join(f"%q{i}" for i in range(_READS))
    yield f"{names} = scf.for %j = %first to %last step %step iter_args({inner}) -> ({types}) {{"
    for i in range(_READS):
        yield f"%i{i} = arith.addi %j, %o{i} : index"
        yield f'%v{i} = vector.load %0[%i{i}] : memref<{count}xf32, "global">, {vector}'
        yield f"%n{i} = arith.addf %a{i}, %v{i} : {vector}"
    yield f"scf.yield {', '.join(f'%n{i}' for i in range(_READS))} : {types}"
    yield "}"
    yield f"scf.yield {names} : {types}"
    yield "}"


def _kernel_text(name: str, count: int, lanes: int, threads: int, chains: int, body: list[str]) -> str:
    """Returns a lowered kernel whose tasks compute ``chains`` vectors ``%r``, and write their sum."""
    vector = f"vector<{lanes}xf32>"
    lines = [
        f'func.func @{name}(%0: memref<{count}xf32, "global">, %1: memref<{threads * lanes}xf32, "global">, '
        f"%begin: index, %end: index) attributes {{lb.tasks = {threads} : i64}} {{",
        "%zero = arith.constant 0 : index",
        "%one = arith.constant 1 : index",
        f"%lanes = arith.constant {lanes} : index",
        f"%z = arith.constant dense<0.000000e+00> : {vector}",
        "scf.for %t = %begin to %end step %one {",
        *body,
        f"%t0 = arith.addf %r0, %r1 : {vector}",
        *(f"%t{i - 1} = arith.addf %t{i - 2}, %r{i} : {vector}" for i in range(2, chains)),
        "%at = arith.muli %t, %lanes : index",
        f'vector.store %t{chains - 2}, %1[%at] : memref<{threads * lanes}xf32, "global">, {vector}',
        "}",
        "func.return",
        "}",
    ]
    return "\n".join(lines)


def _results(count: int) -> str:
    return ", ".join(f"%r{i}" for i in range(count))


def _types(count: int, vector: str) -> str:
    return ", ".join([vector] * count)
