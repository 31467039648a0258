"""PrimFuncs that only move data, used where bufferization cannot avoid a copy; equal ones are shared."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

from xdsl.ir import Attribute
from xdsl.ir.affine import AffineExpr, AffineMap

from landbridge.ir.kernel_attributes import set_target_number
from landbridge.ir.module import IRModule
from landbridge.ir.packed_pieces import pieces
from landbridge.ir.prim_builder import PrimBuilder
from landbridge.ir.scalars import ScalarBuilder, Value
from landbridge.ir.size_exprs import extent_expr
from landbridge.ir.types import VDeviceAttr, shape_of, tensor_type, vdevice_of
from landbridge.sizes.size import Extent


class CopyPrims:
    """Adds copying PrimFuncs to ``module``; each method returns the name of one."""

    def __init__(self, module: IRModule) -> None:
        self._module = module
        self._known: dict[Hashable, str] = {}

    def flat(self, count: Extent, dtype: str, location: VDeviceAttr) -> str:
        """Returns the name of a PrimFunc that copies ``count`` elements in order: both sides are ``[count]``."""

        def build(p: PrimBuilder) -> None:
            same = AffineMap.identity(1)
            p.generic("p", [count], [(p.inputs[0], same)], [(p.outputs[0], same)], _value)

        ty = tensor_type([count], dtype, location)
        return self._make("copy", ("flat", count, dtype, location), ty, ty, build)

    def part(self, total: Extent, first: Extent, count: Extent, dtype: str, location: VDeviceAttr) -> str:
        """Returns the name of a PrimFunc that copies ``count`` elements from element ``first`` of ``total``; both sides
        are flat."""

        def build(p: PrimBuilder) -> None:
            out = (p.outputs[0], AffineMap.identity(1))
            p.generic("p", [count], [(p.inputs[0], lambda i: (i + extent_expr(first),))], [out], _value)

        source, target = tensor_type([total], dtype, location), tensor_type([count], dtype, location)
        return self._make("copy_part", ("part", source, target, first), source, target, build)

    def columns(
        self, rows: Extent, width: Extent, total: Extent, first: Extent, dtype: str, location: VDeviceAttr
    ) -> str:
        """Returns the name of a PrimFunc that copies ``[rows, width]`` into columns ``first ..`` of rows of ``total``
        elements.

        The destination is flat.
        """

        def build(p: PrimBuilder) -> None:
            p.generic(
                "pp",
                [rows, width],
                [(p.inputs[0], AffineMap.identity(2))],
                [(p.outputs[0], lambda r, c: (r * extent_expr(total) + c + extent_expr(first),))],
                _value,
            )

        source, target = tensor_type([rows, width], dtype, location), tensor_type([rows * total], dtype, location)
        return self._make("copy_columns", ("columns", source, target, first), source, target, build)

    def pack(self, source: Attribute, axes: Sequence[int], tiles: Sequence[int], target: Attribute) -> str:
        """Returns the name of a PrimFunc that copies a tensor of type ``source`` into one of its packed shape, of type
        ``target``; the padding repeats the last element.
        """
        shape = shape_of(source)

        def build(p: PrimBuilder) -> None:
            for piece in pieces(shape, axes, tiles, padding=True):
                loops = "p" * len(piece.extents)
                p.generic(loops, piece.extents, [(p.inputs[0], piece.plain)], [(p.outputs[0], piece.packed)], _value)

        return self._make("pack", ("pack", source, target, tuple(axes), tuple(tiles)), source, target, build)

    def transpose(self, shape: Sequence[int], order: Sequence[int], dtype: str, location: VDeviceAttr) -> str:
        """Returns the name of a PrimFunc that transposes: axis ``i`` of the result is axis ``order[i]`` of the
        source."""
        transposed = [shape[i] for i in order]

        def build(p: PrimBuilder) -> None:
            where = [AffineExpr.dimension(list(order).index(i)) for i in range(len(shape))]
            source_map = AffineMap(len(shape), 0, tuple(where))
            out = (p.outputs[0], AffineMap.identity(len(shape)))
            p.generic("p" * len(shape), transposed, [(p.inputs[0], source_map)], [out], _value)

        source, target = tensor_type(shape, dtype, location), tensor_type(transposed, dtype, location)
        return self._make("transpose", ("transpose", source, tuple(order)), source, target, build)

    def unpack(self, source: Attribute, axes: Sequence[int], tiles: Sequence[int], target: Attribute) -> str:
        """Returns the name of a PrimFunc that copies a tensor of type ``source``, the packed form of ``target``."""
        shape = shape_of(target)

        def build(p: PrimBuilder) -> None:
            for piece in pieces(shape, axes, tiles, padding=False):
                loops = "p" * len(piece.extents)
                p.generic(loops, piece.extents, [(p.inputs[0], piece.packed)], [(p.outputs[0], piece.plain)], _value)

        return self._make("unpack", ("unpack", source, target, tuple(axes), tuple(tiles)), source, target, build)

    def _make(
        self, stem: str, key: Hashable, source: Attribute, target: Attribute, build: Callable[[PrimBuilder], None]
    ) -> str:
        name = self._known.get(key)
        if name is None:
            location = vdevice_of(target)
            self._module.prim_count += 1
            name = self._known[key] = f"{stem}_{self._module.prim_count}"
            prim = PrimBuilder(name, [source], [target])
            build(prim)
            function = prim.finish()
            set_target_number(function, self._module.vdevices[location.index.data].target)
            self._module.op.body.block.add_op(function)
        return name


def _value(s: ScalarBuilder, x: Value) -> Value:
    return x
