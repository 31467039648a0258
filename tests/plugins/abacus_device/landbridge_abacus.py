"""A device with a code generator of its own: hidden memory, rows, and kernels in a notation that nobody else reads.

Its code is one statement a line, in the tokens of the lowered loops; the device walks them one element at a time. It
shares nothing with the generators of Landbridge but the form "loops".
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any

import numpy as np
from xdsl.dialects import arith, func, linalg, memref, scf
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, FloatAttr, IntegerAttr, ModuleOp
from xdsl.ir import Operation, SSAValue

from landbridge.codegen.loops import LoopFunction, loop_functions
from landbridge.device.api import DEVICE_API_VERSION, Device, DeviceAPI, Event, NdSpace, Region, Space, Stream
from landbridge.device.attr import DeviceAttr
from landbridge.device.protocols import HostMemory, RowTable
from landbridge.dtypes import numpy_dtype
from landbridge.errors import CodegenError, DeviceError, InputError, OutOfMemoryError
from landbridge.executable.device_image import DeviceImage
from landbridge.executable.parts import ModuleImage
from landbridge.ir.types import dtype_of
from landbridge.memory_kind import MemoryKind, normalize_scope
from landbridge.targets import Target, TargetKind

FORMAT = "abacus beads, 1"
CAPACITY = 16 << 20

FLAT = MemoryKind("global", "none", coherent=False, coherence_granule=1, alignment=16, capacity=CAPACITY)
ROWS = MemoryKind("global.rows", "none", coherent=False, coherence_granule=1, alignment=16, ndim=2)

ABACUS = TargetKind(
    name="abacus",
    doc="a device that counts",
    options=(),
    device_types=("abacus",),
    form="loops",
    memory=lambda options: (FLAT, ROWS),
)

# ---- the code generator

_ARITHMETIC: dict[str, Callable[..., Any]] = {
    "arith.addf": lambda a, b: a + b,
    "arith.subf": lambda a, b: a - b,
    "arith.mulf": lambda a, b: a * b,
    "arith.divf": lambda a, b: a / b,
    "arith.maximumf": np.maximum,
    "arith.minimumf": np.minimum,
    "arith.addi": lambda a, b: a + b,
    "arith.muli": lambda a, b: a * b,
    "arith.divui": lambda a, b: a // b,
    "arith.remui": lambda a, b: a % b,
    "arith.floordivsi": lambda a, b: a // b,
    "arith.minsi": min,
    "arith.maxsi": max,
    "arith.andi": lambda a, b: a & b,
    "arith.select": lambda c, a, b: a if c else b,
    "math.absf": np.abs,
}
#: Of integers, by the number of the predicate: eq, ne, slt, sle, sgt, sge, ult, and on as if unsigned.
_COMPARED: tuple[Callable[[int, int], bool], ...] = (
    lambda a, b: a == b,
    lambda a, b: a != b,
    lambda a, b: a < b,
    lambda a, b: a <= b,
    lambda a, b: a > b,
    lambda a, b: a >= b,
    lambda a, b: 0 <= a < b,
)
_STRUCTURE = (arith.ConstantOp, memref.AllocOp, func.ReturnOp, linalg.ops.GenericOp, linalg.ops.FillOp)


class Generator:
    """Prints plain loops; declines what the device cannot count."""

    def __call__(self, module: ModuleOp, target: Target) -> ModuleImage:
        functions = loop_functions(module)
        code = {f.identifier: {"args": len(f.buffers), "body": _Printer(f).lines} for f in functions}
        image = DeviceImage(FORMAT, json.dumps(code).encode(), {f.name: f.sequence for f in functions})
        return ModuleImage(target.to_json(), image)

    def supports(self, prim: func.FuncOp, target: Target) -> str | None:
        for op in prim.body.walk():
            known = op.name in _ARITHMETIC or isinstance(op, (*_STRUCTURE, linalg.ops.YieldOp))
            if not known and op.name != "lb.pad":
                return f"an abacus has no {op.name}"
        return None


generate = Generator()


class _Printer:
    """The lines of one function: ``[operation, results, operands, anything else]``, blocks as lists of lines."""

    def __init__(self, function: LoopFunction) -> None:
        self._names: dict[SSAValue, int] = {}
        self._dtypes = [dtype_of(buffer.type) for buffer in function.buffers]
        for buffer in function.buffers:
            self._name(buffer)
        self.lines = [["buffers", [], [], self._dtypes], *map(self._line, function.operations)]

    def _name(self, value: SSAValue) -> int:
        return self._names.setdefault(value, len(self._names))

    def _block(self, ops: Sequence[Operation]) -> list[Any]:
        return [self._line(op) for op in ops]

    def _line(self, op: Operation) -> list[Any]:
        more: Any = None
        if isinstance(op, arith.ConstantOp):
            more = self._constant(op)
        elif isinstance(op, scf.ForOp):
            body = op.body.block
            more = [[self._name(a) for a in body.args], self._block(list(body.ops))]
        elif isinstance(op, scf.IfOp):
            more = [self._block(list(r.block.ops)) if r.blocks else [] for r in (op.true_region, op.false_region)]
        elif isinstance(op, arith.CmpiOp):
            more = op.predicate.value.data
        elif op.name not in (*_ARITHMETIC, "memref.load", "memref.store", "scf.yield"):
            raise CodegenError(f"an abacus has no {op.name}")
        return [op.name, [self._name(r) for r in op.results], [self._name(v) for v in op.operands], more]

    def _constant(self, op: arith.ConstantOp) -> list[Any]:
        value = op.value
        if isinstance(value, FloatAttr):
            return [dtype_of(value.type), repr(value.value.data)]
        if isinstance(value, IntegerAttr) and not isinstance(value, DenseIntOrFPElementsAttr):
            return ["index", str(value.value.data)]
        raise CodegenError(f"an abacus has no constant {value}")


# ---- the device


class AbacusDeviceAPI(DeviceAPI):
    """One instance. Flat memory in one piece each, rows each in a piece of its own."""

    name = "abacus"
    api_version = DEVICE_API_VERSION

    def __init__(self) -> None:
        self._pieces: dict[int, np.ndarray[Any, Any]] = {}
        self._values = count(1)
        #: The functions launched, in order.
        self.launched: list[str] = []

    def count(self) -> int:
        return 1

    def get_attr(self, index: int, attr: DeviceAttr) -> object | None:
        return {DeviceAttr.PRODUCT_NAME: "abacus"}.get(attr)

    def memory_kinds(self, index: int) -> Mapping[str, MemoryKind]:
        return {"global": FLAT, "global.rows": ROWS}

    def alloc_data_space(self, index: int, nbytes: int, alignment: int, scope: str, type_hint: str | None) -> Space:
        if normalize_scope(scope) != "global":
            raise InputError(f"abacus: scope {scope!r} is not flat, or is not; legal: global")
        return Space(Device(self, index), "global", self._piece(nbytes))

    def alloc_data_space_nd(
        self, index: int, physical_shape: Sequence[int], dtype: str, scope: str, alignment: int
    ) -> NdSpace:
        if normalize_scope(scope) != "global.rows" or len(physical_shape) != 2 or min(physical_shape) < 0:
            raise InputError(f"abacus: {list(physical_shape)} in scope {scope!r}; legal: two extents in global.rows")
        rows, columns = physical_shape
        nbytes = columns * numpy_dtype(dtype).itemsize
        handles = tuple(self._piece(nbytes) for _ in range(rows))
        return NdSpace(Device(self, index), "global.rows", None, tuple(physical_shape), nbytes, rows=handles)

    def free_data_space(self, space: Space) -> None:
        for handle in space.rows or () if isinstance(space, NdSpace) else (space.handle,):
            del self._pieces[handle]

    def can_copy(self, src: Space, dst: Space) -> bool:
        return all(s.device.api is self or s.device.capability(HostMemory) is not None for s in (src, dst))

    def copy_data_from_to(
        self, src: Region, dst: Region, nbytes: int, stream: Stream | None, keep_alive: object
    ) -> Event | None:
        source, target = self._bytes(src, nbytes), self._bytes(dst, nbytes)
        if np.shares_memory(source, target) and source.ctypes.data != target.ctypes.data:
            raise InputError(f"abacus: a copy of {nbytes} bytes overlaps its source; give disjoint ranges")
        target[:] = source
        return None

    def module_formats(self, index: int) -> Sequence[str]:
        return (FORMAT,)

    def load_module(self, index: int, binary: bytes, format: str, options: str = "") -> object:
        if format != FORMAT:
            raise InputError(f"abacus loads {FORMAT!r}, not {format!r}")
        return json.loads(binary)

    def launch(
        self,
        module: object,
        function: str,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        args: Sequence[Region | RowTable | int | float],
        stream: Stream | None,
    ) -> Event | None:
        assert isinstance(module, dict)
        if function not in module:
            raise DeviceError(f"the abacus module has no {function!r}; it has: {', '.join(module)}")
        known = module[function]
        if len(args) != known["args"]:
            raise DeviceError(f"abacus: {function!r} takes {known['args']} buffers, {len(args)} were given")
        self.launched.append(function)
        (_, _, _, dtypes), *lines = known["body"]
        values: dict[int, Any] = {}
        for number, (arg, dtype) in enumerate(zip(args, dtypes, strict=True)):
            kind = numpy_dtype(dtype)
            rows = arg.rows if isinstance(arg, RowTable) else (arg,)
            values[number] = [self._elements(row, kind) for row in rows if isinstance(row, Region)]
        with np.errstate(all="ignore"):
            _run(lines, values)
        return None

    def _piece(self, nbytes: int) -> int:
        if nbytes > CAPACITY:
            raise OutOfMemoryError(f"abacus: {nbytes} bytes requested of {CAPACITY}")
        handle = next(self._values)
        self._pieces[handle] = np.full(nbytes, 0xA5, np.uint8)
        return handle

    def _bytes(self, region: Region, nbytes: int) -> np.ndarray[Any, Any]:
        space, start = region.space, region.byte_offset
        if space.device.api is self:
            return self._pieces[space.handle][start : start + nbytes]
        host = space.device.capability(HostMemory)
        if host is None:
            raise InputError(f"abacus copies no memory of {space.device}; ask can_copy first")
        address = host.host_pointer(space) + start
        return np.frombuffer((np.ctypeslib.ctypes.c_uint8 * nbytes).from_address(address), np.uint8)

    def _elements(self, region: Region, kind: np.dtype[Any]) -> np.ndarray[Any, Any]:
        piece = self._pieces[region.space.handle][region.byte_offset :]
        return piece[: len(piece) // kind.itemsize * kind.itemsize].view(kind)


def _run(lines: Sequence[Any], values: dict[int, Any]) -> list[Any]:
    """Do ``lines``; what the last one yields."""
    for name, results, operands, more in lines:
        given = [values[o] for o in operands]
        if name == "arith.constant":
            dtype, text = more
            values[results[0]] = int(text) if dtype == "index" else numpy_dtype(dtype).type(float(text))
        elif name == "memref.load":
            values[results[0]] = _place(given[0], given[1:])[0]
        elif name == "memref.store":
            _place(given[1], given[2:])[0] = given[0]
        elif name == "scf.for":
            (counter, *carried), body = more
            retained = given[3:]
            for i in range(given[0], given[1], given[2]):
                values[counter] = i
                values.update(zip(carried, retained, strict=True))
                retained = _run(body, values)
            values.update(zip(results, retained, strict=True))
        elif name == "scf.if":
            values.update(zip(results, _run(more[0 if given[0] else 1], values), strict=True))
        elif name == "scf.yield":
            return given
        elif name == "arith.cmpi":
            values[results[0]] = _COMPARED[more](*given)
        else:
            values[results[0]] = _ARITHMETIC[name](*given)
    return []


def _place(rows: Sequence[np.ndarray[Any, Any]], indices: Sequence[int]) -> np.ndarray[Any, Any]:
    """The element at ``indices``: its number in flat memory, or a row and a column; none of them from the end."""
    row, column = indices if len(indices) == 2 else (0, indices[0])
    if min(row, column) < 0 or row >= len(rows) or column >= math.prod(rows[row].shape):
        raise DeviceError(f"abacus: no element {list(indices)} in {len(rows)} rows")
    return rows[row][column : column + 1]
