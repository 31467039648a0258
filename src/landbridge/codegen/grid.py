"""Lowered functions of grid targets in the form for printers: each launch is a kernel with its buffers."""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.dialects import arith, func, gpu, memref, vector
from xdsl.dialects.builtin import IntegerAttr, MemRefType, ModuleOp
from xdsl.ir import Block, Operation, SSAValue

from landbridge.codegen.functions import identified_functions
from landbridge.codegen.layout import is_image
from landbridge.errors import CodegenError
from landbridge.executable.device_image import Launch, LaunchSequence
from landbridge.ir.kernel_attributes import is_in_place
from landbridge.ir.types import element_count, nbytes_of, shape_of
from landbridge.records import record

_INT_END = 1 << 31


@record(frozen=True)
class GridKernel:
    """One launch of a lowered function.

    ``buffers`` are the memrefs from outside that it uses: its arguments, in order. ``stored`` are those that it writes.
    ``body`` is its code: a block that ends with ``gpu.terminator`` and whose arguments are not used. ``in_place``:
    buffers may overlap. ``exchanged`` are buffers in which a work-item may read what another wrote: those that a kernel
    with barriers both reads and writes, or all if buffers may overlap.
    """

    name: str
    buffers: tuple[SSAValue, ...]
    stored: frozenset[SSAValue]
    body: Block
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    in_place: bool
    exchanged: frozenset[SSAValue] = frozenset()

    @property
    def is_large(self) -> bool:
        """Returns whether an element of a buffer, or a work-item, has an index that exceeds a signed 32-bit integer."""
        counts = [element_count(shape_of(b.type)) for b in self.buffers]
        items = element_count(self.grid) * element_count(self.block)
        return max([items, *counts]) >= _INT_END


@record(frozen=True)
class GridFunction:
    """A lowered function: its kernels and the launches of them."""

    name: str
    kernels: tuple[GridKernel, ...]
    sequence: LaunchSequence


def grid_functions(module: ModuleOp) -> list[GridFunction]:
    """Returns the functions of ``module``, their kernels under distinct C identifiers; raises CodegenError."""
    return [grid_function(function, identifier) for function, identifier in identified_functions(module)]


def grid_function(function: func.FuncOp, identifier: str) -> GridFunction:
    """Returns the launches of ``function``; its kernels are named ``identifier`` with a number.

    Raises CodegenError for a function not in the form of ``landbridge.passes.lower.grid``.
    """
    if len(function.body.blocks) != 1:
        raise CodegenError(f"function {function.sym_name.data!r}: its body must be one block of launches")
    entry = function.body.block
    indices: dict[SSAValue, int] = {a: i for i, a in enumerate(entry.args)}
    scratch: list[int] = []
    kernels: list[GridKernel] = []
    for op in entry.ops:
        if isinstance(op, memref.AllocOp):
            indices[op.memref] = len(indices)
            scratch.append(nbytes_of(op.memref.type))
        elif isinstance(op, gpu.LaunchOp):
            kernels.append(_kernel(op, f"{identifier}_{len(kernels)}", indices, is_in_place(function)))
        elif not isinstance(op, arith.ConstantOp | func.ReturnOp):
            raise CodegenError(f"{op.name!r} outside of launches; legal: arith.constant, memref.alloc, gpu.launch")
    launches = tuple(Launch(k.name, tuple(indices[b] for b in k.buffers), k.grid, k.block) for k in kernels)
    images = tuple(i for i, a in enumerate(entry.args) if isinstance(a.type, MemRefType) and is_image(a.type))
    sequence = LaunchSequence(len(entry.args), tuple(scratch), launches, images)
    return GridFunction(function.sym_name.data, tuple(kernels), sequence)


def _kernel(op: gpu.LaunchOp, name: str, indices: dict[SSAValue, int], in_place: bool) -> GridKernel:
    used: set[SSAValue] = set()
    stored: set[SSAValue] = set()
    loaded: set[SSAValue] = set()
    waits = False
    for inner in op.body.walk():
        found = [v for v in inner.operands if v in indices]
        used.update(found)
        if _stores(inner):
            stored.update(found)
        else:
            loaded.update(found)
        waits = waits or isinstance(inner, gpu.BarrierOp)
    exchanged = used if in_place else stored & loaded
    buffers = tuple(sorted(used, key=indices.__getitem__))
    grid = _shape((op.gridSizeX, op.gridSizeY, op.gridSizeZ))
    block = _shape((op.blockSizeX, op.blockSizeY, op.blockSizeZ))
    return GridKernel(
        name,
        buffers,
        frozenset(stored),
        op.body.block,
        grid,
        block,
        in_place,
        exchanged=frozenset(exchanged) if waits else frozenset(),
    )


def _stores(op: Operation) -> bool:
    return op.name in ("memref.store", "vector.store", "vector.maskedstore")


def _shape(sizes: Iterable[SSAValue]) -> tuple[int, int, int]:
    x, y, z = (_constant(v) for v in sizes)
    return x, y, z


def _constant(value: SSAValue) -> int:
    owner = value.owner
    if isinstance(owner, arith.ConstantOp) and isinstance(owner.value, IntegerAttr):
        return owner.value.value.data
    raise CodegenError(f"a launch shape is computed by {owner}; it must be a constant")


def is_written(kernel: GridKernel, image: SSAValue) -> bool:
    """Returns whether ``kernel`` writes ``image``, and not reads it; raises CodegenError where it does both."""
    loads = (memref.LoadOp, vector.LoadOp, vector.MaskedLoadOp)
    is_read = any(isinstance(op, loads) and op.operands[0] is image for op in kernel.body.walk())
    if is_read and image in kernel.stored:
        raise CodegenError(f"kernel {kernel.name!r} reads and writes {image.type}; an image is for one of both")
    return image in kernel.stored


def is_local(ty: object) -> bool:
    """Returns whether memory of type ``ty`` is shared by the work-items of a workgroup."""
    return isinstance(ty, MemRefType) and getattr(ty.memory_space, "data", None) == "local"
