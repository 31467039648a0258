"""Types of the IR: element types by dtype name, tensors with a VDevice encoding, memrefs with a scope."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, TypeAlias, cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    BFloat16Type,
    Float16Type,
    Float32Type,
    Float64Type,
    IntAttr,
    IntegerType,
    MemRefType,
    NoneAttr,
    Signedness,
    StringAttr,
    TensorType,
)
from xdsl.ir import Attribute, Data, ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from landbridge.dtypes import dtype
from landbridge.errors import CompileError, ShapeError
from landbridge.memory_kind import GLOBAL_SCOPE, normalize_scope
from landbridge.sizes.size import Extent, Size

AnyTensor: TypeAlias = TensorType[Any]
AnyMemRef: TypeAlias = MemRefType[Any]
_SHAPED = (TensorType, MemRefType)


@irdl_attr_definition
class VDeviceAttr(ParametrizedAttribute):
    """The placement of a tensor: ``#lb.vdevice<index, "scope">``; ``index`` numbers the program's vdevices.

    In an n-D scope the axis separators follow: in ``#lb.vdevice<0, "global.vtcm", [2]>`` axes 0 and 1 make the rows of
    the space, and the axes from 2 on make up a row.
    """

    name = "lb.vdevice"

    index: IntAttr
    scope: StringAttr
    separators: ArrayAttr[IntAttr]

    @staticmethod
    def of(index: int = 0, scope: str = "global", axis_separators: Sequence[int] = ()) -> VDeviceAttr:
        """Returns the placement on vdevice ``index`` in ``scope``; the empty scope means ``"global"``."""
        return VDeviceAttr(IntAttr(index), StringAttr(normalize_scope(scope)), _int_attrs(axis_separators))

    @property
    def axis_separators(self) -> tuple[int, ...]:
        """Returns the first axis of each dimension of the space except the first; none in a flat scope."""
        return tuple(axis.data for axis in self.separators)

    @property
    def space(self) -> StringAttr | SpaceAttr:
        """Returns the memory space of a memref with this placement."""
        return SpaceAttr(self.scope, self.separators) if self.separators.data else self.scope

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            index = parser.parse_integer()
            parser.parse_punctuation(",")
            scope = StringAttr(parser.parse_str_literal())
            return (IntAttr(index), scope, _parse_separators(parser))

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(f"{self.index.data}, ")
            printer.print_string_literal(self.scope.data)
            if self.separators.data:
                printer.print_string(f", {list(self.axis_separators)}")


@irdl_attr_definition
class SpaceAttr(ParametrizedAttribute):
    """The memory space of a memref in an n-D scope: ``#lb.space<"global.vtcm", [2]>``; in a flat one it is a string."""

    name = "lb.space"

    scope: StringAttr
    separators: ArrayAttr[IntAttr]

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            scope = StringAttr(parser.parse_str_literal())
            return (scope, _parse_separators(parser))

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string_literal(self.scope.data)
            printer.print_string(f", {[axis.data for axis in self.separators]}")


@irdl_attr_definition
class SizeAttr(Data[Size]):
    """An integer that is known only at run time, in place of a number in an attribute: ``#lb.size<[W/4]>``."""

    name = "lb.size"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Size:
        with parser.in_angle_brackets():
            size = parser.parse_shape_dimension()
        if not isinstance(size, Size):
            parser.raise_error(f"{size} is one number; a size depends on a dimension")
        return size

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(f"{self.data:d}")


def _int_attrs(values: Sequence[int]) -> ArrayAttr[IntAttr]:
    return ArrayAttr([IntAttr(value) for value in values])


def _parse_separators(parser: AttrParser) -> ArrayAttr[IntAttr]:
    if parser.parse_optional_punctuation(",") is None:
        return ArrayAttr([])
    return _int_attrs(parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer))


HOST = VDeviceAttr.of()

#: The most bytes of a tensor, and of one that an operator computes at compile time.
LARGEST = 1 << 40
LARGEST_CONSTANT = 1 << 32

#: The memory space of memrefs in ordinary memory.
GLOBAL = StringAttr(GLOBAL_SCOPE)

# Unsigned integers keep their sign in the type, so that a dtype survives the IR; booleans are i1.
_ELEMENT_TYPES: dict[str, Attribute] = {
    "bool": IntegerType(1),
    "int8": IntegerType(8),
    "int16": IntegerType(16),
    "int32": IntegerType(32),
    "int64": IntegerType(64),
    "uint8": IntegerType(8, Signedness.UNSIGNED),
    "uint16": IntegerType(16, Signedness.UNSIGNED),
    "uint32": IntegerType(32, Signedness.UNSIGNED),
    "uint64": IntegerType(64, Signedness.UNSIGNED),
    "float16": Float16Type(),
    "bfloat16": BFloat16Type(),
    "float32": Float32Type(),
    "float64": Float64Type(),
}
_DTYPE_NAMES = {v: k for k, v in _ELEMENT_TYPES.items()}


def element_type(dtype: str) -> Attribute:
    """Returns the IR element type of a dtype name; raises CompileError for one the IR does not compute on."""
    try:
        return _ELEMENT_TYPES[dtype]
    except KeyError:
        raise CompileError(f"dtype {dtype!r} cannot be compiled; legal: {', '.join(_ELEMENT_TYPES)}") from None


