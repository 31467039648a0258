"""Lowered functions of grid targets in the form for printers: each launch is a kernel with its buffers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xdsl.dialects import arith, func, gpu, memref, vector
from xdsl.dialects.builtin import IntegerAttr, MemRefType, ModuleOp
from xdsl.ir import Block, Operation, OpResult, SSAValue

from landbridge.codegen.functions import identified_functions
from landbridge.codegen.launch_sizes import over_words
from landbridge.codegen.layout import is_image
from landbridge.errors import CodegenError
from landbridge.executable.device_image import Launch, LaunchSequence
from landbridge.ir.kernel_attributes import has_sizes, is_in_place, sizes_of
from landbridge.ir.types import element_count, item_bytes, nbytes_of, shape_of
from landbridge.records import record
from landbridge.sizes.size import Extent, Size, never_below

_INT_END = 1 << 31


@record(frozen=True)
class GridKernel:
    """One launch of a lowered function.

    ``buffers`` are the memrefs from outside that it uses: its arguments, in order. ``stored`` are those that it writes.
    ``body`` is its code: a block that ends with ``gpu.terminator`` and whose arguments are not used. ``in_place``:
    buffers may overlap. ``words`` is the buffer of Sizes, if the kernel reads any. ``exchanged`` are buffers in which a
    work-item may read what another wrote: those that a kernel with barriers both reads and writes, or all if buffers
    may overlap.
    """

    name: str
    buffers: tuple[SSAValue, ...]
    stored: frozenset[SSAValue]
    body: Block
    grid: tuple[Extent, Extent, Extent]
    block: tuple[int, int, int]
    in_place: bool
    words: SSAValue | None = None
    exchanged: frozenset[SSAValue] = frozenset()

    def is_large(self, most_bytes: int | None = None) -> bool:
        """Returns whether an element of a buffer, or a work-item, may have an index that exceeds a signed 32-bit
        integer.

        ``most_bytes``: no buffer of a run has more, where a run decides its size.
        """
        items = element_count(self.grid) * element_count(self.block)
        counts = [_most_elements(buffer, most_bytes) for buffer in self.buffers]
        # In an open launch items are counted where each writes an element.
        return max([items if isinstance(items, int) else 0, *counts]) >= _INT_END


def _most_elements(buffer: SSAValue, most_bytes: int | None) -> int:
    """Returns the most elements that ``buffer`` may have."""
    elements = element_count(shape_of(buffer.type))
    if not isinstance(elements, Size):
        return elements
    most = never_below(elements)
    return most if most_bytes is None else min(most, most_bytes // item_bytes(buffer.type))


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
    words = entry.args[-1] if has_sizes(function) else None
    sizes = _Sizes(function, words)
    indices: dict[SSAValue, int] = {a: i for i, a in enumerate(entry.args)}
    scratch: list[int] = []
    kernels: list[GridKernel] = []
    for op in entry.ops:
        if isinstance(op, memref.AllocOp):
            indices[op.memref] = len(indices)
            scratch.append(over_words(function, nbytes_of(op.memref.type)))
        elif isinstance(op, gpu.LaunchOp):
            kernels.append(_kernel(op, f"{identifier}_{len(kernels)}", indices, is_in_place(function), sizes))
        elif not isinstance(op, arith.ConstantOp | func.ReturnOp) and not sizes.reads(op):
            raise CodegenError(f"{op.name!r} outside of launches; legal: arith.constant, memref.alloc, gpu.launch")
    launches = tuple(
        Launch(k.name, tuple(indices[b] for b in k.buffers), sizes.over_words(k.grid), k.block) for k in kernels
    )
    images = tuple(i for i, a in enumerate(entry.args) if isinstance(a.type, MemRefType) and is_image(a.type))
    sequence = LaunchSequence(len(entry.args), tuple(scratch), launches, images)
    return GridFunction(function.sym_name.data, tuple(kernels), sequence)


class _Sizes:
    """The Sizes of ``function``, which it reads from ``words``."""

    def __init__(self, function: func.FuncOp, words: SSAValue | None) -> None:
        self.function, self.words, self._sizes = function, words, sizes_of(function)

    def reads(self, op: Operation) -> bool:
        """Returns whether ``op`` only reads a word, or makes an index of one."""
        if isinstance(op, arith.IndexCastOp):
            return isinstance(op.input, OpResult) and self.reads(op.input.op)
        return isinstance(op, memref.LoadOp) and op.memref is self.words

    def over_words(self, grid: Sequence[Extent]) -> tuple[int, ...]:
        """Returns the shape of a launch as a LaunchSequence has it."""
        return tuple(over_words(self.function, extent) for extent in grid)

    def of(self, value: SSAValue) -> Extent:
        """Returns the constant or Size that ``value`` is; raises CodegenError for any other."""
        owner = value.owner
        if isinstance(owner, arith.ConstantOp):
            return _constant(value)
        if isinstance(owner, arith.IndexCastOp) and self.reads(owner):
            load = owner.input.owner
            assert isinstance(load, memref.LoadOp)
            return self._sizes[_constant(load.indices[0])]
        raise CodegenError(f"a launch shape is computed by {owner}; it must be a constant or a word")


def _kernel(op: gpu.LaunchOp, name: str, indices: dict[SSAValue, int], in_place: bool, sizes: _Sizes) -> GridKernel:
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
    grid = sizes.of(op.gridSizeX), sizes.of(op.gridSizeY), sizes.of(op.gridSizeZ)
    block = _shape((op.blockSizeX, op.blockSizeY, op.blockSizeZ))
    return GridKernel(
        name,
        buffers,
        frozenset(stored),
        op.body.block,
        grid,
        block,
        in_place,
        sizes.words if sizes.words in used else None,
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
    raise CodegenError(f"the shape of a workgroup is computed by {owner}; it must be a constant")


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