def dtype_of(ty: Attribute) -> str:
    """Returns the dtype name of an element type, tensor type or memref type; raises CompileError when it has none."""
    if type(ty) in _SHAPED:  # isinstance takes ten times as long for a negative answer
        ty = cast(AnyMemRef, ty).element_type
    try:
        return _DTYPE_NAMES[ty]
    except KeyError:
        raise CompileError(f"element type {ty} is not a dtype; legal: {', '.join(map(str, _DTYPE_NAMES))}") from None


def compute_type(element: Attribute) -> Attribute:
    """Returns the type that a loaded element is computed in: the element type without its sign (arith is signless)."""
    if type(element) is IntegerType and element.signedness.data != Signedness.SIGNLESS:
        return IntegerType(element.width.data)
    return element


def check_size(shape: Sequence[Extent], dtype_name: str, limit: int = LARGEST) -> None:
    """Raises ShapeError for a tensor of more than ``limit`` bytes, or of a negative extent.

    Open extents count with the least value that they can have.
    """
    least = [extent if isinstance(extent, int) else extent.low for extent in shape]
    if any(extent is None or extent < 0 for extent in least):
        raise ShapeError(f"a tensor of shape {tuple(shape)} has a negative extent; 0 and more are legal")
    size = math.prod(max(extent or 0, 1) for extent in least) * dtype(dtype_name).itemsize
    if size > limit:
        raise ShapeError(
            f"a tensor of shape {tuple(shape)} and dtype {dtype_name} takes {size} bytes; at most {limit} are legal"
        )


def extents_attr(shape: Sequence[Extent]) -> ArrayAttr[IntAttr]:
    """Returns ``shape`` as types hold it, with Sizes in place of open extents."""
    return _extents_attr(tuple(shape))


# Types are made for each value, and making one takes as long as a few operations do.
@lru_cache(maxsize=4096)
def _extents_attr(shape: tuple[Extent, ...]) -> ArrayAttr[IntAttr]:
    return ArrayAttr([IntAttr(cast(int, extent)) for extent in shape])


def tensor_type(shape: Sequence[Extent], dtype: str, vdevice: VDeviceAttr = HOST) -> AnyTensor:
    """Returns ``tensor<shape x dtype, vdevice>``."""
    return _tensor_type(tuple(shape), dtype, vdevice)


@lru_cache(maxsize=4096)
def _tensor_type(shape: tuple[Extent, ...], dtype: str, vdevice: VDeviceAttr) -> AnyTensor:
    check_size(shape, dtype)
    return TensorType.new([extents_attr(shape), element_type(dtype), vdevice])


def memref_type(shape: Sequence[Extent], dtype: str, space: Attribute = GLOBAL) -> AnyMemRef:
    """Returns a dense row-major ``memref<shape x dtype, space>``."""
    return _memref_type(tuple(shape), dtype, space)


@lru_cache(maxsize=4096)
def _memref_type(shape: tuple[Extent, ...], dtype: str, space: Attribute) -> AnyMemRef:
    check_size(shape, dtype)
    return memref_of(element_type(dtype), extents_attr(shape), space)


def memref_of(element: Attribute, shape: ArrayAttr[IntAttr], space: Attribute) -> AnyMemRef:
    """Returns a dense row-major memref, without the constructor's inspection of ``shape``, which takes ten times as
    long."""
    return MemRefType.new([shape, element, NoneAttr(), space])


def vdevice_of(ty: Attribute) -> VDeviceAttr:
    """Returns the placement of a tensor type; raises CompileError when it has none."""
    if type(ty) is TensorType and type(ty.encoding) is VDeviceAttr:
        return ty.encoding
    raise CompileError(f'{ty} has no VDevice encoding; write tensor<..., #lb.vdevice<0, "global">>')


def separators_of(ty: Attribute) -> tuple[int, ...]:
    """Returns the axis separators of a memref; none in a flat scope."""
    space = ty.memory_space if type(ty) is MemRefType else None
    return tuple(axis.data for axis in space.separators) if type(space) is SpaceAttr else ()


def buffer_type(ty: AnyTensor) -> AnyMemRef:
    """Returns the memref type of the buffer for a tensor of type ``ty``."""
    return memref_of(ty.element_type, ty.shape, vdevice_of(ty).space)


def shape_of(ty: Attribute) -> tuple[int, ...]:
    """Returns the shape of a tensor or memref type.

    An extent that is known only at run time is a Size, which computes as an int does and raises UndecidedSizeError
    where it would have to be one.
    """
    if type(ty) not in _SHAPED:
        raise CompileError(f"{ty} is neither a tensor nor a memref")
    return tuple(cast(AnyMemRef, ty).get_shape())


def element_count(shape: Sequence[Extent]) -> int:
    """Returns the number of elements of a shape."""
    return _product(tuple(shape))


# A product of Sizes takes as long as ten look-ups, and passes ask for the same shapes.
@lru_cache(maxsize=4096)
def _product(shape: tuple[Extent, ...]) -> int:
    return math.prod(cast(Sequence[int], shape))


def item_bytes(ty: Attribute) -> int:
    """Returns the bytes of one element in memory; a bool takes one."""
    return dtype(dtype_of(ty)).itemsize


def nbytes_of(ty: Attribute) -> int:
    """Returns the bytes of a dense tensor or memref."""
    return element_count(shape_of(ty)) * item_bytes(ty)
